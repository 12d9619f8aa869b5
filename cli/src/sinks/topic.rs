//! Another topic.

use clap::{Args, ValueEnum, builder::NonEmptyStringValueParser};
use geoclaim_common::{
    Fault,
    kafka::{KafkaSettings, NewTopic, TopicFacts, create_topic, topic_facts},
};
use geoclaim_consumer::sink::kafka::{Emit, Output, TopicSink};

use super::SinkSettings;
use crate::{
    console,
    failure::Failure,
    topics::{USUAL_MESSAGE_BYTES, wait_for_topic},
};

/// Room for what the sink writes of each record into a header, beside the record.
const LEDGER_HEADER_BYTES: usize = 4 << 10;

/// How another topic is written to.
#[derive(Debug, Args)]
#[command(next_help_heading = "Another topic (with --sink kafka:TOPIC)")]
pub(crate) struct TopicArgs {
    /// What its records are [default: envelope]
    #[arg(long, value_name = "WHAT")]
    emit: Option<EmitArg>,
    /// The name by which a member of the group fences its predecessor: the same whenever it is started, and another for each
    /// member [default: geoclaim.GROUP.TOPIC]
    #[arg(long, value_name = "ID", env = "GEOCLAIM_TRANSACTIONAL_ID", value_parser = NonEmptyStringValueParser::new())]
    transactional_id: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EmitArg {
    /// Envelopes with the areas that a feature meets; stored bodies stay where they are
    Envelope,
    /// GeoJSON features
    Feature,
}

impl TopicArgs {
    pub(super) fn is_given(&self) -> bool {
        let Self { emit, transactional_id } = self;
        emit.is_some() || transactional_id.is_some()
    }
}

/// Opens the sink on a topic, and makes the topic when there is none.
pub(super) async fn open_topic(name: &str, settings: SinkSettings<'_>) -> Result<TopicSink, Failure> {
    let SinkSettings { consumer, topic, kafka, group, input, .. } = settings;
    let transactional_id = topic.transactional_id.clone().unwrap_or_else(|| format!("geoclaim.{group}.{name}"));
    let emit = match topic.emit {
        Some(EmitArg::Feature) => Emit::Feature,
        Some(EmitArg::Envelope) | None => Emit::Envelope,
    };
    let (kafka, name, consumer) = (kafka.clone(), name.to_owned(), consumer.to_owned());
    let open = move || -> Result<TopicSink, Fault> {
        let facts = found_or_made(&kafka, &name, &input.topic)?;
        let message_bytes = facts.max_message_bytes.unwrap_or(USUAL_MESSAGE_BYTES);
        let output = Output { topic: name, partitions: facts.partitions, message_bytes, emit };
        TopicSink::open(&kafka, &output, input, (&consumer, &transactional_id))
    };
    Ok(tokio::task::spawn_blocking(open).await.map_err(|error| Failure::wrong(error.to_string()))??)
}

/// Finds the topic, or makes it like the one that is read: it is to be kept as long.
fn found_or_made(kafka: &KafkaSettings, name: &str, input: &str) -> Result<TopicFacts, Fault> {
    if let Some(found) = topic_facts(kafka, name)? {
        return Ok(found);
    }
    let like = topic_facts(kafka, input)?.ok_or_else(|| Fault::configuration(format!("topic {input} does not exist")))?;
    let bytes = like.max_message_bytes.map(|bytes| ("max.message.bytes".to_owned(), (bytes + LEDGER_HEADER_BYTES).to_string()));
    let retention = like.retention_ms.map(|retention| ("retention.ms".to_owned(), retention.to_string()));
    let settings = bytes.into_iter().chain(retention).collect();
    let hint =
        |fault: Fault| Fault::configuration(format!("{}: make topic {name}, or name another by --sink kafka:", fault.detail));
    create_topic(kafka, &NewTopic { name: name.to_owned(), partitions: like.partitions, settings }).map_err(hint)?;
    let made = wait_for_topic(kafka, name)?;
    console::note(&format!("made topic {name} with {} partitions, as {input} has", made.partitions));
    Ok(made)
}
