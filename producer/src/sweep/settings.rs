//! How to sweep.

use std::collections::BTreeSet;

use geoclaim_common::{Fault, retention::Timing};

/// Settings of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepSettings {
    /// Whether what is ripe is deleted; otherwise it is only planned.
    pub delete: bool,
    /// The times of the protocol.
    pub timing: Timing,
    /// Most of the bodies that one run deletes, in percent; if more would go, none does.
    pub most_share_percent: u8,
    /// Most requests a second.
    pub requests_per_second: u32,
    /// How long the lease lasts after the last sign of life of a sweep that was killed.
    pub lease_seconds: u64,
    /// How many deletes are on their way at once.
    pub concurrency: usize,
    /// Records that cannot be decoded and that a person has looked at, as `LOG/PARTITION/OFFSET`. What looks like a digest in
    /// them still counts as a reference.
    pub looked_at: BTreeSet<String>,
}

impl Default for SweepSettings {
    fn default() -> Self {
        Self {
            delete: false,
            timing: Timing::default(),
            most_share_percent: 50,
            requests_per_second: 500,
            lease_seconds: 60,
            concurrency: 8,
            looked_at: BTreeSet::new(),
        }
    }
}

impl SweepSettings {
    /// Checks the settings.
    ///
    /// # Errors
    /// [`geoclaim_common::FaultKind::Configuration`] with the setting and what is allowed.
    pub fn validate(&self) -> Result<(), Fault> {
        self.timing.validate()?;
        if self.most_share_percent > 100 || self.requests_per_second == 0 || self.concurrency == 0 {
            return Err(Fault::configuration("the share is 0 to 100 percent, and the rate and the concurrency are not zero"));
        }
        // Nothing that a sweep has sent is on its way any more when its lease has lapsed, whoever rounds to seconds.
        let least = self.timing.delete_deadline_seconds + 2;
        if self.lease_seconds < least {
            return Err(Fault::configuration(format!("the lease lasts {least} s or more: longer than a delete is on its way")));
        }
        Ok(())
    }
}
