//! Made-up input.

use std::{
    fs::File,
    io::{BufWriter, Write as _},
    path::Path,
};

use bytes::Bytes;
use geoclaim_common::{Bbox, Body, Envelope, Timestamp, envelope::Content};
use geoclaim_consumer::aoi::Area;
use geoclaim_producer::read::{ReadOptions, Reader};

/// Returns a multipolygon of `n` × `n` squares from the origin eastward and northward, as the pattern's publication
/// has it; 120 make 14,400 squares and about 800 kB.
pub fn squares(n: usize) -> String {
    let square = |i: usize, j: usize| {
        let (w, s, e, t) = (i as f64 / 2.0, j as f64 / 2.0, i as f64 / 2.0 + 0.45, j as f64 / 2.0 + 0.45);
        format!("[[[{w},{s}],[{w},{t}],[{e},{t}],[{e},{s}],[{w},{s}]]]")
    };
    let all: Vec<String> = (0..n).flat_map(|i| (0..n).map(move |j| square(i, j))).collect();
    format!(r#"{{"type":"MultiPolygon","coordinates":[{}]}}"#, all.join(","))
}

/// Returns a feature with this id and geometry.
pub fn feature(id: &str, geometry: &str) -> String {
    format!(r#"{{"type":"Feature","id":"{id}","properties":{{"name":"{id}"}},"geometry":{geometry}}}"#)
}

/// Returns a point feature.
pub fn point(id: &str, x: f64, y: f64) -> String {
    feature(id, &format!(r#"{{"type":"Point","coordinates":[{x},{y}]}}"#))
}

/// Returns a feature above the inline limit whose bbox is `[0, 0, 37.95, 37.95]`; each id has bytes of its own.
pub fn large(id: &str) -> String {
    feature(id, &squares(76))
}

/// Returns features one a line.
pub fn lines(features: &[String]) -> String {
    features.iter().map(|feature| format!("{feature}\n")).collect()
}

/// Returns a line string whose coordinates have fifteen digits.
pub fn fifteen_digits(vertices: usize) -> String {
    let position = |n: usize| format!("[{:.13},{:.13}]", 8.0 + (n as f64).sin() / 3.0, 47.0 + (n as f64).cos() / 3.0);
    let positions: Vec<String> = (0..vertices).map(position).collect();
    format!(r#"{{"type":"LineString","coordinates":[{}]}}"#, positions.join(","))
}

/// Writes a feature with the id `giant`, of at least so many bytes: islands of a thousand vertices each, from Greenwich
/// eastward. Returns how many vertices it has.
///
/// # Errors
/// The file cannot be written.
pub fn write_giant(path: &Path, bytes: u64) -> std::io::Result<u64> {
    let mut out = BufWriter::new(File::create(path)?);
    out.write_all(br#"{"type":"Feature","id":"giant","properties":{},"geometry":{"type":"MultiPolygon","coordinates":["#)?;
    let (mut islands, mut written) = (0_u64, 0);
    while written < bytes {
        let (x, y) = ((islands % 170) as f64 + 0.5, (islands / 170 % 80) as f64 + 0.5);
        let around = |n: u32| (f64::from(n % 1_000) / 1_000.0 * std::f64::consts::TAU).sin_cos();
        let position = |n: u32| (x + around(n).0 / 3.0, y + around(n).1 / 3.0);
        let ring: Vec<String> = (0..=1_000).map(position).map(|(x, y)| format!("[{x:.13},{y:.13}]")).collect();
        let island = format!("{}[[{}]]", if islands == 0 { "" } else { "," }, ring.join(","));
        out.write_all(island.as_bytes())?;
        (islands, written) = (islands + 1, written + island.len() as u64);
    }
    out.write_all(b"]}}")?;
    out.flush().map(|()| islands * 1_001)
}

/// Returns the largest of the real bodies in a file: of the countries, Canada.
///
/// # Panics
/// The file cannot be read.
pub fn largest(path: &Path) -> Bytes {
    let features = Reader::new(File::open(path).expect("the file opens"), ReadOptions::default());
    features.filter_map(Result::ok).map(|body| body.bytes).max_by_key(Bytes::len).unwrap_or_default()
}

/// Returns areas north of the equator.
pub fn northern_areas(count: usize) -> Vec<Area> {
    let columns = count.isqrt();
    let side = 100.0 / columns as f64;
    let boxed = |n: usize| {
        let (west, south) = ((n % columns) as f64 * side - 50.0, (n / columns) as f64 * side / 2.0);
        Bbox::new(west, south, west + side / 2.0, south + side / 2.5).unwrap_or(Bbox::WORLD)
    };
    (0..count).map(|n| Area::from_bbox(n.to_string(), &boxed(n))).collect()
}

/// Returns the envelope of a body that lies south of the equator.
pub fn southern_envelope(n: usize) -> Envelope {
    let west = (n % 3_000) as f64 / 10.0 - 150.0;
    Envelope {
        feature_id: n.to_string(),
        event_id: format!("{n:032x}"),
        version: None,
        occurred_at: Some(Timestamp::from_millis(0)),
        crs: "EPSG:4326".into(),
        bbox: Bbox::new(west, -40.0, west + 0.3, -39.0).ok(),
        cells: None,
        vertex_count: Some(1_000),
        suspect: false,
        content: Content::Claim(Body::seal(Bytes::from_static(b"{}")).claim()),
        others: Default::default(),
    }
}
