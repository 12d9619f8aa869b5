//! What is known of how long records can be read.

use std::time::Duration;

use super::Timing;
use crate::{
    Fault, Timestamp,
    kafka::{Cleanup, KafkaSettings, TopicFacts, bounds, topic_facts},
};

/// What is known of a topic or an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Its name, as a message has it.
    pub name: String,
    /// How long it keeps records by its settings.
    pub kept: Duration,
    /// The time of the earliest record that can be read; `None` when there are none.
    pub earliest: Option<Timestamp>,
}

impl Evidence {
    /// Asks the brokers about a topic: its settings, and the first record of each partition. Blocks.
    ///
    /// # Errors
    /// What is missing: the topic, an answer, a partition that can be read, a retention that is known and has an end, a record's
    /// time.
    pub fn of_topic(settings: &KafkaSettings, topic: &str) -> Result<Self, Fault> {
        let missing = || Fault::configuration(format!("topic {topic} does not exist at {}", settings.brokers));
        let facts = topic_facts(settings, topic)?.ok_or_else(missing)?;
        let kept = kept(topic, &facts)?;
        let mut earliest: Option<Timestamp> = None;
        for (partition, bounds) in bounds(settings, topic)? {
            if bounds.has_records && bounds.earliest.is_none() {
                return Err(Fault::configuration(format!(
                    "the first record of partition {partition} of topic {topic} has no time"
                )));
            }
            earliest = earliest.into_iter().chain(bounds.earliest).min();
        }
        Ok(Self { name: format!("topic {topic}"), kept, earliest })
    }
}

/// Returns how long a topic keeps records by its settings: `retention.ms`.
fn kept(topic: &str, facts: &TopicFacts) -> Result<Duration, Fault> {
    let unknown = |what: &str| Fault::configuration(format!("topic {topic} {what}"));
    match (facts.cleanup, facts.retention_ms) {
        (Some(Cleanup::Compact | Cleanup::CompactAndDelete), _) => {
            Err(unknown("is compacted, and so keeps the last record of each key for ever"))
        }
        (_, Some(retention)) if retention < 0 => Err(unknown("keeps records for ever (retention.ms=-1)")),
        (Some(Cleanup::Delete), Some(retention)) => Ok(Duration::from_millis(retention.unsigned_abs())),
        _ => Err(unknown("does not say how long it keeps records")),
    }
}

/// Returns the boundary.
///
/// # Errors
/// There is no evidence, or the time of a record lies further ahead of `now` than the margin.
pub fn boundary(evidence: &[Evidence], now: Timestamp, timing: &Timing) -> Result<Duration, Fault> {
    let margin = Duration::from_secs(timing.margin_seconds);
    let mut longest = None;
    for Evidence { name, kept, earliest } in evidence {
        let age = earliest.map_or(Duration::ZERO, |earliest| now.since(earliest));
        if earliest.is_some_and(|earliest| earliest.since(now) > margin) {
            let what = format!("the earliest record of {name} is dated after the store's clock by more than the margin");
            return Err(Fault::configuration(format!("{what}: one of the two clocks is wrong, and no age can be told")));
        }
        longest = longest.max(Some(age.max(*kept)));
    }
    let nothing = || Fault::configuration("no topic was named, so nothing tells how long records can be read");
    Ok(longest.ok_or_else(nothing)?.saturating_add(timing.slack()))
}

/// Returns how long a record of any of these topics can be read at the most, by their settings, with a margin. Kafka deletes
/// whole segments, so a record may outlive the topic's retention by the time that a segment spans.
///
/// # Errors
/// [`crate::FaultKind::Configuration`] with the topic that keeps records for ever, or does not say how long.
pub fn readable_for(topics: &[(&str, &TopicFacts)], timing: &Timing) -> Result<Duration, Fault> {
    let mut longest = Duration::ZERO;
    for (name, facts) in topics {
        let segment = facts.segment_ms.map_or(Duration::ZERO, |segment| Duration::from_millis(segment.unsigned_abs()));
        longest = longest.max(kept(name, facts)?.saturating_add(segment));
    }
    Ok(longest.saturating_add(Duration::from_secs(timing.margin_seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);
    const NOW: Timestamp = Timestamp::from_millis(1_000 * 3_600_000);

    fn facts(retention_ms: i64) -> TopicFacts {
        let cleanup = Some(Cleanup::Delete);
        TopicFacts { retention_ms: Some(retention_ms), segment_ms: Some(3_600_000), cleanup, ..TopicFacts::default() }
    }

    fn evidence(kept: Duration, age: Option<Duration>) -> Evidence {
        let ago = |age: Duration| Timestamp::from_millis(NOW.as_millis() - i64::try_from(age.as_millis()).unwrap());
        Evidence { name: "topic t".into(), kept, earliest: age.map(ago) }
    }

    #[test]
    fn the_boundary_is_the_age_of_what_can_really_be_read_and_no_less_than_what_is_set() {
        let timing = Timing::default();
        let bound = |evidence: &[Evidence]| boundary(evidence, NOW, &timing).unwrap();
        assert_eq!(bound(&[evidence(5 * HOUR, Some(9 * HOUR))]), 9 * HOUR + timing.slack());
        assert_eq!(bound(&[evidence(5 * HOUR, Some(HOUR)), evidence(7 * HOUR, None)]), 7 * HOUR + timing.slack());
        let ahead = Evidence { earliest: Some(NOW.after(25 * HOUR)), ..evidence(HOUR, None) };
        assert!(boundary(&[ahead], NOW, &timing).unwrap_err().detail.contains("one of the two clocks is wrong"));
        assert!(boundary(&[], NOW, &timing).is_err());
    }

    #[test]
    fn the_longest_of_all_counts_and_what_is_not_known_is_no_bound() {
        let timing = Timing::default();
        let longest = readable_for(&[("a", &facts(3_600_000)), ("b", &facts(3 * 3_600_000))], &timing).unwrap();
        assert_eq!(longest, 4 * HOUR + 24 * HOUR);
        let compacted = TopicFacts { cleanup: Some(Cleanup::Compact), ..facts(1) };
        for bad in [facts(-1), TopicFacts { retention_ms: None, ..facts(1) }, compacted] {
            let fault = readable_for(&[("a", &facts(1)), ("bad", &bad)], &timing).unwrap_err();
            assert!(fault.detail.contains("topic bad"));
        }
    }
}
