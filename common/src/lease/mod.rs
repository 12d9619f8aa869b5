//! The right to do one job for a while, for jobs that cost too much to be done twice.
//!
//! A job is named by a digest. Whoever claims it first has it until the lease lapses; a job that is committed is never
//! done again. Each claim has a higher fence than the one before, and a commit counts only under the highest: a worker
//! that stood still past its lease finds itself fenced, and what it did is somebody else's to do.
//!
//! For tiny events at a high rate one claim covers many: name the job by [`batch`].

mod store;

use std::{future::Future, sync::Arc, time::Duration};

use async_trait::async_trait;

use crate::{Digest, Fault, FaultKind, clock::Stopwatch};

pub use store::{LEASES, StoreLeases};

/// A lease: not `Clone`, and committing consumes it.
#[derive(Debug)]
pub struct Lease {
    job: Digest,
    fence: u64,
    token: String,
}

impl Lease {
    /// Makes a lease that has been granted: for those who implement [`Leases`]. The token is its owner's alone.
    pub fn new(job: Digest, fence: u64, token: String) -> Self {
        Self { job, fence, token }
    }

    /// Returns the job.
    pub fn job(&self) -> Digest {
        self.job
    }

    /// Returns the fence, which rises with each claim of the job.
    pub fn fence(&self) -> u64 {
        self.fence
    }

    /// Returns what its owner knows it by.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Returns the same lease once more, for an implementation of [`Leases`] that goes on with it elsewhere.
    #[must_use]
    pub fn again(&self) -> Self {
        Self { job: self.job, fence: self.fence, token: self.token.clone() }
    }

    /// Says that it is another's by now.
    pub fn lost(&self) -> Fault {
        Fault::new(FaultKind::Fenced, format!("the lease of job {} with fence {} is lost", self.job, self.fence))
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
    /// [`FaultKind::Unavailable`]: it is not known who has it.
    async fn claim(&self, job: Digest) -> Result<Claim, Fault>;

    /// Begins the lease's time anew. To be called well before it lapses.
    ///
    /// # Errors
    /// [`FaultKind::Fenced`]: it is lost.
    async fn renew(&self, lease: &Lease) -> Result<(), Fault>;

    /// Says that the job is done, for ever.
    ///
    /// # Errors
    /// [`FaultKind::Fenced`]: the lease was lost before, and the job is another's.
    async fn commit(&self, lease: Lease) -> Result<(), Fault>;

    /// Gives a lease back before it lapses: the job can be claimed at once, with a higher fence.
    ///
    /// # Errors
    /// It lapses in its own time.
    async fn release(&self, lease: Lease) -> Result<(), Fault>;

    /// Returns how long a lease lasts.
    fn lasts(&self) -> Duration;
}

/// Runs work under a lease and renews it meanwhile.
///
/// When renewals get no answer, the work is dropped before the lease can have lapsed. What the work had already sent on its
/// way may still arrive.
///
/// # Errors
/// The work's, or [`FaultKind::Fenced`] when the lease was lost or could not be renewed in time: the work is dropped then.
pub async fn while_renewed<L: Leases + ?Sized, T>(
    leases: &Arc<L>,
    lease: &Lease,
    work: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    let third = leases.lasts() / 3;
    let mut beat = tokio::time::interval(third);
    beat.tick().await;
    let mut held = Stopwatch::start();
    let mut work = std::pin::pin!(work);
    loop {
        let renewal = async {
            beat.tick().await;
            let asked = Stopwatch::start();
            (asked, tokio::time::timeout(third, leases.renew(lease)).await)
        };
        let left = leases.lasts().saturating_sub(held.elapsed());
        tokio::select! {
            done = &mut work => return done,
            (asked, renewed) = renewal => match renewed {
                Ok(Ok(())) => held = asked,
                Ok(Err(fault)) if fault.kind == FaultKind::Fenced => return Err(fault),
                // The next beat has its chance.
                Ok(Err(_)) | Err(_) => {}
            },
            () = tokio::time::sleep(left) => return Err(lease.lost()),
        }
    }
}

/// Returns the name of a job that is many: the digest of their names in order.
pub fn batch(jobs: &[Digest]) -> Digest {
    let names: Vec<String> = jobs.iter().map(Digest::to_string).collect();
    Digest::of(names.join("\n").as_bytes())
}
