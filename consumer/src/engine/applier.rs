//! Batches of changes into the sink.

use std::{sync::Arc, time::Duration};

use geoclaim_common::{
    Fault,
    fault::{Attempt, NextStep, next_step},
    telemetry,
};
use tokio::sync::mpsc;

use super::lane::Ready;
use crate::{
    ConsumeSettings,
    sink::{Effect, Sink},
};

/// Applies changes until there are no more, each batch in one transaction of the sink. Offsets advance after it.
///
/// # Errors
/// The fault that stops the consumer.
pub(super) async fn run(sink: Arc<dyn Sink>, mut ready: mpsc::Receiver<Ready>, settings: ConsumeSettings) -> Result<(), Fault> {
    while let Some(first) = ready.recv().await {
        let batch = gather(first, &mut ready, &settings).await;
        apply(&sink, batch, &settings).await?;
    }
    Ok(())
}

/// Takes what comes within the linger, up to a number of events and of bytes.
async fn gather(first: Ready, ready: &mut mpsc::Receiver<Ready>, settings: &ConsumeSettings) -> Vec<Ready> {
    let deadline = tokio::time::sleep(Duration::from_millis(settings.batch_linger_ms));
    let mut deadline = std::pin::pin!(deadline);
    let mut bytes = first.change.body.bytes().len() as u64;
    let mut batch = vec![first];
    while batch.len() < settings.batch_events && bytes < settings.batch_bytes {
        tokio::select! {
            biased;
            next = ready.recv() => match next {
                Some(next) => {
                    bytes += next.change.body.bytes().len() as u64;
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
