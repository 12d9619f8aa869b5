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
    aoi::{AreaSet, LiveAreas, Reach},
    holdings::{Holdings, Known},
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

    fn judge_value(&self, record: &RecordView<'_>, value: &[u8], areas: &AreaSet, known: &mut Known<'_>) -> Triage {
        let reach = match peek(value) {
            Peek::Placed(bbox) => areas.reach(&bbox),
            Peek::Unknown => Reach::Wanted,
        };
        match (reach, peek_identity(value)) {
            (Reach::Elsewhere, _) => return Triage::Discard,
            (Reach::Nowhere, Some(identity)) => {
                if known.discards(features(record.key, identity.feature_id), identity.event_id, identity.version) {
                    return Triage::Discard;
                }
            }
            (_, Some(identity)) => known.enter(features(record.key, identity.feature_id)),
            (_, None) => match record.key {
                Some(feature) => known.enter([feature]),
                // Rare enough for the full parse.
                None => known.enter(Envelope::decode(value).iter().map(|envelope| envelope.feature_id.as_bytes())),
            },
        }
        Triage::Admit
    }

    fn judge_tombstone(&self, record: &RecordView<'_>, known: &mut Known<'_>) -> Triage {
        let event_id = tombstone_event_id(&self.topic, &record.position);
        match record.key {
            Some(feature) if known.discards([feature], event_id.as_bytes(), None) => Triage::Discard,
            _ => Triage::Admit,
        }
    }
}

impl Gate for AreaGate {
    fn judge(&self, record: &RecordView<'_>) -> Triage {
        let mut verdict = Vec::with_capacity(1);
        self.judge_all(std::slice::from_ref(record), &mut verdict);
        verdict.pop().unwrap_or(Triage::Admit)
    }

    fn judge_all(&self, records: &[RecordView<'_>], verdicts: &mut Vec<Triage>) {
        let (areas, mut known) = (self.areas.now(), self.holdings.known());
        let (mut discarded, mut bytes_not_fetched) = (0, 0);
        verdicts.extend(records.iter().map(|record| {
            let verdict = match record.value {
                Some(value) => self.judge_value(record, value, &areas, &mut known),
                None => self.judge_tombstone(record, &mut known),
            };
            if verdict == Triage::Discard {
                discarded += 1;
                bytes_not_fetched += record.value.and_then(peek_body_bytes).unwrap_or(0);
            }
            verdict
        }));
        add(&self.counters.received, records.len() as u64);
        add(&self.counters.bytes_not_fetched, bytes_not_fetched);
        self.counters.count_all(Outcome::Discarded, discarded);
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

/// Returns what a record names its feature by: its key, and the id in its value where that is another.
fn features<'a>(key: Option<&'a [u8]>, feature_id: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    key.filter(|key| *key != feature_id).into_iter().chain([feature_id])
}

/// Returns the identity of a tombstone, which has none but its place; with the time, for a topic may be made anew.
pub(super) fn tombstone_event_id(topic: &str, position: &Position) -> String {
    let Position { partition, offset, timestamp } = position;
    format!("tombstone:{topic}/{partition}/{offset}@{}", timestamp.map_or(0, |time| time.as_millis()))
}
