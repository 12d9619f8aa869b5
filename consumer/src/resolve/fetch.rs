//! One fetch: streamed, capped, verified.

use std::{fs::File, io::Read as _, time::Duration};

use bytes::Bytes;
use futures::StreamExt as _;
use geoclaim_common::{
    Body, ClaimCheck, Fault, FaultKind,
    body::Verifier,
    store::{Store, fault_of},
};
use object_store::{GetResult, GetResultPayload, ObjectStoreExt as _};

/// How much of a local file is read at once.
const FILE_CHUNK: usize = 1 << 20;

/// How long any body may take, beside what its length allows.
const LEAST_SECONDS: u64 = 30;

/// The slowest transfer that is waited for.
const SLOWEST_BYTES_PER_SECOND: u64 = 256 << 10;

/// Fetches and verifies once. Nothing is allocated before the store's own length agrees with the declared one.
pub(super) async fn fetch(store: &Store, claim: ClaimCheck) -> Result<Body, Fault> {
    let allowed = Duration::from_secs(LEAST_SECONDS + claim.length / SLOWEST_BYTES_PER_SECOND);
    tokio::time::timeout(allowed, fetch_now(store, claim))
        .await
        .unwrap_or_else(|_| Err(Fault::unavailable(format!("{} did not come within {} s", claim.key(), allowed.as_secs()))))
}

async fn fetch_now(store: &Store, claim: ClaimCheck) -> Result<Body, Fault> {
    let result = store.get(&claim.key()).await.map_err(|error| fault_of(&error))?;
    check_length(&result, claim)?;
    match result.payload {
        GetResultPayload::File(file, _) => tokio::task::spawn_blocking(move || read_file(file, claim))
            .await
            .unwrap_or_else(|error| Err(Fault::unavailable(format!("the read was given up: {error}")))),
        GetResultPayload::Stream(mut stream) => {
            let mut verifier = Verifier::new(claim);
            let mut bytes = room(claim);
            while let Some(piece) = stream.next().await {
                let piece = piece.map_err(|error| fault_of(&error))?;
                verifier.update(&piece)?;
                bytes.extend_from_slice(&piece);
            }
            verifier.finish(Bytes::from(bytes))
        }
    }
}

fn check_length(result: &GetResult, claim: ClaimCheck) -> Result<(), Fault> {
    let found = result.meta.size;
    let kind = match found.cmp(&claim.length) {
        std::cmp::Ordering::Equal => return Ok(()),
        std::cmp::Ordering::Less => FaultKind::Truncated,
        std::cmp::Ordering::Greater => FaultKind::Lengthened,
    };
    Err(Fault::new(kind, format!("{} has {found} bytes, {} declared", claim.key(), claim.length)))
}

fn read_file(mut file: File, claim: ClaimCheck) -> Result<Body, Fault> {
    let mut verifier = Verifier::new(claim);
    let mut bytes = room(claim);
    loop {
        let start = bytes.len();
        let read = (&mut file).take(FILE_CHUNK as u64).read_to_end(&mut bytes);
        read.map_err(|error| Fault::unavailable(format!("{}: {error}", claim.key())))?;
        if bytes.len() == start {
            return verifier.finish(Bytes::from(bytes));
        }
        verifier.update(&bytes[start..])?;
    }
}

/// Makes room for the body, whose length is within the limit and agrees with the store's.
fn room(claim: ClaimCheck) -> Vec<u8> {
    Vec::with_capacity(usize::try_from(claim.length).unwrap_or(0))
}
