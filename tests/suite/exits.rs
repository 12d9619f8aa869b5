//! A feature that leaves the areas leaves the sink: whatever comes twice, late or after a restart, the sink is as a
//! fresh computation from the last state would make it. And leaving costs no store request.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    io::Write,
    sync::{Arc, Mutex},
};

use geoclaim_common::{
    Body, Envelope,
    envelope::{Content, DEFAULT_CRS},
    extent::{MeasureOptions, measure},
    store::Store,
    stream::{OutgoingRecord, memory::MemorySource},
};
use geoclaim_consumer::{
    ConsumeReport,
    sink::{OnLeft, gpkg::GeoPackageSink, stdout::LineSink},
};
use geoclaim_tests::{faulty::FaultyStore, random::Random};
use object_store::ObjectStoreExt as _;

use crate::support::{Bench, THEN, assert_adds_up, memory};

/// A triangle, so that the box of an area says more than the area, and a box that overlaps it.
const AREAS: &str = r#"{"type":"FeatureCollection","features":[
  {"type":"Feature","id":"a","properties":{},"geometry":{"type":"Polygon","coordinates":[[[0,0],[10,0],[0,10],[0,0]]]}},
  {"type":"Feature","id":"b","properties":{},"geometry":{"type":"Polygon","coordinates":[[[2,2],[12,2],[12,3],[2,3],[2,2]]]}}]}"#;

/// Where a feature can be, and the areas that it meets there: in one, in the other, in both, in the corner that only
/// the box of the triangle covers, and far away.
const PLACES: [((f64, f64), &[&str]); 5] =
    [((1.0, 1.0), &["a"]), ((11.0, 2.5), &["b"]), ((3.0, 2.5), &["a", "b"]), ((9.0, 9.0), &[]), ((50.0, 50.0), &[])];

/// One event.
#[derive(Clone, Debug)]
struct Step {
    feature: String,
    event: String,
    version: Option<i64>,
    /// `None`: deleted.
    place: Option<usize>,
    is_tombstone: bool,
}

impl Step {
    fn body(&self) -> Option<Body> {
        let ((x, y), _) = PLACES[self.place?];
        // Each event has bytes of its own, so that each fetch tells which event it was for.
        let text = format!(r#"{{"type":"Point","coordinates":[{x},{y}],"event":"{}"}}"#, self.event);
        Some(Body::seal(text.into()))
    }

    fn areas(&self) -> &'static [&'static str] {
        self.place.map_or(&[], |place| PLACES[place].1)
    }

    fn record(&self) -> OutgoingRecord {
        let key = Some(self.feature.clone().into());
        if self.is_tombstone {
            return OutgoingRecord { key, ..OutgoingRecord::default() };
        }
        let body = self.body();
        let extent = body
            .as_ref()
            .map(|body| measure(body.bytes(), &MeasureOptions { cover_bytes: 400, ..Default::default() }).unwrap().0);
        let envelope = Envelope {
            feature_id: self.feature.clone(),
            event_id: self.event.clone(),
            version: self.version,
            occurred_at: None,
            crs: DEFAULT_CRS.into(),
            bbox: extent.as_ref().and_then(|extent| extent.bbox),
            cells: extent.as_ref().and_then(|extent| extent.cells.clone()),
            vertex_count: extent.as_ref().map(|extent| extent.vertex_count),
            suspect: false,
            content: body.map_or(Content::Deleted, |body| Content::Claim(body.claim())),
            others: BTreeMap::new(),
        };
        OutgoingRecord { key, value: Some(envelope.encode().into()), ..OutgoingRecord::default() }
    }
}

/// Makes the walks of a few features, interleaved. With versions, some events come late; some events come twice.
fn walks(random: &mut Random, is_versioned: bool) -> Vec<Step> {
    let mut steps = Vec::new();
    for n in 0..60_i64 {
        let feature = format!("f{}", random.below(4));
        let is_deleted = random.one_in(8);
        let place = (!is_deleted).then(|| random.below(5) as usize);
        let is_tombstone = is_deleted && !is_versioned && random.one_in(2);
        steps.push(Step { event: format!("{feature}-{n}"), feature, version: is_versioned.then_some(n), place, is_tombstone });
    }
    if is_versioned {
        for at in 0..steps.len() {
            let other = (at + random.below(6) as usize).min(steps.len() - 1);
            steps.swap(at, other);
        }
    }
    for at in (0..steps.len()).rev() {
        if !steps[at].is_tombstone && random.one_in(4) {
            let later = at + 1 + random.below((steps.len() - at) as u64) as usize;
            steps.insert(later, steps[at].clone());
        }
    }
    steps
}

/// Computes what a sink must hold: of each feature the areas that its last state meets, where it meets any.
fn expected(steps: &[Step]) -> BTreeMap<String, Vec<String>> {
    let mut seen = HashSet::new();
    let mut last: BTreeMap<&str, &Step> = BTreeMap::new();
    for step in steps.iter().filter(|step| seen.insert(step.event.as_str())) {
        let is_newer = last.get(step.feature.as_str()).is_none_or(|held| step.version.is_none() || step.version > held.version);
        if is_newer {
            last.insert(&step.feature, step);
        }
    }
    let held = last.into_iter().filter(|(_, step)| !step.areas().is_empty());
    held.map(|(feature, step)| (feature.to_owned(), step.areas().iter().map(ToString::to_string).collect())).collect()
}

async fn stored(steps: &[Step]) -> Store {
    let store = memory();
    for body in steps.iter().filter_map(Step::body) {
        store.put(&body.claim().key(), body.bytes().clone().into()).await.unwrap();
    }
    store
}

/// Consumes records from an offset on; returns what was fetched as well.
async fn consume(bench: &Bench, on_left: OnLeft, steps: &[Step], first: usize) -> (ConsumeReport, Vec<String>) {
    let store = FaultyStore::recording(stored(steps).await);
    let mut consumer = bench.consumer(AREAS, Arc::new(store.clone()));
    consumer.sink = Arc::new(GeoPackageSink::open(bench.gpkg(), "test").unwrap().on_left(on_left));
    let records = steps.iter().map(Step::record).collect();
    let source = MemorySource::new(records, THEN, consumer.gate().await.unwrap()).from_offset(first as i64);
    let report = consumer.run(source, std::future::pending()).await.unwrap();
    assert_adds_up(&report);
    assert_eq!(report.dead_lettered, 0, "{:?}", bench.reasons());
    (report, store.calls().into_iter().map(|call| call.key).collect())
}

/// Returns the features of a GeoPackage that have not left, with their areas.
fn held(bench: &Bench) -> BTreeMap<String, Vec<String>> {
    let connection = rusqlite::Connection::open(bench.gpkg()).unwrap();
    let mut rows = connection.prepare("SELECT feature_id, areas FROM features WHERE left_at IS NULL").unwrap();
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?))).unwrap();
    rows.map(|row| row.map(|(feature, areas)| (feature, serde_json::from_str(&areas).unwrap())).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sink_holds_what_a_fresh_computation_would_hold() {
    let seed = Random::seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let mut left = 0;
    for case in 0..60 {
        let is_versioned = case % 2 == 0;
        let steps = walks(&mut random, is_versioned);
        let bench = Bench::new();
        let on_left = if case % 3 == 0 { OnLeft::Mark } else { OnLeft::Remove };
        // The restart delivers some records again that had been applied and not acknowledged.
        let cut = random.below(steps.len() as u64) as usize;
        let again = cut - random.below(cut.min(10) as u64 + 1) as usize;
        for (first, part) in [(0, &steps[..cut]), (again, &steps[again..])] {
            let (report, fetched) = consume(&bench, on_left, part, first).await;
            left += report.left;
            let of_exits: BTreeSet<String> = part
                .iter()
                .filter(|step| step.areas().is_empty())
                .filter_map(|step| step.body().map(|body| body.claim().key().to_string()))
                .collect();
            assert!(fetched.iter().all(|key| !of_exits.contains(key)), "leaving costs no store request");
        }
        assert_eq!(held(&bench), expected(&steps), "case {case} of seed {seed}, cut at {cut}, again from {again}: {steps:#?}");
    }
    assert!(left > 60, "the walks do leave: {left}");
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lines_of_a_pipe_add_up_to_what_is_held() {
    let seed = Random::seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    for case in 0..30 {
        let steps = walks(&mut random, case % 2 == 0);
        let (bench, lines) = (Bench::new(), Lines::default());
        let mut consumer = bench.consumer(AREAS, stored(&steps).await);
        consumer.sink = Arc::new(LineSink::new(lines.clone()));
        let source = MemorySource::new(steps.iter().map(Step::record).collect(), THEN, consumer.gate().await.unwrap());
        assert_adds_up(&consumer.run(source, std::future::pending()).await.unwrap());
        let mut held = BTreeSet::new();
        for line in String::from_utf8(lines.0.lock().unwrap().clone()).unwrap().lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let id = line["id"].as_str().unwrap().to_owned();
            if line["geoclaim"].is_null() {
                held.insert(id)
            } else {
                held.remove(&id)
            };
        }
        assert_eq!(held, expected(&steps).into_keys().collect(), "case {case} of seed {seed}: {steps:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_version_of_a_feature_that_was_never_held_does_not_come_in_after_a_restart() {
    let step = |version, place| Step {
        feature: "f".into(),
        event: format!("e{version}"),
        version: Some(version),
        place: Some(place),
        is_tombstone: false,
    };
    let bench = Bench::new();
    let (report, _) = consume(&bench, OnLeft::Remove, &[step(3, 4)], 0).await;
    assert_eq!(report.discarded, 1);
    let (report, fetched) = consume(&bench, OnLeft::Remove, &[step(2, 0)], 1).await;
    assert_eq!((report.stale, fetched.len()), (1, 0));
    let (report, _) = consume(&bench, OnLeft::Remove, &[step(4, 0)], 2).await;
    assert_eq!(report.applied, 1);
}
