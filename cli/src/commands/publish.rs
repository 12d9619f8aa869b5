//! `geoclaim publish`.

use std::{io::IsTerminal, path::PathBuf, process::ExitCode, sync::Arc};

use bytesize::ByteSize;
use clap::{Args, ValueEnum};
use geoclaim_common::{
    Fault,
    clock::SystemClock,
    extent::{LongEdges, MeasureOptions},
    geojson::{CrsMember, Epsg, ScanOptions, Validity, is_wgs84},
    kafka::{KafkaSettings, KafkaSink, NewTopic, TopicFacts, create_topic, topic_facts},
    limits,
    reproject::Transform,
    store::{self, LocalDirectory},
};
use geoclaim_producer::{IdRule, PublishReport, PublishSettings, Publisher, Source, identity::new_run, read::Taken};

use crate::{
    args::{KafkaArgs, ReportArgs, StoreArgs},
    console,
    failure::{Failure, status},
    progress::Progress,
    signals,
};

/// What a topic takes when its broker does not say: Kafka's default.
pub(crate) const USUAL_MESSAGE_BYTES: usize = 1_048_588;

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
    /// How many bytes of bodies may be in flight
    #[arg(long, value_name = "BYTES", default_value_t = ByteSize(limits::PUBLISH_IN_FLIGHT_BYTES))]
    memory: ByteSize,
    /// How many bodies are measured and put at once
    #[arg(long, value_name = "N", default_value_t = 16)]
    concurrency: usize,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum As {
    /// Each feature is an event
    Feature,
    /// The whole document is one event
    Body,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Id {
    /// The feature's id
    Member,
    /// The feature's place in its source, from 0
    Index,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Edges {
    /// The bbox takes the full circle and the envelope is marked
    Suspect,
    /// They cross the antimeridian
    Cross,
}

/// What is read, and how.
#[derive(Debug, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct InputArgs {
    /// GeoJSON files, or - for standard input: collections, features, geometries, one a line, or RFC 8142 sequences
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// What becomes an event
    #[arg(long = "as", value_enum, default_value = "feature", value_name = "WHAT")]
    taken_as: As,
    /// Take a feature's identity from this property
    #[arg(long, value_name = "NAME", conflicts_with = "id")]
    id_property: Option<String>,
    /// Take a feature's identity from its member id, or from its place in the source
    #[arg(long, value_enum, default_value = "member", value_name = "RULE")]
    id: Id,
    /// Reject rings that are not closed or too short, and lines of one position
    #[arg(long)]
    strict: bool,
    /// Ignore a crs member that is not WGS 84, and take the coordinates for longitude and latitude
    #[arg(long)]
    ignore_crs: bool,
    /// What the coordinates are, where they are not WGS 84; bbox and cover are transformed, bodies stay as they are
    #[arg(long, value_name = "EPSG:n", value_parser = parse_crs, conflicts_with = "ignore_crs")]
    crs: Option<CrsMember>,
    /// What edges of more than 180 degrees of longitude mean
    #[arg(long, value_enum, default_value = "suspect", value_name = "HOW")]
    long_edges: Edges,
    /// The largest body
    #[arg(long, value_name = "BYTES", default_value_t = ByteSize(limits::BODY_BYTES))]
    pub(crate) max_body: ByteSize,
}

/// Reads a reference system, and sees whether it can be transformed.
fn parse_crs(text: &str) -> Result<CrsMember, String> {
    if is_wgs84(text) {
        return Ok(CrsMember::Refuse);
    }
    let epsg: Epsg = text.parse()?;
    Transform::from_epsg(epsg).map(|_| CrsMember::Is(epsg))
}

impl InputArgs {
    pub(crate) fn taken(&self) -> Taken {
        match self.taken_as {
            As::Feature => Taken::ByFeature,
            As::Body => Taken::Whole,
        }
    }

    pub(crate) fn id_rule(&self) -> IdRule {
        match (&self.id_property, self.id) {
            (Some(name), _) => IdRule::Property(name.clone()),
            (None, Id::Member) => IdRule::Member,
            (None, Id::Index) => IdRule::Index,
        }
    }

    pub(crate) fn measure(&self) -> MeasureOptions {
        MeasureOptions {
            scan: ScanOptions {
                validity: if self.strict { Validity::Strict } else { Validity::Lenient },
                crs: if self.ignore_crs { CrsMember::Ignore } else { self.crs.unwrap_or_default() },
            },
            long_edges: match self.long_edges {
                Edges::Suspect => LongEdges::Suspect,
                Edges::Cross => LongEdges::Cross,
            },
            cover_bytes: 0,
        }
    }
}

/// Returns the sources that were named; standard input when there are none and it is not a terminal.
pub(crate) fn sources(files: &[PathBuf]) -> Result<Vec<Source>, Failure> {
    if files.is_empty() && std::io::stdin().is_terminal() {
        return Err(Failure::misuse("nothing to read: name a GeoJSON file, or - for standard input"));
    }
    if files.is_empty() {
        return Ok(vec![Source::stdin()]);
    }
    files
        .iter()
        .map(|file| match file.to_str() {
            Some("-") => Ok(Source::stdin()),
            _ if file.is_file() || file.exists() && !file.is_dir() => Ok(Source::file(file)),
            _ if file.is_dir() => Err(Failure::misuse(format!("{} is a directory: name its files", file.display()))),
            _ => Err(Failure::misuse(format!("{}: no such file", file.display()))),
        })
        .collect()
}

pub(crate) async fn run(args: PublishArgs) -> Result<ExitCode, Failure> {
    let sources = sources(&args.input.files)?;
    let total = total_bytes(&args.input.files);
    let kafka = args.kafka.settings()?;
    let settings = settings(&args);
    settings.validate(None)?;
    let facts = ready_topic(&args, &kafka).await?;
    let message_bytes = facts.max_message_bytes.unwrap_or(USUAL_MESSAGE_BYTES);
    settings.validate(Some(message_bytes))?;
    let store = store::open(&args.store.store, LocalDirectory::Create)?;
    store::check(&store).await?;
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

fn settings(args: &PublishArgs) -> PublishSettings {
    PublishSettings {
        run: args.run.clone().unwrap_or_else(new_run),
        id_rule: args.input.id_rule(),
        version_property: args.version_property.clone(),
        taken: args.input.taken(),
        measure: MeasureOptions { cover_bytes: limits::COVER_BYTES, ..args.input.measure() },
        inline_limit_bytes: usize::try_from(args.inline_limit.as_u64()).unwrap_or(usize::MAX),
        body_bytes: args.input.max_body.as_u64(),
        in_flight_bytes: args.memory.as_u64(),
        concurrency: args.concurrency,
        ..PublishSettings::default()
    }
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

fn total_bytes(files: &[PathBuf]) -> Option<u64> {
    let sizes: Option<Vec<u64>> =
        files.iter().map(|file| std::fs::metadata(file).ok().filter(|meta| meta.is_file()).map(|meta| meta.len())).collect();
    sizes.filter(|sizes| !sizes.is_empty()).map(|sizes| sizes.iter().sum())
}

fn tell(report: &PublishReport) {
    let PublishReport { read, rejected, failed, published, inline, stored, bodies_written, bytes_read, bytes_stored, .. } =
        report;
    console::line(&format!(
        "published {} of {read} events ({}) in {:.1} s: {inline} inline, {stored} with a claim check",
        console::strong(published),
        console::bytes(*bytes_read),
        report.seconds,
    ));
    console::line(&format!("wrote {bodies_written} bodies ({}) to the store", console::bytes(*bytes_stored)));
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
