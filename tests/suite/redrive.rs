//! Dead letters sent again, by the command line against the real broker and store.

use geoclaim_common::{
    Body,
    kafka::{KafkaSettings, KafkaSink},
    key,
    stream::{EnvelopeSink as _, OutgoingRecord},
};
use geoclaim_tests::{
    binary::{self, Run},
    sample::{large, lines, point},
};
use object_store::ObjectStoreExt as _;

use crate::support::{Place, Real, feature_ids, s3};

const AREA: &str = "0,0,40,40";

/// A topic with dead letters in it, and a consumer over a GeoPackage.
struct Scene {
    place: Place,
    folder: tempfile::TempDir,
}

impl Scene {
    fn consume(&self) -> Run {
        let gpkg = format!("gpkg:{}", self.folder.path().join("f.gpkg").display());
        let args = ["consume", "--aoi", AREA, "--until-end", "--fresh-window", "0", "--sink", &gpkg, "--report", "json"];
        binary::run(&args, &self.place.env, b"")
    }

    fn redrive(&self, more: &[&str]) -> Run {
        binary::run(&[&["redrive", "--report", "json"], more].concat(), &self.place.env, b"")
    }

    fn features(&self) -> Vec<String> {
        feature_ids(&self.folder.path().join("f.gpkg"))
    }
}

fn counts(run: &Run, names: &[&str]) -> Vec<u64> {
    let report = run.report();
    names.iter().map(|name| report[name].as_u64().unwrap_or_else(|| panic!("{name}: {report}"))).collect()
}

/// Two features whose bodies are gone, one whose body is another's, one that is whole, and one record that is none.
async fn scene(real: &Real, name: &str) -> (Scene, Vec<(object_store::path::Path, String)>) {
    let place = real.place(name, 2);
    let text = lines(&[large("a"), large("b"), large("c"), point("d", 1.0, 1.0)]);
    let run = binary::run(&["publish", "--run", "r"], &place.env, text.as_bytes());
    assert_eq!(run.code(), 0, "{}", run.stderr);
    let sink = KafkaSink::open(&KafkaSettings::new(real.kafka.bootstrap()), &place.name, 1 << 20).unwrap();
    let poison = OutgoingRecord { key: Some("p".into()), value: Some("poison".into()), headers: Vec::new() };
    sink.send(poison).await.acknowledged().await.unwrap();
    let store = s3(real, &place.name);
    let bodies: Vec<_> = ["a", "b", "c"].map(|id| (key::of(&Body::seal(large(id).into()).claim().digest), large(id))).into();
    store.delete(&bodies[0].0).await.unwrap();
    store.delete(&bodies[1].0).await.unwrap();
    store.put(&bodies[2].0, "{}".into()).await.unwrap();
    (Scene { place, folder: tempfile::tempdir().unwrap() }, bodies)
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_are_sent_again_once_their_bodies_are_back_and_twice_changes_nothing() {
    let Some(real) = Real::get() else { return };
    let (scene, bodies) = scene(&real, "redrive").await;
    let run = scene.consume();
    assert_eq!(counts(&run, &["applied", "dead_lettered"]), [1, 4], "{}", run.stderr);

    let run = scene.redrive(&["--send"]);
    assert_eq!(counts(&run, &["letters", "sent", "body_missing", "body_wrong", "unreadable"]), [4, 0, 2, 1, 1], "{}", run.stderr);
    assert_eq!(run.code(), 1);
    assert!(run.stderr.contains("a: stays: body_missing"), "{}", run.stderr);

    let store = s3(&real, &scene.place.name);
    for (key, bytes) in &bodies {
        store.put(key, bytes.clone().into()).await.unwrap();
    }
    let run = scene.redrive(&[]);
    assert_eq!(counts(&run, &["would_send", "sent"]), [3, 0], "a look sends nothing");
    let run = scene.redrive(&["--send", "--feature", "a", "--reason", "body_missing,body_corrupt"]);
    assert_eq!((counts(&run, &["sent", "not_chosen"]), run.code()), (vec![1, 3], 0), "{}", run.stderr);
    assert_eq!(counts(&scene.redrive(&["--until", "1h"]), &["not_chosen"]), [4]);
    assert_eq!(counts(&scene.redrive(&["--since", "1h"]), &["would_send"]), [3]);
    assert_eq!(counts(&scene.consume(), &["applied", "dead_lettered"]), [1, 0]);

    for (applied, duplicate) in [(2, 1), (0, 3)] {
        assert_eq!(counts(&scene.redrive(&["--send"]), &["sent"]), [3]);
        assert_eq!(counts(&scene.consume(), &["consumed", "applied", "duplicate"]), [3, applied, duplicate]);
        assert_eq!(scene.features(), ["a", "b", "c", "d"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_that_fails_again_is_counted_and_stays_above_the_limit() {
    let Some(real) = Real::get() else { return };
    let (scene, bodies) = scene(&real, "redrive-often").await;
    scene.consume();
    let store = s3(&real, &scene.place.name);
    for round in 1..=2 {
        // The body is there when the letter is judged, and gone when the consumer looks.
        store.put(&bodies[0].0, bodies[0].1.clone().into()).await.unwrap();
        let run = scene.redrive(&["--send", "--feature", "a", "--max-redrives", "2"]);
        assert_eq!(counts(&run, &["sent", "superseded"]), [1, round - 1], "{}", run.stderr);
        store.delete(&bodies[0].0).await.unwrap();
        assert_eq!(counts(&scene.consume(), &["dead_lettered"]), [1]);
    }
    store.put(&bodies[0].0, bodies[0].1.clone().into()).await.unwrap();
    let run = scene.redrive(&["--send", "--feature", "a", "--max-redrives", "2"]);
    assert_eq!((counts(&run, &["sent", "too_often"]), run.code()), (vec![0, 1], 1), "{}", run.stderr);
    let run = scene.redrive(&["--send", "--feature", "a", "--ledger-retention", "0"]);
    assert_eq!(counts(&run, &["sent", "too_old"]), [0, 1], "{}", run.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redriven_event_does_not_undo_a_newer_state() {
    let Some(real) = Real::get() else { return };
    let (scene, bodies) = scene(&real, "redrive-late").await;
    scene.consume();
    let moved = binary::run(&["publish", "--run", "later"], &scene.place.env, point("a", 2.0, 2.0).as_bytes());
    assert_eq!(moved.code(), 0);
    assert_eq!(counts(&scene.consume(), &["applied"]), [1]);
    s3(&real, &scene.place.name).put(&bodies[0].0, bodies[0].1.clone().into()).await.unwrap();
    assert_eq!(counts(&scene.redrive(&["--send", "--feature", "a"]), &["sent"]), [1]);
    assert_eq!(counts(&scene.consume(), &["stale", "applied"]), [1, 0], "it stood before the state that came since");
}

#[test]
fn a_ledger_that_would_forget_too_early_is_refused_at_the_start() {
    let Some(real) = Real::get() else { return };
    let place = real.place("ledger-retention", 1);
    let folder = tempfile::tempdir().unwrap();
    let sink = format!("gpkg:{}", folder.path().join("f.gpkg").display());
    let consume = |days: &str| {
        let args = ["consume", "--aoi", AREA, "--until-end", "--sink", &sink, "--ledger-retention", days];
        binary::run(&args, &place.env, b"")
    };
    let run = consume("7");
    // Seven days of the topic and as many of its segments; thirty and seven of the dead letters, and a day of margin.
    assert_eq!(run.code(), 2);
    assert!(run.stderr.contains("after 7 days") && run.stderr.contains("--ledger-retention 38"), "{}", run.stderr);
    assert_eq!(consume("38").code(), 0, "{}", run.stderr);
    let forever = format!("{}-forever", place.name);
    real.kafka.create_topic(&forever, 1, &[("retention.ms", "-1")]).unwrap();
    let args = ["consume", "--aoi", AREA, "--topic", &forever, "--sink", &sink, "--ledger-retention", "9999"];
    let run = binary::run(&args, &place.env, b"");
    let without = binary::run(&["consume", "--aoi", AREA, "--sink", "stdout:", "--ledger-retention", "38"], &place.env, b"");
    assert!(without.code() == 2 && without.stderr.contains("keeps features and a ledger"), "{}", without.stderr);
    assert!(run.code() == 2 && run.stderr.contains("keeps records for ever"), "{}", run.stderr);
}
