//! Leftovers: what interrupted puts, start-up checks and ended leases leave behind, and no listing of bodies shows.
//!
//! A local directory keeps the staging file `NAME#N` of a write that was killed; a bucket keeps the parts of an upload that was
//! never completed; a start-up check or a clock that was killed leaves a small object, and each job that was done under a
//! lease two. None of them is a body, and nothing refers to them.

use std::{
    path::{Path as LocalPath, PathBuf},
    time::Duration,
};

use futures::TryStreamExt as _;
use geoclaim_common::{
    Fault, Timestamp,
    lease::LEASES,
    store::{Bucket, CLOCKS, SELF_TESTS, Store, StoreClock, Upload, fault_of},
};
use object_store::{Error, ObjectMeta, ObjectStore as _, ObjectStoreExt as _, path::Path};
use serde::Serialize;

/// Removes leftovers.
#[derive(Debug)]
pub struct Janitor {
    /// The store.
    pub store: Store,
    /// What it lies in.
    pub bucket: Bucket,
    /// Younger ones may belong to something that is still at work.
    pub older_than: Duration,
    /// Jobs whose lease is older are forgotten; `None`: none is. Longer than anything can ask for the job again: the retention
    /// boundary.
    pub leases_older_than: Option<Duration>,
    /// Whether they are removed; otherwise only counted.
    pub delete: bool,
}

/// A leftover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leftover {
    /// A staging file of a local store.
    Staging(PathBuf, u64),
    /// An upload that was never completed.
    Upload(Upload),
    /// An object of a check or a clock.
    Check(Path, u64),
    /// An object of a lease.
    Lease(Path, u64),
}

/// What was found, and removed where that was wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct JanitorReport {
    /// Staging files of a local store.
    pub staging_files: u64,
    /// Uploads that were never completed.
    pub uploads: u64,
    /// Objects of start-up checks and clocks.
    pub checks: u64,
    /// Objects of leases.
    pub leases: u64,
    /// Bytes of all of these but uploads, whose size a bucket does not tell.
    pub bytes: u64,
    /// How many were removed.
    pub deleted: u64,
}

impl Janitor {
    /// Looks for leftovers, tells of each, and removes them where that is wanted.
    ///
    /// # Errors
    /// The store does not answer or refuses. What was removed is.
    pub async fn run(&self, on_leftover: impl Fn(&Leftover)) -> Result<JanitorReport, Fault> {
        let now = StoreClock::new(self.store.clone()).ask().await?;
        let mut report = JanitorReport::default();
        for leftover in self.leftovers(now).await? {
            on_leftover(&leftover);
            report.count(&leftover);
            if self.delete {
                self.remove(&leftover).await?;
                report.deleted += 1;
            }
        }
        Ok(report)
    }

    async fn leftovers(&self, now: Timestamp) -> Result<Vec<Leftover>, Fault> {
        let is_old = |modified: Timestamp| now.since(modified) > self.older_than;
        let mut found = Vec::new();
        if let Some(directory) = self.bucket.directory() {
            staging_files(directory, &is_old, &mut found)
                .map_err(|error| Fault::configuration(format!("{} cannot be read: {error}", directory.display())))?;
        }
        // An upload that does not say when it was begun may have been begun now.
        let uploads = self.bucket.uploads().await?.into_iter().filter(|upload| upload.begun.is_some_and(is_old));
        found.extend(uploads.map(Leftover::Upload));
        for folder in [SELF_TESTS, CLOCKS] {
            let objects = self.objects(folder).await?.into_iter().filter(|object| is_old(modified(object)));
            found.extend(objects.map(|object| Leftover::Check(object.location, object.size)));
        }
        if let Some(older_than) = self.leases_older_than {
            let objects = self.objects(LEASES).await?.into_iter().filter(|object| now.since(modified(object)) > older_than);
            found.extend(objects.map(|object| Leftover::Lease(object.location, object.size)));
        }
        Ok(found)
    }

    async fn objects(&self, folder: &str) -> Result<Vec<ObjectMeta>, Fault> {
        self.store.list(Some(&Path::from(folder))).try_collect().await.map_err(|error| fault_of(&error))
    }

    async fn remove(&self, leftover: &Leftover) -> Result<(), Fault> {
        match leftover {
            Leftover::Staging(path, _) => match std::fs::remove_file(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(Fault::configuration(format!("{} cannot be removed: {error}", path.display())))
                }
                _ => Ok(()),
            },
            Leftover::Upload(upload) => self.bucket.abort(upload).await,
            Leftover::Check(path, _) | Leftover::Lease(path, _) => match self.store.delete(path).await {
                Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(fault_of(&error)),
            },
        }
    }
}

impl JanitorReport {
    fn count(&mut self, leftover: &Leftover) {
        let (count, bytes) = match leftover {
            Leftover::Staging(_, bytes) => (&mut self.staging_files, *bytes),
            Leftover::Upload(_) => (&mut self.uploads, 0),
            Leftover::Check(_, bytes) => (&mut self.checks, *bytes),
            Leftover::Lease(_, bytes) => (&mut self.leases, *bytes),
        };
        *count += 1;
        self.bytes += bytes;
    }
}

fn modified(object: &ObjectMeta) -> Timestamp {
    Timestamp::from_millis(object.last_modified.timestamp_millis())
}

/// Finds the staging files of a local store: `NAME#N`, which `object_store` never lists. Links are not followed.
fn staging_files(folder: &LocalPath, is_old: &impl Fn(Timestamp) -> bool, found: &mut Vec<Leftover>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            staging_files(&entry.path(), is_old, found)?;
        } else if kind.is_file() && is_staging(&entry.file_name().to_string_lossy()) {
            let meta = entry.metadata()?;
            let age = meta.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            if is_old(Timestamp::from_millis(i64::try_from(age.as_millis()).unwrap_or(i64::MAX))) {
                found.push(Leftover::Staging(entry.path(), meta.len()));
            }
        }
    }
    Ok(())
}

fn is_staging(name: &str) -> bool {
    let number = name.rsplit_once('#').map(|(_, number)| number);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_staging_files_are_taken_for_such() {
        for (name, is) in
            [("ab.json#1", true), ("ab.json#23", true), ("ab.json", false), ("a#b.json", false), ("ab.json#", false)]
        {
            assert_eq!(is_staging(name), is, "{name}");
        }
    }
}
