//! A consumer that is killed, again and again, on the real broker and the real database: the end is that of one clean
//! run. `tests/crash-matrix KILLS EVENTS` runs the long form.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use geoclaim_common::{
    Envelope,
    kafka::{KafkaSettings, KafkaSink, read_topic},
    stream::{EnvelopeSink, OutgoingRecord},
};
use geoclaim_tests::{
    binary::{self, Running},
    components::{Kafka, Postgres, require},
    proxy::{Mode, Proxy},
    random::Random,
    sample::{feature, lines, point},
};
use rdkafka::{
    ClientConfig, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer as _},
};

use crate::support::{Place, Real, publish_to, run_named, s3};

const PARTITIONS: usize = 4;

/// Of so many events, one lies outside the area.
const OUTSIDE: usize = 10;

/// Of so many events, one has a stored body.
const STORED: usize = 20;

/// Of so many events, one is sent twice.
const TWICE: u64 = 20;

fn setting(name: &str, usual: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Where effects go, with a trigger that writes down each effect, so that one that happens twice is seen.
enum Target {
    Postgis(Arc<Postgres>, String),
    GeoPackage(tempfile::TempDir),
    /// A topic has no trigger, and needs none: each effect is a record.
    Topic(KafkaSettings, String),
}

const POSTGIS_TRIGGER: &str = "CREATE TABLE effects (event_id text);
  CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN INSERT INTO effects VALUES (NEW.event_id); RETURN NEW; END$$;
  CREATE TRIGGER noted AFTER INSERT OR UPDATE ON features FOR EACH ROW EXECUTE FUNCTION note()";

const SQLITE_TRIGGER: &str = "CREATE TABLE effects (event_id TEXT);
  CREATE TRIGGER noted_new AFTER INSERT ON features BEGIN INSERT INTO effects VALUES (NEW.event_id); END;
  CREATE TRIGGER noted_more AFTER UPDATE ON features BEGIN INSERT INTO effects VALUES (NEW.event_id); END";

impl Target {
    fn url(&self) -> String {
        match self {
            Self::Postgis(postgres, database) => postgres.url(database),
            Self::GeoPackage(folder) => format!("gpkg:{}", folder.path().join("f.gpkg").display()),
            Self::Topic(_, topic) => format!("kafka:{topic}"),
        }
    }

    /// Makes the tables, by a consumer that finds nothing to do.
    fn prepare(&self, place: &Place) {
        let run = binary::run(&consume(&self.url(), &["--group", "nobody", "--until-end"]), &place.env, b"");
        assert_eq!(run.code(), 0, "{}", run.stderr);
        match self {
            Self::Postgis(postgres, database) => drop(postgres.query(database, POSTGIS_TRIGGER).unwrap()),
            Self::GeoPackage(_) => self.sqlite().execute_batch(SQLITE_TRIGGER).unwrap(),
            Self::Topic(..) => {}
        }
    }

    fn sqlite(&self) -> rusqlite::Connection {
        let Self::GeoPackage(folder) = self else { panic!("no GeoPackage") };
        let connection = rusqlite::Connection::open(folder.path().join("f.gpkg")).unwrap();
        connection.busy_timeout(Duration::from_secs(10)).unwrap();
        connection
    }

    /// Returns the event of each effect, as often as it happened.
    fn effects(&self) -> Vec<String> {
        match self {
            Self::Topic(settings, topic) => {
                let mut events = Vec::new();
                let visited = read_topic(settings, topic, |record| {
                    events.push(Envelope::decode(record.value.as_deref().unwrap()).unwrap().event_id);
                    ControlFlow::Continue(())
                });
                visited.unwrap();
                events
            }
            Self::Postgis(..) | Self::GeoPackage(_) => self.column("SELECT event_id FROM effects"),
        }
    }

    fn column(&self, sql: &str) -> Vec<String> {
        match self {
            Self::Topic(..) => Vec::new(),
            Self::Postgis(postgres, database) => {
                let text = postgres.query(database, sql).unwrap();
                text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
            }
            Self::GeoPackage(_) => {
                let connection = self.sqlite();
                let mut rows = connection.prepare(sql).unwrap();
                rows.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
            }
        }
    }

    fn ledger(&self) -> BTreeSet<String> {
        match self {
            Self::Topic(..) => self.effects().into_iter().collect(),
            Self::Postgis(..) | Self::GeoPackage(_) => {
                self.column("SELECT event_id FROM geoclaim_ledger WHERE consumer = 'crash'").into_iter().collect()
            }
        }
    }
}

fn consume<'a>(sink: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let common = ["consume", "--aoi", "0,0,10,10", "--sink", sink, "--report", "json"];
    [&common, more].concat()
}

/// Flags of the consumer that is killed: one static member, which takes its place again at once.
const MEMBER: [&str; 6] = ["--consumer", "crash", "-X", "group.instance.id=crash", "-X", "auto.commit.interval.ms=50"];

/// Publishes events at a steady rate, one in twenty twice, until all are acknowledged.
struct Flow {
    sent: Arc<AtomicUsize>,
    is_done: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<()>,
}

/// The envelopes of so many events: two versions of each feature, and their bodies in the store.
async fn envelopes(real: &Real, place: &Place, count: usize) -> Vec<OutgoingRecord> {
    let one = |n: usize| {
        let id = format!("f{:05}", n % (count / 2).max(1));
        let x = if n.is_multiple_of(OUTSIDE) { 50.0 } else { 5.0 };
        match n % STORED {
            7 => {
                let positions: Vec<String> = (0..150).map(|k| format!("[{x}.{k:03},{}.5]", n % 9)).collect();
                feature(&id, &format!(r#"{{"type":"LineString","coordinates":[{}]}}"#, positions.join(",")))
            }
            _ => point(&id, x, 5.0),
        }
    };
    let sink = geoclaim_common::stream::memory::MemorySink::default();
    let settings = geoclaim_producer::PublishSettings { inline_limit_bytes: 2_048, ..run_named("crash") };
    let text = lines(&(0..count).map(one).collect::<Vec<_>>());
    let report = publish_to(s3(real, &place.name), sink.clone(), settings, text).await;
    assert_eq!((report.published as usize, report.rejected), (count, 0));
    sink.records()
}

impl Flow {
    fn start(settings: &KafkaSettings, topic: &str, records: Vec<OutgoingRecord>, pause: Duration) -> Self {
        let sink = KafkaSink::open(settings, topic, 1 << 20).unwrap();
        let (sent, is_done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (counter, done) = (Arc::clone(&sent), Arc::clone(&is_done));
        let task = tokio::spawn(async move {
            let mut random = Random::new(7);
            for chunk in records.chunks(20) {
                let mut receipts = Vec::new();
                for record in chunk {
                    for _ in 0..if random.one_in(TWICE) { 2 } else { 1 } {
                        receipts.push(sink.send(record.clone()).await);
                    }
                }
                for receipt in receipts {
                    receipt.acknowledged().await.unwrap();
                    counter.fetch_add(1, Ordering::SeqCst);
                }
                tokio::time::sleep(pause).await;
            }
            done.store(true, Ordering::SeqCst);
        });
        Self { sent, is_done, task }
    }
}

/// Returns the committed offset of each partition.
fn committed(brokers: &str, topic: &str) -> BTreeMap<i32, i64> {
    let mut config = ClientConfig::new();
    // Or an answer would wait for the transaction that a killed member has left open.
    config.set("bootstrap.servers", brokers).set("group.id", topic).set("isolation.level", "read_uncommitted");
    let client: BaseConsumer = config.create().unwrap();
    let mut list = TopicPartitionList::new();
    for partition in 0..PARTITIONS as i32 {
        list.add_partition(topic, partition);
    }
    let found = client.committed_offsets(list, Duration::from_secs(10)).unwrap();
    let offsets = found.elements().iter().map(|element| (element.partition(), element.offset())).collect::<Vec<_>>();
    offsets
        .into_iter()
        .filter_map(|(partition, offset)| Some((partition, if let Offset::Offset(at) = offset { at } else { return None })))
        .collect()
}

/// The events of a topic that meet the area, by partition and offset.
fn wanted(settings: &KafkaSettings, topic: &str) -> HashMap<(i32, i64), (String, bool)> {
    let mut events = HashMap::new();
    let visited = read_topic(settings, topic, |record| {
        let envelope = Envelope::decode(record.value.as_deref().unwrap()).unwrap();
        let is_wanted = envelope.bbox.is_some_and(|bbox| bbox.west() < 10.0);
        events.insert((record.partition, record.offset), (envelope.event_id, is_wanted));
        ControlFlow::Continue(())
    });
    visited.unwrap();
    events
}

/// What a look at a moment found: committed offsets first, and the ledger after them.
struct Look(BTreeMap<i32, i64>, BTreeSet<String>);

/// Checks the end: each event that meets the area took effect once, and no committed offset was ever past its effect.
fn check(target: &Target, settings: &KafkaSettings, topic: &str, looks: &[Look]) {
    let events = wanted(settings, topic);
    let expected: BTreeSet<String> = events.values().filter(|(_, wanted)| *wanted).map(|(event, _)| event.clone()).collect();
    let effects = target.effects();
    let distinct: BTreeSet<String> = effects.iter().cloned().collect();
    assert_eq!(effects.len(), distinct.len(), "an effect happened twice");
    let (lost, unwanted) = (expected.difference(&distinct).count(), distinct.difference(&expected).count());
    assert_eq!((lost, unwanted), (0, 0), "events lost, and applied though they were not wanted");
    let features = target.column("SELECT feature_id FROM features ORDER BY feature_id");
    let once: BTreeSet<&String> = features.iter().collect();
    assert_eq!(features.len(), once.len(), "a feature is there twice");
    for Look(committed, ledger) in looks {
        for ((partition, offset), (event, _)) in events.iter().filter(|(_, (_, is_wanted))| *is_wanted) {
            let is_committed = committed.get(partition).is_some_and(|next| offset < next);
            assert!(!is_committed || ledger.contains(event), "{partition}/{offset} was committed before its effect");
        }
    }
    let is_sorted = looks.windows(2).all(|pair| pair[0].0.iter().all(|(partition, at)| pair[1].0.get(partition) >= Some(at)));
    assert!(is_sorted, "a committed offset went back");
}

fn finish(target: &Target, place: &Place) {
    let sink = target.url();
    let run = binary::run(&consume(&sink, &[&MEMBER[..], &["--until-end"]].concat()), &place.env, b"");
    assert_eq!(run.code(), 0, "{}", run.stderr);
    assert_eq!(run.report()["dead_lettered"], 0, "{}", run.stderr);
}

/// Kills the consumer at random moments while events flow.
async fn killed(real: &Real, target: Target, name: &str) {
    let (kills, count) = (setting("GEOCLAIM_CRASH_KILLS", 40), setting("GEOCLAIM_CRASH_EVENTS", 4_000));
    let seed = Random::seed();
    println!("{name}: {kills} kills, {count} events, seed {seed}");
    let place = real.place(name, PARTITIONS);
    let settings = KafkaSettings::new(real.kafka.bootstrap());
    target.prepare(&place);
    let records = envelopes(real, &place, count).await;
    // So that the last kills still meet some work.
    let pause = Duration::from_millis((kills as u64 * 550).max(1) / (count as u64 / 20).max(1));
    let flow = Flow::start(&settings, &place.name, records, pause);
    let mut random = Random::new(seed);
    let (mut looks, mut advanced) = (Vec::new(), 0);
    for kill in 0..kills {
        let sink = target.url();
        let mut child = binary::start(&consume(&sink, &MEMBER), &place.env, None);
        tokio::time::sleep(Duration::from_millis(150 + random.below(800))).await;
        child.signal("KILL");
        child.wait();
        if kill % 5 == 0 {
            let committed = committed(real.kafka.bootstrap(), &place.name);
            looks.push(Look(committed, target.ledger()));
        }
        advanced = advanced.max(target.ledger().len());
    }
    flow.task.await.unwrap();
    assert!(flow.is_done.load(Ordering::SeqCst));
    finish(&target, &place);
    looks.push(Look(committed(real.kafka.bootstrap(), &place.name), target.ledger()));
    check(&target, &settings, &place.name, &looks);
    let records = flow.sent.load(Ordering::SeqCst);
    println!("{name}: {records} records acknowledged, {advanced} events in the ledger after the last kill");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_of_postgis_that_is_killed_at_any_moment_ends_as_one_clean_run() {
    let Some(real) = Real::get() else { return };
    let Some(postgres) = require("postgres", Postgres::start()) else { return };
    let database = postgres.create_database().unwrap();
    killed(&real, Target::Postgis(Arc::new(postgres), database), "crash-postgis").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_of_a_geopackage_that_is_killed_at_any_moment_ends_as_one_clean_run() {
    let Some(real) = Real::get() else { return };
    killed(&real, Target::GeoPackage(tempfile::tempdir().unwrap()), "crash-gpkg").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_into_a_topic_that_is_killed_at_any_moment_ends_as_one_clean_run() {
    let Some(real) = Real::get() else { return };
    let output = format!("crash-output-{}", std::process::id());
    killed(&real, Target::Topic(KafkaSettings::new(real.kafka.bootstrap()), output), "crash-topic").await;
}

fn wait_for(what: &str, child: &Running, mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < Duration::from_secs(120), "{what}\n{}", child.stderr());
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Broker killed and restarted, database stopped at once and restarted, store answering 503 for ten seconds, while
/// events flow through one consumer that nobody restarts.
#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_outlives_its_broker_its_database_and_its_store() {
    let Some(real) = Real::get() else { return };
    let Some(mut kafka) = require("kafka", Kafka::start()) else { return };
    let Some(mut postgres) = require("postgres", Postgres::start()) else { return };
    let proxy = Proxy::before(real.store.endpoint().rsplit(':').next().unwrap().parse().unwrap()).unwrap();
    let count = setting("GEOCLAIM_CRASH_EVENTS", 4_000);
    let mut place = real.place("outlives", PARTITIONS);
    kafka.create_topic(&place.name, PARTITIONS, &[]).unwrap();
    let endpoint = format!("http://127.0.0.1:{}", proxy.port());
    place.env.extend([("GEOCLAIM_BROKERS".to_owned(), kafka.bootstrap().to_owned()), ("AWS_ENDPOINT".into(), endpoint)]);
    let settings = KafkaSettings::new(kafka.bootstrap());
    let database = postgres.create_database().unwrap();
    let url = postgres.url(&database);
    let run = binary::run(&consume(&url, &["--group", "nobody", "--until-end"]), &place.env, b"");
    assert_eq!(run.code(), 0, "{}", run.stderr);
    postgres.query(&database, POSTGIS_TRIGGER).unwrap();
    let records = envelopes(&real, &place, count).await;
    let mut child = binary::start(&consume(&url, &MEMBER), &place.env, None);
    let flow = Flow::start(&settings, &place.name, records, Duration::from_millis(30_000 / (count as u64 / 20)));
    let applied =
        |postgres: &Postgres| -> usize { postgres.query(&database, "SELECT count(*) FROM effects").unwrap().parse().unwrap() };
    wait_for("it begins", &child, || applied(&postgres) > count / 20);
    kafka.stop_hard();
    tokio::time::sleep(Duration::from_secs(2)).await;
    kafka.restart().unwrap();
    let after = applied(&postgres);
    wait_for("it goes on after the broker", &child, || applied(&postgres) > after + count / 20);
    postgres.stop_immediately().unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    postgres.restart().unwrap();
    let after = applied(&postgres);
    wait_for("it goes on after the database", &child, || applied(&postgres) > after + count / 20);
    proxy.set(Mode::Unavailable);
    tokio::time::sleep(Duration::from_secs(10)).await;
    proxy.set(Mode::Pass);
    flow.task.await.unwrap();
    let all = wanted(&settings, &place.name);
    let all: BTreeSet<&String> = all.values().filter(|(_, wanted)| *wanted).map(|(event, _)| event).collect();
    wait_for("it ends", &child, || applied(&postgres) >= all.len());
    child.signal("TERM");
    let run = child.wait();
    assert_eq!((run.code(), &run.report()["dead_lettered"]), (0, &0.into()), "{}", run.stderr);
    check(&Target::Postgis(Arc::new(postgres), database), &settings, &place.name, &[]);
}
