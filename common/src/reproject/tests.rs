use crate::{
    cover::Cover,
    extent::{Extent, MeasureOptions, measure},
    geojson::{CrsMember, Epsg, ScanOptions},
};

use super::*;

fn options(epsg: u16) -> MeasureOptions {
    let scan = ScanOptions { crs: CrsMember::Is(Epsg(epsg)), ..ScanOptions::default() };
    MeasureOptions { scan, cover_bytes: 400, ..MeasureOptions::default() }
}

fn measured(epsg: u16, geometry: &str) -> Extent {
    measure(geometry.as_bytes(), &options(epsg)).unwrap().0
}

fn polygon(ring: &[[f64; 2]]) -> String {
    format!(r#"{{"type":"Polygon","coordinates":[{ring:?}]}}"#)
}

/// Against PROJ 9.5.1 by pyproj 3.7.2, which has better shifts of datum for some.
#[test]
fn positions_are_where_proj_has_them() {
    for (epsg, from, to, metres) in [
        (3857, [1000000.0, 6000000.0], [8.983152841, 47.353704702], 0.001),
        (32632, [691608.25, 5334760.5], [11.575561280, 48.137222888], 0.001),
        (32701, [300000.0, 7900000.0], [-178.899767660, -18.982771613], 0.001),
        (2056, [2600000.0, 1200000.0], [7.438632421, 46.951082772], 1.0),
        (3035, [4321000.0, 3210000.0], [10.000000000, 52.000000000], 0.001),
        (3413, [-500000.0, 700000.0], [170.537677792, 82.071117461], 0.001),
        (27700, [530000.0, 180000.0], [-0.128353940, 51.503990828], 6.0),
        (28992, [155000.0, 463000.0], [5.387203508, 52.155172301], 1.0),
        (3832, [3339000.0, -2000000.0], [179.994747337, -17.790560386], 0.001),
        (4314, [8.5, 50.25], [8.499032165, 50.248822947], 5.0),
        (2263, [987000.0, 210000.0], [-73.990075844, 40.743077627], 0.001),
        (5070, [-500000.0, 1500000.0], [-101.630719940, 36.414696624], 0.001),
    ] {
        let [x, y] = Transform::from_epsg(Epsg(epsg)).unwrap().apply(from).unwrap();
        let apart = f64::hypot((x - to[0]) * to[1].to_radians().cos(), y - to[1]) * 111_195.0;
        assert!(apart < metres, "EPSG:{epsg} {from:?}: [{x}, {y}] is {apart} m beside {to:?}");
    }
}

#[test]
fn an_edge_that_bulges_in_longitude_and_latitude_is_within_bbox_and_cover() {
    // System by system: an edge of some hundred kilometres each, and one of a few.
    let systems = [
        (32632, [200_000.0, 5_000_000.0], [900_000.0, 5_400_000.0]),
        (2056, [2_485_000.0, 1_075_000.0], [2_834_000.0, 1_296_000.0]),
        (3035, [2_700_000.0, 1_500_000.0], [6_000_000.0, 4_500_000.0]),
        (3857, [-2_000_000.0, -5_000_000.0], [2_000_000.0, 5_000_000.0]),
        (3413, [-2_000_000.0, -1_000_000.0], [1_500_000.0, -900_000.0]),
        (3832, [2_000_000.0, -2_000_000.0], [5_000_000.0, -1_900_000.0]),
        (4314, [6.0, 47.0], [14.0, 55.0]),
    ];
    for (epsg, a, b) in systems {
        let transform = Transform::from_epsg(Epsg(epsg)).unwrap();
        for b in [b, densify::along(a, b, 0.01)] {
            let extent = measured(epsg, &format!(r#"{{"type":"LineString","coordinates":[{a:?},{b:?}]}}"#));
            assert_eq!((extent.vertex_count, extent.suspect), (2, false), "EPSG:{epsg}");
            let bbox = extent.bbox.unwrap();
            let cover = Cover::new(bbox, extent.cells.as_ref()).unwrap();
            for share in 0..=1_000 {
                let [x, y] = transform.apply(densify::along(a, b, f64::from(share) / 1_000.0)).unwrap();
                assert!(bbox.planar().any(|[w, s, e, n]| x >= w && x <= e && y >= s && y <= n), "EPSG:{epsg}: [{x}, {y}]");
                assert!(cover.meets([x, y, x, y]), "EPSG:{epsg}: [{x}, {y}] is not in the cover");
            }
        }
    }
}

#[test]
fn a_ring_around_the_pole_takes_the_pole_and_one_across_180_goes_the_short_way() {
    let square = |x: f64, y: f64, half: f64| {
        polygon(&[[x - half, y - half], [x + half, y - half], [x + half, y + half], [x - half, y + half], [x - half, y - half]])
    };
    let pole = measured(3413, &square(0.0, 0.0, 1e6));
    let [west, south, east, north] = pole.bbox.unwrap().to_array();
    assert_eq!(([west, east, north], pole.suspect), ([-180.0, 180.0, 90.0], false));
    assert!(south > 76.0 && south < 77.5, "{south}");
    // Half a ring lies on the pole itself.
    let beside = measured(3413, &polygon(&[[-1e6, 0.0], [1e6, 0.0], [0.0, 1e6], [-1e6, 0.0]]));
    assert_eq!(beside.bbox.unwrap().to_array()[3], 90.0);
    let across = measured(3832, &square(3_339_000.0, -2_000_000.0, 100_000.0));
    let [west, _, east, _] = across.bbox.unwrap().to_array();
    assert!(west > 178.0 && east < -178.0, "{west} {east}");
}

#[test]
fn what_cannot_be_transformed_is_said() {
    let error = |epsg, text: &str| measure(text.as_bytes(), &options(epsg)).unwrap_err().problem;
    let point = r#"{"type":"Point","coordinates":[1,2]}"#;
    assert!(error(9, point).contains("EPSG:9 is no reference system"), "{}", error(9, point));
    assert!(error(32632, r#"{"type":"Point","coordinates":[1e300,2]}"#).contains("is no position in EPSG:32632"));
    assert!(error(4314, r#"{"type":"Point","coordinates":[8,91]}"#).contains("is no position in EPSG:4314"));
    assert!(error(4314, r#"{"type":"LineString","coordinates":[[8,50],[1e9,50]]}"#).contains("is no position in EPSG:4314"));
    // Around the pole once more than longitudes may go.
    let round: Vec<[f64; 2]> =
        (0..=44).map(|n| f64::from(n).to_radians() * 90.0).map(|at| [1e6 * at.cos(), 1e6 * at.sin()]).collect();
    assert!(error(3413, &format!(r#"{{"type":"LineString","coordinates":{round:?}}}"#)).contains("is no position in EPSG:3413"));
    let other = r#"{"type":"Point","coordinates":[2600000,1200000],"crs":{"type":"name","properties":{"name":"urn:ogc:def:crs:EPSG::21781"}}}"#;
    assert!(error(2056, other).contains("is not EPSG:2056, which the body is said to be in"), "{}", error(2056, other));
    assert!(measure(other.replace("21781", "2056").as_bytes(), &options(2056)).is_ok());
    let far = r#"{"type":"LineString","coordinates":[[-3e6,-1e6],[3e6,-9e5]]}"#;
    let edges =
        format!(r#"{{"type":"MultiLineString","coordinates":[{}]}}"#, vec![far[35..far.len() - 1].to_owned(); 400].join(","));
    assert!(error(3413, &edges).contains("densify"), "{}", error(3413, &edges));
}
