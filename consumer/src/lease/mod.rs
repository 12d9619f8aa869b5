//! The right to do one job for a while, for jobs that cost too much to be done twice.
//!
//! A job is named by a digest. Whoever claims it first has it until the lease lapses; a job that is committed is never
//! done again. Each claim has a higher fence than the one before, and a commit counts only under the highest: a worker
//! that stood still past its lease finds itself fenced, and what it did is somebody else's to do.
//!
//! For tiny events at a high rate one claim covers many: name the job by [`batch`].

mod store;

use async_trait::async_trait;
use geoclaim_common::{Digest, Fault};

pub use store::{StoreLeases, while_renewed};

/// A lease: not `Clone`, and committing consumes it.
#[derive(Debug)]
pub struct Lease {
    job: Digest,
    fence: u64,
    token: String,
}

impl Lease {
    /// Returns the job.
    pub fn job(&self) -> Digest {
        self.job
    }

    /// Returns the fence, which rises with each claim of the job.
    pub fn fence(&self) -> u64 {
        self.fence
    }
}

/// What a claim comes to.
#[derive(Debug)]
pub enum Claim {
    /// The job is the claimant's.
    Won(Lease),
    /// Another has it, and its lease has not lapsed.
    Held,
    /// It is done.
    Committed,
}

/// Grants leases.
#[async_trait]
pub trait Leases: Send + Sync + std::fmt::Debug {
    /// Claims a job.
    ///
    /// # Errors
    /// [`geoclaim_common::FaultKind::Unavailable`]: it is not known who has it.
    async fn claim(&self, job: Digest) -> Result<Claim, Fault>;

    /// Begins the lease's time anew. To be called well before it lapses.
    ///
    /// # Errors
    /// [`geoclaim_common::FaultKind::Fenced`]: it is lost.
    async fn renew(&self, lease: &Lease) -> Result<(), Fault>;

    /// Says that the job is done, for ever.
    ///
    /// # Errors
    /// [`geoclaim_common::FaultKind::Fenced`]: the lease was lost before, and the job is another's.
    async fn commit(&self, lease: Lease) -> Result<(), Fault>;

    /// Returns how long a lease lasts.
    fn lasts(&self) -> std::time::Duration;
}

/// Returns the name of a job that is many: the digest of their names in order.
pub fn batch(jobs: &[Digest]) -> Digest {
    let names: Vec<String> = jobs.iter().map(Digest::to_string).collect();
    Digest::of(names.join("\n").as_bytes())
}
