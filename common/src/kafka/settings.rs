//! Which librdkafka properties are set, and why. The numbers and their reasons come from librdkafka's
//! CONFIGURATION.md and from runs against it.

use std::{collections::BTreeMap, fmt};

use rdkafka::ClientConfig;
use serde::{Deserialize, Serialize};

use crate::Fault;

/// Properties that cannot be given, each with the promise it would break.
pub const REFUSED_PROPERTIES: &[(&str, &str)] = &[
    ("bootstrap.servers", "it is what --brokers says"),
    ("metadata.broker.list", "it is what --brokers says"),
    ("group.id", "it is what --group says"),
    ("enable.idempotence", "a retry would write a record twice or out of order"),
    ("acks", "a record could be lost after it was acknowledged"),
    ("request.required.acks", "a record could be lost after it was acknowledged"),
    ("enable.gapless.guarantee", "it is experimental and fatal on any gap"),
    ("transactional.id", "it is what --transactional-id says"),
    ("enable.auto.offset.store", "a record would count as done when it is handed over"),
    ("enable.auto.commit", "offsets are committed from what is done, and only forward"),
    ("auto.offset.reset", "a new group must read what is there"),
    ("isolation.level", "aborted records must not be seen"),
    ("enable.partition.eof", "the end of a partition is told by --until-end"),
    ("partition.assignment.strategy", "all members of a group must use one strategy"),
    ("group.protocol", "all members of a group must use one protocol"),
];

/// Words in a property's name that make its value a secret.
const SECRET_WORDS: &[&str] = &["password", "secret", "token", "jaas", "key.pem", "oauthbearer.config"];

/// How long a record may be on its way, in milliseconds.
const DELIVERY_MS: &str = "120000";

/// How to reach Kafka.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KafkaSettings {
    /// Host and port of one or more brokers, separated by commas.
    pub brokers: String,
    /// Further librdkafka properties by name.
    #[serde(default)]
    pub properties: BTreeMap<String, String>,
}

impl KafkaSettings {
    /// Makes settings for these brokers.
    pub fn new(brokers: impl Into<String>) -> Self {
        Self { brokers: brokers.into(), properties: BTreeMap::new() }
    }

    /// Checks that there is a broker and no refused property.
    ///
    /// # Errors
    /// [`crate::FaultKind::Configuration`] with the property and the promise it would break.
    pub fn validate(&self) -> Result<(), Fault> {
        if self.brokers.trim().is_empty() {
            return Err(Fault::configuration("no brokers: give --brokers HOST:PORT or GEOCLAIM_BROKERS"));
        }
        let refused = REFUSED_PROPERTIES.iter().find(|(name, _)| self.properties.contains_key(*name));
        match refused {
            Some((name, why)) => Err(Fault::configuration(format!("property {name} cannot be set: {why}"))),
            None => Ok(()),
        }
    }

    /// Returns how long a producer tries to deliver a record before it gives up, in seconds and rounded up.
    ///
    /// # Errors
    /// [`crate::FaultKind::Configuration`]: the property that says so is no number, or says for ever.
    pub fn delivery_seconds(&self) -> Result<u64, Fault> {
        let names = ["message.timeout.ms", "delivery.timeout.ms"];
        let given = names.iter().find_map(|name| self.properties.get(*name)).map_or(DELIVERY_MS, String::as_str);
        match given.trim().parse::<u64>() {
            Ok(milliseconds) if milliseconds > 0 => Ok(milliseconds.div_ceil(1_000)),
            _ => Err(Fault::configuration(format!("message.timeout.ms={given}: a record must not be on its way for ever"))),
        }
    }

    /// Returns the configuration of a client that neither produces nor joins a group.
    pub(super) fn client(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.brokers).set("client.id", "geoclaim").set("allow.auto.create.topics", "false");
        // Errors come back as errors; librdkafka's own lines on standard error would say everything twice.
        config.set("log_level", "3").set("broker.address.ttl", "30000").set("reconnect.backoff.max.ms", "2000");
        config
    }

    /// Returns the configuration of a producer whose topic takes records of `message_bytes`.
    pub(super) fn producer(&self, message_bytes: usize) -> ClientConfig {
        let mut config = self.client();
        config
            // Off by default in librdkafka. Forces acks=all, endless retries and at most five requests in flight.
            .set("enable.idempotence", "true")
            .set("message.timeout.ms", DELIVERY_MS)
            .set("queue.buffering.max.messages", "10000")
            .set("queue.buffering.max.kbytes", "65536")
            .set("linger.ms", "5")
            .set("message.max.bytes", message_bytes.to_string())
            // As Java producers do, so that the same key goes to the same partition whoever writes it.
            .set("partitioner", "murmur2_random");
        self.finish(config)
    }

    /// Returns the configuration of a member of `group`.
    pub(super) fn member(&self, group: &str) -> ClientConfig {
        let mut config = self.reader();
        config
            .set("group.id", group)
            .set("enable.auto.offset.store", "false")
            .set("enable.auto.commit", "true")
            .set("auto.commit.interval.ms", "1000")
            .set("auto.offset.reset", "earliest")
            .set("session.timeout.ms", "45000")
            .set("heartbeat.interval.ms", "3000")
            .set("max.poll.interval.ms", "300000")
            .set("partition.assignment.strategy", "cooperative-sticky");
        self.finish(config)
    }

    /// Returns the configuration of a reader that names its own partitions.
    pub(super) fn reader(&self) -> ClientConfig {
        let mut config = self.client();
        config
            .set("isolation.level", "read_committed")
            .set("check.crcs", "true")
            // Bounded by bytes. A small number of messages would be read up in no time, and the next fetch then waits
            // for the back-off, which is a second by default.
            .set("queued.min.messages", "100000")
            .set("queued.max.messages.kbytes", "16384")
            .set("fetch.queue.backoff.ms", "20")
            .set("fetch.message.max.bytes", "1048576")
            .set("fetch.max.bytes", "16777216")
            .set("receive.message.max.bytes", "20971520")
            .set("fetch.wait.max.ms", "100");
        self.finish(config)
    }

    /// Puts the given properties on top of ours.
    pub(super) fn finish(&self, mut config: ClientConfig) -> ClientConfig {
        for (name, value) in &self.properties {
            config.set(name, value);
        }
        config
    }
}

impl fmt::Debug for KafkaSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_secret = |name: &str| SECRET_WORDS.iter().any(|word| name.contains(word));
        let shown = self.properties.iter().map(|(name, value)| (name, if is_secret(name) { "…" } else { value }));
        f.debug_struct("KafkaSettings")
            .field("brokers", &self.brokers)
            .field("properties", &shown.collect::<BTreeMap<_, _>>())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: &str) -> KafkaSettings {
        KafkaSettings { properties: [(name.into(), value.into())].into(), ..KafkaSettings::new("localhost:9092") }
    }

    #[test]
    fn a_property_that_would_break_a_promise_is_refused_and_others_pass_through() {
        for (name, _) in REFUSED_PROPERTIES {
            assert!(with(name, "x").validate().unwrap_err().detail.contains(name));
        }
        let settings = with("linger.ms", "50");
        settings.validate().unwrap();
        assert_eq!(settings.producer(1_000_000).get("linger.ms"), Some("50"));
        assert_eq!(settings.producer(1_000_000).get("enable.idempotence"), Some("true"));
    }

    #[test]
    fn a_secret_is_not_printed() {
        let shown = format!("{:?}", with("sasl.password", "hunter2"));
        assert!(shown.contains("sasl.password") && !shown.contains("hunter2"), "{shown}");
    }
}
