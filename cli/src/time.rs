//! Times as people give them.

use std::time::Duration;

use geoclaim_common::{Clock as _, Timestamp, clock::SystemClock};

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
