//! What a consumer has done. Nothing is dropped silently: every record ends in exactly one of seven outcomes.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use geoclaim_common::stream::{Assignment, Ticket};
use serde::Serialize;

/// How a record ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It meets no area.
    Discarded,
    /// Its effect is in the sink.
    Applied,
    /// It had been applied before.
    Duplicate,
    /// A newer version of its feature had been applied.
    Stale,
    /// The sink refused it, and that is recorded.
    Rejected,
    /// Its feature left the areas.
    Left,
    /// It was set aside with its reason.
    DeadLettered,
}

/// Counts while a consumer runs; can be watched from elsewhere.
#[derive(Debug, Default)]
#[allow(missing_docs, reason = "the names are those of the report")]
pub struct ConsumeCounters {
    pub received: AtomicU64,
    pub unfinished: AtomicU64,
    outcomes: [AtomicU64; 7],
    pub fetched: AtomicU64,
    pub bytes_fetched: AtomicU64,
    pub bytes_not_fetched: AtomicU64,
}

/// Adds to a counter.
pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}

impl ConsumeCounters {
    /// Counts an outcome.
    pub fn count(&self, outcome: Outcome) {
        self.count_all(outcome, 1);
    }

    /// Counts an outcome of several records.
    pub fn count_all(&self, outcome: Outcome, records: u64) {
        add(self.of(outcome), records);
    }

    /// Returns how often an outcome has been counted.
    pub fn get(&self, outcome: Outcome) -> u64 {
        self.of(outcome).load(Ordering::Relaxed)
    }

    fn of(&self, outcome: Outcome) -> &AtomicU64 {
        &self.outcomes[outcome as usize]
    }

    /// Returns the counts so far.
    pub fn report(&self, seconds: f64) -> ConsumeReport {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ConsumeReport {
            consumed: get(&self.received).saturating_sub(get(&self.unfinished)),
            discarded: self.get(Outcome::Discarded),
            applied: self.get(Outcome::Applied),
            duplicate: self.get(Outcome::Duplicate),
            stale: self.get(Outcome::Stale),
            rejected: self.get(Outcome::Rejected),
            left: self.get(Outcome::Left),
            dead_lettered: self.get(Outcome::DeadLettered),
            fetched: get(&self.fetched),
            bytes_fetched: get(&self.bytes_fetched),
            bytes_not_fetched: get(&self.bytes_not_fetched),
            seconds,
        }
    }
}

/// What a run came to. `consumed` is counted when a record comes in and given back when it is left unfinished; the
/// seven outcomes are counted when it ends; the two must agree.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ConsumeReport {
    /// Records received and finished.
    pub consumed: u64,
    /// Those that meet no area.
    pub discarded: u64,
    /// Those whose effect is in the sink.
    pub applied: u64,
    /// Those that had been applied before.
    pub duplicate: u64,
    /// Those older than what the sink holds.
    pub stale: u64,
    /// Those that the sink refused.
    pub rejected: u64,
    /// Those whose feature left the areas.
    pub left: u64,
    /// Those set aside with their reason.
    pub dead_lettered: u64,
    /// Bodies fetched from the store.
    pub fetched: u64,
    /// Their bytes.
    pub bytes_fetched: u64,
    /// Bytes of stored bodies that were discarded unread.
    pub bytes_not_fetched: u64,
    /// Wall-clock time.
    pub seconds: f64,
}

/// A record that has not ended. Dropping it leaves it to be delivered again.
#[derive(Debug)]
pub(crate) struct Open {
    ticket: Option<Ticket>,
    assignment: Arc<Assignment>,
    counters: Arc<ConsumeCounters>,
}

impl Open {
    pub(crate) fn new(ticket: Ticket, counters: &Arc<ConsumeCounters>) -> Self {
        let assignment = Arc::clone(ticket.assignment());
        Self { ticket: Some(ticket), assignment, counters: Arc::clone(counters) }
    }

    /// Returns the assignment of the record's partition.
    pub(crate) fn assignment(&self) -> &Arc<Assignment> {
        &self.assignment
    }

    /// Tells whether the record is somebody else's by now.
    pub(crate) fn is_fenced(&self) -> bool {
        self.assignment.is_revoked()
    }

    pub(crate) fn partition(&self) -> i32 {
        self.ticket.as_ref().map_or(-1, Ticket::partition)
    }

    pub(crate) fn offset(&self) -> i64 {
        self.ticket.as_ref().map_or(-1, Ticket::offset)
    }

    /// Ends the record: counts its outcome, then lets its offset advance.
    pub(crate) fn end(mut self, outcome: Outcome) {
        self.counters.count(outcome);
        if let Some(ticket) = self.ticket.take() {
            ticket.settle();
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.ticket.is_some() {
            add(&self.counters.unfinished, 1);
        }
    }
}
