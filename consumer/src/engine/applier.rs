//! Batches of changes into the sink.

use std::{sync::Arc, time::Duration};

use geoclaim_common::{
    Fault,
    fault::{Attempt, NextStep, next_step},
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
            }
        }
    }
    remember(&sink, &holdings).await
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
        let fault = match sink.apply(Arc::new(changes)).await {
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

fn end(Ready { change, open }: Ready, effect: &Effect) {
    if let Effect::Rejected(why) = effect {
        telemetry::rejected(&change.feature_id, &change.event_id, why);
    }
    open.end(effect.outcome());
}
