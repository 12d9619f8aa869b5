//! Extent, extent with cover, and digest of one body on one core, beside raw SHA-256.

use geoclaim_common::{
    Digest,
    extent::{MeasureOptions, measure},
    limits,
};
use geoclaim_producer::read::{ReadOptions, Reader};
use geoclaim_tests::{
    components::datasets,
    sample::squares,
    timing::{median, timed},
};

const RUNS: usize = 7;

pub(crate) fn print() {
    println!("extent + digest, one core, medians of {RUNS} alternating runs");
    println!(
        "{:<28} {:>9} {:>11} {:>11} {:>15} {:>8} {:>20}",
        "body", "MB", "sha256 MB/s", "extent MB/s", "both MB/s", "ratio", "with cover / extent"
    );
    one("120 x 120 squares", squares(120).as_bytes());
    one("synthetic, 15 digits", fifteen_digits(200_000).as_bytes());
    match datasets::countries() {
        Ok(path) => {
            let file = std::fs::File::open(path).unwrap();
            let bodies = Reader::new(file, ReadOptions::default()).filter_map(Result::ok);
            let largest = bodies.max_by_key(|body| body.bytes.len()).unwrap();
            one("largest real body (Canada)", &largest.bytes);
        }
        Err(reason) => println!("largest real body: not there ({reason})"),
    }
}

fn one(name: &str, body: &[u8]) {
    let (mut raw, mut extent, mut both, mut covered) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let options = MeasureOptions::default();
    let with_cover = MeasureOptions { cover_bytes: limits::COVER_BYTES, ..options };
    for _ in 0..RUNS {
        raw.push(timed(|| Digest::of(body)).1);
        extent.push(timed(|| measure(body, &options).unwrap()).1);
        covered.push(timed(|| measure(body, &with_cover).unwrap()).1);
        both.push(timed(|| (measure(body, &options).unwrap(), Digest::of(body))).1);
    }
    let megabytes = body.len() as f64 / 1e6;
    let (raw, extent, both, covered) = (median(raw), median(extent), median(both), median(covered));
    println!(
        "{name:<28} {megabytes:>9.1} {:>11.0} {:>11.0} {:>15.0} {:>8.2} {:>20.2}",
        megabytes / raw,
        megabytes / extent,
        megabytes / both,
        raw / both,
        covered / extent
    );
}

fn fifteen_digits(vertices: usize) -> String {
    let position = |n: usize| format!("[{:.13},{:.13}]", 8.0 + (n as f64).sin() / 3.0, 47.0 + (n as f64).cos() / 3.0);
    let positions: Vec<String> = (0..vertices).map(position).collect();
    format!(r#"{{"type":"LineString","coordinates":[{}]}}"#, positions.join(","))
}
