//! Topics that are read again: into the same ledger, into a fresh one, from a time, from offsets, and where a body is gone.

use std::{ops::ControlFlow, path::Path, time::Duration};

use geoclaim_common::{
    Body, Clock as _, Timestamp,
    clock::SystemClock,
    kafka::{KafkaSettings, read_topic},
    key,
};
use geoclaim_tests::{
    binary::{self, Run},
    components::{Postgres, require},
    sample::{large, lines, point},
};
use object_store::ObjectStoreExt as _;
use rdkafka::{
    ClientConfig,
    producer::{BaseProducer, BaseRecord, Producer as _},
};

use crate::support::{Place, Real, feature_ids, s3};

const AREA: &str = "0,0,40,40";

fn publish(place: &Place, run: &str, features: &[String]) {
    let run = binary::run(&["publish", "--run", run], &place.env, lines(features).as_bytes());
    assert_eq!(run.code(), 0, "{}", run.stderr);
}

fn consume(place: &Place, folder: &Path, more: &[&str]) -> Run {
    let args = [&["consume", "--aoi", AREA, "--report", "json"][..], more].concat();
    binary::run_in(&args, &place.env, b"", Some(folder))
}

fn counts(run: &Run, names: &[&str]) -> Vec<u64> {
    let report = run.report();
    names.iter().map(|name| report[name].as_u64().unwrap_or_else(|| panic!("{name}: {report}\n{}", run.stderr))).collect()
}

fn points(from: usize, to: usize) -> Vec<String> {
    (from..to).map(|n| point(&format!("f{n}"), 1.0, 1.0)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_changes_nothing_in_the_same_ledger_and_rebuilds_a_fresh_one() {
    let Some(real) = Real::get() else { return };
    let Some(postgres) = require("postgres", Postgres::shared()) else { return };
    let (place, folder) = (real.place("replay", 3), tempfile::tempdir().unwrap());
    let folder = folder.path();
    publish(&place, "one", &[points(0, 20), vec![large("l")]].concat());
    publish(&place, "two", &points(5, 10));
    let run = consume(&place, folder, &["-e"]);
    assert_eq!(counts(&run, &["consumed", "applied"]), [26, 26]);
    let run = consume(&place, folder, &["--from-start"]);
    assert_eq!(counts(&run, &["consumed", "applied", "duplicate"]), [26, 0, 26], "nothing twice");

    let rebuilt = ["--from-start", "--consumer", "again", "--sink", "gpkg:new.gpkg", "--compare", "gpkg:geoclaim.gpkg"];
    let run = consume(&place, folder, &rebuilt);
    assert_eq!((counts(&run, &["applied"]), run.code()), (vec![26], 0), "{}", run.stderr);
    let compared = run.report()["compared"].clone();
    assert_eq!((&compared["same"], &compared["different"]), (&21.into(), &0.into()), "{compared}");

    let old = rusqlite::Connection::open(folder.join("geoclaim.gpkg")).unwrap();
    old.execute("DELETE FROM features WHERE feature_id = 'f3'", []).unwrap();
    old.execute("UPDATE features SET properties = '{}' WHERE feature_id = 'f4'", []).unwrap();
    old.execute("UPDATE features SET feature_id = 'elsewhere' WHERE feature_id = 'l'", []).unwrap();
    drop(old);
    let run = consume(&place, folder, &rebuilt);
    let compared = run.report()["compared"].clone();
    let of = |name: &str| compared[name].as_u64().unwrap();
    assert_eq!((of("same"), of("different"), of("only_new"), of("only_old"), run.code()), (18, 1, 2, 1, 1), "{compared}");
    let examples = compared["examples"].to_string();
    assert!(examples.contains("f4: content differ") && examples.contains("f3: only in the new one"), "{examples}");

    let database = postgres.create_database().unwrap();
    let url = postgres.url(&database);
    let run = consume(&place, folder, &["--from-start", "--sink", &url, "--compare", "gpkg:new.gpkg"]);
    assert_eq!((&run.report()["compared"]["same"], run.code()), (&21.into(), 0), "{}", run.stderr);
    let again = ["--from-start", "--consumer", "other", "--sink", &url, "--compare", &url];
    let itself = consume(&place, folder, &again);
    assert!(itself.code() == 2 && itself.stderr.contains("compared with itself"), "{}", itself.stderr);
    let run = consume(&place, folder, &[&again[..], &["--compare-consumer", &place.name]].concat());
    assert_eq!((&run.report()["compared"]["same"], run.code()), (&21.into(), 0), "{}", run.stderr);
    let lines = consume(&place, folder, &["--from-start", "--sink", "stdout:", "--compare", "gpkg:new.gpkg"]);
    assert!(lines.code() == 2 && lines.stderr.contains("sinks that keep features"), "{}", lines.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_begins_at_a_time_or_at_offsets() {
    let Some(real) = Real::get() else { return };
    let (place, folder) = (real.place("replay-from", 1), tempfile::tempdir().unwrap());
    let folder = folder.path();
    publish(&place, "one", &points(0, 6));
    tokio::time::sleep(Duration::from_millis(50)).await;
    let between = SystemClock.now();
    publish(&place, "two", &points(6, 10));
    let run = consume(&place, folder, &["--from", &between.to_rfc3339()]);
    assert_eq!(counts(&run, &["consumed", "applied"]), [4, 4], "{}", run.stderr);
    assert_eq!(counts(&consume(&place, folder, &["--from", "1h"]), &["consumed", "applied", "duplicate"]), [10, 6, 4]);
    assert_eq!(counts(&consume(&place, folder, &["--from", "2999-01-01T00:00:00Z"]), &["consumed"]), [0]);
    let offsets = |text: &str| {
        std::fs::write(folder.join("offsets.csv"), text).unwrap();
        consume(&place, folder, &["--from-offsets", "offsets.csv"])
    };
    assert_eq!(counts(&offsets(&format!("{},0,7\n", place.name)), &["consumed", "duplicate"]), [3, 3]);
    for (text, words) in
        [("0,11", "has offsets 0 to 10, and 11 is none of them"), ("3,0", "has no partition 3"), ("x", "expected")]
    {
        let run = offsets(text);
        assert!(run.code() == 2 && run.stderr.contains(words), "{}", run.stderr);
    }
    let both = consume(&place, folder, &["--from-start", "--from", "1h"]);
    assert_eq!(both.code(), 2, "{}", both.stderr);
    // The group itself begins where it always would have.
    assert_eq!(counts(&consume(&place, folder, &["-e"]), &["consumed", "duplicate"]), [10, 10]);
}

/// Sends the records of a topic to another one as if they had been written at a time.
fn copy(real: &Real, from: &str, to: &str, time: Timestamp) {
    let bootstrap = real.kafka.bootstrap();
    let producer: BaseProducer = ClientConfig::new().set("bootstrap.servers", bootstrap).create().unwrap();
    read_topic(&KafkaSettings::new(bootstrap), from, |record| {
        let (key, value) = (record.key.unwrap(), record.value.unwrap());
        producer.send(BaseRecord::to(to).key(&key[..]).payload(&value[..]).timestamp(time.as_millis())).unwrap();
        ControlFlow::Continue(())
    })
    .unwrap();
    producer.flush(Duration::from_secs(10)).unwrap();
}

/// A body that was deleted by hand: an old envelope is set aside within the time, a fresh one is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_gone_is_a_dead_letter_of_an_old_envelope_and_is_waited_for_of_a_fresh_one() {
    let Some(real) = Real::get() else { return };
    let (place, folder) = (real.place("gone", 1), tempfile::tempdir().unwrap());
    let folder = folder.path();
    let source = format!("{}-source", place.name);
    real.kafka.create_topic(&source, 1, &[]).unwrap();
    let now = SystemClock.now();
    for (name, age_ms) in [("old", 3_600_000), ("fresh", 0)] {
        let run = binary::run(
            &["publish", "--run", name, "--topic", &format!("{source}-{name}"), "--create-topic"],
            &place.env,
            lines(&[large(name)]).as_bytes(),
        );
        assert_eq!(run.code(), 0, "{}", run.stderr);
        copy(&real, &format!("{source}-{name}"), &place.name, Timestamp::from_millis(now.as_millis() - age_ms));
    }
    let store = s3(&real, &place.name);
    let key_of = |name: &str| key::of(&Body::seal(large(name).into()).claim().digest);
    for name in ["old", "fresh"] {
        store.delete(&key_of(name)).await.unwrap();
    }
    let args = ["consume", "--aoi", AREA, "--from-start", "--fresh-window", "600", "--report", "json"];
    let mut child = binary::start(&args, &place.env, Some(folder));
    tokio::time::sleep(Duration::from_secs(6)).await;
    let letters = format!("{}.dead-letters", place.name);
    let mut reasons = Vec::new();
    read_topic(&KafkaSettings::new(real.kafka.bootstrap()), &letters, |record| {
        let reason = record.headers.iter().find(|(name, _)| name == "geoclaim.reason").unwrap().1.clone().unwrap();
        reasons.push((String::from_utf8_lossy(&record.key.unwrap()).into_owned(), String::from_utf8_lossy(&reason).into_owned()));
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(reasons, [("old".to_owned(), "body_missing".to_owned())], "{}", child.stderr());
    store.put(&key_of("fresh"), large("fresh").into()).await.unwrap();
    let run = child.wait();
    assert_eq!(counts(&run, &["consumed", "applied", "dead_lettered"]), [2, 1, 1], "{}", run.stderr);
    assert_eq!(run.code(), 1);
    assert_eq!(feature_ids(&folder.join("geoclaim.gpkg")), ["fresh"]);
}
