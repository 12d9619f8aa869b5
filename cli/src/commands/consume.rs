//! `geoclaim consume`.

use std::{path::Path, process::ExitCode, sync::Arc};

use bytesize::ByteSize;
use clap::Args;
use geoclaim_common::{
    Fault,
    clock::SystemClock,
    fault::RetrySettings,
    kafka::{KafkaSettings, KafkaSink, KafkaSource, NewTopic, SourceEnd, SourceSettings, create_topic, topic_facts},
    limits,
    store::{self, LocalDirectory},
};
use geoclaim_consumer::{
    ConsumeReport, ConsumeSettings, Consumer, DeadLetters,
    aoi::{AreaIndex, parse_areas, parse_box},
};

use super::publish::{USUAL_MESSAGE_BYTES, wait_for_topic};
use crate::{
    args::{KafkaArgs, ReportArgs, StoreArgs},
    console,
    failure::{Failure, status},
    progress::Progress,
    signals,
    sinks::SinkTarget,
};

/// Room for a dead letter's headers beside its record.
const LETTER_OVERHEAD_BYTES: usize = 64 << 10;

/// How long dead letters are kept in a topic that is made for them: 30 days.
const LETTER_RETENTION_MS: u64 = 30 * 24 * 3_600 * 1_000;

#[derive(Debug, Args)]
pub(crate) struct ConsumeArgs {
    /// Areas of interest: a GeoJSON file of features with ids, or one box as WEST,SOUTH,EAST,NORTH
    #[arg(long, value_name = "FILE", allow_hyphen_values = true)]
    aoi: String,
    /// The consumer group
    #[arg(long, env = "GEOCLAIM_GROUP", default_value = "geoclaim")]
    group: String,
    /// The name that the ledger is kept under [default: the group]
    #[arg(long, value_name = "NAME")]
    consumer: Option<String>,
    /// Where effects go: gpkg:FILE or stdout:
    #[arg(long, env = "GEOCLAIM_SINK", default_value = "gpkg:geoclaim.gpkg")]
    sink: SinkTarget,
    /// Where envelopes go that cannot be applied [default: TOPIC.dead-letters]
    #[arg(long, env = "GEOCLAIM_DEAD_LETTER_TOPIC", value_name = "TOPIC")]
    dead_letter_topic: Option<String>,
    /// Stop at the end of the topic instead of waiting for more
    #[arg(short = 'e', long, visible_alias = "exit-at-end")]
    until_end: bool,
    /// How many bytes of bodies may be held at once
    #[arg(long, value_name = "BYTES", env = "GEOCLAIM_MEMORY_BUDGET", default_value_t = ByteSize(limits::CONSUME_IN_FLIGHT_BYTES))]
    memory_budget: ByteSize,
    /// The largest body that is fetched
    #[arg(long, value_name = "BYTES", default_value_t = ByteSize(limits::BODY_BYTES))]
    max_body: ByteSize,
    /// How many records of a partition are worked on at once
    #[arg(long, value_name = "N", default_value_t = 8)]
    concurrency: usize,
    /// How long a missing body of a new envelope is waited for
    #[arg(long, value_name = "SECONDS", default_value_t = RetrySettings::default().fresh_window_seconds)]
    fresh_window: u64,
    #[command(flatten)]
    kafka: KafkaArgs,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    report: ReportArgs,
}

pub(crate) async fn run(args: ConsumeArgs) -> Result<ExitCode, Failure> {
    let index = Arc::new(areas(&args.aoi)?);
    let kafka = args.kafka.settings()?;
    let topic = args.kafka.topic.clone();
    let letters = args.dead_letter_topic.clone().unwrap_or_else(|| format!("{topic}.dead-letters"));
    if letters == topic {
        return Err(Failure::misuse(
            "dead letters need a topic of their own: --dead-letter-topic names the topic of the envelopes",
        ));
    }
    let settings = settings(&args);
    settings.validate()?;
    let letter_bytes = ready_topics(kafka.clone(), topic.clone(), letters.clone()).await?;
    let store = store::open(&args.store.store, LocalDirectory::Expect)?;
    store::check(&store).await?;
    let sink = args.sink.open(args.consumer.as_deref().unwrap_or(&args.group))?;
    let dead_letters = DeadLetters::new(Arc::new(KafkaSink::open(&kafka, &letters, letter_bytes)?));
    let consumer =
        Consumer { settings, index, store, sink, dead_letters, clock: Arc::new(SystemClock), counters: Arc::default() };
    let end = if args.until_end { SourceEnd::EndOfTopic } else { SourceEnd::Never };
    let queued_bytes = consumer.settings.record_bytes();
    let source = SourceSettings { group: args.group.clone(), end, queued_bytes, ..SourceSettings::default() };
    let (report, failure) = consume(consumer, &kafka, &topic, &source, signals::shutdown()).await?;
    if args.report.is_json() {
        console::json(&report)?;
    } else {
        tell(&report);
    }
    failure.map_or(Ok(status(report.dead_lettered + report.rejected > 0)), Err)
}

/// Runs a consumer and shows its progress. Returns what was done, and the failure that stopped it early.
pub(crate) async fn consume(
    consumer: Consumer,
    kafka: &KafkaSettings,
    topic: &str,
    source: &SourceSettings,
    shutdown: impl Future<Output = ()>,
) -> Result<(ConsumeReport, Option<Failure>), Failure> {
    let counters = Arc::clone(&consumer.counters);
    let source = KafkaSource::open(kafka, topic, source, consumer.triage())?;
    let progress = Progress::of_work();
    let look = |bar: &indicatif::ProgressBar| {
        let ConsumeReport { consumed, discarded, applied, duplicate, dead_lettered, bytes_fetched, .. } = counters.report(0.0);
        bar.set_message(format!(
            "{consumed} consumed: {discarded} discarded, {applied} applied, {duplicate} duplicate, {dead_lettered} dead-lettered; {} fetched",
            console::bytes(bytes_fetched)
        ));
    };
    Ok(match progress.during(consumer.run(source, shutdown), look).await {
        Ok(report) => (report, None),
        Err(fault) => (counters.report(0.0), Some(fault.into())),
    })
}

/// Reads the areas of interest.
fn areas(aoi: &str) -> Result<AreaIndex, Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::misuse(format!("--aoi {aoi}: {error}"));
    let areas = match parse_box(aoi) {
        Some(boxed) => vec![boxed.map_err(|error| wrong(&error))?],
        None => {
            let text = std::fs::read(Path::new(aoi)).map_err(|error| wrong(&error))?;
            parse_areas(&text).map_err(|error| wrong(&error))?
        }
    };
    Ok(AreaIndex::new(areas))
}

fn settings(args: &ConsumeArgs) -> ConsumeSettings {
    ConsumeSettings {
        topic: args.kafka.topic.clone(),
        budget_bytes: args.memory_budget.as_u64(),
        body_bytes: args.max_body.as_u64(),
        concurrency: args.concurrency,
        retry: RetrySettings { fresh_window_seconds: args.fresh_window, ..RetrySettings::default() },
        ..ConsumeSettings::default()
    }
}

/// Checks that the topic exists, and makes the one for dead letters when it does not. Returns the size of its records.
async fn ready_topics(kafka: KafkaSettings, topic: String, letters: String) -> Result<usize, Failure> {
    let look = move || -> Result<usize, Fault> {
        let missing = || Fault::configuration(format!("topic {topic} does not exist at {}", kafka.brokers));
        let facts = topic_facts(&kafka, &topic)?.ok_or_else(missing)?;
        let letter_bytes = facts.max_message_bytes.unwrap_or(USUAL_MESSAGE_BYTES) + LETTER_OVERHEAD_BYTES;
        if let Some(facts) = topic_facts(&kafka, &letters)? {
            return Ok(facts.max_message_bytes.unwrap_or(letter_bytes));
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

fn tell(report: &ConsumeReport) {
    let ConsumeReport {
        consumed,
        discarded,
        applied,
        duplicate,
        stale,
        rejected,
        left,
        dead_lettered,
        fetched,
        bytes_fetched,
        bytes_not_fetched,
        seconds,
    } = report;
    console::line(&format!(
        "consumed {} events in {seconds:.1} s: {} applied, {discarded} discarded",
        console::strong(consumed),
        console::strong(applied)
    ));
    let others =
        [(duplicate, "duplicate"), (stale, "stale"), (rejected, "rejected"), (left, "left"), (dead_lettered, "dead-lettered")];
    let others: Vec<String> =
        others.iter().filter(|(count, _)| **count > 0).map(|(count, name)| format!("{count} {name}")).collect();
    if !others.is_empty() {
        console::line(&format!("also {}", others.join(", ")));
    }
    console::line(&format!(
        "fetched {fetched} bodies ({}); {} were never fetched",
        console::bytes(*bytes_fetched),
        console::bytes(*bytes_not_fetched)
    ));
}
