//! Objects that may not be there.

use bytes::Bytes;
use futures::StreamExt as _;
use object_store::{ObjectStoreExt as _, path::Path};

use super::{Store, fault_of};
use crate::{Fault, FaultKind};

/// Returns what a store has answered; `None` when it has no such object.
///
/// # Errors
/// Any other of its errors.
pub fn found<T>(answer: object_store::Result<T>) -> Result<Option<T>, Fault> {
    match answer.map_err(|error| fault_of(&error)) {
        Ok(found) => Ok(Some(found)),
        Err(fault) if fault.kind == FaultKind::Missing => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// Tells whether an object is there.
///
/// # Errors
/// The store's.
pub async fn exists(store: &Store, path: &Path) -> Result<bool, Fault> {
    found(store.head(path).await).map(|meta| meta.is_some())
}

/// Reads an object; `None` when there is none.
///
/// # Errors
/// [`FaultKind::TooLarge`] as soon as it has more bytes than `most_bytes`; the store's.
pub async fn read(store: &Store, path: &Path, most_bytes: u64) -> Result<Option<Bytes>, Fault> {
    let Some(found) = found(store.get(path).await)? else { return Ok(None) };
    let mut pieces = found.into_stream();
    let mut bytes = Vec::new();
    while let Some(piece) = pieces.next().await {
        bytes.extend_from_slice(&piece.map_err(|error| fault_of(&error))?);
        if bytes.len() as u64 > most_bytes {
            return Err(Fault::new(FaultKind::TooLarge, format!("{path} has more than {most_bytes} bytes")));
        }
    }
    Ok(Some(bytes.into()))
}
