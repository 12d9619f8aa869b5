//! Follows the file of areas while a consumer runs.

use std::{path::Path, sync::Arc, time::Duration};

use crate::aoi::{AreaError, AreaSet, LiveAreas, parse_areas};

/// How often the file is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// How many looks in a row must find a file the same that is being written in place, before it is read.
const STILL_LOOKS: u32 = 2;

/// What tells one content of a file from another without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    /// Compared, and never read as a time.
    modified: String,
    length: u64,
    file: u64,
}

/// What became of a new file.
#[derive(Debug)]
pub enum Reload {
    /// So many areas are in force now.
    Loaded(usize),
    /// It is no good or cannot be read, and the areas from before stay in force.
    Kept(String),
}

/// Puts the areas of a file in force each time that the file has changed, and tells what became of it. Never returns.
///
/// A file that takes the place of another at once (by a rename) is read at once; one that is written in place is read
/// when it has been still for a moment. Either way the areas are exchanged as a whole, once all of them are good.
pub async fn watch(path: &Path, areas: Arc<LiveAreas>, tell: impl Fn(Reload)) {
    let mut loaded = stamp(path).await;
    let mut seen = (loaded.clone(), 0);
    loop {
        tokio::time::sleep(LOOK).await;
        let now = stamp(path).await;
        seen = if seen.0 == now { (now, seen.1 + 1) } else { (now, 0) };
        let is_another = seen.0.as_ref().map(|now| now.file) != loaded.as_ref().map(|loaded| loaded.file);
        let is_still = seen.1 >= STILL_LOOKS || is_another && seen.0.is_some();
        if seen.0 == loaded || !is_still {
            continue;
        }
        match read(path, seen.0.as_ref()).await {
            Read::Areas(set) => {
                let count = set.all().ids().len();
                areas.replace(*set);
                tell(Reload::Loaded(count));
            }
            Read::NoGood(why) => tell(Reload::Kept(why)),
            Read::Moving => continue,
        }
        loaded = seen.0.clone();
    }
}

enum Read {
    Areas(Box<AreaSet>),
    NoGood(String),
    /// It changed while it was read.
    Moving,
}

async fn read(path: &Path, expected: Option<&Stamp>) -> Read {
    let text = tokio::fs::read(path).await;
    if stamp(path).await.as_ref() != expected {
        return Read::Moving;
    }
    let text = match text {
        Ok(text) => text,
        Err(error) => return Read::NoGood(error.to_string()),
    };
    let parse = move || parse_areas(&text).map(AreaSet::new);
    match tokio::task::spawn_blocking(parse).await {
        Ok(Ok(set)) => Read::Areas(Box::new(set)),
        Ok(Err(error)) => Read::NoGood(AreaError::to_string(&error)),
        Err(error) => Read::NoGood(error.to_string()),
    }
}

async fn stamp(path: &Path) -> Option<Stamp> {
    let facts = tokio::fs::metadata(path).await.ok()?;
    #[cfg(unix)]
    let file = std::os::unix::fs::MetadataExt::ino(&facts);
    #[cfg(not(unix))]
    let file = 0;
    Some(Stamp { modified: format!("{:?}", facts.modified().ok()), length: facts.len(), file })
}
