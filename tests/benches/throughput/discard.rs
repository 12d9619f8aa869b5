//! Discarded envelopes a second through the whole consumer, beside a bare `BaseConsumer` loop on the same topic.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use geoclaim_common::{
    clock::SystemClock,
    kafka::{KafkaSettings, KafkaSink, KafkaSource, SourceEnd, SourceSettings},
    store::{self, LocalDirectory},
    stream::{EnvelopeSink, OutgoingRecord, memory::MemorySink},
};
use geoclaim_consumer::{
    ConsumeCounters, ConsumeSettings, Consumer, DeadLetters,
    aoi::{AreaSet, LiveAreas},
    sink::stdout::LineSink,
};
use geoclaim_tests::{
    components::Kafka,
    sample::{northern_areas, southern_envelope},
    timing::median,
};
use rdkafka::{
    ClientConfig,
    consumer::{BaseConsumer, Consumer as _},
    error::KafkaError,
};

const ENVELOPES: usize = 1_000_000;
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
        let seen = AtomicU64::new(0);
        bare.push(watched("bare", &seen, || bare_loop(kafka.bootstrap(), &format!("bare-{run}"), &seen)));
        let counters = Arc::<ConsumeCounters>::default();
        let work = || runtime.block_on(consume(&settings, &index, &counters, &format!("ours-{run}")));
        ours.push(watched("geoclaim-source", &counters.received, work));
    }
    println!(
        "discarded envelopes, 10,000 areas, none met, {ENVELOPES} envelopes, medians of {RUNS} alternating runs, from the first to the last"
    );
    let of = |all: &[(f64, f64)], pick: fn(&(f64, f64)) -> f64| median(all.iter().map(pick).collect());
    let [bare_wall, ours_wall] = [of(&bare, |run| run.0), of(&ours, |run| run.0)];
    let [bare_cpu, ours_cpu] = [of(&bare, |run| run.1), of(&ours, |run| run.1)];
    println!(
        "envelopes a second: bare BaseConsumer {:.0}, geoclaim {:.0}, ratio {:.2}",
        1.0 / bare_wall,
        1.0 / ours_wall,
        bare_wall / ours_wall
    );
    let nanoseconds = |seconds: f64| seconds * 1e9;
    println!(
        "CPU of the application's thread, ns an envelope: bare {:.0}, geoclaim {:.0}, ratio {:.2}",
        nanoseconds(bare_cpu),
        nanoseconds(ours_cpu),
        ours_cpu / bare_cpu
    );
}

/// Returns seconds an envelope, and seconds of the CPU of the thread of this name an envelope, while `work` counts up.
fn watched(thread: &str, seen: &AtomicU64, work: impl FnOnce() + Send) -> (f64, f64) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut first: Option<(u64, Instant, f64)> = None;
            let mut last: Option<(u64, f64, f64)> = None;
            loop {
                let is_done = done.load(Ordering::Acquire);
                let now = (seen.load(Ordering::Relaxed), Instant::now(), cpu_of(thread));
                if let (count @ 1.., at, Some(cpu)) = now {
                    let first = *first.get_or_insert((count, at, cpu));
                    if last.is_none_or(|(known, ..)| known != count) {
                        last = Some((count, (at - first.1).as_secs_f64(), cpu - first.2));
                    }
                }
                if is_done {
                    let (Some(first), Some((count, seconds, cpu))) = (first, last) else { return (f64::NAN, f64::NAN) };
                    let envelopes = (count - first.0) as f64;
                    return (seconds / envelopes, cpu / envelopes);
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        std::thread::Builder::new().name("bare".to_owned()).spawn_scoped(scope, work).unwrap().join().unwrap();
        done.store(true, Ordering::Release);
        watching.join().unwrap()
    })
}

/// Returns the seconds that the threads of this name have run.
fn cpu_of(thread: &str) -> Option<f64> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?.filter_map(|task| Some(task.ok()?.path()));
    let named = tasks.filter(|task| std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == thread));
    let nanoseconds = named
        .filter_map(|task| std::fs::read_to_string(task.join("schedstat")).ok()?.split_whitespace().next()?.parse::<f64>().ok());
    Some(nanoseconds.sum::<f64>() / 1e9).filter(|seconds| *seconds > 0.0)
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
fn bare_loop(brokers: &str, group: &str, seen: &AtomicU64) {
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
            Some(Ok(message)) => {
                bytes += message.payload_len();
                seen.fetch_add(1, Ordering::Relaxed);
            }
            Some(Err(KafkaError::PartitionEOF(_))) => ended += 1,
            Some(Err(error)) => panic!("{error}"),
            None => {}
        }
    }
    std::hint::black_box(bytes);
}

async fn consume(settings: &KafkaSettings, index: &Arc<LiveAreas>, counters: &Arc<ConsumeCounters>, group: &str) {
    let consumer = Consumer {
        settings: ConsumeSettings::default(),
        areas: Arc::clone(index),
        holdings: Arc::default(),
        store: store::open("memory://", LocalDirectory::Expect).unwrap(),
        sink: Arc::new(LineSink::new(std::io::sink())),
        dead_letters: DeadLetters::new(Arc::new(MemorySink::default())),
        clock: Arc::new(SystemClock),
        counters: Arc::clone(counters),
    };
    let source = SourceSettings { group: group.into(), end: SourceEnd::EndOfTopic, ..SourceSettings::default() };
    let source = KafkaSource::open(settings, TOPIC, &source, consumer.gate().await.unwrap()).unwrap();
    let report = consumer.run(source, std::future::pending()).await.unwrap();
    assert_eq!(report.discarded, ENVELOPES as u64);
}
