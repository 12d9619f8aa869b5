//! A stream in memory, for tests and for an embedder's own.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use tokio::sync::mpsc;

use super::{
    Assignment, EnvelopeSink, EnvelopeSource, Gate, IncomingRecord, OutgoingRecord, Position, Receipt, RecordView, Settled,
    SourceEvent, Ticket, Triage, Watermark,
};
use crate::{Fault, Timestamp};

/// A sink that keeps what it is given and acknowledges at once.
#[derive(Clone, Debug, Default)]
pub struct MemorySink {
    records: Arc<Mutex<Vec<OutgoingRecord>>>,
}

impl MemorySink {
    /// Returns the records so far.
    pub fn records(&self) -> Vec<OutgoingRecord> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl EnvelopeSink for MemorySink {
    async fn send(&self, record: OutgoingRecord) -> Receipt {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).push(record);
        let (settle, receipt) = Receipt::new();
        let _ = settle.send(Ok(()));
        receipt
    }

    async fn flush(&self, _within: Duration) -> Result<(), Fault> {
        Ok(())
    }
}

/// A source of one partition that gives the records it was made with and ends when all tickets are back.
pub struct MemorySource {
    records: std::vec::IntoIter<(i64, OutgoingRecord)>,
    timestamp: Timestamp,
    gate: Arc<dyn Gate>,
    assignment: Arc<Assignment>,
    settle: mpsc::UnboundedSender<(Arc<Assignment>, Settled)>,
    settled: mpsc::UnboundedReceiver<(Arc<Assignment>, Settled)>,
    watermark: Arc<Mutex<Watermark>>,
    out: usize,
}

impl MemorySource {
    /// Makes a source whose records all have this timestamp. Offsets begin at 0.
    pub fn new(records: Vec<OutgoingRecord>, timestamp: Timestamp, gate: Arc<dyn Gate>) -> Self {
        let (settle, settled) = mpsc::unbounded_channel();
        let records: Vec<_> = (0..).zip(records).collect();
        Self {
            records: records.into_iter(),
            timestamp,
            gate,
            assignment: Arc::default(),
            settle,
            settled,
            watermark: Arc::default(),
            out: 0,
        }
    }

    /// Numbers the records from this offset on, as in a partition that is read further.
    #[must_use]
    pub fn from_offset(mut self, first: i64) -> Self {
        let records: Vec<_> = self.records.map(|(offset, record)| (first + offset, record)).collect();
        self.records = records.into_iter();
        self
    }

    /// Returns a handle on the watermark, which outlives the source.
    pub fn watermark(&self) -> Arc<Mutex<Watermark>> {
        Arc::clone(&self.watermark)
    }

    /// Returns the partition's assignment, so that a test can revoke it.
    pub fn assignment(&self) -> Arc<Assignment> {
        Arc::clone(&self.assignment)
    }

    fn take_back(&mut self, settled: Settled) {
        self.out -= 1;
        if settled.done {
            self.watermark.lock().unwrap_or_else(PoisonError::into_inner).done(settled.offset);
        }
    }
}

#[async_trait]
impl EnvelopeSource for MemorySource {
    async fn next(&mut self) -> Option<SourceEvent> {
        while let Ok((_, settled)) = self.settled.try_recv() {
            self.take_back(settled);
        }
        for (offset, record) in self.records.by_ref() {
            let mut watermark = self.watermark.lock().unwrap_or_else(PoisonError::into_inner);
            let position = Position { partition: 0, offset, timestamp: Some(self.timestamp) };
            let view = RecordView { key: record.key.as_deref(), value: record.value.as_deref(), position };
            if self.gate.judge(&view) == Triage::Discard {
                watermark.skip(offset);
                continue;
            }
            watermark.begin(offset);
            self.out += 1;
            let bytes = record.bytes();
            let ticket = Ticket::new((0, offset, bytes), Arc::clone(&self.assignment), self.settle.clone());
            let OutgoingRecord { key, value, headers } = record;
            return Some(SourceEvent::Record(IncomingRecord { key, value, headers, timestamp: Some(self.timestamp), ticket }));
        }
        while self.out > 0 {
            let (_, settled) = self.settled.recv().await?;
            self.take_back(settled);
        }
        None
    }

    fn stop(&self) {}
}
