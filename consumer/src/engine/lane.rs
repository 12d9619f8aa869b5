//! One partition's records, from receipt to verdict.
//!
//! Records of a partition are resolved concurrently and judged in order; partitions do not wait for each other. Shares
//! of the budget are taken in order before a fetch begins, so the first record can always go on.

use std::sync::Arc;

use futures::{StreamExt, stream};
use geoclaim_common::{
    ClaimCheck, Clock, Envelope, Fault, FaultKind, Timestamp,
    budget::Share,
    envelope::Content,
    fault::{Attempt, NextStep, RetrySettings, next_step},
    stream::{IncomingRecord, OutgoingRecord},
    telemetry,
};
use tokio::sync::mpsc;

use super::judge;
use crate::{
    aoi::AreaIndex,
    dead_letter::{DeadLetters, Origin},
    report::{ConsumeCounters, Open, Outcome, add},
    resolve::{BodyBytes, Resolver},
    sink::Change,
};

/// Bodies from this length on are examined off the async threads.
const SMALL_BODY_BYTES: usize = 64 << 10;

/// What all lanes share.
#[derive(Debug)]
pub(super) struct Shop {
    pub(super) topic: String,
    pub(super) index: Arc<AreaIndex>,
    pub(super) resolver: Resolver,
    pub(super) dead_letters: DeadLetters,
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
    timestamp_ms: Option<i64>,
    open: Open,
    step: Step,
}

/// What a record needs next.
enum Step {
    Discard(Option<ClaimCheck>),
    Fetch(Envelope, ClaimCheck, Share),
    Examine(Envelope, BodyBytes),
    Bad(Fault),
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
        let decoded = match &record.value {
            _ if open.is_fenced() => Err(Fault::new(FaultKind::Fenced, "the partition has been revoked")),
            Some(value) => Envelope::decode_shared(value),
            None => Err(Fault::malformed("a record without a value: deletions are not applied")),
        };
        let since =
            timestamp.or(decoded.as_ref().ok().and_then(|envelope| envelope.occurred_at)).unwrap_or_else(|| self.clock.now());
        let step = match decoded {
            Ok(envelope) => self.filter(envelope).await.unwrap_or_else(Step::Bad),
            Err(fault) => Step::Bad(fault),
        };
        Parsed { record, since, timestamp_ms: timestamp.map(Timestamp::as_millis), open, step }
    }

    async fn filter(&self, envelope: Envelope) -> Result<Step, Fault> {
        let cover = envelope.cover().map_err(|error| Fault::malformed(error.to_string()))?;
        let misses = match &cover {
            Some(cover) => !self.index.meets_cover(cover),
            // Without a bbox, a body is measured rather than believed to have no place, unless it has no vertex.
            None => envelope.vertex_count == Some(0),
        };
        match envelope.content.clone() {
            Content::Claim(claim) if misses => Ok(Step::Discard(Some(claim))),
            Content::Inline(_) if misses => Ok(Step::Discard(None)),
            Content::Claim(claim) => {
                judge::check_crs(&envelope)?;
                let share = self.resolver.admit(claim, envelope.vertex_count).await?;
                Ok(Step::Fetch(envelope, claim, share))
            }
            Content::Inline(inline) => {
                judge::check_crs(&envelope)?;
                Ok(Step::Examine(envelope, BodyBytes::Inline(inline.bytes)))
            }
        }
    }

    /// Comes to a verdict: a change for the sink, or `None` when the record has ended.
    async fn judge(&self, parsed: Parsed) -> Result<Option<Ready>, Fault> {
        let Parsed { record, since, timestamp_ms, open, step } = parsed;
        if open.is_fenced() {
            return Ok(None);
        }
        let examined = match step {
            Step::Discard(claim) => {
                add(&self.counters.bytes_not_fetched, claim.map_or(0, |claim| claim.length));
                open.end(Outcome::Discarded);
                return Ok(None);
            }
            Step::Bad(fault) => Err(fault),
            Step::Examine(envelope, body) => self.examine(envelope, body).await,
            Step::Fetch(envelope, claim, share) => match self.resolver.resolve(claim, since, share, open.assignment()).await {
                Ok(held) => self.examine(envelope, BodyBytes::Fetched(held)).await,
                Err(fault) => Err(fault),
            },
        };
        match examined {
            Ok(Some(change)) => Ok(Some(Ready { change, open })),
            Ok(None) => {
                open.end(Outcome::Discarded);
                Ok(None)
            }
            Err(fault) => self.give_up(record, timestamp_ms, open, fault).await.map(|()| None),
        }
    }

    async fn examine(&self, envelope: Envelope, body: BodyBytes) -> Result<Option<Change>, Fault> {
        let index = Arc::clone(&self.index);
        if body.bytes().len() <= SMALL_BODY_BYTES {
            return judge::examine(&envelope, body, &index);
        }
        let examine = move || judge::examine(&envelope, body, &index);
        tokio::task::spawn_blocking(examine)
            .await
            .unwrap_or_else(|error| Err(Fault::malformed(format!("the body could not be examined: {error}"))))
    }

    /// Carries out what the table says of a fault that no retry has healed.
    async fn give_up(&self, record: OutgoingRecord, timestamp_ms: Option<i64>, open: Open, fault: Fault) -> Result<(), Fault> {
        let settled = Attempt { failures: u32::MAX, age: std::time::Duration::MAX };
        match next_step(fault.kind, settled, &self.retry) {
            NextStep::DeadLetter => {
                let origin =
                    Origin { topic: self.topic.clone(), partition: open.partition(), offset: open.offset(), timestamp_ms };
                telemetry::dead_lettered(&fault, &origin.topic, origin.partition, origin.offset);
                self.dead_letters.set_aside(record, &origin, &fault).await?;
                open.end(Outcome::DeadLettered);
                Ok(())
            }
            NextStep::Drop => Ok(()),
            NextStep::Retry(_) | NextStep::RetryFresh | NextStep::Record | NextStep::Stop => Err(fault),
        }
    }
}
