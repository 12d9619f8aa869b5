//! Envelope to verified body.
//!
//! A body is fetched once for all who ask for it at the same time, streamed with a cap, and verified while it comes:
//! length first, then digest. What a fault does next is the common table's decision; this module only carries it out.

mod fetch;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use bytes::Bytes;
use geoclaim_common::{
    Body, ClaimCheck, Clock, Digest, Fault, FaultKind, Timestamp,
    budget::{Budget, Share},
    clock::Stopwatch,
    fault::{Attempt, NextStep, RetrySettings, next_step},
    store::Store,
    stream::Assignment,
    telemetry,
};
use tokio::sync::OnceCell;

use crate::{
    dead_letter::Failed,
    report::{ConsumeCounters, add},
    settings::cost_of_a_body,
};

/// A body in memory, with its share of the budget.
#[derive(Debug)]
pub struct Held {
    body: Body,
    _share: Share,
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
            Self::Fetched(held) => Some(held.body.claim()),
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
    most_bytes: u64,
    budget: Budget,
    flights: Mutex<HashMap<Digest, Weak<Flight>>>,
    counters: Arc<ConsumeCounters>,
}

impl Resolver {
    /// Makes a resolver that fetches bodies of up to `most_bytes`.
    pub fn new(
        store: Store,
        clock: Arc<dyn Clock>,
        (retry, most_bytes, budget): (RetrySettings, u64, Budget),
        counters: Arc<ConsumeCounters>,
    ) -> Self {
        Self { store, clock, retry, most_bytes, budget, flights: Mutex::default(), counters }
    }

    /// Checks the declared length and waits for its share of the budget. Shares are taken in the order of the records,
    /// so that the first of them can always go on.
    ///
    /// # Errors
    /// [`FaultKind::TooLarge`], before anything is fetched or allocated: the body is above the limit, or above the
    /// whole budget.
    pub async fn admit(&self, claim: ClaimCheck, vertex_count: Option<u64>) -> Result<Share, Fault> {
        let too_large = |most: u64, of: &str| {
            Fault::new(FaultKind::TooLarge, format!("body of {} bytes declared, {most} at most by {of}", claim.length))
        };
        if claim.length > self.most_bytes {
            return Err(too_large(self.most_bytes, "the limit for one body"));
        }
        if claim.length > self.budget.all_bytes() {
            return Err(too_large(self.budget.all_bytes(), "the memory budget"));
        }
        Ok(self.budget.take(cost_of_a_body(claim.length, vertex_count)).await)
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
        share: Share,
        assignment: &Assignment,
    ) -> Result<Arc<Held>, Failed> {
        let flight = self.flight(claim.digest);
        let held = flight
            .get_or_try_init(|| async {
                let body = self.fetch_with_retries(claim, since, assignment).await?;
                add(&self.counters.fetched, 1);
                add(&self.counters.bytes_fetched, claim.length);
                Ok::<_, Failed>(Arc::new(Held { body, _share: share }))
            })
            .await?;
        if held.body.claim().length != claim.length {
            let detail = format!("the body has {} bytes, {} declared", held.body.claim().length, claim.length);
            return Err(Fault::new(FaultKind::Mismatch, detail).into());
        }
        Ok(Arc::clone(held))
    }

    /// Fetches and verifies once, without retries, for a person who looks.
    ///
    /// # Errors
    /// Whatever is wrong now.
    pub async fn look(&self, claim: ClaimCheck) -> Result<(), Fault> {
        let _share = self.admit(claim, None).await?;
        fetch::fetch(&self.store, claim).await.map(drop)
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
            let fault = match fetch::fetch(&self.store, claim).await {
                Ok(body) => return Ok(body),
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
