//! Setting an envelope aside with its reason.
//!
//! A dead letter is the record as it came (key, value and headers untouched) with headers that say why and from where.

use std::sync::Arc;

use bytes::Bytes;
use geoclaim_common::{
    Fault,
    stream::{EnvelopeSink, Header, OutgoingRecord},
};

/// What the names of the added headers begin with.
pub const HEADER_PREFIX: &str = "geoclaim.";

/// Where a letter came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
    /// The broker's time in milliseconds, where known.
    pub timestamp_ms: Option<i64>,
}

/// Takes dead letters.
#[derive(Clone, Debug)]
pub struct DeadLetters {
    sink: Arc<dyn EnvelopeSink>,
}

impl DeadLetters {
    /// Writes letters to `sink`.
    pub fn new(sink: Arc<dyn EnvelopeSink>) -> Self {
        Self { sink }
    }

    /// Writes a letter and waits until it is durable. Only then may the offset advance.
    ///
    /// # Errors
    /// The letter may not have been written: the consumer must stop.
    pub async fn set_aside(&self, record: OutgoingRecord, origin: &Origin, fault: &Fault) -> Result<(), Fault> {
        let letter = letter(record, origin, fault);
        self.sink.send(letter).await.acknowledged().await.map_err(|error| {
            Fault::new(error.kind, format!("a dead letter could not be written, so the consumer stops: {}", error.detail))
        })
    }
}

/// Makes the letter of a record.
pub fn letter(mut record: OutgoingRecord, origin: &Origin, fault: &Fault) -> OutgoingRecord {
    let mut add = |name: &str, value: String| -> () {
        let header: Header = (format!("{HEADER_PREFIX}{name}"), Some(Bytes::from(value)));
        record.headers.push(header);
    };
    add("reason", fault.kind.reason().to_owned());
    add("detail", fault.one_line());
    add("topic", origin.topic.clone());
    add("partition", origin.partition.to_string());
    add("offset", origin.offset.to_string());
    if let Some(timestamp) = origin.timestamp_ms {
        add("timestamp", timestamp.to_string());
    }
    add("version", env!("CARGO_PKG_VERSION").to_owned());
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use geoclaim_common::{FaultKind, stream::memory::MemorySink};

    #[tokio::test]
    async fn a_letter_keeps_the_record_and_says_why() {
        let sink = MemorySink::default();
        let record =
            OutgoingRecord { key: None, value: Some(Bytes::from_static(b"\xff\x00")), headers: vec![("x".into(), None)] };
        let origin = Origin { topic: "t".into(), partition: 3, offset: 7, timestamp_ms: Some(9) };
        let fault = Fault::new(FaultKind::Corrupt, "expected a\nfound b");
        DeadLetters::new(Arc::new(sink.clone())).set_aside(record.clone(), &origin, &fault).await.unwrap();
        let letter = &sink.records()[0];
        assert_eq!((&letter.key, &letter.value, &letter.headers[0]), (&record.key, &record.value, &record.headers[0]));
        let said: Vec<String> = letter.headers[1..]
            .iter()
            .map(|(name, value)| format!("{name}={}", String::from_utf8_lossy(value.as_ref().unwrap())))
            .collect();
        assert_eq!(
            said[..6],
            [
                "geoclaim.reason=body_corrupt",
                "geoclaim.detail=expected a\\nfound b",
                "geoclaim.topic=t",
                "geoclaim.partition=3",
                "geoclaim.offset=7",
                "geoclaim.timestamp=9"
            ]
        );
    }
}
