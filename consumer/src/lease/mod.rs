//! The right to do one job for a while, for jobs that cost too much to be done twice.
//!
//! A job is named by a digest. Whoever claims it first has it until the lease lapses; a job that is committed is never
//! done again. Each claim has a higher fence than the one before, and a commit counts only under the highest: a worker
//! that stood still past its lease finds itself fenced, and what it did is somebody else's to do.
//!
//! For tiny events at a high rate one claim covers many: name the job by [`batch`].

mod sql;
mod store;

use std::{future::Future, sync::Arc, time::Duration};

use async_trait::async_trait;
use geoclaim_common::{Digest, Fault, FaultKind, clock::Stopwatch};

pub use sql::{PostgresLeases, SqliteLeases};
pub use store::StoreLeases;

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

    fn again(&self) -> Self {
        Self { job: self.job, fence: self.fence, token: self.token.clone() }
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

    /// Gives a lease back before it lapses: the job can be claimed at once, with a higher fence.
    ///
    /// # Errors
    /// It lapses in its own time.
    async fn release(&self, lease: Lease) -> Result<(), Fault>;

    /// Returns how long a lease lasts.
    fn lasts(&self) -> Duration;
}

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
    /// [`FaultKind::Unavailable`].
    async fn result(&self, job: Digest) -> Result<Option<String>, Fault>;

    /// Returns jobs that were claimed, are not committed, and whose leases lapsed longer ago than this, oldest first.
    ///
    /// # Errors
    /// [`FaultKind::Unavailable`].
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

fn lost(lease: &Lease) -> Fault {
    Fault::new(FaultKind::Fenced, format!("the lease of job {} with fence {} is lost", lease.job, lease.fence))
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
            () = tokio::time::sleep(left) => return Err(lost(lease)),
        }
    }
}

/// Returns the name of a job that is many: the digest of their names in order.
pub fn batch(jobs: &[Digest]) -> Digest {
    let names: Vec<String> = jobs.iter().map(Digest::to_string).collect();
    Digest::of(names.join("\n").as_bytes())
}
