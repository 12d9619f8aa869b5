//! One fetch of a body: streamed, capped, decoded, verified.

mod room;

use std::{fs::File, io::Read as _, ops::Range, time::Duration};

use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use object_store::{GetOptions, GetRange, GetResult, GetResultPayload, ObjectStore as _};
use tokio::sync::mpsc;

use crate::{
    Body, ClaimCheck, Fault, FaultKind, limits,
    store::{Store, fault_of},
};
pub use room::Keeping;
use room::Room;

/// How much of a local file is read at once.
const FILE_CHUNK: usize = 1 << 20;

/// How long any body may take, beside what its length allows.
const LEAST_SECONDS: u64 = 30;

/// The slowest transfer that is waited for.
const SLOWEST_BYTES_PER_SECOND: u64 = 256 << 10;

/// How many pieces of a transfer wait to be digested.
const PIECES_AHEAD: usize = 16;

/// Fetches and verifies once; `None` when nothing was to be kept. Nothing is allocated before the store's own length agrees
/// with the declared one, or, of a compressed body, is no more than the body's.
///
/// # Errors
/// The store's; [`FaultKind::Truncated`], [`FaultKind::Lengthened`], [`FaultKind::Corrupt`] and [`FaultKind::Mismatch`] where
/// what is stored is not what the claim check says; [`FaultKind::Unavailable`] where it cannot be kept.
pub async fn fetch(store: &Store, claim: ClaimCheck, keeping: Keeping<'_>) -> Result<Option<Body>, Fault> {
    let allowed = Duration::from_secs(LEAST_SECONDS + claim.stored_length() / SLOWEST_BYTES_PER_SECOND);
    tokio::time::timeout(allowed, fetch_now(store, claim, keeping))
        .await
        .unwrap_or_else(|_| Err(Fault::unavailable(format!("{} did not come within {} s", claim.key(), allowed.as_secs()))))
}

async fn fetch_now(store: &Store, claim: ClaimCheck, keeping: Keeping<'_>) -> Result<Option<Body>, Fault> {
    let in_ranges = claim.stored_length() >= limits::GET_IN_RANGES_BYTES;
    let range = in_ranges.then_some(GetRange::Bounded(0..limits::RANGE_BYTES));
    let first = store.get_opts(&claim.key(), GetOptions { range, ..GetOptions::default() }).await;
    let first = first.map_err(|error| fault_of(&error))?;
    check_length(&first, claim)?;
    let room = Room::new(claim, keeping)?;
    let e_tag = first.meta.e_tag.clone();
    match first.payload {
        GetResultPayload::File(file, _) => off_thread(move || read_file(file, room, claim)).await,
        GetResultPayload::Stream(pieces) if in_ranges => {
            let rest = ranges(store.clone(), claim, (first.meta.size, e_tag));
            digest_beside(pieces.map(|piece| piece.map_err(|error| fault_of(&error))).chain(rest), room).await
        }
        GetResultPayload::Stream(pieces) if claim.stored_length() >= limits::SPLIT_WORK_BYTES as u64 => {
            digest_beside(pieces.map(|piece| piece.map_err(|error| fault_of(&error))), room).await
        }
        GetResultPayload::Stream(mut pieces) => {
            let mut room = room;
            while let Some(piece) = pieces.next().await {
                room.take(&piece.map_err(|error| fault_of(&error))?)?;
            }
            room.finish()
        }
    }
}

/// Gets the rest of a large body, several ranges of it at once: one connection alone is slow where the store is far away.
fn ranges(store: Store, claim: ClaimCheck, (length, e_tag): (u64, Option<String>)) -> impl Stream<Item = Result<Bytes, Fault>> {
    let starts = (limits::RANGE_BYTES..length).step_by(usize::try_from(limits::RANGE_BYTES).unwrap_or(usize::MAX));
    let gets =
        starts.map(move |start| get_range(store.clone(), claim, start..length.min(start + limits::RANGE_BYTES), e_tag.clone()));
    stream::iter(gets).buffered(limits::RANGES_AT_ONCE)
}

/// Gets one range, of the object that has this tag: one that is exchanged meanwhile is got again as a whole.
async fn get_range(store: Store, claim: ClaimCheck, range: Range<u64>, e_tag: Option<String>) -> Result<Bytes, Fault> {
    let wanted = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
    let options = GetOptions { range: Some(GetRange::Bounded(range)), if_match: e_tag, ..GetOptions::default() };
    let got = store.get_opts(&claim.key(), options).await.map_err(|error| fault_of(&error))?;
    let (mut pieces, mut bytes) = (got.into_stream(), Vec::with_capacity(wanted));
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| fault_of(&error))?;
        if bytes.len() + piece.len() > wanted {
            return Err(Fault::unavailable(format!("the store answers with more of {} than was asked for", claim.key())));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes.into())
}

/// Digests what comes on a thread of its own, so that the transfer does not wait for it.
async fn digest_beside(pieces: impl Stream<Item = Result<Bytes, Fault>>, mut room: Room) -> Result<Option<Body>, Fault> {
    let (sender, mut receiver) = mpsc::channel::<Bytes>(PIECES_AHEAD);
    let digesting = tokio::task::spawn_blocking(move || {
        while let Some(piece) = receiver.blocking_recv() {
            room.take(&piece)?;
        }
        Ok(room)
    });
    let mut pieces = std::pin::pin!(pieces);
    while let Some(piece) = pieces.next().await {
        // Whoever digests has ended because of what came: it says why.
        if sender.send(piece?).await.is_err() {
            break;
        }
    }
    drop(sender);
    let room = digesting.await.unwrap_or_else(|error| Err(Fault::unavailable(format!("the read was given up: {error}"))))?;
    room.finish()
}

fn check_length(result: &GetResult, claim: ClaimCheck) -> Result<(), Fault> {
    let (found, declared) = (result.meta.size, claim.stored_length());
    let kind = match found.cmp(&declared) {
        std::cmp::Ordering::Equal => return Ok(()),
        // Another library or level makes another length of the same body.
        _ if claim.encoded.is_some() && found <= claim.length => return Ok(()),
        std::cmp::Ordering::Less => FaultKind::Truncated,
        std::cmp::Ordering::Greater => FaultKind::Lengthened,
    };
    Err(Fault::new(kind, format!("{} has {found} bytes, {declared} declared", claim.key())))
}

async fn off_thread(read: impl FnOnce() -> Result<Option<Body>, Fault> + Send + 'static) -> Result<Option<Body>, Fault> {
    tokio::task::spawn_blocking(read)
        .await
        .unwrap_or_else(|error| Err(Fault::unavailable(format!("the read was given up: {error}"))))
}

fn read_file(mut file: File, mut room: Room, claim: ClaimCheck) -> Result<Option<Body>, Fault> {
    let mut chunk = vec![0; FILE_CHUNK.min(usize::try_from(claim.length).unwrap_or(FILE_CHUNK).max(1))];
    loop {
        let read = match file.read(&mut chunk) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            read => read.map_err(|error| Fault::unavailable(format!("{}: {error}", claim.key())))?,
        };
        if read == 0 {
            return room.finish();
        }
        room.take(&chunk[..read])?;
    }
}
