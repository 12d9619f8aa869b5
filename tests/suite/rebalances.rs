//! Two consumers of one group on the real broker, a rebalance every few seconds, and fetches that stall in the midst of
//! them: nothing is lost, nothing happens twice, and committed offsets never go back.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use geoclaim_common::{
    Bbox,
    clock::SystemClock,
    kafka::{Input, KafkaSettings, KafkaSource, Membership, SourceSettings, topic_facts},
    store::Store,
    stream::memory::MemorySink,
};
use geoclaim_consumer::{
    ConsumeCounters, ConsumeReport, ConsumeSettings, Consumer, DeadLetters,
    aoi::{Area, AreaSet, LiveAreas},
    sink::{
        Sink,
        kafka::{Emit, Output, TopicSink},
        postgis::PostgisSink,
    },
};
use geoclaim_tests::{
    components::{Postgres, require},
    faulty::{Act, FaultyStore, Op},
    random::Random,
};
use tokio::sync::oneshot;

use crate::{
    effects::{Look, Target, check},
    flow::{Flow, PARTITIONS, committed, envelopes, setting},
    support::{Real, assert_adds_up, s3},
};

/// How long a body may stall, so that a rebalance finds many that do.
const STALL_MS: u64 = 2_000;

/// A member of the group, which leaves when it is told to.
struct Member {
    leave: oneshot::Sender<()>,
    counters: Arc<ConsumeCounters>,
    running: tokio::task::JoinHandle<ConsumeReport>,
}

/// What members have in common.
struct Group {
    settings: KafkaSettings,
    topic: String,
    store: Store,
}

impl Group {
    /// A store of which one body in four stalls.
    fn stalling(&self, seed: u64) -> Store {
        let random = Mutex::new(Random::new(seed));
        Arc::new(FaultyStore::new(Arc::clone(&self.store), move |op, _, _| {
            let mut random = random.lock().unwrap();
            if op == Op::Get && random.one_in(4) { Act::Slow(Duration::from_millis(random.below(STALL_MS))) } else { Act::Pass }
        }))
    }

    async fn member(&self, seed: u64, sink: Arc<dyn Sink>, membership: Membership) -> Member {
        let area = Area::from_bbox("area", &Bbox::new(0.0, 0.0, 10.0, 10.0).unwrap());
        let consumer = Consumer {
            settings: ConsumeSettings { topic: self.topic.clone(), ..ConsumeSettings::default() },
            areas: Arc::new(LiveAreas::new(AreaSet::new(vec![area]))),
            holdings: Arc::default(),
            store: self.stalling(seed),
            sink,
            dead_letters: DeadLetters::new(Arc::new(MemorySink::default())),
            clock: Arc::new(SystemClock),
            counters: Arc::default(),
        };
        let source = SourceSettings { group: self.topic.clone(), ..SourceSettings::default() };
        let gate = consumer.gate().await.unwrap();
        let source = KafkaSource::open_as(&membership, &self.settings, &self.topic, &source, gate).unwrap();
        let (counters, (leave, left)) = (Arc::clone(&consumer.counters), oneshot::channel());
        let running = tokio::spawn(async move { consumer.run(source, async { drop(left.await) }).await.unwrap() });
        Member { leave, counters, running }
    }
}

impl Member {
    /// Waits until it has had some part in the work, a few seconds at least and not for ever.
    async fn work(&self) {
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        for _ in 0..60 {
            if self.counters.report(0.0).applied > 0 {
                return tokio::time::sleep(Duration::from_millis(500)).await;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn leave(self) -> ConsumeReport {
        self.leave.send(()).unwrap();
        self.running.await.unwrap()
    }
}

/// Looks at the committed offsets again and again, and remembers whether one has ever gone back.
struct Watch {
    is_over: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<(u32, Vec<String>)>,
}

impl Watch {
    fn start(brokers: &str, topic: &str) -> Self {
        let (brokers, topic, is_over) = (brokers.to_owned(), topic.to_owned(), Arc::new(AtomicBool::new(false)));
        let over = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let (mut looks, mut backwards, mut last) = (0, Vec::new(), BTreeMap::new());
            while !over.load(Ordering::SeqCst) {
                let now = committed(&brokers, &topic);
                for (partition, at) in &last {
                    if now.get(partition) < Some(at) {
                        backwards.push(format!("{partition}: {at} to {:?}", now.get(partition)));
                    }
                }
                (looks, last) = (looks + 1, now);
                std::thread::sleep(Duration::from_millis(200));
            }
            (looks, backwards)
        });
        Self { is_over, thread }
    }

    fn end(self) {
        self.is_over.store(true, Ordering::SeqCst);
        let (looks, backwards) = self.thread.join().unwrap();
        println!("{looks} looks at the committed offsets");
        assert!(looks > 20 && backwards.is_empty(), "of {looks} looks: {backwards:?}");
    }
}

/// One member stays, another comes and goes.
async fn rebalanced(
    real: &Real,
    name: &str,
    target: impl AsyncFn(u32, &Membership, &str) -> Arc<dyn Sink>,
    result: impl FnOnce(&str) -> Target,
) {
    let (rounds, count) = (setting("GEOCLAIM_REBALANCES", 6) as u64 / 2, setting("GEOCLAIM_CRASH_EVENTS", 4_000));
    let place = real.place(name, PARTITIONS);
    let mut settings = KafkaSettings::new(real.kafka.bootstrap());
    // One that is gone in the midst of a rebalance is not waited for longer than this.
    settings.properties.insert("session.timeout.ms".into(), "10000".into());
    let records = envelopes(real, &place, count).await;
    let group = Group { settings: settings.clone(), topic: place.name.clone(), store: s3(real, &place.name) };
    let memberships = [Membership::default(), Membership::default()];
    let sinks = [target(0, &memberships[0], &place.name).await, target(1, &memberships[1], &place.name).await];
    // Flows for as long as members come and go.
    let flow = Flow::start(
        &KafkaSettings::new(real.kafka.bootstrap()),
        &place.name,
        records,
        Duration::from_millis(rounds * 10_000 / (count as u64 / 20).max(1)),
    );
    let watch = Watch::start(real.kafka.bootstrap(), &place.name);
    let steady = group.member(1, Arc::clone(&sinks[0]), memberships[0].clone()).await;
    let mut reports = Vec::new();
    for round in 0..rounds {
        let guest = group.member(2 + round, Arc::clone(&sinks[1]), memberships[1].clone()).await;
        let since = Instant::now();
        guest.work().await;
        let worked = since.elapsed();
        reports.push(guest.leave().await);
        println!("{name}: a guest came for {worked:?} and took {:?} to leave", since.elapsed() - worked);
        tokio::time::sleep(Duration::from_millis(1_000)).await;
    }
    flow.task.await.unwrap();
    let end = read_to_the_end(&settings, real.kafka.bootstrap(), &place.name);
    tokio::time::timeout(Duration::from_secs(180), end).await.expect("all is acknowledged");
    reports.push(steady.leave().await);
    watch.end();
    reports.iter().for_each(assert_adds_up);
    let sums = |count: fn(&ConsumeReport) -> u64| reports.iter().map(count).sum::<u64>();
    let by_guests: u64 = reports[..reports.len() - 1].iter().map(|report| report.applied).sum();
    println!(
        "{name}: {} applied, {by_guests} of them by those who came and went, {} duplicate, {} stale",
        sums(|report| report.applied),
        sums(|report| report.duplicate),
        sums(|report| report.stale)
    );
    assert!(by_guests > 0, "the guests had their part");
    let target = result(&place.name);
    let look = Look(committed(real.kafka.bootstrap(), &place.name), target.ledger());
    check(&target, &settings, &place.name, &[look]);
}

/// Waits until the group has committed all that is in the topic.
async fn read_to_the_end(settings: &KafkaSettings, brokers: &str, topic: &str) {
    let all = crate::flow::wanted(settings, topic);
    let end = |partition: i32| all.keys().filter(|(of, _)| *of == partition).map(|(_, offset)| offset + 1).max().unwrap_or(0);
    while !(0..PARTITIONS as i32)
        .all(|partition| committed(brokers, topic).get(&partition).copied().unwrap_or(0) >= end(partition))
    {
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn members_of_postgis_come_and_go_and_everything_is_applied_once() {
    let Some(real) = Real::get() else { return };
    let Some(postgres) = require("postgres", Postgres::start()) else { return };
    let database = postgres.create_database().unwrap();
    let url = postgres.url(&database);
    drop(PostgisSink::open(&url, "crash").await.unwrap());
    postgres.query(&database, crate::effects::POSTGIS_TRIGGER).unwrap();
    let open = async |_: u32, _: &Membership, _: &str| Arc::new(PostgisSink::open(&url, "crash").await.unwrap()) as Arc<dyn Sink>;
    rebalanced(&real, "rebalances-postgis", open, |_| Target::Postgis(Arc::new(postgres), database.clone())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_into_a_topic_come_and_go_and_everything_is_written_once() {
    let Some(real) = Real::get() else { return };
    let settings = KafkaSettings::new(real.kafka.bootstrap());
    let output = real.place("rebalances-output", PARTITIONS).name;
    let open = async |n: u32, membership: &Membership, topic: &str| {
        let input = Input { topic: topic.to_owned(), membership: membership.clone() };
        let (settings, output) = (settings.clone(), output.clone());
        let open = move || {
            let partitions = topic_facts(&settings, &output).unwrap().unwrap().partitions;
            let id = format!("{output}-{n}");
            let output = Output { topic: output, partitions, message_bytes: 1 << 20, emit: Emit::Envelope };
            TopicSink::open(&settings, &output, input, ("crash", &id)).unwrap()
        };
        Arc::new(tokio::task::spawn_blocking(open).await.unwrap()) as Arc<dyn Sink>
    };
    rebalanced(&real, "rebalances-topic", open, |_| Target::Topic(settings.clone(), output.clone())).await;
}
