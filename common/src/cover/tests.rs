use super::*;
use crate::{
    extent::{Extent, LongEdges, MeasureOptions, measure},
    limits,
};

fn extent(body: &str, room: usize) -> Extent {
    measure(body.as_bytes(), &MeasureOptions { cover_bytes: room, ..MeasureOptions::default() }).unwrap().0
}

fn cover(body: &str) -> Cover {
    let extent = extent(body, limits::COVER_BYTES);
    Cover::new(extent.bbox.unwrap(), extent.cells.as_ref()).unwrap()
}

fn polygon(rings: &[&[[f64; 2]]]) -> String {
    format!(r#"{{"type":"Polygon","coordinates":{rings:?}}}"#)
}

/// Returns the share of the bbox that the cover leaves.
fn share(cover: &Cover) -> f64 {
    let area = |boxes: &[[f64; 4]]| boxes.iter().map(|[w, s, e, n]| (e - w) * (n - s)).sum::<f64>();
    area(&cover.boxes()) / area(&cover.bbox().planar().collect::<Vec<_>>())
}

#[test]
fn a_box_a_point_and_an_empty_body_have_no_cells() {
    for body in [
        polygon(&[&[[0.3, 0.0], [9.1, 0.0], [9.1, 7.7], [0.3, 7.7], [0.3, 0.0]]]),
        r#"{"type":"Point","coordinates":[180,90]}"#.to_owned(),
        r#"{"type":"MultiPolygon","coordinates":[]}"#.to_owned(),
    ] {
        assert_eq!(extent(&body, limits::COVER_BYTES).cells, None, "{body}");
    }
}

#[test]
fn a_triangle_fills_half_of_its_box_and_its_cover_little_more() {
    let triangle = cover(&polygon(&[&[[0.0, 0.0], [40.0, 0.0], [0.0, 40.0], [0.0, 0.0]]]));
    assert!((0.5..0.52).contains(&share(&triangle)), "{}", share(&triangle));
    assert!(triangle.meets([20.0, 20.0, 21.0, 21.0]), "its edge");
    assert!(!triangle.meets([22.0, 22.0, 40.0, 40.0]));
}

#[test]
fn a_hole_is_left_out_and_its_edge_is_not() {
    let outer: &[[f64; 2]] = &[[0.0, 0.0], [40.0, 0.0], [40.0, 40.0], [0.0, 40.0], [0.0, 0.0]];
    let hole: &[[f64; 2]] = &[[5.0, 5.0], [35.0, 5.0], [35.0, 35.0], [5.0, 35.0], [5.0, 5.0]];
    let ring = cover(&polygon(&[outer, hole]));
    assert!(!ring.meets([10.0, 10.0, 30.0, 30.0]));
    assert!(ring.meets([10.0, 10.0, 35.0, 30.0]) && ring.meets([1.0, 1.0, 2.0, 2.0]));
    let island: &[[f64; 2]] = &[[10.0, 10.0], [12.0, 10.0], [12.0, 12.0], [10.0, 10.0]];
    let body = format!(r#"{{"type":"MultiPolygon","coordinates":[{:?},{:?}]}}"#, [outer, hole], [island]);
    assert!(cover(&body).meets([11.5, 10.5, 11.6, 10.6]), "an island in the hole");
}

#[test]
fn a_ring_that_winds_twice_is_not_taken_for_a_hole() {
    let twice =
        [[0.0, 0.0], [30.0, 0.0], [30.0, 30.0], [0.0, 30.0], [0.0, 0.0], [20.0, 0.0], [20.0, 20.0], [0.0, 20.0], [0.0, 0.0]];
    assert!(
        cover(&polygon(&[&twice, &[[25.0, 25.0], [28.0, 25.0], [28.0, 28.0], [25.0, 25.0]]])).meets([10.0, 10.0, 10.5, 10.5])
    );
}

#[test]
fn both_sides_of_the_antimeridian_are_covered_and_nothing_between() {
    let parts = |at: f64| format!("[[[{at},0],[{},0],[{at},1],[{at},0]]]", at + 1.0);
    let fiji = format!(r#"{{"type":"MultiPolygon","coordinates":[{},{},{}]}}"#, parts(160.0), parts(179.0), parts(-180.0));
    let fiji = cover(&fiji);
    assert_eq!(fiji.bbox().to_array(), [160.0, 0.0, -179.0, 1.0]);
    for west in [160.1, 179.1, -179.9] {
        assert!(fiji.meets([west, 0.1, west + 0.1, 0.2]), "{west}");
    }
    assert!(!fiji.meets([162.0, 0.0, 178.0, 1.0]) && share(&fiji) < 0.1);
    assert!(fiji.meets([180.0, 0.0, 180.0, 0.0]) && fiji.meets([-180.0, 1.0, -180.0, 1.0]));
    let unrolled = cover(r#"{"type":"LineString","coordinates":[[530,0],[560,10]]}"#);
    assert!(unrolled.meets([175.0, 1.5, 175.2, 1.8]) && unrolled.meets([-175.1, 4.9, -174.9, 5.1]));
    assert!(!unrolled.meets([170.0, 5.0, 180.0, 10.0]));
}

#[test]
fn points_far_apart_leave_out_what_lies_between() {
    let points = cover(r#"{"type":"MultiPoint","coordinates":[[-170,-60],[0,0.001],[169.99,70]]}"#);
    assert!(share(&points) < 1e-6, "{}", share(&points));
    assert!(points.meets([0.0, 0.0, 0.01, 0.01]) && points.meets([169.9, 69.9, 170.0, 70.1]));
}

#[test]
fn what_lies_on_the_cut_is_covered_on_both_sides_and_no_side_is_rounded_away() {
    for (points, at) in [
        ("[170,0],[-180,10]", [-180.0, 10.0]),
        ("[180,0],[-170,10]", [180.0, 0.0]),
        ("[170,0],[-100.1,10]", [-100.1, 10.0]),
        ("[170,0],[-66.9499,10]", [-66.9499, 10.0]),
    ] {
        let body = format!(r#"{{"type":"MultiPoint","coordinates":[{points}]}}"#);
        let cover = cover(&body);
        assert!(cover.meets([at[0], at[1], at[0], at[1]]), "{body}");
        assert_eq!(holds(body.as_bytes(), &cover, 0.0, &Default::default()), Ok(true), "{body}");
    }
    let beyond = r#"{"type":"LineString","coordinates":[[530,0],[540,10]]}"#;
    assert_eq!(holds(beyond.as_bytes(), &cover(beyond), 0.0, &Default::default()), Ok(true));
}

#[test]
fn a_scribble_over_half_the_earth_takes_bounded_work_and_memory() {
    let scribble = |kind: &str, open: &str, close: &str| {
        let positions = vec!["[0,-90],[1,90]"; 100_000].join(",");
        extent(&format!(r#"{{"type":"{kind}","coordinates":{open}{positions}{close}}}"#), limits::COVER_BYTES)
    };
    assert_eq!(scribble("LineString", "[", "]").cells, None);
    assert_eq!(scribble("Polygon", "[[", "]]").cells, None);
}

#[test]
fn a_cap_covers_its_pole_whichever_way_it_is_drawn() {
    for around in ["[[-150,70],[-50,71],[50,72],[150,73],[-150,70]]", "[[0,70],[90,71],[180,72],[270,73],[360,70]]"] {
        let options =
            MeasureOptions { long_edges: LongEdges::Cross, cover_bytes: limits::COVER_BYTES, ..MeasureOptions::default() };
        let body = format!(r#"{{"type":"Polygon","coordinates":[{around}]}}"#);
        let (extent, _) = measure(body.as_bytes(), &options).unwrap();
        let cap = Cover::new(extent.bbox.unwrap(), extent.cells.as_ref()).unwrap();
        for west in [-180.0, -90.0, 0.0, 170.0] {
            assert!(cap.meets([west, 89.0, west + 5.0, 90.0]), "{around}");
        }
    }
}

#[test]
fn a_suspect_body_may_be_anywhere_in_its_box() {
    let unsplit = extent(r#"{"type":"LineString","coordinates":[[179,0],[-179,50]]}"#, limits::COVER_BYTES);
    assert!(unsplit.suspect && unsplit.cells.is_none());
}

#[test]
fn cells_fit_the_room_there_is_and_more_room_says_more() {
    let coast: Vec<[f64; 2]> = (0..4_000)
        .map(|n| {
            let (angle, wobble) = (f64::from(n) / 4_000.0 * std::f64::consts::TAU, f64::from(n * n % 977) / 977.0);
            [10.0 + (20.0 + 0.3 * wobble) * angle.cos(), (15.0 + 0.3 * wobble) * angle.sin()]
        })
        .collect();
    let body = polygon(&[&coast]);
    let mut last = 1.0;
    for room in [20, 50, 100, 200, 400] {
        let extent = extent(&body, room);
        let cells = extent.cells.unwrap();
        assert!(cells.as_bytes().len() <= room, "{} bytes of {room}", cells.as_bytes().len());
        let share = share(&Cover::new(extent.bbox.unwrap(), Some(&cells)).unwrap());
        assert!(share < last, "{room}: {share}");
        last = share;
    }
}

#[test]
fn what_no_writer_makes_is_an_error_and_never_a_panic() {
    let read = |bbox, bytes: &[u8]| Cover::new(bbox, Some(&Cells::from_bytes(bytes)));
    assert!(read(Bbox::WORLD, &[1]).is_err());
    assert!(read(Bbox::WORLD, &[1, 0, 3, 7]).is_err(), "64,800 roots");
    assert!(read(Bbox::WORLD, &[1, 200, 3, 7]).is_err(), "no such level");
    assert!(read(Bbox::WORLD, &[1, 253, 252]).is_err(), "deepest above the roots");
    assert!(read(Bbox::WORLD, &[2, 9, 9, 9]).is_ok_and(|cover| cover.meets([0.0; 4])), "a kind that is not known");
    let mut seed = 1_u32;
    for length in 3..400 {
        let mut bytes = vec![1, 250, 10];
        bytes.extend((3..length).map(|_| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 24) as u8
        }));
        let _ = read(Bbox::WORLD, &bytes).map(|cover| cover.boxes());
    }
}
