//! How to publish.

use std::time::Duration;

use geoclaim_common::{Fault, Spool, encoding, extent::MeasureOptions, fault::RetrySettings, limits, retention::Timing};

use crate::{
    identity::IdRule,
    put::PutSettings,
    read::{ReadOptions, Taken},
};

/// Settings of a publisher. All are values; the components are given to [`super::Publisher`].
#[derive(Clone, Debug, PartialEq)]
pub struct PublishSettings {
    /// The name of the run; the same name makes the same event identities.
    pub run: String,
    /// Where a feature's identity comes from.
    pub id_rule: IdRule,
    /// The property that holds a feature's version, an integer that rises.
    pub version_property: Option<String>,
    /// Whether each feature or each whole document is an event.
    pub taken: Taken,
    /// How bodies are measured.
    pub measure: MeasureOptions,
    /// The largest whole record, in bytes as the broker counts them, that still carries its body.
    pub inline_limit_bytes: usize,
    /// The largest body.
    pub body_bytes: u64,
    /// The level at which stored bodies are compressed with Zstandard, 1 to 19; `None` stores them as they are.
    pub zstd_level: Option<i32>,
    /// How many bytes of bodies may be in flight, beside the one being read.
    pub in_flight_bytes: u64,
    /// Where bodies are kept that are larger than memory is to hold; their bytes are not counted as in flight.
    pub spool: Spool,
    /// How many bodies may be measured and put at once.
    pub concurrency: usize,
    /// How long a put may be tried again.
    pub put_deadline_seconds: u64,
    /// How a put is tried again.
    pub retry: RetrySettings,
    /// How long a record of the topic can be read, as far as is known; with what the protocol adds it is the retention
    /// boundary, and a body older than half of it is written again. `None` takes the shortest that any sweep can have.
    pub readable_seconds: Option<u64>,
    /// How long the sink tries to deliver a record before it gives up: Kafka's `message.timeout.ms`.
    pub delivery_seconds: u64,
    /// The times of the protocol between publishers and the sweep.
    pub timing: Timing,
}

impl Default for PublishSettings {
    fn default() -> Self {
        Self {
            run: crate::identity::new_run(),
            id_rule: IdRule::Member,
            version_property: None,
            taken: Taken::ByFeature,
            measure: MeasureOptions { cover_bytes: limits::COVER_BYTES, ..MeasureOptions::default() },
            inline_limit_bytes: limits::INLINE_RECORD_BYTES,
            body_bytes: limits::BODY_BYTES,
            zstd_level: None,
            in_flight_bytes: limits::PUBLISH_IN_FLIGHT_BYTES,
            spool: Spool::default(),
            concurrency: 16,
            put_deadline_seconds: 120,
            retry: RetrySettings::default(),
            readable_seconds: None,
            delivery_seconds: 120,
            timing: Timing::default(),
        }
    }
}

impl PublishSettings {
    /// Checks the settings, and that the topic takes records of the inline limit.
    ///
    /// # Errors
    /// [`geoclaim_common::FaultKind::Configuration`] with the setting, its value and what is allowed.
    pub fn validate(&self, max_message_bytes: Option<usize>) -> Result<(), Fault> {
        if self.run.is_empty() || self.concurrency == 0 || self.in_flight_bytes == 0 || self.body_bytes == 0 {
            return Err(Fault::configuration("the run's name and the limits must not be empty or zero"));
        }
        if self.zstd_level.is_some_and(|level| !encoding::LEVELS.contains(&level)) {
            return Err(Fault::configuration(format!("levels of Zstandard are {:?}", encoding::LEVELS)));
        }
        if self.inline_limit_bytes < limits::CLAIM_RECORD_BYTES {
            let detail = format!(
                "the inline limit of {} bytes is below {}, which a claim check needs",
                self.inline_limit_bytes,
                limits::CLAIM_RECORD_BYTES
            );
            return Err(Fault::configuration(detail));
        }
        self.timing.validate()?;
        if self.delivery_seconds >= self.timing.publish_deadline_seconds {
            return Err(Fault::configuration(format!(
                "a record may be on its way for {} s, which leaves nothing of the publish deadline of {} s: lower                  message.timeout.ms or raise the deadline",
                self.delivery_seconds, self.timing.publish_deadline_seconds
            )));
        }
        match max_message_bytes {
            Some(most) if self.inline_limit_bytes.saturating_add(limits::RECORD_OVERHEAD_BYTES) > most => {
                Err(Fault::configuration(format!(
                    "the inline limit of {} bytes plus {} of overhead exceeds the topic's max.message.bytes of {most}: \
                 lower --inline-limit to {} or raise the topic's setting",
                    self.inline_limit_bytes,
                    limits::RECORD_OVERHEAD_BYTES,
                    most.saturating_sub(limits::RECORD_OVERHEAD_BYTES),
                )))
            }
            _ => Ok(()),
        }
    }

    /// Returns how bodies are put.
    pub(super) fn put(&self) -> PutSettings {
        let boundary = Duration::from_secs(self.readable_seconds.unwrap_or(0)).saturating_add(self.timing.slack());
        let deadline = Duration::from_secs(self.put_deadline_seconds);
        PutSettings { retry: self.retry, deadline, boundary, timing: self.timing }
    }

    /// Returns how long a record may be on its way.
    pub(super) fn delivery(&self) -> Duration {
        Duration::from_secs(self.delivery_seconds)
    }

    /// Returns how sources are read.
    pub(super) fn read_options(&self) -> ReadOptions {
        // What does not fit among the bodies in flight is not held in memory while it is read, either.
        let spool = Spool { from_bytes: self.spool.from_bytes.min(self.in_flight_bytes), ..self.spool.clone() };
        ReadOptions { taken: self.taken, most_bytes: self.body_bytes, crs: self.measure.scan.crs, spool }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inline_limit_above_what_the_topic_takes_is_refused_at_the_start() {
        let settings = PublishSettings::default();
        settings.validate(None).unwrap();
        settings.validate(Some(1_048_588)).unwrap();
        let fault = settings.validate(Some(262_144)).unwrap_err();
        assert!(fault.detail.contains("lower --inline-limit to 258048"), "{fault}");
    }
}
