//! Whether topic, dead letters, bucket, ledger and limits still agree.
//!
//! They are configured in different systems, and when they drift apart, everything works until a replay. Each check says what it
//! found and, where that is wrong or unknown, what to do. Nothing is changed: what is written to test a permission is removed.

mod bodies;
mod bucket;
mod topics;

use std::{sync::Arc, time::Duration};

use geoclaim_common::{
    Fault,
    kafka::KafkaSettings,
    limits,
    retention::Timing,
    store::{Lifecycle, Store, StoreClock},
};
use serde::Serialize;

pub use bodies::{BodyCounters, Choice};

/// What a check came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As it must be.
    Ok,
    /// Not as it must be.
    Wrong,
    /// It cannot be found out.
    Unknown,
}

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was checked.
    pub check: &'static str,
    /// What it came to.
    pub status: Status,
    /// What was found, and what to do.
    pub detail: String,
}

impl Finding {
    fn ok(check: &'static str, detail: impl Into<String>) -> Self {
        Self { check, status: Status::Ok, detail: detail.into() }
    }

    fn wrong(check: &'static str, detail: impl Into<String>) -> Self {
        Self { check, status: Status::Wrong, detail: detail.into() }
    }

    fn unknown(check: &'static str, detail: impl Into<String>) -> Self {
        Self { check, status: Status::Unknown, detail: detail.into() }
    }

    /// What follows from a fault: a person must act, or nothing is known.
    fn of(check: &'static str, fault: &Fault) -> Self {
        match fault.kind {
            geoclaim_common::FaultKind::Unavailable => Self::unknown(check, &*fault.detail),
            _ => Self::wrong(check, &*fault.detail),
        }
    }
}

/// What is audited, and against what.
#[derive(Clone, Debug)]
pub struct AuditSettings {
    /// How to reach Kafka.
    pub kafka: KafkaSettings,
    /// The topic of the envelopes, the one of their dead letters, and others with envelopes of this store.
    pub topics: Vec<String>,
    /// The largest whole record that carries its body, as publishers have it.
    pub inline_limit_bytes: usize,
    /// How long consumers' ledgers keep an event; `None`: for ever.
    pub ledger_retention: Option<Duration>,
    /// Which bodies are fetched and verified.
    pub choice: Choice,
    /// By how much clocks may differ.
    pub clock_tolerance: Duration,
    /// The times of the protocol.
    pub timing: Timing,
}

impl AuditSettings {
    /// Makes settings with defaults for these topics.
    pub fn new(kafka: KafkaSettings, topics: Vec<String>) -> Self {
        Self {
            kafka,
            topics,
            inline_limit_bytes: limits::INLINE_RECORD_BYTES,
            ledger_retention: None,
            choice: Choice::Oldest(3),
            clock_tolerance: Duration::from_secs(30),
            timing: Timing::default(),
        }
    }
}

/// Audits.
#[derive(Clone, Debug)]
pub struct Audit {
    /// What and against what.
    pub settings: AuditSettings,
    /// Where bodies are.
    pub store: Store,
    /// When the bucket deletes by itself.
    pub lifecycle: Lifecycle,
    /// Counts bodies while it runs.
    pub counters: Arc<BodyCounters>,
}

impl Audit {
    /// Makes all checks. Those that stand on an answer that does not come are unknown.
    pub async fn run(&self) -> Vec<Finding> {
        let clock = StoreClock::new(self.store.clone());
        let mut findings = bucket::permissions(&self.store).await;
        findings.push(bucket::creates(&self.store).await);
        findings.push(bucket::clock(&clock, self.settings.clock_tolerance).await);
        let settings = self.settings.clone();
        let asked = tokio::task::spawn_blocking(move || topics::ask(&settings.kafka, &settings.topics)).await;
        let topics = asked.unwrap_or_default();
        for topic in &topics {
            findings.extend(topics::findings(topic, &self.settings));
        }
        findings.extend(topics::dead_letters(&topics));
        let now = clock.now().await.ok();
        findings.extend(topics::boundary(&topics, now, &self.settings, &self.lifecycle));
        findings.extend(bodies::findings(self, now).await);
        findings
    }
}
