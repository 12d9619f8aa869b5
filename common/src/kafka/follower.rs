//! Follows a topic: reads what has been committed to it since the last look. Belongs to no group and commits nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use rdkafka::{
    Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    error::KafkaError,
};

use super::{
    KafkaSettings, StoredRecord,
    fault::fault_of,
    reader::{stored, without_group},
};
use crate::{Fault, clock::Stopwatch};

/// How long a question to a broker may take.
const ANSWER: Duration = Duration::from_secs(15);

/// How long an open transaction of another is waited for: longer than the broker lets one stand.
const LONGEST_TRANSACTION: Duration = Duration::from_secs(75);

/// Reads a topic further and further.
pub struct Follower {
    topic: String,
    /// Sees what is committed.
    reader: BaseConsumer,
    /// Sees what is there, committed or not.
    lookout: BaseConsumer,
    /// The next offset of each partition.
    next: BTreeMap<i32, i64>,
}

impl Follower {
    /// Makes a follower that begins with the first record that is there.
    ///
    /// # Errors
    /// The settings are wrong.
    pub fn open(settings: &KafkaSettings, topic: &str, partitions: usize) -> Result<Self, Fault> {
        settings.validate()?;
        let client = |isolation: &str| {
            let mut config = without_group(settings);
            config.set("isolation.level", isolation);
            config.create().map_err(|error| fault_of(&error))
        };
        let next = (0..i32::try_from(partitions).unwrap_or(i32::MAX)).map(|partition| (partition, 0)).collect();
        Ok(Self { topic: topic.to_owned(), reader: client("read_committed")?, lookout: client("read_uncommitted")?, next })
    }

    /// Gives each committed record that has come since the last time to `visit`. What stands in the topic when this is
    /// called is seen when it returns: transactions that are open then are waited for. Returns the first offset that each
    /// partition still has. Blocks.
    ///
    /// # Errors
    /// The brokers do not answer, or a transaction stays open. What was seen is not given again.
    pub fn catch_up(&mut self, mut visit: impl FnMut(StoredRecord)) -> Result<BTreeMap<i32, i64>, Fault> {
        let bounds = self.bounds(&self.lookout)?;
        let ends: BTreeMap<i32, i64> = bounds.iter().map(|(partition, (_, end))| (*partition, *end)).collect();
        let starts = bounds.into_iter().map(|(partition, (start, _))| (partition, start)).collect();
        let open: BTreeSet<i32> =
            ends.iter().filter(|(partition, end)| self.next[*partition] < **end).map(|(partition, _)| *partition).collect();
        if open.is_empty() {
            return Ok(starts);
        }
        self.wait_for_transactions(&ends)?;
        let read = self.read(open, &mut visit);
        // Or it would go on fetching until the next time.
        let rest = self.reader.unassign().map_err(|error| fault_of(&error));
        read.and(rest)?;
        // Past the marks of transactions, which are no records.
        for (partition, end) in ends {
            let next = self.next.entry(partition).or_insert(0);
            *next = (*next).max(end);
        }
        Ok(starts)
    }

    /// Returns where each partition begins and ends, as a client sees it.
    fn bounds(&self, client: &BaseConsumer) -> Result<BTreeMap<i32, (i64, i64)>, Fault> {
        let bounds = |partition: &i32| {
            let bounds = client.fetch_watermarks(&self.topic, *partition, ANSWER).map_err(|error| fault_of(&error))?;
            Ok((*partition, bounds))
        };
        self.next.keys().map(bounds).collect()
    }

    fn wait_for_transactions(&self, ends: &BTreeMap<i32, i64>) -> Result<(), Fault> {
        let waiting = Stopwatch::start();
        loop {
            let stable = self.bounds(&self.reader)?;
            if ends.iter().all(|(partition, end)| stable[partition].1 >= *end) {
                return Ok(());
            }
            if waiting.elapsed() > LONGEST_TRANSACTION {
                return Err(Fault::unavailable(format!("a transaction on topic {} stays open", self.topic)));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn read(&mut self, mut open: BTreeSet<i32>, visit: &mut impl FnMut(StoredRecord)) -> Result<(), Fault> {
        let mut list = TopicPartitionList::new();
        for partition in &open {
            let from = Offset::Offset(self.next[partition]);
            list.add_partition_offset(&self.topic, *partition, from).map_err(|error| fault_of(&error))?;
        }
        self.reader.assign(&list).map_err(|error| fault_of(&error))?;
        while !open.is_empty() {
            match self.reader.poll(ANSWER) {
                None => return Err(Fault::unavailable(format!("no record of topic {} for {} s", self.topic, ANSWER.as_secs()))),
                Some(Err(KafkaError::PartitionEOF(partition))) => drop(open.remove(&partition)),
                Some(Err(error)) => return Err(fault_of(&error)),
                Some(Ok(message)) => {
                    self.next.insert(message.partition(), message.offset() + 1);
                    visit(stored(&message));
                }
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower").field("topic", &self.topic).field("next", &self.next).finish_non_exhaustive()
    }
}
