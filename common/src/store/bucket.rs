//! What a bucket knows beyond its objects: when it expires them, what uploads were never completed, and URLs for others.

use std::{
    path::{Path as LocalPath, PathBuf},
    sync::Arc,
    time::Duration,
};

use object_store::{
    path::Path,
    signer::{Method, Signer},
};
use url::Url;

use super::{fault_of, place, place::Place, s3::S3};
use crate::{Fault, Timestamp};

/// When a bucket deletes bodies by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lifecycle {
    /// Never.
    Never,
    /// When they are so old.
    After(Duration),
    /// It does not say, for this reason.
    Unknown(String),
}

/// An upload in parts that was begun and neither completed nor given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// The key that it was for, as the bucket has it.
    pub key: String,
    /// Its id.
    pub id: String,
    /// When it was begun.
    pub begun: Option<Timestamp>,
}

/// The bucket, container or directory that a store lies in.
#[derive(Debug)]
pub struct Bucket(Kind);

#[derive(Debug)]
enum Kind {
    Local(PathBuf),
    Memory,
    S3(S3),
    Other { signer: Arc<dyn Signer>, prefix: String, what: &'static str },
}

impl Bucket {
    /// Opens what lies behind the URL of a store.
    ///
    /// # Errors
    /// As [`super::open`].
    pub fn open(url: &str) -> Result<Self, Fault> {
        let other =
            |signer: Arc<dyn Signer>, url: &Url, what| Kind::Other { signer, prefix: place::prefix(url).to_owned(), what };
        Ok(Self(match Place::of(url)? {
            Place::Local(path) => Kind::Local(path),
            Place::Memory => Kind::Memory,
            Place::S3(url) => Kind::S3(S3::new(place::s3(&url, place::retries())?, place::prefix(&url))?),
            Place::Google(url) => other(Arc::new(place::google(&url, place::retries())?), &url, "Google Cloud Storage"),
            Place::Azure(url) => other(Arc::new(place::azure(&url, place::retries())?), &url, "Azure Blob Storage"),
        }))
    }

    /// Returns the directory of a local store.
    pub fn directory(&self) -> Option<&LocalPath> {
        match &self.0 {
            Kind::Local(path) => Some(path),
            _ => None,
        }
    }

    /// Returns when bodies expire, as the bucket itself says. S3 has an interface for that; the others have not, or only for
    /// those who administer the account.
    pub async fn lifecycle(&self) -> Lifecycle {
        match &self.0 {
            Kind::Local(_) | Kind::Memory => Lifecycle::Never,
            Kind::S3(s3) => s3.lifecycle().await.unwrap_or_else(|fault| Lifecycle::Unknown(fault.detail)),
            Kind::Other { what, .. } => Lifecycle::Unknown(format!("{what} does not tell it to those who read and write")),
        }
    }

    /// Returns the uploads under the store's prefix that were never completed. Only S3 has such.
    ///
    /// # Errors
    /// The bucket does not answer.
    pub async fn uploads(&self) -> Result<Vec<Upload>, Fault> {
        match &self.0 {
            Kind::S3(s3) => s3.uploads().await,
            _ => Ok(Vec::new()),
        }
    }

    /// Gives an upload up. One that is gone is no error.
    ///
    /// # Errors
    /// The bucket does not answer, or refuses.
    pub async fn abort(&self, upload: &Upload) -> Result<(), Fault> {
        match &self.0 {
            Kind::S3(s3) => s3.abort(upload).await,
            _ => Ok(()),
        }
    }

    /// Returns a URL by which anyone can fetch an object for a while, without credentials.
    ///
    /// # Errors
    /// [`crate::FaultKind::Configuration`]: a local store has none, or the credentials cannot sign.
    pub async fn presign(&self, key: &Path, expires_in: Duration) -> Result<Url, Fault> {
        let (signer, prefix): (&dyn Signer, &str) = match &self.0 {
            Kind::Local(_) | Kind::Memory => {
                return Err(Fault::configuration("a local store has no URLs that others could fetch: read the file"));
            }
            Kind::S3(s3) => (s3.signer(), s3.prefix()),
            Kind::Other { signer, prefix, .. } => (signer.as_ref(), prefix),
        };
        let whole = Path::from_iter(Path::from(prefix).parts().chain(key.parts()));
        signer.signed_url(Method::GET, &whole, expires_in).await.map_err(|error| fault_of(&error))
    }
}
