//! `geoclaim demo`.

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use clap::Args;
use geoclaim_common::{
    clock::SystemClock,
    kafka::{EmbeddedBroker, KafkaSink, Membership, SourceEnd, SourceSettings},
    store::{self, LocalDirectory, Store},
};
use geoclaim_consumer::{
    ConsumeReport, ConsumeSettings, Consumer, DeadLetters,
    aoi::{AreaSet, LiveAreas, parse_areas},
    sink::gpkg::GeoPackageSink,
};
use geoclaim_producer::{PublishReport, PublishSettings, Publisher, Source};
use serde::Serialize;

use super::{
    consume::consume,
    publish::{publish, teller},
};
use crate::{
    args::ReportArgs,
    console::{self, strong},
    failure::{Failure, status},
    progress::Progress,
    signals::Stop,
};

/// Natural Earth, public domain; see `sample/README.md`.
const FEATURES: &[u8] = include_bytes!("../../sample/features.geojson");
const AREAS: &[u8] = include_bytes!("../../sample/areas.geojson");

const TOPIC: &str = "geoclaim-demo";
const DEAD_LETTERS: &str = "geoclaim-demo.dead-letters";

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Where the store and the GeoPackage go
    #[arg(long, value_name = "DIR", default_value = "geoclaim-demo")]
    dir: PathBuf,
    #[command(flatten)]
    report: ReportArgs,
}

#[derive(Debug, Serialize)]
struct Report {
    publish: PublishReport,
    consume: ConsumeReport,
}

pub(crate) async fn run(args: DemoArgs) -> Result<ExitCode, Failure> {
    let bodies = args.dir.join("bodies");
    let gpkg = args.dir.join("features.gpkg");
    let store = store::open(&bodies.to_string_lossy(), LocalDirectory::Create)?;
    let broker = EmbeddedBroker::start()?;
    broker.create_topic(TOPIC, 4)?;
    broker.create_topic(DEAD_LETTERS, 4)?;
    let stop = Stop::listen();
    let publish = publish_sample(&broker, Arc::clone(&store), &stop).await?;
    let consume = consume_sample(&broker, store, &gpkg, &stop).await?;
    let report = Report { publish, consume };
    if args.report.is_json() {
        console::json(&report)?;
    } else {
        tell(&report, &bodies, &gpkg);
    }
    Ok(status(report.publish.is_incomplete() || report.consume.dead_lettered > 0))
}

async fn publish_sample(broker: &EmbeddedBroker, store: Store, stop: &Stop) -> Result<PublishReport, Failure> {
    let progress = Progress::of_bytes(Some(FEATURES.len() as u64));
    let publisher = Publisher {
        // The same name each time: a second demonstration repeats the first one's events.
        settings: PublishSettings { run: "demo".to_owned(), ..PublishSettings::default() },
        store,
        sink: Arc::new(KafkaSink::open(&broker.settings(), TOPIC, 1 << 20)?),
        clock: Arc::new(SystemClock),
        counters: Arc::default(),
        on_problem: teller(&progress),
    };
    let (report, failure) = publish(publisher, vec![Source::bytes("sample", FEATURES)], &progress, stop.requested()).await;
    failure.map_or(Ok(report), Err)
}

async fn consume_sample(
    broker: &EmbeddedBroker,
    store: Store,
    gpkg: &std::path::Path,
    stop: &Stop,
) -> Result<ConsumeReport, Failure> {
    let kafka = broker.settings();
    let areas = parse_areas(AREAS).map_err(|error| Failure::wrong(error.to_string()))?;
    let consumer = Consumer {
        settings: ConsumeSettings { topic: TOPIC.to_owned(), ..ConsumeSettings::default() },
        areas: Arc::new(LiveAreas::new(AreaSet::new(areas))),
        holdings: Arc::default(),
        store,
        sink: Arc::new(GeoPackageSink::open(gpkg, "demo")?),
        dead_letters: DeadLetters::new(Arc::new(KafkaSink::open(&kafka, DEAD_LETTERS, 1 << 21)?)),
        clock: Arc::new(SystemClock),
        counters: Arc::default(),
    };
    let source = SourceSettings { group: "demo".to_owned(), end: SourceEnd::EndOfTopic, ..SourceSettings::default() };
    let (report, failure) =
        consume(consumer, &kafka, (&source, &Membership::default()), (&Progress::of_work(), stop.requested())).await?;
    failure.map_or(Ok(report), Err)
}

fn tell(Report { publish, consume }: &Report, bodies: &std::path::Path, gpkg: &std::path::Path) {
    console::line(&format!(
        "Published {} real and synthetic multipolygons ({}): {} travel inside their envelope, {} were too large and lie in {}.",
        strong(publish.published),
        console::bytes(publish.bytes_read),
        publish.inline,
        strong(publish.stored),
        bodies.display(),
    ));
    console::line(&format!(
        "A consumer with a few areas of interest looked at {} envelopes and discarded {} without reading their bodies.",
        consume.consumed,
        strong(consume.discarded),
    ));
    console::line(&format!(
        "It fetched {} of the {} stored bodies ({}); {} were never fetched.",
        strong(consume.fetched),
        publish.stored,
        console::bytes(consume.bytes_fetched),
        strong(console::bytes(consume.bytes_not_fetched)),
    ));
    let again = if consume.duplicate > 0 {
        " Run before: what had been applied was recognised, and nothing was applied twice."
    } else {
        ""
    };
    console::line(&format!("Applied {}, duplicate {}.{again}", strong(consume.applied), consume.duplicate));
    console::line(&format!(
        "The GeoPackage is {}: open it in QGIS, or try  ogrinfo -so {} features",
        strong(gpkg.display()),
        gpkg.display()
    ));
}
