//! What every sink that holds the state of features must do.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use geoclaim_consumer::sink::{Change, ChangeKind, Effect, Sink};

use super::{change, of_kind};

async fn apply(sink: &Arc<dyn Sink>, changes: Vec<Change>) -> Vec<Effect> {
    sink.apply(Arc::new(changes)).await.expect("the sink takes the batch")
}

/// A sink must apply an event once, within a batch, across batches and from many tasks at once, and let no older state
/// back in; and all of it again after it was closed and opened. `open` opens the same, empty at first.
///
/// # Panics
/// The sink breaks the contract.
pub async fn sink<F: Future<Output = Arc<dyn Sink>>>(open: impl Fn() -> F) {
    let first = open().await;
    sink_within_a_run(&first).await;
    first.close().await.expect("it closes");
    let again = open().await;
    remembers(&again).await;
    again.close().await.expect("it closes");
}

/// What of the contract holds for a sink that remembers nothing once it is closed.
///
/// # Panics
/// The sink breaks it.
pub async fn sink_within_a_run(sink: &Arc<dyn Sink>) {
    once(sink).await;
    exits(sink).await;
    one_of_many_again_and_again(&[Arc::clone(sink)]).await;
}

/// An event and a feature count once, and of two states the newer stands.
async fn once(sink: &Arc<dyn Sink>) {
    use Effect::{Applied, Duplicate, Stale};
    assert_eq!(apply(sink, vec![]).await, []);
    assert_eq!(
        apply(sink, vec![change("f", "e1", None, 1), change("f", "e1", None, 1), change("g", "e2", Some(5), 2)]).await,
        [Applied, Duplicate, Applied]
    );
    assert_eq!(apply(sink, vec![change("f", "e1", None, 1)]).await, [Duplicate]);
    assert_eq!(
        apply(sink, vec![change("g", "e3", Some(4), 3), change("g", "e4", Some(6), 4), change("g", "e5", Some(6), 5)]).await,
        [Stale, Applied, Stale]
    );
    assert_eq!(apply(sink, vec![change("f", "e6", None, 6)]).await, [Applied], "the same feature soon after");
}

/// What has left or is deleted must go once, and no older state may bring it back.
async fn exits(sink: &Arc<dyn Sink>) {
    use Effect::{Applied, Duplicate, Left, NotHeld, Stale};
    let leave = |event: &str, version| of_kind("x", event, version, ChangeKind::Leave);
    let delete = |event: &str, version| of_kind("x", event, version, ChangeKind::Delete);
    let early = leave("x0", None);
    assert_eq!(apply(sink, vec![leave("x1", Some(3))]).await, [NotHeld]);
    assert_eq!(apply(sink, vec![change("x", "x2", Some(2), 1), change("x", "x3", Some(4), 1)]).await, [Stale, Applied]);
    assert_eq!(apply(sink, vec![early, leave("x1", Some(3)), leave("x4", Some(5))]).await, [Stale, Duplicate, Left]);
    assert_eq!(apply(sink, vec![leave("x4", Some(5)), change("x", "x5", Some(4), 1)]).await, [Duplicate, Stale]);
    assert_eq!(apply(sink, vec![change("x", "x6", Some(6), 1), delete("x7", None)]).await, [Applied, Left]);
    assert_eq!(apply(sink, vec![delete("x8", None), change("x", "x9", Some(5), 1)]).await, [NotHeld, Stale]);
    assert_eq!(apply(sink, vec![change("x", "x10", Some(7), 1), delete("x11", Some(8))]).await, [Applied, Left]);
}

/// One of many that apply the same change at the same time applies it, and the others find it applied. The tasks share
/// the sinks given, which are of one state: of one process, or each with a connection of its own.
///
/// # Panics
/// None applied it, or more than one, or one saw it as something else.
pub async fn one_of_many(sinks: &[Arc<dyn Sink>], fresh: impl Fn() -> Change) {
    let change = fresh();
    let tasks = (0..16).map(|n| {
        let (sink, change) = (Arc::clone(&sinks[n % sinks.len()]), change.clone());
        tokio::spawn(async move {
            loop {
                match sink.apply(Arc::new(vec![change.clone()])).await {
                    Ok(effects) => return effects,
                    Err(fault) => assert_eq!(fault.kind, geoclaim_common::FaultKind::Unavailable, "{fault}"),
                }
            }
        })
    });
    let ended: Vec<Effect> =
        futures::future::join_all(tasks).await.into_iter().flat_map(|task| task.expect("a task ends")).collect();
    let applied = ended.iter().filter(|effect| **effect == Effect::Applied).count();
    let known = ended.iter().filter(|effect| **effect == Effect::Duplicate).count();
    assert_eq!((applied, known), (1, 15), "{ended:?}");
}

/// As [`one_of_many`], five times over, each with an event of its own.
///
/// # Panics
/// As there.
pub async fn one_of_many_again_and_again(sinks: &[Arc<dyn Sink>]) {
    static ROUND: AtomicU32 = AtomicU32::new(0);
    for _ in 0..5 {
        one_of_many(sinks, || change("h", &format!("once-{}", ROUND.fetch_add(1, Ordering::Relaxed)), None, 7)).await;
    }
}

/// What was applied before the sink was closed is applied.
async fn remembers(sink: &Arc<dyn Sink>) {
    use Effect::{Duplicate, Stale};
    assert_eq!(apply(sink, vec![change("f", "e1", None, 1), change("f", "e6", None, 6)]).await, [Duplicate, Duplicate]);
    assert_eq!(apply(sink, vec![change("x", "x12", Some(5), 1)]).await, [Stale]);
    let known = sink.features(0).await.expect("the sink says what it holds");
    let later = sink.features(known.mark).await.expect("and what came since");
    assert!(known.len() >= 4 && later.len() <= known.len(), "{} features, {} of them since", known.len(), later.len());
}
