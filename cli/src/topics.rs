//! What commands know of topics.

use geoclaim_common::{
    Fault,
    kafka::{KafkaSettings, TopicFacts, topic_facts},
};

/// Days are what retention is given in.
pub(crate) const SECONDS_A_DAY: u64 = 86_400;

/// Returns the topic that dead letters of a topic go to when nothing else is said.
pub(crate) fn dead_letters_of(topic: &str) -> String {
    format!("{topic}.dead-letters")
}

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
