//! Side effects outside any transaction: a mail, an order, a call of somebody else's service.
//!
//! No ledger row commits together with such an effect, so that between doing it and recording it there is always a moment
//! after which nobody knows. What can be done is to record the *intent* first, under a key that comes from the business and
//! not from the delivery; to record the result afterwards; and on redelivery to look whether an effect that was intended has
//! happened, before it is done again:
//!
//! ```text
//! intend (key) ──┬─ first ─────────────────────── perform ── record the result
//!                ├─ intended before ── look ──┬── it has happened ── record the result
//!                │                            ├── it has not ── perform ── record the result
//!                │                            └── nobody can tell ── wait: it hangs
//!                ├─ another is at it ── wait
//!                └─ done ── duplicate
//! ```
//!
//! An effect whose outside takes the key as an idempotency key happens once. One that can be asked by it does, unless a call
//! that was given up with its lease is still on its way when the next worker looks: let leases be longer than calls. One that can be neither
//! asked nor told hangs when its worker dies in that moment, and a person decides: [`sweep`] finds it.
//!
//! `cargo run -p geoclaim-consumer --example side_effects` shows a worker that dies there, and the one that comes after it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use geoclaim_common::{Digest, Fault, FaultKind, telemetry};

use super::{Change, Effect, Features, Sink};
use crate::lease::{Claim, Hanging, Intents, Lease, while_renewed};

/// What is known of an effect that was intended before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It has happened, with this result.
    Done(String),
    /// It has not happened, and nobody is at it.
    NotDone,
    /// Nobody can tell yet.
    Unknown,
}

/// A side effect of a change.
#[async_trait]
pub trait SideEffect: Send + Sync + std::fmt::Debug {
    /// Returns the key of the effect that a change is to have, the same however and whenever the change comes: what the
    /// business calls it, such as `"invoice of parcel 7, version 3"`. `None`: it has none.
    fn key(&self, change: &Change) -> Option<String>;

    /// Does it, and returns what is worth keeping of the result, such as the number that the other side gave it.
    ///
    /// # Errors
    /// [`FaultKind::Rejected`] is the other side's last word and recorded; [`FaultKind::Unavailable`] is tried again, after
    /// [`SideEffect::look`], for it may have been done; anything else stops the consumer.
    async fn perform(&self, key: &str, change: &Change) -> Result<String, Fault>;

    /// Looks whether it has been done.
    ///
    /// # Errors
    /// [`FaultKind::Unavailable`]: it is not known now.
    async fn look(&self, key: &str) -> Result<Seen, Fault>;
}

/// How the result of an effect begins that was refused.
const REFUSED: &str = "refused: ";

/// Has a side effect of each change that has one, once. Duplicates are known by the effect's key, not by the event.
#[derive(Debug)]
pub struct SideEffectSink {
    effect: Arc<dyn SideEffect>,
    intents: Arc<dyn Intents>,
    /// What was done in a batch that failed later: it counts as done when the batch comes again.
    unreported: Mutex<HashMap<Digest, Effect>>,
}

impl SideEffectSink {
    /// Makes a sink that records its intents in `intents`. Their leases must last longer than the worker may stand still
    /// in the midst of an effect.
    pub fn new(effect: Arc<dyn SideEffect>, intents: Arc<dyn Intents>) -> Self {
        Self { effect, intents, unreported: Mutex::default() }
    }

    async fn once(&self, change: &Change, unreported: &mut HashMap<Digest, Effect>) -> Result<(Option<Digest>, Effect), Fault> {
        let Some(key) = self.effect.key(change) else { return Ok((None, Effect::NotHeld)) };
        let job = job_of(&key);
        loop {
            match self.intents.intend(job, &key).await? {
                Claim::Won(lease) => {
                    let done = while_renewed(&self.intents, &lease, self.done(&key, change, &lease)).await;
                    match done {
                        Ok(result) => match self.record(lease, &result).await {
                            // Another has taken it over while this one stood still, and looks.
                            Err(fault) if fault.kind == FaultKind::Fenced => {}
                            recorded => return Ok((Some(job), recorded?)),
                        },
                        // Another has taken it over, and looks.
                        Err(fault) if fault.kind == FaultKind::Fenced => {}
                        Err(fault) => {
                            // So that the next try, which looks first, need not wait for the lease to lapse.
                            let _ = self.intents.release(lease).await;
                            return Err(fault);
                        }
                    }
                }
                Claim::Held => tokio::time::sleep(self.intents.lasts() / 8).await,
                Claim::Committed => return Ok((Some(job), unreported.remove(&job).unwrap_or(Effect::Duplicate))),
            }
        }
    }

    /// Does what was never intended before; of the rest, what has not happened.
    async fn done(&self, key: &str, change: &Change, lease: &Lease) -> Result<String, Fault> {
        if lease.fence() > 1 {
            match self.effect.look(key).await? {
                Seen::Done(result) => return Ok(result),
                Seen::NotDone => {}
                Seen::Unknown => return Err(Fault::unavailable(format!("nobody can tell whether {key:?} has happened"))),
            }
        }
        match self.effect.perform(key, change).await {
            Err(fault) if fault.kind == FaultKind::Rejected => Ok(format!("{REFUSED}{}", fault.one_line())),
            performed => performed,
        }
    }

    /// Records the result. A recording whose answer is lost leaves the intent hanging, and the next try looks.
    async fn record(&self, lease: Lease, result: &str) -> Result<Effect, Fault> {
        self.intents.commit_with(lease, result).await?;
        Ok(result.strip_prefix(REFUSED).map_or(Effect::Applied, |why| Effect::Rejected(why.to_owned())))
    }
}

#[async_trait]
impl Sink for SideEffectSink {
    /// One after the other: a fault leaves those before it done and recorded.
    async fn apply(&self, batch: Arc<Vec<Change>>) -> Result<Vec<Effect>, Fault> {
        let mut unreported = std::mem::take(&mut *self.unreported.lock().unwrap_or_else(PoisonError::into_inner));
        let mut effects = Vec::with_capacity(batch.len());
        for change in batch.iter() {
            match self.once(change, &mut unreported).await {
                Ok(effect) => effects.push(effect),
                Err(fault) => {
                    let done = effects.into_iter().filter(|(_, effect)| *effect != Effect::Duplicate);
                    unreported.extend(done.filter_map(|(job, effect)| Some((job?, effect))));
                    *self.unreported.lock().unwrap_or_else(PoisonError::into_inner) = unreported;
                    return Err(fault);
                }
            }
        }
        Ok(effects.into_iter().map(|(_, effect)| effect).collect())
    }

    /// All changes come here: which have an effect, their keys say.
    async fn features(&self, mark: u64) -> Result<Features, Fault> {
        Ok(Features { mark, ..Features::default() })
    }

    async fn forget(&self, older_than: Duration, most: u32) -> Result<u64, Fault> {
        self.intents.forget(older_than, most).await
    }

    async fn close(&self) -> Result<(), Fault> {
        Ok(())
    }
}

/// What a sweep of hanging intents came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Had happened, and are recorded now.
    pub recorded: Vec<Hanging>,
    /// Have not happened: the redelivery of their change does them. When none is to come, they are a person's to do.
    pub undone: Vec<Hanging>,
    /// Nobody can tell, or another is at it.
    pub unknown: Vec<Hanging>,
}

/// Looks at intents that have hung for longer than `older_than`, at most so many of them, and records those that have
/// happened. It performs nothing, for it has no change to perform.
///
/// # Errors
/// The intents' own. What cannot be looked at is unknown.
pub async fn sweep(effect: &dyn SideEffect, intents: &Arc<dyn Intents>, older_than: Duration, most: u32) -> Result<Swept, Fault> {
    let mut swept = Swept::default();
    for hanging in intents.hanging(older_than, most).await? {
        let Claim::Won(lease) = intents.intend(hanging.job, &hanging.about).await? else {
            swept.unknown.push(hanging);
            continue;
        };
        match effect.look(&hanging.about).await {
            Ok(Seen::Done(result)) => {
                match intents.commit_with(lease, &result).await {
                    Err(fault) if fault.kind == FaultKind::Fenced => swept.unknown.push(hanging),
                    committed => {
                        committed?;
                        swept.recorded.push(hanging);
                    }
                }
                continue;
            }
            Ok(Seen::NotDone) => swept.undone.push(hanging),
            Ok(Seen::Unknown) => swept.unknown.push(hanging),
            Err(fault) => {
                telemetry::retried("look at an intent that hangs", &fault, 1);
                swept.unknown.push(hanging);
            }
        }
        intents.release(lease).await?;
    }
    Ok(swept)
}

fn job_of(key: &str) -> Digest {
    Digest::of(key.as_bytes())
}
