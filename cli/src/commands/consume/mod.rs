//! `geoclaim consume`.

mod args;
mod replay;
mod topics;

use std::{process::ExitCode, sync::Arc};

use geoclaim_common::{
    Fault,
    clock::SystemClock,
    fault::RetrySettings,
    kafka::{Input, KafkaSettings, KafkaSink, KafkaSource, Membership, SourceEnd, SourceSettings},
    store::{self, LocalDirectory},
};
use geoclaim_consumer::{
    ConsumeReport, ConsumeSettings, Consumer, DeadLetters, aoi::LiveAreas, compare::Comparison, sink::OnLeft, watch::watch,
};
use serde::Serialize;

pub(crate) use args::ConsumeArgs;
use args::LeftArg;
use topics::ready_topics;

use crate::{
    areas, console,
    failure::{Failure, status},
    progress::Progress,
    signals,
    sinks::SinkSettings,
    topics::{SECONDS_A_DAY, dead_letters_of},
};

/// How long a run that re-reads the topic stays at its end, so that the regular group has learnt by then what it added.
const REREAD_LINGER_MS: u64 = 2_000;

pub(crate) async fn run(args: ConsumeArgs) -> Result<ExitCode, Failure> {
    let areas = Arc::new(LiveAreas::new(areas::read_set(&args.aoi, &args.replay.areas_only)?));
    let kafka = args.kafka.settings()?;
    let topic = args.kafka.topic.clone();
    let letters = args.dead_letter_topic.clone().unwrap_or_else(|| dead_letters_of(&topic));
    if letters == topic {
        return Err(Failure::misuse(
            "dead letters need a topic of their own: --dead-letter-topic names the topic of the envelopes",
        ));
    }
    args.sink.check(&letters, &args.store.store)?;
    args.replay.check(&args.sink)?;
    if !args.sink.keeps_state() && (args.ledger_retention.is_some() || matches!(args.on_left, LeftArg::Mark)) {
        let which = "--ledger-retention and --on-left mark are for a sink that keeps features and a ledger";
        return Err(Failure::misuse(format!("{which}: --sink gpkg:FILE or postgres://…")));
    }
    let settings = settings(&args)?;
    settings.validate()?;
    let topics = ready_topics(kafka.clone(), topic.clone(), letters.clone()).await?;
    topics.check(&kafka, settings.ledger_retention_seconds).await?;
    let store = store::open(&args.store.store, LocalDirectory::Expect)?;
    store::check(&store).await?;
    let on_left = match args.on_left {
        LeftArg::Remove => OnLeft::Remove,
        LeftArg::Mark => OnLeft::Mark,
    };
    let consumer_name = args.consumer.as_deref().unwrap_or(&args.group);
    let source = source(&args, settings.record_bytes());
    if args.replay.is_given() {
        args.replay.begin(&kafka, &topic, &source.group).await?;
    }
    let membership = Membership::default();
    let sink = SinkSettings {
        consumer: consumer_name,
        on_left,
        areas: Arc::clone(&areas),
        store: &args.store.store,
        objects: &args.objects,
        clip_bytes: args.memory_budget.as_u64() / 2,
        topic: &args.output,
        kafka: &kafka,
        group: if args.replay.is_given() { &source.group } else { &args.group },
        input: Input { topic: topic.clone(), membership: membership.clone() },
    };
    let sink = args.sink.open(sink).await?;
    let dead_letters = DeadLetters::new(Arc::new(KafkaSink::open(&kafka, &letters, topics.letter_bytes)?));
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
    let progress = Progress::of_work();
    let consuming = consume(consumer, &kafka, (&source, &membership), (&progress, signals::shutdown()));
    let (report, failure) = match areas::file(&args.aoi).filter(|_| !args.replay.is_given()) {
        Some(file) => tokio::select! {
            done = consuming => done?,
            () = watch(file, areas, |reload| areas::tell(&args.aoi, &progress, &reload)) => unreachable!("it watches for ever"),
        },
        None => consuming.await?,
    };
    let compared = match failure {
        None => args.replay.compared(&args.sink, consumer_name, &args.group).await?,
        Some(_) => None,
    };
    let is_different = compared.as_ref().is_some_and(|compared| !compared.is_same());
    let bad = report.dead_lettered + report.rejected > 0 || is_different;
    if args.report.is_json() {
        console::json(&Report { report, compared })?;
    } else {
        tell(&report);
        compared.iter().for_each(replay::tell);
    }
    failure.map_or(Ok(status(bad)), Err)
}

/// What was done, and what a replay came to.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    report: ConsumeReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<Comparison>,
}

/// Runs a consumer and shows its progress. Returns what was done, and the failure that stopped it early.
pub(crate) async fn consume(
    consumer: Consumer,
    kafka: &KafkaSettings,
    (source, membership): (&SourceSettings, &Membership),
    (progress, shutdown): (&Progress, impl Future<Output = ()>),
) -> Result<(ConsumeReport, Option<Failure>), Failure> {
    let counters = Arc::clone(&consumer.counters);
    let gate = consumer.gate().await?;
    let source = KafkaSource::open_as(membership, kafka, &consumer.settings.topic, source, gate)?;
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
    if args.replay.is_given() {
        let group = format!("{}.from-start.{}", args.group, geoclaim_producer::identity::new_run());
        return SourceSettings { group, end: SourceEnd::EndOfTopic, end_linger_ms: REREAD_LINGER_MS, ..source };
    }
    let end = if args.until_end { SourceEnd::EndOfTopic } else { SourceEnd::Never };
    SourceSettings { end, ..source }
}

fn settings(args: &ConsumeArgs) -> Result<ConsumeSettings, Fault> {
    Ok(ConsumeSettings {
        topic: args.kafka.topic.clone(),
        budget_bytes: args.memory_budget.as_u64(),
        body_bytes: args.max_body.as_u64(),
        spool: args.spool.spool()?,
        concurrency: args.concurrency,
        ledger_retention_seconds: args.ledger_retention.map(|days| days.saturating_mul(SECONDS_A_DAY)),
        retry: RetrySettings { fresh_window_seconds: args.fresh_window, ..RetrySettings::default() },
        ..ConsumeSettings::default()
    })
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
