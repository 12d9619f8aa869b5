//! Discarded envelopes a second through the whole consumer, beside a bare `BaseConsumer` loop on the same topic.

use std::{sync::Arc, time::Duration};

use geoclaim_common::{
    clock::SystemClock,
    kafka::{KafkaSettings, KafkaSink, KafkaSource, SourceEnd, SourceSettings},
    store::{self, LocalDirectory},
    stream::{EnvelopeSink, OutgoingRecord, memory::MemorySink},
};
use geoclaim_consumer::{
    ConsumeSettings, Consumer, DeadLetters,
    aoi::{AreaSet, LiveAreas},
    sink::stdout::LineSink,
};
use geoclaim_tests::{
    components::Kafka,
    sample::{northern_areas, southern_envelope},
    timing::{median, timed},
};
use rdkafka::{
    ClientConfig,
    consumer::{BaseConsumer, Consumer as _},
    error::KafkaError,
};

const ENVELOPES: usize = 400_000;
const PARTITIONS: usize = 4;
const RUNS: usize = 5;
const TOPIC: &str = "discards";

pub(crate) fn print() {
    let kafka = match Kafka::shared() {
        Ok(kafka) => kafka,
        Err(reason) => return println!("discarded envelopes: Kafka is not there ({reason})"),
    };
    kafka.create_topic(TOPIC, PARTITIONS, &[]).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let settings = KafkaSettings::new(kafka.bootstrap());
    runtime.block_on(fill(&settings));
    let index = Arc::new(LiveAreas::new(AreaSet::new(northern_areas(10_000))));
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    for run in 0..RUNS {
        bare.push(timed(|| bare_loop(kafka.bootstrap(), &format!("bare-{run}"))).1);
        ours.push(timed(|| runtime.block_on(consume(&settings, &index, &format!("ours-{run}")))).1);
    }
    let (bare, ours) = (median(bare), median(ours));
    let rate = |seconds: f64| ENVELOPES as f64 / seconds;
    println!(
        "discarded envelopes, 10,000 areas, none met, {ENVELOPES} envelopes, medians of {RUNS} alternating runs, joining the group included"
    );
    println!("bare BaseConsumer {:>9.0}/s   geoclaim {:>9.0}/s   ratio {:.2}", rate(bare), rate(ours), bare / ours);
}

async fn fill(settings: &KafkaSettings) {
    let sink = KafkaSink::open(settings, TOPIC, 1 << 20).unwrap();
    let mut last = None;
    for n in 0..ENVELOPES {
        let envelope = southern_envelope(n);
        let record = OutgoingRecord {
            key: Some(envelope.feature_id.clone().into()),
            value: Some(envelope.encode().into()),
            headers: Vec::new(),
        };
        last = Some(sink.send(record).await);
    }
    last.unwrap().acknowledged().await.unwrap();
    sink.flush(Duration::from_secs(60)).await.unwrap();
}

/// With the fetch settings of our own consumer, so that only the application thread differs.
fn bare_loop(brokers: &str, group: &str) {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("partition.assignment.strategy", "cooperative-sticky")
        .set("isolation.level", "read_committed")
        .set("queued.min.messages", "100000")
        .set("queued.max.messages.kbytes", "16384")
        .set("fetch.queue.backoff.ms", "20")
        .set("fetch.message.max.bytes", "1048576")
        .set("fetch.max.bytes", "16777216")
        .set("fetch.wait.max.ms", "100")
        .set("bootstrap.servers", brokers)
        .set("group.id", group)
        .set("auto.offset.reset", "earliest")
        .set("enable.partition.eof", "true")
        .set("check.crcs", "true")
        .create()
        .unwrap();
    consumer.subscribe(&[TOPIC]).unwrap();
    let (mut ended, mut bytes) = (0, 0);
    while ended < PARTITIONS {
        match consumer.poll(Duration::from_secs(1)) {
            Some(Ok(message)) => bytes += message.payload_len(),
            Some(Err(KafkaError::PartitionEOF(_))) => ended += 1,
            Some(Err(error)) => panic!("{error}"),
            None => {}
        }
    }
    std::hint::black_box(bytes);
}

async fn consume(settings: &KafkaSettings, index: &Arc<LiveAreas>, group: &str) {
    let consumer = Consumer {
        settings: ConsumeSettings::default(),
        areas: Arc::clone(index),
        holdings: Arc::default(),
        store: store::open("memory://", LocalDirectory::Expect).unwrap(),
        sink: Arc::new(LineSink::new(std::io::sink())),
        dead_letters: DeadLetters::new(Arc::new(MemorySink::default())),
        clock: Arc::new(SystemClock),
        counters: Arc::default(),
    };
    let source = SourceSettings { group: group.into(), end: SourceEnd::EndOfTopic, ..SourceSettings::default() };
    let source = KafkaSource::open(settings, TOPIC, &source, consumer.gate().await.unwrap()).unwrap();
    let report = consumer.run(source, std::future::pending()).await.unwrap();
    assert_eq!(report.discarded, ENVELOPES as u64);
}
