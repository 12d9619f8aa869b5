//! How long something can still be delivered again, which is how long what stands against it must be kept.

mod announced;
mod timing;

use std::time::Duration;

pub use announced::Announcement;
pub use timing::Timing;

use crate::{Fault, kafka::TopicFacts};

/// Room for clocks that differ, and for a broker that deletes late.
pub const MARGIN: Duration = Duration::from_secs(24 * 3_600);

/// Returns how long a record of any of these topics can be read, by their settings, with a margin. Kafka deletes whole
/// segments, so a record may outlive the topic's retention by the time that a segment spans.
///
/// # Errors
/// [`crate::FaultKind::Configuration`] with the topic that keeps records for ever, or does not say how long.
pub fn longest_path(topics: &[(&str, &TopicFacts)]) -> Result<Duration, Fault> {
    let mut longest = Duration::ZERO;
    for (name, facts) in topics {
        let unknown = |what: &str| Fault::configuration(format!("topic {name} {what}"));
        if facts.is_compacted {
            return Err(unknown("is compacted, and so keeps the last record of each key for ever"));
        }
        let milliseconds = match (facts.retention_ms, facts.segment_ms) {
            (Some(retention), _) if retention < 0 => return Err(unknown("keeps records for ever (retention.ms=-1)")),
            (Some(retention), Some(segment)) => retention.unsigned_abs().saturating_add(segment.unsigned_abs()),
            _ => return Err(unknown("does not say how long it keeps records")),
        };
        longest = longest.max(Duration::from_millis(milliseconds));
    }
    Ok(longest.saturating_add(MARGIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_of_all_counts_and_what_is_not_known_is_no_bound() {
        let hour = 3_600_000;
        let facts = |retention_ms, segment_ms| TopicFacts { retention_ms, segment_ms, ..TopicFacts::default() };
        let (short, long) = (facts(Some(hour), Some(hour)), facts(Some(3 * hour), Some(2 * hour)));
        let longest = longest_path(&[("a", &short), ("b", &long)]).unwrap();
        assert_eq!(longest, Duration::from_secs(5 * 3_600) + MARGIN);
        for bad in [facts(Some(-1), Some(hour)), facts(None, Some(hour)), TopicFacts { is_compacted: true, ..short }] {
            assert!(longest_path(&[("a", &short), ("bad", &bad)]).unwrap_err().detail.contains("topic bad"));
        }
    }
}
