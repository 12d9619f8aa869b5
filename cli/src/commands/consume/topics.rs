//! The topics of `geoclaim consume`: the one that it reads, and the one for what it sets aside.

use std::time::Duration;

use geoclaim_common::{
    Clock as _, Fault,
    clock::SystemClock,
    kafka::{KafkaSettings, NewTopic, TopicFacts, create_topic, topic_facts},
    limits,
    retention::{Evidence, Timing, boundary, readable_for},
};

use crate::{
    console,
    failure::Failure,
    topics::{SECONDS_A_DAY, USUAL_MESSAGE_BYTES, wait_for_topic},
};

/// Room for a dead letter's headers beside its record.
const LETTER_OVERHEAD_BYTES: usize = 64 << 10;

/// How long dead letters are kept in a topic that is made for them: 30 days.
const LETTER_RETENTION_MS: u64 = 30 * 24 * 3_600 * 1_000;

/// The topics of a consumer, found or made.
pub(super) struct Topics {
    /// The size of the records that the one for dead letters takes.
    pub(super) letter_bytes: usize,
    facts: [(String, TopicFacts); 2],
}

impl Topics {
    /// Checks that the ledger remembers an event for longer than anything can deliver it again, by what the topics are set to
    /// and by the earliest records that are there.
    pub(super) async fn check(&self, kafka: &KafkaSettings, ledger_retention_seconds: Option<u64>) -> Result<(), Failure> {
        let Some(kept) = ledger_retention_seconds.map(Duration::from_secs) else { return Ok(()) };
        let (kafka, facts) = (kafka.clone(), self.facts.clone());
        let ask = tokio::task::spawn_blocking(move || deliverable_for(&kafka, &facts));
        let longest = ask.await.map_err(|error| Failure::wrong(error.to_string()))?;
        let days = |duration: Duration| duration.as_secs().div_ceil(SECONDS_A_DAY);
        let [topic, letters] = &self.facts;
        let advice = "leave --ledger-retention out, and the ledger keeps every event";
        let longest = longest.map_err(|fault| Fault::new(fault.kind, format!("{}: {advice}", fault.detail)))?;
        if kept >= longest {
            return Ok(());
        }
        let (kept, longest) = (days(kept), days(longest));
        let what = format!("the ledger would forget an event after {kept} days that {} or {}", topic.0, letters.0);
        let harm = format!("can deliver again for {longest}, and it would be applied twice");
        Err(Failure::misuse(format!("{what} {harm}: give --ledger-retention {longest} or more, or {advice}")))
    }
}

/// Returns for how long any of these topics can deliver an event again. Blocks.
fn deliverable_for(kafka: &KafkaSettings, topics: &[(String, TopicFacts)]) -> Result<Duration, Fault> {
    let timing = Timing::default();
    let named: Vec<(&str, &TopicFacts)> = topics.iter().map(|(name, facts)| (&**name, facts)).collect();
    let set = readable_for(&named, &timing)?;
    let there = topics.iter().map(|(name, _)| Evidence::of_topic(kafka, name)).collect::<Result<Vec<_>, Fault>>()?;
    Ok(set.max(boundary(&there, SystemClock.now(), &timing)?))
}

/// Checks that the topic exists, and makes the one for dead letters when it does not.
pub(super) async fn ready_topics(kafka: KafkaSettings, topic: String, letters: String) -> Result<Topics, Failure> {
    let look = move || -> Result<Topics, Fault> {
        let missing = || Fault::configuration(format!("topic {topic} does not exist at {}", kafka.brokers));
        let facts = topic_facts(&kafka, &topic)?.ok_or_else(missing)?;
        let wanted_bytes = facts.max_message_bytes.unwrap_or(USUAL_MESSAGE_BYTES) + LETTER_OVERHEAD_BYTES;
        let found = match topic_facts(&kafka, &letters)? {
            Some(found) => found,
            None => make(&kafka, &letters, (facts.partitions, wanted_bytes))?,
        };
        let letter_bytes = found.max_message_bytes.unwrap_or(wanted_bytes);
        if letter_bytes < wanted_bytes - LETTER_OVERHEAD_BYTES + limits::LETTER_HEADER_BYTES {
            let what =
                format!("{letters} takes records of {letter_bytes} bytes: the largest of {topic} and its reason do not fit");
            console::note(&format!("{what}, and the consumer would stop there; set its max.message.bytes to {wanted_bytes}"));
        }
        Ok(Topics { letter_bytes, facts: [(topic, facts), (letters, found)] })
    };
    Ok(tokio::task::spawn_blocking(look).await.map_err(|error| Failure::wrong(error.to_string()))??)
}

fn make(kafka: &KafkaSettings, letters: &str, (partitions, bytes): (usize, usize)) -> Result<TopicFacts, Fault> {
    let settings =
        vec![("max.message.bytes".to_owned(), bytes.to_string()), ("retention.ms".to_owned(), LETTER_RETENTION_MS.to_string())];
    let wanted = NewTopic { name: letters.to_owned(), partitions, settings };
    let hint = |fault: Fault| Fault::configuration(format!("{}: make it, or name another by --dead-letter-topic", fault.detail));
    create_topic(kafka, &wanted).map_err(hint)?;
    wait_for_topic(kafka, letters)
}
