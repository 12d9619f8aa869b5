//! The right to settle one record. A ticket is not `Clone`, and settling consumes it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::mpsc::UnboundedSender;

/// One partition while it is assigned to this consumer.
#[derive(Debug, Default)]
pub struct Assignment {
    revoked: AtomicBool,
}

impl Assignment {
    /// Marks the partition as somebody else's. Work that is still out for it is dropped.
    pub fn revoke(&self) {
        self.revoked.store(true, Ordering::Release);
    }

    /// Tells whether the partition is somebody else's by now.
    pub fn is_revoked(&self) -> bool {
        self.revoked.load(Ordering::Acquire)
    }
}

/// What a ticket tells its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
    /// Bytes of the record, for back-pressure.
    pub bytes: usize,
    /// Whether the record is done. A ticket that is dropped is not.
    pub done: bool,
}

/// The right to say that a record is done.
#[derive(Debug)]
pub struct Ticket {
    settled: Settled,
    assignment: Arc<Assignment>,
    source: UnboundedSender<(Arc<Assignment>, Settled)>,
}

impl Ticket {
    /// Makes the ticket of one record.
    pub fn new(
        (partition, offset, bytes): (i32, i64, usize),
        assignment: Arc<Assignment>,
        source: UnboundedSender<(Arc<Assignment>, Settled)>,
    ) -> Self {
        Self { settled: Settled { partition, offset, bytes, done: false }, assignment, source }
    }

    /// Returns the partition.
    pub fn partition(&self) -> i32 {
        self.settled.partition
    }

    /// Returns the offset.
    pub fn offset(&self) -> i64 {
        self.settled.offset
    }

    /// Returns the partition's assignment, which tells when the work is its new owner's.
    pub fn assignment(&self) -> &Arc<Assignment> {
        &self.assignment
    }

    /// Says that the record is done and durable: its offset may be acknowledged.
    pub fn settle(mut self) {
        self.settled.done = true;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // The source may be gone at the end of a run; then nothing is acknowledged any more either.
        let _ = self.source.send((Arc::clone(&self.assignment), self.settled));
    }
}
