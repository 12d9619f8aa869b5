//! What went wrong, by what the caller does next, and the one function that decides it.
//!
//! Errors are sorted by consequence, not by the library that raised them. [`next_step`] is the only place where a
//! kind becomes an action; it is exhaustive, so a new kind does not compile until somebody has decided.

use std::{fmt, time::Duration};

use crate::limits;

/// What a fault means for the work at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// Timeout, 5xx, throttled, expired credential: it may work later.
    Unavailable,
    /// The body is not there.
    Missing,
    /// The body has fewer bytes than declared.
    Truncated,
    /// The body has more bytes than declared.
    Lengthened,
    /// Right length, wrong digest.
    Corrupt,
    /// Not what the wire or GeoJSON allow.
    Malformed,
    /// Above a configured limit.
    TooLarge,
    /// Something that only an attacker or a broken producer writes, such as a key that is not the digest's.
    Hostile,
    /// The verified body contradicts its envelope (bbox or vertex count).
    Mismatch,
    /// A business outcome: the sink refused the change.
    Rejected,
    /// The lease is lost or the partition revoked; somebody else does the work.
    Fenced,
    /// Wrong topic, no permission, bad settings: a person must act.
    Configuration,
}

impl FaultKind {
    /// Returns the stable name that dead letters, logs and counters carry.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Missing => "body_missing",
            Self::Truncated => "body_truncated",
            Self::Lengthened => "body_lengthened",
            Self::Corrupt => "body_corrupt",
            Self::Malformed => "malformed",
            Self::TooLarge => "too_large",
            Self::Hostile => "hostile",
            Self::Mismatch => "envelope_mismatch",
            Self::Rejected => "rejected",
            Self::Fenced => "fenced",
            Self::Configuration => "configuration",
        }
    }

    /// Returns what sort of failure it is, for those who look through dead letters.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Unavailable => "transient",
            Self::Missing => "missing",
            Self::Truncated | Self::Lengthened | Self::Corrupt => "damaged",
            Self::Malformed | Self::TooLarge | Self::Hostile | Self::Mismatch => "poison",
            Self::Rejected => "outcome",
            Self::Fenced => "fenced",
            Self::Configuration => "configuration",
        }
    }
}

/// A fault: its kind and a text for people. The text never holds a secret or a whole body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What it means.
    pub kind: FaultKind,
    /// What was expected, what was found, and what to do.
    pub detail: String,
}

impl Fault {
    /// Makes a fault.
    pub fn new(kind: FaultKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }

    /// Makes a fault that may heal by itself.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(FaultKind::Unavailable, detail)
    }

    /// Makes a fault of the input.
    pub fn malformed(detail: impl Into<String>) -> Self {
        Self::new(FaultKind::Malformed, detail)
    }

    /// Makes a fault that a person must mend.
    pub fn configuration(detail: impl Into<String>) -> Self {
        Self::new(FaultKind::Configuration, detail)
    }

    /// Returns the detail for a log line or a dead letter: one line, control characters escaped, bounded.
    pub fn one_line(&self) -> String {
        let mut line = String::new();
        for character in self.detail.chars() {
            if line.len() >= limits::ERROR_TEXT_BYTES {
                line.push('…');
                break;
            }
            if character.is_control() { line.extend(character.escape_default()) } else { line.push(character) }
        }
        line
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for Fault {}

/// How a consumer retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct RetrySettings {
    /// First pause; it doubles with each attempt.
    pub first_pause_ms: u64,
    /// Longest pause.
    pub longest_pause_ms: u64,
    /// How often a truncated or lengthened body is fetched again.
    pub damaged_retries: u32,
    /// Younger envelopes may be ahead of a lagging store: their missing bodies are waited for.
    pub fresh_window_seconds: u64,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self { first_pause_ms: 100, longest_pause_ms: 10_000, damaged_retries: 3, fresh_window_seconds: 60 }
    }
}

/// What has been tried so far for one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// How many attempts failed with the same kind, this one included.
    pub failures: u32,
    /// Age of the envelope in the broker's time.
    pub age: Duration,
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// Try again after the pause.
    Retry(Duration),
    /// Try again once on a new connection, past any cache.
    RetryFresh,
    /// Set the envelope aside with its reason.
    DeadLetter,
    /// Record the outcome with the ledger row.
    Record,
    /// Drop the work unacknowledged; its new owner does it.
    Drop,
    /// Stop with a clear message.
    Stop,
}

/// Decides what a fault does next. This is the table of the design, and the only one.
pub fn next_step(kind: FaultKind, attempt: Attempt, settings: &RetrySettings) -> NextStep {
    let retry = NextStep::Retry(pause(attempt.failures, settings));
    match kind {
        FaultKind::Unavailable => retry,
        FaultKind::Missing if attempt.age < Duration::from_secs(settings.fresh_window_seconds) => retry,
        FaultKind::Missing => NextStep::DeadLetter,
        FaultKind::Truncated | FaultKind::Lengthened if attempt.failures <= settings.damaged_retries => retry,
        FaultKind::Truncated | FaultKind::Lengthened => NextStep::DeadLetter,
        FaultKind::Corrupt if attempt.failures <= 1 => NextStep::RetryFresh,
        FaultKind::Corrupt => NextStep::DeadLetter,
        FaultKind::Malformed | FaultKind::TooLarge | FaultKind::Hostile | FaultKind::Mismatch => NextStep::DeadLetter,
        FaultKind::Rejected => NextStep::Record,
        FaultKind::Fenced => NextStep::Drop,
        FaultKind::Configuration => NextStep::Stop,
    }
}

/// Returns the pause before the next attempt: doubling from the first to the longest.
pub fn pause(failures: u32, settings: &RetrySettings) -> Duration {
    let doubled = settings.first_pause_ms.saturating_mul(1 << failures.saturating_sub(1).min(20));
    Duration::from_millis(doubled.min(settings.longest_pause_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH: Duration = Duration::from_secs(1);
    const OLD: Duration = Duration::from_secs(3_600);

    fn step(kind: FaultKind, failures: u32, age: Duration) -> NextStep {
        next_step(kind, Attempt { failures, age }, &RetrySettings::default())
    }

    #[test]
    fn an_outage_never_becomes_a_dead_letter() {
        for failures in [1, 10, 1_000_000] {
            assert!(matches!(step(FaultKind::Unavailable, failures, OLD), NextStep::Retry(_)));
        }
    }

    #[test]
    fn a_missing_body_is_waited_for_only_while_its_envelope_is_fresh() {
        assert!(matches!(step(FaultKind::Missing, 9, FRESH), NextStep::Retry(_)));
        assert_eq!(step(FaultKind::Missing, 1, OLD), NextStep::DeadLetter);
    }

    #[test]
    fn a_damaged_body_is_retried_a_bounded_number_of_times() {
        assert!(matches!(step(FaultKind::Truncated, 3, OLD), NextStep::Retry(_)));
        assert_eq!(step(FaultKind::Truncated, 4, OLD), NextStep::DeadLetter);
        assert_eq!(step(FaultKind::Corrupt, 1, OLD), NextStep::RetryFresh);
        assert_eq!(step(FaultKind::Corrupt, 2, OLD), NextStep::DeadLetter);
    }

    #[test]
    fn hostile_input_is_set_aside_at_once_and_a_bad_setting_stops() {
        for kind in [FaultKind::Malformed, FaultKind::TooLarge, FaultKind::Hostile, FaultKind::Mismatch] {
            assert_eq!(step(kind, 1, FRESH), NextStep::DeadLetter);
        }
        assert_eq!(step(FaultKind::Rejected, 1, FRESH), NextStep::Record);
        assert_eq!(step(FaultKind::Fenced, 1, FRESH), NextStep::Drop);
        assert_eq!(step(FaultKind::Configuration, 1, FRESH), NextStep::Stop);
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let settings = RetrySettings::default();
        assert_eq!(pause(1, &settings), Duration::from_millis(100));
        assert_eq!(pause(3, &settings), Duration::from_millis(400));
        assert_eq!(pause(u32::MAX, &settings), Duration::from_secs(10));
    }

    #[test]
    fn a_line_for_a_log_is_one_line_and_bounded() {
        let fault = Fault::malformed(format!("a\nb\u{1b}[31m{}", "x".repeat(10_000)));
        let line = fault.one_line();
        assert!(line.starts_with("a\\nb\\u{1b}[31m") && line.len() < 300, "{line}");
    }
}
