//! How to consume.

use geoclaim_common::{Fault, Spool, fault::RetrySettings, limits};
use serde::{Deserialize, Serialize};

use crate::resolve::Allowance;

/// Settings of a consumer. All are values; the components are given to [`crate::Consumer`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConsumeSettings {
    /// The topic, for dead letters and logs.
    pub topic: String,
    /// How many bytes of records and bodies may be held at once.
    pub budget_bytes: u64,
    /// The largest body that is fetched.
    pub body_bytes: u64,
    /// Where bodies are kept that are larger than memory is to hold.
    pub spool: Spool,
    /// How many records of one partition are worked on at once.
    pub concurrency: usize,
    /// How many events are applied in one transaction.
    pub batch_events: usize,
    /// How many bytes of bodies are applied in one transaction.
    pub batch_bytes: u64,
    /// How long a batch waits for more.
    pub batch_linger_ms: u64,
    /// How many discarded events are remembered, about 40 bytes each, so that one that comes again, or late after a
    /// newer version, is known for what it is.
    pub remembered_discards: usize,
    /// How long the ledger keeps an event, in seconds; `None`: for ever. Must be longer than anything can deliver an event
    /// again: see [`geoclaim_common::retention`].
    pub ledger_retention_seconds: Option<u64>,
    /// How faults are retried.
    pub retry: RetrySettings,
}

impl Default for ConsumeSettings {
    fn default() -> Self {
        Self {
            topic: String::new(),
            budget_bytes: limits::CONSUME_IN_FLIGHT_BYTES,
            body_bytes: limits::BODY_BYTES,
            spool: Spool::default(),
            concurrency: 8,
            batch_events: 500,
            batch_bytes: 8 << 20,
            batch_linger_ms: 20,
            remembered_discards: 500_000,
            ledger_retention_seconds: None,
            retry: RetrySettings::default(),
        }
    }
}

impl ConsumeSettings {
    /// Returns the part of the budget that is for records: what the source's `queued_bytes` should be.
    pub fn record_bytes(&self) -> usize {
        usize::try_from(self.budget_bytes / 8).unwrap_or(usize::MAX).min(32 << 20)
    }

    /// Returns what fetched bodies may take.
    pub(crate) fn allowance(&self) -> Allowance {
        Allowance::new(self.body_bytes, self.budget_bytes - self.record_bytes() as u64, self.spool.clone())
    }

    /// Checks that the settings can work together.
    ///
    /// # Errors
    /// [`geoclaim_common::FaultKind::Configuration`] with the setting and what is allowed.
    pub fn validate(&self) -> Result<(), Fault> {
        if self.concurrency == 0 || self.batch_events == 0 || self.budget_bytes == 0 || self.body_bytes == 0 {
            return Err(Fault::configuration("concurrency, batch, budget and the largest body must not be zero"));
        }
        Ok(())
    }
}
