//! Storing a body before its envelope is published.
//!
//! The put is a conditional create. `AlreadyExists` and `Precondition` are not believed: stores answer 409 for a
//! conflict with nothing there, and a retry can meet its own write. Only a HEAD that shows the right size counts. An
//! object of another size is half-written or wrong, and is repaired by overwriting it with the same bytes.

use std::time::Duration;

use geoclaim_common::{
    Body, Fault, FaultKind,
    clock::Stopwatch,
    fault::{RetrySettings, pause},
    store::{Store, fault_of, found},
    telemetry,
};
use object_store::ObjectStore as _;
use object_store::{Error, ObjectStoreExt as _, PutMode, PutPayload};

/// What a put came to. Either way the body was seen in the store with its right size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// The object was created.
    Written,
    /// The object was there.
    Present,
    /// An object of the wrong size was there and has been overwritten.
    Repaired,
}

/// Stores `body` under its key and returns once it is complete. Tries again through outages until `deadline`.
///
/// # Errors
/// [`FaultKind::Unavailable`] when the deadline has passed, [`FaultKind::Configuration`] when the store refuses.
pub async fn put(store: &Store, body: &Body, retry: &RetrySettings, deadline: Duration) -> Result<Put, Fault> {
    let started = Stopwatch::start();
    let mut failures = 0;
    loop {
        let fault = match attempt(store, body).await {
            Ok(Some(put)) => return Ok(put),
            Ok(None) => Fault::unavailable(format!("the store says that {} is there, and it is not", body.claim().key())),
            Err(fault) if fault.kind == FaultKind::Configuration => return Err(fault),
            Err(fault) => fault,
        };
        failures += 1;
        let wait = pause(failures, retry);
        if started.elapsed() + wait > deadline {
            return Err(Fault::unavailable(format!("body not stored within {} s: {}", deadline.as_secs(), fault.detail)));
        }
        telemetry::retried("put", &fault, failures);
        tokio::time::sleep(wait).await;
    }
}

/// Puts once; `None` when the object is neither created nor there.
async fn attempt(store: &Store, body: &Body) -> Result<Option<Put>, Fault> {
    let key = body.claim().key();
    let payload = || PutPayload::from_bytes(body.bytes().clone());
    match store.put_opts(&key, payload(), PutMode::Create.into()).await {
        Ok(_) => return confirmed(store, body, Put::Written).await,
        Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {}
        // A create that got no answer may have been done.
        Err(error) if fault_of(&error).kind == FaultKind::Unavailable => {
            return match confirmed(store, body, Put::Written).await {
                Ok(Some(put)) => Ok(Some(put)),
                _ => Err(fault_of(&error)),
            };
        }
        Err(error) => return Err(fault_of(&error)),
    }
    match size(store, body).await? {
        None => Ok(None),
        Some(size) if size == body.claim().length => Ok(Some(Put::Present)),
        Some(size) => {
            telemetry::body_repaired(&key, size, body.claim().length);
            store.put_opts(&key, payload(), PutMode::Overwrite.into()).await.map_err(|error| fault_of(&error))?;
            confirmed(store, body, Put::Repaired).await
        }
    }
}

/// Looks whether the body is there with its right size.
async fn confirmed(store: &Store, body: &Body, put: Put) -> Result<Option<Put>, Fault> {
    Ok(size(store, body).await?.filter(|size| *size == body.claim().length).map(|_| put))
}

async fn size(store: &Store, body: &Body) -> Result<Option<u64>, Fault> {
    Ok(found(store.head(&body.claim().key()).await)?.map(|meta| meta.size))
}
