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

/// How long records are waited for.
const ANSWER: Duration = Duration::from_secs(15);

/// Gives each record of a topic, from the beginning of each partition to its end as of now, to `visit`; stops early
/// when it breaks. Order holds within a partition. Records of transactions that are not committed are left out. Blocks; call
/// it off the async threads.
///
/// # Errors
/// The topic does not exist, the brokers do not answer, or a partition cannot be read.
pub fn read_topic(
    settings: &KafkaSettings,
    topic: &str,
    visit: impl FnMut(StoredRecord) -> ControlFlow<()>,
) -> Result<(), Fault> {
    read(settings, topic, "read_committed", visit)
}

/// As [`read_topic`], records of transactions included, whatever becomes of these.
///
/// # Errors
/// As [`read_topic`], and when partitions were added meanwhile.
pub fn read_everything(
    settings: &KafkaSettings,
    topic: &str,
    visit: impl FnMut(StoredRecord) -> ControlFlow<()>,
) -> Result<(), Fault> {
    read(settings, topic, "read_uncommitted", visit)
}

fn read(
    settings: &KafkaSettings,
    topic: &str,
    isolation: &str,
    mut visit: impl FnMut(StoredRecord) -> ControlFlow<()>,
) -> Result<(), Fault> {
    let partitions = readable_partitions(settings, topic)?;
    let consumer: BaseConsumer =
        without_group(settings).set("isolation.level", isolation).create().map_err(|error| fault_of(&error))?;
    let mut open = assign_all(&consumer, topic, partitions)?;
    while !open.is_empty() {
        match consumer.poll(ANSWER) {
            None => return Err(stuck(topic, &open)),
            // Told again each time that the end is reached anew.
            Some(Err(KafkaError::PartitionEOF(partition))) => drop(open.remove(&partition)),
            Some(Err(error)) => return Err(fault_of(&error)),
            Some(Ok(message)) if !open.contains(&message.partition()) => {}
            Some(Ok(message)) => {
                if visit(stored(&message)).is_break() {
                    return Ok(());
                }
            }
        }
    }
    if readable_partitions(settings, topic)? != partitions {
        return Err(Fault::unavailable(format!("topic {topic} was given partitions while it was read; read it again")));
    }
    Ok(())
}

/// Returns how many partitions a topic has, all of which can be read.
pub(super) fn readable_partitions(settings: &KafkaSettings, topic: &str) -> Result<usize, Fault> {
    settings.validate()?;
    let facts =
        super::topic_facts(settings, topic)?.ok_or_else(|| Fault::configuration(format!("topic {topic} does not exist")))?;
    match facts.leaderless {
        Some(partition) => {
            Err(Fault::unavailable(format!("partition {partition} of topic {topic} cannot be read: no broker leads it")))
        }
        None => Ok(facts.partitions),
    }
}

/// Says which partitions gave nothing.
pub(super) fn stuck(topic: &str, open: &BTreeSet<i32>) -> Fault {
    let (seconds, open) = (ANSWER.as_secs(), open.iter().map(i32::to_string).collect::<Vec<_>>().join(", "));
    Fault::unavailable(format!("partition {open} of topic {topic} cannot be read: no record for {seconds} s, and no end"))
}

/// Returns the configuration of a reader that belongs to no group. A client needs a group's name to assign by hand; nothing
/// is ever committed under it.
pub(super) fn without_group(settings: &KafkaSettings) -> ClientConfig {
    let mut config = settings.reader();
    config.set("group.id", "geoclaim-reader").set("enable.auto.commit", "false").set("enable.partition.eof", "true");
    // What was deleted while it was read is gone; the rest is not to be passed over.
    config.set("auto.offset.reset", "earliest");
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

pub(super) fn assign_all(consumer: &BaseConsumer, topic: &str, partitions: usize) -> Result<BTreeSet<i32>, Fault> {
    let mut list = TopicPartitionList::new();
    let partitions: BTreeSet<i32> = (0..i32::try_from(partitions).unwrap_or(i32::MAX)).collect();
    for partition in &partitions {
        list.add_partition_offset(topic, *partition, Offset::Beginning).map_err(|error| fault_of(&error))?;
    }
    consumer.assign(&list).map_err(|error| fault_of(&error))?;
    Ok(partitions)
}
