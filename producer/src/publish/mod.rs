//! Put, then publish.
//!
//! Bodies are measured and stored concurrently, within a bound on their bytes; records are handed to the sink in the
//! order of the input, each only after its body is complete in the store. Every delivery is awaited. When an event of
//! a feature fails, later events of that feature that have not been handed over are held back in this run, so that
//! repeating the run does not bring an old state after a newer one. Those in flight behind it may have been written:
//! only a version orders them then.

mod deliver;
mod feed;
mod plan;
mod report;
mod settings;

use std::{
    collections::HashSet,
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::{FutureExt, StreamExt, stream};
use geoclaim_common::{
    Body, Budget, Clock, Fault, FaultKind,
    budget::Share,
    clock::Stopwatch,
    store::Store,
    stream::{EnvelopeSink, OutgoingRecord},
};
use tokio::task::JoinSet;

use crate::{
    put::{Put, Putter, Seen},
    read::Place,
};
use feed::{Fed, read_all};
use report::add;

pub use feed::Source;
pub use plan::{Origin, Planned, plan, plan_measured};
pub use report::{Problem, PublishCounters, PublishReport, at};
pub use settings::PublishSettings;

/// A body from this length on is measured and sealed off the async threads.
const SMALL_BODY_BYTES: usize = 64 << 10;

/// Publishes sources to a sink, large bodies by way of a store.
#[derive(Clone)]
pub struct Publisher {
    /// How to publish.
    pub settings: PublishSettings,
    /// Where large bodies go.
    pub store: Store,
    /// Where records go.
    pub sink: Arc<dyn EnvelopeSink>,
    /// Tells `occurred_at`.
    pub clock: Arc<dyn Clock>,
    /// Counts while it runs.
    pub counters: Arc<PublishCounters>,
    /// Is told of each feature that is not published.
    pub on_problem: Arc<dyn Fn(&Problem) + Send + Sync>,
}

/// An event whose body is in place.
struct Ready {
    source: Arc<str>,
    place: Place,
    feature_id: String,
    record: OutgoingRecord,
    /// The body in the store, where the record refers to one, kept until the record is acknowledged.
    stored: Option<(Body, Seen)>,
    share: Share,
}

/// Why an event is not ready.
struct Unready {
    problem: Problem,
    feature_id: Option<String>,
    stop: Option<Fault>,
}

impl Publisher {
    /// Publishes all sources. Ends early, after what is in flight, when `shutdown` completes.
    ///
    /// # Errors
    /// [`FaultKind::Configuration`]: store or broker refuse for a reason that a person must mend; everything in flight
    /// has been settled, and the counters say what was done. Anything else is counted and told, and the run goes on.
    pub async fn run(self, sources: Vec<Source>, shutdown: impl Future<Output = ()>) -> Result<PublishReport, Fault> {
        self.settings.validate(None)?;
        let started = Stopwatch::start();
        let budget = Budget::new(self.settings.in_flight_bytes);
        let putter = Arc::new(Putter::new(self.store.clone(), self.settings.put()));
        let fed = read_all(sources, self.settings.read_options(), budget);
        let is_interrupted = AtomicBool::new(false);
        let shutdown = shutdown.map(|()| is_interrupted.store(true, Ordering::Relaxed));
        // Nothing more is taken from the input after a shutdown; what has been taken is finished.
        let items = stream::unfold(fed, |mut fed| async move { fed.recv().await.map(|item| (item, fed)) }).take_until(shutdown);
        let mut ready = pin!(items.map(|fed| self.prepare(fed, &putter)).buffered(self.settings.concurrency));
        let mut deliveries = JoinSet::new();
        let mut held = HashSet::new();
        let mut stopped = None;
        while stopped.is_none() {
            tokio::select! {
                biased;
                Some(delivered) = deliveries.join_next(), if !deliveries.is_empty() => stopped = self.delivered(delivered, &mut held),
                next = ready.next() => match next {
                    Some(Ok(event)) => stopped = self.send(event, &putter, &mut held, &mut deliveries).await,
                    Some(Err(unready)) => stopped = self.failed(unready, &mut held),
                    None => break,
                },
            }
        }
        while let Some(delivered) = deliveries.join_next().await {
            stopped = self.delivered(delivered, &mut held).or(stopped);
        }
        self.counters.count_unfinished();
        let mut report = self.counters.report(&self.settings.run, started.elapsed().as_secs_f64());
        report.interrupted = is_interrupted.load(Ordering::Relaxed);
        stopped.map_or(Ok(report), Err)
    }

    /// Measures a body and, when it is large, stores it.
    async fn prepare(&self, Fed { source, run_place, item }: Fed, putter: &Putter) -> Result<Ready, Unready> {
        add(&self.counters.read, 1);
        let (raw, share) = item.map_err(|problem| self.unready(&source, problem.place, problem.problem, None))?;
        add(&self.counters.bytes_read, raw.bytes.len() as u64);
        let (place, bytes) = (raw.place, raw.bytes.len());
        let planned = {
            let (source, settings, occurred_at) = (Arc::clone(&source), self.settings.clone(), self.clock.now());
            let planning = move || plan(&raw, Origin { source: &source, run_place, occurred_at }, &settings);
            self.off_thread(planning, bytes).await
        };
        let Planned { feature_id, record, body } =
            planned.map_err(|(place, problem)| self.unready(&source, place, problem, None))?;
        let stored = match body {
            Some(body) => match self.put(putter, &body).await {
                Ok(seen) => Some((body, seen)),
                Err(fault) => return Err(self.not_stored(&source, place, feature_id, fault)),
            },
            None => None,
        };
        Ok(Ready { source, place, feature_id, record, stored, share })
    }

    async fn put(&self, putter: &Putter, body: &Body) -> Result<Seen, Fault> {
        let seen = putter.put(body).await?;
        match seen.put {
            Put::Written => {
                add(&self.counters.bodies_written, 1);
                add(&self.counters.bytes_stored, body.claim().stored_length());
                add(&self.counters.bytes_saved, body.claim().length - body.claim().stored_length());
            }
            Put::Repaired => add(&self.counters.bodies_repaired, 1),
            Put::Renewed => add(&self.counters.bodies_renewed, 1),
            Put::Present => {}
        }
        Ok(seen)
    }

    fn not_stored(&self, source: &str, place: Place, feature_id: String, fault: Fault) -> Unready {
        let mut unready = self.unready(source, place, fault.detail.clone(), Some(feature_id));
        unready.stop = Some(fault).filter(|fault| fault.kind == FaultKind::Configuration);
        unready
    }

    async fn off_thread<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static, bytes: usize) -> T {
        if bytes <= SMALL_BODY_BYTES {
            return work();
        }
        match tokio::task::spawn_blocking(work).await {
            Ok(done) => done,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    /// Counts and tells an event that is not published; returns the fault that stops the run, if it does.
    fn failed(&self, unready: Unready, held: &mut HashSet<String>) -> Option<Fault> {
        let Unready { problem, feature_id, stop } = unready;
        add(if problem.is_rejection { &self.counters.rejected } else { &self.counters.failed }, 1);
        (self.on_problem)(&problem);
        held.extend(feature_id);
        stop
    }

    fn unready(&self, source: &str, place: Place, problem: String, feature_id: Option<String>) -> Unready {
        let problem = Problem { source: source.to_owned(), place, problem, is_rejection: feature_id.is_none() };
        Unready { problem, feature_id, stop: None }
    }
}
