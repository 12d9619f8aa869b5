//! What a topic is like, and making one.

use std::time::Duration;

use rdkafka::{
    admin::{AdminClient, AdminOptions, NewTopic as AdminTopic, ResourceSpecifier, TopicReplication},
    client::DefaultClientContext,
    consumer::{BaseConsumer, Consumer},
    types::RDKafkaErrorCode as Code,
};

use super::{KafkaSettings, fault::fault_of};
use crate::Fault;

/// How long a question to a broker may take.
const ANSWER: Duration = Duration::from_secs(15);

/// What is known of a topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopicFacts {
    /// How many partitions it has.
    pub partitions: usize,
    /// Its `max.message.bytes`; `None` when the broker does not say (the embedded one does not).
    pub max_message_bytes: Option<usize>,
    /// Its `retention.ms`, -1 for ever; `None` when the broker does not say.
    pub retention_ms: Option<i64>,
    /// Its `segment.ms`; `None` when the broker does not say.
    pub segment_ms: Option<i64>,
    /// Its `cleanup.policy`; `None` when the broker does not say.
    pub cleanup: Option<Cleanup>,
    /// Its `message.timestamp.type`; `None` when the broker does not say.
    pub timestamps: Option<Timestamps>,
    /// Its `min.insync.replicas`; `None` when the broker does not say.
    pub min_insync_replicas: Option<usize>,
    /// The smallest number of replicas that one of its partitions has.
    pub replicas: usize,
    /// How many brokers there are.
    pub brokers: usize,
    /// A partition that nobody leads now, so that it can be neither read nor written.
    pub leaderless: Option<i32>,
}

/// How a topic is kept small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cleanup {
    /// Old segments are deleted.
    Delete,
    /// Of each key the last record is kept, for ever.
    Compact,
    /// Both.
    CompactAndDelete,
}

/// Whose time a record has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timestamps {
    /// Its producer's.
    Create,
    /// The broker's.
    LogAppend,
}

/// A topic to make.
#[derive(Clone, Debug, Default)]
pub struct NewTopic {
    /// Its name.
    pub name: String,
    /// How many partitions.
    pub partitions: usize,
    /// Topic settings by name; the broker's defaults for the rest, the replication factor among them.
    pub settings: Vec<(String, String)>,
}

/// Asks a broker about a topic; `None` when it does not exist. Blocks up to fifteen seconds.
///
/// # Errors
/// No broker answers, or one refuses.
pub fn topic_facts(settings: &KafkaSettings, topic: &str) -> Result<Option<TopicFacts>, Fault> {
    let client: BaseConsumer = settings.finish(settings.client()).create().map_err(|error| fault_of(&error))?;
    let metadata = client.fetch_metadata(Some(topic), ANSWER).map_err(|error| {
        let fault = fault_of(&error);
        Fault::new(fault.kind, format!("no broker answers at {}: {}", settings.brokers, fault.detail))
    })?;
    let Some(found) = metadata.topics().iter().find(|found| found.name() == topic) else { return Ok(None) };
    match found.error().map(Code::from) {
        None => {}
        Some(Code::UnknownTopicOrPartition | Code::UnknownTopic) => return Ok(None),
        Some(code) => return Err(Fault::configuration(format!("topic {topic}: {code}"))),
    }
    let partitions = found.partitions();
    let facts = configured(settings, topic).unwrap_or_default();
    let replicas = partitions.iter().map(|partition| partition.replicas().len()).min().unwrap_or(0);
    let leaderless = partitions.iter().find(|partition| partition.leader() < 0).map(|partition| partition.id());
    Ok(Some(TopicFacts { partitions: partitions.len(), replicas, leaderless, brokers: metadata.brokers().len(), ..facts }))
}

/// Asks for a topic's settings; `None` when the broker does not say.
fn configured(settings: &KafkaSettings, topic: &str) -> Option<TopicFacts> {
    let admin = admin(settings).ok()?;
    let options = AdminOptions::new().request_timeout(Some(Duration::from_secs(5)));
    let answers = futures::executor::block_on(admin.describe_configs(&[ResourceSpecifier::Topic(topic)], &options)).ok()?;
    let config = answers.into_iter().next()?.ok()?;
    let entries = config.entry_map();
    let value = |name: &str| entries.get(name)?.value.as_deref();
    Some(TopicFacts {
        max_message_bytes: value("max.message.bytes").and_then(|value| value.parse().ok()),
        retention_ms: value("retention.ms").and_then(|value| value.parse().ok()),
        segment_ms: value("segment.ms").and_then(|value| value.parse().ok()),
        cleanup: value("cleanup.policy").map(|policy| match (policy.contains("compact"), policy.contains("delete")) {
            (false, _) => Cleanup::Delete,
            (true, false) => Cleanup::Compact,
            (true, true) => Cleanup::CompactAndDelete,
        }),
        timestamps: value("message.timestamp.type").map(|kind| match kind {
            "LogAppendTime" => Timestamps::LogAppend,
            _ => Timestamps::Create,
        }),
        min_insync_replicas: value("min.insync.replicas").and_then(|value| value.parse().ok()),
        ..TopicFacts::default()
    })
}

/// Makes a topic. One that is there already is left as it is. Blocks up to fifteen seconds.
///
/// # Errors
/// The broker refuses, or does not answer.
pub fn create_topic(settings: &KafkaSettings, topic: &NewTopic) -> Result<(), Fault> {
    let admin = admin(settings)?;
    let partitions = i32::try_from(topic.partitions).map_err(|_| Fault::configuration("too many partitions"))?;
    let mut wanted = AdminTopic::new(&topic.name, partitions, TopicReplication::Fixed(-1));
    for (name, value) in &topic.settings {
        wanted = wanted.set(name, value);
    }
    let options = AdminOptions::new().operation_timeout(Some(ANSWER)).request_timeout(Some(ANSWER));
    let answers = futures::executor::block_on(admin.create_topics([&wanted], &options)).map_err(|error| fault_of(&error))?;
    match answers.into_iter().next() {
        Some(Err((name, code))) if code != Code::TopicAlreadyExists => {
            Err(Fault::configuration(format!("topic {name} cannot be made: {code}")))
        }
        _ => Ok(()),
    }
}

fn admin(settings: &KafkaSettings) -> Result<AdminClient<DefaultClientContext>, Fault> {
    settings.finish(settings.client()).create().map_err(|error| fault_of(&error))
}
