//! How little is fetched in vain: bbox and cover against the exact geometry of 250 countries.

use std::path::Path;

use geo::{BoundingRect, Geometry, Intersects, MultiPolygon, Polygon, Rect};
use geoclaim_common::{
    Bbox,
    cover::Cover,
    extent::{MeasureOptions, measure},
    limits,
};
use geoclaim_tests::{
    components::{datasets, require},
    random::Random,
};

use crate::countries::AREAS;

/// A country: its compact geometry's length, its cover, and its polygons for `geo`.
struct Country {
    bytes: usize,
    cover: Cover,
    polygons: Vec<(Rect, Polygon)>,
}

fn countries(path: &Path) -> Vec<Country> {
    let collection: geojson::FeatureCollection =
        std::fs::read_to_string(path).unwrap().parse::<geojson::GeoJson>().unwrap().try_into().unwrap();
    collection.features.into_iter().map(|feature| country(feature.geometry.unwrap())).collect()
}

fn country(geometry: geojson::Geometry) -> Country {
    let body = geometry.to_string();
    let options = MeasureOptions { cover_bytes: limits::COVER_BYTES, ..MeasureOptions::default() };
    let (extent, _) = measure(body.as_bytes(), &options).unwrap();
    assert!(extent.cells.as_ref().is_none_or(|cells| cells.as_bytes().len() <= limits::COVER_BYTES));
    let polygons = match Geometry::try_from(geometry).unwrap() {
        Geometry::MultiPolygon(MultiPolygon(polygons)) => polygons,
        Geometry::Polygon(polygon) => vec![polygon],
        other => panic!("{other:?}"),
    };
    Country {
        bytes: body.len(),
        cover: Cover::new(extent.bbox.unwrap(), extent.cells.as_ref()).unwrap(),
        polygons: polygons.into_iter().map(|polygon| (polygon.bounding_rect().unwrap(), polygon)).collect(),
    }
}

impl Country {
    fn meets(&self, area: &Bbox) -> bool {
        area.planar().any(|[w, s, e, n]| {
            let rect = Rect::new((w, s), (e, n));
            self.polygons.iter().any(|(bounds, polygon)| bounds.intersects(&rect) && polygon.intersects(&rect))
        })
    }
}

/// Returns the bytes that bbox, bbox with cover, and exact intersection fetch for these areas, summed.
fn fetched(countries: &[Country], areas: &[Bbox]) -> [u64; 3] {
    let mut sums = [0; 3];
    for area in areas {
        for country in countries {
            let by_bbox = country.cover.bbox().intersects(area);
            let by_cover = area.planar().any(|planar| country.cover.meets(planar));
            let exactly = by_bbox && country.meets(area);
            assert!(by_cover || !exactly, "{area} is missed by a cover");
            for (sum, is_fetched) in sums.iter_mut().zip([by_bbox, by_cover, exactly]) {
                *sum += if is_fetched { country.bytes as u64 } else { 0 };
            }
        }
    }
    sums
}

fn tell(name: &str, [bbox, cover, exact]: [u64; 3]) -> f64 {
    let ratio = cover as f64 / exact as f64;
    let mb = |bytes| bytes as f64 / 1e6;
    println!("{name}: bbox {:.1} MB, with cover {:.1} MB, exact {:.1} MB: {ratio:.4}", mb(bbox), mb(cover), mb(exact));
    ratio
}

/// How the widths and heights of areas are spread between a tenth of a degree and forty degrees.
#[derive(Clone, Copy, Debug)]
enum Spread {
    /// As many between ten and twenty degrees as between twenty and thirty.
    Even,
    /// As many between a tenth of a degree and one as between one and ten: hard, for most are small.
    Magnitudes,
}

fn pseudo_random_areas(seed: u64, count: usize, spread: Spread) -> Vec<Bbox> {
    let mut random = Random::new(seed);
    let size = |random: &mut Random| match spread {
        Spread::Even => 0.1 + 39.9 * random.unit(),
        Spread::Magnitudes => 0.1 * 400_f64.powf(random.unit()),
    };
    (0..count)
        .map(|_| {
            let [width, height] = [(); 2].map(|()| size(&mut random));
            let west = -180.0 + 360.0 * random.unit();
            let south = -90.0 + (180.0 - height) * random.unit();
            let east = if west + width > 180.0 { west + width - 360.0 } else { west + width };
            Bbox::new(west, south, east, south + height).unwrap()
        })
        .collect()
}

#[test]
fn bbox_and_cover_fetch_hardly_more_than_the_exact_geometry_and_miss_nothing() {
    let Some(path) = require("countries-land-10m", datasets::countries()) else { return };
    let countries = countries(&path);
    let eleven: Vec<Bbox> = AREAS.iter().map(|[w, s, e, n]| Bbox::new(*w, *s, *e, *n).unwrap()).collect();
    let ratio = tell("eleven areas", fetched(&countries, &eleven));
    assert!(ratio <= 1.02, "{ratio}");
    for seed in 1..=10 {
        let areas = pseudo_random_areas(seed, 200, Spread::Even);
        let ratio = tell(&format!("200 areas of seed {seed}, sizes spread evenly"), fetched(&countries, &areas));
        assert!(ratio <= 1.05, "seed {seed}: {ratio}");
    }
    // One small area that a large country just misses weighs thirty megabytes: only many areas tell.
    let areas: Vec<Bbox> = (1..=10).flat_map(|seed| pseudo_random_areas(seed, 200, Spread::Magnitudes)).collect();
    let ratio = tell("2,000 areas of seeds 1 to 10, sizes spread over the magnitudes", fetched(&countries, &areas));
    assert!(ratio <= 1.05, "{ratio}");
}
