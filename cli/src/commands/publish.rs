//! `geoclaim publish`.

use std::{process::ExitCode, sync::Arc, time::Duration};

use bytesize::ByteSize;
use clap::Args;
use geoclaim_common::{
    Encoding, Fault,
    clock::SystemClock,
    encoding::{LEVEL, LEVELS},
    extent::MeasureOptions,
    kafka::{KafkaSettings, KafkaSink, NewTopic, TopicFacts, create_topic, topic_facts},
    limits,
    retention::Timing,
    store::{self, LocalDirectory},
};
use geoclaim_producer::{PublishReport, PublishSettings, Publisher, Source, identity::new_run};

use crate::{
    args::{KafkaArgs, ReportArgs, StoreArgs},
    console,
    failure::{Failure, status},
    input::{InputArgs, sources, total_bytes},
    progress::Progress,
    signals, time,
    topics::{USUAL_MESSAGE_BYTES, wait_for_topic},
};

#[derive(Debug, Args)]
pub(crate) struct PublishArgs {
    #[command(flatten)]
    input: InputArgs,
    /// The run's name: the same name gives the same event identities, so a run can be repeated after a crash
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// Take an event's version from this property, an integer that rises for each feature
    #[arg(long, value_name = "NAME")]
    version_property: Option<String>,
    /// The largest whole record that still carries its body
    #[arg(long, value_name = "BYTES", env = "GEOCLAIM_INLINE_LIMIT_BYTES", default_value_t = ByteSize(limits::INLINE_RECORD_BYTES as u64))]
    inline_limit: ByteSize,
    /// How large bodies are stored: as they are, or compressed; a level of Zstandard is 1 to 19. Consumers older than this
    /// flag set compressed ones aside
    #[arg(long, value_name = "identity|zstd[:LEVEL]", value_parser = encoding, default_value = "identity", env = "GEOCLAIM_ENCODE")]
    encode: Encode,
    /// How many bytes of bodies may be in flight
    #[arg(long, value_name = "BYTES", default_value_t = ByteSize(limits::PUBLISH_IN_FLIGHT_BYTES))]
    memory: ByteSize,
    /// How many bodies are measured and put at once
    #[arg(long, value_name = "N", default_value_t = 16)]
    concurrency: usize,
    /// A record is acknowledged so soon after its body was seen in the store, or the body is looked for again
    #[arg(long, value_name = "TIME", value_parser = time::duration, default_value = "10m", env = "GEOCLAIM_PUBLISH_DEADLINE")]
    publish_deadline: Duration,
    /// Make the topic when it does not exist
    #[arg(long)]
    create_topic: bool,
    /// How many partitions --create-topic gives it
    #[arg(long, value_name = "N", default_value_t = 6)]
    partitions: usize,
    #[command(flatten)]
    kafka: KafkaArgs,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// How large bodies are stored.
#[derive(Clone, Copy, Debug)]
struct Encode {
    zstd_level: Option<i32>,
}

fn encoding(text: &str) -> Result<Encode, String> {
    let (name, level) = text.split_once(':').map_or((text, None), |(name, level)| (name, Some(level)));
    let level = level.map(str::parse::<i32>).transpose().ok().filter(|level| level.is_none_or(|n| LEVELS.contains(&n)));
    match (Encoding::of_name(name), level) {
        (Some(Encoding::Identity), Some(None)) => Ok(Encode { zstd_level: None }),
        (Some(Encoding::Zstd), Some(level)) => Ok(Encode { zstd_level: Some(level.unwrap_or(LEVEL)) }),
        _ => Err(format!("expected identity, zstd or zstd:LEVEL with a level from {} to {}", LEVELS.start(), LEVELS.end())),
    }
}

pub(crate) async fn run(args: PublishArgs) -> Result<ExitCode, Failure> {
    let sources = sources(&args.input.files)?;
    let total = total_bytes(&args.input.files);
    let kafka = args.kafka.settings()?;
    let mut settings = settings(&args, &kafka)?;
    settings.validate(None)?;
    let facts = ready_topic(&args, &kafka).await?;
    // What is kept for ever is as old as can be.
    settings.readable_seconds = facts.retention_ms.map(|kept| u64::try_from(kept).map_or(u64::MAX, |kept| kept / 1_000));
    let message_bytes = facts.max_message_bytes.unwrap_or(USUAL_MESSAGE_BYTES);
    settings.validate(Some(message_bytes))?;
    let store = store::open(&args.store.store, LocalDirectory::Create)?;
    store::check(&store).await?;
    store::check_creates(&store).await?;
    let sink = KafkaSink::open(&kafka, &args.kafka.topic, message_bytes)?;
    let progress = Progress::of_bytes(total);
    let publisher = Publisher {
        settings,
        store,
        sink: Arc::new(sink),
        clock: Arc::new(SystemClock),
        counters: Arc::default(),
        on_problem: teller(&progress),
    };
    let (report, failure) = publish(publisher, sources, &progress, signals::shutdown()).await;
    if args.report.is_json() {
        console::json(&report)?;
    } else {
        tell(&report);
    }
    failure.map_or(Ok(status(report.is_incomplete())), Err)
}

/// Runs a publisher and shows its progress. Returns what was done, and the failure that stopped it early.
pub(crate) async fn publish(
    publisher: Publisher,
    sources: Vec<Source>,
    progress: &Progress,
    shutdown: impl Future<Output = ()>,
) -> (PublishReport, Option<Failure>) {
    let counters = Arc::clone(&publisher.counters);
    let run = publisher.settings.run.clone();
    let look = |bar: &indicatif::ProgressBar| {
        let PublishReport { published, stored, bytes_read, .. } = counters.report("", 0.0);
        bar.set_position(bytes_read);
        bar.set_message(format!("{published} published, {stored} of them stored"));
    };
    match progress.during(publisher.run(sources, shutdown), look).await {
        Ok(report) => (report, None),
        Err(fault) => (counters.report(&run, 0.0), Some(fault.into())),
    }
}

/// Returns what tells of features that are not published.
pub(crate) fn teller(progress: &Progress) -> Arc<dyn Fn(&geoclaim_producer::Problem) + Send + Sync> {
    let progress = progress.clone();
    Arc::new(move |problem| progress.say(|| console::error(&problem.to_string())))
}

fn settings(args: &PublishArgs, kafka: &KafkaSettings) -> Result<PublishSettings, Fault> {
    Ok(PublishSettings {
        run: args.run.clone().unwrap_or_else(new_run),
        id_rule: args.input.id_rule(),
        version_property: args.version_property.clone(),
        taken: args.input.taken(),
        measure: MeasureOptions { cover_bytes: limits::COVER_BYTES, ..args.input.measure() },
        inline_limit_bytes: usize::try_from(args.inline_limit.as_u64()).unwrap_or(usize::MAX),
        body_bytes: args.input.max_body.as_u64(),
        zstd_level: args.encode.zstd_level,
        in_flight_bytes: args.memory.as_u64(),
        spool: args.input.spool.spool()?,
        concurrency: args.concurrency,
        delivery_seconds: kafka.delivery_seconds()?,
        timing: Timing { publish_deadline_seconds: args.publish_deadline.as_secs(), ..Timing::default() },
        ..PublishSettings::default()
    })
}

async fn ready_topic(args: &PublishArgs, kafka: &KafkaSettings) -> Result<TopicFacts, Failure> {
    let (kafka, topic) = (kafka.clone(), args.kafka.topic.clone());
    let wanted = args.create_topic.then(|| NewTopic { name: topic.clone(), partitions: args.partitions, settings: Vec::new() });
    let look = move || -> Result<TopicFacts, Fault> {
        if let Some(facts) = topic_facts(&kafka, &topic)? {
            return Ok(facts);
        }
        let missing = || {
            Fault::configuration(format!("topic {topic} does not exist at {}: make it, or give --create-topic", kafka.brokers))
        };
        create_topic(&kafka, &wanted.ok_or_else(missing)?)?;
        wait_for_topic(&kafka, &topic)
    };
    Ok(tokio::task::spawn_blocking(look).await.map_err(|error| Failure::wrong(error.to_string()))??)
}

fn tell(report: &PublishReport) {
    let PublishReport { read, rejected, failed, published, inline, stored, bytes_read, bytes_stored, .. } = report;
    let PublishReport { bodies_written, bodies_renewed, .. } = report;
    console::line(&format!(
        "published {} of {read} events ({}) in {:.1} s: {inline} inline, {stored} with a claim check",
        console::strong(published),
        console::bytes(*bytes_read),
        report.seconds,
    ));
    let saved = match report.bytes_saved {
        0 => String::new(),
        saved => format!(", {} less than they are long", console::bytes(saved)),
    };
    console::line(&format!("wrote {bodies_written} bodies ({}) to the store{saved}", console::bytes(*bytes_stored)));
    if *bodies_renewed > 0 {
        console::line(&format!("wrote {bodies_renewed} old bodies again, so that they outlast these events"));
    }
    if rejected + failed > 0 {
        console::line(&format!("not published: {rejected} rejected, {failed} failed"));
    }
    if report.interrupted {
        console::line("stopped before the end of the input: the rest was not read");
    }
    if report.interrupted || *failed > 0 {
        console::line(&format!("repeat with --run {} to keep the event identities", report.run));
    }
}
