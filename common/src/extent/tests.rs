use super::*;

fn extent_with(body: &str, long_edges: LongEdges) -> Extent {
    measure(body.as_bytes(), &MeasureOptions { long_edges, ..MeasureOptions::default() }).unwrap().0
}

fn bbox(body: &str) -> Option<[f64; 4]> {
    extent_with(body, LongEdges::Suspect).bbox.map(|bbox| bbox.to_array())
}

fn polygon(ring: &str) -> String {
    format!(r#"{{"type":"Polygon","coordinates":[{ring}]}}"#)
}

#[test]
fn a_body_without_a_position_has_no_bbox() {
    for body in [
        r#"{"type":"Feature","geometry":null}"#,
        r#"{"type":"MultiPolygon","coordinates":[]}"#,
        r#"{"type":"Polygon","coordinates":[[]]}"#,
        r#"{"type":"GeometryCollection","geometries":[]}"#,
        r#"{"type":"Point","coordinates":[]}"#,
    ] {
        assert_eq!(bbox(body), None, "{body}");
    }
}

#[test]
fn the_bbox_holds_each_vertex_exactly_and_ignores_a_bbox_member() {
    let body = r#"{"bbox":[0,0,0,9,9,9],"type":"LineString","coordinates":[[-120.65487365123505,1],[-120.1,2,7]]}"#;
    let extent = extent_with(body, LongEdges::Suspect);
    assert_eq!(extent.bbox.unwrap().to_array(), [-120.654_873_651_235_05, 1.0, -120.1, 2.0]);
    assert_eq!((extent.vertex_count, extent.has_z), (2, true));
}

#[test]
fn every_member_of_a_nested_collection_counts() {
    let body = r#"{"type":"GeometryCollection","geometries":[{"type":"Point","coordinates":[1,2]},
        {"type":"GeometryCollection","geometries":[{"type":"LineString","coordinates":[[5,6],[7,-8]]}]}]}"#;
    assert_eq!(bbox(body), Some([1.0, -8.0, 7.0, 6.0]));
}

#[test]
fn features_on_both_sides_of_the_antimeridian_wrap() {
    let body = r#"{"type":"FeatureCollection","features":[
        {"type":"Feature","geometry":{"type":"Point","coordinates":[178,-17]},"properties":null},
        {"type":"Feature","geometry":null,"properties":null},
        {"type":"Feature","geometry":{"type":"Point","coordinates":[-178,-18]},"properties":null}]}"#;
    assert_eq!(bbox(body), Some([178.0, -18.0, -178.0, -17.0]));
}

#[test]
fn an_unsplit_polygon_is_never_guessed_narrow() {
    let ring = "[[179,-1],[-179,-1],[-179,1],[179,1],[179,-1]]";
    let suspect = extent_with(&polygon(ring), LongEdges::Suspect);
    assert_eq!(suspect.bbox.unwrap().to_array(), [-180.0, -1.0, 180.0, 1.0]);
    assert!(suspect.suspect);
    let crossing = extent_with(&polygon(ring), LongEdges::Cross);
    assert_eq!(crossing.bbox.unwrap().to_array(), [179.0, -1.0, -179.0, 1.0]);
    assert!(!crossing.suspect);
    let line = r#"{"type":"LineString","coordinates":[[179,0],[-179,0]]}"#;
    assert!(extent_with(line, LongEdges::Suspect).suspect);
    assert_eq!(extent_with(line, LongEdges::Cross).bbox.unwrap().to_array(), [179.0, 0.0, -179.0, 0.0]);
}

#[test]
fn only_the_suspect_part_of_many_widens_the_bbox() {
    let body = r#"{"type":"MultiLineString","coordinates":[[[1,1],[2,2]],[[-100,5],[100,6]]]}"#;
    assert_eq!(bbox(body), Some([-180.0, 1.0, 180.0, 6.0]));
}

#[test]
fn a_cap_around_a_pole_takes_the_pole() {
    let cut = "[[-180,60],[180,60],[180,90],[-180,90],[-180,60]]";
    assert_eq!(bbox(&polygon(cut)), Some([-180.0, 60.0, 180.0, 90.0]));
    assert!(!extent_with(&polygon(cut), LongEdges::Suspect).suspect);
    for around in ["[[-150,70],[-50,71],[50,72],[150,73],[-150,70]]", "[[0,70],[90,71],[180,72],[270,73],[360,70]]"] {
        for long_edges in [LongEdges::Suspect, LongEdges::Cross] {
            let extent = extent_with(&polygon(around), long_edges);
            assert_eq!(extent.bbox.unwrap().to_array(), [-180.0, 70.0, 180.0, 90.0], "{around}");
        }
    }
    let south = "[[-150,-70],[150,-73],[50,-72],[-50,-71],[-150,-70]]";
    assert_eq!(bbox(&polygon(south)), Some([-180.0, -90.0, 180.0, -70.0]));
}

#[test]
fn a_cap_drawn_out_to_the_cut_takes_the_pole_and_is_suspect() {
    let cap = extent_with(&polygon("[[-180,60],[-90,61],[0,60],[90,61],[180,60],[-180,60]]"), LongEdges::Suspect);
    assert_eq!((cap.bbox.unwrap().to_array(), cap.suspect), ([-180.0, 60.0, 180.0, 90.0], true));
}

#[test]
fn right_beside_the_antimeridian_no_turn_is_lost() {
    let beside = 180.0_f64.next_down();
    assert_eq!(bbox(&polygon(&format!("[[{beside},0],[190,0],[190,1],[{beside},0]]"))), Some([beside, 0.0, -170.0, 1.0]));
}

#[test]
fn a_slice_that_touches_the_pole_keeps_its_longitudes() {
    assert_eq!(bbox(&polygon("[[10,60],[20,60],[20,90],[10,90],[10,60]]")), Some([10.0, 60.0, 20.0, 90.0]));
}

#[test]
fn antarctica_closed_along_a_parallel_keeps_its_southern_edge() {
    let ring = "[[-180,-70],[-90,-65],[0,-68],[90,-66],[180,-70],[180,-85],[-180,-85],[-180,-70]]";
    let extent = extent_with(&polygon(ring), LongEdges::Suspect);
    assert_eq!(extent.bbox.unwrap().to_array(), [-180.0, -85.0, 180.0, -65.0]);
    assert!(!extent.suspect);
}

#[test]
fn orientation_and_closing_do_not_matter() {
    let expected = Some([0.0, 0.0, 2.0, 1.0]);
    for ring in ["[[0,0],[2,0],[2,1],[0,0]]", "[[0,0],[2,1],[2,0],[0,0]]", "[[0,0],[2,0],[2,1]]"] {
        assert_eq!(bbox(&polygon(ring)), expected);
    }
}

#[test]
fn longitudes_beyond_180_are_normalised() {
    assert_eq!(bbox(&polygon("[[368.5,54],[371,54],[371,57],[368.5,54]]")), Some([8.5, 54.0, 11.0, 57.0]));
    assert_eq!(bbox(&polygon("[[12,40],[738,40],[738,41],[12,40]]")), Some([-180.0, 40.0, 180.0, 41.0]));
    assert_eq!(bbox(r#"{"type":"Point","coordinates":[180,5]}"#), Some([180.0, 5.0, 180.0, 5.0]));
    assert_eq!(bbox(r#"{"type":"Point","coordinates":[-190,5]}"#), Some([170.0, 5.0, 170.0, 5.0]));
}
