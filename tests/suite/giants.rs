//! Bodies larger than memory is to hold: they go through files, in parts and in ranges, and come out as they went in.

use std::{
    io::{self, Write},
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::TryStreamExt as _;
use geoclaim_common::{
    Spool, limits,
    store::{self, LocalDirectory},
    stream::memory::{MemorySink, MemorySource},
};
use geoclaim_consumer::{
    Consumer,
    sink::{Sink, object::ObjectSink, stdout::LineSink},
};
use geoclaim_producer::{PublishSettings, read::Taken};
use geoclaim_tests::{
    binary,
    sample::{large, lines, point, write_giant},
};
use object_store::ObjectStore as _;

use crate::support::{Bench, Real, THEN, memory, publish_to, run_named, s3};

const WORLD: &str = r#"{"type":"Feature","id":"w","geometry":{"type":"Polygon","coordinates":[[[-180,-90],[180,-90],[180,90],[-180,90],[-180,-90]]]}}"#;
const SOME: &str = r#"{"type":"Feature","id":"s","geometry":{"type":"Polygon","coordinates":[[[1,1],[9,1],[9,9],[1,9],[1,1]]]}}"#;

/// Spools whatever is longer than the smallest inline body.
fn spool(directory: &std::path::Path) -> Spool {
    Spool { directory: directory.into(), from_bytes: 100_000, ..Spool::default() }
}

/// A pipe that can be looked at.
#[derive(Clone, Default)]
struct Pipe(Arc<Mutex<Vec<u8>>>);

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn with(bench: &Bench, sink: Arc<dyn Sink>, area: &str, store: store::Store) -> Consumer {
    Consumer { sink, ..bench.consumer(area, store) }
}

#[tokio::test]
async fn what_is_spooled_on_both_sides_comes_out_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let store = store::open(folder.path().join("bodies").to_str().unwrap(), LocalDirectory::Create).unwrap();
    let text = lines(&[large("a"), point("b", 1.0, 1.0), large("c")]);
    let records = MemorySink::default();
    let settings = PublishSettings { spool: spool(folder.path()), ..run_named("giants") };
    let report = publish_to(Arc::clone(&store), records.clone(), settings, text.clone()).await;
    assert_eq!((report.published, report.stored), (3, 2));

    let mut bench = Bench::new();
    bench.settings.spool = spool(folder.path());
    let pipe = Pipe::default();
    let consumer = with(&bench, Arc::new(LineSink::new(pipe.clone())), WORLD, Arc::clone(&store));
    let source = MemorySource::new(records.records(), THEN, consumer.gate().await.unwrap());
    assert_eq!(consumer.run(source, std::future::pending()).await.unwrap().applied, 3);
    assert_eq!(String::from_utf8(pipe.0.lock().unwrap().clone()).unwrap(), text);

    // A database takes them apart in memory.
    let (report, _) = bench.consume(records.records(), WORLD, store).await;
    assert_eq!((report.applied, report.fetched), (3, 2));
}

#[tokio::test]
async fn a_copy_of_all_of_a_giant_needs_no_memory_and_one_that_is_clipped_is_refused_above_its_limit() {
    let folder = tempfile::tempdir().unwrap();
    let bodies = memory();
    let records = MemorySink::default();
    publish_to(Arc::clone(&bodies), records.clone(), run_named("giants"), large("a")).await;
    for (area, most_bytes, refused) in [(WORLD, 1_000, 0), (SOME, 1_000, 1), (SOME, 1 << 20, 0)] {
        let mut bench = Bench::new();
        bench.settings.spool = spool(folder.path());
        let copies = memory();
        let areas = bench.consumer(area, Arc::clone(&bodies)).areas;
        let chosen = Default::default();
        let sink = ObjectSink::open(Arc::clone(&copies), "memory://", Arc::clone(&areas), chosen).await.unwrap();
        let sink: Arc<dyn Sink> = Arc::new(sink.clipping_up_to(most_bytes));
        let consumer = Consumer { areas, ..with(&bench, sink, area, Arc::clone(&bodies)) };
        let source = MemorySource::new(records.records(), THEN, consumer.gate().await.unwrap());
        let report = consumer.run(source, std::future::pending()).await.unwrap();
        assert_eq!((report.applied + report.rejected, report.rejected), (1, refused), "{area} {most_bytes}");
        let names: Vec<_> = copies.list(None).try_collect().await.unwrap();
        assert_eq!(names.iter().filter(|meta| meta.location.as_ref().ends_with("refused.json")).count() as u64, refused);
    }
}

#[tokio::test]
async fn a_full_or_missing_spool_loses_nothing_and_says_where_it_looked() {
    let nowhere = PathBuf::from("/no/such/directory");
    let settings = PublishSettings { spool: spool(&nowhere), taken: Taken::Whole, ..run_named("giants") };
    let records = MemorySink::default();
    let report = publish_to(memory(), records.clone(), settings, large("a")).await;
    assert_eq!((report.published, report.rejected, records.records().len()), (0, 1, 0));

    let bodies = memory();
    publish_to(Arc::clone(&bodies), records.clone(), run_named("giants"), large("a")).await;
    let mut bench = Bench::new();
    bench.settings.spool = spool(&nowhere);
    let consumer = bench.consumer(WORLD, bodies);
    let counters = Arc::clone(&consumer.counters);
    let source = MemorySource::new(records.records(), THEN, consumer.gate().await.unwrap());
    let running = consumer.run(source, std::future::pending());
    assert!(tokio::time::timeout(Duration::from_millis(500), running).await.is_err(), "it waits for a disk");
    let report = counters.report(0.0);
    assert_eq!((report.applied, report.dead_lettered), (0, 0), "{report:?}");
}

#[tokio::test]
async fn a_body_above_the_limit_or_above_what_its_sink_can_hold_is_set_aside_unfetched() {
    let bodies = memory();
    let records = MemorySink::default();
    publish_to(Arc::clone(&bodies), records.clone(), run_named("giants"), large("a")).await;
    let mut bench = Bench::new();
    bench.settings.budget_bytes = 200_000;
    let (report, _) = bench.consume(records.records(), WORLD, bodies).await;
    assert_eq!((report.dead_lettered, report.fetched), (1, 0));
    assert!(bench.reasons()[0].1.contains("too_large"), "{:?}", bench.reasons());
}

#[test]
fn a_giant_goes_to_a_bucket_in_parts_and_comes_back_in_ranges() {
    let Some(real) = Real::get() else { return };
    let place = real.place("giants", 1);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("giant.geojson");
    let vertices = write_giant(&file, limits::PUT_IN_PARTS_BYTES + 1).unwrap();
    let publish = ["publish", "--report", "json", "--spool", folder.path().to_str().unwrap(), file.to_str().unwrap()];
    let run = binary::run(&publish, &place.env, b"");
    assert_eq!((run.code(), run.report()["bodies_written"].as_u64()), (0, Some(1)), "{}", run.stderr);
    let again = binary::run(&publish, &place.env, b"");
    assert_eq!((again.code(), again.report()["bodies_written"].as_u64()), (0, Some(0)), "{}", again.stderr);
    let envelope = &binary::run(&["inspect", "--json", "-n", "1"], &place.env, b"").lines()[0];
    assert_eq!(envelope["vertex_count"], vertices);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let stored: Vec<_> = runtime.block_on(s3(&real, &place.name).list(None).try_collect()).unwrap();
    assert_eq!(stored.iter().map(|meta| meta.size).collect::<Vec<_>>(), [file.metadata().unwrap().len()]);

    let args = ["consume", "--aoi=-180,-90,180,90", "-e", "--sink", "stdout:"];
    let run = binary::run(&args, &place.env, b"");
    assert_eq!(run.code(), 0, "{}", run.stderr);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(run.stdout == format!("{text}\n{text}\n"), "both events, byte for byte");
    let checked = binary::run(&["inspect", "--resolve", "--report", "json"], &place.env, b"");
    assert_eq!(checked.report()["verified"], 2, "{}", checked.stderr);
}
