//! What commands know of topics.

use geoclaim_common::{
    Fault,
    kafka::{KafkaSettings, TopicFacts, topic_facts},
};

/// What a topic takes when its broker does not say: Kafka's default.
pub(crate) const USUAL_MESSAGE_BYTES: usize = 1_048_588;

/// Waits until a topic that has been made is seen.
pub(crate) fn wait_for_topic(kafka: &KafkaSettings, topic: &str) -> Result<TopicFacts, Fault> {
    for _ in 0..50 {
        if let Some(facts) = topic_facts(kafka, topic)?.filter(|facts| facts.partitions > 0) {
            return Ok(facts);
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    Err(Fault::unavailable(format!("topic {topic} was made and is not seen")))
}
