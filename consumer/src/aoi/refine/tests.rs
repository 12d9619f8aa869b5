use geo::{Intersects, LineString, MultiPolygon, Polygon};
use geoclaim_common::extent::{MeasureOptions, measure};
use proptest::prelude::*;

use super::*;
use crate::aoi::{Area, parse_areas};

fn met(body: &str, areas: &str) -> Vec<String> {
    let index = AreaIndex::new(parse_areas(areas.as_bytes()).unwrap());
    let (extent, _) = measure(body.as_bytes(), &MeasureOptions::default()).unwrap();
    let ids = refine(body.as_bytes(), &extent.bbox.unwrap(), &index, &ScanOptions::default()).unwrap();
    ids.iter().map(|id| id.to_string()).collect()
}

fn polygon(rings: &str) -> String {
    format!(r#"{{"type":"Polygon","coordinates":[{rings}]}}"#)
}

const FRAME: &str = "[[0,0],[10,0],[10,10],[0,10],[0,0]],[[2,2],[8,2],[8,8],[2,8],[2,2]]";

#[test]
fn a_box_that_is_met_by_the_bbox_alone_is_not_met() {
    assert!(met(&polygon(FRAME), "[4,4,5,5]").is_empty(), "in the hole");
    assert_eq!(met(&polygon(FRAME), "[1,4,3,5]"), ["1"], "over the hole's edge");
    assert_eq!(met(&polygon(FRAME), "[0.5,0.5,1,1]"), ["1"], "within the frame");
    assert_eq!(met(&polygon(FRAME), "[-5,-5,15,15]"), ["1"], "around everything");
    assert_eq!(met(&polygon(FRAME), "[10,10,11,11]"), ["1"], "a corner counts");
    assert!(met(&polygon("[[0,0],[10,0],[0,10],[0,0]]"), "[8,8,9,9]").is_empty());
}

#[test]
fn points_and_lines_are_refined_too() {
    assert_eq!(met(r#"{"type":"MultiPoint","coordinates":[[0,0],[5,5]]}"#, "[4,4,6,6]"), ["1"]);
    assert!(met(r#"{"type":"MultiPoint","coordinates":[[0,0],[5,5]]}"#, "[2,2,3,3]").is_empty());
    assert_eq!(met(r#"{"type":"LineString","coordinates":[[0,0],[5,5]]}"#, "[2,2,3,3]"), ["1"]);
    assert!(met(r#"{"type":"LineString","coordinates":[[0,0],[5,5]]}"#, "[3,1,4,2]").is_empty());
    assert!(
        met(r#"{"type":"LineString","coordinates":[[0,0],[10,0],[10,10],[0,10],[0,0]]}"#, "[4,4,5,5]").is_empty(),
        "a closed line has no inside"
    );
}

#[test]
fn an_unclosed_ring_is_closed_for_the_comparison() {
    assert_eq!(met(&polygon("[[0,0],[10,0],[10,10],[0,10]]"), "[-1,4,1,5]"), ["1"]);
    assert_eq!(met(&polygon("[[0,0],[10,0],[10,10],[0,10]]"), "[4,4,5,5]"), ["1"]);
}

#[test]
fn both_sides_of_the_antimeridian_are_one_area() {
    let fiji = "[176,-21,-178,-15]";
    assert_eq!(met(&polygon("[[-179.5,-18],[-179,-18],[-179,-17],[-179.5,-18]]"), fiji), ["1"]);
    assert_eq!(met(&polygon("[[177,-18],[178,-18],[178,-17],[177,-18]]"), fiji), ["1"]);
    assert!(met(&polygon("[[-177,-18],[-176,-18],[-176,-17],[-177,-18]]"), fiji).is_empty());
}

#[test]
fn longitudes_beyond_180_are_compared_where_they_lie() {
    assert_eq!(met(&polygon("[[368,54],[371,54],[371,57],[368,54]]"), "[9,54,10,55]"), ["1"]);
    assert_eq!(met(&polygon("[[368,50],[375,50],[375,60],[368,60],[368,50]]"), "[9,54,10,55]"), ["1"], "the area lies within");
    assert_eq!(met(&polygon("[[170,0],[190,0],[190,10],[170,10],[170,0]]"), "[-175,4,-174,5]"), ["1"]);
    assert_eq!(met(&polygon("[[-190,0],[-170,0],[-170,10],[-190,10],[-190,0]]"), "[174,4,175,5]"), ["1"]);
    assert!(met(&polygon("[[170,0],[190,0],[190,10],[170,10],[170,0],[180,5]]"), "[-165,4,-164,5]").is_empty());
    let beyond = r#"{"type":"Feature","id":"a","geometry":{"type":"Polygon","coordinates":[[[170,0],[190,0],[190,10],[170,10],[170,0]]]}}"#;
    assert_eq!(met(&polygon("[[-175,4],[-174,4],[-174,5],[-175,4]]"), beyond), ["a"]);
    assert_eq!(met(&polygon("[[-179,-20],[-160,-20],[-160,20],[-179,20],[-179,-20]]"), beyond), ["a"]);
}

#[test]
fn what_is_written_at_180_or_beyond_meets_areas_on_either_side() {
    // Two of these areas touch the cut from the west, where the body's box is not.
    let areas = "[[170,0,180,10],[-176.5,4,-176,5],[-179,0,180,10]]";
    for ring in ["[[180,0],[185,0],[185,10],[180,10],[180,0]]", "[[185,0],[185,10],[180,10],[180,0],[185,0]]"] {
        assert_eq!(met(&polygon(ring), areas), ["2", "3"], "{ring}");
    }
    let feature = |ring: &str| format!(r#"{{"type":"Feature","id":"a","geometry":{}}}"#, polygon(ring));
    let hexagon = feature("[[170,5],[175,0],[187,0],[190,5],[187,10],[175,10],[170,5]]");
    for line in ["[[180,5],[185,5]]", "[[-180,5],[-175,5]]"] {
        assert_eq!(met(&format!(r#"{{"type":"LineString","coordinates":{line}}}"#), &hexagon), ["a"], "{line}");
    }
    let mirrored = feature("[[-170,5],[-175,0],[-187,0],[-190,5],[-187,10],[-175,10],[-170,5]]");
    assert_eq!(met(r#"{"type":"LineString","coordinates":[[-180,5],[-185,5]]}"#, &mirrored), ["a"]);
    let kite = feature("[[170,5],[178,4],[182,5],[178,6],[170,5]]");
    assert_eq!(met(&polygon("[[180,0],[185,0],[185,10],[180,10],[180,0]]"), &kite), ["a"]);
}

#[test]
fn an_edge_that_may_go_either_way_round_meets_what_its_box_meets() {
    assert_eq!(met(&polygon("[[179,-1],[-179,-1],[-179,1],[179,1],[179,-1]]"), "[179.5,0,180,1]"), ["1"]);
}

fn ring(points: &[(i32, i32)], scale: f64) -> Vec<(f64, f64)> {
    let mut ring: Vec<(f64, f64)> = points.iter().map(|(x, y)| (f64::from(*x) * scale, f64::from(*y) * scale)).collect();
    ring.push(ring[0]);
    ring
}

fn rings() -> impl Strategy<Value = Vec<Vec<(i32, i32)>>> {
    proptest::collection::vec(proptest::collection::vec((-8..8, -8..8), 3..7), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// Arbitrary rings, crossing themselves and touching: whatever `geo` says intersects is met.
    #[test]
    fn it_says_what_geo_says(body in rings(), area in proptest::collection::vec((-8..8, -8..8), 3..9), scale in prop_oneof![Just(1.0), Just(0.3)]) {
        let polygons: Vec<Polygon> = body.iter().map(|points| Polygon::new(LineString::from(ring(points, 1.0)), vec![])).collect();
        let area_polygon = Polygon::new(LineString::from(ring(&area, scale)), vec![]);
        let coordinates: Vec<_> = body.iter().map(|points| vec![ring(points, 1.0)]).collect();
        let text = format!(r#"{{"type":"MultiPolygon","coordinates":{}}}"#, serde_json::to_string(&coordinates).unwrap());
        let (extent, _) = measure(text.as_bytes(), &MeasureOptions::default()).unwrap();
        let index = AreaIndex::new(vec![Area { id: "a".into(), polygons: vec![area_polygon.clone()] }]);
        let ours = refine(text.as_bytes(), &extent.bbox.unwrap(), &index, &ScanOptions::default()).unwrap();
        let theirs = MultiPolygon::new(polygons).intersects(&area_polygon);
        prop_assert_eq!(!ours.is_empty(), theirs);
    }

    /// Many areas at once, boxes and triangles side by side, over rings with holes: each is met as if it were alone.
    #[test]
    fn of_many_areas_each_is_met_as_geo_says(
        exteriors in rings(),
        hole in proptest::collection::vec((-8..8, -8..8), 3..5),
        has_frame: bool,
        shift in prop_oneof![Just(0.0), 0.0..1.0],
    ) {
        let hole = ring(&hole, 1.1);
        let frame = vec![(-9.2, -9.2), (9.2, -9.2), (9.2, 9.2), (-9.2, 9.2), (-9.2, -9.2)];
        let mut coordinates: Vec<_> = exteriors.iter().map(|points| vec![ring(points, 1.0)]).collect();
        if has_frame {
            coordinates.push(vec![frame, hole]);
        }
        let text = format!(r#"{{"type":"MultiPolygon","coordinates":{}}}"#, serde_json::to_string(&coordinates).unwrap());
        let polygon = |rings: &Vec<Vec<(f64, f64)>>| {
            Polygon::new(rings[0].clone().into(), rings[1..].iter().map(|ring| ring.clone().into()).collect())
        };
        let body = MultiPolygon::new(coordinates.iter().map(polygon).collect());
        let areas: Vec<Area> = (0..200).map(|n| {
            let (x, y) = (f64::from(n % 20) - 10.0 + shift, f64::from(n / 10) - 10.0);
            let corners = [(x, y), (x + 0.7, y), (x + 0.7, y + 0.7), (x, y + 0.7), (x, y)];
            let corners = if n % 3 == 0 { corners.into_iter().filter(|at| *at != (x + 0.7, y)).collect() } else { corners.to_vec() };
            Area { id: n.to_string().into(), polygons: vec![Polygon::new(corners.into(), vec![])] }
        }).collect();
        let theirs: BTreeSet<usize> =
            areas.iter().enumerate().filter(|(_, area)| body.intersects(&area.polygons[0])).map(|(place, _)| place).collect();
        let (extent, _) = measure(text.as_bytes(), &MeasureOptions::default()).unwrap();
        let index = AreaIndex::new(areas);
        let ours = refine_places(text.as_bytes(), &extent.bbox.unwrap(), &index, &ScanOptions::default()).unwrap();
        prop_assert_eq!(ours, theirs);
    }
}
