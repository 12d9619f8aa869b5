//! The times of the protocol between publishers and the sweep.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Fault;

/// How long the steps of publishers and of the sweep may take. The defaults suit every store; shorter ones are for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Timing {
    /// A record is acknowledged so soon after its body was seen, or its publisher looks again.
    pub publish_deadline_seconds: u64,
    /// Room for clocks that differ and for a broker that deletes late.
    pub margin_seconds: u64,
    /// How old a body must be, that somebody else has written, before a publisher relies on it.
    pub settle_seconds: u64,
    /// The sweep deletes so soon after it saw the body, or not.
    pub delete_deadline_seconds: u64,
    /// The second cycle of the sweep comes so long after the first.
    pub grace_seconds: u64,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            publish_deadline_seconds: 600,
            margin_seconds: 24 * 3_600,
            settle_seconds: 10,
            delete_deadline_seconds: 5,
            grace_seconds: 3_600,
        }
    }
}

impl Timing {
    /// Checks that the times keep their order, which the protocol stands on.
    ///
    /// # Errors
    /// [`crate::FaultKind::Configuration`] with the one that is too short, and for what.
    pub fn validate(&self) -> Result<(), Fault> {
        let Self { publish_deadline_seconds, margin_seconds, settle_seconds, delete_deadline_seconds, grace_seconds } = *self;
        let longer = |name: &str, value: u64, least: u64, than: &str| match value >= least {
            true => Ok(()),
            false => Err(Fault::configuration(format!("{name} of {value} s is too short: {than} takes {least} s or more"))),
        };
        longer("the publish deadline", publish_deadline_seconds, 1, "a delivery")?;
        longer("the delete deadline", delete_deadline_seconds, 1, "a request")?;
        // Many stores tell time in whole seconds, so that an age may be wrong by one.
        longer("the settle time", settle_seconds, delete_deadline_seconds + 1, "a delete and a second")?;
        longer("the margin", margin_seconds, publish_deadline_seconds, "the publish deadline")?;
        // Half a boundary must hold both, or a body would be too old before it has settled.
        longer("the margin", margin_seconds, 2 * settle_seconds + 4, "twice the settle time and two seconds")?;
        // Publishers learn of a boundary within half their deadline, and act on what they knew before for one more.
        let grace = publish_deadline_seconds.saturating_mul(3) / 2 + settle_seconds;
        longer("the grace", grace_seconds, grace, "one and a half publish deadlines and the settle time")
    }

    /// Returns the publish deadline.
    pub fn publish_deadline(&self) -> Duration {
        Duration::from_secs(self.publish_deadline_seconds)
    }

    /// Returns what is added to the age of the earliest readable record.
    pub fn slack(&self) -> Duration {
        Duration::from_secs(self.publish_deadline_seconds.saturating_add(self.margin_seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_break_the_protocol_are_refused_with_the_one_that_is_too_short() {
        Timing::default().validate().unwrap();
        let refused = |timing: Timing| timing.validate().unwrap_err().detail;
        assert!(refused(Timing { settle_seconds: 5, ..Timing::default() }).contains("the settle time of 5 s is too short"));
        assert!(refused(Timing { grace_seconds: 60, ..Timing::default() }).contains("takes 910 s or more"));
        assert!(refused(Timing { margin_seconds: 599, ..Timing::default() }).contains("the margin"));
    }
}
