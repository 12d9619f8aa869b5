//! The protocol of sweep and publisher as a model, every interleaving of which is looked at.
//!
//! One key, two publishers that put and publish the same bytes over and over, one sweep, one consumer. Every step of each
//! is one action; between any two steps time may pass, which is a stall; any of them may be killed at any step, and any
//! answer be lost. Time is kept as ages that stop counting where they no longer matter, so that the states are finite and
//! all of them are visited: nothing is cut off by a depth. Two states that differ only in which publisher is which are one.
//!
//! The units are such that every rule is needed: see [`model::Times`].

mod model;
mod publisher;
mod sweep;

use model::{Protocol, Rule};
use stateright::{Checker, DiscoveryClassification, Model};

/// What must hold whatever happens, as long as the network keeps no record for longer than the sweep's grace.
const RESOLVES: &str = "every readable envelope has its body";

/// What must hold even when a record arrives after any time.
const CHECKED: &str = "every envelope whose publisher is done with it has its body";

const CONSUMED: &str = "no consumer misses a body";

/// What must be possible, or the model would show nothing.
const SWEPT: &str = "a body is swept";
const PUBLISHED: &str = "an envelope is published";

/// Looks at every state, or until each property is broken; returns the properties that do not hold.
fn broken(name: &str, protocol: Protocol) -> Vec<&'static str> {
    let checker = protocol.checker().threads(2).spawn_bfs().join();
    println!("{name}: {} states", checker.unique_state_count());
    let mut broken = Vec::new();
    for (property, path) in checker.discoveries() {
        if matches!(checker.discovery_classification(property), DiscoveryClassification::Counterexample) {
            println!("  it is not so that {property}: {:?}", path.into_actions());
            broken.push(property);
        }
    }
    assert!(checker.discovery(SWEPT).is_some() && checker.discovery(PUBLISHED).is_some(), "{name} does nothing");
    broken
}

#[test]
fn no_interleaving_leaves_an_envelope_without_its_body() {
    assert_eq!(broken("all rules", Protocol::whole()), [] as [&str; 0]);
}

#[test]
fn a_record_that_arrives_after_any_time_is_mended_by_its_publisher() {
    let all = broken("all rules, and records that arrive after any time", Protocol::with_endless_network());
    assert_eq!(all, [] as [&str; 0]);
}

#[test]
fn without_any_one_of_its_rules_the_protocol_fails() {
    for rule in Rule::ALL {
        let (protocol, wanted) = match rule {
            Rule::LookAgain => (Protocol::with_endless_network(), CHECKED),
            _ => (Protocol::whole(), RESOLVES),
        };
        assert!(broken(&format!("without {rule:?}"), protocol.without(rule)).contains(&wanted), "{rule:?} is not needed");
    }
}
