//! Another topic: what meets the areas, written with the progress of the input in one transaction.
//!
//! For each effect there is one record under the feature's id, with a header `geoclaim.ledger` that says of what it is the
//! effect. The topic is its own ledger: when partitions are assigned, and after whatever went wrong, the sink reads what has
//! been committed to it since, and knows from it which events had their effect and which state of each feature stands. That
//! takes about a hundred bytes of memory for each event that the topic still has, and for each feature that it ever had.
//! An event that the topic did not take, for its record would be too large, is counted as rejected and not recorded. Give
//! the topic as many partitions as it will ever need: a feature whose partition changes has no order any more.
//!
//! A record is, by choice, an envelope ([`Emit::Envelope`], with a member `areas`; a stored body stays where it is) that
//! consumers of geoclaim can read further (members of the input's envelope that this version does not know are not passed
//! on), or a GeoJSON feature ([`Emit::Feature`]). A feature that has left the areas or is
//! deleted is an envelope with `"deleted": true`, or a feature whose member `geoclaim` says how.
//!
//! # What this guarantees, and where it ends
//!
//! Of a committed transaction, a reader with `isolation.level=read_committed` sees each record once, and the group's offsets
//! stand past what they were made of; of an aborted one it sees nothing, and the input comes again. A member that was taken
//! for dead and goes on is refused by its group's generation, and one that was started twice by its transactional id, which
//! stays the same when it is started again and must be another for each member of a group.
//!
//! It ends at the topic. Readers with `read_uncommitted` see what was aborted. What a reader does with a record it may do
//! twice, unless it keeps a ledger of its own, as [`super::postgis`] does. An event that is older than what the topic keeps
//! is not known any more: keep the topic at least as long as the input and its dead letters. And the protocol itself has
//! known faults: before KIP-890 (Apache Kafka 4.0) a producer's late request could be taken for a part of its next
//! transaction, and hang or tear it; analyses of brokers that speak the protocol (Jepsen, of Bufstream 0.1, 2024) found lost
//! and torn transactions. A sink with a database's transaction stands on less.

mod ledger;
mod record;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use async_trait::async_trait;
use geoclaim_common::{
    Fault,
    clock::Stopwatch,
    kafka::{Follower, Input, KafkaSettings, Membership, Progress, TransactionalSink},
    stream::{Assignment, OutgoingRecord},
};

use super::{Change, Effect, Features, Sink};
use ledger::{Draft, Ledger};
pub use record::Emit;
use record::Writer;

/// How often is looked for what others have written, where nothing else calls for it.
const LOOK: Duration = Duration::from_secs(5);

/// Writes effects to a topic.
#[derive(Debug)]
pub struct TopicSink {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    topic: TransactionalSink,
    writer: Writer,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    ledger: Ledger,
    follower: Follower,
    /// It is not known what the last transaction came to, or the topic has not been read to its end.
    is_unread: bool,
    /// The assignments of partitions since whose first records the topic has been read: all that an earlier owner did to
    /// them is in it.
    known: Vec<Weak<Assignment>>,
    /// How often partitions had been assigned when the topic was last read.
    assignments: u64,
    read_since: Stopwatch,
}

/// A topic to write to.
#[derive(Clone, Debug)]
pub struct Output {
    /// Its name.
    pub topic: String,
    /// How many partitions it has.
    pub partitions: usize,
    /// The largest record that it takes.
    pub message_bytes: usize,
    /// What a record is.
    pub emit: Emit,
}

impl TopicSink {
    /// Opens the sink for `consumer`. The transactional id must stay the same when a member is started again, and be
    /// another one for each member. Blocks; call it off the async threads.
    ///
    /// # Errors
    /// The settings are wrong, no broker answers, or input and output are one topic.
    pub fn open(
        settings: &KafkaSettings,
        output: &Output,
        input: Input,
        (consumer, transactional_id): (&str, &str),
    ) -> Result<Self, Fault> {
        if output.topic == input.topic {
            return Err(Fault::configuration(format!("topic {} cannot be read and written to: it would never end", input.topic)));
        }
        let follower = Follower::open(settings, &output.topic, output.partitions)?;
        let topic = TransactionalSink::open(settings, (&output.topic, output.message_bytes), transactional_id, input)?;
        let writer = Writer { consumer: consumer.to_owned(), emit: output.emit, most_bytes: output.message_bytes };
        let state = State {
            ledger: Ledger::default(),
            follower,
            is_unread: true,
            known: Vec::new(),
            assignments: 0,
            read_since: Stopwatch::start(),
        };
        Ok(Self { inner: Arc::new(Inner { topic, writer, state: Mutex::new(state) }) })
    }

    async fn with<T: Send + 'static>(&self, work: impl FnOnce(&Inner) -> Result<T, Fault> + Send + 'static) -> Result<T, Fault> {
        let inner = Arc::clone(&self.inner);
        let done = tokio::task::spawn_blocking(move || work(&inner)).await;
        done.unwrap_or_else(|error| Err(Fault::unavailable(error.to_string())))
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn membership(&self) -> &Membership {
        self.topic.membership()
    }

    /// Reads what has been committed.
    fn catch_up(&self, state: &mut State) -> Result<(), Fault> {
        let assignments = self.membership().assignments();
        let State { ledger, follower, .. } = state;
        // Until it has come to the end, an older state may stand where a newer did.
        state.is_unread = true;
        let starts = follower.catch_up(|record| ledger.read(&record, &self.writer.consumer))?;
        ledger.forget(starts);
        (state.is_unread, state.assignments, state.read_since) = (false, assignments, Stopwatch::start());
        Ok(())
    }

    /// Reads what has been committed when it is not known, or partitions have come: their first records are there, so
    /// that whatever their last owner had in a transaction is decided.
    fn know(&self, state: &mut State, progress: &[Progress]) -> Result<(), Fault> {
        state.known.retain(|known| known.strong_count() > 0);
        let is_known = |of: &Progress| state.known.iter().any(|known| Weak::as_ptr(known) == Arc::as_ptr(&of.assignment));
        let new: Vec<_> = progress.iter().filter(|of| !is_known(of)).map(|of| Arc::downgrade(&of.assignment)).collect();
        if state.is_unread || !new.is_empty() {
            self.catch_up(state)?;
        }
        state.known.extend(new);
        Ok(())
    }

    fn apply(&self, batch: &[Change], progress: &[Progress]) -> Result<Vec<Effect>, Fault> {
        let mut state = self.state();
        self.know(&mut state, progress)?;
        let mut draft = Draft::of(&state.ledger);
        let mut records: Vec<OutgoingRecord> = Vec::new();
        let mut effects = Vec::with_capacity(batch.len());
        for change in batch {
            let (effect, is_again) = draft.judge(change);
            effects.push(match self.writer.record(change, (&effect, is_again)) {
                Ok(Some(record)) => {
                    records.push(record);
                    draft.take(change);
                    effect
                }
                Ok(None) => effect,
                Err(why) => Effect::Rejected(why),
            });
        }
        let entries = draft.entries();
        if !records.is_empty() || !progress.is_empty() {
            state.is_unread = true;
            self.topic.write(&records, progress)?;
            state.is_unread = false;
        }
        state.ledger.enter(entries);
        Ok(effects)
    }
}

#[async_trait]
impl Sink for TopicSink {
    async fn apply(&self, batch: Arc<Vec<Change>>) -> Result<Vec<Effect>, Fault> {
        self.apply_with_progress(batch, Vec::new()).await
    }

    async fn apply_with_progress(&self, batch: Arc<Vec<Change>>, progress: Vec<Progress>) -> Result<Vec<Effect>, Fault> {
        self.with(move |inner| inner.apply(&batch, &progress)).await
    }

    async fn features(&self, mark: u64) -> Result<Features, Fault> {
        self.with(move |inner| {
            let mut state = inner.state();
            let is_assigned = state.assignments != inner.membership().assignments();
            if state.is_unread || mark == 0 || is_assigned || state.read_since.elapsed() > LOOK {
                inner.catch_up(&mut state)?;
            }
            Ok(state.ledger.features(mark))
        })
        .await
    }

    async fn close(&self) -> Result<(), Fault> {
        self.with(|inner| {
            inner.topic.close();
            Ok(())
        })
        .await
    }
}
