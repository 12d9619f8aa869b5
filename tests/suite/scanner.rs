//! The scanner against `serde_json` with `geo`, and its vectors against its grammar, on made-up and on damaged bodies.

use geo::{BoundingRect, CoordsIter};
use geoclaim_common::extent::{MeasureOptions, measure};
use geoclaim_tests::components::{datasets, require};
use proptest::prelude::*;

/// The same document with a space in front of each array's first element, where no position is plain: it is read by the
/// grammar alone, number by number.
fn by_the_grammar(body: &[u8]) -> Vec<u8> {
    body.iter().flat_map(|byte| if *byte == b'[' { &b"[ "[..] } else { std::slice::from_ref(byte) }).copied().collect()
}

fn bbox_and_count(body: &[u8]) -> Option<([f64; 4], u64)> {
    let (extent, _) = measure(body, &MeasureOptions::default()).ok()?;
    Some((extent.bbox?.to_array(), extent.vertex_count))
}

/// Bounding box and vertex count as `geojson` with `geo` have them.
fn by_geo(body: &[u8]) -> ([f64; 4], u64) {
    let geometry: geojson::Geometry = serde_json::from_slice(body).unwrap();
    let geometry: geo::Geometry = geometry.try_into().unwrap();
    // Not of the geometry, for that passes over interior rings.
    let rect = geo::MultiPoint::from_iter(geometry.coords_iter()).bounding_rect().unwrap();
    ([rect.min().x, rect.min().y, rect.max().x, rect.max().y].map(|edge| edge + 0.0), geometry.coords_count() as u64)
}

/// A number as it is written somewhere: with up to eighteen places, or with an exponent, or with none.
fn number(limit: i32) -> impl Strategy<Value = String> {
    let whole = (-limit..limit).prop_map(|whole| whole.to_string());
    prop_oneof![
        6 => (whole.clone(), "[0-9]{1,7}").prop_map(|(whole, places)| format!("{whole}.{places}")),
        3 => (whole.clone(), "[0-9]{8,18}").prop_map(|(whole, places)| format!("{whole}.{places}")),
        2 => whole.clone(),
        1 => (whole, "[0-9]{1,3}").prop_map(|(whole, places)| format!("{whole}.{places}e-1")),
        1 => "-?0\\.0{0,6}[0-9]{1,12}",
    ]
}

/// A multipolygon west or east of Greenwich, so that no edge is longer than half a turn.
fn multipolygon() -> impl Strategy<Value = String> {
    let position = (number(89), number(89)).prop_map(|(x, y)| format!("{x},{y}"));
    let ring = proptest::collection::vec(position, 3..40).prop_map(|mut ring| {
        ring.push(ring[0].clone());
        format!("[[{}]]", ring.join("],["))
    });
    let polygon = proptest::collection::vec(ring, 1..4).prop_map(|rings| format!("[{}]", rings.join(",")));
    (proptest::collection::vec(polygon, 1..8), any::<bool>()).prop_map(|(polygons, is_spaced)| {
        let body = format!(r#"{{"type":"MultiPolygon","coordinates":[{}],"more":"{}"}}"#, polygons.join(","), ".".repeat(90));
        if is_spaced { body.replace(',', ", ") } else { body }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn a_body_has_the_box_and_the_vertices_that_geo_finds(body in multipolygon()) {
        let (bbox, count) = bbox_and_count(body.as_bytes()).unwrap();
        let (wanted, wanted_count) = by_geo(body.as_bytes());
        prop_assert_eq!((bbox.map(f64::to_bits), count), (wanted.map(f64::to_bits), wanted_count));
        prop_assert_eq!(bbox_and_count(&by_the_grammar(body.as_bytes())), Some((bbox, count)));
    }

    #[test]
    fn a_damaged_body_is_judged_alike_by_vectors_and_grammar_and_no_milder_than_by_serde_json(
        body in multipolygon(),
        damages in proptest::collection::vec((any::<prop::sample::Index>(), prop_oneof![
            proptest::sample::select(&b"[]{},.-+eE0123456789\" \n/"[..]).prop_map(Some), any::<u8>().prop_map(Some), Just(None)]), 1..4),
    ) {
        let mut bytes = body.into_bytes();
        for (place, byte) in damages {
            let at = place.index(bytes.len());
            match byte {
                Some(byte) => bytes[at] = byte,
                None => drop(bytes.remove(at)),
            }
        }
        let found = bbox_and_count(&bytes);
        prop_assert_eq!(found, bbox_and_count(&by_the_grammar(&bytes)));
        let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_ok();
        prop_assert!(is_json || measure(&bytes, &MeasureOptions::default()).is_err());
    }
}

#[test]
fn every_country_is_measured_alike_by_vectors_and_by_grammar() {
    let Some(countries) = require("countries-land-10m", datasets::countries()) else { return };
    let file = std::fs::File::open(countries).unwrap();
    for body in geoclaim_producer::read::Reader::new(file, Default::default()) {
        let bytes = body.unwrap().bytes;
        assert_eq!(bbox_and_count(&bytes), bbox_and_count(&by_the_grammar(&bytes)));
    }
}
