//! One partition's records, from receipt to verdict.
//!
//! Records of a partition are resolved concurrently and judged in order; partitions do not wait for each other. Shares
//! of the budget are taken in order before a fetch begins, so the first record can always go on.

use std::sync::Arc;

use futures::{StreamExt, stream};
use geoclaim_common::{
    ClaimCheck, Clock, Envelope, Fault, FaultKind, Timestamp,
    envelope::Content,
    fault::{Attempt, NextStep, RetrySettings, next_step},
    geojson::CrsMember,
    stream::{IncomingRecord, OutgoingRecord, Position},
    telemetry,
};
use tokio::sync::mpsc;

use super::{gate::tombstone_event_id, judge};
use crate::{
    aoi::{AreaSet, LiveAreas, Reach},
    dead_letter::{DeadLetters, Failed, Origin, redriven_from},
    holdings::Holdings,
    report::{ConsumeCounters, Open, Outcome, add},
    resolve::{BodyBytes, Resolver, Shares},
    sink::{Change, ChangeKind, Sink},
};

/// Bodies from this length on are examined off the async threads.
const SMALL_BODY_BYTES: usize = 64 << 10;

/// What all lanes share.
#[derive(Debug)]
pub(super) struct Shop {
    pub(super) topic: String,
    pub(super) areas: Arc<LiveAreas>,
    pub(super) resolver: Resolver,
    pub(super) sink: Arc<dyn Sink>,
    pub(super) dead_letters: DeadLetters,
    pub(super) holdings: Arc<Holdings>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) retry: RetrySettings,
    pub(super) counters: Arc<ConsumeCounters>,
}

/// A change on its way to the sink.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) change: Change,
    pub(super) open: Open,
}

/// A record that waits for its turn.
#[derive(Debug)]
pub(super) struct Waiting {
    record: OutgoingRecord,
    timestamp: Option<Timestamp>,
    open: Open,
}

/// A record that has been read.
struct Parsed {
    record: OutgoingRecord,
    since: Timestamp,
    timestamp: Option<Timestamp>,
    position: Position,
    open: Open,
    step: Step,
}

/// What a record needs next.
enum Step {
    /// Nothing: this is its outcome.
    End(Outcome),
    /// To be told to the sink, without its body.
    Tell(Change),
    Fetch(Box<Wanted>, ClaimCheck, Shares),
    Examine(Box<Wanted>, BodyBytes),
    Bad(Fault),
}

/// An envelope that may meet an area, and the areas by which that was judged: those in force when it was read.
struct Wanted {
    envelope: Envelope,
    crs: CrsMember,
    areas: Arc<AreaSet>,
}

/// Works through the records of one partition until there are no more.
///
/// # Errors
/// The fault that stops the consumer.
pub(super) async fn run(
    shop: Arc<Shop>,
    records: mpsc::UnboundedReceiver<Waiting>,
    ready: mpsc::Sender<Ready>,
    concurrency: usize,
) -> Result<(), Fault> {
    let incoming = stream::unfold(records, |mut records| async move { records.recv().await.map(|record| (record, records)) });
    let parser = Arc::clone(&shop);
    let parsed = incoming.then(move |record| {
        let shop = Arc::clone(&parser);
        async move { shop.parse(record).await }
    });
    let judging = parsed.map(move |parsed| {
        let shop = Arc::clone(&shop);
        async move { shop.judge(parsed).await }
    });
    let mut judged = std::pin::pin!(judging.buffered(concurrency));
    while let Some(verdict) = judged.next().await {
        // The receiver goes away only when the consumer stops.
        if let Some(change) = verdict?
            && ready.send(change).await.is_err()
        {
            break;
        }
    }
    Ok(())
}

impl Shop {
    /// Takes charge of a record: from here on it ends in an outcome or is counted as unfinished.
    pub(super) fn receive(&self, incoming: IncomingRecord) -> Waiting {
        let IncomingRecord { key, value, headers, timestamp, ticket } = incoming;
        Waiting { record: OutgoingRecord { key, value, headers }, timestamp, open: Open::new(ticket, &self.counters) }
    }

    /// Reads the envelope, filters by bbox and cover, and takes the share that a fetch needs.
    async fn parse(&self, Waiting { record, timestamp, open }: Waiting) -> Parsed {
        let position = position_of(&record, &open, timestamp);
        let mut occurred_at = None;
        let step = match &record.value {
            _ if open.is_fenced() => Err(Fault::new(FaultKind::Fenced, "the partition has been revoked")),
            Some(value) => match Envelope::decode_shared(value) {
                Ok(envelope) => {
                    occurred_at = envelope.occurred_at;
                    self.filter(envelope, position).await
                }
                Err(fault) => Err(fault),
            },
            None => self.tombstone(record.key.as_deref(), position).map(Step::Tell),
        };
        let since = timestamp.or(occurred_at).unwrap_or_else(|| self.clock.now());
        Parsed { record, since, timestamp, position, open, step: step.unwrap_or_else(Step::Bad) }
    }

    fn tombstone(&self, key: Option<&[u8]>, position: Position) -> Result<Change, Fault> {
        let feature_id = key.and_then(|key| std::str::from_utf8(key).ok()).filter(|key| !key.is_empty());
        let feature_id =
            feature_id.ok_or_else(|| Fault::malformed("a record without a value and without a key in UTF-8"))?.to_owned();
        let event_id = tombstone_event_id(&self.topic, &position);
        Ok(Change { feature_id, event_id, version: None, occurred_at: None, position, kind: ChangeKind::Delete })
    }

    async fn filter(&self, envelope: Envelope, position: Position) -> Result<Step, Fault> {
        let areas = self.areas.now();
        let cover = envelope.cover().map_err(|error| Fault::malformed(error.to_string()))?;
        let reach = match &cover {
            Some(cover) => areas.reach_of_cover(cover),
            // Without a bbox, a body is measured rather than believed to have no place, unless it has no vertex.
            None if envelope.vertex_count == Some(0) => Reach::Nowhere,
            None => Reach::Wanted,
        };
        match (envelope.content.clone(), reach) {
            (Content::Deleted, _) => Ok(Step::Tell(change(envelope, position, ChangeKind::Delete))),
            (content, Reach::Elsewhere | Reach::Nowhere) => {
                if let Content::Claim(claim) = content {
                    add(&self.counters.bytes_not_fetched, claim.length);
                }
                let is_elsewhere = reach == Reach::Elsewhere;
                let told = || Step::Tell(change(envelope, position, ChangeKind::Leave));
                Ok(if is_elsewhere { Step::End(Outcome::Discarded) } else { told() })
            }
            (_, Reach::Wanted) if self.holdings.is_outdated(&envelope.feature_id, envelope.version) => {
                Ok(Step::End(Outcome::Stale))
            }
            (Content::Claim(claim), Reach::Wanted) => {
                let crs = judge::crs_of(&envelope)?;
                let applying = self.sink.memory_for(claim.length, envelope.vertex_count);
                let shares = self.resolver.allowance().admit(claim, applying).await?;
                Ok(Step::Fetch(Box::new(Wanted { envelope, crs, areas }), claim, shares))
            }
            (Content::Inline(inline), Reach::Wanted) => {
                let crs = judge::crs_of(&envelope)?;
                Ok(Step::Examine(Box::new(Wanted { envelope, crs, areas }), BodyBytes::Inline(inline.bytes)))
            }
        }
    }

    /// Comes to a verdict: a change for the sink, or `None` when the record has ended.
    async fn judge(&self, parsed: Parsed) -> Result<Option<Ready>, Fault> {
        let Parsed { record, since, timestamp, position, open, step } = parsed;
        if open.is_fenced() {
            return Ok(None);
        }
        let examined = match step {
            Step::End(outcome) => {
                open.end(outcome);
                return Ok(None);
            }
            Step::Tell(change) => Ok(Some(change)),
            Step::Bad(fault) => Err(fault.into()),
            Step::Examine(wanted, body) => self.examine(*wanted, body, position).await.map_err(Failed::from),
            Step::Fetch(wanted, claim, shares) => match self.resolver.resolve(claim, since, shares, open.assignment()).await {
                Ok(held) => self.examine(*wanted, BodyBytes::Fetched(held), position).await.map_err(Failed::from),
                Err(failed) => Err(failed),
            },
        };
        match examined {
            Ok(Some(change)) => Ok(Some(Ready { change, open })),
            Ok(None) => {
                open.end(Outcome::Discarded);
                Ok(None)
            }
            Err(failed) => self.give_up(record, timestamp.map(Timestamp::as_millis), open, failed).await.map(|()| None),
        }
    }

    async fn examine(&self, wanted: Wanted, body: BodyBytes, position: Position) -> Result<Option<Change>, Fault> {
        let is_small = body.bytes().len() <= SMALL_BODY_BYTES;
        let examine = move || {
            let kind = judge::examine(&wanted.envelope, wanted.crs, body, &wanted.areas)?;
            Ok(kind.map(|kind| change(wanted.envelope, position, kind)))
        };
        if is_small {
            return examine();
        }
        tokio::task::spawn_blocking(examine)
            .await
            .unwrap_or_else(|error| Err(Fault::malformed(format!("the body could not be examined: {error}"))))
    }

    /// Carries out what the table says of a fault that no retry has healed.
    async fn give_up(&self, record: OutgoingRecord, timestamp_ms: Option<i64>, open: Open, failed: Failed) -> Result<(), Fault> {
        let fault = &failed.fault;
        let settled = Attempt { failures: u32::MAX, age: std::time::Duration::MAX };
        match next_step(fault.kind, settled, &self.retry) {
            NextStep::DeadLetter => {
                let origin =
                    Origin { topic: self.topic.clone(), partition: open.partition(), offset: open.offset(), timestamp_ms };
                telemetry::dead_lettered(fault, &origin.topic, origin.partition, origin.offset);
                self.dead_letters.set_aside(record, &origin, &failed).await?;
                open.end(Outcome::DeadLettered);
                Ok(())
            }
            NextStep::Drop => Ok(()),
            NextStep::Retry(_) | NextStep::RetryFresh | NextStep::Record | NextStep::Stop => Err(failed.fault),
        }
    }
}

/// Returns where a record stands: a redriven one where it stood at first, so that it undoes nothing newer.
fn position_of(record: &OutgoingRecord, open: &Open, timestamp: Option<Timestamp>) -> Position {
    let here = Position { partition: open.partition(), offset: open.offset(), timestamp };
    redriven_from(&record.headers).unwrap_or(here)
}

fn change(envelope: Envelope, position: Position, kind: ChangeKind) -> Change {
    let Envelope { feature_id, event_id, version, occurred_at, .. } = envelope;
    Change { feature_id, event_id, version, occurred_at, position, kind }
}
