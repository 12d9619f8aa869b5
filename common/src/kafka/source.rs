//! The source: a member of a consumer group, polled on a thread of its own.
//!
//! The thread never waits for the work. Records are judged in the receive buffer; those that are admitted go out with
//! a ticket; partitions with too much out are paused. Offsets are stored only up to the watermark, so an
//! acknowledgement never passes an unfinished record, and the client commits what is stored, forward only.
//! When partitions are revoked, the thread waits for their work up to the drain deadline, commits, and fences the rest.

mod group;
mod membership;
mod state;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use rdkafka::consumer::{BaseConsumer, Consumer};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use super::{KafkaSettings, fault::fault_of};
use crate::{
    Fault,
    stream::{EnvelopeSource, Gate, SourceEvent},
};
use group::Group;
pub use membership::Membership;
use state::State;

/// When a source ends by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SourceEnd {
    /// It goes on until it is stopped.
    #[default]
    Never,
    /// It ends when it has reached the end of every partition that it was assigned.
    EndOfTopic,
}

/// How a source consumes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceSettings {
    /// The consumer group.
    pub group: String,
    /// When the source ends by itself.
    pub end: SourceEnd,
    /// How long the end of the topic must have lasted before the source ends there.
    pub end_linger_ms: u64,
    /// How many records of one partition may be out before it is paused.
    pub records_per_partition: usize,
    /// How many bytes of records may be out before partitions are paused.
    pub queued_bytes: usize,
    /// How long a revoked partition or a stop waits for work in flight. Must be below the session timeout.
    pub drain_seconds: u64,
}

impl Default for SourceSettings {
    fn default() -> Self {
        Self {
            group: "geoclaim".into(),
            end: SourceEnd::Never,
            end_linger_ms: 0,
            records_per_partition: 2_000,
            queued_bytes: 32 << 20,
            drain_seconds: 20,
        }
    }
}

/// Reads one topic as a member of a group.
#[derive(Debug)]
pub struct KafkaSource {
    events: mpsc::UnboundedReceiver<SourceEvent>,
    stop: Arc<AtomicBool>,
    closed: Option<oneshot::Receiver<()>>,
}

impl KafkaSource {
    /// Joins the group and begins to poll. `gate` is asked on the polling thread, for each record in order.
    ///
    /// # Errors
    /// The settings are wrong.
    pub fn open(settings: &KafkaSettings, topic: &str, source: &SourceSettings, gate: Arc<dyn Gate>) -> Result<Self, Fault> {
        Self::open_as(&Membership::default(), settings, topic, source, gate)
    }

    /// As [`KafkaSource::open`], with a membership that transactions can refer to.
    ///
    /// # Errors
    /// As [`KafkaSource::open`].
    pub fn open_as(
        membership: &Membership,
        settings: &KafkaSettings,
        topic: &str,
        source: &SourceSettings,
        gate: Arc<dyn Gate>,
    ) -> Result<Self, Fault> {
        settings.validate()?;
        let mut config = settings.member(&source.group);
        if source.end == SourceEnd::EndOfTopic {
            config.set("enable.partition.eof", "true");
        }
        if membership.is_transactional() {
            // A commit of the client's own could come after one in a transaction, and take it back.
            config.set("enable.auto.commit", "false");
        }
        let (events, received) = mpsc::unbounded_channel();
        let stop = Arc::new(AtomicBool::new(false));
        let (closing, closed) = oneshot::channel();
        let group = Group::new(State::new(topic, source, gate, events), membership.clone());
        let consumer: Arc<BaseConsumer<Group>> = Arc::new(config.create_with_context(group).map_err(|error| fault_of(&error))?);
        membership.join(&consumer);
        consumer.subscribe(&[topic]).map_err(|error| fault_of(&error))?;
        let stopping = Arc::clone(&stop);
        std::thread::Builder::new()
            .name("geoclaim-source".into())
            .spawn(move || {
                group::poll_until_ended(&consumer, &stopping);
                drop(consumer);
                let _ = closing.send(());
            })
            .map_err(|error| Fault::unavailable(format!("no thread for the source: {error}")))?;
        Ok(Self { events: received, stop, closed: Some(closed) })
    }
}

#[async_trait]
impl EnvelopeSource for KafkaSource {
    async fn next(&mut self) -> Option<SourceEvent> {
        self.events.recv().await
    }

    fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    async fn close(&mut self, within: Duration) {
        self.stop();
        if let Some(closed) = self.closed.take() {
            let _ = tokio::time::timeout(within, closed).await;
        }
    }
}

impl Drop for KafkaSource {
    fn drop(&mut self) {
        self.stop();
    }
}
