//! Where a group that reads a topic again begins.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use rdkafka::{
    Offset, TopicPartitionList,
    consumer::{BaseConsumer, CommitMode, Consumer},
};

use super::{KafkaSettings, fault::fault_of, reader::readable_partitions};
use crate::{Fault, Timestamp};

/// How long a question to a broker may take.
const ANSWER: Duration = Duration::from_secs(15);

/// Where in a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayFrom {
    /// At the first record that is there.
    Start,
    /// At the first record of each partition that is of this time or later.
    Time(Timestamp),
    /// At these offsets; partitions that are not named are not read.
    Offsets(BTreeMap<i32, i64>),
}

impl ReplayFrom {
    /// Reads offsets as Kafka's `kafka-consumer-groups --reset-offsets --export` writes them: one `topic,partition,offset` a
    /// line, or `partition,offset`. Empty lines and those that begin with `#` are passed over.
    ///
    /// # Errors
    /// [`crate::FaultKind::Configuration`] with the line that is none.
    pub fn read_offsets(text: &str, topic: &str) -> Result<Self, Fault> {
        let mut offsets = BTreeMap::new();
        for (number, line) in (1..).zip(text.lines().map(str::trim)) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |what: &str| Fault::configuration(format!("line {number} of the offsets, {line:?}: {what}"));
            let words: Vec<&str> = line.split(',').map(|word| word.trim().trim_matches('"')).collect();
            let (of, partition, offset) = match words[..] {
                [of, partition, offset] => (of, partition, offset),
                [partition, offset] => (topic, partition, offset),
                _ => return Err(wrong("expected topic,partition,offset or partition,offset")),
            };
            if of != topic {
                return Err(wrong(&format!("it is of another topic than {topic}")));
            }
            let (Ok(partition), Ok(offset)) = (partition.parse(), offset.parse()) else {
                return Err(wrong("partition and offset are numbers"));
            };
            if offsets.insert(partition, offset).is_some() {
                return Err(wrong("the partition was given before"));
            }
        }
        if offsets.is_empty() {
            return Err(Fault::configuration("no offsets: expected one topic,partition,offset a line"));
        }
        Ok(Self::Offsets(offsets))
    }
}

/// Commits, for a group that nobody has joined yet, where it is to begin. Returns the offset of each partition. Blocks.
///
/// # Errors
/// [`crate::FaultKind::Configuration`]: an offset that the topic no longer has, or has not yet, or a partition that it has not.
pub fn begin_at(settings: &KafkaSettings, topic: &str, group: &str, from: &ReplayFrom) -> Result<BTreeMap<i32, i64>, Fault> {
    let partitions = readable_partitions(settings, topic)?;
    let all: BTreeSet<i32> = (0..i32::try_from(partitions).unwrap_or(i32::MAX)).collect();
    let mut config = settings.client();
    config.set("group.id", group).set("enable.auto.commit", "false");
    let client: BaseConsumer = settings.finish(config).create().map_err(|error| fault_of(&error))?;
    let mut bounds = BTreeMap::new();
    for partition in &all {
        let found = client.fetch_watermarks(topic, *partition, ANSWER).map_err(|error| fault_of(&error))?;
        bounds.insert(*partition, found);
    }
    let begin = match from {
        ReplayFrom::Start => bounds.iter().map(|(partition, (start, _))| (*partition, *start)).collect(),
        ReplayFrom::Time(time) => at_time(&client, topic, *time, &bounds)?,
        ReplayFrom::Offsets(offsets) => at_offsets(topic, offsets, &bounds)?,
    };
    let mut list = TopicPartitionList::new();
    for (partition, offset) in &begin {
        list.add_partition_offset(topic, *partition, Offset::Offset(*offset)).map_err(|error| fault_of(&error))?;
    }
    client.commit(&list, CommitMode::Sync).map_err(|error| fault_of(&error))?;
    Ok(begin)
}

type Watermarks = BTreeMap<i32, (i64, i64)>;

fn at_time(client: &BaseConsumer, topic: &str, time: Timestamp, bounds: &Watermarks) -> Result<BTreeMap<i32, i64>, Fault> {
    let mut list = TopicPartitionList::new();
    for partition in bounds.keys() {
        list.add_partition_offset(topic, *partition, Offset::Offset(time.as_millis())).map_err(|error| fault_of(&error))?;
    }
    let found = client.offsets_for_times(list, ANSWER).map_err(|error| fault_of(&error))?;
    let begin = |(partition, (_, end)): (&i32, &(i64, i64))| {
        let offset = match found.find_partition(topic, *partition).map(|found| found.offset()) {
            Some(Offset::Offset(offset)) => offset,
            // Nothing is so young.
            _ => *end,
        };
        (*partition, offset)
    };
    Ok(bounds.iter().map(begin).collect())
}

fn at_offsets(topic: &str, offsets: &BTreeMap<i32, i64>, bounds: &Watermarks) -> Result<BTreeMap<i32, i64>, Fault> {
    for (partition, offset) in offsets {
        let Some((start, end)) = bounds.get(partition) else {
            let count = bounds.len();
            return Err(Fault::configuration(format!("topic {topic} has no partition {partition}: it has {count}, from 0")));
        };
        if !(start..=end).contains(&offset) {
            let what = format!("partition {partition} of topic {topic} has offsets {start} to {end}");
            return Err(Fault::configuration(format!(
                "{what}, and {offset} is none of them: what is asked for is gone, or never was"
            )));
        }
    }
    // At its end, a partition that is not named gives nothing.
    Ok(bounds.iter().map(|(partition, (_, end))| (*partition, offsets.get(partition).copied().unwrap_or(*end))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_read_as_kafka_exports_them() {
        let read = |text: &str| ReplayFrom::read_offsets(text, "t");
        let wanted = ReplayFrom::Offsets([(0, 5), (2, 7)].into());
        assert_eq!(read("t,0,5\n\n# by hand\n2, 7\n").unwrap(), wanted);
        assert_eq!(read("\"t\",0,5\n\"t\",2,7").unwrap(), wanted);
        for (text, words) in
            [("other,0,5", "another topic"), ("0,5\n0,6", "line 2"), ("0", "expected"), ("a,b", "numbers"), ("", "no offsets")]
        {
            assert!(read(text).unwrap_err().detail.contains(words), "{text}");
        }
    }
}
