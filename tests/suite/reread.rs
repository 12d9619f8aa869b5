//! Areas that come later: the topic is read again for them, through the same ledger, while the regular group goes on.

use std::path::Path;

use geoclaim_tests::{
    binary::{self, Run},
    sample::{feature, large, lines, point},
};

use crate::support::{Place, Real};

fn boxed(id: &str, west: f64) -> String {
    let east = west + 5.0;
    format!(r#"{{"type":"Feature","id":"{id}","bbox":[{west},0,{east},5],"properties":null,"geometry":null}}"#)
}

fn publish(place: &Place, features: &[String]) {
    let run = binary::run(&["publish", "-"], &place.env, lines(features).as_bytes());
    assert_eq!(run.code(), 0, "{}", run.stderr);
}

fn consume(place: &Place, folder: &Path, flags: &[&str]) -> Run {
    let all = [&["consume", "--aoi", "aoi.geojson", "--report", "json"], flags].concat();
    binary::run_in(&all, &place.env, b"", Some(folder))
}

/// Returns each feature in the sink with the areas that it is there for.
fn state(folder: &Path, gpkg: &str) -> Vec<(String, String)> {
    let connection = rusqlite::Connection::open(folder.join(gpkg)).unwrap();
    let mut rows = connection.prepare("SELECT feature_id, areas FROM features ORDER BY feature_id").unwrap();
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

#[test]
fn the_topic_is_read_again_for_areas_that_came_later() {
    let Some(real) = Real::get() else { return };
    let place = real.place("reread", 3);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let across = feature("across", r#"{"type":"LineString","coordinates":[[1,1],[12,1]]}"#);
    publish(&place, &[point("first", 1.0, 1.0), point("second", 11.0, 1.0), across, point("neither", 50.0, 1.0), large("large")]);

    std::fs::write(folder.join("aoi.geojson"), boxed("one", 0.0)).unwrap();
    let first = consume(&place, folder, &["-e"]).report();
    assert_eq!((&first["applied"], &first["discarded"]), (&3.into(), &2.into()), "{first}");

    std::fs::write(folder.join("aoi.geojson"), lines(&[boxed("one", 0.0), boxed("two", 10.0)])).unwrap();
    let unknown = consume(&place, folder, &["--from-start", "--areas-only", "two,three"]);
    assert_eq!(unknown.code(), 2, "{}", unknown.stderr);
    assert!(unknown.stderr.contains("three"), "{}", unknown.stderr);
    let alone = consume(&place, folder, &["--areas-only", "two"]);
    assert!(alone.code() == 2 && alone.stderr.contains("--from-start"), "{}", alone.stderr);

    let again = consume(&place, folder, &["--from-start", "--areas-only", "two"]);
    assert_eq!(again.code(), 0, "{}", again.stderr);
    let report = again.report();
    // What is there for the first area too is not a new effect, and what neither area wants is not looked at.
    assert_eq!((&report["consumed"], &report["applied"], &report["duplicate"]), (&5.into(), &1.into(), &2.into()), "{report}");

    publish(&place, &[point("later", 12.0, 1.0)]);
    let on = consume(&place, folder, &["-e"]).report();
    assert_eq!((&on["consumed"], &on["applied"]), (&1.into(), &1.into()), "the group goes on where it was: {on}");

    let fresh = consume(&place, folder, &["-e", "--group", "fresh", "--sink", "gpkg:fresh.gpkg"]);
    assert_eq!(fresh.code(), 0, "{}", fresh.stderr);
    let expected = state(folder, "fresh.gpkg");
    assert_eq!(expected.len(), 5, "{expected:?}");
    assert_eq!(state(folder, "geoclaim.gpkg"), expected);
}
