//! `geoclaim consume`.

use std::{process::ExitCode, sync::Arc};

use bytesize::ByteSize;
use clap::{Args, ValueEnum};
use geoclaim_common::{
    Fault,
    clock::SystemClock,
    fault::RetrySettings,
    kafka::{KafkaSettings, KafkaSink, KafkaSource, NewTopic, SourceEnd, SourceSettings, create_topic, topic_facts},
    limits,
    store::{self, LocalDirectory},
};
use geoclaim_consumer::{ConsumeReport, ConsumeSettings, Consumer, DeadLetters, aoi::LiveAreas, sink::OnLeft, watch::watch};

use super::publish::{USUAL_MESSAGE_BYTES, wait_for_topic};
use crate::{
    areas,
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

/// How long a run that re-reads the topic stays at its end, so that the regular group has learnt by then what it added.
const REREAD_LINGER_MS: u64 = 2_000;

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LeftArg {
    /// It is removed
    Remove,
    /// It stays, with the time at which it left
    Mark,
}

#[derive(Debug, Args)]
pub(crate) struct ConsumeArgs {
    /// Areas of interest: a GeoJSON file of features with ids, which is read again when it changes, or one box as
    /// WEST,SOUTH,EAST,NORTH
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
    /// Read the topic from its start to its end, through the same ledger, beside the group and its offsets
    #[arg(long)]
    from_start: bool,
    /// Of the areas, look for these only: those that were added after the topic had been read
    #[arg(long, value_name = "ID", value_delimiter = ',', num_args = 1.., requires = "from_start")]
    areas_only: Vec<String>,
    /// What becomes of a feature in the sink that leaves the areas
    #[arg(long, value_name = "HOW", default_value = "remove")]
    on_left: LeftArg,
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
    let areas = Arc::new(LiveAreas::new(areas::read_set(&args.aoi, &args.areas_only)?));
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
    let on_left = match args.on_left {
        LeftArg::Remove => OnLeft::Remove,
        LeftArg::Mark => OnLeft::Mark,
    };
    let sink = args.sink.open(args.consumer.as_deref().unwrap_or(&args.group), on_left)?;
    let dead_letters = DeadLetters::new(Arc::new(KafkaSink::open(&kafka, &letters, letter_bytes)?));
    let consumer = Consumer {
        settings,
        areas: Arc::clone(&areas),
        store,
        sink,
        dead_letters,
        holdings: Arc::default(),
        clock: Arc::new(SystemClock),
        counters: Arc::default(),
    };
    let source = source(&args, consumer.settings.record_bytes());
    let progress = Progress::of_work();
    let consuming = consume(consumer, &kafka, &source, (&progress, signals::shutdown()));
    let (report, failure) = match areas::file(&args.aoi).filter(|_| !args.from_start) {
        Some(file) => tokio::select! {
            done = consuming => done?,
            () = watch(file, areas, |reload| areas::tell(&args.aoi, &progress, &reload)) => unreachable!("it watches for ever"),
        },
        None => consuming.await?,
    };
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
    source: &SourceSettings,
    (progress, shutdown): (&Progress, impl Future<Output = ()>),
) -> Result<(ConsumeReport, Option<Failure>), Failure> {
    let counters = Arc::clone(&consumer.counters);
    let gate = consumer.gate().await?;
    let source = KafkaSource::open(kafka, &consumer.settings.topic, source, gate)?;
    let look = |bar: &indicatif::ProgressBar| {
        let ConsumeReport { consumed, discarded, applied, duplicate, left, dead_lettered, bytes_fetched, .. } =
            counters.report(0.0);
        bar.set_message(format!(
            "{consumed} consumed: {discarded} discarded, {applied} applied, {left} left, {duplicate} duplicate, {dead_lettered} dead-lettered; {} fetched",
            console::bytes(bytes_fetched)
        ));
    };
    Ok(match progress.during(consumer.run(source, shutdown), look).await {
        Ok(report) => (report, None),
        Err(fault) => (counters.report(0.0), Some(fault.into())),
    })
}

/// A run that re-reads the topic has a group of its own, and ends when it has caught up.
fn source(args: &ConsumeArgs, queued_bytes: usize) -> SourceSettings {
    let source = SourceSettings { group: args.group.clone(), queued_bytes, ..SourceSettings::default() };
    if args.from_start {
        let group = format!("{}.from-start.{}", args.group, geoclaim_producer::identity::new_run());
        return SourceSettings { group, end: SourceEnd::EndOfTopic, end_linger_ms: REREAD_LINGER_MS, ..source };
    }
    let end = if args.until_end { SourceEnd::EndOfTopic } else { SourceEnd::Never };
    SourceSettings { end, ..source }
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
