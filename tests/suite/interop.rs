//! Other languages: a consumer and a producer in Python that know nothing but the wire.

use std::{
    io::{Seek as _, Write as _},
    process::Command,
};

use geoclaim_tests::{
    binary,
    components::{cache, require, workspace},
    sample::{large, lines, point},
};
use serde_json::Value;

use crate::support::{Real, feature_ids};

/// Runs a script with this on its standard input; returns what it prints.
pub fn python(script: &str, args: &[&str], input: &[u8]) -> Option<String> {
    let python = require("python", cache::python())?;
    let mut stdin = tempfile::tempfile().unwrap();
    stdin.write_all(input).unwrap();
    stdin.rewind().unwrap();
    let script = workspace().join("tests/interop").join(script);
    let output = Command::new(python).arg("-B").arg(script).args(args).stdin(stdin).output().unwrap();
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_consumer_in_python_reads_filters_fetches_and_verifies() {
    let Some(real) = Real::get() else { return };
    let place = real.place("python-consumer", 2);
    let text = lines(&[large("a"), point("b", 1.0, 1.0), point("c", 100.0, 1.0)]);
    let run = binary::run(&["publish", "-"], &place.env, text.as_bytes());
    assert_eq!(run.code(), 0, "{}", run.stderr);
    let store = format!("{}/{}/bodies", real.store.endpoint(), place.name);
    let Some(output) = python("consumer.py", &[real.kafka.bootstrap(), &place.name, &store, "0,0,40,40"], b"") else { return };
    let mut outcomes: Vec<(String, String)> = output
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|line| (line["feature_id"].as_str().unwrap().into(), line["outcome"].as_str().unwrap().into()))
        .collect();
    outcomes.sort();
    let expected = [("a", "fetched"), ("b", "inline"), ("c", "discarded")];
    assert_eq!(outcomes, expected.map(|(id, outcome)| (id.to_owned(), outcome.to_owned())));
}

#[test]
fn plain_envelopes_of_a_producer_in_python_are_consumed() {
    let Some(real) = Real::get() else { return };
    let place = real.place("python-producer", 2);
    let folder = tempfile::tempdir().unwrap();
    let bodies = folder.path().join("bodies");
    std::fs::create_dir(&bodies).unwrap();
    let Some(output) = python("producer.py", &[real.kafka.bootstrap(), &place.name, bodies.to_str().unwrap()], b"") else {
        return;
    };
    let events = output.lines().count();
    assert!(events >= 3);
    let gpkg = folder.path().join("out.gpkg");
    let sink = format!("gpkg:{}", gpkg.display());
    let args =
        ["consume", "--aoi=-180,-90,180,90", "-e", "--report", "json", "--sink", &sink, "--store", bodies.to_str().unwrap()];
    let run = binary::run(&args, &place.env, b"");
    assert_eq!(run.code(), 0, "{}", run.stderr);
    let report = run.report();
    assert_eq!(
        (report["consumed"].as_u64(), report["applied"].as_u64()),
        (Some(events as u64), Some(events as u64)),
        "{report} {}",
        run.stderr
    );
    assert!(report["fetched"].as_u64() >= Some(1));
    assert!(!feature_ids(&gpkg).is_empty());
}
