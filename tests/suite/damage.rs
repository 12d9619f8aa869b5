//! Damaged bodies never reach a sink: each is set aside with its own reason, those that a retry can heal are healed,
//! and the partition goes on.

use std::{sync::Arc, time::Duration};

use geoclaim_common::{
    Body, Digest, Envelope, Timestamp,
    clock::ManualClock,
    extent::{MeasureOptions, measure},
    key,
    store::Store,
    stream::OutgoingRecord,
};
use geoclaim_tests::{
    faulty::{Act, FaultyStore, Op, overwrite},
    sample::{large, lines, point},
};

use crate::support::{Bench, THEN, feature_ids, memory, published};

const AREA: &str = "[0,0,40,40]";

/// Publishes five large features and a small one; the third and the sixth are never damaged.
async fn five(store: &Store) -> Vec<OutgoingRecord> {
    let features: Vec<String> = ["a", "b", "c", "d", "e"].iter().map(|id| large(id)).chain([point("f", 1.0, 1.0)]).collect();
    published(store, lines(&features)).await
}

fn key_of(record: &OutgoingRecord) -> String {
    let envelope = Envelope::decode(record.value.as_ref().unwrap()).unwrap();
    let geoclaim_common::envelope::Content::Claim(claim) = envelope.content else { panic!("an inline body") };
    claim.key().to_string()
}

/// Returns an envelope whose bbox is right and whose cells are those of a line across it.
fn cells_of_another_body() -> String {
    let line = |from: f64, to: f64| format!(r#"{{"type":"LineString","coordinates":[[1,{from}],[2,{to}]]}}"#);
    let options = MeasureOptions { cover_bytes: 400, ..MeasureOptions::default() };
    let (extent, _) = measure(line(2.0, 1.0).as_bytes(), &options).unwrap();
    let plain = format!(r#"{{"feature_id":"f","event_id":"e","bbox":[1,1,2,2],"geometry":{}}}"#, line(1.0, 2.0));
    let envelope = Envelope { cells: extent.cells, ..Envelope::decode(plain.as_bytes()).unwrap() };
    String::from_utf8(envelope.encode()).unwrap()
}

/// Consumes while `act` says what becomes of each fetch, by the letter of its feature and the number of the attempt.
async fn consume(act: fn(&str, usize) -> Act) -> (Bench, geoclaim_consumer::ConsumeReport, Option<i64>, FaultyStore) {
    let store = memory();
    let records = five(&store).await;
    let keys: Vec<(String, &str)> = records[..5].iter().map(key_of).zip(["a", "b", "c", "d", "e"]).collect();
    let faulty = FaultyStore::new(store, move |op, key, before| match keys.iter().find(|(known, _)| known == key) {
        Some((_, feature)) if op == Op::Get => act(feature, before),
        _ => Act::Pass,
    });
    let bench = Bench::new();
    let (report, next) = bench.consume(records, AREA, Arc::new(faulty.clone())).await;
    (bench, report, next, faulty)
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_bodies_never_reach_the_sink_and_the_partition_goes_on() {
    let (bench, report, next, faulty) = consume(|feature, _| match feature {
        "a" => Act::Truncated(7),
        "b" => Act::Lengthened,
        "d" => Act::Flipped,
        "e" => Act::Missing,
        _ => Act::Pass,
    })
    .await;
    assert_eq!((report.applied, report.dead_lettered, next), (2, 4, Some(6)));
    assert_eq!(feature_ids(&bench.gpkg()), ["c", "f"]);
    let expected = [(0, "body_truncated"), (1, "body_lengthened"), (3, "body_corrupt"), (4, "body_missing")];
    assert_eq!(bench.reasons(), expected.map(|(offset, reason)| (offset, reason.to_owned())));
    // Truncated and lengthened: once and three times again; corrupt: once again; missing and old: not again.
    assert_eq!(faulty.count(Op::Get), 4 + 4 + 1 + 2 + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_retry_can_heal_is_healed() {
    let (bench, report, next, _) = consume(|feature, before| match (feature, before) {
        ("a", 0..3) => Act::Truncated(1),
        ("b", 0) => Act::Lengthened,
        ("d", 0) => Act::Flipped,
        ("e", 0..6) => Act::Unavailable,
        ("c", 0) => Act::Slow(Duration::from_millis(50)),
        _ => Act::Pass,
    })
    .await;
    assert_eq!((report.applied, report.dead_lettered, next), (6, 0, Some(6)));
    assert_eq!(feature_ids(&bench.gpkg()), ["a", "b", "c", "d", "e", "f"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_body_of_a_fresh_envelope_is_waited_for() {
    let store = memory();
    let records = five(&store).await;
    let faulty = FaultyStore::new(store, |op, _, before| if op == Op::Get && before < 5 { Act::Missing } else { Act::Pass });
    let mut bench = Bench::new();
    bench.settings.retry.fresh_window_seconds = 2 * 3_600;
    let (report, _) = bench.consume(records, AREA, Arc::new(faulty)).await;
    assert_eq!((report.applied, report.dead_lettered), (6, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_ahead_does_not_make_an_envelope_fresh_for_ever() {
    let store = memory();
    let records = five(&store).await;
    let faulty = FaultyStore::new(store, |op, _, _| if op == Op::Get { Act::Missing } else { Act::Pass });
    let mut bench = Bench::new();
    bench.clock = ManualClock::at(Timestamp::from_millis(THEN.as_millis() - 3_600_000));
    bench.settings.retry.fresh_window_seconds = 1;
    let (report, next) = bench.consume(records, AREA, Arc::new(faulty)).await;
    assert_eq!((report.applied, report.dead_lettered, next), (1, 5, Some(6)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_producer_leaves_out_or_writes_wider_is_not_held_against_it() {
    let store = memory();
    let body = Body::seal(large("z").into());
    overwrite(&store, &body.claim().key(), body.bytes().to_vec()).await;
    let (key, digest, bytes) = (body.claim().key(), body.claim().digest, body.claim().length);
    let pacific = r#"{"type":"MultiPoint","coordinates":[[166,-47],[178,-34],[-177,-44]]}"#;
    let values = [
        format!(r#"{{"feature_id":"no bbox","event_id":"1","body_key":"{key}","body_sha256":"{digest}","body_bytes":{bytes}}}"#),
        format!(r#"{{"feature_id":"planar","event_id":"2","bbox":[-177,-47,178,-34],"geometry":{pacific}}}"#),
        format!(r#"{{"feature_id":"epsg","event_id":"3","crs":"urn:ogc:def:crs:EPSG::4326","geometry":{pacific}}}"#),
        r#"{"feature_id":"nowhere","event_id":"4","geojson":{"type":"Feature","geometry":null,"properties":null}}"#.to_owned(),
    ];
    let records = values.iter().map(|value| OutgoingRecord { value: Some(value.clone().into()), ..OutgoingRecord::default() });
    let bench = Bench::new();
    let (report, _) = bench.consume(records.collect(), "[[0,0,40,40],[170,-50,-170,-30]]", store).await;
    assert_eq!((report.applied, report.discarded, report.dead_lettered), (3, 1, 0), "{:?}", bench.reasons());
    assert_eq!(feature_ids(&bench.gpkg()), ["epsg", "no bbox", "planar"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_replaced_by_one_of_the_same_length_is_caught_by_its_digest() {
    let store = memory();
    let records = five(&store).await;
    let replaced = large("a").replace("[0,0]", "[9,9]");
    assert_eq!(replaced.len(), large("a").len());
    overwrite(&store, &key::of(&Digest::of(large("a").as_bytes())), replaced.into_bytes()).await;
    let bench = Bench::new();
    let (report, _) = bench.consume(records, AREA, store).await;
    assert_eq!((report.applied, report.dead_lettered), (5, 1));
    assert_eq!(bench.reasons(), [(0, "body_corrupt".to_owned())]);
    let detail =
        bench.letters.records()[0].headers.iter().find(|(name, _)| name == "geoclaim.detail").unwrap().1.clone().unwrap();
    assert!(String::from_utf8_lossy(&detail).contains(&Digest::of(large("a").as_bytes()).to_string()));
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_envelopes_are_set_aside_and_fetch_nothing() {
    let digest = Digest::of(b"x");
    let claim = |key: &str, bytes: &str| {
        format!(
            r#"{{"feature_id":"f","event_id":"e","bbox":[1,1,2,2],"body_key":"{key}","body_sha256":"{digest}","body_bytes":{bytes}}}"#
        )
    };
    let good_key = key::of(&digest).to_string();
    let values: Vec<(String, &str)> = vec![
        (claim("../../etc/passwd", "1"), "hostile"),
        (claim("http://169.254.169.254/", "1"), "hostile"),
        (claim(&good_key, "1099511627776"), "too_large"),
        (claim(&good_key, "-1"), "malformed"),
        (claim(&good_key, "1").replace("[1,1,2,2]", "[1,NaN,2,2]"), "malformed"),
        (claim(&good_key, "1").replace("[1,1,2,2]", "[1,1e999,2,2]"), "malformed"),
        ("not json".into(), "malformed"),
        ("\u{0}\u{1}".into(), "malformed"),
        (format!("{}{}", "[".repeat(50_000), "]".repeat(50_000)), "malformed"),
        (r#"{"feature_id":"f","event_id":"e","bbox":[1,1,2,2],"geometry":{"type":"Point","coordinates":[50,50]}}"#.into(), "envelope_mismatch"),
        (r#"{"feature_id":"f","event_id":"e","bbox":[1,1,2,2],"vertex_count":9,"geometry":{"type":"Point","coordinates":[1,1]}}"#.into(), "envelope_mismatch"),
        (r#"{"feature_id":"f","event_id":"e","bbox":[1,1,2,2],"crs":"EPSG:3857","geometry":{"type":"Point","coordinates":[1,1]}}"#.into(), "envelope_mismatch"),
        (r#"{"feature_id":"f","event_id":"e","bbox":[1,1,2,2],"crs":"EPSG:9","geometry":{"type":"Point","coordinates":[1,1]}}"#.into(), "malformed"),
    ];
    let values = [values, vec![(cells_of_another_body(), "envelope_mismatch")]].concat();
    let record = |value: &String| OutgoingRecord { value: Some(value.clone().into()), ..OutgoingRecord::default() };
    let mut records: Vec<OutgoingRecord> = values.iter().map(|(value, _)| record(value)).collect();
    records.push(OutgoingRecord::default());
    let faulty = FaultyStore::recording(memory());
    let bench = Bench::new();
    let (report, next) = bench.consume(records.clone(), AREA, Arc::new(faulty.clone())).await;
    assert_eq!(faulty.calls(), [], "no request at all");
    assert_eq!((report.dead_lettered, next), (records.len() as u64, Some(records.len() as i64)));
    let expected: Vec<(i64, String)> =
        (0..).zip(values.iter().map(|(_, reason)| (*reason).to_owned()).chain(["malformed".to_owned()])).collect();
    assert_eq!(bench.reasons(), expected);
    for (letter, record) in bench.letters.records().iter().zip(&records) {
        assert_eq!((&letter.key, &letter.value), (&record.key, &record.value), "the original bytes");
    }
}
