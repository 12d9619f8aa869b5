//! Bodies that are not in WGS 84: refused, or transformed when it is said what they are.

use geoclaim_tests::{binary, sample::lines};

use crate::support::{Real, feature_ids};

/// A square of so many metres around a place in the Swiss grid (EPSG:2056).
fn square(id: &str, [x, y]: [f64; 2], half: f64) -> String {
    let corners = [[x - half, y - half], [x + half, y - half], [x + half, y + half], [x - half, y + half], [x - half, y - half]];
    format!(
        r#"{{"type":"Feature","id":"{id}","crs":{{"type":"name","properties":{{"name":"urn:ogc:def:crs:EPSG::2056"}}}},"properties":{{}},"geometry":{{"type":"Polygon","coordinates":[{corners:?}]}}}}"#
    )
}

const BERN: [f64; 2] = [2_600_000.0, 1_200_000.0];
const GENEVA: [f64; 2] = [2_500_000.0, 1_118_000.0];

#[test]
fn a_body_in_another_system_is_refused_until_it_is_said() {
    let bern = square("bern", BERN, 1_000.0);
    let run = binary::run(&["extent"], &[], bern.as_bytes());
    assert_eq!(run.code(), 1, "{}", run.stderr);
    assert!(run.stdout.contains("is not WGS 84") && run.stdout.contains("--crs EPSG:n"), "{}", run.stdout);
    let run = binary::run(&["extent", "--crs", "EPSG:3857"], &[], bern.as_bytes());
    assert!(run.code() == 1 && run.stdout.contains("is not EPSG:3857"), "{}", run.stdout);
    for (crs, message) in [("EPSG:9", "EPSG:9 is no reference system"), ("swiss", "EPSG:n is expected")] {
        let run = binary::run(&["extent", "--crs", crs], &[], bern.as_bytes());
        assert!(run.code() == 2 && run.stderr.contains(message), "{}", run.stderr);
    }
    let run = binary::run(&["extent", "--crs", "EPSG:2056"], &[], bern.as_bytes());
    assert_eq!(run.code(), 0, "{}", run.stderr);
    let bbox = &run.lines()[0]["bbox"];
    let side = |at: usize| bbox[at].as_f64().unwrap();
    assert!(side(0) > 7.42 && side(2) < 7.46 && side(1) > 46.93 && side(3) < 46.97, "{bbox}");
    let plan = binary::run(&["plan", "--crs", "EPSG:2056", "--aoi", "7.4,46.9,7.5,47", "--report", "json"], &[], bern.as_bytes());
    assert_eq!(plan.report()["total"]["exact_features"], 1, "{}", plan.stderr);
}

#[test]
fn bodies_in_another_system_are_filtered_and_applied_like_any_other() {
    let Some(real) = Real::get() else { return };
    let place = real.place("crs", 2);
    let folder = tempfile::tempdir().unwrap();
    // One travels inline, one with a claim check.
    let padded = square("large", BERN, 2_000.0)
        .replace("\"properties\":{}", &format!("\"properties\":{{\"x\":\"{}\"}}", "y".repeat(300_000)));
    let text = lines(&[square("bern", BERN, 1_000.0), square("geneva", GENEVA, 1_000.0), padded]);
    let run = binary::run(&["publish", "-", "--crs", "EPSG:2056", "--report", "json"], &place.env, text.as_bytes());
    assert_eq!(run.code(), 0, "{}", run.stderr);
    assert_eq!((&run.report()["inline"], &run.report()["stored"]), (&2.into(), &1.into()));
    let envelopes = binary::run(&["inspect", "--json"], &place.env, b"").lines();
    assert!(envelopes.iter().all(|envelope| envelope["crs"] == "EPSG:2056"), "{envelopes:?}");

    let consume = ["consume", "--aoi", "7.4386,46.951,7.4388,46.952", "-e", "--report", "json"];
    let run = binary::run_in(&consume, &place.env, b"", Some(folder.path()));
    assert_eq!(run.code(), 0, "{}", run.stderr);
    assert_eq!((&run.report()["applied"], &run.report()["discarded"]), (&2.into(), &1.into()), "{}", run.report());
    let gpkg = folder.path().join("geoclaim.gpkg");
    assert_eq!(feature_ids(&gpkg), ["bern", "large"]);
    // The sink's geometries are in WGS 84, as its header says.
    let connection = rusqlite::Connection::open(gpkg).unwrap();
    let blob: Vec<u8> =
        connection.query_row("SELECT geom FROM features WHERE feature_id = 'bern'", [], |row| row.get(0)).unwrap();
    let west = f64::from_le_bytes(blob[8..16].try_into().unwrap());
    assert!((west - 7.4255).abs() < 0.001, "{west}");
}
