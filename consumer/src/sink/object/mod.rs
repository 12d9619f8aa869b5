//! Clipped copies as write-once objects: one object a job, and a job is one body clipped to one area that it meets.
//!
//! There is no ledger. The job's key says what the output depends on, so that a job that is done again finds its output,
//! and two who do it at the same time make the same bytes, of which the store takes those of one. An output is never
//! overwritten unconditionally. What it promises is therefore less than a sink with a transaction, and this is all of it:
//! for each event that was applied, or was a duplicate, the output of each of its jobs stands whole under `jobs/`. A
//! feature that leaves or is deleted takes nothing away, and states of a feature stand beside each other: what is kept is by body.
//!
//! For a backfill there are three ways, of which one is chosen: what is there stays ([`Existing::Skip`]); other parameters,
//! another area or another [`Parameters::generation`] make other keys beside it; or it is exchanged under the version that
//! was seen ([`Existing::Overwrite`]).
//!
//! Jobs that cost too much to be done twice, even at once, take a lease first: [`ObjectSink::with_leases`].

mod area;
mod clip;
mod job;
mod output;
mod pieces;
mod write;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use futures::StreamExt as _;
use geoclaim_common::{
    Digest, Fault, FaultKind, limits,
    store::{self, Store},
};
use tokio::sync::Semaphore;

use super::{Change, Effect, Features, Sink, State, encoded_twice};
use crate::{
    aoi::LiveAreas,
    lease::{Claim, Leases, while_renewed},
};
use area::{Areas, WholeArea};
use job::Job;
pub use job::{PIPELINE, Parameters};
use output::{REFUSED, clipped, is_clipped, sealed};
use pieces::Pieces;
use write::{Write, look, write};

/// How many jobs are under way at once.
const JOBS_AT_ONCE: usize = 8;

/// How often is looked, within the length of a lease, whether another has ended a job.
const WAITS: u32 = 8;

/// Of outputs from this length on, there is one for each core in memory.
const LARGE_BYTES: usize = 1 << 20;

/// What becomes of an output that is there already and is another than the job makes now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// It stays, if it is a whole output of this job.
    #[default]
    Skip,
    /// It is exchanged, if nobody else has exchanged it meanwhile.
    Overwrite,
}

/// Keeps clipped copies in an object store.
#[derive(Debug)]
pub struct ObjectSink {
    store: Store,
    source: String,
    areas: Areas,
    parameters: Parameters,
    existing: Existing,
    leases: Option<Arc<dyn Leases>>,
    most_clipped_bytes: u64,
    /// One for each core: clipping is what it computes.
    cores: Semaphore,
    /// Jobs that were written in a batch that failed: they count as written when the batch comes again.
    unreported: Mutex<HashSet<Digest>>,
}

/// How a job ended.
#[derive(Clone, Debug)]
struct Ended {
    write: Write,
    refused: Option<String>,
}

impl ObjectSink {
    /// Opens a sink that writes into `store` what it makes of bodies of the store with the URL `source`, clipped to those
    /// of `areas` that they meet.
    ///
    /// # Errors
    /// [`FaultKind::Configuration`]: the store ignores the conditions of conditional writes, or has none of those that
    /// `existing` needs, or a parameter is out of range.
    pub async fn open(
        store: Store,
        source: impl Into<String>,
        areas: Arc<LiveAreas>,
        (parameters, existing): (Parameters, Existing),
    ) -> Result<Self, Fault> {
        if parameters.simplify_degrees.is_some_and(|degrees| !(degrees > 0.0 && degrees <= 10.0)) {
            return Err(Fault::configuration("simplify: more than 0 and at most 10 degrees are allowed"));
        }
        store::check_creates(&store).await?;
        if existing == Existing::Overwrite {
            store::check_updates(&store).await?;
        }
        let cores = Semaphore::new(std::thread::available_parallelism().map_or(1, usize::from));
        let (source, areas) = (source.into(), Areas::new(areas));
        Ok(Self {
            store,
            source,
            areas,
            parameters,
            existing,
            leases: None,
            most_clipped_bytes: limits::BODY_BYTES,
            cores,
            unreported: Mutex::default(),
        })
    }

    /// Takes a lease for each job before it is done, so that it is done once even by many who want it at once.
    pub fn with_leases(self, leases: Arc<dyn Leases>) -> Self {
        Self { leases: Some(leases), ..self }
    }

    /// Refuses to clip longer bodies, which is done in memory. Those that lie within an area as a whole are not clipped, and
    /// may have any length.
    pub fn clipping_up_to(self, most_clipped_bytes: u64) -> Self {
        Self { most_clipped_bytes, ..self }
    }

    /// Returns the jobs of a change, each with the state that it is for; none for a change that takes away.
    fn jobs<'a>(&self, change: &'a Change) -> Vec<(&'a State, Job, Arc<WholeArea>)> {
        let Some(state) = change.state() else { return Vec::new() };
        // An area that is no more was there when the change was judged: it has no copy to keep.
        let areas = state.areas.iter().filter_map(|id| Some((id, self.areas.get(id)?)));
        let job =
            |(id, area): (_, Arc<WholeArea>)| (state, Job::new(&self.source, state, (id, area.digest), &self.parameters), area);
        areas.map(job).collect()
    }

    /// Does a job, or finds it done.
    async fn end(&self, state: &State, job: &Job, area: &Arc<WholeArea>) -> Result<Ended, Fault> {
        let Some(leases) = &self.leases else { return self.make(state, job, area).await };
        for _ in 0..WAITS {
            match leases.claim(job.key).await? {
                Claim::Won(lease) => match while_renewed(leases, &lease, self.make(state, job, area)).await {
                    Ok(ended) => match leases.commit(lease).await {
                        // Whoever has it now finds the output there.
                        Err(fault) if fault.kind == FaultKind::Fenced => {}
                        committed => return committed.map(|()| ended),
                    },
                    Err(fault) if fault.kind == FaultKind::Fenced => {}
                    Err(fault) => {
                        // So that the next try need not wait for the lease to lapse.
                        let _ = leases.release(lease).await;
                        return Err(fault);
                    }
                },
                Claim::Held => tokio::time::sleep(leases.lasts() / WAITS).await,
                Claim::Committed => return self.done(state, job, area).await,
            }
        }
        Err(Fault::unavailable(format!("another is at job {}", job.key)))
    }

    /// Returns how a job ended that is committed, or makes its output again where somebody has deleted it, or wants another.
    async fn done(&self, state: &State, job: &Job, area: &Arc<WholeArea>) -> Result<Ended, Fault> {
        if self.existing == Existing::Skip
            && let Some(ending) = look(&self.store, job).await?
        {
            let refused = (ending == REFUSED).then(|| "it was refused before".to_owned());
            return Ok(Ended { write: Write::Present, refused });
        }
        self.make(state, job, area).await
    }

    async fn make(&self, state: &State, job: &Job, area: &Arc<WholeArea>) -> Result<Ended, Fault> {
        let core = self.cores.acquire().await.map_err(|error| Fault::unavailable(error.to_string()))?;
        let (body, area, simplify) = (state.clone(), Arc::clone(area), self.parameters.simplify_degrees);
        let most_bytes = self.most_clipped_bytes;
        // What the overlay cannot do is refused, and not a crash.
        let made = tokio::task::spawn_blocking(move || clip(&body, &area, simplify, most_bytes))
            .await
            .unwrap_or_else(|error| Err(format!("the overlay gave it up: {error}")));
        let output = sealed(job, &self.parameters, made);
        // A large output keeps others from being made until it is written.
        let _core = (output.pieces.len() > LARGE_BYTES).then_some(core);
        let write = write(&self.store, job, &output, self.existing).await?;
        if write == Write::Written {
            self.unreported.lock().unwrap_or_else(PoisonError::into_inner).insert(job.key);
        }
        Ok(Ended { write, refused: output.refused })
    }

    /// Returns what the jobs of a change come to. A job that is there twice in a batch has been written by the first.
    fn effect(&self, jobs: &[Digest], ended: &mut HashMap<Digest, Result<Ended, String>>) -> Effect {
        let (mut is_written, mut refused) = (false, None);
        for job in jobs {
            let Some(end) = ended.get_mut(job) else { continue };
            match end {
                Ok(end) => {
                    let is_ours = std::mem::replace(&mut end.write, Write::Present) == Write::Written;
                    is_written |= is_ours;
                    refused = refused.or(end.refused.clone().filter(|_| is_ours));
                }
                Err(why) => refused = Some(why.clone()),
            }
        }
        match (refused, is_written, jobs.is_empty()) {
            (Some(why), ..) => Effect::Rejected(why),
            (None, true, _) => Effect::Applied,
            (None, false, false) => Effect::Duplicate,
            (None, false, true) => Effect::NotHeld,
        }
    }
}

fn clip(state: &State, area: &WholeArea, simplify_degrees: Option<f64>, most_bytes: u64) -> Result<Pieces, String> {
    let bbox = state.extent.bbox.ok_or("it has no position")?;
    let (within, length) = (area.within(&bbox), state.body.bytes().len() as u64);
    if length > most_bytes && is_clipped(state.crs, &within, simplify_degrees) {
        return Err(format!("a body of {length} bytes is too large to be clipped in memory, which allows {most_bytes}"));
    }
    clipped(state, &bbox, &within, simplify_degrees)
}

#[async_trait]
impl Sink for ObjectSink {
    async fn apply(&self, batch: Arc<Vec<Change>>) -> Result<Vec<Effect>, Fault> {
        let mut keys: Vec<Vec<Digest>> = Vec::with_capacity(batch.len());
        let mut todo: HashMap<Digest, (&State, Job, Arc<WholeArea>)> = HashMap::new();
        for change in batch.iter() {
            let jobs = self.jobs(change);
            keys.push(jobs.iter().map(|(_, job, _)| job.key).collect());
            for (state, job, area) in jobs {
                todo.entry(job.key).or_insert((state, job, area));
            }
        }
        let doing = todo.into_values().map(|(state, job, area)| async move {
            match self.end(state, &job, &area).await {
                Ok(ended) => Ok((job.key, Ok(ended))),
                Err(fault) if fault.kind == FaultKind::Rejected => Ok((job.key, Err(fault.detail))),
                Err(fault) => Err(fault),
            }
        });
        let doing: Vec<_> = doing.collect();
        // All of them, even when one fails: what a job has written must not be forgotten while it is under way.
        let ended: Vec<Result<_, Fault>> = futures::stream::iter(doing).buffer_unordered(JOBS_AT_ONCE).collect().await;
        let mut ended: HashMap<Digest, Result<Ended, String>> = ended.into_iter().collect::<Result<_, _>>()?;
        let mut unreported = self.unreported.lock().unwrap_or_else(PoisonError::into_inner);
        for (job, ended) in &mut ended {
            if let (true, Ok(ended)) = (unreported.remove(job), ended) {
                ended.write = Write::Written;
            }
        }
        drop(unreported);
        Ok(keys.iter().map(|jobs| self.effect(jobs, &mut ended)).collect())
    }

    fn memory_for(&self, length: u64, vertex_count: Option<u64>) -> u64 {
        if length > self.most_clipped_bytes { 0 } else { encoded_twice(length, vertex_count) }
    }

    /// Nothing is ever taken away, so that no feature needs to be known.
    async fn features(&self, mark: u64) -> Result<Features, Fault> {
        Ok(Features { mark, ..Features::default() })
    }

    async fn close(&self) -> Result<(), Fault> {
        Ok(())
    }
}
