//! What the URL of a store names.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use object_store::{
    BackoffConfig, ObjectStore, RetryConfig,
    aws::{AmazonS3, AmazonS3Builder},
    azure::{MicrosoftAzure, MicrosoftAzureBuilder},
    gcp::{GoogleCloudStorage, GoogleCloudStorageBuilder},
    local::LocalFileSystem,
    memory::InMemory,
    prefix::PrefixStore,
};
use url::Url;

use super::{LocalDirectory, Store, fault_of, http};
use crate::Fault;

/// The place of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Local(PathBuf),
    Memory,
    S3(Url),
    Google(Url),
    Azure(Url),
}

impl Place {
    /// Reads a URL, or a plain path.
    pub(super) fn of(url: &str) -> Result<Self, Fault> {
        if !url.contains("://") {
            return Ok(Self::Local(url.strip_prefix("file:").unwrap_or(url).into()));
        }
        let parsed = Url::parse(url).map_err(|error| Fault::configuration(format!("the store's URL is none: {error}")))?;
        if !parsed.username().is_empty() || parsed.password().is_some() || parsed.query().is_some() {
            return Err(Fault::configuration("a store URL holds no credentials and no query: give them by environment"));
        }
        match parsed.scheme() {
            "file" => {
                let no_path = |()| Fault::configuration(format!("store {url} is no local path"));
                parsed.to_file_path().map(Self::Local).map_err(no_path)
            }
            "memory" => Ok(Self::Memory),
            "s3" => Ok(Self::S3(parsed)),
            "gs" => Ok(Self::Google(parsed)),
            "az" => Ok(Self::Azure(parsed)),
            other => {
                let detail = format!("store scheme {other}: is not known; use file, s3, gs, az or memory");
                Err(Fault::configuration(detail))
            }
        }
    }

    /// Opens the store.
    pub(super) fn open(&self, directory: LocalDirectory, retries: RetryConfig) -> Result<Store, Fault> {
        match self {
            Self::Local(path) => local(path, directory),
            Self::Memory => Ok(Arc::new(InMemory::new())),
            Self::S3(url) => Ok(prefixed(s3(url, retries)?, url)),
            Self::Google(url) => Ok(prefixed(google(url, retries)?, url)),
            Self::Azure(url) => Ok(prefixed(azure(url, retries)?, url)),
        }
    }
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

/// Opens a bucket of S3, or of what speaks like it.
pub(super) fn s3(url: &Url, retries: RetryConfig) -> Result<AmazonS3, Fault> {
    let builder = AmazonS3Builder::from_env().with_url(bucket_url(url)).with_retry(retries);
    let builder = if http::endpoint_is_loopback("AWS_ENDPOINT") { builder.with_allow_http(true) } else { builder };
    built(builder.with_http_connector(http::NoRedirects).build())
}

/// Opens a bucket of Google's.
pub(super) fn google(url: &Url, retries: RetryConfig) -> Result<GoogleCloudStorage, Fault> {
    let builder = GoogleCloudStorageBuilder::from_env().with_url(bucket_url(url)).with_retry(retries);
    built(builder.with_http_connector(http::NoRedirects).build())
}

/// Opens a container of Azure's.
pub(super) fn azure(url: &Url, retries: RetryConfig) -> Result<MicrosoftAzure, Fault> {
    let builder = MicrosoftAzureBuilder::from_env().with_url(bucket_url(url)).with_retry(retries);
    built(builder.with_http_connector(http::NoRedirects).build())
}

fn built<S>(built: object_store::Result<S>) -> Result<S, Fault> {
    built.map_err(|error| Fault::configuration(fault_of(&error).detail))
}

/// Returns the URL without its path, which is applied as a prefix instead.
fn bucket_url(url: &Url) -> String {
    format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default())
}

/// Returns the prefix that all keys of the store stand under.
pub(super) fn prefix(url: &Url) -> &str {
    url.path().trim_matches('/')
}

fn prefixed<S: ObjectStore>(store: S, url: &Url) -> Store {
    match prefix(url) {
        "" => Arc::new(store),
        prefix => Arc::new(PrefixStore::new(store, prefix)),
    }
}

pub(super) fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig { init_backoff: Duration::from_millis(100), max_backoff: Duration::from_secs(5), base: 2.0 },
        max_retries: 3,
        retry_timeout: Duration::from_secs(30),
    }
}
