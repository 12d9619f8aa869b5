//! What the libraries let an operator see: one function for each observable thing.
//!
//! Every log event goes through here, so that a name or a field is changed in one place and a counter can join its log
//! line. Levels: ERROR is for loss or for a person who must act, WARN for what costs something, DEBUG for the rest.
//! Fields are bounded, and texts are on one line.

use std::fmt::Display;

use crate::Fault;

/// A put, a fetch or a batch is tried again. An outage is worth a warning only when it lasts.
pub fn retried(what: &'static str, fault: &Fault, failures: u32) {
    let (reason, detail) = (fault.kind.reason(), fault.one_line());
    if failures > 3 {
        tracing::warn!(what, reason, failures, detail, "tried again");
    } else {
        tracing::debug!(what, reason, failures, detail, "tried again");
    }
}

/// An object that was half-written or wrong is overwritten with the right bytes.
pub fn body_repaired(key: &impl Display, found_bytes: u64, right_bytes: u64) {
    tracing::warn!(%key, found_bytes, right_bytes, "an object of the wrong size is overwritten");
}

/// An envelope is set aside.
pub fn dead_lettered(fault: &Fault, topic: &str, partition: i32, offset: i64) {
    tracing::warn!(reason = fault.kind.reason(), topic, partition, offset, detail = fault.one_line(), "set aside");
}

/// The sink refused a change, and recorded that it did.
pub fn rejected(feature_id: &str, event_id: &str, why: &str) {
    tracing::warn!(feature_id, event_id, why, "rejected by the sink");
}

/// The client library or a broker is in trouble that may pass.
pub fn kafka_in_trouble(error: &impl Display) {
    tracing::warn!(%error, "Kafka is in trouble; waiting for it");
}

/// A producer client has failed for good and is made anew.
pub fn producer_rebuilt(cause: &impl Display, in_flight: usize) {
    tracing::warn!(%cause, in_flight, "the Kafka producer failed for good and is made anew");
}

/// Offsets could not be committed; the records come again and are duplicates.
pub fn offsets_not_committed(error: &impl Display) {
    tracing::warn!(%error, "offsets not committed; the records come again and are duplicates");
}

/// Partitions were given to this consumer or taken from it.
pub fn rebalanced(change: &'static str, partitions: &[i32]) {
    tracing::debug!(change, ?partitions, "rebalance");
}

/// Revoked partitions had work that did not end in time.
pub fn work_left_behind(records: usize) {
    tracing::warn!(records, "work of revoked partitions is left to their new owner");
}

/// A small thing that the client library could not do and that heals by itself.
pub fn hiccup(what: &'static str, error: &impl Display) {
    tracing::debug!(what, %error, "hiccup");
}
