//! The gate on the polling thread: what meets no area and is not held is done there and then.

use std::{
    sync::{Arc, mpsc},
    time::Duration,
};

use geoclaim_common::{
    Envelope, Fault, FaultKind,
    envelope::{Peek, peek, peek_body_bytes, peek_identity},
    stream::{Gate, Position, RecordView, Triage},
    telemetry,
};

use super::Consumer;
use crate::{
    aoi::{LiveAreas, Reach},
    holdings::Holdings,
    report::{ConsumeCounters, Outcome, add},
    sink::Sink,
};

/// How long the polling thread waits for the sink to say what it holds. After it, nothing is discarded until it has.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Pause before the sink is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// Reads the box at its fixed place in the receive buffer and discards without a copy, a parse or a store request.
pub(super) struct AreaGate {
    topic: String,
    areas: Arc<LiveAreas>,
    holdings: Arc<Holdings>,
    sink: Arc<dyn Sink>,
    counters: Arc<ConsumeCounters>,
    runtime: tokio::runtime::Handle,
}

impl AreaGate {
    /// Makes the gate, once the sink has said what it holds.
    ///
    /// # Errors
    /// The sink's.
    pub(super) async fn open(consumer: &Consumer) -> Result<Self, Fault> {
        let Consumer { settings, areas, holdings, sink, counters, .. } = consumer.clone();
        holdings.remember_at_most(settings.remembered_discards);
        learn(&holdings, &sink).await?;
        let runtime = tokio::runtime::Handle::current();
        Ok(Self { topic: settings.topic, areas, holdings, sink, counters, runtime })
    }

    fn judge_value(&self, record: &RecordView<'_>, value: &[u8]) -> Triage {
        let reach = match peek(value) {
            Peek::Placed(bbox) => self.areas.now().reach(&bbox),
            Peek::Unknown => Reach::Wanted,
        };
        match (reach, peek_identity(value)) {
            (Reach::Elsewhere, _) => return Triage::Discard,
            (Reach::Nowhere, Some(identity)) => {
                let features = [key(record), Some(identity.feature_id)];
                if self.holdings.discards(features.into_iter().flatten(), identity.event_id, identity.version) {
                    return Triage::Discard;
                }
            }
            (_, Some(identity)) => self.holdings.enter([key(record), Some(identity.feature_id)].into_iter().flatten()),
            (_, None) => match key(record) {
                Some(feature) => self.holdings.enter([feature]),
                // Rare enough for the full parse.
                None => self.holdings.enter(Envelope::decode(value).iter().map(|envelope| envelope.feature_id.as_str())),
            },
        }
        Triage::Admit
    }

    fn judge_tombstone(&self, record: &RecordView<'_>) -> Triage {
        let event_id = tombstone_event_id(&self.topic, &record.position);
        match key(record) {
            Some(feature) if self.holdings.discards([feature], &event_id, None) => Triage::Discard,
            _ => Triage::Admit,
        }
    }
}

impl Gate for AreaGate {
    fn judge(&self, record: &RecordView<'_>) -> Triage {
        add(&self.counters.received, 1);
        let verdict = match record.value {
            Some(value) => self.judge_value(record, value),
            None => self.judge_tombstone(record),
        };
        if verdict == Triage::Discard {
            add(&self.counters.bytes_not_fetched, record.value.and_then(peek_body_bytes).unwrap_or(0));
            self.counters.count(Outcome::Discarded);
        }
        verdict
    }

    fn assigned(&self) {
        self.holdings.doubt();
        let (holdings, sink) = (Arc::clone(&self.holdings), Arc::clone(&self.sink));
        let (done, wait) = mpsc::channel();
        self.runtime.spawn(async move {
            let mut failures = 0;
            while let Err(fault) = learn(&holdings, &sink).await {
                failures += 1;
                telemetry::retried("ask the sink what it holds", &fault, failures);
                if fault.kind != FaultKind::Unavailable {
                    // The doubt stays: everything goes through the sink, which will say what is wrong.
                    return;
                }
                tokio::time::sleep(PAUSE).await;
            }
            holdings.trust();
            let _ = done.send(());
        });
        let _ = wait.recv_timeout(LONGEST_WAIT);
    }
}

/// Learns what the sink holds and what has been discarded before.
pub(super) async fn learn(holdings: &Holdings, sink: &Arc<dyn Sink>) -> Result<(), Fault> {
    sink.recall().await?.iter().for_each(|note| holdings.recall(note));
    holdings.learn(sink.features(holdings.mark()).await?);
    Ok(())
}

/// Returns the record's key, which is the id of its feature.
fn key<'a>(record: &RecordView<'a>) -> Option<&'a str> {
    record.key.and_then(|key| std::str::from_utf8(key).ok())
}

/// Returns the identity of a tombstone, which has none but its place; with the time, for a topic may be made anew.
pub(super) fn tombstone_event_id(topic: &str, position: &Position) -> String {
    let Position { partition, offset, timestamp } = position;
    format!("tombstone:{topic}/{partition}/{offset}@{}", timestamp.map_or(0, |time| time.as_millis()))
}
