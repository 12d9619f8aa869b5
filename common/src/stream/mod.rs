//! The seams to the stream: a sink and a source of records, whoever carries them.
//!
//! An embedder can put its own transport behind [`EnvelopeSink`] and [`EnvelopeSource`]; [`crate::kafka`] implements
//! both, and [`memory`] does for tests.

mod gate;
pub mod memory;
mod ticket;
mod watermark;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::oneshot;

use crate::{Fault, Timestamp};

pub use gate::{AdmitAll, Gate, Position, RecordView, Triage};
pub use ticket::{Assignment, Settled, Ticket};
pub use watermark::Watermark;

/// A header: its name and its value, which may be absent.
pub type Header = (String, Option<Bytes>);

/// A record on its way out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutgoingRecord {
    /// The key; records of one key stay in order.
    pub key: Option<Bytes>,
    /// The value.
    pub value: Option<Bytes>,
    /// The headers, in order.
    pub headers: Vec<Header>,
}

impl OutgoingRecord {
    /// Returns the bytes that the record takes as the broker counts it.
    pub fn bytes(&self) -> usize {
        let length = |bytes: &Option<Bytes>| bytes.as_ref().map_or(0, Bytes::len);
        let headers = self.headers.iter().map(|(name, value)| (name.as_str(), length(value)));
        crate::envelope::record_bytes(self.key.as_deref().unwrap_or_default(), length(&self.value), headers)
    }
}

/// The promise of an acknowledgement.
#[derive(Debug)]
pub struct Receipt(oneshot::Receiver<Result<(), Fault>>);

impl Receipt {
    /// Makes a receipt and the end that settles it.
    pub fn new() -> (oneshot::Sender<Result<(), Fault>>, Self) {
        let (sender, receiver) = oneshot::channel();
        (sender, Self(receiver))
    }

    /// Waits until the record is durable.
    ///
    /// # Errors
    /// The record may or may not have been written; sending it again with the same identity is right.
    pub async fn acknowledged(self) -> Result<(), Fault> {
        self.0.await.unwrap_or_else(|_| Err(Fault::unavailable("the sink went away before the record was acknowledged")))
    }
}

/// Takes records, in order, and says when each is durable.
#[async_trait]
pub trait EnvelopeSink: Send + Sync + std::fmt::Debug {
    /// Hands over a record. Records of one key are written in the order of the calls. Waits while the sink is full.
    async fn send(&self, record: OutgoingRecord) -> Receipt;

    /// Waits until every record that was handed over is settled, or the time is up.
    ///
    /// # Errors
    /// The time was up.
    async fn flush(&self, within: Duration) -> Result<(), Fault>;
}

/// A record as it came.
#[derive(Debug)]
pub struct IncomingRecord {
    /// The key.
    pub key: Option<Bytes>,
    /// The value; `None` for a tombstone.
    pub value: Option<Bytes>,
    /// The headers, in order.
    pub headers: Vec<Header>,
    /// The broker's time of the record.
    pub timestamp: Option<Timestamp>,
    /// The right to settle the record.
    pub ticket: Ticket,
}

/// What a source gives.
#[derive(Debug)]
pub enum SourceEvent {
    /// A record that the triage admitted.
    Record(IncomingRecord),
    /// The source has stopped for a reason that a person must see.
    Failed(Fault),
}

/// Gives records and takes their tickets back.
#[async_trait]
pub trait EnvelopeSource: Send {
    /// Waits for the next event; `None` when the source has ended and everything settled is acknowledged.
    async fn next(&mut self) -> Option<SourceEvent>;

    /// Begins to stop: no further records; `next` gives `None` once what is out has been settled or the drain
    /// deadline has passed.
    fn stop(&self);

    /// Leaves the group, or whatever else must be left, and waits for that at most this long. Whatever it does,
    /// everything that was settled has been acknowledged when `next` gave `None`.
    async fn close(&mut self, _within: Duration) {}
}
