//! What topics are set to, and whether bucket and ledger keep up with it.

use std::time::Duration;

use geoclaim_common::{
    Fault, Timestamp,
    kafka::{Cleanup, KafkaSettings, Timestamps, TopicFacts, topic_facts},
    limits,
    retention::{self, Evidence, readable_for},
    store::Lifecycle,
};

use super::{AuditSettings, Finding};

/// What is known of a topic.
#[derive(Debug)]
pub(super) struct Topic {
    name: String,
    facts: Result<TopicFacts, Fault>,
    evidence: Result<Evidence, Fault>,
}

/// Asks the brokers. Blocks.
pub(super) fn ask(kafka: &KafkaSettings, topics: &[String]) -> Vec<Topic> {
    let ask = |name: &String| {
        let missing = || Fault::configuration(format!("topic {name} does not exist at {}", kafka.brokers));
        let facts = topic_facts(kafka, name).and_then(|facts| facts.ok_or_else(missing));
        let evidence = facts.clone().and_then(|_| Evidence::of_topic(kafka, name));
        Topic { name: name.clone(), facts, evidence }
    };
    topics.iter().map(ask).collect()
}

/// Checks one topic on its own.
pub(super) fn findings(topic: &Topic, settings: &AuditSettings) -> Vec<Finding> {
    let name = &topic.name;
    let facts = match &topic.facts {
        Ok(facts) => facts,
        Err(fault) => return vec![Finding::of("topic", fault)],
    };
    let silent = |check, what: &str| Finding::unknown(check, format!("the broker does not tell {what} of {name}"));
    let cleanup = match facts.cleanup {
        Some(Cleanup::Delete) => Finding::ok("cleanup.policy", format!("{name}: old records are deleted")),
        Some(_) => {
            let harm = "compaction drops envelopes that others still refer to by order, and keeps the last of each key for ever";
            Finding::wrong("cleanup.policy", format!("{name} is compacted: {harm}; set cleanup.policy=delete"))
        }
        None => silent("cleanup.policy", "cleanup.policy"),
    };
    let retention = match &topic.evidence {
        Ok(Evidence { kept, earliest, .. }) => {
            let earliest =
                earliest.map_or("it is empty".to_owned(), |earliest| format!("its first record is of {}", earliest.to_rfc3339()));
            Finding::ok("retention", format!("{name}: {}, {earliest}", days(*kept)))
        }
        Err(fault) => Finding::of("retention", fault),
    };
    let timestamps = match facts.timestamps {
        Some(Timestamps::LogAppend) => Finding::ok("message.timestamp.type", format!("{name}: records have the broker's time")),
        Some(Timestamps::Create) => {
            let better = "LogAppendTime is better: no producer's clock then decides how old an envelope is";
            Finding::ok("message.timestamp.type", format!("{name}: records have their producer's time; {better}"))
        }
        None => silent("message.timestamp.type", "message.timestamp.type"),
    };
    let sizes = match facts.max_message_bytes {
        Some(most) if settings.inline_limit_bytes + limits::RECORD_OVERHEAD_BYTES > most => Finding::wrong(
            "max.message.bytes",
            format!(
                "{name} takes records of {most} bytes, and the inline limit of {} needs {}: raise the one or lower the other",
                settings.inline_limit_bytes,
                settings.inline_limit_bytes + limits::RECORD_OVERHEAD_BYTES
            ),
        ),
        Some(most) => Finding::ok(
            "max.message.bytes",
            format!("{name} takes {most} bytes, the inline limit is {}", settings.inline_limit_bytes),
        ),
        None => silent("max.message.bytes", "max.message.bytes"),
    };
    vec![cleanup, retention, timestamps, sizes, replicas(name, facts), in_sync(name, facts)]
}

fn replicas(name: &str, TopicFacts { replicas, brokers, .. }: &TopicFacts) -> Finding {
    let wanted = (*brokers).min(3);
    if *replicas >= wanted {
        return Finding::ok("replication", format!("{name}: {replicas} replicas on {brokers} brokers"));
    }
    let what = format!("{name} has {replicas} replicas on {brokers} brokers");
    Finding::wrong("replication", format!("{what}: with fewer than {wanted} a broken disk can lose envelopes"))
}

fn in_sync(name: &str, facts: &TopicFacts) -> Finding {
    let check = "min.insync.replicas";
    let wanted = if facts.replicas >= 3 { 2 } else { 1 };
    match facts.min_insync_replicas {
        None => Finding::unknown(check, format!("the broker does not tell {check} of {name}")),
        Some(least) if least > facts.replicas => {
            Finding::wrong(check, format!("{name}: {least} of {} replicas, so that nothing can be written", facts.replicas))
        }
        Some(least) if least < wanted => {
            let harm = "an acknowledged envelope may be on one disk only";
            Finding::wrong(check, format!("{name}: {least} of {} replicas: {harm}; set it to {wanted}", facts.replicas))
        }
        Some(least) => Finding::ok(check, format!("{name}: {least} of {} replicas", facts.replicas)),
    }
}

/// Checks the dead letters against what they are of: the first topic and the second.
pub(super) fn dead_letters(topics: &[Topic]) -> Option<Finding> {
    let [Topic { name, facts: Ok(facts), .. }, Topic { name: letters, facts: Ok(of_letters), .. }, ..] = topics else {
        return None;
    };
    let check = "retention of dead letters";
    let kept = |retention_ms: i64| if retention_ms < 0 { i64::MAX } else { retention_ms };
    Some(match (facts.retention_ms.map(kept), of_letters.retention_ms.map(kept)) {
        (Some(topic), Some(kept)) if kept < topic => {
            let harm = "a letter is gone before the envelopes around it";
            Finding::wrong(check, format!("{letters} keeps letters for a shorter time than {name} keeps envelopes: {harm}"))
        }
        (Some(_), Some(_)) => Finding::ok(check, format!("{letters} keeps letters no shorter than {name} keeps envelopes")),
        _ => Finding::unknown(check, format!("the broker does not tell retention.ms of {letters}")),
    })
}

/// Checks the bucket's lifecycle and the ledger against the one boundary.
pub(super) fn boundary(
    topics: &[Topic],
    now: Option<Timestamp>,
    settings: &AuditSettings,
    lifecycle: &Lifecycle,
) -> Vec<Finding> {
    let timing = &settings.timing;
    let evidence = topics.iter().map(|topic| topic.evidence.clone()).collect::<Result<Vec<_>, Fault>>();
    let now = now.ok_or_else(|| Fault::unavailable("the store does not tell its time"));
    let boundary = evidence.and_then(|evidence| retention::boundary(&evidence, now?, timing));
    let boundary = match boundary {
        Ok(boundary) => boundary,
        Err(fault) => {
            let detail = format!("no boundary: {}", fault.detail);
            return ["retention boundary", "lifecycle of the bucket", "retention of the ledger"]
                .map(|check| Finding::unknown(check, &*detail))
                .into();
        }
    };
    let mut findings = vec![Finding::ok("retention boundary", format!("a body can be needed for {}", days(boundary)))];
    findings.push(expires(lifecycle, boundary));
    findings.push(ledger(topics, boundary, settings));
    findings
}

/// A publisher relies on a body of up to half the boundary, and its envelope can be read for the whole.
fn expires(lifecycle: &Lifecycle, boundary: Duration) -> Finding {
    let (check, needed) = ("lifecycle of the bucket", boundary + boundary / 2);
    match lifecycle {
        Lifecycle::Never => Finding::ok(check, "it deletes no bodies by itself"),
        Lifecycle::After(after) if *after >= needed => {
            Finding::ok(check, format!("it deletes bodies after {}, and {} are needed", days(*after), days(needed)))
        }
        Lifecycle::After(after) => Finding::wrong(
            check,
            format!(
                "it deletes bodies after {}, and envelopes can refer to them for {}: a replay would find bodies gone; lengthen the \
                 lifecycle to {} or more",
                days(*after),
                days(needed),
                days(needed)
            ),
        ),
        Lifecycle::Unknown(why) => Finding::unknown(check, format!("{why}: say it with --body-lifecycle DAYS, or never")),
    }
}

/// The ledger outlives both what can be read now and what the topics' settings allow.
fn ledger(topics: &[Topic], boundary: Duration, settings: &AuditSettings) -> Finding {
    let check = "retention of the ledger";
    let Some(kept) = settings.ledger_retention else {
        return Finding::ok(check, "ledgers keep events for ever, as far as is told");
    };
    let facts = topics.iter().map(|topic| Ok((&*topic.name, topic.facts.as_ref().map_err(Fault::clone)?)));
    let readable = facts.collect::<Result<Vec<_>, Fault>>().and_then(|facts| readable_for(&facts, &settings.timing));
    match readable.map(|readable| readable.max(boundary)) {
        Ok(needed) if kept >= needed => Finding::ok(check, format!("{}, and {} are needed", days(kept), days(needed))),
        Ok(needed) => Finding::wrong(
            check,
            format!(
                "it forgets events after {}, and they can be delivered again for {}: they would be applied twice",
                days(kept),
                days(needed)
            ),
        ),
        Err(fault) => Finding::unknown(check, fault.detail),
    }
}

fn days(duration: Duration) -> String {
    format!("{:.1} days", duration.as_secs_f64() / 86_400.0)
}
