//! Reads a topic from one end to the other without a group, for people and for checks. Commits nothing.

use std::{collections::BTreeSet, ops::ControlFlow, time::Duration};

use bytes::Bytes;
use rdkafka::{
    ClientConfig, Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    error::KafkaError,
    message::BorrowedMessage,
};

use super::{KafkaSettings, fault::fault_of, headers::owned_headers};
use crate::{Fault, Timestamp, stream::Header};

/// A record as it lies in the topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
    /// The broker's time.
    pub timestamp: Option<Timestamp>,
    /// The key.
    pub key: Option<Bytes>,
    /// The value.
    pub value: Option<Bytes>,
    /// The headers, in order.
    pub headers: Vec<Header>,
}

/// Gives each record of a topic, from the beginning of each partition to its end as of now, to `visit`; stops early
/// when it breaks. Order holds within a partition. Blocks; call it off the async threads.
///
/// # Errors
/// The topic does not exist or the brokers do not answer.
pub fn read_topic(
    settings: &KafkaSettings,
    topic: &str,
    mut visit: impl FnMut(StoredRecord) -> ControlFlow<()>,
) -> Result<(), Fault> {
    settings.validate()?;
    let facts =
        super::topic_facts(settings, topic)?.ok_or_else(|| Fault::configuration(format!("topic {topic} does not exist")))?;
    let consumer: BaseConsumer = without_group(settings).create().map_err(|error| fault_of(&error))?;
    let mut open = assign_all(&consumer, topic, facts.partitions)?;
    while !open.is_empty() {
        match consumer.poll(Duration::from_secs(15)) {
            None => {
                return Err(Fault::unavailable(format!("no record of topic {topic} for 15 seconds, and its end is not reached")));
            }
            // Told again each time that the end is reached anew.
            Some(Err(KafkaError::PartitionEOF(partition))) => drop(open.remove(&partition)),
            Some(Err(error)) => return Err(fault_of(&error)),
            Some(Ok(message)) if !open.contains(&message.partition()) => {}
            Some(Ok(message)) => {
                if visit(stored(&message)).is_break() {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Returns the configuration of a reader that belongs to no group. A client needs a group's name to assign by hand; nothing
/// is ever committed under it.
pub(super) fn without_group(settings: &KafkaSettings) -> ClientConfig {
    let mut config = settings.reader();
    config.set("group.id", "geoclaim-reader").set("enable.auto.commit", "false").set("enable.partition.eof", "true");
    config
}

/// Copies a record out of the receive buffer.
pub(super) fn stored(message: &BorrowedMessage<'_>) -> StoredRecord {
    StoredRecord {
        partition: message.partition(),
        offset: message.offset(),
        timestamp: message.timestamp().to_millis().map(Timestamp::from_millis),
        key: message.key().map(Bytes::copy_from_slice),
        value: message.payload().map(Bytes::copy_from_slice),
        headers: owned_headers(message),
    }
}

fn assign_all(consumer: &BaseConsumer, topic: &str, partitions: usize) -> Result<BTreeSet<i32>, Fault> {
    let mut list = TopicPartitionList::new();
    let partitions: BTreeSet<i32> = (0..i32::try_from(partitions).unwrap_or(i32::MAX)).collect();
    for partition in &partitions {
        list.add_partition_offset(topic, *partition, Offset::Beginning).map_err(|error| fault_of(&error))?;
    }
    consumer.assign(&list).map_err(|error| fault_of(&error))?;
    Ok(partitions)
}
