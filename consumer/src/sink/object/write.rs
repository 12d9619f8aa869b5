//! An output into the store: created, found, or exchanged under the version that was seen.

use std::time::Duration;

use futures::StreamExt as _;
use geoclaim_common::{
    Fault, FaultKind,
    store::{Store, fault_of, found},
};
use object_store::{Error, ObjectStore as _, ObjectStoreExt as _, PutMode, UpdateVersion, path::Path};

use super::{
    Existing,
    job::Job,
    output::{CLIPPED, Output, REFUSED, Sealed},
    pieces::Pieces,
};

/// How often is tried what others change meanwhile.
const TURNS: u32 = 5;

/// Pause before the second turn.
const PAUSE: Duration = Duration::from_millis(20);

/// What a write came to. Either way a whole output of the job was seen in the store, or acknowledged by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Write {
    Written,
    Present,
}

/// What stands under a name.
struct Found {
    /// It is what was expected, byte for byte.
    is_same: bool,
    version: UpdateVersion,
}

/// Writes an output, unless one stands there, and reads back what stands there afterwards.
///
/// # Errors
/// [`FaultKind::Rejected`]: what stands under the job's key is no whole output of this job, and is not to be exchanged.
pub(super) async fn write(store: &Store, job: &Job, output: &Output, existing: Existing) -> Result<Write, Fault> {
    let path = job.path(output.ending());
    let mut mode = PutMode::Create;
    for turn in 0..TURNS {
        let (answer, done) = match store.put_opts(&path, output.pieces.payload(), mode.into()).await {
            Ok(_) => (None, Write::Written),
            Err(error) if is_refusal(&error) => (None, Write::Present),
            // A write that got no answer may have been done.
            Err(error) if fault_of(&error).kind == FaultKind::Unavailable => (Some(fault_of(&error)), Write::Written),
            Err(error) => return Err(fault_of(&error)),
        };
        mode = match (compare(store, &path, &output.pieces).await?, answer) {
            (Some(found), _) if found.is_same => return Ok(done),
            (Some(_), _) if existing == Existing::Skip => return left_alone(store, &path, job).await,
            (Some(found), _) => PutMode::Update(found.version),
            (None, Some(fault)) => return Err(fault),
            // A conflict with nothing there.
            (None, None) => PutMode::Create,
        };
        tokio::time::sleep(PAUSE * turn).await;
    }
    Err(Fault::unavailable(format!("{path} is being changed by others")))
}

/// Tells whether a store has refused a conditional write because of what is, or was, there.
fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Precondition { .. } | Error::AlreadyExists { .. } | Error::NotFound { .. })
}

async fn left_alone(store: &Store, path: &Path, job: &Job) -> Result<Write, Fault> {
    if is_whole(store, path, job).await? {
        return Ok(Write::Present);
    }
    let what = format!("{path} is there and is no whole output of its job");
    let advice = "look at it, then write beside it (--generation NAME) or, where the store can, over it (--existing overwrite)";
    Err(Fault::new(FaultKind::Rejected, format!("{what}: {advice}")))
}

/// Tells whether a whole output of a job is there, and whether it says that there is none.
pub(super) async fn look(store: &Store, job: &Job) -> Result<Option<&'static str>, Fault> {
    for ending in [CLIPPED, REFUSED] {
        if is_whole(store, &job.path(ending), job).await? {
            return Ok(Some(ending));
        }
    }
    Ok(None)
}

/// Compares what stands under a name with what is expected, in memory that does not grow with it.
async fn compare(store: &Store, path: &Path, expected: &Pieces) -> Result<Option<Found>, Fault> {
    let Some(found) = found(store.get(path).await)? else { return Ok(None) };
    let version = UpdateVersion { e_tag: found.meta.e_tag.clone(), version: found.meta.version.clone() };
    let mut is_same = found.meta.size == expected.len() as u64;
    let (mut pieces, mut rest) = (found.into_stream(), expected.iter());
    let mut wanted: &[u8] = &[];
    while is_same && let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| fault_of(&error))?;
        let mut piece = &piece[..];
        while is_same && !piece.is_empty() {
            if wanted.is_empty() {
                match rest.next() {
                    Some(next) => wanted = next,
                    None => is_same = false,
                }
                continue;
            }
            let common = wanted.len().min(piece.len());
            is_same = wanted[..common] == piece[..common];
            (wanted, piece) = (&wanted[common..], &piece[common..]);
        }
    }
    Ok(Some(Found { is_same, version }))
}

/// Tells whether a whole output of a job stands under a name.
async fn is_whole(store: &Store, path: &Path, job: &Job) -> Result<bool, Fault> {
    let Some(found) = found(store.get(path).await)? else { return Ok(false) };
    let (mut pieces, mut sealed) = (found.into_stream(), Sealed::default());
    while let Some(piece) = pieces.next().await {
        sealed.take(&piece.map_err(|error| fault_of(&error))?);
    }
    Ok(sealed.finish(job))
}
