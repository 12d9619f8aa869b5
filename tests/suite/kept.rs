//! What is kept and let go of, by the command line against the real broker and store: sweep, audit, janitor, URLs, replay.

use std::{
    path::{Path as LocalPath, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use geoclaim_common::{
    Body,
    kafka::{KafkaSettings, KafkaSink},
    key,
    store::Lifecycle,
    stream::{EnvelopeSink as _, OutgoingRecord},
};
use geoclaim_producer::audit::{Audit, AuditSettings, Finding, Status};
use geoclaim_tests::{
    binary::{self, Run},
    faulty::{Act, FaultyStore, Op},
    sample::{large, lines, point},
};
use object_store::{ObjectStoreExt as _, path::Path};
use serde_json::Value;

use crate::support::{Place, Real, make_old, s3};

/// The times of the protocol, scaled down; with ten seconds of retention the boundary is 31 s.
pub const SCALED: [&str; 10] =
    ["--publish-deadline", "1s", "--margin", "20s", "--grace", "3s", "--settle", "2s", "--delete-deadline", "1s"];

/// A topic that keeps records for ten seconds, and a local store with two bodies: one that is referred to, one that is not.
struct Local {
    place: Place,
    folder: tempfile::TempDir,
}

const ORPHAN: &str = r#"{"type":"Point","coordinates":[1,1]}"#;

impl Local {
    fn new(real: &Real, name: &str) -> Self {
        let mut place = real.place(name, 2);
        let topic = format!("{}-short", place.name);
        real.kafka.create_topic(&topic, 2, &[("retention.ms", "10000"), ("segment.ms", "10000")]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().to_str().unwrap().to_owned();
        place.env.extend([("GEOCLAIM_STORE".to_owned(), store), ("GEOCLAIM_TOPIC".into(), topic)]);
        let local = Self { place, folder };
        let run = local.run(&["publish", "--run", "r"], lines(&[large("kept")]).as_bytes());
        assert_eq!(run.code(), 0, "{}", run.stderr);
        let orphan = local.path(&key::of(&Body::seal(ORPHAN.into()).claim().digest));
        std::fs::create_dir_all(orphan.parent().unwrap()).unwrap();
        std::fs::write(&orphan, ORPHAN).unwrap();
        for path in [&orphan, &local.kept()] {
            make_old(path, Duration::from_secs(7_200));
        }
        local
    }

    fn run(&self, args: &[&str], input: &[u8]) -> Run {
        binary::run(args, &self.place.env, input)
    }

    fn sweep(&self, more: &[&str]) -> Run {
        self.run(&[&["sweep", "--report", "json"][..], &SCALED, more].concat(), b"")
    }

    fn path(&self, key: &Path) -> PathBuf {
        self.folder.path().join(key.as_ref())
    }

    fn orphan(&self) -> PathBuf {
        self.path(&key::of(&Body::seal(ORPHAN.into()).claim().digest))
    }

    fn kept(&self) -> PathBuf {
        self.path(&key::of(&Body::seal(large("kept").into()).claim().digest))
    }
}

fn refused(local: &Local, run: &Run, words: &str) {
    let report = run.report();
    let refused = report["refused"].as_str().unwrap_or_default();
    assert!(refused.contains(words), "{words}: {report}\n{}", run.stderr);
    assert_eq!((run.code(), &report["deleted"]), (1, &0.into()));
    assert!(run.stderr.contains("nothing was deleted"), "{}", run.stderr);
    assert!(local.orphan().exists() && local.kept().exists());
}

async fn send(bootstrap: &str, topic: &str, value: &str) {
    let sink = KafkaSink::open(&KafkaSettings::new(bootstrap), topic, 1 << 20).unwrap();
    let record = OutgoingRecord { key: Some("k".into()), value: Some(value.to_owned().into()), headers: Vec::new() };
    sink.send(record).await.acknowledged().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_these_stops_a_sweep_whose_plan_is_ripe() {
    let Some(real) = Real::get() else { return };
    let local = Local::new(&real, "stops");
    let topic = |end: &str| format!("{}-{end}", local.place.name);
    for (end, settings) in [
        ("forever", &[("retention.ms", "-1")][..]),
        ("compacted", &[("cleanup.policy", "compact")]),
        ("both", &[("cleanup.policy", "compact,delete")]),
        ("poisoned", &[("retention.ms", "10000")]),
    ] {
        real.kafka.create_topic(&topic(end), 1, settings).unwrap();
    }
    let planned = local.sweep(&["--delete"]);
    assert_eq!((planned.code(), &planned.report()["candidates"]), (0, &1.into()), "{}", planned.stderr);
    tokio::time::sleep(Duration::from_millis(3_100)).await;
    let also = |end: &str| local.sweep(&["--delete", "--also-topic", &topic(end)]);
    refused(&local, &also("forever"), "keeps records for ever (retention.ms=-1)");
    refused(&local, &also("compacted"), "is compacted");
    refused(&local, &also("both"), "is compacted");
    refused(&local, &also("nosuch"), "does not exist");
    send(real.kafka.bootstrap(), &topic("poisoned"), "poison").await;
    refused(&local, &also("poisoned"), "-poisoned/0/0 cannot be decoded");
    refused(&local, &local.sweep(&["--delete", "--body-lifecycle", "0"]), "the bucket's lifecycle deletes bodies after 0 s");
    refused(&local, &local.sweep(&["--delete", "--max-share", "49"]), "1 of 2 bodies would be deleted");

    // One that takes its time, for it may send a request a second.
    let slow = [&["sweep", "--rate", "1"][..], &SCALED].concat();
    let mut slow = binary::start(&slow, &local.place.env, None);
    let leases = local.folder.path().join("leases");
    let claims = || walk(&leases).iter().filter(|path| path.to_string_lossy().ends_with(".claim")).count();
    let (before, since) = (claims(), Instant::now());
    while claims() == before && since.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(5));
    }
    refused(&local, &local.sweep(&["--delete"]), "another sweep of this store is running");
    slow.signal("INT");
    let slow = slow.wait();
    assert!(slow.code() == 1 && slow.stderr.contains("stopped: run it again"), "{}", slow.stderr);

    let swept = local.sweep(&["--delete"]);
    assert_eq!((swept.code(), &swept.report()["deleted"]), (0, &1.into()), "{}", swept.stderr);
    assert!(!local.orphan().exists() && local.kept().exists());
}

fn walk(folder: &LocalPath) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().flat_map(|entry| if entry.path().is_dir() { walk(&entry.path()) } else { vec![entry.path()] }).collect()
}

fn findings(run: &Run) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let report = run.report();
    let findings = report["findings"].as_array().unwrap();
    findings.iter().map(|finding| (text(&finding["check"]), text(&finding["status"]), text(&finding["detail"]))).collect()
}

/// Checks that only these are not ok, with these words in their details.
fn only(run: &Run, wanted: &[(&str, &str, &str)]) {
    let bad: Vec<_> = findings(run).into_iter().filter(|(_, status, _)| status != "ok").collect();
    assert_eq!(bad.len(), wanted.len(), "{bad:#?}");
    for ((check, status, detail), wanted) in bad.iter().zip(wanted) {
        assert_eq!((&**check, &**status), (wanted.0, wanted.1), "{detail}");
        assert!(detail.contains(wanted.2), "{detail}");
    }
    assert_eq!(run.code(), i32::from(!wanted.is_empty()));
}

fn lifecycle(real: &Real, bucket: &str, days: u32) {
    let rule = format!(
        "<Rule><ID>r</ID><Status>Enabled</Status><Filter><Prefix></Prefix></Filter><Expiration><Days>{days}</Days></Expiration></Rule>"
    );
    let text = format!("<LifecycleConfiguration>{rule}</LifecycleConfiguration>");
    let (status, answer) = real.store.ask("PUT", &format!("/{bucket}?lifecycle"), text.as_bytes()).unwrap();
    assert_eq!(status, 200, "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_passes_a_clean_set_up_and_finds_what_has_drifted() {
    let Some(real) = Real::get() else { return };
    let place = real.place("audit", 2);
    let audit = |more: &[&str]| binary::run(&[&["audit", "--report", "json"], more].concat(), &place.env, b"");
    let features: Vec<String> = (0..6).map(|n| large(&format!("f{n}"))).chain([point("p", 1.0, 1.0)]).collect();
    let run = binary::run(&["publish", "--run", "r"], &place.env, lines(&features).as_bytes());
    assert_eq!(run.code(), 0, "{}", run.stderr);
    only(&audit(&[]), &[]);
    only(&audit(&["--sample", "2", "--oldest", "1"]), &[]);
    let all = audit(&["--all"]);
    only(&all, &[]);
    assert!(findings(&all).iter().any(|(check, _, detail)| check == "bodies" && detail.contains("6 fetched and verified")));
    only(&audit(&["--body-lifecycle", "3"]), &[("lifecycle of the bucket", "wrong", "it deletes bodies after 3.0 days")]);
    only(&audit(&["--ledger-retention", "7"]), &[("retention of the ledger", "wrong", "applied twice")]);
    lifecycle(&real, &place.name, 3);
    only(&audit(&[]), &[("lifecycle of the bucket", "wrong", "it deletes bodies after 3.0 days")]);
    let run = binary::run(&["sweep", "--report", "json"], &place.env, b"");
    assert!(run.report()["refused"].as_str().unwrap().contains("lifecycle deletes bodies after 3.0 days"), "{}", run.stderr);
    lifecycle(&real, &place.name, 30);
    only(&audit(&[]), &[]);

    let store = s3(&real, &place.name);
    store.delete(&key::of(&Body::seal(features[0].clone().into()).claim().digest)).await.unwrap();
    only(&audit(&[]), &[("bodies", "wrong", "body_missing")]);
    send(real.kafka.bootstrap(), &place.name, "poison").await;
    only(&audit(&["--all"]), &[("envelopes", "wrong", "1 of 8 records are none"), ("bodies", "wrong", "1 of 6 are not")]);

    let small = format!("{}-small", place.name);
    real.kafka.create_topic(&small, 1, &[("max.message.bytes", "100000")]).unwrap();
    only(&audit(&["--topic", &small]), &[("max.message.bytes", "wrong", "takes records of 100000 bytes")]);
    only(&audit(&["--topic", &small, "--inline-limit", "90000"]), &[]);
    let table = binary::run(&["audit", "--topic", &small], &place.env, b"");
    assert!(table.stdout.contains("WRONG    max.message.bytes"), "{}", table.stdout);
    let missing = audit(&["--topic", "nosuch"]);
    assert!(findings(&missing).iter().any(|(check, status, _)| check == "topic" && status == "wrong"));
    let forever = format!("{}-forever", place.name);
    real.kafka.create_topic(&forever, 1, &[("retention.ms", "-1")]).unwrap();
    let checks: Vec<_> = findings(&audit(&["--topic", &forever])).into_iter().filter(|(_, status, _)| status != "ok").collect();
    assert_eq!((&*checks[0].0, &*checks[0].1), ("retention", "wrong"), "{checks:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_finds_a_store_that_ignores_conditions_or_forbids_something() {
    let Some(real) = Real::get() else { return };
    let place = real.place("careless", 1);
    let settings = || AuditSettings::new(KafkaSettings::new(real.kafka.bootstrap()), vec![place.name.clone()]);
    let audit = |act: fn(Op, &str, usize) -> Act| {
        let store = Arc::new(FaultyStore::new(s3(&real, &place.name), act));
        let audit = Audit { settings: settings(), store, lifecycle: Lifecycle::Never, counters: Arc::default() };
        async move { audit.run().await.into_iter().filter(|finding| finding.status != Status::Ok).collect::<Vec<Finding>>() }
    };
    let careless = audit(|op, _, _| if op == Op::Create { Act::Careless } else { Act::Pass }).await;
    assert_eq!(careless.iter().map(|finding| finding.check).collect::<Vec<_>>(), ["conditional create"]);
    assert!(careless[0].detail.contains("If-None-Match"), "{careless:?}");
    let down = audit(|op, _, _| if op == Op::Head { Act::Unavailable } else { Act::Pass }).await;
    let unknown: Vec<_> = down.iter().map(|finding| (finding.check, finding.status)).collect();
    assert!(unknown.contains(&("permission to head", Status::Unknown)), "{down:?}");
    assert!(unknown.contains(&("clock of the store", Status::Unknown)), "{down:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn leftovers_are_listed_and_removed_when_they_are_old() {
    let Some(real) = Real::get() else { return };
    let local = Local::new(&real, "janitor");
    let staging = PathBuf::from(format!("{}#1", local.kept().display()));
    std::fs::write(&staging, "half").unwrap();
    let janitor = |more: &[&str]| local.run(&[&["janitor", "--report", "json"], more].concat(), b"");
    assert_eq!(janitor(&["--delete"]).report()["staging_files"], 0, "it may belong to a write that is at work");
    make_old(&staging, Duration::from_secs(90_000));
    let listed = janitor(&[]);
    assert_eq!((&listed.report()["staging_files"], &listed.report()["deleted"]), (&1.into(), &0.into()));
    assert!(listed.stderr.contains("#1") && staging.exists(), "{}", listed.stderr);
    assert_eq!(janitor(&["--delete"]).report()["deleted"], 1);
    assert!(!staging.exists() && local.kept().exists() && local.orphan().exists());

    let place = real.place("uploads", 1);
    let (status, answer) = real.store.ask("POST", &format!("/{}/bodies/geom/ab/part.json?uploads", place.name), b"").unwrap();
    assert_eq!(status, 200, "{answer}");
    let other = real.store.ask("POST", &format!("/{}/elsewhere/part.json?uploads", place.name), b"").unwrap();
    assert_eq!(other.0, 200);
    let janitor = |more: &[&str]| binary::run(&[&["janitor", "--report", "json"], more].concat(), &place.env, b"");
    assert_eq!(janitor(&[]).report()["uploads"], 0);
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    let run = janitor(&["--older-than", "1s", "--delete"]);
    assert_eq!(run.report()["uploads"], 1, "only under the store's prefix: {}", run.stderr);
    assert_eq!(janitor(&["--older-than", "0s"]).report()["uploads"], 0);
}
