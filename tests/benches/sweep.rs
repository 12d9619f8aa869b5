//! The plan of a sweep: a topic of a million envelopes on the real broker, and listings of up to a million keys made up in
//! process. Time and peak
//! memory, printed; asserts nothing. `cargo bench -p geoclaim-tests --bench sweep`

use std::{fmt, ops::Range, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::{StreamExt as _, stream, stream::BoxStream};
use geoclaim_common::{
    Digest, Fault,
    kafka::{KafkaSettings, KafkaSink},
    key,
    retention::Evidence,
    store::{Lifecycle, Store},
    stream::{EnvelopeSink as _, OutgoingRecord},
};
use geoclaim_producer::sweep::{Log, Reference, Sweep, SweepSettings, TopicLog};
use geoclaim_tests::{components::Kafka, timing::timed};
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions,
    PutPayload, PutResult, Result, local::LocalFileSystem, path::Path,
};
use peak_alloc::PeakAlloc;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

const ENVELOPES: u32 = 1_000_000;
const TOPIC: &str = "sweep";

/// Lists keys that it makes up as it goes; everything else lies in a folder.
#[derive(Debug)]
struct Listed {
    keys: u32,
    inner: LocalFileSystem,
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} keys", self.keys)
    }
}

fn digest(number: u32) -> Digest {
    Digest::of(&number.to_le_bytes())
}

#[async_trait]
impl ObjectStore for Listed {
    async fn put_opts(&self, key: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(key, payload, options).await
    }

    async fn put_multipart_opts(&self, key: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(key, options).await
    }

    async fn get_opts(&self, key: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(key, options).await
    }

    async fn get_ranges(&self, key: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(key, ranges).await
    }

    fn delete_stream(&self, keys: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(keys)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        if prefix.is_none_or(|prefix| prefix.as_ref() != key::FOLDER) {
            return self.inner.list(prefix);
        }
        let last_modified: DateTime<Utc> = Utc::now() - chrono::Duration::days(60);
        let meta = move |number| ObjectMeta {
            location: key::of(&digest(number)),
            last_modified,
            size: 50_000,
            e_tag: None,
            version: None,
        };
        stream::iter(0..self.keys).map(move |number| Ok(meta(number))).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// Refers to as many bodies as it is told to, without a broker.
#[derive(Debug)]
struct MadeUp(u32);

fn envelope(number: u32) -> String {
    let digest = digest(number);
    let (key, bbox) = (key::of(&digest), "[8.5,47.4,8.6,47.5]");
    format!(
        r#"{{"bbox":{bbox},"feature_id":"f{number}","event_id":"e{number}","occurred_at":"2026-01-01T00:00:00Z","crs":"EPSG:4326","vertex_count":9000,"body_key":"{key}","body_sha256":"{digest}","body_bytes":50000}}"#
    )
}

impl Log for MadeUp {
    fn name(&self) -> &str {
        "made up"
    }

    fn evidence(&self) -> Result<Evidence, Fault> {
        Ok(Evidence { name: "made up".into(), kept: Duration::from_secs(7 * 86_400), earliest: None })
    }

    fn read(&self, visit: &mut dyn FnMut(Reference<'_>) -> Result<(), Fault>) -> Result<(), Fault> {
        (0..self.0).try_for_each(|number| {
            visit(Reference { partition: 0, offset: number.into(), value: Some(envelope(number).as_bytes()) })
        })
    }
}

/// Every second body is referred to.
async fn fill(settings: &KafkaSettings) {
    let sink = KafkaSink::open(settings, TOPIC, 1 << 20).unwrap();
    let mut receipts = std::collections::VecDeque::new();
    for number in 0..ENVELOPES {
        let record = OutgoingRecord {
            key: Some(format!("f{number}").into()),
            value: Some(envelope(2 * number).into()),
            headers: Vec::new(),
        };
        receipts.push_back(sink.send(record).await);
        if receipts.len() > 900 {
            receipts.pop_front().unwrap().acknowledged().await.unwrap();
        }
    }
    for receipt in receipts {
        receipt.acknowledged().await.unwrap();
    }
}

/// Returns the most memory that the process has had since the last time, all of it counted.
fn peak_resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    kilobytes.unwrap_or(0) / 1_024
}

fn plan(runtime: &tokio::runtime::Runtime, keys: u32, log: Arc<dyn Log>, what: &str) {
    let folder = tempfile::tempdir().unwrap();
    let inner = LocalFileSystem::new_with_prefix(folder.path()).unwrap();
    let store: Store = Arc::new(Listed { keys, inner });
    let settings = SweepSettings { requests_per_second: 1_000_000, ..SweepSettings::default() };
    let sweep = Sweep {
        settings,
        deleter: Arc::clone(&store),
        store,
        lifecycle: Lifecycle::Never,
        logs: vec![log],
        spill: None,
        counters: Arc::default(),
    };
    peak_resident();
    HEAP.reset_peak_usage();
    let before = HEAP.current_usage_as_mb();
    let (report, seconds) = timed(|| runtime.block_on(sweep.run(std::future::pending())).unwrap());
    assert_eq!(report.refused, None);
    println!(
        "{:>9} keys, {:>9} references {what}: {seconds:>6.1} s, heap at most {:>5.1} MB more, resident at most {} MB; {} candidates",
        report.listed,
        report.references,
        HEAP.peak_usage_as_mb() - before,
        peak_resident(),
        report.candidates
    );
}

fn main() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for references in [10_000, 1_000_000, 10_000_000] {
        plan(&runtime, 10_000, Arc::new(MadeUp(references)), "made up in process");
    }
    let kafka = match Kafka::shared() {
        Ok(kafka) => kafka,
        Err(reason) => return println!("sweep of a topic: Kafka is not there ({reason})"),
    };
    kafka.create_topic(TOPIC, 4, &[]).unwrap();
    let settings = KafkaSettings::new(kafka.bootstrap());
    runtime.block_on(fill(&settings));
    let log = Arc::new(TopicLog { kafka: settings, topic: TOPIC.into() });
    for keys in [10_000, 100_000, 1_000_000] {
        plan(&runtime, keys, Arc::clone(&log) as Arc<dyn Log>, "from Kafka");
    }
    plan(&runtime, 1_000_000, Arc::new(MadeUp(1_000_000)), "made up, all referred to");
}
