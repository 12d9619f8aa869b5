//! What the source knows of its partitions. Only the polling thread touches it.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use rdkafka::{Message, Timestamp as KafkaTimestamp, message::BorrowedMessage};
use tokio::sync::mpsc;

use super::SourceSettings;
use crate::{
    Timestamp,
    kafka::headers::owned_headers,
    stream::{Assignment, Gate, IncomingRecord, Position, RecordView, Settled, SourceEvent, Ticket, Triage, Watermark},
};

/// One assigned partition.
#[derive(Default)]
struct Partition {
    assignment: Arc<Assignment>,
    watermark: Watermark,
    last: Option<i64>,
    stored: Option<i64>,
    out: usize,
    is_paused: bool,
    at_end: bool,
}

impl Partition {
    /// Takes note that a record has come.
    fn reach(&mut self, offset: i64) {
        if self.last.is_some_and(|last| offset <= last) {
            // The log was cut or made anew, and is read again from further down: what was known of it is void.
            self.assignment.revoke();
            *self = Self::default();
        }
        (self.last, self.at_end) = (Some(offset), false);
    }

    /// Copies a record out of the receive buffer and makes its ticket; returns its bytes as well.
    fn admit(&mut self, message: &BorrowedMessage<'_>, settle: Settle) -> (IncomingRecord, usize) {
        self.watermark.begin(message.offset());
        self.out += 1;
        let headers = owned_headers(message);
        let bytes = message.payload_len()
            + message.key_len()
            + headers.iter().map(|(name, value)| name.len() + value.as_ref().map_or(0, Bytes::len)).sum::<usize>();
        let place = (message.partition(), message.offset(), bytes);
        let record = IncomingRecord {
            key: message.key().map(Bytes::copy_from_slice),
            value: message.payload().map(Bytes::copy_from_slice),
            headers,
            timestamp: timestamp(message.timestamp()),
            ticket: Ticket::new(place, Arc::clone(&self.assignment), settle),
        };
        (record, bytes)
    }
}

fn view<'a>(message: &'a BorrowedMessage<'_>) -> RecordView<'a> {
    let (offset, timestamp) = (message.offset(), timestamp(message.timestamp()));
    let position = Position { partition: message.partition(), offset, timestamp };
    RecordView { key: message.key(), value: message.payload(), position }
}

/// Where tickets go back to.
type Settle = mpsc::UnboundedSender<(Arc<Assignment>, Settled)>;

/// The partitions and the way out.
pub(super) struct State {
    pub(super) topic: String,
    pub(super) settings: SourceSettings,
    gate: Arc<dyn Gate>,
    events: Option<mpsc::UnboundedSender<SourceEvent>>,
    settle: Settle,
    settled: mpsc::UnboundedReceiver<(Arc<Assignment>, Settled)>,
    partitions: HashMap<i32, Partition>,
    /// Revoked since the records were polled that are taken next.
    gone: Vec<i32>,
    bytes_out: usize,
    was_assigned: bool,
}

impl State {
    pub(super) fn new(
        topic: &str,
        settings: &SourceSettings,
        gate: Arc<dyn Gate>,
        events: mpsc::UnboundedSender<SourceEvent>,
    ) -> Self {
        let (settle, settled) = mpsc::unbounded_channel();
        Self {
            topic: topic.to_owned(),
            settings: settings.clone(),
            gate,
            events: Some(events),
            settle,
            settled,
            partitions: HashMap::new(),
            gone: Vec::new(),
            bytes_out: 0,
            was_assigned: false,
        }
    }

    pub(super) fn assign(&mut self, partitions: &[i32]) {
        if !partitions.is_empty() {
            self.was_assigned = true;
            self.gate.assigned();
        }
        for partition in partitions {
            self.partitions.insert(*partition, Partition::default());
        }
    }

    /// Returns those of these partitions that are paused: the client keeps a pause across assignments.
    pub(super) fn paused_of(&self, partitions: &[i32]) -> Vec<i32> {
        let is_paused = |id: &&i32| self.partitions.get(id).is_some_and(|partition| partition.is_paused);
        partitions.iter().filter(is_paused).copied().collect()
    }

    /// Forgets partitions; work that is still out for them is fenced.
    pub(super) fn revoke(&mut self, partitions: &[i32]) {
        for partition in partitions {
            if let Some(gone) = self.partitions.remove(partition) {
                gone.assignment.revoke();
                self.gone.push(*partition);
            }
        }
    }

    /// Takes the records of a burst in the order in which they came: discards them, or sends them out with a ticket.
    ///
    /// Those of a partition that was revoked since they were polled are passed over: it may have been assigned anew, and
    /// then they come again. A poll in which that happens gives no record, so that a burst ends with it.
    pub(super) fn take(&mut self, burst: &[BorrowedMessage<'_>]) {
        let gone = std::mem::take(&mut self.gone);
        let is_taken = |id: i32| !gone.contains(&id) && self.partitions.contains_key(&id);
        let by_partition = burst.chunk_by(|a, b| a.partition() == b.partition());
        let taken: Vec<_> = by_partition.filter(|messages| is_taken(messages[0].partition())).collect();
        let views: Vec<RecordView<'_>> = taken.iter().flat_map(|messages| messages.iter().map(view)).collect();
        let mut verdicts = Vec::with_capacity(views.len());
        self.gate.judge_all(&views, &mut verdicts);
        let (mut verdicts, mut admitted) = (verdicts.into_iter(), Vec::new());
        for messages in taken {
            let Some(partition) = self.partitions.get_mut(&messages[0].partition()) else { continue };
            for (message, verdict) in messages.iter().zip(verdicts.by_ref()) {
                partition.reach(message.offset());
                match verdict {
                    Triage::Discard => partition.watermark.skip(message.offset()),
                    Triage::Admit => {
                        let (record, bytes) = partition.admit(message, self.settle.clone());
                        self.bytes_out += bytes;
                        admitted.push(record);
                    }
                }
            }
        }
        admitted.into_iter().for_each(|record| self.send(SourceEvent::Record(record)));
    }

    pub(super) fn send(&self, event: SourceEvent) {
        if let Some(events) = &self.events {
            let _ = events.send(event);
        }
    }

    /// Tells the receiver that nothing more comes.
    pub(super) fn close(&mut self) {
        self.events = None;
    }

    /// Takes back the tickets that have come in.
    pub(super) fn settle(&mut self) {
        while let Ok((assignment, settled)) = self.settled.try_recv() {
            self.bytes_out = self.bytes_out.saturating_sub(settled.bytes);
            let current =
                self.partitions.get_mut(&settled.partition).filter(|partition| Arc::ptr_eq(&partition.assignment, &assignment));
            let Some(partition) = current else { continue };
            partition.out -= 1;
            if settled.done {
                partition.watermark.done(settled.offset);
            }
        }
    }

    /// Returns, for each partition whose watermark has moved, the last offset that is done.
    pub(super) fn advanced(&mut self) -> Vec<(i32, i64)> {
        let moved = self.partitions.iter_mut().filter_map(|(id, partition)| {
            let next = partition.watermark.next().filter(|next| partition.stored != Some(*next))?;
            partition.stored = Some(next);
            Some((*id, next - 1))
        });
        moved.collect()
    }

    /// Returns, of partitions of which nothing is out, the next offset of each whose watermark has moved.
    pub(super) fn idle(&self) -> Vec<(i32, i64)> {
        let moved = self.partitions.iter().filter(|(_, partition)| partition.out == 0);
        moved
            .filter_map(|(id, partition)| Some((*id, partition.watermark.next().filter(|next| partition.stored != Some(*next))?)))
            .collect()
    }

    /// Takes note that these offsets are committed.
    pub(super) fn committed(&mut self, offsets: &[(i32, i64)]) {
        for (id, next) in offsets {
            if let Some(partition) = self.partitions.get_mut(id) {
                partition.stored = Some(*next);
            }
        }
    }

    /// Returns the assigned partitions.
    pub(super) fn partitions(&self) -> Vec<i32> {
        self.partitions.keys().copied().collect()
    }

    /// Returns how many records of these partitions are out.
    pub(super) fn out_of(&self, partitions: &[i32]) -> usize {
        partitions.iter().filter_map(|id| self.partitions.get(id)).map(|partition| partition.out).sum()
    }

    /// Returns how many records are out.
    pub(super) fn out(&self) -> usize {
        self.partitions.values().map(|partition| partition.out).sum()
    }

    pub(super) fn mark_end(&mut self, partition: i32) {
        if let Some(partition) = self.partitions.get_mut(&partition) {
            partition.at_end = true;
        }
    }

    /// Tells whether every assigned partition has been read to its end and nothing is out.
    pub(super) fn is_finished(&self) -> bool {
        self.was_assigned && self.out() == 0 && self.partitions.values().all(|partition| partition.at_end)
    }

    /// Returns the partitions to pause and to resume now, and takes note that they are.
    pub(super) fn balance(&mut self) -> (Vec<i32>, Vec<i32>) {
        let (mut pause, mut resume) = (Vec::new(), Vec::new());
        let SourceSettings { records_per_partition, queued_bytes, .. } = self.settings;
        for (id, partition) in &mut self.partitions {
            let is_full = partition.out >= records_per_partition || (self.bytes_out >= queued_bytes && partition.out > 0);
            let has_room =
                partition.out <= records_per_partition / 2 && (self.bytes_out <= queued_bytes / 2 || partition.out == 0);
            match partition.is_paused {
                false if is_full => pause.push(*id),
                true if has_room => resume.push(*id),
                _ => continue,
            }
            partition.is_paused = !partition.is_paused;
        }
        (pause, resume)
    }
}

fn timestamp(timestamp: KafkaTimestamp) -> Option<Timestamp> {
    timestamp.to_millis().map(Timestamp::from_millis)
}
