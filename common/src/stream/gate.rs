//! What becomes of a record before it is copied out of the receive buffer.

use crate::Timestamp;

/// A record in the receive buffer.
#[derive(Clone, Copy, Debug)]
pub struct RecordView<'a> {
    /// The key.
    pub key: Option<&'a [u8]>,
    /// The value; `None` for a tombstone.
    pub value: Option<&'a [u8]>,
    /// Where it stands in its topic.
    pub position: Position,
}

/// Where and when a record stands in its topic.
///
/// Two records of one partition are in the order of their offsets, unless the topic was made anew in between: then
/// the later record has the lower offset and a later time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
    /// The broker's time of the record.
    pub timestamp: Option<Timestamp>,
}

impl Position {
    /// Tells whether this record surely stands before another: in the same partition, at a lower offset, and not at
    /// a later time.
    pub fn is_before(&self, other: &Self) -> bool {
        self.partition == other.partition && self.offset < other.offset && self.timestamp <= other.timestamp
    }
}

/// A verdict on a record in the receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Triage {
    /// It goes on.
    Admit,
    /// It is done: its offset advances and nothing else happens.
    Discard,
}

/// Judges records in the receive buffer, each once and those of a partition in order, on the thread that polls.
pub trait Gate: Send + Sync {
    /// Judges one record.
    fn judge(&self, record: &RecordView<'_>) -> Triage;

    /// Judges records that came together, in order; adds a verdict for each.
    fn judge_all(&self, records: &[RecordView<'_>], verdicts: &mut Vec<Triage>) {
        verdicts.extend(records.iter().map(|record| self.judge(record)));
    }

    /// Hears that partitions have been assigned, before the first of their records. Their last owner has finished.
    fn assigned(&self) {}
}

/// A gate that lets everything through.
#[derive(Clone, Copy, Debug, Default)]
pub struct AdmitAll;

impl Gate for AdmitAll {
    fn judge(&self, _record: &RecordView<'_>) -> Triage {
        Triage::Admit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_before_each_other_only_when_that_is_sure() {
        let at = |partition, offset, millis: Option<i64>| Position {
            partition,
            offset,
            timestamp: millis.map(Timestamp::from_millis),
        };
        assert!(at(0, 1, Some(5)).is_before(&at(0, 2, Some(5))));
        assert!(at(0, 1, None).is_before(&at(0, 2, None)));
        assert!(!at(0, 2, Some(5)).is_before(&at(0, 2, Some(5))));
        assert!(!at(1, 1, Some(5)).is_before(&at(0, 2, Some(5))), "partitions have no order among them");
        assert!(!at(0, 1, Some(9)).is_before(&at(0, 2, Some(5))), "the topic was made anew");
    }
}
