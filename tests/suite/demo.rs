//! The demonstration, as a newcomer runs it.

use std::{collections::BTreeMap, process::Command};

use geoclaim_tests::{
    binary,
    components::{Unavailable, require, workspace},
};
use serde_json::Value;

fn demo(folder: &std::path::Path) -> Value {
    let run = binary::run_in(&["demo", "--report", "json"], &[], b"", Some(folder));
    assert_eq!(run.code(), 0, "{}", run.stderr);
    run.report()
}

fn outcomes(consume: &Value) -> u64 {
    ["discarded", "applied", "duplicate", "stale", "rejected", "left", "dead_lettered"]
        .iter()
        .map(|name| consume[name].as_u64().unwrap())
        .sum()
}

#[test]
fn the_demo_adds_up_and_a_second_one_applies_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let first = demo(folder.path());
    let (publish, consume) = (&first["publish"], &first["consume"]);
    assert_eq!(consume["consumed"], outcomes(consume));
    assert_eq!(consume["consumed"], publish["published"]);
    assert!(publish["stored"].as_u64() >= Some(3));
    assert!(consume["discarded"].as_u64() > Some(0) && consume["fetched"].as_u64() < publish["stored"].as_u64());
    assert_eq!(consume["dead_lettered"], 0);
    let applied = consume["applied"].as_u64().unwrap();
    assert!(applied > 0);

    let second = demo(folder.path());
    assert_eq!(second["consume"]["consumed"], outcomes(&second["consume"]));
    assert_eq!(second["consume"]["applied"], 0);
    // And those that only the cover ruled out: the sink has a record of them too.
    assert!(second["consume"]["duplicate"].as_u64() >= Some(applied));
    assert_eq!(second["publish"]["bodies_written"], 0, "content addressing makes the repeat free");
    if let Some(()) = require("gdal-bin", gdal()) {
        gdal_reads_what_was_applied(&folder.path().join("geoclaim-demo/features.gpkg"), applied);
    }
}

fn gdal() -> Result<(), Unavailable> {
    let found = Command::new("ogrinfo").arg("--version").output();
    found.map(drop).map_err(|error| Unavailable(format!("ogrinfo: {error}; apt-get install gdal-bin")))
}

/// GDAL counts as many features as were applied, and each geometry is the source's.
fn gdal_reads_what_was_applied(gpkg: &std::path::Path, applied: u64) {
    let info = Command::new("ogrinfo").args(["-so", "-al"]).arg(gpkg).output().unwrap();
    let (text, complaints) = (String::from_utf8_lossy(&info.stdout), String::from_utf8_lossy(&info.stderr));
    assert!(text.contains(&format!("Feature Count: {applied}")), "{text}");
    assert_eq!(text.matches("Layer name:").count(), 1, "the ledger is no layer: {text}");
    assert_eq!(complaints, "");
    let json = Command::new("ogr2ogr")
        .args(["-f", "GeoJSON", "/vsistdout/", "-lco", "COORDINATE_PRECISION=17", "-lco", "RFC7946=NO", "-lco", "WRITE_BBOX=NO"])
        .arg(gpkg)
        .output()
        .unwrap();
    let read: Value = serde_json::from_slice(&json.stdout).unwrap();
    let source: Value = serde_json::from_slice(&std::fs::read(workspace().join("cli/sample/features.geojson")).unwrap()).unwrap();
    let sources: BTreeMap<&str, &Value> = source["features"]
        .as_array()
        .unwrap()
        .iter()
        .map(|feature| (feature["id"].as_str().unwrap(), &feature["geometry"]))
        .collect();
    let features = read["features"].as_array().unwrap();
    assert_eq!(features.len() as u64, applied);
    for feature in features {
        let id = feature["properties"]["feature_id"].as_str().unwrap();
        assert_eq!(feature["geometry"]["type"], sources[id]["type"], "{id}");
        // Numbers are compared as doubles, however they are written.
        assert_eq!(numbers(&feature["geometry"]["coordinates"]), numbers(&sources[id]["coordinates"]), "{id}");
    }
}

/// Returns coordinates with each number as a double, brackets kept.
fn numbers(value: &Value) -> String {
    match value {
        Value::Array(values) => format!("[{}]", values.iter().map(numbers).collect::<Vec<_>>().join(",")),
        other => other.as_f64().unwrap().to_bits().to_string(),
    }
}

#[test]
fn the_sample_is_what_the_readme_says() {
    let sample = std::fs::read(workspace().join("cli/sample/features.geojson")).unwrap();
    assert!(sample.len() <= 3_000_000);
    let sample: Value = serde_json::from_slice(&sample).unwrap();
    let features = sample["features"].as_array().unwrap();
    let large = features.iter().filter(|feature| serde_json::to_vec(feature).unwrap().len() > 262_144).count();
    assert!(large >= 3);
}
