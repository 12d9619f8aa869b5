//! The sweep, by the library: two cycles, what is kept, and what is left alone.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::StreamExt as _;
use geoclaim_common::{
    Body, Digest, Envelope, Fault, Spool, Timestamp,
    clock::SystemClock,
    envelope::Content,
    kafka::KafkaSettings,
    lease::{Claim, Leases as _, StoreLeases},
    retention::{Announcement, Evidence, Timing},
    store::{Lifecycle, Store},
};
use geoclaim_producer::sweep::{ArchiveLog, Log, Reference, Sweep, SweepReport, SweepSettings, TopicLog};
use geoclaim_tests::{
    faulty::{Act, FaultyStore, Op},
    sample::southern_envelope,
};
use object_store::{ObjectStore as _, ObjectStoreExt as _, path::Path};
use rdkafka::mocking::MockCluster;

use crate::support::{Aged, make_old};

const TIMING: Timing =
    Timing { publish_deadline_seconds: 1, margin_seconds: 20, settle_seconds: 2, delete_deadline_seconds: 1, grace_seconds: 3 };

/// A log in memory.
#[derive(Debug)]
struct MemoryLog {
    kept: Duration,
    earliest: Option<Timestamp>,
    values: Mutex<Vec<String>>,
}

impl MemoryLog {
    fn of(bodies: &[&Body]) -> Arc<Self> {
        Arc::new(Self {
            kept: Duration::from_secs(10),
            earliest: None,
            values: Mutex::new(bodies.iter().map(|body| envelope(body)).collect()),
        })
    }
}

impl Log for MemoryLog {
    fn name(&self) -> &str {
        "memory"
    }

    fn evidence(&self) -> Result<Evidence, Fault> {
        Ok(Evidence { name: "memory".into(), kept: self.kept, earliest: self.earliest })
    }

    fn read(&self, visit: &mut dyn FnMut(Reference<'_>) -> Result<(), Fault>) -> Result<(), Fault> {
        let values = self.values.lock().unwrap();
        (0..)
            .zip(values.iter())
            .try_for_each(|(offset, value)| visit(Reference { partition: 0, offset, value: Some(value.as_bytes()) }))
    }
}

fn envelope(body: &Body) -> String {
    let claim = body.claim();
    format!(
        r#"{{"feature_id":"f","event_id":"{}","occurred_at":"2026-01-01T00:00:00Z","bbox":[0,0,1,1],"body_key":"{}","body_sha256":"{}","body_bytes":{}}}"#,
        claim.digest,
        claim.key(),
        claim.digest,
        claim.length
    )
}

fn body(name: &str) -> Body {
    Body::seal(format!("{{\"name\":\"{name}\"}}").into())
}

impl Aged {
    fn sweep(&self, delete: bool, log: &Arc<MemoryLog>) -> Sweep {
        Sweep {
            settings: SweepSettings { delete, timing: TIMING, ..SweepSettings::default() },
            store: Arc::clone(&self.store),
            deleter: Arc::clone(&self.store),
            lifecycle: Lifecycle::Never,
            logs: vec![Arc::clone(log) as Arc<dyn Log>],
            spill: None,
            counters: Arc::default(),
        }
    }
}

async fn run(sweep: Sweep) -> SweepReport {
    let report = sweep.run(std::future::pending()).await.unwrap();
    if report.refused.is_none() {
        assert_eq!(report.listed, report.referenced + report.young + report.candidates, "{report:?}");
    }
    report
}

async fn grace() {
    tokio::time::sleep(Duration::from_millis(3_100)).await;
}

const OLD: Duration = Duration::from_secs(3_600);

/// An orphan that can be deleted now, beside a young one.
async fn ripe() -> (Aged, Body, Arc<MemoryLog>) {
    let (scene, orphan, log) = (Aged::new(), body("orphan"), MemoryLog::of(&[]));
    scene.put(&orphan, OLD).await;
    scene.put(&body("other"), Duration::ZERO).await;
    assert_eq!(run(scene.sweep(true, &log)).await.candidates, 1);
    grace().await;
    (scene, orphan, log)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nothing_refers_to_is_planned_and_deleted_a_grace_later() {
    let scene = Aged::new();
    let [orphan, other, kept, young] = ["orphan", "other", "kept", "young"].map(body);
    for (body, age) in [(&orphan, OLD), (&other, OLD), (&kept, OLD), (&young, Duration::ZERO)] {
        scene.put(body, age).await;
    }
    let foreign = Path::from("geom/readme.txt");
    scene.store.put(&foreign, "not ours".into()).await.unwrap();
    let log = MemoryLog::of(&[&kept]);
    let planned = run(scene.sweep(true, &log)).await;
    assert_eq!((planned.boundary_seconds, planned.refused), (31, None));
    assert_eq!((planned.listed, planned.referenced, planned.young, planned.candidates), (4, 1, 1, 2));
    assert_eq!((planned.ripe, planned.deleted, planned.ignored), (0, 0, 1));
    let announced = Announcement::read(&scene.store).await.unwrap().unwrap();
    assert_eq!((announced.boundary_seconds, announced.timing), (31, TIMING));
    grace().await;
    assert_eq!(run(scene.sweep(false, &log)).await.ripe, 2, "a look deletes nothing");
    // One is referred to again, as a publisher does that renewed it.
    log.values.lock().unwrap().push(envelope(&other));
    let swept = run(scene.sweep(true, &log)).await;
    assert_eq!((swept.deleted, swept.bytes_deleted, swept.referenced), (1, orphan.claim().length, 2), "{swept:?}");
    assert!(!scene.has(&orphan) && scene.has(&other) && scene.has(&kept) && scene.has(&young));
    scene.store.head(&foreign).await.unwrap();
    let after = run(scene.sweep(true, &log)).await;
    assert_eq!((after.listed, after.candidates, after.deleted), (3, 0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_body_is_kept_and_deleted_as_any_other() {
    let scene = Aged::new();
    let compressed = |name: &str| {
        let body = Body::seal(format!("{{\"name\":\"{}\"}}", name.repeat(500)).into());
        body.compressed(3, &Spool::default()).unwrap()
    };
    let (orphan, kept) = (compressed("orphan"), compressed("kept"));
    // The same body as it is: it goes with the other, since a reference is to a body and not to a form of it.
    let plain = Body::seal(kept.bytes().clone());
    for body in [&orphan, &kept, &plain] {
        scene.put(body, OLD).await;
    }
    let log = MemoryLog::of(&[]);
    let referring = Envelope { content: Content::Claim(kept.claim()), ..southern_envelope(0) };
    log.values.lock().unwrap().push(String::from_utf8(referring.encode()).unwrap());
    let planned = run(scene.sweep(true, &log)).await;
    assert_eq!((planned.listed, planned.referenced, planned.candidates), (3, 2, 1), "{planned:?}");
    grace().await;
    let swept = run(scene.sweep(true, &log)).await;
    assert_eq!((swept.deleted, swept.bytes_deleted), (1, orphan.claim().stored_length()), "{swept:?}");
    assert!(!scene.has(&orphan) && scene.has(&kept) && scene.has(&plain));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_was_written_again_since_it_was_planned_begins_anew() {
    let (scene, orphan, log) = ripe().await;
    scene.make_old(&orphan, OLD / 2);
    let report = run(scene.sweep(true, &log)).await;
    assert_eq!((report.candidates, report.ripe, report.deleted), (1, 0, 0), "it is another object now");
}

/// The store says at the last look that the body has been written again.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_renewed_between_the_listing_and_the_last_look_is_spared() {
    let (scene, orphan, log) = ripe().await;
    let (inner, key, path) = (Arc::clone(&scene.store), orphan.claim().key().to_string(), scene.path(&orphan));
    let store = FaultyStore::new(inner, move |op, asked, _| {
        if op == Op::Head && asked == key {
            make_old(&path, Duration::ZERO);
        }
        Act::Pass
    });
    let report = run(Sweep { store: Arc::new(store), ..scene.sweep(true, &log) }).await;
    assert_eq!((report.ripe, report.spared, report.deleted), (1, 1, 0), "{report:?}");
    assert!(scene.has(&orphan));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_that_takes_longer_than_the_deadline_is_followed_by_no_delete() {
    let (scene, orphan, log) = ripe().await;
    let key = orphan.claim().key().to_string();
    let store = FaultyStore::new(Arc::clone(&scene.store), move |op, asked, _| match op {
        Op::Head if asked == key => Act::Slow(Duration::from_millis(1_200)),
        _ => Act::Pass,
    });
    let report = run(Sweep { store: Arc::new(store), ..scene.sweep(true, &log) }).await;
    assert_eq!((report.ripe, report.unanswered, report.deleted), (1, 1, 0), "{report:?}");
    assert!(scene.has(&orphan));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_record_that_can_still_be_read_lengthens_the_boundary() {
    let (scene, orphan) = (Aged::new(), body("orphan"));
    scene.put(&orphan, OLD).await;
    let now = geoclaim_common::Clock::now(&SystemClock).as_millis();
    let log = Arc::new(MemoryLog {
        earliest: Some(Timestamp::from_millis(now - 7_200_000)),
        kept: Duration::from_secs(10),
        values: Mutex::default(),
    });
    let report = run(scene.sweep(true, &log)).await;
    assert!((7_221..7_230).contains(&report.boundary_seconds), "{report:?}");
    assert_eq!((report.young, report.candidates), (1, 0));
}

/// Checks that a sweep refuses with these words, before and after a plan is ripe, and deletes nothing.
async fn refuses(scene: &Aged, bodies: &[&Body], sweep: Sweep, words: &str) {
    let report = run(sweep).await;
    let refused = report.refused.unwrap_or_default();
    assert!(refused.contains(words), "{refused}");
    assert_eq!(report.deleted, 0);
    assert!(bodies.iter().all(|body| scene.has(body)));
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_not_known_or_not_right_stops_the_sweep_before_it_deletes() {
    let scene = Aged::new();
    let bodies = ["one", "two", "three", "four"].map(body);
    for body in &bodies {
        scene.put(body, OLD).await;
    }
    let bodies: Vec<&Body> = bodies.iter().collect();
    let log = MemoryLog::of(&bodies[..1]);
    assert_eq!(run(scene.sweep(true, &log)).await.candidates, 3);
    grace().await;
    let sweep = || scene.sweep(true, &log);

    let words = "3 of 4 bodies would be deleted, and one run may delete 50 % of them";
    refuses(&scene, &bodies, sweep(), words).await;
    let lifecycle = Lifecycle::After(Duration::from_secs(30));
    refuses(&scene, &bodies, Sweep { lifecycle, ..sweep() }, "the bucket's lifecycle deletes bodies after 30 s").await;
    let lifecycle = Lifecycle::Unknown("no permission".into());
    refuses(&scene, &bodies, Sweep { lifecycle, ..sweep() }, "it is not known when the bucket deletes bodies by itself").await;
    refuses(&scene, &bodies, Sweep { logs: vec![], ..sweep() }, "no topic was named").await;

    let poison = Arc::new(MemoryLog {
        values: Mutex::new(vec![envelope(bodies[0]), format!("cut {}", bodies[1].claim().digest)]),
        kept: log.kept,
        earliest: None,
    });
    let poisoned = || Sweep { logs: vec![poison.clone() as Arc<dyn Log>], ..sweep() };
    refuses(&scene, &bodies, poisoned(), "record memory/0/1 cannot be decoded").await;

    let leases = StoreLeases::new(Arc::clone(&scene.store), Duration::from_secs(60));
    let Claim::Won(lease) = leases.claim(Digest::of(b"geoclaim sweep")).await.unwrap() else { panic!("nobody sweeps") };
    refuses(&scene, &bodies, sweep(), "another sweep of this store is running").await;
    leases.release(lease).await.unwrap();

    // Looked at by a person, it still keeps what it names.
    let mut looked_at = poisoned();
    looked_at.settings.looked_at = ["memory/0/1".to_owned()].into();
    let report = run(looked_at).await;
    assert_eq!((report.referenced, report.deleted, report.refused), (2, 2, None));
    assert!(scene.has(bodies[1]));
}

/// Knows how long its records are kept, and reads them from a broker.
#[derive(Debug)]
struct Known(TopicLog);

impl Log for Known {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn evidence(&self) -> Result<Evidence, Fault> {
        Ok(Evidence { name: "known".into(), kept: Duration::from_secs(1), earliest: None })
    }

    fn read(&self, visit: &mut dyn FnMut(Reference<'_>) -> Result<(), Fault>) -> Result<(), Fault> {
        self.0.read(visit)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_that_cannot_be_read_stops_the_sweep() {
    let (scene, orphan, kept) = (Aged::new(), body("orphan"), body("kept"));
    scene.put(&orphan, OLD).await;
    scene.put(&kept, OLD).await;
    let log = MemoryLog::of(&[&kept]);
    run(scene.sweep(true, &log)).await;
    grace().await;
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic("t", 2, 1).unwrap();
    cluster.partition_leader("t", 1, None).unwrap();
    let topic = TopicLog { kafka: KafkaSettings::new(cluster.bootstrap_servers()), topic: "t".into() };
    let sweep = Sweep { logs: vec![log.clone() as Arc<dyn Log>, Arc::new(Known(topic))], ..scene.sweep(true, &log) };
    refuses(&scene, &[&orphan, &kept], sweep, "partition 1 of topic t cannot be read").await;
    assert_eq!(run(scene.sweep(true, &log)).await.deleted, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_is_none_is_told_and_nothing_is_deleted() {
    let (scene, orphan) = (Aged::new(), body("orphan"));
    scene.put(&orphan, OLD).await;
    let log = MemoryLog::of(&[]);
    let plan = Path::from(format!("sweep/plan/{}.json", orphan.claim().digest.shard()));
    scene.store.put(&plan, "[{]".into()).await.unwrap();
    refuses(&scene, &[&orphan], scene.sweep(true, &log), "is no plan of a sweep").await;
    scene.store.delete(&plan).await.unwrap();
    assert_eq!(run(scene.sweep(true, &log)).await.candidates, 1);
    assert!(scene.store.list(Some(&Path::from("leases"))).next().await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_archive_refers_to_is_kept_and_its_age_counts() {
    let (scene, orphan, log) = ripe().await;
    let archive = scene.folder.path().join("archive.ndjson");
    std::fs::write(&archive, format!("{}\n\n", envelope(&orphan))).unwrap();
    let with_archive = || Sweep {
        logs: vec![log.clone() as Arc<dyn Log>, Arc::new(ArchiveLog::new(archive.clone()))],
        ..scene.sweep(true, &log)
    };
    let report = run(with_archive()).await;
    assert_eq!((report.referenced, report.deleted), (1, 0), "{report:?}");
    assert!(report.boundary_seconds > 86_400, "its envelope is of the first of January 2026");
    std::fs::write(&archive, envelope(&orphan).replace("occurred_at", "elsewhere")).unwrap();
    refuses(&scene, &[&orphan], with_archive(), "line 1: no envelope with a time").await;
    std::fs::remove_file(&archive).unwrap();
    refuses(&scene, &[&orphan], with_archive(), "cannot be read").await;
}

/// One that fails in the midst says what it has done, and keeps others out until nothing of it is on its way.
#[tokio::test(flavor = "multi_thread")]
async fn a_last_look_that_fails_ends_the_sweep_and_the_next_one_goes_on() {
    let (scene, orphan, log) = ripe().await;
    let key = orphan.claim().key().to_string();
    let script = move |op: Op, asked: &str, before: usize| {
        if op == Op::Head && asked == key && before == 0 { Act::Unavailable } else { Act::Pass }
    };
    let store: Store = Arc::new(FaultyStore::new(Arc::clone(&scene.store), script));
    let sweep = || Sweep { store: Arc::clone(&store), ..scene.sweep(true, &log) };
    let report = run(sweep()).await;
    assert!(report.refused.is_some() && report.deleted == 0 && scene.has(&orphan), "{report:?}");
    let report = run(sweep()).await;
    assert_eq!((report.refused, report.deleted), (None, 1));
}
