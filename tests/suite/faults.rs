//! Faults of the broker, the sink and the dead-letter topic. Those of the store are in `damage` and `order`.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use geoclaim_common::{
    Fault, FaultKind,
    kafka::{KafkaSettings, KafkaSink, KafkaSource, SourceEnd, SourceSettings},
    stream::{AdmitAll, EnvelopeSink, EnvelopeSource, OutgoingRecord, Receipt, SourceEvent, memory::MemorySource},
};
use geoclaim_consumer::{
    Consumer, DeadLetters,
    sink::{Change, Effect, Features, Sink},
};
use geoclaim_tests::{
    components::{Kafka, require},
    faulty::{Act, FaultyStore, Op},
    sample::{large, lines, point},
};
use rdkafka::{
    mocking::MockCluster,
    types::{RDKafkaApiKey, RDKafkaRespErr},
};

use crate::support::{Bench, THEN, assert_adds_up, feature_ids, memory, published};

const AREA: &str = "[0,0,40,40]";

fn record(n: usize) -> OutgoingRecord {
    OutgoingRecord { key: Some("k".into()), value: Some(n.to_string().into()), headers: Vec::new() }
}

/// Reads a topic to its end and returns the values.
async fn values(settings: &KafkaSettings, topic: &str) -> Vec<usize> {
    let source = SourceSettings { group: "check".into(), end: SourceEnd::EndOfTopic, ..SourceSettings::default() };
    let mut source = KafkaSource::open(settings, topic, &source, Arc::new(AdmitAll)).unwrap();
    let mut values = Vec::new();
    while let Some(event) = source.next().await {
        let SourceEvent::Record(record) = event else { panic!("{event:?}") };
        values.push(String::from_utf8_lossy(&record.value.unwrap()).parse().unwrap());
        record.ticket.settle();
    }
    values
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_that_failed_for_good_is_made_anew_and_sends_the_rest_again_in_order() {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic("t", 1, 1).unwrap();
    let settings = KafkaSettings::new(cluster.bootstrap_servers());
    let sink = KafkaSink::open(&settings, "t", 1 << 20).unwrap();
    sink.send(record(0)).await.acknowledged().await.unwrap();
    let fatal = RDKafkaRespErr::RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER;
    cluster.request_errors(RDKafkaApiKey::Produce, &[fatal]);
    let mut receipts = Vec::new();
    for n in 1..200 {
        receipts.push(sink.send(record(n)).await);
    }
    for receipt in receipts {
        receipt.acknowledged().await.unwrap();
    }
    assert_eq!(sink.rebuilt(), 1);
    let read = values(&settings, "t").await;
    let distinct: BTreeSet<usize> = read.iter().copied().collect();
    assert_eq!(distinct, (0..200).collect(), "nothing is lost");
    let mut first_seen = read.clone();
    let mut seen = BTreeSet::new();
    first_seen.retain(|n| seen.insert(*n));
    assert!(first_seen.is_sorted(), "{first_seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_broker_does_not_take_is_told_and_not_lost() {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic("t", 1, 1).unwrap();
    let mut settings = KafkaSettings::new(cluster.bootstrap_servers());
    settings.properties.insert("message.timeout.ms".into(), "5000".into());
    let sink = KafkaSink::open(&settings, "t", 1 << 20).unwrap();
    sink.send(record(0)).await.acknowledged().await.unwrap();
    cluster.broker_down(-1).unwrap();
    let fault = sink.send(record(1)).await.acknowledged().await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Unavailable, "{fault}");
    cluster.broker_up(-1).unwrap();
    sink.send(record(2)).await.acknowledged().await.unwrap();
    let large = OutgoingRecord { value: Some(vec![0; 2 << 20].into()), ..OutgoingRecord::default() };
    assert_eq!(sink.send(large).await.acknowledged().await.unwrap_err().kind, FaultKind::TooLarge);
}

/// Refuses every record.
#[derive(Debug)]
struct DeadSink;

#[async_trait]
impl EnvelopeSink for DeadSink {
    async fn send(&self, _record: OutgoingRecord) -> Receipt {
        let (settle, receipt) = Receipt::new();
        settle.send(Err(Fault::unavailable("no broker"))).unwrap();
        receipt
    }

    async fn flush(&self, _within: Duration) -> Result<(), Fault> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_that_cannot_be_written_stops_the_consumer_before_its_offset() {
    let store = memory();
    let mut records = published(&store, lines(&[point("a", 1.0, 1.0), point("b", 1.0, 1.0)])).await;
    records.insert(1, OutgoingRecord { value: Some("poison".into()), ..OutgoingRecord::default() });
    let bench = Bench::new();
    let consumer = Consumer { dead_letters: DeadLetters::new(Arc::new(DeadSink)), ..bench.consumer(AREA, store) };
    let counters = Arc::clone(&consumer.counters);
    let source = MemorySource::new(records, THEN, consumer.gate().await.unwrap());
    let watermark = source.watermark();
    let fault = consumer.run(source, std::future::pending()).await.unwrap_err();
    assert!(fault.detail.contains("a dead letter could not be written"), "{fault}");
    assert!(watermark.lock().unwrap().next().is_none_or(|next| next <= 1), "not past the poison");
    assert_adds_up(&counters.report(0.0));
}

/// Fails a few times, then does what the sink under it does.
#[derive(Debug)]
struct FlakySink(Arc<dyn Sink>, AtomicUsize);

#[async_trait]
impl Sink for FlakySink {
    async fn apply(&self, batch: Arc<Vec<Change>>) -> Result<Vec<Effect>, Fault> {
        if self.1.fetch_add(1, Ordering::SeqCst) < 5 {
            // Worst of all: done, and the answer lost.
            self.0.apply(batch).await?;
            return Err(Fault::unavailable("connection lost"));
        }
        self.0.apply(batch).await
    }

    async fn features(&self, mark: u64) -> Result<Features, Fault> {
        self.0.features(mark).await
    }

    async fn close(&self) -> Result<(), Fault> {
        self.0.close().await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_lost_after_the_commit_is_a_duplicate_and_not_a_second_effect() {
    let store = memory();
    let records = published(&store, lines(&[point("a", 1.0, 1.0), large("b")])).await;
    let bench = Bench::new();
    let mut consumer = bench.consumer(AREA, store);
    consumer.sink = Arc::new(FlakySink(Arc::clone(&consumer.sink), AtomicUsize::new(0)));
    let source = MemorySource::new(records, THEN, consumer.gate().await.unwrap());
    let report = consumer.run(source, std::future::pending()).await.unwrap();
    assert_adds_up(&report);
    assert_eq!((report.applied + report.duplicate, report.consumed), (2, 2));
    assert_eq!(feature_ids(&bench.gpkg()), ["a", "b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn work_of_a_revoked_partition_is_dropped_unacknowledged() {
    let store = memory();
    let records = published(&store, lines(&[large("a"), point("b", 1.0, 1.0)])).await;
    let slow = FaultyStore::new(store, |op, _, _| if op == Op::Get { Act::Slow(Duration::from_millis(300)) } else { Act::Pass });
    let bench = Bench::new();
    let consumer = bench.consumer(AREA, Arc::new(slow));
    let source = MemorySource::new(records, THEN, consumer.gate().await.unwrap());
    let (watermark, assignment) = (source.watermark(), source.assignment());
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assignment.revoke();
    });
    let report = consumer.run(source, std::future::pending()).await.unwrap();
    assert_eq!((report.consumed, report.applied), (0, 0), "{report:?}");
    assert_eq!(watermark.lock().unwrap().next(), None);
    assert!(feature_ids(&bench.gpkg()).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn when_every_record_is_discarded_the_offset_still_advances_and_the_store_is_not_asked() {
    let store = memory();
    let records = published(&store, lines(&[large("a"), point("b", 1.0, 1.0)])).await;
    let recording = FaultyStore::recording(store);
    let (report, next) = Bench::new().consume(records, "[100,50,101,51]", Arc::new(recording.clone())).await;
    assert_eq!((report.discarded, next, recording.calls().len()), (2, Some(2), 0));
    assert_eq!(report.bytes_not_fetched, large("a").len() as u64);
}

/// Takes records until none has come for this long; returns them unsettled.
async fn take_all(source: &mut KafkaSource, quiet: Duration) -> Vec<geoclaim_common::stream::IncomingRecord> {
    let mut records = Vec::new();
    while let Ok(Some(SourceEvent::Record(record))) = tokio::time::timeout(quiet, source.next()).await {
        records.push(record);
    }
    records
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_that_goes_away_while_paused_is_read_on_when_it_comes_back() {
    let Some(kafka) = require("kafka", Kafka::shared()) else { return };
    let topic = format!("paused-{}", std::process::id());
    kafka.create_topic(&topic, 2, &[]).unwrap();
    let mut settings = KafkaSettings::new(kafka.bootstrap());
    settings.properties.insert("session.timeout.ms".into(), "6000".into());
    let sink = KafkaSink::open(&settings, &topic, 1 << 20).unwrap();
    for n in 0..4_000 {
        let record = OutgoingRecord { key: Some(n.to_string().into()), ..record(n) };
        drop(sink.send(record).await);
    }
    sink.flush(Duration::from_secs(30)).await.unwrap();
    let open = || {
        let source =
            SourceSettings { group: "paused".into(), records_per_partition: 10, drain_seconds: 1, ..SourceSettings::default() };
        KafkaSource::open(&settings, &topic, &source, Arc::new(AdmitAll)).unwrap()
    };
    let mut first = open();
    let held = take_all(&mut first, Duration::from_secs(5)).await;
    assert!(held.len() < 4_000, "both partitions are paused");
    let mut second = open();
    let taken = take_all(&mut second, Duration::from_secs(8)).await;
    assert!(!taken.is_empty(), "a partition has gone to the second");
    drop((taken, held));
    second.close(Duration::from_secs(10)).await;
    let mut seen = BTreeSet::new();
    while let Ok(Some(SourceEvent::Record(record))) = tokio::time::timeout(Duration::from_secs(20), first.next()).await {
        seen.insert((record.ticket.partition(), record.ticket.offset()));
        record.ticket.settle();
        if seen.len() == 4_000 {
            break;
        }
    }
    let came_back: BTreeSet<i32> = seen.iter().map(|(partition, _)| *partition).collect();
    assert_eq!(came_back, [0, 1].into(), "{} records", seen.len());
    first.close(Duration::from_secs(10)).await;
}

/// A second consumer joins while fetches of the first are stalled: everything is applied, nothing twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_rebalance_in_the_middle_of_fetches_loses_nothing_and_applies_nothing_twice() {
    let Some(kafka) = require("kafka", Kafka::shared()) else { return };
    let topic = format!("rebalance-{}", std::process::id());
    kafka.create_topic(&topic, 4, &[]).unwrap();
    let settings = KafkaSettings::new(kafka.bootstrap());
    let store = memory();
    let ids: Vec<String> = (0..60).map(|n| format!("f{n:02}")).collect();
    let sink = KafkaSink::open(&settings, &topic, 1 << 20).unwrap();
    for record in published(&store, lines(&ids.iter().map(|id| large(id)).collect::<Vec<_>>())).await {
        sink.send(record).await.acknowledged().await.unwrap();
    }
    let slow = Arc::new(FaultyStore::new(
        store,
        |op, _, _| if op == Op::Get { Act::Slow(Duration::from_millis(400)) } else { Act::Pass },
    ));
    let bench = Bench::new();
    let start = |wait: Duration| {
        let mut consumer = bench.consumer(AREA, Arc::clone(&slow) as _);
        consumer.settings.concurrency = 1;
        let source = SourceSettings { group: "rebalance".into(), end: SourceEnd::EndOfTopic, ..SourceSettings::default() };
        let (settings, topic) = (settings.clone(), topic.clone());
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            let source = KafkaSource::open(&settings, &topic, &source, consumer.gate().await.unwrap()).unwrap();
            consumer.run(source, std::future::pending()).await.unwrap()
        })
    };
    let (first, second) = tokio::join!(start(Duration::ZERO), start(Duration::from_millis(1_500)));
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_adds_up(&first);
    assert_adds_up(&second);
    assert_eq!(first.applied + second.applied, 60, "{first:?} {second:?}");
    assert_eq!(feature_ids(&bench.gpkg()), ids);
}
