//! All 250 countries, 168 MB, through Apache Kafka and SeaweedFS.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use geo::{BoundingRect, Geometry, Intersects, Rect};
use geoclaim_common::{Bbox, Envelope, cover::Cover};
use geoclaim_tests::{
    binary::{self, Run},
    components::{datasets, require},
};
use serde_json::{Value, json};

use crate::support::{Place, Real, feature_ids};

/// The areas of the design's measurements: west, south, east, north.
pub const AREAS: [[f64; 4]; 11] = [
    [-11.0, 49.0, 2.0, 61.0],
    [-10.0, 35.5, 4.0, 44.0],
    [5.9, 47.3, 15.0, 55.0],
    [128.0, 30.0, 146.0, 46.0],
    [176.0, -21.0, -178.0, -15.0],
    [170.0, 50.0, -165.0, 56.0],
    [-46.0, -16.0, -34.0, -2.0],
    [79.0, 5.0, 82.0, 10.0],
    [-102.0, 37.0, -94.6, 40.0],
    [-25.0, 63.0, -13.0, 67.0],
    [-1.0, -1.0, 1.0, 1.0],
];

fn area_file(areas: &[[f64; 4]]) -> String {
    let features: Vec<Value> = areas
        .iter()
        .enumerate()
        .map(|(n, bbox)| json!({"type": "Feature", "id": format!("area-{n}"), "bbox": bbox, "geometry": null}))
        .collect();
    json!({"type": "FeatureCollection", "features": features}).to_string()
}

/// Returns, for each area, the countries that `geo` says intersect it.
fn expected(countries: &Path) -> Vec<BTreeSet<String>> {
    let collection: geojson::FeatureCollection =
        std::fs::read_to_string(countries).unwrap().parse::<geojson::GeoJson>().unwrap().try_into().unwrap();
    let planar = |[west, south, east, north]: [f64; 4]| Bbox::new(west, south, east, north).unwrap().planar().collect::<Vec<_>>();
    let rects: Vec<Vec<Rect>> =
        AREAS.iter().map(|area| planar(*area).into_iter().map(|[w, s, e, n]| Rect::new((w, s), (e, n))).collect()).collect();
    let mut met = vec![BTreeSet::new(); AREAS.len()];
    for feature in collection.features {
        let id = feature.properties.as_ref().unwrap()["A3"].as_str().unwrap().to_owned();
        let geometry: Geometry = feature.geometry.unwrap().try_into().unwrap();
        let polygons: Vec<geo::Polygon> = match geometry {
            Geometry::MultiPolygon(multi) => multi.0,
            Geometry::Polygon(polygon) => vec![polygon],
            other => panic!("{other:?}"),
        };
        for (area, rects) in rects.iter().enumerate() {
            // Only what `geo` itself would rule out at once is left out here.
            let near = |polygon: &&geo::Polygon| {
                rects.iter().any(|rect| polygon.bounding_rect().is_some_and(|bounds| bounds.intersects(rect)))
            };
            if polygons.iter().filter(near).any(|polygon| rects.iter().any(|rect| polygon.intersects(&rect.to_polygon()))) {
                met[area].insert(id.clone());
            }
        }
    }
    met
}

fn consume(place: &Place, folder: &Path, name: &str, areas: &[[f64; 4]]) -> (Run, BTreeSet<String>) {
    let aoi = folder.join(format!("{name}.geojson"));
    std::fs::write(&aoi, area_file(areas)).unwrap();
    let gpkg = folder.join(format!("{name}.gpkg"));
    let sink = format!("gpkg:{}", gpkg.display());
    let args = [
        "consume",
        "--aoi",
        aoi.to_str().unwrap(),
        "--group",
        name,
        "--sink",
        &sink,
        "-e",
        "--report",
        "json",
        "--memory-budget",
        "96MiB",
    ];
    let run = binary::run(&args, &place.env, b"");
    assert_eq!(run.code(), 0, "{}", run.stderr);
    let applied = feature_ids(&gpkg).into_iter().collect();
    (run, applied)
}

#[test]
fn every_country_goes_through_and_exactly_those_that_intersect_are_applied() {
    let Some(real) = Real::get() else { return };
    let Some(countries) = require("countries-land-10m", datasets::countries()) else { return };
    let place = real.place("countries", 4);
    let published =
        binary::run(&["publish", "--id-property", "A3", "--report", "json", countries.to_str().unwrap()], &place.env, b"");
    assert_eq!(published.code(), 0, "{}", published.stderr);
    let report = published.report();
    assert_eq!((&report["published"], &report["rejected"]), (&250.into(), &0.into()));
    println!("publish: {report}, peak {} MiB", published.peak_bytes >> 20);
    assert!(published.peak_bytes < 64 << 20, "publish held {} MiB", published.peak_bytes >> 20);

    let envelopes = envelopes(&place);
    assert_eq!(envelopes.len(), 250);
    let lengths: BTreeMap<&str, u64> = envelopes
        .iter()
        .filter_map(|envelope| Some((envelope["feature_id"].as_str()?, envelope["body_bytes"].as_u64()?)))
        .collect();
    for envelope in envelopes.iter().filter(|envelope| envelope["body_key"].is_string()) {
        let digest = envelope["body_sha256"].as_str().unwrap();
        assert_eq!(envelope["body_key"], format!("geom/{}/{digest}.json", &digest[..2]));
        assert!(envelope.to_string().len() + 3 + 82 < 2_048);
    }
    let expected = expected(&countries);
    let folder = tempfile::tempdir().unwrap();
    let meets = |envelope: &Value, areas: &[[f64; 4]]| {
        let n = |at: usize| envelope["bbox"][at].as_f64().unwrap();
        let bbox = Bbox::new(n(0), n(1), n(2), n(3)).unwrap();
        let cells = Envelope::decode(envelope.to_string().as_bytes()).unwrap().cells;
        let cover = Cover::new(bbox, cells.as_ref()).unwrap();
        let planar = areas.iter().flat_map(|[w, s, e, n]| Bbox::new(*w, *s, *e, *n).unwrap().planar());
        planar.into_iter().any(|planar| cover.meets(planar))
    };
    let mut groups: Vec<(String, Vec<[f64; 4]>, BTreeSet<String>)> =
        AREAS.iter().enumerate().map(|(n, area)| (format!("one-{n}"), vec![*area], expected[n].clone())).collect();
    groups.push(("eleven".into(), AREAS.to_vec(), expected.iter().flatten().cloned().collect()));
    for (name, areas, expected) in groups {
        let (run, applied) = consume(&place, folder.path(), &name, &areas);
        let report = run.report();
        assert_eq!(applied, expected, "{name}");
        // No body is fetched whose cover does not meet the area, and none twice.
        let wanted: Vec<u64> = envelopes
            .iter()
            .filter(|envelope| meets(envelope, &areas))
            .filter_map(|envelope| lengths.get(envelope["feature_id"].as_str()?).copied())
            .collect();
        assert_eq!(report["fetched"].as_u64(), Some(wanted.len() as u64), "{name}");
        assert_eq!(report["bytes_fetched"].as_u64(), Some(wanted.iter().sum()), "{name}");
        println!("{name}: {report}, peak {} MiB", run.peak_bytes >> 20);
        assert!(run.peak_bytes < (96 + 48) << 20, "{name} held {} MiB", run.peak_bytes >> 20);
    }
}

fn envelopes(place: &Place) -> Vec<Value> {
    let run = binary::run(&["inspect", "--json"], &place.env, b"");
    assert_eq!(run.code(), 0, "{}", run.stderr);
    run.lines()
}

#[test]
fn the_plan_says_what_each_filter_would_fetch() {
    let Some(countries) = require("countries-land-10m", datasets::countries()) else { return };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("aoi.geojson"), area_file(&AREAS)).unwrap();
    let args = ["plan", "--aoi", "aoi.geojson", "--report", "json", countries.to_str().unwrap()];
    let run = binary::run_in(&args, &[], b"", Some(folder.path()));
    assert_eq!(run.code(), 0, "{}", run.stderr);
    let report = run.report();
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{value} in {report}"));

    assert_eq!(number(&report["sizes"]["count"]), 250);
    assert_eq!(number(&report["sizes"]["above_count"]), 2, "one in a hundred");
    for (area, expected) in report["areas"].as_array().unwrap().iter().zip(expected(&countries)) {
        assert_eq!(number(&area["exact_features"]), expected.len() as u64, "{area}");
    }
    let [planar, bbox, cover, exact] =
        ["planar_bytes", "bbox_bytes", "cover_bytes", "exact_bytes"].map(|name| number(&report["total"][name]));
    // The design's measurements of these countries and areas, in tenths of a megabyte.
    assert_eq!([planar, bbox, exact].map(|bytes| (bytes + 50_000) / 100_000), [4_018, 1_743, 907], "{report}");
    assert!(exact <= cover && cover * 100 <= exact * 102, "{report}");
}
