//! Leases that are intents, in a database beside a ledger. Those of [`geoclaim_common::lease`] are named here too.

mod sql;

use std::time::Duration;

use async_trait::async_trait;
use geoclaim_common::{Digest, Fault};

pub use geoclaim_common::lease::{Claim, Lease, Leases, StoreLeases, batch, while_renewed};
pub use sql::{PostgresLeases, SqliteLeases};

/// Leases that are kept with what they are about and what came of it, so that they are intents: see
/// [`crate::sink::side_effect`].
#[async_trait]
pub trait Intents: Leases {
    /// As [`Leases::claim`], and says what the job is about when it is claimed first. A fence above 1 tells that somebody
    /// has intended the same before, and that nothing is known of what came of it.
    ///
    /// # Errors
    /// As [`Leases::claim`].
    async fn intend(&self, job: Digest, about: &str) -> Result<Claim, Fault>;

    /// As [`Leases::commit`], and keeps the result.
    ///
    /// # Errors
    /// As [`Leases::commit`].
    async fn commit_with(&self, lease: Lease, result: &str) -> Result<(), Fault>;

    /// Returns the result of a job that is committed.
    ///
    /// # Errors
    /// [`geoclaim_common::FaultKind::Unavailable`].
    async fn result(&self, job: Digest) -> Result<Option<String>, Fault>;

    /// Returns jobs that were claimed, are not committed, and whose leases lapsed longer ago than this, oldest first.
    ///
    /// # Errors
    /// [`geoclaim_common::FaultKind::Unavailable`].
    async fn hanging(&self, older_than: Duration, most: u32) -> Result<Vec<Hanging>, Fault>;

    /// Forgets jobs that were committed longer ago than this, and at most so many of them; returns how many.
    ///
    /// # Errors
    /// Nothing was forgotten.
    async fn forget(&self, older_than: Duration, most: u32) -> Result<u64, Fault>;
}

/// A job that was begun, and of which nobody has said how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hanging {
    /// The job.
    pub job: Digest,
    /// What it is about, in the words of who intended it.
    pub about: String,
    /// How often it was claimed.
    pub fence: u64,
}
