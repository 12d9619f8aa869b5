//! The headers of a letter, written and read.

use bytes::Bytes;
use geoclaim_common::{
    Envelope, Fault, Timestamp,
    kafka::StoredRecord,
    stream::{Header, OutgoingRecord, Position},
};

/// What the names of geoclaim's headers begin with.
pub const HEADER_PREFIX: &str = "geoclaim.";

/// What the names of Kafka Connect's headers begin with.
const CONNECT_PREFIX: &str = "__connect.errors.";

/// How often a record has been redriven. On the record itself, and so on the letter that it may become again.
pub const REDRIVES: &str = "geoclaim.redrives";

/// Where a redriven record stood at first: its partition, offset and the broker's time in ms, separated by spaces.
const REDRIVEN_FROM: &str = "geoclaim.redriven_from";

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

/// A fault that ended the work on a record, and how often it was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The fault.
    pub fault: Fault,
    /// How many attempts failed, at least one.
    pub attempts: u32,
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Self {
        Self { fault, attempts: 1 }
    }
}

/// Makes the letter of a record.
pub fn letter(mut record: OutgoingRecord, origin: &Origin, failed: &Failed) -> OutgoingRecord {
    let envelope = record.value.as_deref().and_then(|value| Envelope::decode(value).ok());
    let fault = &failed.fault;
    let (partition, offset) = (origin.partition.to_string(), origin.offset.to_string());
    let mut add = |prefix: &str, name: &str, value: &str| {
        record.headers.push((format!("{prefix}{name}"), Some(Bytes::copy_from_slice(value.as_bytes()))));
    };
    let mut ours = |name: &str, value: &str| add(HEADER_PREFIX, name, value);
    ours("reason", fault.kind.reason());
    ours("class", fault.kind.class());
    ours("detail", &fault.one_line());
    ours("attempts", &failed.attempts.to_string());
    if let Some(envelope) = &envelope {
        ours("feature_id", &envelope.feature_id);
        ours("event_id", &envelope.event_id);
    }
    ours("topic", &origin.topic);
    ours("partition", &partition);
    ours("offset", &offset);
    if let Some(timestamp) = origin.timestamp_ms {
        ours("timestamp", &timestamp.to_string());
    }
    ours("version", env!("CARGO_PKG_VERSION"));
    for (name, value) in [
        ("topic", &*origin.topic),
        ("partition", &partition),
        ("offset", &offset),
        ("connector.name", "geoclaim"),
        ("task.id", "0"),
        ("stage", "TASK_PUT"),
        ("class.name", "geoclaim_consumer"),
        ("exception.class.name", fault.kind.reason()),
        ("exception.message", &fault.one_line()),
        ("exception.stacktrace", ""),
    ] {
        add(CONNECT_PREFIX, name, value);
    }
    record
}

/// A letter as it lies in its topic.
#[derive(Clone, Debug)]
pub struct Letter {
    /// Why it was set aside.
    pub reason: String,
    /// The topic that it came from.
    pub topic: String,
    /// When it was set aside, by the broker's time.
    pub set_aside: Option<Timestamp>,
    /// Where it stood at first, however often it was redriven since.
    pub stood: Position,
    /// How often it has been redriven.
    pub redrives: u32,
    record: StoredRecord,
}

impl Letter {
    /// Reads a letter; `None` for a record that is none of a consumer of geoclaim.
    pub fn read(record: StoredRecord) -> Option<Self> {
        let text = |name: &str| text_of(&record.headers, name);
        let number = |name: &str| text(&format!("{HEADER_PREFIX}{name}")).and_then(|text| text.parse::<i64>().ok());
        let timestamp = number("timestamp").map(Timestamp::from_millis);
        let partition = number("partition").and_then(|number| i32::try_from(number).ok())?;
        let stood = Position { partition, offset: number("offset")?, timestamp };
        Some(Self {
            reason: text(&format!("{HEADER_PREFIX}reason"))?.to_owned(),
            topic: text(&format!("{HEADER_PREFIX}topic"))?.to_owned(),
            set_aside: record.timestamp,
            stood: redriven_from(&record.headers).unwrap_or(stood),
            redrives: text(REDRIVES).and_then(|text| text.parse().ok()).unwrap_or(0),
            record,
        })
    }

    /// Returns the record that was set aside.
    pub fn record(&self) -> &StoredRecord {
        &self.record
    }
}

/// Makes of a letter the record that is sent again: key, value and headers as they came, and two headers that say how
/// often it was sent again and where it stood at first.
pub fn redriven(letter: &Letter) -> OutgoingRecord {
    let StoredRecord { key, value, headers, .. } = letter.record.clone();
    let is_ours = |(name, _): &Header| name.starts_with(HEADER_PREFIX) || name.starts_with(CONNECT_PREFIX);
    let mut headers: Vec<Header> = headers.into_iter().filter(|header| !is_ours(header)).collect();
    let Position { partition, offset, timestamp } = letter.stood;
    let time = timestamp.map_or(String::new(), |time| format!(" {}", time.as_millis()));
    headers.push((REDRIVES.to_owned(), Some((letter.redrives + 1).to_string().into())));
    headers.push((REDRIVEN_FROM.to_owned(), Some(format!("{partition} {offset}{time}").into())));
    OutgoingRecord { key, value, headers }
}

/// Returns where a redriven record stood at first; `None` for one that is where it came.
pub fn redriven_from(headers: &[Header]) -> Option<Position> {
    let mut words = text_of(headers, REDRIVEN_FROM)?.split(' ');
    let (partition, offset) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let timestamp = words.next().and_then(|word| word.parse().ok()).map(Timestamp::from_millis);
    Some(Position { partition, offset, timestamp })
}

/// Returns the last header of a name, as text.
fn text_of<'a>(headers: &'a [Header], name: &str) -> Option<&'a str> {
    let found = headers.iter().rev().find(|(found, _)| found == name)?;
    std::str::from_utf8(found.1.as_deref()?).ok()
}

#[cfg(test)]
mod tests {
    use geoclaim_common::FaultKind;

    use super::*;

    fn sample(value: &'static str, origin: &Origin) -> OutgoingRecord {
        let record = OutgoingRecord {
            key: Some("f".into()),
            value: Some(value.into()),
            headers: vec![("x".into(), None), ("traceparent".into(), Some("00".into()))],
        };
        letter(record, origin, &Failed { fault: Fault::new(FaultKind::Corrupt, "expected a\nfound b"), attempts: 2 })
    }

    fn stored(OutgoingRecord { key, value, headers }: OutgoingRecord) -> StoredRecord {
        let timestamp = Some(Timestamp::from_millis(99));
        StoredRecord { partition: 3, offset: 0, timestamp, key, value, headers }
    }

    const VALUE: &str = r#"{"feature_id":"f","event_id":"e","geometry":null}"#;

    #[test]
    fn a_letter_keeps_the_record_and_says_why() {
        let origin = Origin { topic: "t".into(), partition: 3, offset: 7, timestamp_ms: Some(9) };
        let letter = sample(VALUE, &origin);
        assert_eq!((letter.key.as_deref(), letter.value.as_deref()), (Some(&b"f"[..]), Some(VALUE.as_bytes())));
        assert_eq!(letter.headers[0], ("x".into(), None));
        let said = |name: &str| text_of(&letter.headers, name).unwrap();
        for (name, value) in [
            ("geoclaim.reason", "body_corrupt"),
            ("geoclaim.class", "damaged"),
            ("geoclaim.detail", "expected a\\nfound b"),
            ("geoclaim.attempts", "2"),
            ("geoclaim.topic", "t"),
            ("geoclaim.partition", "3"),
            ("geoclaim.offset", "7"),
            ("geoclaim.timestamp", "9"),
            ("__connect.errors.topic", "t"),
            ("__connect.errors.offset", "7"),
            ("__connect.errors.exception.class.name", "body_corrupt"),
            ("__connect.errors.exception.message", "expected a\\nfound b"),
        ] {
            assert_eq!(said(name), value, "{name}");
        }
    }

    #[test]
    fn a_redriven_record_is_the_original_and_says_where_it_stood_however_often() {
        let origin = Origin { topic: "t".into(), partition: 3, offset: 7, timestamp_ms: Some(9) };
        let first = Letter::read(stored(sample(VALUE, &origin))).unwrap();
        assert_eq!((first.redrives, &*first.reason, &*first.topic), (0, "body_corrupt", "t"));
        let again = redriven(&first);
        assert_eq!(again.value.as_deref(), Some(VALUE.as_bytes()));
        assert_eq!(again.headers.len(), 4, "{:?}", again.headers);
        let stood = Position { partition: 3, offset: 7, timestamp: Some(Timestamp::from_millis(9)) };
        assert_eq!(redriven_from(&again.headers), Some(stood));
        let later = Origin { offset: 1_000, ..origin };
        let failed = Failed::from(Fault::malformed("still"));
        let second = Letter::read(stored(letter(again, &later, &failed))).unwrap();
        assert_eq!((second.redrives, second.stood), (1, stood));
        assert!(Letter::read(stored(OutgoingRecord::default())).is_none());
    }
}
