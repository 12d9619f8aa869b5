//! Kafka: the only module that names `rdkafka`.
//!
//! Settings are values ([`KafkaSettings`]); the sink and the source are handles. The client settings that the
//! promises stand on are fixed here; any other librdkafka property can be given by name.

mod earliest;
mod embedded;
mod fault;
mod follower;
mod headers;
mod reader;
mod replay;
mod settings;
mod sink;
mod source;
mod topics;
mod transactions;

pub use earliest::{Bounds, bounds};
pub use embedded::EmbeddedBroker;
pub use follower::Follower;
pub use reader::{StoredRecord, read_everything, read_topic};
pub use replay::{ReplayFrom, begin_at};
pub use settings::{KafkaSettings, REFUSED_PROPERTIES};
pub use sink::KafkaSink;
pub use source::{KafkaSource, Membership, SourceEnd, SourceSettings};
pub use topics::{Cleanup, NewTopic, Timestamps, TopicFacts, create_topic, topic_facts};
pub use transactions::{Input, Progress, TransactionalSink};
