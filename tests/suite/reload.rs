//! The file of areas is replaced again and again under load: no event is lost, and none is judged by half a file.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use geoclaim_common::{
    kafka::{EmbeddedBroker, KafkaSink, KafkaSource, SourceEnd, SourceSettings},
    stream::{EnvelopeSink, OutgoingRecord},
};
use geoclaim_consumer::{
    aoi::{AreaSet, LiveAreas, parse_areas},
    watch::{Reload, watch},
};

use crate::support::{Bench, assert_adds_up, memory};

/// How long the load goes on, and how often the file is replaced meanwhile.
const LOAD: Duration = Duration::from_secs(60);
const PERIOD: Duration = Duration::from_millis(200);

fn boxed(id: &str, [west, south, east, north]: [f64; 4]) -> String {
    format!(r#"{{"type":"Feature","id":"{id}","bbox":[{west},{south},{east},{north}],"properties":null,"geometry":null}}"#)
}

/// Returns a file of areas. In every one, `always` is in the middle; in every other one, `first` comes first and `last`
/// last, over the same ground: half of such a file has one without the other.
fn areas(has_pair: bool) -> String {
    let ground = [20.0, 20.0, 30.0, 30.0];
    let filler = |n: usize| boxed(&format!("filler-{n}"), [-170.0 + (n % 100) as f64, -60.0, -169.5 + (n % 100) as f64, -59.0]);
    let mut all: Vec<String> = (0..2_000).map(filler).collect();
    all.insert(1_000, boxed("always", [0.0, 0.0, 10.0, 10.0]));
    if has_pair {
        all.insert(0, boxed("first", ground));
        all.push(boxed("last", ground));
    }
    all.join("\n")
}

/// Replaces the file: by a rename, in place, or in place with a pause in the middle; sometimes with one that is no good.
async fn replace(file: &Path, round: usize) {
    let text = if round % 7 == 6 { "{\"type\":\"Feature\",".to_owned() } else { areas(round.is_multiple_of(2)) };
    match round % 3 {
        0 => {
            let beside = file.with_extension("new");
            std::fs::write(&beside, text).unwrap();
            std::fs::rename(beside, file).unwrap();
        }
        1 => std::fs::write(file, text).unwrap(),
        _ => {
            // At the end of a line: half of the file is a good file.
            let half = text.find("filler-1500").and_then(|at| text[..at].rfind('\n')).unwrap_or(text.len() / 2);
            std::fs::write(file, &text[..half]).unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
            std::fs::write(file, text).unwrap();
        }
    }
}

/// Sends events of features of their own, on the ground of `always` and on that of the pair; returns how many of each.
async fn load(sink: KafkaSink) -> usize {
    let started = Instant::now();
    let mut count = 0;
    while started.elapsed() < LOAD {
        for (ground, x) in [("always", 5.0), ("pair", 25.0)] {
            let value = format!(
                r#"{{"feature_id":"{ground}-{count}","event_id":"{ground}-{count}","bbox":[{x},{x},{x},{x}],"geometry":{{"type":"Point","coordinates":[{x},{x}]}}}}"#
            );
            let key = Some(format!("{ground}-{count}").into());
            let receipt = sink.send(OutgoingRecord { key, value: Some(value.into()), ..OutgoingRecord::default() }).await;
            receipt.acknowledged().await.unwrap();
        }
        count += 1;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    count
}

#[tokio::test(flavor = "multi_thread")]
async fn areas_are_exchanged_as_a_whole_under_load_and_no_event_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("areas.ndjson");
    std::fs::write(&file, areas(true)).unwrap();
    let live = Arc::new(LiveAreas::new(AreaSet::new(parse_areas(areas(true).as_bytes()).unwrap())));
    let (loaded, kept) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let tell = |reload| match reload {
        Reload::Loaded(_) => drop(loaded.fetch_add(1, Ordering::Relaxed)),
        Reload::Kept(why) => kept.lock().unwrap().push(why),
    };

    let broker = EmbeddedBroker::start().unwrap();
    broker.create_topic("t", 4).unwrap();
    let bench = Bench::new();
    let mut consumer = bench.consumer("[0,0,1,1]", memory());
    consumer.areas = Arc::clone(&live);
    let counters = Arc::clone(&consumer.counters);
    let source = SourceSettings { group: "g".into(), end: SourceEnd::Never, ..SourceSettings::default() };
    let source = KafkaSource::open(&broker.settings(), "t", &source, consumer.gate().await.unwrap()).unwrap();
    let loading = async {
        let count = load(KafkaSink::open(&broker.settings(), "t", 1 << 20).unwrap()).await;
        for _ in 0..600 {
            if counters.report(0.0).consumed == 2 * count as u64 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        count
    };
    let (ended, end) = tokio::sync::oneshot::channel::<()>();
    let replacing = async {
        for round in 0.. {
            replace(&file, round).await;
            tokio::time::sleep(PERIOD).await;
        }
    };
    let consuming = consumer.run(source, async { drop(end.await) });
    let finishing = async {
        let count = tokio::select! {
            count = loading => count,
            () = watch(&file, live, tell) => unreachable!(),
            () = replacing => unreachable!(),
        };
        drop(ended);
        count
    };
    let (report, count) = tokio::join!(consuming, finishing);
    let report = report.unwrap();
    assert_adds_up(&report);
    println!(
        "{count} events on each ground, {} loads, {} files refused: {report:?}",
        loaded.load(Ordering::Relaxed),
        kept.lock().unwrap().len()
    );
    assert_eq!(report.consumed, 2 * count as u64);
    assert_eq!(report.dead_lettered, 0);
    let mut by_areas: BTreeMap<String, usize> = BTreeMap::new();
    let connection = rusqlite::Connection::open(bench.gpkg()).unwrap();
    let mut rows = connection.prepare("SELECT areas FROM features").unwrap();
    rows.query_map([], |row| row.get(0)).unwrap().for_each(|areas| *by_areas.entry(areas.unwrap()).or_default() += 1);
    assert_eq!(by_areas.get("[\"always\"]"), Some(&count), "no event is lost: {by_areas:?}");
    let pairs = by_areas.get("[\"first\",\"last\"]").copied().unwrap_or(0);
    assert_eq!(by_areas.len(), 2, "none is judged by half a file: {by_areas:?}");
    assert!(pairs > 0 && pairs < count, "both kinds of file were in force: {by_areas:?}");
    assert!(loaded.load(Ordering::Relaxed) > 50, "{loaded:?}");
    assert!(!kept.lock().unwrap().is_empty(), "a file that is no good is reported");
}
