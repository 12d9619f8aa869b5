//! A broker in this process: librdkafka's own test cluster, which speaks the real protocol.

use rdkafka::{mocking::MockCluster, producer::DefaultProducerContext};

use super::{KafkaSettings, fault::fault_of};
use crate::Fault;

/// A cluster of one broker that lives as long as this value. It keeps about 5 MB a partition and nothing on disk: it
/// is for a demonstration and for tests, not for data that must last.
pub struct EmbeddedBroker {
    cluster: MockCluster<'static, DefaultProducerContext>,
}

impl EmbeddedBroker {
    /// Starts the broker on a free loopback port.
    ///
    /// # Errors
    /// The cluster cannot be made.
    pub fn start() -> Result<Self, Fault> {
        MockCluster::new(1).map(|cluster| Self { cluster }).map_err(|error| fault_of(&error))
    }

    /// Makes a topic.
    ///
    /// # Errors
    /// The name is taken or no topic name.
    pub fn create_topic(&self, name: &str, partitions: i32) -> Result<(), Fault> {
        self.cluster.create_topic(name, partitions, 1).map_err(|error| fault_of(&error))
    }

    /// Returns the settings that reach this broker.
    pub fn settings(&self) -> KafkaSettings {
        KafkaSettings::new(self.cluster.bootstrap_servers())
    }
}

impl std::fmt::Debug for EmbeddedBroker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EmbeddedBroker({})", self.cluster.bootstrap_servers())
    }
}
