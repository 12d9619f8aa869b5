use geoclaim_common::extent::measure;
use proptest::prelude::*;
use serde_json::Value;

use super::super::{area::WholeArea, output::clipped};
use crate::{aoi::parse_areas, resolve::BodyBytes, sink::State};

fn state(body: &str) -> State {
    let (extent, outline) = measure(body.as_bytes(), &Default::default()).unwrap();
    let (areas, crs) = Default::default();
    State { areas, crs, body: BodyBytes::Inline(body.to_owned().into()), extent, outline }
}

fn clip(body: &str, area: &str) -> Result<String, String> {
    let area = WholeArea::new(parse_areas(area.as_bytes()).unwrap().remove(0).polygons);
    let state = state(body);
    let bbox = state.extent.bbox.unwrap();
    let pieces = clipped(&state, &bbox, &area.within(&bbox), None)?;
    Ok(pieces.iter().map(|piece| std::str::from_utf8(piece).unwrap()).collect())
}

fn geometry(kind: &str, coordinates: &str) -> String {
    format!(r#"{{"type":"{kind}","coordinates":{coordinates}}}"#)
}

/// Rings begin anywhere, and parts come in any order: brings both in one.
fn tidied(text: &str) -> String {
    fn tidy(value: &mut Value) {
        let Value::Array(items) = value else { return };
        let is_ring = items.len() > 3 && items.iter().all(|at| at[0].is_number()) && items.first() == items.last();
        if is_ring {
            items.pop();
            let least = (0..items.len()).min_by_key(|n| items[*n].to_string()).unwrap();
            items.rotate_left(least);
            items.push(items[0].clone());
        } else if !items[0].is_number() {
            items.iter_mut().for_each(tidy);
            items.sort_by_key(Value::to_string);
        }
    }
    let mut value: Value = serde_json::from_str(text).unwrap();
    let members = value.as_object_mut().unwrap();
    members.get_mut("coordinates").map(tidy);
    value.to_string()
}

const SQUARE: &str = "[[[0,0],[10,0],[10,10],[0,10],[0,0]]]";

#[test]
fn what_lies_within_is_kept_byte_for_byte_and_the_rest_is_cut() {
    let within =
        r#"{"type":"Feature","x":1,"id":7,"properties":{"a":"ä"},"geometry":{"type":"Point","coordinates":[1.50, 2,3]}}"#;
    assert_eq!(
        clip(within, "[0,0,10,10]").unwrap(),
        r#"{"type":"Feature","id":7,"properties":{"a":"ä"},"geometry":{"type":"Point","coordinates":[1.50, 2,3]}}"#
    );
    assert_eq!(clip(&geometry("Polygon", SQUARE), "[-1,-1,11,11]").unwrap(), geometry("Polygon", SQUARE));
    let quarter = geometry("Polygon", "[[[5.0,0.0],[10.0,0.0],[10.0,5.0],[5.0,5.0],[5.0,0.0]]]");
    assert_eq!(tidied(&clip(&geometry("Polygon", SQUARE), "[5,-1,11,5]").unwrap()), tidied(&quarter));
    assert_eq!(
        clip(&geometry("LineString", "[[0,0],[10,0],[10,10]]"), "[5,-1,20,5]").unwrap(),
        geometry("LineString", "[[5.0,0.0],[10.0,0.0],[10.0,5.0]]")
    );
    assert_eq!(
        clip(&geometry("MultiPoint", "[[0,0],[6,0],[7,1]]"), "[5,-1,7,5]").unwrap(),
        geometry("MultiPoint", "[[6.0,0.0],[7.0,1.0]]")
    );
    let touching = clip(&geometry("Polygon", SQUARE), "[10,10,12,12]").unwrap();
    assert_eq!(touching, r#"{"type":"GeometryCollection","geometries":[]}"#, "a corner is no part");
}

#[test]
fn what_crosses_the_antimeridian_is_cut_there_whatever_turn_it_is_written_in() {
    let east = geometry("Polygon", "[[[170,0],[190,0],[190,10],[170,10],[170,0]]]");
    let west = geometry("Polygon", "[[[-190,0],[-170,0],[-170,10],[-190,10],[-190,0]]]");
    let halves = r#"{"type":"MultiPolygon","coordinates":[[[[-180.0,0.0],[-175.0,0.0],[-175.0,5.0],[-180.0,5.0],[-180.0,0.0]]],[[[175.0,0.0],[180.0,0.0],[180.0,5.0],[175.0,5.0],[175.0,0.0]]]]}"#;
    for body in [east, west] {
        assert_eq!(tidied(&clip(&body, "[175,-5,-175,5]").unwrap()), tidied(halves));
    }
    assert_eq!(clip(&geometry("Point", "[185,1]"), "[-180,0,-170,10]").unwrap(), geometry("Point", "[185,1]"), "it lies within");
}

#[test]
fn collections_are_clipped_one_by_one() {
    let feature =
        |id: &str, geometry: &str| format!(r#"{{"type":"Feature","id":"{id}","properties":null,"geometry":{geometry}}}"#);
    let nested = format!(
        r#"{{"type":"GeometryCollection","geometries":[{},{}]}}"#,
        geometry("Point", "[1,1]"),
        geometry("Polygon", SQUARE)
    );
    let body = format!(
        r#"{{"type":"FeatureCollection","bbox":[0,0,10,10],"features":[{},{},{}]}}"#,
        feature("a", &nested),
        feature("b", &geometry("Point", "[9,9]")),
        feature("c", "null")
    );
    let clipped: Value = serde_json::from_str(&clip(&body, "[-1,-1,2,2]").unwrap()).unwrap();
    assert_eq!(
        (clipped["features"].as_array().unwrap().len(), &clipped["features"][0]["id"], clipped.get("bbox")),
        (1, &"a".into(), None)
    );
    let members = &clipped["features"][0]["geometry"]["geometries"];
    assert_eq!(tidied(&members[0].to_string()), tidied(&geometry("Point", "[1.0,1.0]")));
    assert_eq!(
        tidied(&members[1].to_string()),
        tidied(&geometry("Polygon", "[[[0.0,0.0],[2.0,0.0],[2.0,2.0],[0.0,2.0],[0.0,0.0]]]"))
    );
}

#[test]
fn what_nobody_can_clip_is_refused_with_the_reason() {
    let long = clip(&geometry("LineString", "[[-170,0],[170,0]]"), "[-180,-5,-100,5]");
    assert!(long.unwrap_err().contains("which way round"));
}

#[test]
fn a_buffer_of_many_pieces_is_one_area() {
    let area = r#"{"type":"Feature","id":"l","properties":{"buffer_m":50000},"geometry":{"type":"LineString","coordinates":[[0,0],[5,5],[10,0]]}}"#;
    let text = clip(&geometry("Polygon", SQUARE), area).unwrap();
    let clipped: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(clipped["type"], "Polygon", "{text}");
}

proptest! {
    /// The areas of a clipped polygon and of what is cut away add up, for triangles and boxes anywhere.
    #[test]
    fn the_parts_add_up(corners in proptest::collection::vec((-20_i32..200, -40_i32..40), 3), cut in -60_i32..200) {
        use geo::Area as _;
        let ring: Vec<[f64; 2]> = [0, 1, 2, 0].iter().map(|n| [f64::from(corners[*n].0), f64::from(corners[*n].1)]).collect();
        let body = geometry("Polygon", &serde_json::to_string(&[&ring]).unwrap());
        prop_assume!(!state(&body).extent.suspect);
        let size = |text: &str| -> f64 {
            let geometry: geojson::Geometry = text.parse().unwrap();
            geo::Geometry::try_from(geometry.value).unwrap().unsigned_area()
        };
        let cut = if cut > 179 { 0.5 } else { f64::from(cut) + 0.5 };
        let parts = [format!("[-180,-90,{cut},90]"), format!("[{cut},-90,180,90]")];
        let sizes: f64 = parts.iter().map(|part| size(&clip(&body, part).unwrap())).sum();
        let whole = size(&body);
        prop_assert!((sizes - whole).abs() <= 1e-4 * (1.0 + whole), "{} of {}", sizes, whole);
    }
}
