//! The object store: built from a URL, used as `Arc<dyn ObjectStore>` as it is.
//!
//! [`open`] knows `file:///dir`, `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix` and `memory://`.
//! Everything is relative to the configured prefix, so that no request leaves it. Credentials come from the
//! environment or the cloud's own chain, never from the URL. HTTP redirects are not followed: a redirect would take a
//! request to a host that nobody configured.

mod check;
mod clock;
mod fault;
mod http;
mod read;

use std::{path::Path, sync::Arc, time::Duration};

use object_store::{
    BackoffConfig, ObjectStore, RetryConfig, aws::AmazonS3Builder, azure::MicrosoftAzureBuilder, gcp::GoogleCloudStorageBuilder,
    local::LocalFileSystem, memory::InMemory, prefix::PrefixStore,
};
use url::Url;

use crate::{Fault, FaultKind};

pub use check::{check, check_creates, check_updates};
pub use clock::{CLOCKS, StoreClock};
pub use fault::fault_of;
pub use read::{found, read};

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
/// [`FaultKind::Configuration`] when the URL, the directory or the environment is wrong.
///
/// ```
/// use geoclaim_common::store::{LocalDirectory, open};
/// assert!(open("memory://", LocalDirectory::Expect).is_ok());
/// assert!(open("http://169.254.169.254/", LocalDirectory::Expect).is_err());
/// ```
pub fn open(url: &str, directory: LocalDirectory) -> Result<Store, Fault> {
    if !url.contains("://") {
        return local(Path::new(url.strip_prefix("file:").unwrap_or(url)), directory);
    }
    let parsed = Url::parse(url).map_err(|error| Fault::configuration(format!("the store's URL is none: {error}")))?;
    if !parsed.username().is_empty() || parsed.password().is_some() || parsed.query().is_some() {
        return Err(Fault::configuration("a store URL holds no credentials and no query: give them by environment"));
    }
    let built: Result<Store, object_store::Error> = match parsed.scheme() {
        "file" => {
            let path = parsed.to_file_path().map_err(|()| Fault::configuration(format!("store {url} is no local path")))?;
            return local(&path, directory);
        }
        "memory" => Ok(Arc::new(InMemory::new())),
        "s3" => {
            let builder = AmazonS3Builder::from_env().with_url(bucket_url(&parsed)).with_retry(retries());
            let builder = if http::endpoint_is_loopback("AWS_ENDPOINT") { builder.with_allow_http(true) } else { builder };
            builder.with_http_connector(http::NoRedirects).build().map(|store| prefixed(store, &parsed))
        }
        "gs" => GoogleCloudStorageBuilder::from_env()
            .with_url(bucket_url(&parsed))
            .with_retry(retries())
            .with_http_connector(http::NoRedirects)
            .build()
            .map(|store| prefixed(store, &parsed)),
        "az" => MicrosoftAzureBuilder::from_env()
            .with_url(bucket_url(&parsed))
            .with_retry(retries())
            .with_http_connector(http::NoRedirects)
            .build()
            .map(|store| prefixed(store, &parsed)),
        other => {
            let detail = format!("store scheme {other}: is not known; use file, s3, gs, az or memory");
            return Err(Fault::configuration(detail));
        }
    };
    built.map_err(|error| Fault::new(FaultKind::Configuration, fault_of(&error).detail))
}

fn local(path: &Path, directory: LocalDirectory) -> Result<Store, Fault> {
    let wrong = |error: &dyn std::fmt::Display| Fault::configuration(format!("store directory {}: {error}", path.display()));
    match directory {
        LocalDirectory::Create => std::fs::create_dir_all(path).map_err(|error| wrong(&error))?,
        LocalDirectory::Expect if path.is_dir() => {}
        LocalDirectory::Expect => return Err(wrong(&"does not exist; is this the directory that was published to?")),
    }
    let store = LocalFileSystem::new_with_prefix(path).map_err(|error| wrong(&error))?;
    Ok(Arc::new(store.with_fsync(true)))
}

/// Returns the URL without its path, which is applied as a prefix instead.
fn bucket_url(url: &Url) -> String {
    format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default())
}

fn prefixed<S: ObjectStore>(store: S, url: &Url) -> Store {
    match url.path().trim_matches('/') {
        "" => Arc::new(store),
        prefix => Arc::new(PrefixStore::new(store, prefix)),
    }
}

fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig { init_backoff: Duration::from_millis(100), max_backoff: Duration::from_secs(5), base: 2.0 },
        max_retries: 3,
        retry_timeout: Duration::from_secs(30),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
