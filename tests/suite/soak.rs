//! Publishers that publish the same few bodies again and again while sweeps run all the time with a boundary of seconds, and
//! all of them are killed and stopped: every envelope has its body, and every orphan goes. `tests/sweep-soak MINUTES` runs
//! longer.

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::TryStreamExt as _;
use geoclaim_common::{
    Digest, Envelope, Timestamp,
    envelope::Content,
    kafka::{KafkaSettings, read_topic},
    store::{self, LocalDirectory, Store, StoreClock},
};
use geoclaim_tests::{
    binary::{self, Running},
    components::{Kafka, SeaweedFs, require},
    random::Random,
    sample::{feature, lines},
};
use object_store::{ObjectStore as _, ObjectStoreExt as _, path::Path};
use serde_json::Value;

use crate::{
    flow::setting,
    support::{Place, bodies_in},
};

/// Records are kept for five seconds, so the boundary is 16 s or little more, and half of it eight.
const SWEEP: [&str; 17] = [
    "sweep",
    "--delete",
    "--max-share",
    "100",
    "--report",
    "json",
    "--lease",
    "3s",
    "--publish-deadline",
    "3s",
    "--margin",
    "8s",
    "--grace",
    "6s",
    "--settle",
    "2s",
    "--delete-deadline=1s",
];

const PUBLISH: [&str; 9] =
    ["publish", "--report", "json", "--inline-limit", "2048", "--publish-deadline", "3s", "-X", "message.timeout.ms=1500"];

const BODIES: usize = 24;

/// Each body is published for so long, and then left for so long that a sweep has just deleted it, is about to, or has
/// just not.
const ACTIVE: u64 = 12;
const AT_REST: u64 = 22;

/// A publisher holds still for so long at the most when it is killed afterwards: well below half the boundary, and past its
/// deadline.
const SHORT_STALL_MS: u64 = 4_000;
const LONG_STALL_MS: u64 = 20_000;

struct Scene {
    place: Place,
    store: Store,
    folder: tempfile::TempDir,
    started: Instant,
    until: Instant,
}

#[derive(Debug, Default)]
struct Tally {
    runs: u64,
    kills: u64,
    stalls: u64,
    sums: BTreeMap<&'static str, u64>,
}

impl Tally {
    fn count(&mut self, report: &Value, names: &[&'static str]) {
        for name in names {
            *self.sums.entry(name).or_default() += report[*name].as_u64().unwrap_or(0);
        }
    }
}

/// A body of three kilobytes.
fn body(number: usize) -> String {
    let ring: Vec<String> = (0..150).map(|n| format!("[{n}.{number:04},{}.5]", n % 80)).collect();
    feature(&format!("b{number}"), &format!(r#"{{"type":"LineString","coordinates":[{}]}}"#, ring.join(",")))
}

impl Scene {
    fn is_on(&self) -> bool {
        Instant::now() < self.until
    }

    /// Returns a few of the bodies that are published now.
    fn choose(&self, random: &mut Random) -> Vec<String> {
        let now = self.started.elapsed().as_secs();
        let is_active = |number: &usize| (now + 7 * *number as u64) % (ACTIVE + AT_REST) < ACTIVE;
        let active: Vec<usize> = (0..BODIES).filter(is_active).collect();
        (0..1 + random.below(4)).map(|_| body(active[random.below(active.len() as u64) as usize])).collect()
    }

    /// Runs a process, and now and then kills it or stops it for a while. Returns its report if it came to one.
    fn run(&self, args: &[&str], random: &mut Random, tally: &mut Tally) -> Option<Value> {
        let mut child = binary::start(args, &self.place.env, None);
        tally.runs += 1;
        let wait = |ms: u64| std::thread::sleep(Duration::from_millis(ms));
        match random.below(12) {
            0 => {
                wait(random.below(600));
                return self.kill(&mut child, tally);
            }
            1 => {
                wait(random.below(400));
                stop(&child, random.below(SHORT_STALL_MS), tally);
                wait(random.below(300));
                return self.kill(&mut child, tally);
            }
            2 => {
                wait(random.below(400));
                stop(&child, random.below(LONG_STALL_MS), tally);
            }
            _ => {}
        }
        let run = child.wait();
        (!run.stdout.trim().is_empty()).then(|| run.report())
    }

    fn kill(&self, child: &mut Running, tally: &mut Tally) -> Option<Value> {
        child.signal("KILL");
        child.wait();
        tally.kills += 1;
        None
    }

    fn publisher(&self, seed: u64) -> Tally {
        let (mut random, mut tally) = (Random::new(seed), Tally::default());
        let file = self.folder.path().join(format!("{seed}.geojsonl"));
        while self.is_on() {
            std::fs::write(&file, lines(&self.choose(&mut random))).unwrap();
            let args = [&PUBLISH[..], &[file.to_str().unwrap()]].concat();
            if let Some(report) = self.run(&args, &mut random, &mut tally) {
                tally.count(&report, &["published", "bodies_written", "bodies_renewed"]);
            }
        }
        tally
    }

    fn sweeper(&self, seed: u64) -> Tally {
        let (mut random, mut tally) = (Random::new(seed), Tally::default());
        while self.is_on() {
            if let Some(report) = self.run(&SWEEP, &mut random, &mut tally) {
                tally.count(&report, &["deleted", "spared", "unanswered"]);
            }
        }
        tally
    }

    /// Returns what the log refers to, with a place of each.
    fn referred(&self) -> BTreeMap<Path, String> {
        let mut referred = BTreeMap::new();
        let brokers = &self.place.env.iter().rfind(|(name, _)| name == "GEOCLAIM_BROKERS").unwrap().1;
        read_topic(&KafkaSettings::new(brokers), &self.place.name, |record| {
            let envelope = Envelope::decode(record.value.as_deref().unwrap()).unwrap();
            let Content::Claim(claim) = envelope.content else { panic!("all are stored") };
            referred.insert(claim.key(), format!("{}/{}", record.partition, record.offset));
            ControlFlow::Continue(())
        })
        .unwrap();
        referred
    }

    /// Looks, again and again, whether every envelope has its body. One whose publisher was stopped for long may lack it for
    /// the moment until its publisher looks again.
    async fn watcher(&self) -> u64 {
        let (mut looks, mut lacking) = (0, BTreeMap::<Path, Instant>::new());
        while self.is_on() {
            let referred = self.referred();
            lacking.retain(|key, _| referred.contains_key(key));
            for (key, place) in referred {
                looks += 1;
                if self.store.head(&key).await.is_ok() {
                    lacking.remove(&key);
                    continue;
                }
                let since = lacking.entry(key.clone()).or_insert_with(Instant::now);
                // Whether it is readable still, the next round tells.
                assert!(since.elapsed() < Duration::from_secs(5), "{place}: {key} is not there");
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        looks
    }

    /// Checks that what the log refers to is there and is the right one; returns how many there are.
    async fn resolve_all(&self) -> usize {
        let file = self.folder.path().join("last.geojsonl");
        std::fs::write(&file, lines(&[body(0), body(1), body(2)])).unwrap();
        let run = binary::run(&[&PUBLISH[..], &[file.to_str().unwrap()]].concat(), &self.place.env, b"");
        assert_eq!(run.code(), 0, "{}", run.stderr);
        let referred = self.referred();
        for (key, place) in &referred {
            match self.store.get(key).await {
                Ok(found) => {
                    let bytes: Vec<u8> = found
                        .into_stream()
                        .try_fold(Vec::new(), |bytes, piece| async move { Ok([bytes, piece.to_vec()].concat()) })
                        .await
                        .unwrap();
                    assert_eq!(geoclaim_common::key::of(&Digest::of(&bytes)), *key);
                }
                Err(error) => assert!(!self.referred().contains_key(key), "{place}: {error}"),
            }
        }
        referred.len()
    }

    /// Sweeps until everything that nobody refers to has aged and gone; returns the boundary and how many bodies went. A sweep
    /// that was killed keeps the lease for three seconds.
    async fn sweep_all(&self) -> (u64, u64) {
        let deadline = Instant::now() + Duration::from_secs(180);
        let mut deleted = 0;
        loop {
            let report = binary::run(&SWEEP, &self.place.env, b"").report();
            let of = |name: &str| report[name].as_u64().unwrap();
            deleted += of("deleted");
            if report["refused"].is_null() && of("candidates") + of("young") == 0 {
                return (of("boundary_seconds"), deleted);
            }
            assert!(Instant::now() < deadline, "{report}");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    async fn bodies(&self) -> BTreeMap<Path, Timestamp> {
        let listing = self.store.list(Some(&Path::from("geom")));
        listing
            .map_ok(|meta| (meta.location, Timestamp::from_millis(meta.last_modified.timestamp_millis())))
            .try_collect()
            .await
            .unwrap()
    }
}

fn stop(child: &Running, ms: u64, tally: &mut Tally) {
    child.signal("STOP");
    std::thread::sleep(Duration::from_millis(ms));
    child.signal("CONT");
    tally.stalls += 1;
}

async fn soak(name: &str, place: Place, store: Store) {
    let seconds = setting("GEOCLAIM_SOAK_SECONDS", 75) as u64;
    let seed = Random::seed();
    println!("{name}: {seconds} s, seed {seed}");
    // So that nobody waits for it to be built.
    binary::path();
    let started = Instant::now();
    let until = started + Duration::from_secs(seconds);
    let scene = Arc::new(Scene { place, store, folder: tempfile::tempdir().unwrap(), started, until });
    let actor = |seed: u64, act: fn(&Scene, u64) -> Tally| {
        let scene = Arc::clone(&scene);
        tokio::task::spawn_blocking(move || act(&scene, seed))
    };
    let publishers = [actor(seed, Scene::publisher), actor(seed + 1, Scene::publisher)];
    let sweeper = actor(seed + 2, Scene::sweeper);
    let watching = Arc::clone(&scene);
    let looks = tokio::spawn(async move { watching.watcher().await });
    for publisher in publishers {
        println!("{name}: a publisher: {:?}", publisher.await.unwrap());
    }
    let swept = sweeper.await.unwrap();
    println!("{name}: the sweep: {swept:?}; {} looks at bodies of envelopes", looks.await.unwrap());

    let resolved = scene.resolve_all().await;
    assert!(resolved > 0);
    let ended = StoreClock::new(Arc::clone(&scene.store)).ask().await.unwrap();
    let (boundary, deleted) = scene.sweep_all().await;
    // On a busy machine all of them at the end.
    assert!(swept.sums.get("deleted").unwrap_or(&0) + deleted > 0, "there was nothing to sweep");
    let referred = scene.referred();
    let bodies = scene.bodies().await;
    let is_old = |modified: &Timestamp| ended.since(*modified).as_secs() > boundary;
    let orphans: Vec<_> = bodies.iter().filter(|(key, modified)| !referred.contains_key(*key) && is_old(modified)).collect();
    assert_eq!(orphans, [], "orphans older than the boundary");
    println!("{name}: {resolved} envelopes resolved at the end; {} bodies left after a boundary of {boundary} s", bodies.len());
}

/// A broker that deletes what is too old at once.
fn broker(name: &str) -> Option<Kafka> {
    let quick = [
        ("log.retention.check.interval.ms", "500"),
        ("log.initial.task.delay.ms", "500"),
        ("log.segment.delete.delay.ms", "500"),
    ];
    let kafka = require("kafka", Kafka::start_with(&quick))?;
    kafka.create_topic(name, 2, &[("retention.ms", "5000"), ("segment.ms", "1000")]).unwrap();
    Some(kafka)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_a_local_directory_every_envelope_has_its_body_and_every_orphan_goes() {
    let Some(kafka) = broker("soak-local") else { return };
    let folder = tempfile::tempdir().unwrap();
    let url = folder.path().to_str().unwrap().to_owned();
    let store = store::open(&url, LocalDirectory::Create).unwrap();
    let name = "soak-local".to_owned();
    let env = [("GEOCLAIM_BROKERS", kafka.bootstrap()), ("GEOCLAIM_TOPIC", &*name), ("GEOCLAIM_STORE", &*url)];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    soak("local directory", Place { name: name.clone(), env }, store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_seaweedfs_every_envelope_has_its_body_and_every_orphan_goes() {
    let Some(seaweedfs) = require("seaweedfs", SeaweedFs::shared()) else { return };
    let name = format!("soak-{}", std::process::id());
    let Some(kafka) = broker(&name) else { return };
    seaweedfs.create_bucket(&name).unwrap();
    let mut env = seaweedfs.env();
    let (brokers, url) = (kafka.bootstrap().to_owned(), format!("s3://{name}/bodies"));
    env.extend([("GEOCLAIM_BROKERS".into(), brokers), ("GEOCLAIM_TOPIC".into(), name.clone()), ("GEOCLAIM_STORE".into(), url)]);
    let store = bodies_in(seaweedfs, &name);
    soak("SeaweedFS", Place { name, env }, store).await;
}
