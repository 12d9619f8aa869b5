//! Events that flow at a steady rate into a topic, and what is known of them.

use std::{
    collections::{BTreeMap, HashMap},
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use geoclaim_common::{
    Envelope,
    kafka::{KafkaSettings, KafkaSink, read_topic},
    stream::{EnvelopeSink, OutgoingRecord},
};
use geoclaim_tests::{
    random::Random,
    sample::{feature, lines, point},
};
use rdkafka::{
    ClientConfig, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer as _},
};

use crate::support::{Place, Real, publish_to, run_named, s3};

pub const PARTITIONS: usize = 4;

/// Of so many events, one lies outside the area.
pub const OUTSIDE: usize = 10;

/// Of so many events, one has a stored body.
pub const STORED: usize = 20;

/// Of so many events, one is sent twice.
pub const TWICE: u64 = 20;

pub fn setting(name: &str, usual: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Publishes events at a steady rate, one in twenty twice, until all are acknowledged.
pub struct Flow {
    pub sent: Arc<AtomicUsize>,
    pub is_done: Arc<AtomicBool>,
    pub task: tokio::task::JoinHandle<()>,
}

/// The envelopes of so many events: two versions of each feature, and their bodies in the store.
pub async fn envelopes(real: &Real, place: &Place, count: usize) -> Vec<OutgoingRecord> {
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
    pub fn start(settings: &KafkaSettings, topic: &str, records: Vec<OutgoingRecord>, pause: Duration) -> Self {
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
pub fn committed(brokers: &str, topic: &str) -> BTreeMap<i32, i64> {
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
pub fn wanted(settings: &KafkaSettings, topic: &str) -> HashMap<(i32, i64), (String, bool)> {
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
