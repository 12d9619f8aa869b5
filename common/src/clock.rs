//! The one module that reads the clock.
//!
//! Everything that needs the time takes a [`Clock`], so that a test can hold it still and move it.
//! Time here is only ever used for *age* (is an envelope fresh?), never to order two states of a feature.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

/// A moment of wall-clock time: milliseconds since 1970-01-01T00:00:00Z, the resolution of a Kafka timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Makes a moment from milliseconds since the epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns the milliseconds since the epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns how long ago `earlier` was; zero when it lies in the future, since two clocks never agree.
    pub fn since(self, earlier: Self) -> Duration {
        let millis = self.0.saturating_sub(earlier.0).max(0);
        Duration::from_millis(millis.unsigned_abs())
    }

    /// Returns the moment so much later.
    #[must_use]
    pub fn after(self, by: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Reads an RFC 3339 string with an offset. Returns `None` when it is not one.
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let moment: jiff::Timestamp = text.parse().ok()?;
        Some(Self(moment.as_millisecond()))
    }

    /// Writes the moment as an RFC 3339 string in UTC.
    pub fn to_rfc3339(self) -> String {
        jiff::Timestamp::from_millisecond(self.0).map_or_else(|_| format!("@{}ms", self.0), |moment| moment.to_string())
    }
}

/// Tells the time.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Returns the wall-clock time.
    fn now(&self) -> Timestamp;
}

/// The clock of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp(jiff::Timestamp::now().as_millisecond())
    }
}

/// A clock that stands still until it is moved, for tests and for an embedder's own.
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    /// Makes a clock that shows `start`.
    pub fn at(start: Timestamp) -> Self {
        Self(Arc::new(AtomicI64::new(start.0)))
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        let millis = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

/// Measures elapsed time on the monotonic clock, for reports and deadlines.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts measuring.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Returns the time since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// A moment of this process that a deadline counts from. The monotonic clock stands still while the machine is suspended, and
/// the other may be set: the longer of both counts.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    watch: Stopwatch,
    time: Timestamp,
}

impl Moment {
    /// Returns this moment.
    pub fn now() -> Self {
        Self { watch: Stopwatch::start(), time: SystemClock.now() }
    }

    /// Returns how long ago it was.
    pub fn elapsed(&self) -> Duration {
        self.watch.elapsed().max(SystemClock.now().since(self.time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_from_the_future_has_no_age() {
        let now = Timestamp::from_millis(1_000);
        assert_eq!(now.since(Timestamp::from_millis(5_000)), Duration::ZERO);
        assert_eq!(now.since(Timestamp::from_millis(400)), Duration::from_millis(600));
    }

    #[test]
    fn rfc_3339_is_read_with_its_offset_and_written_in_utc() {
        let moment = Timestamp::parse_rfc3339("2026-08-08T12:00:00+02:00").unwrap();
        assert_eq!(moment.to_rfc3339(), "2026-08-08T10:00:00Z");
        assert_eq!(Timestamp::parse_rfc3339("2026-08-08"), None);
    }
}
