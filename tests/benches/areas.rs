//! One envelope against 1 to 1,000,000 areas, beside `rstar` alone and a linear scan, on one core; and what building a
//! million takes. Measures and prints; asserts only that all three agree. `cargo bench -p geoclaim-tests --bench areas`

use std::hint::black_box;

use geo::{BoundingRect, LineString, Polygon};
use geoclaim_common::{
    Bbox,
    cover::{Cells, Cover},
    extent::{MeasureOptions, measure},
    limits,
};
use geoclaim_consumer::aoi::{Area, AreaIndex, parse_areas};
use geoclaim_producer::read::{ReadOptions, Reader};
use geoclaim_tests::{
    components::datasets,
    random::Random,
    timing::{median, timed},
};
use peak_alloc::PeakAlloc;
use rstar::{AABB, RTree, primitives::Rectangle};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const COUNTS: [usize; 4] = [1, 100, 10_000, 1_000_000];
/// What envelopes are like: how they lie to the areas, which are between 0 and 80 degrees north, their sizes and latitudes.
const MIXES: [(&str, [f64; 2], [f64; 2]); 3] = [
    ("half of them where no area is", [0.01, 20.0], [-80.0, 80.0]),
    ("all of them among the areas", [0.01, 0.5], [0.0, 80.0]),
    ("none of them where areas are", [0.01, 0.5], [-80.0, -1.0]),
];
const ENVELOPES: usize = 2_000;
const ROUNDS: usize = 5;
const SEED: u64 = 20_261_202;

/// A box of `small` to `large` degrees, as often of one size as of another, between two latitudes.
fn planar(random: &mut Random, [small, large]: [f64; 2], [south, north]: [f64; 2]) -> [f64; 4] {
    let size = small * (large / small).powf(random.unit());
    let [x, y] = [-180.0 + (360.0 - size) * random.unit(), south + (north - south - size) * random.unit()];
    [x, y, x + size, y + size]
}

/// Areas in the north; nine in ten are boxes, the others hexagons.
fn area(n: usize, random: &mut Random) -> Area {
    let planar @ [west, south, east, north] = planar(random, [0.01, 0.2], [0.0, 80.0]);
    if !n.is_multiple_of(10) {
        let [w, s, e, t] = planar;
        return Area::from_bbox(format!("area-{n}"), &Bbox::new(w, s, e, t).unwrap());
    }
    let (x, y) = ((west + east) / 2.0, (south + north) / 2.0);
    let corner = |sixth: i32| {
        let angle = f64::from(sixth) * std::f64::consts::FRAC_PI_3;
        (x + (east - x) * angle.cos(), y + (north - y) * angle.sin())
    };
    let hexagon = Polygon::new((0..=6).map(|sixth| corner(sixth % 6)).collect::<LineString>(), Vec::new());
    Area { id: format!("area-{n}").into(), polygons: vec![hexagon] }
}

fn main() {
    println!("seed {SEED}; medians of {ROUNDS} alternating rounds over {ENVELOPES} envelopes; nanoseconds an envelope");
    let covers = real_covers();
    for (what, sizes, latitudes) in MIXES {
        println!("envelopes of {} to {} degrees, {what}", sizes[0], sizes[1]);
        println!(
            "{:>9} {:>9} {:>9} {:>7} {:>11} {:>9} {:>11}",
            "areas", "geoclaim", "rstar", "ratio", "linear scan", "met", "covers"
        );
        for count in COUNTS {
            row(count, (sizes, latitudes), &covers);
        }
    }
    build();
}

/// The bboxes and cells of the real countries, as they come in envelopes.
fn real_covers() -> Vec<(Bbox, Option<Cells>)> {
    let Ok(countries) = datasets::countries() else { return Vec::new() };
    let file = std::fs::File::open(countries).unwrap();
    let options = MeasureOptions { cover_bytes: limits::COVER_BYTES, ..MeasureOptions::default() };
    let bodies = Reader::new(file, ReadOptions::default()).filter_map(Result::ok);
    let extents = bodies.map(|body| measure(&body.bytes, &options).unwrap().0);
    extents.filter_map(|extent| Some((extent.bbox?, extent.cells))).collect()
}

fn row(count: usize, (sizes, latitudes): ([f64; 2], [f64; 2]), covers: &[(Bbox, Option<Cells>)]) {
    let mut random = Random::new(SEED);
    let areas: Vec<Area> = (0..count).map(|n| area(n, &mut random)).collect();
    let bounds: Vec<[f64; 4]> = areas.iter().map(bounds_of).collect();
    let rects = bounds.iter().map(|[w, s, e, n]| Rectangle::from_corners([*w, *s], [*e, *n])).collect();
    let (index, tree) = (AreaIndex::new(areas), RTree::bulk_load(rects));
    let envelopes: Vec<Bbox> = (0..ENVELOPES)
        .map(|_| planar(&mut random, sizes, latitudes))
        .map(|[w, s, e, n]| Bbox::new(w, s, e, n).unwrap())
        .collect();
    // A linear scan of a million takes its time: it has every twentieth envelope.
    let few: Vec<Bbox> = envelopes.iter().step_by(if count > 10_000 { 20 } else { 1 }).copied().collect();
    let linear = |bbox: &Bbox| bbox.planar().any(|planar| bounds.iter().any(|area| overlap(area, &planar)));
    let alone = |bbox: &Bbox| {
        bbox.planar()
            .any(|[w, s, e, n]| tree.locate_in_envelope_intersecting(AABB::from_corners([w, s], [e, n])).next().is_some())
    };
    let mut seconds: [Vec<f64>; 4] = Default::default();
    let mut met = [0; 3];
    for _ in 0..ROUNDS {
        let (ours, ours_s) = timed(|| envelopes.iter().filter(|bbox| index.meets(bbox)).count());
        let (theirs, theirs_s) = timed(|| envelopes.iter().filter(|bbox| alone(bbox)).count());
        let (scanned, scanned_s) = timed(|| few.iter().filter(|bbox| linear(bbox)).count());
        let (_, covers_s) = timed(|| covers.iter().filter(|cover| black_box(meets(&index, cover))).count());
        assert_eq!((ours, scanned), (theirs, few.iter().filter(|bbox| alone(bbox)).count()));
        met = [ours, theirs, scanned];
        let spent = [(ours_s, ENVELOPES), (theirs_s, ENVELOPES), (scanned_s, few.len()), (covers_s, covers.len().max(1))];
        seconds.iter_mut().zip(spent).for_each(|(all, (spent, count))| all.push(spent / count as f64));
    }
    let [ours, theirs, scanned, covers] = seconds.map(|seconds| median(seconds) * 1e9);
    println!(
        "{count:>9} {ours:>9.0} {theirs:>9.0} {:>7.2} {scanned:>11.0} {:>8.1}% {covers:>11.0}",
        ours / theirs,
        100.0 * met[0] as f64 / ENVELOPES as f64
    );
}

/// As the consumer does: the bbox, then the cells.
fn meets(index: &AreaIndex, (bbox, cells): &(Bbox, Option<Cells>)) -> bool {
    index.meets(bbox) && index.meets_cover(&Cover::new(*bbox, cells.as_ref()).unwrap())
}

fn bounds_of(area: &Area) -> [f64; 4] {
    let bounds = area.polygons[0].bounding_rect().unwrap();
    [bounds.min().x, bounds.min().y, bounds.max().x, bounds.max().y]
}

fn overlap(a: &[f64; 4], b: &[f64; 4]) -> bool {
    a[0] <= b[2] && b[0] <= a[2] && a[1] <= b[3] && b[1] <= a[3]
}

/// Reads a file of a million areas and builds the index, as a start of `consume` does.
fn build() {
    let count = COUNTS[COUNTS.len() - 1];
    let mut random = Random::new(SEED);
    let text: String = (0..count)
        .map(|n| {
            let [w, s, e, t] = planar(&mut random, [0.01, 0.2], [0.0, 80.0]);
            format!("{{\"type\":\"Feature\",\"id\":\"area-{n}\",\"bbox\":[{w},{s},{e},{t}],\"geometry\":null}}\n")
        })
        .collect();
    let mib = |bytes: usize| bytes as f64 / f64::from(1 << 20);
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let (areas, parsing) = timed(|| parse_areas(text.as_bytes()).unwrap());
    let (index, building) = timed(|| AreaIndex::new(areas));
    let (held, peak) = (ALLOCATOR.current_usage() - before, ALLOCATOR.peak_usage() - before);
    let (rects, _) = timed(|| -> Vec<_> {
        let mut random = Random::new(SEED);
        let planar = (0..count).map(|_| planar(&mut random, [0.01, 0.2], [0.0, 80.0]));
        planar.map(|[w, s, e, n]| Rectangle::from_corners([w, s], [e, n])).collect()
    });
    let (tree, alone) = timed(|| RTree::bulk_load(rects));
    println!(
        "a million boxes from a file of {:.0} MiB: read in {parsing:.2} s, built in {building:.2} s ({alone:.2} s for",
        mib(text.len())
    );
    println!("rstar alone); the index holds {:.0} MiB, at most {:.0} MiB were held meanwhile", mib(held), mib(peak));
    black_box((index, tree));
}
