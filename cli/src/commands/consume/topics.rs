//! The topics of `geoclaim consume`: the one that it reads, and the one for what it sets aside.

use geoclaim_common::{
    Fault,
    kafka::{KafkaSettings, NewTopic, create_topic, topic_facts},
    limits,
};

use crate::{
    console,
    failure::Failure,
    topics::{USUAL_MESSAGE_BYTES, wait_for_topic},
};

/// Room for a dead letter's headers beside its record.
const LETTER_OVERHEAD_BYTES: usize = 64 << 10;

/// How long dead letters are kept in a topic that is made for them: 30 days.
const LETTER_RETENTION_MS: u64 = 30 * 24 * 3_600 * 1_000;

/// Checks that the topic exists, and makes the one for dead letters when it does not. Returns the size of its records.
pub(super) async fn ready_topics(kafka: KafkaSettings, topic: String, letters: String) -> Result<usize, Failure> {
    let look = move || -> Result<usize, Fault> {
        let missing = || Fault::configuration(format!("topic {topic} does not exist at {}", kafka.brokers));
        let facts = topic_facts(&kafka, &topic)?.ok_or_else(missing)?;
        let letter_bytes = facts.max_message_bytes.unwrap_or(USUAL_MESSAGE_BYTES) + LETTER_OVERHEAD_BYTES;
        if let Some(found) = topic_facts(&kafka, &letters)? {
            let takes = found.max_message_bytes.unwrap_or(letter_bytes);
            if takes < letter_bytes - LETTER_OVERHEAD_BYTES + limits::LETTER_HEADER_BYTES {
                let what =
                    format!("{letters} takes records of {takes} bytes: the largest of {topic} with its reason would not fit");
                console::note(&format!("{what}, and the consumer would stop there; set its max.message.bytes to {letter_bytes}"));
            }
            return Ok(takes);
        }
        let settings = vec![
            ("max.message.bytes".to_owned(), letter_bytes.to_string()),
            ("retention.ms".to_owned(), LETTER_RETENTION_MS.to_string()),
        ];
        let wanted = NewTopic { name: letters.clone(), partitions: facts.partitions, settings };
        let hint =
            |fault: Fault| Fault::configuration(format!("{}: make it, or name another by --dead-letter-topic", fault.detail));
        create_topic(&kafka, &wanted).map_err(hint)?;
        wait_for_topic(&kafka, &letters)?;
        Ok(letter_bytes)
    };
    Ok(tokio::task::spawn_blocking(look).await.map_err(|error| Failure::wrong(error.to_string()))??)
}
