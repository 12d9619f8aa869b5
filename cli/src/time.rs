//! Times as people give them.

use std::time::Duration;

use clap::Args;
use geoclaim_common::{Clock as _, Timestamp, clock::SystemClock, retention::Timing};

/// Reads a duration as a number with s, m, h or d.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let seconds = |unit: char| match unit {
        's' => Some(1),
        'm' => Some(60),
        'h' => Some(3_600),
        'd' => Some(86_400),
        _ => None,
    };
    let read = || {
        let unit = text.chars().last()?;
        text.strip_suffix(unit)?.parse::<u64>().ok()?.checked_mul(seconds(unit)?).map(Duration::from_secs)
    };
    read().ok_or_else(|| "expected a number with s, m, h or d, such as 90m, 2h or 7d".to_owned())
}

/// Reads a moment, or an age as [`duration`] has it.
pub(crate) fn moment(text: &str) -> Result<Timestamp, String> {
    let ago = |age: Duration| {
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(SystemClock.now().as_millis().saturating_sub(age))
    };
    Timestamp::parse_rfc3339(text)
        .or_else(|| duration(text).ok().map(ago))
        .ok_or_else(|| "expected a time such as 2026-08-08T12:00:00Z, or an age such as 90m, 2h or 7d".to_owned())
}

/// How long the steps of the sweep may take. Publishers read them from the store.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Times of the protocol")]
pub(crate) struct TimingArgs {
    /// Publishers' records are acknowledged so soon after their body was seen, or they look again
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10m", env = "GEOCLAIM_PUBLISH_DEADLINE")]
    publish_deadline: Duration,
    /// Room for clocks that differ, and for a broker that deletes late
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "24h")]
    margin: Duration,
    /// The second cycle comes so long after the first
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1h")]
    grace: Duration,
    /// How old a body must be that another has just written before a publisher relies on it
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s", hide = true)]
    settle: Duration,
    /// A body is deleted so soon after it was seen, or not
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "5s", hide = true)]
    delete_deadline: Duration,
}

impl TimingArgs {
    pub(crate) fn timing(&self) -> Timing {
        Timing {
            publish_deadline_seconds: self.publish_deadline.as_secs(),
            margin_seconds: self.margin.as_secs(),
            settle_seconds: self.settle.as_secs(),
            delete_deadline_seconds: self.delete_deadline.as_secs(),
            grace_seconds: self.grace.as_secs(),
        }
    }
}
