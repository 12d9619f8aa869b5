//! A consumer on the real broker that kills itself (SIGKILL) when it comes to a named point for the nth time:
//!
//! ```text
//! dies-at POINT NTH BROKERS TOPIC STORE SINK
//! ```
//!
//! Without dying, it ends at the end of the topic. With `GEOCLAIM_SIGNAL=STOP` it stands still instead of dying; with
//! `GEOCLAIM_LEASE=SECONDS` it makes copies under leases; `GEOCLAIM_GROUP` is its group, else the topic. The points, in the order of a record's way:
//!
//! | Point | Is |
//! | --- | --- |
//! | `received` | a record is in the receive buffer |
//! | `fetch` | a body is about to be fetched |
//! | `dead-letter` | a letter is about to be written |
//! | `dead-letter-acknowledged` | a letter is durable, its offset is not |
//! | `apply` | a batch is about to be applied |
//! | `transaction` | its effects are in the database's transaction, which is not committed |
//! | `applied` | they are durable, and no offset has moved |

use std::{
    env,
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use geoclaim_common::{
    Bbox, Fault,
    clock::SystemClock,
    fault::RetrySettings,
    kafka::{Input, KafkaSettings, KafkaSink, KafkaSource, Membership, Progress, SourceEnd, SourceSettings, topic_facts},
    store::{self, LocalDirectory, Store},
    stream::{EnvelopeSink, Gate, OutgoingRecord, Receipt, RecordView, Triage},
};
use geoclaim_consumer::{
    ConsumeSettings, Consumer, DeadLetters,
    aoi::{Area, AreaSet, LiveAreas},
    lease::StoreLeases,
    sink::{
        Change, Effect, Features, Sink,
        gpkg::{self, GeoPackageSink},
        kafka::{Emit, Output, TopicSink},
        object::{Existing, ObjectSink, Parameters},
        postgis::{self, PostgisSink},
    },
};
use geoclaim_tests::faulty::{Act, FaultyStore, Op};

/// Where to die, and how often one comes by there before.
#[derive(Debug)]
struct Death {
    point: String,
    left: AtomicU32,
}

impl Death {
    fn at(&self, point: &str) {
        if self.point == point && self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            let signal = env::var("GEOCLAIM_SIGNAL").unwrap_or_else(|_| "KILL".to_owned());
            let _ = std::process::Command::new("kill").args(["-s", &signal, &std::process::id().to_string()]).status();
            // Not a step further until it is dead.
            std::thread::sleep(if signal == "KILL" { Duration::from_secs(60) } else { Duration::from_millis(100) });
        }
    }
}

#[derive(Debug)]
struct Deadly<T: ?Sized>(Arc<Death>, Arc<T>);

impl Gate for Deadly<dyn Gate> {
    fn judge(&self, record: &RecordView<'_>) -> Triage {
        self.0.at("received");
        self.1.judge(record)
    }

    fn assigned(&self) {
        self.1.assigned();
    }
}

#[async_trait]
impl EnvelopeSink for Deadly<KafkaSink> {
    async fn send(&self, record: OutgoingRecord) -> Receipt {
        self.0.at("dead-letter");
        let acknowledged = self.1.send(record).await.acknowledged().await;
        self.0.at("dead-letter-acknowledged");
        let (settle, receipt) = Receipt::new();
        let _ = settle.send(acknowledged);
        receipt
    }

    async fn flush(&self, within: Duration) -> Result<(), Fault> {
        self.1.flush(within).await
    }
}

#[async_trait]
impl Sink for Deadly<dyn Sink> {
    async fn apply(&self, batch: Arc<Vec<Change>>) -> Result<Vec<Effect>, Fault> {
        self.1.apply(batch).await
    }

    async fn apply_with_progress(&self, batch: Arc<Vec<Change>>, progress: Vec<Progress>) -> Result<Vec<Effect>, Fault> {
        self.0.at("apply");
        let effects = self.1.apply_with_progress(batch, progress).await;
        self.0.at("applied");
        effects
    }

    async fn features(&self, mark: u64) -> Result<Features, Fault> {
        self.1.features(mark).await
    }

    async fn remember(&self, note: Vec<u8>, most_bytes: u64) -> Result<(), Fault> {
        self.1.remember(note, most_bytes).await
    }

    async fn recall(&self) -> Result<Vec<Vec<u8>>, Fault> {
        self.1.recall().await
    }

    async fn close(&self) -> Result<(), Fault> {
        self.1.close().await
    }
}

/// Dies within the transaction of a sink.
#[derive(Debug)]
struct Within(Arc<Death>);

#[async_trait]
impl postgis::Statements for Within {
    async fn run(&self, _: &postgis::tokio_postgres::Transaction<'_>, _: &[Change], _: &[Effect]) -> Result<(), Fault> {
        self.0.at("transaction");
        Ok(())
    }
}

impl gpkg::Statements for Within {
    fn run(&self, _: &rusqlite::Transaction<'_>, _: &[Change], _: &[Effect]) -> rusqlite::Result<()> {
        self.0.at("transaction");
        Ok(())
    }
}

struct Place {
    kafka: KafkaSettings,
    topic: String,
    store: String,
    areas: Arc<LiveAreas>,
    membership: Membership,
}

async fn sink(url: &str, place: &Place, death: &Arc<Death>) -> Result<Arc<dyn Sink>, Box<dyn Error>> {
    let within = || Arc::new(Within(Arc::clone(death)));
    if url.starts_with("postgres:") {
        return Ok(Arc::new(PostgisSink::open(url, "c").await?.with_statements(within())));
    }
    if let Some(file) = url.strip_prefix("gpkg:") {
        return Ok(Arc::new(GeoPackageSink::open(file, "c")?.with_statements(within())));
    }
    if let Some(topic) = url.strip_prefix("kafka:") {
        let (kafka, topic) = (place.kafka.clone(), topic.to_owned());
        let input = Input { topic: place.topic.clone(), membership: place.membership.clone() };
        let open = move || {
            let partitions = topic_facts(&kafka, &topic)?.map_or(0, |facts| facts.partitions);
            let id = format!("geoclaim.{topic}");
            TopicSink::open(
                &kafka,
                &Output { topic, partitions, message_bytes: 1 << 20, emit: Emit::Envelope },
                input,
                ("c", &id),
            )
        };
        return Ok(Arc::new(tokio::task::spawn_blocking(open).await??));
    }
    let copies = dying(store::open(url, LocalDirectory::Create)?, death, Op::Create, "transaction");
    let parameters = (Parameters::default(), Existing::Skip);
    let sink = ObjectSink::open(Arc::clone(&copies), &*place.store, Arc::clone(&place.areas), parameters).await?;
    Ok(Arc::new(match env::var("GEOCLAIM_LEASE") {
        Ok(seconds) => sink.with_leases(Arc::new(StoreLeases::new(copies, Duration::from_secs(seconds.parse()?)))),
        Err(_) => sink,
    }))
}

fn dying(store: Store, death: &Arc<Death>, on: Op, point: &'static str) -> Store {
    let death = Arc::clone(death);
    let is_ours = |key: &str| key.starts_with("geom/") || key.starts_with("jobs/");
    Arc::new(FaultyStore::new(store, move |op, key, _| {
        if op == on && is_ours(key) {
            death.at(point);
        }
        Act::Pass
    }))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [point, nth, brokers, topic, store, url] = &args[..] else { return Err("POINT NTH BROKERS TOPIC STORE SINK".into()) };
    let death = Arc::new(Death { point: point.clone(), left: AtomicU32::new(nth.parse()?) });
    let mut kafka = KafkaSettings::new(brokers);
    // A static member takes its place again at once when it is started again.
    kafka.properties.insert("group.instance.id".into(), "one".into());
    kafka.properties.insert("auto.commit.interval.ms".into(), "100".into());
    let mut producers = kafka.clone();
    producers.properties.clear();
    let area = Area::from_bbox("area", &Bbox::new(0.0, 0.0, 10.0, 10.0)?);
    let areas = Arc::new(LiveAreas::new(AreaSet::new(vec![area])));
    let membership = Membership::default();
    let place =
        Place { kafka: producers.clone(), topic: topic.clone(), store: store.clone(), areas: Arc::clone(&areas), membership };
    let letters = Arc::new(KafkaSink::open(&producers, &format!("{topic}.dead-letters"), 1 << 20)?);
    let retry = RetrySettings { fresh_window_seconds: 0, ..RetrySettings::default() };
    let consumer = Consumer {
        settings: ConsumeSettings { topic: topic.clone(), batch_events: 10, retry, ..ConsumeSettings::default() },
        areas,
        holdings: Arc::default(),
        store: dying(store::open(store, LocalDirectory::Expect)?, &death, Op::Get, "fetch"),
        sink: Arc::new(Deadly(Arc::clone(&death), sink(url, &place, &death).await?)),
        dead_letters: DeadLetters::new(Arc::new(Deadly(Arc::clone(&death), letters))),
        clock: Arc::new(SystemClock),
        counters: Arc::default(),
    };
    let gate = Arc::new(Deadly(Arc::clone(&death), consumer.gate().await?));
    let source = SourceSettings {
        group: env::var("GEOCLAIM_GROUP").unwrap_or_else(|_| topic.clone()),
        end: SourceEnd::EndOfTopic,
        ..SourceSettings::default()
    };
    let source = KafkaSource::open_as(&place.membership, &kafka, topic, &source, gate)?;
    let report = consumer.run(source, std::future::pending()).await?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}
