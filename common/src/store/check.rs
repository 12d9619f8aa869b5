//! Whether a store does what it must, asked when a program starts.

use object_store::{Error, ObjectStore as _, ObjectStoreExt as _, PutMode, UpdateVersion, path::Path};

use super::{Store, fault_of};
use crate::{Digest, Fault, FaultKind, key};

/// Asks the store for a key that cannot exist, so that a wrong bucket, endpoint or credential shows at start-up.
///
/// # Errors
/// [`FaultKind::Configuration`] or [`FaultKind::Unavailable`].
pub async fn check(store: &Store) -> Result<(), Fault> {
    // Not HEAD: its answer has no text, and only the text tells a missing bucket from a missing key.
    match store.get(&key::of(&Digest::of(b"geoclaim start-up check"))).await {
        Ok(_) => Ok(()),
        Err(error) => match fault_of(&error) {
            Fault { kind: FaultKind::Missing, .. } => Ok(()),
            fault => Err(Fault::new(fault.kind, format!("the store does not answer as it should: {}", fault.detail))),
        },
    }
}

/// Creates a small object twice, so that a store which takes `If-None-Match` and ignores it shows at start-up: what many
/// writers do at once would not be safe there. The object is removed again.
///
/// # Errors
/// [`FaultKind::Configuration`] when the second create is not refused, or the store cannot be written to.
pub async fn check_creates(store: &Store) -> Result<(), Fault> {
    let key = fresh_key();
    let create = async || store.put_opts(&key, "geoclaim".into(), PutMode::Create.into()).await;
    create().await.map_err(|error| told(&error))?;
    let again = create().await;
    // What is left of it hurts nobody.
    let _ = store.delete(&key).await;
    match again {
        Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(()),
        Err(error) => Err(told(&error)),
        Ok(_) => Err(Fault::configuration(
            "the store takes a conditional create (If-None-Match: *) and ignores it: two writers at once would overwrite each \
             other; use a store that honours it, or a newer version of this one",
        )),
    }
}

/// Exchanges a small object under the version that was seen, twice, so that a store which takes `If-Match` and ignores it
/// shows at start-up, and so does one that has no such condition. The object is removed again.
///
/// # Errors
/// [`FaultKind::Configuration`] when the second exchange, of a version that is no more, is not refused, or when there are
/// none.
pub async fn check_updates(store: &Store) -> Result<(), Fault> {
    let key = fresh_key();
    let put = async |text: &'static str, mode: PutMode| store.put_opts(&key, text.into(), mode.into()).await;
    put("geoclaim", PutMode::Create).await.map_err(|error| told(&error))?;
    let seen = store.head(&key).await.map_err(|error| told(&error))?;
    let seen = UpdateVersion { e_tag: seen.e_tag, version: seen.version };
    let first = put("geoclaim, exchanged", PutMode::Update(seen.clone())).await;
    let second = put("geoclaim, exchanged again", PutMode::Update(seen)).await;
    let _ = store.delete(&key).await;
    match (first, second) {
        (Ok(_), Err(Error::Precondition { .. } | Error::AlreadyExists { .. })) => Ok(()),
        (Ok(_), Ok(_)) => Err(Fault::configuration(
            "the store takes a conditional exchange (If-Match) and ignores it: two writers at once would overwrite each other",
        )),
        (Err(Error::NotImplemented { .. } | Error::NotSupported { .. }), _) => Err(Fault::configuration(
            "the store has no conditional exchange (a local directory has none), so that nothing in it can be overwritten safely: \
             write under other names instead",
        )),
        (Err(error), _) | (_, Err(error)) => Err(told(&error)),
    }
}

/// Folder of the objects that are written to see what a store does.
pub const SELF_TESTS: &str = "self-test";

fn fresh_key() -> Path {
    Path::from(format!("{SELF_TESTS}/{}", uuid::Uuid::now_v7()))
}

fn told(error: &Error) -> Fault {
    let fault = fault_of(error);
    Fault::new(fault.kind, format!("the store does not take what is written: {}", fault.detail))
}
