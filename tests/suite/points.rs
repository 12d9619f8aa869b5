//! A consumer that is killed at each named point between receive and commit, on the real broker, for every sink: the end is
//! that of one clean run.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
    path::Path,
    process::Command,
};

use geoclaim_common::{
    Envelope,
    envelope::Content,
    kafka::{KafkaSettings, KafkaSink, read_topic},
    store::{self, LocalDirectory},
    stream::{EnvelopeSink as _, OutgoingRecord, memory::MemorySink},
};
use geoclaim_tests::{
    binary,
    components::{Postgres, require},
    sample::{feature, lines, point},
};

use crate::support::{Real, publish_to, run_named};

/// Each point, and for which time one comes to it: in the midst of the work.
const POINTS: [(&str, u32); 8] = [
    ("received", 30),
    ("fetch", 3),
    ("dead-letter", 1),
    ("dead-letter-acknowledged", 2),
    ("apply", 2),
    ("transaction", 2),
    ("applied", 1),
    ("applied", 2),
];

/// The events: of sixty, some lie outside, some have stored bodies, some come twice, and two are no good. Some features
/// move in or out.
async fn records(store: &Path, moves: Moves) -> Vec<OutgoingRecord> {
    let one = |n: usize| {
        let which = if moves == Moves::Some { n } else { n % 40 };
        let (id, x) = (format!("f{:02}", n % 40), if which.is_multiple_of(9) { 50.0 } else { 5.0 });
        match n % 6 {
            1 => {
                let positions: Vec<String> = (0..150).map(|k| format!("[{x}.{k:03},{}.5]", n % 9)).collect();
                feature(&id, &format!(r#"{{"type":"LineString","coordinates":[{}]}}"#, positions.join(",")))
            }
            _ => point(&id, x, 5.0),
        }
    };
    let sink = MemorySink::default();
    let settings = geoclaim_producer::PublishSettings { inline_limit_bytes: 2_048, ..run_named("points") };
    let store = store::open(store.to_str().unwrap(), LocalDirectory::Create).unwrap();
    publish_to(store, sink.clone(), settings, lines(&(0..60).map(one).collect::<Vec<_>>())).await;
    let mut records = sink.records();
    for at in [5, 20, 41] {
        records.insert(at + 3, records[at].clone());
    }
    for at in [10, 50] {
        records.insert(
            at,
            OutgoingRecord {
                key: Some("bad".into()),
                value: Some(format!("no envelope {at}").into()),
                ..OutgoingRecord::default()
            },
        );
    }
    records
}

/// Whether features move. What is made of a state that is outdated by one outside depends on which is seen first, and a
/// sink of copies keeps what was made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moves {
    Some,
    None,
}

/// Where a consumer writes to, and how the end is read.
struct Target {
    url: String,
    state: Box<dyn Fn() -> BTreeMap<String, String>>,
}

fn columns(connection: &rusqlite::Connection, sql: &str) -> BTreeMap<String, String> {
    let mut rows = connection.prepare(sql).unwrap();
    rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().collect::<Result<_, _>>().unwrap()
}

/// What a run leaves behind: features with their last events and which events were applied, or the committed records, or
/// the objects. Whether an event that changes nothing comes to the sink depends on what is known when it is seen.
const STATE: &str = "SELECT 'feature ' || feature_id, event_id FROM features
  UNION ALL SELECT 'event ' || event_id, outcome FROM geoclaim_ledger WHERE outcome = 'applied'";

fn geopackage(folder: &Path) -> Target {
    let path = folder.join("f.gpkg");
    let url = format!("gpkg:{}", path.display());
    Target { url, state: Box::new(move || columns(&rusqlite::Connection::open(&path).unwrap(), STATE)) }
}

fn postgis(cluster: &'static Postgres) -> Target {
    let database = cluster.create_database().unwrap();
    let url = cluster.url(&database);
    let state = move || {
        let text = cluster.query(&database, STATE).unwrap();
        text.lines().filter_map(|line| line.split_once('|')).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    Target { url, state: Box::new(state) }
}

fn topic(real: &Real) -> Target {
    let name = real.place("points-output", 2).name;
    let settings = KafkaSettings::new(real.kafka.bootstrap());
    let url = format!("kafka:{name}");
    let state = move || {
        let mut found = BTreeMap::new();
        let visited = read_topic(&settings, &name, |record| {
            let envelope = Envelope::decode(record.value.as_deref().unwrap()).unwrap();
            if envelope.content != Content::Deleted {
                let before = found.insert(format!("event {}", envelope.event_id), envelope.feature_id);
                assert_eq!(before, None, "an effect happened twice");
            }
            ControlFlow::Continue(())
        });
        visited.unwrap();
        found
    };
    Target { url, state: Box::new(state) }
}

fn copies(folder: &Path) -> Target {
    let path = folder.join("copies");
    let url = format!("file://{}", path.display());
    let state = move || {
        let folders =
            std::fs::read_dir(path.join("jobs")).unwrap().flat_map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap());
        // A write that was interrupted leaves its staging file, `NAME#NUMBER`, which is no object.
        let files = folders.map(|file| file.unwrap().path()).filter(|path| !path.to_string_lossy().contains('#'));
        files
            .map(|file| (file.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(file).unwrap()))
            .collect()
    };
    Target { url, state: Box::new(state) }
}

struct Field {
    real: Real,
    folder: tempfile::TempDir,
    records: Vec<OutgoingRecord>,
}

impl Field {
    async fn new(moves: Moves) -> Option<Self> {
        let (real, folder) = (Real::get()?, tempfile::tempdir().unwrap());
        let records = records(&folder.path().join("bodies"), moves).await;
        Some(Self { real, folder, records })
    }

    fn settings(&self) -> KafkaSettings {
        KafkaSettings::new(self.real.kafka.bootstrap())
    }

    /// Publishes the events to a topic of their own.
    async fn topic(&self) -> String {
        let name = self.real.place("points", 2).name;
        self.real.kafka.create_topic(&format!("{name}.dead-letters"), 1, &[]).unwrap();
        let sink = KafkaSink::open(&self.settings(), &name, 1 << 20).unwrap();
        for record in &self.records {
            sink.send(record.clone()).await.acknowledged().await.unwrap();
        }
        name
    }

    /// Consumes; returns whether it came to its end, and its report.
    fn consume(&self, (point, nth): (&str, u32), topic: &str, target: &Target) -> Option<serde_json::Value> {
        let run = Command::new(binary::dies_at())
            .args([point, &nth.to_string(), self.real.kafka.bootstrap(), topic])
            .args([self.folder.path().join("bodies").to_str().unwrap(), &target.url])
            .output()
            .unwrap();
        let is_killed = std::os::unix::process::ExitStatusExt::signal(&run.status) == Some(9);
        assert!(run.status.success() || is_killed, "{point}: {}", String::from_utf8_lossy(&run.stderr));
        run.status.success().then(|| serde_json::from_slice(&run.stdout).unwrap())
    }

    /// The records of which letters tell, each once, however often its letter was written.
    fn letters(&self, topic: &str) -> BTreeSet<Vec<u8>> {
        let mut letters = BTreeSet::new();
        let visited = read_topic(&self.settings(), &format!("{topic}.dead-letters"), |record| {
            letters.insert(record.value.unwrap().to_vec());
            ControlFlow::Continue(())
        });
        visited.unwrap();
        letters
    }

    /// Kills a consumer at each point, and compares the end with that of one clean run.
    async fn killed_everywhere(&self, fresh: impl Fn(&Path) -> Target) {
        let sums = ["applied", "duplicate", "stale", "rejected", "discarded", "left", "dead_lettered"];
        let clean_folder = tempfile::tempdir().unwrap();
        let clean = fresh(clean_folder.path());
        let report = self.consume(("nowhere", 1), &self.topic().await, &clean).expect("it comes to its end");
        let sum: u64 = sums.iter().map(|name| report[name].as_u64().unwrap()).sum();
        assert_eq!((report["consumed"].as_u64(), sum), (Some(self.records.len() as u64), self.records.len() as u64), "{report}");
        assert_eq!(report["dead_lettered"], 2);
        let expected = (clean.state)();
        assert!(expected.len() > 30, "{}", expected.len());
        for point in POINTS {
            let folder = tempfile::tempdir().unwrap();
            let (target, topic) = (fresh(folder.path()), self.topic().await);
            let is_killed = self.consume(point, &topic, &target).is_none();
            // A topic's transaction is the broker's: there is no point within it.
            assert!(is_killed || (point.0 == "transaction" && target.url.starts_with("kafka:")), "{point:?} was not reached");
            let end = self.consume(("nowhere", 1), &topic, &target).expect("it comes to its end");
            let found = (target.state)();
            let differing: Vec<_> =
                found.iter().chain(&expected).filter(|(name, _)| found.get(*name) != expected.get(*name)).collect();
            assert!(differing.is_empty(), "killed at {point:?}, then {end}: {differing:?}");
            assert_eq!(self.letters(&topic).len(), 2, "killed at {point:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_of_a_geopackage_may_die_at_any_point() {
    let Some(field) = Field::new(Moves::Some).await else { return };
    field.killed_everywhere(geopackage).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_of_postgis_may_die_at_any_point() {
    let Some(cluster) = require("postgres", Postgres::shared()) else { return };
    let Some(field) = Field::new(Moves::Some).await else { return };
    field.killed_everywhere(|_| postgis(cluster)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_into_a_topic_may_die_at_any_point() {
    let Some(field) = Field::new(Moves::Some).await else { return };
    field.killed_everywhere(|_| topic(&field.real)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_that_keeps_copies_may_die_at_any_point() {
    let Some(field) = Field::new(Moves::None).await else { return };
    field.killed_everywhere(copies).await;
}
