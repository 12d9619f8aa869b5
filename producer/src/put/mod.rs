//! Storing a body before its envelope is published, and relying on it until then.
//!
//! The put is a conditional create; where the body is likely to be there, and where it is large, a HEAD comes first, for a
//! create sends or writes all of it before the store says that the key is taken. `AlreadyExists` and `Precondition` are not
//! believed: stores answer 409 for a conflict with nothing there, and a retry can meet its own write. Only a HEAD that shows
//! the right size counts. An object of another size is half-written or wrong, and is repaired by overwriting it with the same
//! bytes; a compressed one may also have been made by another library or level, and does as well afterwards.
//!
//! A very large body is put in parts, for which stores have no condition: after a HEAD that did not find it, it is written
//! whatever has come meanwhile. That is harmless, since nothing but the same bytes belongs under its key.
//!
//! A key can be referred to again at any time, and a sweep deletes what nothing refers to. So a body older than half the
//! retention boundary is written again, which makes it young; and where sweeps are run, one that somebody else has just
//! written is looked at again after a settle time, for a request to delete what stood there before may still be on its way.
//! What was seen is relied on for a publish deadline and no longer. `tests/suite/protocol` has the model of this.

mod agreed;
mod parts;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use agreed::{Agreed, Agreement};
use geoclaim_common::{
    Body, Fault, FaultKind,
    clock::{Moment, Stopwatch},
    fault::{RetrySettings, pause},
    limits,
    retention::Timing,
    store::{Store, StoreClock, fault_of, found},
    telemetry,
};
use object_store::{Error, ObjectMeta, ObjectStore as _, ObjectStoreExt as _, PutMode, PutPayload};

/// What a put came to. In any case the body was seen in the store with its right size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// The object was created.
    Written,
    /// The object was there.
    Present,
    /// An old object was there and has been overwritten with the same bytes.
    Renewed,
    /// An object of the wrong size was there and has been overwritten.
    Repaired,
}

/// A body that was in the store, and when it was seen there.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// What the put came to.
    pub put: Put,
    at: Moment,
    publish_deadline: Duration,
}

impl Seen {
    /// Tells whether an envelope that is sent now, and is delivered within `delivery` or not at all, still can rely on it.
    pub fn lasts(&self, delivery: Duration) -> bool {
        self.at.elapsed() + delivery <= self.publish_deadline
    }
}

/// How to put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PutSettings {
    /// How a put is tried again.
    pub retry: RetrySettings,
    /// How long it is tried again.
    pub deadline: Duration,
    /// The retention boundary, as far as the publisher knows; a shorter one that a sweep has announced holds instead.
    pub boundary: Duration,
    /// The times of the protocol.
    pub timing: Timing,
}

impl Default for PutSettings {
    fn default() -> Self {
        let timing = Timing::default();
        // No sweep's boundary is shorter.
        Self { retry: RetrySettings::default(), deadline: Duration::from_secs(120), boundary: timing.slack(), timing }
    }
}

/// Puts bodies.
#[derive(Debug)]
pub struct Putter {
    store: Store,
    settings: PutSettings,
    clock: StoreClock,
    agreement: Agreement,
    /// Whether the last body was there already: then the next is likely to be.
    meets_known: AtomicBool,
}

/// What this putter has itself done to an object, so that it knows what others can be doing to it.
#[derive(Clone, Copy, Debug)]
enum Made {
    /// Nothing.
    Found,
    /// Then it was not there, or too young for a sweep, and this putter wrote it.
    Wrote(Moment),
    /// It was old enough for a sweep, or of the wrong size, and this putter wrote it again.
    Rewrote,
}

/// A put on its way.
struct Attempt<'a> {
    body: &'a Body,
    put: Put,
    made: Made,
}

impl Putter {
    /// Makes a putter.
    pub fn new(store: Store, settings: PutSettings) -> Self {
        let clock = StoreClock::new(store.clone());
        Self {
            clock,
            agreement: Agreement::new(settings.boundary, settings.timing),
            store,
            settings,
            meets_known: AtomicBool::new(false),
        }
    }

    /// Stores `body` under its key and returns once it is complete there and can be relied on. Tries again through outages
    /// until the deadline.
    ///
    /// # Errors
    /// [`FaultKind::Unavailable`] when the deadline has passed, [`FaultKind::Configuration`] when the store refuses.
    pub async fn put(&self, body: &Body) -> Result<Seen, Fault> {
        let PutSettings { deadline, retry, .. } = &self.settings;
        let started = Stopwatch::start();
        let mut failures = 0;
        let mut attempt = Attempt { body, put: Put::Present, made: Made::Found };
        loop {
            let fault = match self.attempt(&mut attempt).await {
                Ok(Some(seen)) => return Ok(seen),
                Ok(None) => Fault::unavailable(format!("the store says that {} is there, and it is not", body.claim().key())),
                Err(fault) if fault.kind == FaultKind::Configuration => return Err(fault),
                Err(fault) => fault,
            };
            failures += 1;
            let wait = pause(failures, retry);
            if started.elapsed() + wait > *deadline {
                return Err(Fault::unavailable(format!("body not stored within {} s: {}", deadline.as_secs(), fault.detail)));
            }
            telemetry::retried("put", &fault, failures);
            tokio::time::sleep(wait).await;
        }
    }

    /// Creates the object unless it is there, and looks until it can be relied on; `None` when it is neither created nor
    /// there.
    async fn attempt(&self, attempt: &mut Attempt<'_>) -> Result<Option<Seen>, Fault> {
        attempt.made = Made::Found;
        let looks_first =
            attempt.body.claim().stored_length() >= limits::LOOK_FIRST_BYTES || self.meets_known.load(Ordering::Relaxed);
        let mut found = if looks_first { self.look(attempt.body).await? } else { None };
        if found.is_none() {
            self.create(attempt).await?;
        }
        loop {
            let found = match found.take() {
                Some(found) => Some(found),
                None => self.look(attempt.body).await?,
            };
            let Some((at, meta)) = found else { return Ok(None) };
            let agreed = self.agreement.now(&self.store).await?;
            if self.is_reliable(&meta, &agreed, attempt).await? {
                self.meets_known.store(attempt.put != Put::Written, Ordering::Relaxed);
                return Ok(Some(Seen { put: attempt.put, at, publish_deadline: agreed.publish_deadline }));
            }
        }
    }

    /// Creates the object; one that is there already is no error.
    async fn create(&self, attempt: &mut Attempt<'_>) -> Result<(), Fault> {
        let sent = Moment::now();
        match self.write(attempt.body, PutMode::Create).await {
            Ok(()) => (attempt.made, attempt.put) = (Made::Wrote(sent), Put::Written),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {}
            Err(error) => {
                let fault = fault_of(&error);
                // A create that got no answer may have been done, or may have met an object of any age.
                if fault.kind != FaultKind::Unavailable || self.look(attempt.body).await.ok().flatten().is_none() {
                    return Err(fault);
                }
                attempt.put = Put::Written;
            }
        }
        Ok(())
    }

    /// Judges an object. One that is not reliable as it is has been written again, or waited for, when this returns.
    async fn is_reliable(&self, meta: &ObjectMeta, agreed: &Agreed, attempt: &mut Attempt<'_>) -> Result<bool, Fault> {
        let claim = attempt.body.claim();
        if meta.size != claim.stored_length() {
            telemetry::body_repaired(&claim.key(), meta.size, claim.stored_length());
            self.write(attempt.body, PutMode::Overwrite).await.map_err(|error| fault_of(&error))?;
            (attempt.made, attempt.put) = (Made::Rewrote, Put::Repaired);
            return Ok(false);
        }
        if let Made::Wrote(at) = attempt.made
            && at.elapsed() < agreed.half()
        {
            return Ok(true);
        }
        let looked = Moment::now();
        let age = self.clock.now().await?.since(geoclaim_common::Timestamp::from_millis(meta.last_modified.timestamp_millis()));
        if age > agreed.half() {
            let sent = Moment::now();
            self.write(attempt.body, PutMode::Overwrite).await.map_err(|error| fault_of(&error))?;
            // No sweep can have found it older than the boundary before it was written again.
            let is_young = age + looked.elapsed() < agreed.boundary.saturating_sub(RESOLUTION);
            attempt.made = if is_young { Made::Wrote(sent) } else { Made::Rewrote };
            attempt.put = if attempt.put == Put::Present { Put::Renewed } else { attempt.put };
            return Ok(false);
        }
        let settle = agreed.settle.saturating_add(RESOLUTION);
        if agreed.settle > Duration::ZERO && age < settle {
            tokio::time::sleep(settle.saturating_sub(age)).await;
            return Ok(false);
        }
        Ok(true)
    }

    async fn write(&self, body: &Body, mode: PutMode) -> object_store::Result<()> {
        if body.claim().stored_length() >= limits::PUT_IN_PARTS_BYTES {
            return parts::write(&self.store, body).await;
        }
        let payload = PutPayload::from_bytes(body.stored().clone());
        self.store.put_opts(&body.claim().key(), payload, mode.into()).await.map(drop)
    }

    /// Returns what the store says of the object, and when it was asked.
    async fn look(&self, body: &Body) -> Result<Option<(Moment, ObjectMeta)>, Fault> {
        let at = Moment::now();
        Ok(found(self.store.head(&body.claim().key()).await)?.map(|meta| (at, meta)))
    }
}

/// Many stores tell time in whole seconds, so that an age can be wrong by one.
const RESOLUTION: Duration = Duration::from_secs(1);
