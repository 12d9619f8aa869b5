//! What a sweep has done.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use geoclaim_common::Fault;
use serde::Serialize;

/// Counts while a sweep runs; can be watched from elsewhere.
#[derive(Debug, Default)]
pub struct SweepCounters {
    boundary_seconds: AtomicU64,
    listed: AtomicU64,
    bytes_listed: AtomicU64,
    ignored: AtomicU64,
    references: AtomicU64,
    referenced: AtomicU64,
    young: AtomicU64,
    candidates: AtomicU64,
    bytes_candidates: AtomicU64,
    ripe: AtomicU64,
    deleted: AtomicU64,
    bytes_deleted: AtomicU64,
    spared: AtomicU64,
    unanswered: AtomicU64,
}

/// What a sweep came to. `listed` = `referenced` + `young` + `candidates`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SweepReport {
    /// How long a body can be needed; 0 when that is not known.
    pub boundary_seconds: u64,
    /// Bodies in the store.
    pub listed: u64,
    /// Their bytes.
    pub bytes_listed: u64,
    /// Objects in the folder of bodies whose key is none of a body. They are left alone.
    pub ignored: u64,
    /// References that were read.
    pub references: u64,
    /// Bodies that something refers to.
    pub referenced: u64,
    /// Bodies that nothing refers to, and that are younger than the boundary.
    pub young: u64,
    /// Bodies that nothing refers to, and that are older than the boundary.
    pub candidates: u64,
    /// Their bytes.
    pub bytes_candidates: u64,
    /// Of those, the ones that were candidates a grace ago already: they can be deleted.
    pub ripe: u64,
    /// Bodies that were deleted.
    pub deleted: u64,
    /// Their bytes.
    pub bytes_deleted: u64,
    /// Bodies that were ripe and at the last look had been written again.
    pub spared: u64,
    /// Deletes that got no answer in time. The next run looks.
    pub unanswered: u64,
    /// Why the sweep ended early, if it did.
    pub refused: Option<String>,
    /// Wall-clock time.
    pub seconds: f64,
}

impl SweepCounters {
    pub(super) fn set_boundary(&self, boundary: Duration) {
        self.boundary_seconds.store(boundary.as_secs(), Relaxed);
    }

    pub(super) fn listed(&self, bytes: u64) {
        self.listed.fetch_add(1, Relaxed);
        self.bytes_listed.fetch_add(bytes, Relaxed);
    }

    pub(super) fn ignored(&self) {
        self.ignored.fetch_add(1, Relaxed);
    }

    pub(super) fn reference(&self) {
        self.references.fetch_add(1, Relaxed);
    }

    pub(super) fn referenced(&self) {
        self.referenced.fetch_add(1, Relaxed);
    }

    pub(super) fn young(&self) {
        self.young.fetch_add(1, Relaxed);
    }

    pub(super) fn candidate(&self, bytes: u64, is_ripe: bool) {
        self.candidates.fetch_add(1, Relaxed);
        self.bytes_candidates.fetch_add(bytes, Relaxed);
        self.ripe.fetch_add(is_ripe.into(), Relaxed);
    }

    pub(super) fn deleted(&self, bytes: u64) {
        self.deleted.fetch_add(1, Relaxed);
        self.bytes_deleted.fetch_add(bytes, Relaxed);
    }

    pub(super) fn spared(&self) {
        self.spared.fetch_add(1, Relaxed);
    }

    pub(super) fn unanswered(&self) {
        self.unanswered.fetch_add(1, Relaxed);
    }

    /// Refuses when more than this share of all bodies would be deleted.
    pub(super) fn check_share(&self, most_percent: u8) -> Result<(), Fault> {
        let (ripe, listed) = (self.ripe.load(Relaxed), self.listed.load(Relaxed));
        if u128::from(ripe) * 100 <= u128::from(listed) * u128::from(most_percent) {
            return Ok(());
        }
        let what = format!("{ripe} of {listed} bodies would be deleted, and one run may delete {most_percent} % of them");
        Err(Fault::configuration(format!("{what}: is every topic named that refers to this store? If so, allow a larger share")))
    }

    /// Returns the counts so far.
    pub fn report(&self, seconds: f64) -> SweepReport {
        let get = |counter: &AtomicU64| counter.load(Relaxed);
        SweepReport {
            boundary_seconds: get(&self.boundary_seconds),
            listed: get(&self.listed),
            bytes_listed: get(&self.bytes_listed),
            ignored: get(&self.ignored),
            references: get(&self.references),
            referenced: get(&self.referenced),
            young: get(&self.young),
            candidates: get(&self.candidates),
            bytes_candidates: get(&self.bytes_candidates),
            ripe: get(&self.ripe),
            deleted: get(&self.deleted),
            bytes_deleted: get(&self.bytes_deleted),
            spared: get(&self.spared),
            unanswered: get(&self.unanswered),
            refused: None,
            seconds,
        }
    }
}
