//! The object store: built from a URL, used as `Arc<dyn ObjectStore>` as it is.
//!
//! [`open`] knows `file:///dir`, `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix` and `memory://`.
//! Everything is relative to the configured prefix, so that no request leaves it. Credentials come from the
//! environment or the cloud's own chain, never from the URL. HTTP redirects are not followed: a redirect would take a
//! request to a host that nobody configured.

mod bucket;
mod check;
mod clock;
mod fault;
mod http;
mod place;
mod read;
mod s3;

use std::sync::Arc;

use object_store::{ObjectStore, RetryConfig};

use crate::Fault;

pub use bucket::{Bucket, Lifecycle, Upload};
pub use check::{SELF_TESTS, check, check_creates, check_updates};
pub use clock::{CLOCKS, StoreClock};
pub use fault::fault_of;
pub use read::{exists, found, read};

/// A store shared by everything that needs one.
pub type Store = Arc<dyn ObjectStore>;

/// Whether a missing local directory is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalDirectory {
    /// A producer makes it.
    Create,
    /// A consumer expects it, since a missing one is a mistyped one.
    Expect,
}

/// Opens the store that `url` names. A plain path is a local directory.
///
/// Local files are written with fsync. Remote requests are retried by the client three times within 30 seconds; what
/// still fails then comes back as an error, for the caller's own table to decide.
///
/// # Errors
/// [`crate::FaultKind::Configuration`] when the URL, the directory or the environment is wrong.
///
/// ```
/// use geoclaim_common::store::{LocalDirectory, open};
/// assert!(open("memory://", LocalDirectory::Expect).is_ok());
/// assert!(open("http://169.254.169.254/", LocalDirectory::Expect).is_err());
/// ```
pub fn open(url: &str, directory: LocalDirectory) -> Result<Store, Fault> {
    place::Place::of(url)?.open(directory, place::retries())
}

/// Opens the store that `url` names with a client that sends each request once, so that none arrives after its answer was
/// given up: for deletes. The directory of a local store is expected.
///
/// # Errors
/// As [`open`].
pub fn open_without_retries(url: &str) -> Result<Store, Fault> {
    place::Place::of(url)?.open(LocalDirectory::Expect, RetryConfig { max_retries: 0, ..place::retries() })
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;
    use crate::FaultKind;

    fn refused(url: &str) -> String {
        let fault = open(url, LocalDirectory::Expect).map(drop).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Configuration, "{url}");
        fault.detail
    }

    #[test]
    fn what_is_no_store_is_refused_with_a_hint() {
        assert!(refused("https://example.org/bucket").contains("use file, s3, gs, az or memory"));
        assert!(refused("s3://key:secret@bucket/").contains("by environment"));
        assert!(!refused("s3://key:secret@bucket/").contains("secret"));
        assert!(refused("file:///no/such/directory").contains("does not exist"));
    }

    #[tokio::test]
    async fn a_local_directory_is_made_for_a_producer_and_answers() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b");
        let url = Url::from_file_path(&path).unwrap();
        let store = open(url.as_str(), LocalDirectory::Create).unwrap();
        check(&store).await.unwrap();
        check(&open(path.to_str().unwrap(), LocalDirectory::Expect).unwrap()).await.unwrap();
    }
}
