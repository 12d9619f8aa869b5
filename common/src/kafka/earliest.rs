//! Where the partitions of a topic begin and end, and how old their first records are.

use std::{collections::BTreeMap, time::Duration};

use rdkafka::{
    Message,
    consumer::{BaseConsumer, Consumer},
    error::KafkaError,
};

use super::{
    KafkaSettings,
    fault::fault_of,
    reader::{assign_all, readable_partitions, stuck, without_group},
};
use crate::{Fault, Timestamp};

/// How long a question to a broker may take.
const ANSWER: Duration = Duration::from_secs(15);

/// What a partition has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The first offset that is there.
    pub start: i64,
    /// The offset that the next record gets.
    pub end: i64,
    /// The time of the first record that can really be read; `None` when there is none, or it has no time.
    pub earliest: Option<Timestamp>,
    /// Whether there is a record.
    pub has_records: bool,
}

/// Returns the bounds of each partition of a topic. Reads the first record of each. Blocks.
///
/// # Errors
/// The topic does not exist, the brokers do not answer, or a partition cannot be read.
pub fn bounds(settings: &KafkaSettings, topic: &str) -> Result<BTreeMap<i32, Bounds>, Fault> {
    let partitions = readable_partitions(settings, topic)?;
    let consumer: BaseConsumer =
        without_group(settings).set("isolation.level", "read_uncommitted").create().map_err(|error| fault_of(&error))?;
    let mut open = assign_all(&consumer, topic, partitions)?;
    let mut found = BTreeMap::new();
    for partition in &open {
        let (start, end) = consumer.fetch_watermarks(topic, *partition, ANSWER).map_err(|error| fault_of(&error))?;
        found.insert(*partition, Bounds { start, end, ..Bounds::default() });
    }
    while !open.is_empty() {
        match consumer.poll(ANSWER) {
            None => return Err(stuck(topic, &open)),
            Some(Err(KafkaError::PartitionEOF(partition))) => drop(open.remove(&partition)),
            Some(Err(error)) => return Err(fault_of(&error)),
            Some(Ok(message)) => {
                if open.remove(&message.partition())
                    && let Some(bounds) = found.get_mut(&message.partition())
                {
                    bounds.earliest = message.timestamp().to_millis().map(Timestamp::from_millis);
                    bounds.has_records = true;
                }
            }
        }
    }
    Ok(found)
}
