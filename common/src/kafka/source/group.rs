//! The polling loop and what a rebalance does.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rdkafka::{
    ClientContext, Offset, TopicPartitionList,
    consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance},
    error::KafkaError,
    types::RDKafkaErrorCode as Code,
};

use super::{membership::Membership, state::State};
use crate::{FaultKind, clock::Stopwatch, kafka::fault::fault_of, stream::SourceEvent, telemetry};

/// How long a poll waits when nothing comes.
const IDLE: Duration = Duration::from_millis(50);

/// How often is committed what transactions do not commit.
const COMMIT_INTERVAL: Duration = Duration::from_secs(1);

/// How many records are taken between two looks at the tickets, and how many bytes of them: they are judged together.
const BURST: usize = 1_000;
const BURST_BYTES: usize = 1 << 20;

/// The client's context. The lock is never contended: rebalance callbacks run inside a poll, on the polling thread.
pub(super) struct Group {
    state: Mutex<State>,
    membership: Membership,
}

impl Group {
    pub(super) fn new(state: State, membership: Membership) -> Self {
        Self { state: Mutex::new(state), membership }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the offsets up to which everything is done; the client commits what is stored.
    fn store_offsets(&self, consumer: &BaseConsumer<Self>) {
        if self.membership.is_transactional() {
            return self.state().settle();
        }
        let mut state = self.state();
        state.settle();
        let advanced = state.advanced();
        for (partition, last_done) in advanced {
            // Stores the offset after `last_done`. Fails only when the partition has gone meanwhile.
            if let Err(error) = consumer.store_offset(&state.topic, partition, last_done) {
                telemetry::hiccup("store an offset", &error);
            }
        }
    }

    /// Commits what is stored and waits for the answer.
    fn commit(&self, consumer: &BaseConsumer<Self>) {
        if self.membership.is_transactional() {
            return self.commit_idle(consumer);
        }
        match consumer.commit_consumer_state(CommitMode::Sync) {
            Ok(()) | Err(KafkaError::ConsumerCommit(Code::NoOffset)) => {}
            Err(error) => telemetry::offsets_not_committed(&error),
        }
    }

    /// Commits how far partitions are discarded of which nothing is out, and waits for the answer: while this thread
    /// waits, no transaction on them can begin, and none is under way. Of all others, transactions commit the progress.
    fn commit_idle(&self, consumer: &BaseConsumer<Self>) {
        let mut state = self.state();
        state.settle();
        let (idle, topic) = (state.idle(), state.topic.clone());
        drop(state);
        if idle.is_empty() {
            return;
        }
        let mut list = TopicPartitionList::new();
        for (partition, next) in &idle {
            if let Err(error) = list.add_partition_offset(&topic, *partition, Offset::Offset(*next)) {
                telemetry::hiccup("commit an offset", &error);
            }
        }
        match consumer.commit(&list, CommitMode::Sync) {
            Ok(()) => self.state().committed(&idle),
            Err(error) => telemetry::offsets_not_committed(&error),
        }
    }

    fn drain(&self, consumer: &BaseConsumer<Self>, partitions: &[i32]) {
        let deadline = Duration::from_secs(self.state().settings.drain_seconds);
        let waiting = Stopwatch::start();
        loop {
            self.store_offsets(consumer);
            let out = self.state().out_of(partitions);
            if out == 0 {
                return;
            }
            if waiting.elapsed() > deadline {
                telemetry::work_left_behind(out);
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn balance(&self, consumer: &BaseConsumer<Self>) {
        let (pause, resume) = self.state().balance();
        if !pause.is_empty()
            && let Err(error) = consumer.pause(&self.list(pause))
        {
            telemetry::hiccup("pause partitions", &error);
        }
        self.resume(consumer, resume);
    }

    fn resume(&self, consumer: &BaseConsumer<Self>, partitions: Vec<i32>) {
        if !partitions.is_empty()
            && let Err(error) = consumer.resume(&self.list(partitions))
        {
            telemetry::hiccup("resume partitions", &error);
        }
    }

    fn list(&self, partitions: Vec<i32>) -> TopicPartitionList {
        let topic = self.state().topic.clone();
        let mut list = TopicPartitionList::new();
        partitions.into_iter().for_each(|partition| drop(list.add_partition_offset(&topic, partition, Offset::Invalid)));
        list
    }
}

impl ClientContext for Group {}

impl ConsumerContext for Group {
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        match rebalance {
            Rebalance::Assign(partitions) => {
                let partitions = ids(partitions);
                telemetry::rebalanced("assigned", &partitions);
                self.membership.assigned();
                self.state().assign(&partitions);
            }
            Rebalance::Revoke(partitions) => {
                let partitions = ids(partitions);
                if !partitions.is_empty() {
                    telemetry::rebalanced("revoked", &partitions);
                    self.drain(consumer, &partitions);
                    self.commit(consumer);
                    // Or they would stand still when they come back.
                    let paused = self.state().paused_of(&partitions);
                    self.resume(consumer, paused);
                    self.state().revoke(&partitions);
                }
            }
            Rebalance::Error(error) => telemetry::hiccup("rebalance", error),
        }
    }
}

fn ids(partitions: &TopicPartitionList) -> Vec<i32> {
    partitions.elements().iter().map(|element| element.partition()).collect()
}

/// Polls until the source is stopped, has reached its end, or has failed.
pub(super) fn poll_until_ended(consumer: &BaseConsumer<Group>, stop: &AtomicBool) {
    let group: &Group = consumer.context();
    let until_end = group.state().settings.end == super::SourceEnd::EndOfTopic;
    let linger = Duration::from_millis(group.state().settings.end_linger_ms);
    let mut finished: Option<Stopwatch> = None;
    let mut committed = Stopwatch::start();
    while !stop.load(Ordering::Acquire) {
        group.store_offsets(consumer);
        group.balance(consumer);
        if group.membership.is_transactional() && committed.elapsed() >= COMMIT_INTERVAL {
            group.commit_idle(consumer);
            committed = Stopwatch::start();
        }
        let is_finished = until_end && group.state().is_finished();
        finished = is_finished.then(|| finished.take().unwrap_or_else(Stopwatch::start));
        if finished.as_ref().is_some_and(|finished| finished.elapsed() >= linger) {
            break;
        }
        if let Err(fault) = poll_burst(consumer, group) {
            group.state().send(SourceEvent::Failed(fault));
            break;
        }
    }
    let all: Vec<i32> = group.state().partitions();
    group.drain(consumer, &all);
    group.commit(consumer);
    let mut state = group.state();
    state.revoke(&all);
    state.close();
}

fn poll_burst(consumer: &BaseConsumer<Group>, group: &Group) -> Result<(), crate::Fault> {
    let (mut burst, mut bytes, mut wait) = (Vec::with_capacity(BURST), 0, IDLE);
    let mut failed = None;
    while burst.len() < BURST && bytes < BURST_BYTES && failed.is_none() {
        match consumer.poll(wait) {
            None => break,
            Some(Ok(message)) => {
                bytes += message.payload_len() + message.key_len();
                burst.push(message);
            }
            Some(Err(KafkaError::PartitionEOF(partition))) => {
                let mut state = group.state();
                state.take(&burst);
                state.mark_end(partition);
                burst.clear();
            }
            Some(Err(error)) => {
                let fault = fault_of(&error);
                if fault.kind == FaultKind::Configuration {
                    failed = Some(fault);
                } else {
                    telemetry::kafka_in_trouble(&error);
                }
            }
        }
        wait = Duration::ZERO;
    }
    group.state().take(&burst);
    failed.map_or(Ok(()), Err)
}
