//! Batches of changes into the sink.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use geoclaim_common::{
    Fault,
    clock::Stopwatch,
    fault::{Attempt, NextStep, next_step},
    kafka::Progress,
    telemetry,
};
use tokio::{sync::mpsc, time::MissedTickBehavior};

use super::lane::Ready;
use crate::{
    ConsumeSettings,
    holdings::Holdings,
    sink::{Effect, Sink},
};

/// How often the sink is given notes and asked for what others have put into it.
const EXCHANGE: Duration = Duration::from_millis(500);

/// How many events of the ledger are forgotten in one transaction.
const FORGOTTEN_AT_ONCE: u32 = 1_000;

/// How long nothing is forgotten once there was nothing more to forget.
const FORGETTING_REST: Duration = Duration::from_secs(60);

/// Applies changes until there are no more, each batch in one transaction of the sink. Offsets advance after it.
///
/// # Errors
/// The fault that stops the consumer.
pub(super) async fn run(
    sink: Arc<dyn Sink>,
    mut ready: mpsc::Receiver<Ready>,
    holdings: Arc<Holdings>,
    settings: ConsumeSettings,
) -> Result<(), Fault> {
    let mut exchange = tokio::time::interval(EXCHANGE);
    exchange.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut forgetting = Forgetting::new(settings.ledger_retention_seconds);
    loop {
        tokio::select! {
            first = ready.recv() => match first {
                Some(first) => apply(&sink, gather(first, &mut ready, &settings).await, &settings).await?,
                None => break,
            },
            // A note that is lost, or a feature that is learnt later, has its next chance soon.
            _ = exchange.tick() => {
                if let Err(fault) = exchange_with(&sink, &holdings).await {
                    telemetry::retried("exchange with the sink", &fault, 1);
                }
                forgetting.go_on(&sink).await;
            }
        }
    }
    remember(&sink, &holdings).await
}

/// Forgets old events of the ledger, a few at a time, so that nothing waits for it.
struct Forgetting {
    retention: Option<Duration>,
    rests_since: Option<Stopwatch>,
}

impl Forgetting {
    fn new(retention_seconds: Option<u64>) -> Self {
        Self { retention: retention_seconds.map(Duration::from_secs), rests_since: None }
    }

    async fn go_on(&mut self, sink: &Arc<dyn Sink>) {
        let Some(retention) = self.retention else { return };
        if self.rests_since.is_some_and(|rest| rest.elapsed() < FORGETTING_REST) {
            return;
        }
        match sink.forget(retention, FORGOTTEN_AT_ONCE).await {
            Ok(count) if count >= u64::from(FORGOTTEN_AT_ONCE) => self.rests_since = None,
            Ok(_) => self.rests_since = Some(Stopwatch::start()),
            Err(fault) => {
                telemetry::retried("forget old events of the ledger", &fault, 1);
                self.rests_since = Some(Stopwatch::start());
            }
        }
    }
}

/// Keeps in the sink what has been discarded, and learns what another process has put into it.
async fn exchange_with(sink: &Arc<dyn Sink>, holdings: &Holdings) -> Result<(), Fault> {
    remember(sink, holdings).await?;
    holdings.learn(sink.features(holdings.mark()).await?);
    Ok(())
}

async fn remember(sink: &Arc<dyn Sink>, holdings: &Holdings) -> Result<(), Fault> {
    match holdings.note() {
        Some(note) => sink.remember(note, holdings.most_note_bytes()).await,
        None => Ok(()),
    }
}

/// Takes what comes within the linger, up to a number of events and of bytes.
async fn gather(first: Ready, ready: &mut mpsc::Receiver<Ready>, settings: &ConsumeSettings) -> Vec<Ready> {
    let deadline = tokio::time::sleep(Duration::from_millis(settings.batch_linger_ms));
    let mut deadline = std::pin::pin!(deadline);
    let mut bytes = first.change.body_bytes();
    let mut batch = vec![first];
    while batch.len() < settings.batch_events && bytes < settings.batch_bytes {
        tokio::select! {
            biased;
            next = ready.recv() => match next {
                Some(next) => {
                    bytes += next.change.body_bytes();
                    batch.push(next);
                }
                None => break,
            },
            () = &mut deadline => break,
        }
    }
    batch
}

async fn apply(sink: &Arc<dyn Sink>, batch: Vec<Ready>, settings: &ConsumeSettings) -> Result<(), Fault> {
    let mut failures = 0;
    let mut batch = batch;
    loop {
        // A revoked partition's work is its new owner's.
        batch.retain(|ready| !ready.open.is_fenced());
        if batch.is_empty() {
            return Ok(());
        }
        let changes: Vec<_> = batch.iter().map(|ready| ready.change.clone()).collect();
        let fault = match sink.apply_with_progress(Arc::new(changes), progress(&batch)).await {
            Ok(effects) => {
                batch.into_iter().zip(effects).for_each(|(ready, effect)| end(ready, &effect));
                return Ok(());
            }
            Err(fault) => fault,
        };
        failures += 1;
        match next_step(fault.kind, Attempt { failures, age: Duration::ZERO }, &settings.retry) {
            NextStep::Retry(wait) => {
                telemetry::retried("apply", &fault, failures);
                tokio::time::sleep(wait).await;
            }
            // A sink that is fenced while the partition is ours: nobody would do this work, so the consumer stops.
            NextStep::Drop | NextStep::RetryFresh | NextStep::DeadLetter | NextStep::Record | NextStep::Stop => {
                return Err(fault);
            }
        }
    }
}

/// Returns how far each partition is worked through once a batch is applied: the records of a partition come in order, each
/// after all before it have ended or are in a batch before.
fn progress(batch: &[Ready]) -> Vec<Progress> {
    let mut partitions: BTreeMap<i32, Progress> = BTreeMap::new();
    for Ready { open, .. } in batch {
        let (partition, next, assignment) = (open.partition(), open.offset() + 1, Arc::clone(open.assignment()));
        partitions.insert(partition, Progress { partition, next, assignment });
    }
    partitions.into_values().collect()
}

fn end(Ready { change, open }: Ready, effect: &Effect) {
    if let Effect::Rejected(why) = effect {
        telemetry::rejected(&change.feature_id, &change.event_id, why);
    }
    open.end(effect.outcome());
}
