//! The life of a record on the consumer's side: gate, lane, sink, acknowledgement.
//!
//! ```text
//! source ── gate (box at its fixed place) ──┬─ discarded, offset advances
//!                                           └─ lane of its partition ──┬─ resolve ── refine ──┬─ dead letter
//!                                                                      └─ leaves, deleted ────┴─ sink ── offset advances
//! ```

mod applier;
mod gate;
mod judge;
mod lane;

use std::{collections::HashMap, future::Future, pin::pin, sync::Arc, time::Duration};

use geoclaim_common::{
    Clock, Fault,
    clock::Stopwatch,
    store::Store,
    stream::{EnvelopeSource, Gate, IncomingRecord, SourceEvent},
};
use tokio::{sync::mpsc, task::JoinSet};

use crate::{
    ConsumeSettings,
    aoi::LiveAreas,
    dead_letter::DeadLetters,
    holdings::Holdings,
    report::{ConsumeCounters, ConsumeReport},
    resolve::Resolver,
    sink::Sink,
};
use lane::{Ready, Shop, Waiting};

/// How long lanes may take to end after the source has.
const LAST_WORK: Duration = Duration::from_secs(5);

/// Filters, resolves, verifies, and applies once.
#[derive(Clone, Debug)]
pub struct Consumer {
    /// How to consume.
    pub settings: ConsumeSettings,
    /// What is wanted; can be exchanged while it runs.
    pub areas: Arc<LiveAreas>,
    /// Where large bodies are.
    pub store: Store,
    /// Where effects go.
    pub sink: Arc<dyn Sink>,
    /// Where envelopes go that cannot be applied.
    pub dead_letters: DeadLetters,
    /// What is known of features without asking the sink.
    pub holdings: Arc<Holdings>,
    /// Judges the age of envelopes.
    pub clock: Arc<dyn Clock>,
    /// Counts while it runs.
    pub counters: Arc<ConsumeCounters>,
}

impl Consumer {
    /// Asks the sink what it holds and returns the gate for the source: it reads the box at its fixed place in the
    /// receive buffer and discards what meets no area and is not held, without a copy, a parse or a store request.
    ///
    /// # Errors
    /// The sink's.
    pub async fn gate(&self) -> Result<Arc<dyn Gate>, Fault> {
        Ok(Arc::new(gate::AreaGate::open(self).await?))
    }

    /// Consumes until the source ends or `shutdown` completes; then finishes what is in flight, up to the source's drain
    /// deadline. The source must have been made with [`Consumer::gate`].
    ///
    /// # Errors
    /// The fault that stopped it: a setting that a person must mend, or a dead letter that could not be written.
    /// Everything that was acknowledged has been applied, whatever the end; the counters say what was done.
    pub async fn run(self, mut source: impl EnvelopeSource, shutdown: impl Future<Output = ()>) -> Result<ConsumeReport, Fault> {
        self.settings.validate()?;
        let started = Stopwatch::start();
        let mut lanes = Lanes::start(&self);
        let mut shutdown = pin!(shutdown);
        let mut is_stopping = false;
        let mut stopped = None;
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown, if !is_stopping => {
                    is_stopping = true;
                    source.stop();
                }
                Some(fault) = lanes.failed(), if stopped.is_none() => {
                    stopped = Some(fault);
                    source.stop();
                    // What is out comes back unsettled, and the source need not wait for it.
                    lanes.abort();
                }
                event = source.next() => match event {
                    Some(SourceEvent::Record(record)) => lanes.give(record),
                    Some(SourceEvent::Failed(fault)) => stopped = stopped.or(Some(fault)),
                    None => break,
                },
            }
        }
        stopped = stopped.or(lanes.finish().await);
        source.close(LAST_WORK).await;
        let closed = self.sink.close().await;
        let report = self.counters.report(started.elapsed().as_secs_f64());
        stopped.map_or(closed.map(|()| report), Err)
    }
}

/// The tasks of a run.
struct Lanes {
    shop: Arc<Shop>,
    concurrency: usize,
    ready: Option<mpsc::Sender<Ready>>,
    lanes: HashMap<i32, mpsc::UnboundedSender<Waiting>>,
    tasks: JoinSet<Result<(), Fault>>,
    is_aborted: bool,
}

impl Lanes {
    fn start(consumer: &Consumer) -> Self {
        let Consumer { settings, areas, store, sink, dead_letters, holdings, clock, counters } = consumer.clone();
        let allowed = (settings.retry, settings.allowance());
        let resolver = Resolver::new(store, Arc::clone(&clock), allowed, Arc::clone(&counters));
        let topic = settings.topic.clone();
        let retry = settings.retry;
        let notes = Arc::clone(&holdings);
        let shop = Shop { topic, areas, resolver, sink: Arc::clone(&sink), dead_letters, holdings, clock, retry, counters };
        let (ready, applied) = mpsc::channel(settings.batch_events);
        let concurrency = settings.concurrency;
        let mut tasks = JoinSet::new();
        tasks.spawn(applier::run(sink, applied, notes, settings));
        Self { shop: Arc::new(shop), concurrency, ready: Some(ready), lanes: HashMap::new(), tasks, is_aborted: false }
    }

    /// Gives a record to the lane of its partition. One that no lane takes any more is left to be delivered again.
    fn give(&mut self, record: IncomingRecord) {
        let (partition, waiting) = (record.ticket.partition(), self.shop.receive(record));
        let Some(ready) = self.ready.as_ref().filter(|_| !self.is_aborted) else { return };
        let lane = self.lanes.entry(partition).or_insert_with(|| {
            let (sender, records) = mpsc::unbounded_channel();
            self.tasks.spawn(lane::run(Arc::clone(&self.shop), records, ready.clone(), self.concurrency));
            sender
        });
        let _ = lane.send(waiting);
    }

    /// Waits for a task to fail; never returns while all go well.
    async fn failed(&mut self) -> Option<Fault> {
        match self.first_fault().await {
            Some(fault) => Some(fault),
            None => std::future::pending().await,
        }
    }

    /// Waits for a task to end with a fault; `None` when all have ended well.
    async fn first_fault(&mut self) -> Option<Fault> {
        while let Some(ended) = self.tasks.join_next().await {
            match ended {
                Ok(Ok(())) => {}
                Ok(Err(fault)) => return Some(fault),
                Err(error) if error.is_cancelled() => {}
                Err(error) => return Some(Fault::unavailable(format!("a task of the consumer ended: {error}"))),
            }
        }
        None
    }

    fn abort(&mut self) {
        self.is_aborted = true;
        self.lanes.clear();
        self.tasks.abort_all();
    }

    /// Lets the lanes end, and the applier after them.
    async fn finish(&mut self) -> Option<Fault> {
        self.lanes.clear();
        self.ready = None;
        // Work that has outlived the drain deadline is left to be delivered again.
        let fault = tokio::time::timeout(LAST_WORK, self.first_fault()).await.unwrap_or(None);
        self.tasks.shutdown().await;
        fault
    }
}
