//! `publish` of all countries to a local directory, with fsync, and the embedded broker, beside raw SHA-256 of the file and
//! beside a plain implementation with `geojson`, `geo` and `serde_json`; and the same again, when every body is there.

use std::{fs::File, io::Write as _, path::Path, sync::Arc};

use geo::BoundingRect as _;
use geoclaim_common::{
    Body, Digest,
    clock::SystemClock,
    encoding,
    kafka::{EmbeddedBroker, KafkaSink},
    store::{self, LocalDirectory},
};
use geoclaim_producer::{PublishReport, PublishSettings, Publisher, Source, identity::IdRule};
use geoclaim_tests::{
    components::datasets,
    timing::{median, timed},
};
use rdkafka::{
    ClientConfig,
    producer::{BaseRecord, Producer as _, ThreadedProducer},
};
use serde_json::json;

const RUNS: usize = 5;
const TOPIC: &str = "countries";

pub(crate) fn print() {
    let countries = match datasets::countries() {
        Ok(countries) => countries,
        Err(reason) => return println!("publish: countries-land-10m is not there ({reason})"),
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let broker = EmbeddedBroker::start().unwrap();
    broker.create_topic(TOPIC, 4).unwrap();
    let bytes = std::fs::read(&countries).unwrap();
    let [mut raw, mut ours, mut again, mut compressed, mut plain] = [const { Vec::new() }; 5];
    let mut shorter = (0, 0);
    for _ in 0..RUNS {
        let folder = tempfile::tempdir().unwrap();
        raw.push(timed(|| Digest::of(&bytes)).1);
        let (report, seconds) = timed(|| runtime.block_on(publish(&countries, folder.path(), (&broker, None))));
        assert_eq!((report.published, report.failed, report.rejected), (250, 0, 0));
        ours.push(seconds);
        let (report, seconds) = timed(|| runtime.block_on(publish(&countries, folder.path(), (&broker, None))));
        assert_eq!((report.published, report.bodies_written), (250, 0));
        again.push(seconds);
        let folder = tempfile::tempdir().unwrap();
        let (report, seconds) = timed(|| runtime.block_on(publish(&countries, folder.path(), (&broker, Some(encoding::LEVEL)))));
        shorter = (report.bytes_stored, report.bytes_saved);
        compressed.push(seconds);
        let folder = tempfile::tempdir().unwrap();
        plain.push(timed(|| plainly(&countries, folder.path(), &broker)).1);
    }
    let [raw, ours, again, compressed, plain] = [raw, ours, again, compressed, plain].map(median);
    let megabytes = bytes.len() as f64 / 1e6;
    println!(
        "publish of {megabytes:.0} MB to a local directory (fsync) and the embedded broker, medians of {RUNS} alternating runs"
    );
    println!("{:<26} {:>8} {:>10} {:>10}", "", "seconds", "MB/s", "ratio");
    for (name, seconds) in [
        ("raw SHA-256", raw),
        ("geoclaim", ours),
        ("geoclaim, bodies there", again),
        ("geoclaim --encode zstd", compressed),
        ("plain geojson + geo", plain),
    ] {
        println!("{name:<26} {seconds:>8.2} {:>10.0} {:>10.2}", megabytes / seconds, raw / seconds);
    }
    let (stored, saved) = shorter;
    println!("zstd stores {stored} bytes of {}, a factor of {:.2}", stored + saved, (stored + saved) as f64 / stored as f64);
    println!("geoclaim is {:.1} times as fast as the plain implementation", plain / ours);
}

async fn publish(countries: &Path, folder: &Path, (broker, zstd_level): (&EmbeddedBroker, Option<i32>)) -> PublishReport {
    let publisher = Publisher {
        settings: PublishSettings { id_rule: IdRule::Property("A3".into()), zstd_level, ..PublishSettings::default() },
        store: store::open(folder.to_str().unwrap(), LocalDirectory::Create).unwrap(),
        sink: Arc::new(KafkaSink::open(&broker.settings(), TOPIC, 1 << 20).unwrap()),
        clock: Arc::new(SystemClock),
        counters: Arc::default(),
        on_problem: Arc::new(|problem| panic!("{problem:?}")),
    };
    publisher.run(vec![Source::file(countries)], std::future::pending()).await.unwrap()
}

/// Reads the file as a document, takes each feature's bounding box, writes its text under its digest with fsync, and
/// publishes an envelope; small features go inline. Everything is awaited at the end.
fn plainly(countries: &Path, folder: &Path, broker: &EmbeddedBroker) {
    let producer: ThreadedProducer<rdkafka::producer::DefaultProducerContext> =
        ClientConfig::new().set("bootstrap.servers", broker.settings().brokers.as_str()).create().unwrap();
    let collection: geojson::FeatureCollection = serde_json::from_slice(&std::fs::read(countries).unwrap()).unwrap();
    for feature in collection.features {
        let text = feature.to_string();
        let id = feature.property("A3").and_then(|id| id.as_str()).unwrap_or_default().to_owned();
        let geometry: geo::Geometry = feature.geometry.unwrap().try_into().unwrap();
        let bbox = geometry.bounding_rect().map(|rect| [rect.min().x, rect.min().y, rect.max().x, rect.max().y]);
        let mut envelope = json!({ "feature_id": id, "bbox": bbox });
        if text.len() < 256 << 10 {
            envelope["geometry"] = serde_json::from_str(&text).unwrap();
        } else {
            let body = Body::seal(text.into());
            let path = folder.join(body.claim().digest.to_string());
            let mut file = File::create(&path).unwrap();
            file.write_all(body.bytes()).unwrap();
            file.sync_all().unwrap();
            envelope["body_sha256"] = json!(body.claim().digest.to_string());
        }
        let value = envelope.to_string();
        producer.send(BaseRecord::to(TOPIC).key(&id).payload(&value)).map_err(|(error, _)| error).unwrap();
    }
    producer.flush(std::time::Duration::from_secs(60)).unwrap();
}
