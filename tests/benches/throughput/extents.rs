//! Extent and digest of one body, on one core and on two, beside raw SHA-256 and beside `geojson` with `geo`.

use bytes::Bytes;
use geo::{BoundingRect as _, CoordsIter as _};
use geoclaim_common::{
    Body, Digest,
    extent::{MeasureOptions, measure},
    limits,
};
use geoclaim_tests::{
    components::datasets,
    sample::{fifteen_digits, largest, squares},
    timing::{median, timed},
};

const RUNS: usize = 9;

pub(crate) fn print() {
    println!("extent and digest, medians of {RUNS} alternating runs; ratios to raw SHA-256 of the same body");
    println!(
        "{:<22} {:>7} {:>11} | {:>6} {:>11} {:>13} | {:>8} {:>9} | {:>18}",
        "body", "MB", "sha256 MB/s", "extent", "with cover", "geojson + geo", "one core", "two cores", "extent/geojson+geo"
    );
    for (name, body) in bodies() {
        one(name, body);
    }
}

/// The bodies whose figures are compared: the largest real one, and two that are made up.
fn bodies() -> Vec<(&'static str, Bytes)> {
    let mut bodies = vec![("120 x 120 squares", squares(120).into()), ("15 digits", fifteen_digits(200_000).into())];
    match datasets::countries() {
        Ok(path) => bodies.push(("Canada", largest(&path))),
        Err(reason) => println!("largest real body: not there ({reason})"),
    }
    bodies
}

fn one(name: &str, body: Bytes) {
    let options = MeasureOptions::default();
    let with_cover = MeasureOptions { cover_bytes: limits::COVER_BYTES, ..options };
    let mut seconds: [Vec<f64>; 6] = Default::default();
    for _ in 0..RUNS {
        let runs = [
            timed(|| Digest::of(&body)).1,
            timed(|| measure(&body, &options).unwrap()).1,
            timed(|| measure(&body, &with_cover).unwrap()).1,
            timed(|| by_geo(&body)).1,
            timed(|| (measure(&body, &options).unwrap(), Digest::of(&body))).1,
            timed(|| Body::seal_beside(body.clone(), |body| measure(body, &options).unwrap())).1,
        ];
        seconds.iter_mut().zip(runs).for_each(|(all, one)| all.push(one));
    }
    let [raw, extent, covered, geo, one_core, two_cores] = seconds.map(median);
    let megabytes = body.len() as f64 / 1e6;
    println!(
        "{name:<22} {megabytes:>7.1} {:>11.0} | {:>6.2} {:>11.2} {:>13.2} | {:>8.2} {:>9.2} | {:>18.1}",
        megabytes / raw,
        raw / extent,
        raw / covered,
        raw / geo,
        raw / one_core,
        raw / two_cores,
        geo / extent,
    );
}

/// Bounding box and vertex count as a plain implementation takes them.
fn by_geo(body: &[u8]) {
    let text = std::str::from_utf8(body).unwrap();
    let geometry = match text.parse::<geojson::GeoJson>().unwrap() {
        geojson::GeoJson::Feature(feature) => feature.geometry.unwrap(),
        geojson::GeoJson::Geometry(geometry) => geometry,
        geojson::GeoJson::FeatureCollection(_) => panic!("one body has one geometry"),
    };
    let geometry: geo::Geometry = geometry.try_into().unwrap();
    std::hint::black_box((geometry.bounding_rect(), geometry.coords_count()));
}
