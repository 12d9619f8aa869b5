//! A member of a group, as seen by whoever commits its offsets in a transaction.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerGroupMetadata};

use super::group::Group;

/// A handle on the membership of a [`super::KafkaSource`], made before it: what writes transactions needs it, and the
/// source begins to give records as soon as it is open.
#[derive(Clone, Default)]
pub struct Membership(Arc<Slot>);

#[derive(Default)]
struct Slot {
    consumer: Mutex<Weak<BaseConsumer<Group>>>,
    assignments: AtomicU64,
    is_transactional: AtomicBool,
}

impl Membership {
    /// Returns how often partitions have been assigned so far.
    pub fn assignments(&self) -> u64 {
        self.0.assignments.load(Ordering::Acquire)
    }

    /// Says that progress is committed in transactions. To be said before the source is opened.
    pub(in crate::kafka) fn be_transactional(&self) {
        self.0.is_transactional.store(true, Ordering::Release);
    }

    pub(super) fn is_transactional(&self) -> bool {
        self.0.is_transactional.load(Ordering::Acquire)
    }

    pub(super) fn assigned(&self) {
        self.0.assignments.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn join(&self, consumer: &Arc<BaseConsumer<Group>>) {
        *self.0.consumer.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(consumer);
    }

    /// Returns what a broker knows the member by, in this generation of the group; `None` when there is no source.
    pub(in crate::kafka) fn metadata(&self) -> Option<ConsumerGroupMetadata> {
        let consumer = self.0.consumer.lock().unwrap_or_else(PoisonError::into_inner).upgrade()?;
        consumer.group_metadata()
    }
}

impl fmt::Debug for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Membership").field("assignments", &self.assignments()).finish_non_exhaustive()
    }
}
