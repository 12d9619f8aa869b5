//! Deleting bodies that nothing can refer to any more.
//!
//! Creation and deletion are one protocol ([`crate::put`] has the other half, `tests/suite/protocol` the model of both):
//!
//! 1. The **boundary** is known, or nothing is done: how long records can be read, by the evidence of every log that is named.
//!    It is announced in the store, so that publishers go by it.
//! 2. All bodies are listed, *then* every reference is read up to the end of each log.
//! 3. A body older than the boundary without a reference is a **candidate**, and is written down with the time.
//! 4. A **grace** later, a sweep that finds it again old, unreferenced and unchanged deletes it: HEAD, then one request that is
//!    never repeated, within a deadline.
//!
//! Every run does 1 to 3, and 4 for what was a candidate before; so a run a day plans and sweeps in turns. One runs at a time,
//! by lease. Whatever is not known (a partition that cannot be read, a record that cannot be decoded, a retention without an
//! end) ends the run before anything is deleted. What is written down is true on its own, entry by entry, so a run that was
//! killed is simply run again.
//!
//! **Memory** does not grow with bodies or references: both are spilled to 256 files by the first byte of the digest, and one
//! of these is looked at at a time. 100 million references take 800 MB of disk, and 3 to 4 MB of memory for the largest file.

mod delete;
mod janitor;
mod log;
mod pace;
mod plan;
mod refer;
mod report;
mod settings;
mod spill;

use std::{path::PathBuf, sync::Arc, time::Duration};

use futures::{FutureExt as _, StreamExt as _, future::Shared};
use geoclaim_common::{
    Digest, Fault, FaultKind, Timestamp,
    clock::Stopwatch,
    key,
    lease::{Claim, Leases as _, StoreLeases, while_renewed},
    retention::{Announcement, Evidence, boundary},
    store::{Lifecycle, Store, StoreClock, fault_of},
};
use object_store::{ObjectStore as _, path::Path};

pub use janitor::{Janitor, JanitorReport, Leftover};
pub use log::{ArchiveLog, Log, Reference, TopicLog};
use pace::Pace;
use plan::Plan;
pub use report::{SweepCounters, SweepReport};
pub use settings::SweepSettings;
use spill::{Body, BodyList, Spill};

/// Sweeps.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// How to.
    pub settings: SweepSettings,
    /// Where bodies, the plan and the lease are.
    pub store: Store,
    /// The same store, by a client that sends a request once: [`geoclaim_common::store::open_without_retries`]. A delete that
    /// were sent again could arrive after somebody has put the body anew.
    pub deleter: Store,
    /// When the bucket deletes by itself.
    pub lifecycle: Lifecycle,
    /// Everything that refers to bodies: topics, dead letters, archives.
    pub logs: Vec<Arc<dyn Log>>,
    /// Where lists are spilled; `None`: the system's folder for temporary files.
    pub spill: Option<PathBuf>,
    /// Counts while it runs.
    pub counters: Arc<SweepCounters>,
}

impl Sweep {
    /// Plans, and deletes where that is wanted. What ends a sweep early, `shutdown` among it, stands in the report.
    ///
    /// # Errors
    /// [`FaultKind::Configuration`]: the settings are wrong.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<SweepReport, Fault> {
        self.settings.validate()?;
        let started = Stopwatch::start();
        let refused = self.under_lease(shutdown.shared()).await.err();
        let mut report = self.counters.report(started.elapsed().as_secs_f64());
        report.refused = refused.map(|fault| fault.detail);
        Ok(report)
    }

    async fn under_lease(&self, shutdown: Shared<impl Future<Output = ()>>) -> Result<(), Fault> {
        let leases = Arc::new(StoreLeases::new(self.store.clone(), Duration::from_secs(self.settings.lease_seconds)));
        let lease = match leases.claim(Digest::of(b"geoclaim sweep")).await? {
            Claim::Won(lease) => lease,
            Claim::Held | Claim::Committed => {
                let seconds = self.settings.lease_seconds;
                let what = "another sweep of this store is running";
                return Err(Fault::new(
                    FaultKind::Fenced,
                    format!("{what}; if it was killed, its lease lapses {seconds} s after its last sign of life"),
                ));
            }
        };
        let done = while_renewed(&leases, &lease, self.sweep(shutdown)).await;
        // One that is not given back lapses.
        let released = leases.release(lease).await;
        done.and(released.or(Ok(())))
    }

    async fn sweep(&self, shutdown: Shared<impl Future<Output = ()>>) -> Result<(), Fault> {
        let clock = StoreClock::new(self.store.clone());
        let pace = Pace::new(self.settings.requests_per_second);
        let stopped = || Fault::unavailable("stopped: run it again, and it goes on from what is planned");
        let (boundary, ripe) = tokio::select! {
            planned = self.plan(&clock, &pace) => planned?,
            () = shutdown.clone() => return Err(stopped()),
        };
        self.counters.check_share(self.settings.most_share_percent)?;
        if self.settings.delete {
            let deleted = delete::delete(self, ripe, (&clock, boundary), &pace, shutdown.clone()).await;
            if deleted.is_err() {
                // What had been sent beside it may still be on its way: nobody else is to sweep before it cannot be.
                tokio::time::sleep(Duration::from_secs(self.settings.timing.delete_deadline_seconds)).await;
            }
            deleted?;
        }
        shutdown.peek().map_or(Ok(()), |()| Err(stopped()))
    }

    /// The first cycle, which is also the second look at what was planned before. Returns the boundary and what is ripe.
    async fn plan(&self, clock: &StoreClock, pace: &Pace) -> Result<(Duration, BodyList), Fault> {
        let boundary = self.boundary(clock.ask().await?).await?;
        let announcement = Announcement { boundary_seconds: boundary.as_secs(), timing: self.settings.timing };
        announcement.announce(&self.store).await?;
        let mut spill = Spill::new(self.spill.as_deref())?;
        self.list(&mut spill, pace).await?;
        let spill = refer::read_references(self.logs.clone(), spill, &self.settings, &self.counters).await?;
        let now = clock.ask().await?;
        let is_old = |body: &Body| now.since(body.modified) > boundary;
        let plan = Plan::of(&self.store, pace).await?;
        let ripe = plan.renew(spill, (now, self.settings.timing), is_old, &self.counters).await?;
        Ok((boundary, ripe))
    }

    /// Returns the boundary, which a bucket must not undercut.
    async fn boundary(&self, now: Timestamp) -> Result<Duration, Fault> {
        let logs = self.logs.clone();
        let ask = move || logs.iter().map(|log| log.evidence()).collect::<Result<Vec<Evidence>, Fault>>();
        let evidence = tokio::task::spawn_blocking(ask).await.map_err(|error| Fault::unavailable(error.to_string()))??;
        let boundary = boundary(&evidence, now, &self.settings.timing)?;
        self.counters.set_boundary(boundary);
        match &self.lifecycle {
            Lifecycle::Never => Ok(boundary),
            Lifecycle::After(after) if *after >= boundary => Ok(boundary),
            Lifecycle::After(after) => Err(Fault::configuration(format!(
                "the bucket's lifecycle deletes bodies after {}, and they can be needed for {}: bodies that envelopes refer to may \
                 be gone already; lengthen the lifecycle",
                days(*after),
                days(boundary)
            ))),
            Lifecycle::Unknown(why) => Err(Fault::configuration(format!(
                "it is not known when the bucket deletes bodies by itself ({why}): say so with --body-lifecycle"
            ))),
        }
    }

    async fn list(&self, spill: &mut Spill, pace: &Pace) -> Result<(), Fault> {
        let mut listing = self.store.list(Some(&Path::from(key::FOLDER)));
        let mut seen: u64 = 0;
        while let Some(meta) = listing.next().await {
            let meta = meta.map_err(|error| fault_of(&error))?;
            // A page of a listing is a request.
            if seen.is_multiple_of(1_000) {
                pace.wait().await;
            }
            seen += 1;
            match key::parse(meta.location.as_ref()) {
                Some((digest, encoding)) => {
                    let modified = Timestamp::from_millis(meta.last_modified.timestamp_millis());
                    spill.body(&Body { digest, encoding, modified, size: meta.size })?;
                    self.counters.listed(meta.size);
                }
                None => self.counters.ignored(),
            }
        }
        Ok(())
    }
}

/// Writes an age for people.
fn days(age: Duration) -> String {
    let seconds = age.as_secs();
    if seconds >= 2 * 86_400 { format!("{:.1} days", age.as_secs_f64() / 86_400.0) } else { format!("{seconds} s") }
}
