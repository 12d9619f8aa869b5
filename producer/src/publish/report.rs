//! What a publisher has done.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

use serde::Serialize;

use crate::read::Place;

/// A feature that was not published, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The name of the source.
    pub source: String,
    /// Where in it.
    pub place: Place,
    /// What is wrong and what to do.
    pub problem: String,
    /// Whether the input is at fault; otherwise the store or the broker is.
    pub is_rejection: bool,
}

impl Problem {
    /// Returns the place as `source:line:column, byte N, feature N`.
    pub fn at(&self) -> String {
        at(&self.source, &self.place)
    }
}

/// Writes a place as `source:line:column, byte N, feature N`, features counted from 1.
pub fn at(source: &str, place: &Place) -> String {
    format!("{source}:{}:{}, byte {}, feature {}", place.line, place.column, place.offset, place.index + 1)
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at(), self.problem)
    }
}

/// Counts while a publisher runs; can be watched from elsewhere.
#[derive(Debug, Default)]
#[allow(missing_docs, reason = "the names are those of the report")]
pub struct PublishCounters {
    pub read: AtomicU64,
    pub rejected: AtomicU64,
    pub failed: AtomicU64,
    pub published: AtomicU64,
    pub inline: AtomicU64,
    pub stored: AtomicU64,
    pub bodies_written: AtomicU64,
    pub bodies_repaired: AtomicU64,
    pub bodies_renewed: AtomicU64,
    pub bytes_read: AtomicU64,
    pub bytes_stored: AtomicU64,
    pub bytes_saved: AtomicU64,
}

/// Adds to a counter.
pub(super) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}

/// What a run came to. `read` = `published` + `rejected` + `failed`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PublishReport {
    /// The run's name, to repeat it with.
    pub run: String,
    /// Features, or documents, that were read.
    pub read: u64,
    /// Those that are no good.
    pub rejected: u64,
    /// Those that store or broker did not take.
    pub failed: u64,
    /// Events that the broker has acknowledged.
    pub published: u64,
    /// Of those, the ones that carry their body.
    pub inline: u64,
    /// Of those, the ones with a claim check.
    pub stored: u64,
    /// Puts that created an object.
    pub bodies_written: u64,
    /// Puts that overwrote a half-written object.
    pub bodies_repaired: u64,
    /// Puts that overwrote an old object with the same bytes, so that its age starts anew.
    pub bodies_renewed: u64,
    /// Bytes of the bodies read.
    pub bytes_read: u64,
    /// Bytes of the objects created.
    pub bytes_stored: u64,
    /// How many bytes less that is than their bodies have, since they are compressed.
    pub bytes_saved: u64,
    /// Whether the run was stopped before the end of its input: the rest was not read.
    pub interrupted: bool,
    /// Wall-clock time.
    pub seconds: f64,
}

impl PublishReport {
    /// Tells whether anything of the input was not published.
    pub fn is_incomplete(&self) -> bool {
        self.interrupted || self.rejected + self.failed > 0
    }
}

impl PublishCounters {
    /// Counts what was read and came to no end, since a fault stopped the run, as failed.
    pub(super) fn count_unfinished(&self) {
        let PublishReport { read, rejected, failed, published, .. } = self.report("", 0.0);
        add(&self.failed, read.saturating_sub(rejected + failed + published));
    }

    /// Returns the counts so far.
    pub fn report(&self, run: &str, seconds: f64) -> PublishReport {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        PublishReport {
            run: run.to_owned(),
            read: get(&self.read),
            rejected: get(&self.rejected),
            failed: get(&self.failed),
            published: get(&self.published),
            inline: get(&self.inline),
            stored: get(&self.stored),
            bodies_written: get(&self.bodies_written),
            bodies_repaired: get(&self.bodies_repaired),
            bodies_renewed: get(&self.bodies_renewed),
            bytes_read: get(&self.bytes_read),
            bytes_stored: get(&self.bytes_stored),
            bytes_saved: get(&self.bytes_saved),
            interrupted: false,
            seconds,
        }
    }
}
