//! Events a second into PostGIS and into a GeoPackage, ledger and all, beside the bulk loader of each on the same rows,
//! which knows no ledger: `COPY` into the same table, and `ogr2ogr` into a GeoPackage.

use std::{fmt::Write as _, fs, path::Path, process::Command, sync::Arc};

use bytes::Bytes;
use futures::SinkExt as _;
use geoclaim_consumer::{
    ConsumeSettings,
    sink::{Change, Sink, gpkg::GeoPackageSink, postgis::PostgisSink},
};
use geoclaim_tests::{
    components::Postgres,
    contract::with_body,
    timing::{median, timed},
};
use tokio::runtime::Runtime;

const EVENTS: usize = 20_000;
const VERTICES: usize = 33;
const RUNS: usize = 3;

/// One feature: its id and the ordinates of a ring.
struct Row {
    id: String,
    ring: Vec<[f64; 2]>,
}

fn rows() -> Vec<Row> {
    let ring = |n: usize| {
        let (x, y) = ((n % 340) as f64 - 170.0, (n / 340) as f64 % 150.0 - 75.0);
        let at = |k: usize| std::f64::consts::TAU * (k % (VERTICES - 1)) as f64 / (VERTICES - 1) as f64;
        (0..VERTICES).map(|k| [x + at(k).cos(), y + at(k).sin()]).collect()
    };
    (0..EVENTS).map(|n| Row { id: format!("f{n}"), ring: ring(n) }).collect()
}

impl Row {
    fn geojson(&self) -> String {
        let positions: Vec<String> = self.ring.iter().map(|[x, y]| format!("[{x:?},{y:?}]")).collect();
        format!(r#"{{"type":"Polygon","coordinates":[[{}]]}}"#, positions.join(","))
    }

    fn wkt(&self) -> String {
        let positions: Vec<String> = self.ring.iter().map(|[x, y]| format!("{x:?} {y:?}")).collect();
        format!("SRID=4326;POLYGON(({}))", positions.join(","))
    }
}

fn batches(rows: &[Row]) -> Vec<Arc<Vec<Change>>> {
    let change = |row: &Row| with_body(&row.id, &format!("e-{}", row.id), None, r#"{"a":1}"#, &row.geojson());
    let changes: Vec<Change> = rows.iter().map(change).collect();
    changes.chunks(ConsumeSettings::default().batch_events).map(|batch| Arc::new(batch.to_vec())).collect()
}

async fn apply(sink: &dyn Sink, batches: &[Arc<Vec<Change>>]) {
    for batch in batches {
        sink.apply(Arc::clone(batch)).await.unwrap();
    }
    sink.close().await.unwrap();
}

pub(crate) fn print() {
    let runtime = Runtime::new().unwrap();
    let rows = rows();
    let batches = batches(&rows);
    println!("sinks: {EVENTS} polygons of {VERTICES} vertices, medians of {RUNS} alternating runs");
    match Postgres::shared() {
        Ok(cluster) => postgis(&runtime, cluster, &rows, &batches),
        Err(reason) => println!("PostGIS is not there ({reason})"),
    }
    geopackage(&runtime, &rows, &batches);
}

fn tell(name: &str, ours: Vec<f64>, bulk: Vec<f64>) {
    let rate = |seconds: f64| EVENTS as f64 / seconds;
    let (ours, bulk) = (rate(median(ours)), rate(median(bulk)));
    println!("{name}: {ours:.0} events/s, its bulk loader {bulk:.0} rows/s: {:.2}", ours / bulk);
}

fn postgis(runtime: &Runtime, cluster: &Postgres, rows: &[Row], batches: &[Arc<Vec<Change>>]) {
    let mut text = String::new();
    for row in rows {
        let _ = writeln!(text, "c\t{}\t{}\t{{\"a\":1}}\t{{area}}\te-{0}", row.id, row.wkt());
    }
    let text = Bytes::from(text);
    let (mut ours, mut bulk) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let url = cluster.url(&cluster.create_database().unwrap());
        let sink = runtime.block_on(PostgisSink::open(&url, "c")).unwrap();
        ours.push(timed(|| runtime.block_on(apply(&sink, batches))).1);
        let url = cluster.url(&cluster.create_database().unwrap());
        runtime.block_on(async { PostgisSink::open(&url, "c").await.unwrap().close().await.unwrap() });
        bulk.push(timed(|| runtime.block_on(copy(&url, text.clone()))).1);
    }
    tell("PostGIS", ours, bulk);
}

async fn copy(url: &str, text: Bytes) {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let sql = "COPY features (consumer, feature_id, geom, properties, areas, event_id) FROM STDIN";
    let mut sink = std::pin::pin!(client.copy_in(sql).await.unwrap());
    for start in (0..text.len()).step_by(1 << 20) {
        sink.send(text.slice(start..text.len().min(start + (1 << 20)))).await.unwrap();
    }
    sink.close().await.unwrap();
}

fn geopackage(runtime: &Runtime, rows: &[Row], batches: &[Arc<Vec<Change>>]) {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.geojsonl");
    let line = |row: &Row| {
        format!("{{\"type\":\"Feature\",\"id\":\"{}\",\"properties\":{{\"a\":1}},\"geometry\":{}}}\n", row.id, row.geojson())
    };
    fs::write(&input, rows.iter().map(line).collect::<String>()).unwrap();
    let (mut ours, mut bulk) = (Vec::new(), Vec::new());
    for run in 0..RUNS {
        let sink = GeoPackageSink::open(folder.path().join(format!("ours-{run}.gpkg")), "c").unwrap();
        ours.push(timed(|| runtime.block_on(apply(&sink, batches))).1);
        let output = folder.path().join(format!("bulk-{run}.gpkg"));
        let (is_there, seconds) = timed(|| ogr2ogr(&output, &input));
        if !is_there {
            return println!("GeoPackage: ogr2ogr is not there");
        }
        bulk.push(seconds);
    }
    tell("GeoPackage", ours, bulk);
}

fn ogr2ogr(output: &Path, input: &Path) -> bool {
    let status = Command::new("ogr2ogr").args(["-f", "GPKG"]).arg(output).arg(input).status();
    status.is_ok_and(|status| status.success())
}
