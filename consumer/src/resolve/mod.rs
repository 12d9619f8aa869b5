//! Envelope to verified body.
//!
//! A body is fetched once for all who ask for it at the same time, streamed with a cap, and verified while it comes:
//! length first, then digest. What a fault does next is the common table's decision; this module only carries it out.

mod admit;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use bytes::Bytes;
use geoclaim_common::{
    Body, ClaimCheck, Clock, Digest, Fault, FaultKind, Timestamp,
    clock::Stopwatch,
    fault::{Attempt, NextStep, RetrySettings, next_step},
    fetch::{Keeping, fetch},
    store::Store,
    stream::Assignment,
    telemetry,
};
use tokio::sync::OnceCell;

use crate::{
    dead_letter::Failed,
    report::{ConsumeCounters, add},
};
pub use admit::{Allowance, Shares};

/// A verified body, with what it takes of memory and disk.
#[derive(Debug)]
pub struct Held {
    body: Body,
    claim: ClaimCheck,
    _shares: Shares,
}

/// The bytes of a body, wherever they are held.
#[derive(Clone, Debug)]
pub enum BodyBytes {
    /// In the record itself.
    Inline(Bytes),
    /// Fetched and verified.
    Fetched(Arc<Held>),
}

impl BodyBytes {
    /// Returns the bytes.
    pub fn bytes(&self) -> &Bytes {
        match self {
            Self::Inline(bytes) => bytes,
            Self::Fetched(held) => held.body.bytes(),
        }
    }

    /// Returns the claim check of a fetched body.
    pub fn claim(&self) -> Option<ClaimCheck> {
        match self {
            Self::Inline(_) => None,
            Self::Fetched(held) => Some(held.claim),
        }
    }
}

type Flight = OnceCell<Arc<Held>>;

/// Fetches and verifies bodies.
#[derive(Debug)]
pub struct Resolver {
    store: Store,
    clock: Arc<dyn Clock>,
    retry: RetrySettings,
    allowance: Allowance,
    flights: Mutex<HashMap<Digest, Weak<Flight>>>,
    counters: Arc<ConsumeCounters>,
}

impl Resolver {
    /// Makes a resolver that fetches what is allowed.
    pub fn new(
        store: Store,
        clock: Arc<dyn Clock>,
        (retry, allowance): (RetrySettings, Allowance),
        counters: Arc<ConsumeCounters>,
    ) -> Self {
        Self { store, clock, retry, allowance, flights: Mutex::default(), counters }
    }

    /// Returns what bodies may take.
    pub fn allowance(&self) -> &Allowance {
        &self.allowance
    }

    /// Returns the verified body. `since` is the broker's time of the envelope, by which a missing body is judged.
    ///
    /// # Errors
    /// What is left after the retries that the table grants, and how many they were; [`FaultKind::Fenced`] when the
    /// partition is revoked meanwhile.
    pub async fn resolve(
        &self,
        claim: ClaimCheck,
        since: Timestamp,
        shares: Shares,
        assignment: &Assignment,
    ) -> Result<Arc<Held>, Failed> {
        let flight = self.flight(claim.digest);
        let held = flight
            .get_or_try_init(|| async {
                let body = self.fetch_with_retries(claim, since, assignment).await?;
                add(&self.counters.fetched, 1);
                add(&self.counters.bytes_fetched, claim.stored_length());
                Ok::<_, Failed>(Arc::new(Held { body, claim, _shares: shares }))
            })
            .await?;
        if held.body.claim().length != claim.length {
            let detail = format!("the body has {} bytes, {} declared", held.body.claim().length, claim.length);
            return Err(Fault::new(FaultKind::Mismatch, detail).into());
        }
        Ok(Arc::clone(held))
    }

    /// Fetches and verifies once, without retries, for a person who looks. Nothing is kept, so that any length will do.
    ///
    /// # Errors
    /// Whatever is wrong now.
    pub async fn look(&self, claim: ClaimCheck) -> Result<(), Fault> {
        fetch(&self.store, claim, Keeping::Nothing).await.map(drop)
    }

    /// Joins the flight for this digest, or begins one.
    fn flight(&self, digest: Digest) -> Arc<Flight> {
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(flight) = flights.get(&digest).and_then(Weak::upgrade) {
            return flight;
        }
        flights.retain(|_, flight| flight.strong_count() > 0);
        let flight = Arc::new(Flight::new());
        flights.insert(digest, Arc::downgrade(&flight));
        flight
    }

    async fn fetch_with_retries(&self, claim: ClaimCheck, since: Timestamp, assignment: &Assignment) -> Result<Body, Failed> {
        let waiting = Stopwatch::start();
        let mut failures: HashMap<FaultKind, u32> = HashMap::new();
        loop {
            if assignment.is_revoked() {
                return Err(Fault::new(FaultKind::Fenced, "the partition has been revoked").into());
            }
            let keeping = self.allowance.spool_for(claim).map_or(Keeping::Memory, Keeping::File);
            let fault = match fetch(&self.store, claim, keeping).await {
                Ok(Some(body)) => return Ok(body),
                Ok(None) => Fault::unavailable("nothing was kept"),
                Err(fault) => fault,
            };
            let count = failures.entry(fault.kind).or_default();
            *count += 1;
            // A clock that is ahead must not make an envelope fresh for ever.
            let age = self.clock.now().since(since).max(waiting.elapsed());
            let wait = match next_step(fault.kind, Attempt { failures: *count, age }, &self.retry) {
                NextStep::Retry(wait) => wait,
                NextStep::RetryFresh => Duration::ZERO,
                NextStep::DeadLetter | NextStep::Record | NextStep::Drop | NextStep::Stop => {
                    return Err(Failed { fault, attempts: failures.values().sum() });
                }
            };
            telemetry::retried("fetch", &fault, *count);
            tokio::time::sleep(wait).await;
        }
    }
}
