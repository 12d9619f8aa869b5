//! What several suites need.

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, SystemTime},
};

use geoclaim_common::{
    Body, Clock, Timestamp,
    clock::ManualClock,
    fault::RetrySettings,
    store::{self, LocalDirectory, Store},
    stream::{
        OutgoingRecord,
        memory::{MemorySink, MemorySource},
    },
};
use geoclaim_consumer::{
    ConsumeReport, ConsumeSettings, Consumer, DeadLetters,
    aoi::{AreaSet, LiveAreas, parse_areas},
    sink::{Sink, gpkg::GeoPackageSink},
};
use geoclaim_producer::{IdRule, PublishReport, PublishSettings, Publisher, Source};
use geoclaim_tests::components::{
    Azurite, FakeGcs, Kafka, SeaweedFs,
    azurite::{ACCOUNT, KEY},
    fake_gcs::PutsInJson,
    require,
};
use object_store::ObjectStoreExt as _;

/// The broker's time of every record in memory.
pub const THEN: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// Returns a store in memory.
pub fn memory() -> Store {
    Arc::new(object_store::memory::InMemory::new())
}

/// Returns settings of a run with this name.
pub fn run_named(run: &str) -> PublishSettings {
    PublishSettings { run: run.into(), put_deadline_seconds: 2, ..PublishSettings::default() }
}

/// Publishes text to a store and a sink in memory.
pub async fn publish_to(store: Store, sink: MemorySink, settings: PublishSettings, text: String) -> PublishReport {
    let publisher = Publisher {
        settings,
        store,
        sink: Arc::new(sink),
        clock: Arc::new(ManualClock::at(THEN)),
        counters: Arc::default(),
        on_problem: Arc::new(|problem| println!("{problem}")),
    };
    publisher.run(vec![Source::bytes("text", text)], std::future::pending()).await.unwrap()
}

/// Publishes text whose features have their place as identity; returns the records.
pub async fn published(store: &Store, text: String) -> Vec<OutgoingRecord> {
    let sink = MemorySink::default();
    let settings = PublishSettings { id_rule: IdRule::Member, ..run_named("test") };
    publish_to(Arc::clone(store), sink.clone(), settings, text).await;
    sink.records()
}

/// A consumer over a GeoPackage in a folder of its own.
pub struct Bench {
    pub folder: tempfile::TempDir,
    pub letters: MemorySink,
    pub clock: ManualClock,
    pub settings: ConsumeSettings,
}

impl Bench {
    /// Makes one whose envelopes are an hour old.
    pub fn new() -> Self {
        let clock = ManualClock::at(Timestamp::from_millis(THEN.as_millis() + 3_600_000));
        let retry = RetrySettings { first_pause_ms: 1, longest_pause_ms: 20, ..RetrySettings::default() };
        let settings = ConsumeSettings { topic: "memory".into(), retry, ..ConsumeSettings::default() };
        Self { folder: tempfile::tempdir().unwrap(), letters: MemorySink::default(), clock, settings }
    }

    /// Returns the path of the GeoPackage.
    pub fn gpkg(&self) -> PathBuf {
        self.folder.path().join("features.gpkg")
    }

    /// Returns a consumer of these areas.
    pub fn consumer(&self, areas: &str, store: Store) -> Consumer {
        let sink: Arc<dyn Sink> = Arc::new(GeoPackageSink::open(self.gpkg(), "test").unwrap());
        Consumer {
            settings: self.settings.clone(),
            areas: Arc::new(LiveAreas::new(AreaSet::new(parse_areas(areas.as_bytes()).unwrap()))),
            holdings: Arc::default(),
            store,
            sink,
            dead_letters: DeadLetters::new(Arc::new(self.letters.clone())),
            clock: Arc::new(self.clock.clone()) as Arc<dyn Clock>,
            counters: Arc::default(),
        }
    }

    /// Consumes records to their end; returns the report and the offset that is acknowledged.
    pub async fn consume(&self, records: Vec<OutgoingRecord>, areas: &str, store: Store) -> (ConsumeReport, Option<i64>) {
        let consumer = self.consumer(areas, store);
        let source = MemorySource::new(records, THEN, consumer.gate().await.unwrap());
        let watermark = source.watermark();
        let report = consumer.run(source, std::future::pending()).await.unwrap();
        assert_adds_up(&report);
        let next = watermark.lock().unwrap().next();
        (report, next)
    }

    /// Returns the reasons of the dead letters, in order of the original offsets.
    pub fn reasons(&self) -> Vec<(i64, String)> {
        let header = |letter: &OutgoingRecord, name: &str| {
            let found = letter.headers.iter().find(|(header, _)| header == name).unwrap();
            String::from_utf8(found.1.clone().unwrap().to_vec()).unwrap()
        };
        let mut reasons: Vec<_> = self
            .letters
            .records()
            .iter()
            .map(|letter| (header(letter, "geoclaim.offset").parse().unwrap(), header(letter, "geoclaim.reason")))
            .collect();
        reasons.sort();
        reasons
    }
}

/// Returns the ids of the features in a GeoPackage, in order.
pub fn feature_ids(gpkg: &Path) -> Vec<String> {
    let connection = rusqlite::Connection::open(gpkg).unwrap();
    let mut ids = connection.prepare("SELECT feature_id FROM features ORDER BY feature_id").unwrap();
    let ids = ids.query_map([], |row| row.get(0)).unwrap();
    ids.collect::<Result<_, _>>().unwrap()
}

/// Checks that nothing was dropped silently.
pub fn assert_adds_up(report: &ConsumeReport) {
    let ConsumeReport { consumed, discarded, applied, duplicate, stale, rejected, left, dead_lettered, .. } = report;
    assert_eq!(*consumed, discarded + applied + duplicate + stale + rejected + left + dead_lettered, "{report:?}");
}

/// The real broker and the real store, shared by the suites of this process.
pub struct Real {
    pub kafka: &'static Kafka,
    pub store: &'static SeaweedFs,
}

impl Real {
    /// Returns both, or `None` where one cannot be had, which is told at the end.
    pub fn get() -> Option<Self> {
        let kafka = require("kafka", Kafka::shared())?;
        let store = require("seaweedfs", SeaweedFs::shared())?;
        Some(Self { kafka, store })
    }

    /// Makes a topic and a bucket of one fresh name, and returns the flags and the environment that reach them.
    pub fn place(&self, name: &str, partitions: usize) -> Place {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("{name}-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        self.kafka.create_topic(&name, partitions, &[]).unwrap();
        self.store.create_bucket(&name).unwrap();
        let mut env = self.store.env();
        env.push(("GEOCLAIM_BROKERS".into(), self.kafka.bootstrap().into()));
        env.push(("GEOCLAIM_TOPIC".into(), name.clone()));
        env.push(("GEOCLAIM_GROUP".into(), name.clone()));
        env.push(("GEOCLAIM_STORE".into(), format!("s3://{name}/bodies")));
        Place { name, env }
    }
}

/// Returns the bodies of a place as the store itself has them, its prefix taken off.
pub fn s3(real: &Real, bucket: &str) -> Store {
    bodies_in(real.store, bucket)
}

/// Returns the bodies in a bucket as the store itself has them.
pub fn bodies_in(store: &SeaweedFs, bucket: &str) -> Store {
    let builder = object_store::aws::AmazonS3Builder::new().with_bucket_name(bucket).with_endpoint(store.endpoint());
    let builder = builder.with_allow_http(true).with_region("us-east-1").with_access_key_id("any").with_secret_access_key("any");
    Arc::new(object_store::prefix::PrefixStore::new(builder.build().unwrap(), "bodies"))
}

/// Returns a fresh container of Azurite, where it can be had.
pub fn azure(name: &str) -> Option<Store> {
    let container = &format!("{name}-{}", std::process::id());
    let azurite = require("azurite", Azurite::shared())?;
    azurite.create_container(container).unwrap();
    let builder = object_store::azure::MicrosoftAzureBuilder::new().with_container_name(container).with_account(ACCOUNT);
    let builder = builder.with_access_key(KEY).with_endpoint(azurite.endpoint()).with_allow_http(true);
    Some(Arc::new(builder.build().unwrap()))
}

/// Returns a fresh bucket of fake-gcs-server, where it can be had.
pub fn gcs(name: &str) -> Option<Store> {
    let bucket = &format!("{name}-{}", std::process::id());
    let server = require("fake-gcs-server", FakeGcs::shared())?;
    server.create_bucket(bucket).unwrap();
    let builder = object_store::gcp::GoogleCloudStorageBuilder::new().with_bucket_name(bucket);
    let options = object_store::ClientOptions::new().with_allow_http(true);
    Some(Arc::new(
        builder
            .with_service_account_key(server.service_account())
            .with_client_options(options)
            .with_http_connector(PutsInJson)
            .build()
            .unwrap(),
    ))
}

/// A local store whose bodies can be made old.
pub struct Aged {
    pub folder: tempfile::TempDir,
    pub store: Store,
}

impl Aged {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = store::open(folder.path().to_str().unwrap(), LocalDirectory::Create).unwrap();
        Self { folder, store }
    }

    pub async fn put(&self, body: &Body, age: Duration) {
        self.store.put(&body.claim().key(), body.stored().clone().into()).await.unwrap();
        self.make_old(body, age);
    }

    pub fn path(&self, body: &Body) -> PathBuf {
        self.folder.path().join(body.claim().key().as_ref())
    }

    pub fn make_old(&self, body: &Body, age: Duration) {
        make_old(&self.path(body), age);
    }

    pub fn age(&self, body: &Body) -> Duration {
        let modified = self.path(body).metadata().unwrap().modified().unwrap();
        SystemTime::now().duration_since(modified).unwrap_or_default()
    }

    pub fn has(&self, body: &Body) -> bool {
        self.path(body).exists()
    }
}

/// Makes a file as if it had been written so long ago.
pub fn make_old(path: &Path, age: Duration) {
    File::options().write(true).open(path).unwrap().set_modified(SystemTime::now() - age).unwrap();
}

/// A topic and a bucket.
pub struct Place {
    pub name: String,
    pub env: Vec<(String, String)>,
}
