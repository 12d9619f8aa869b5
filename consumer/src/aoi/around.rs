//! What lies within a distance of points and lines, as polygons that are never smaller.
//!
//! A circle is drawn with [`CORNERS`] corners on the ellipsoid (Karney 2013, as `geo`'s `Geodesic` has it), half a per
//! cent too wide so that its sides stay outside it. What lies along a segment is the hull of the circles at its ends: on
//! the way between two latitudes a circle is never wider, in degrees, than the wider mean of both. Near a pole, where a
//! circle has no shape in longitude and latitude, all longitudes are taken.

use geo::{ConvexHull, Coord, Destination, Geodesic, LineString, MultiPoint, Point, Polygon};

/// The largest distance, in metres.
pub(super) const MOST_METRES: f64 = 1_000_000.0;

const CORNERS: u32 = 128;

/// How much further than asked for the corners lie: 128 of them cut off 0.03 % of a circle's radius, the rest is for what
/// longitude and latitude bend.
const SLACK: f64 = 1.005;

/// Beyond this latitude a circle takes all longitudes.
const POLAR_DEGREES: f64 = 85.0;

/// Returns polygons that hold whatever lies within `metres` of a point or a line of positions.
pub(super) fn around(line: &[Coord], metres: f64) -> Vec<Polygon> {
    match line {
        [] => Vec::new(),
        [point] => vec![hull(&[*point], metres)],
        line => line.windows(2).map(|ends| hull(ends, metres)).collect(),
    }
}

fn hull(ends: &[Coord], metres: f64) -> Polygon {
    // A degree of latitude is nowhere shorter than 110 km. A circle that holds a pole may have no corner near it.
    let degrees = metres * SLACK / 110_000.0;
    let north = ends.iter().fold(f64::NEG_INFINITY, |north, end| north.max(end.y + degrees));
    let south = ends.iter().fold(f64::INFINITY, |south, end| south.min(end.y - degrees));
    let [south, north] = match (south < -POLAR_DEGREES, north > POLAR_DEGREES) {
        (false, false) => return MultiPoint(ends.iter().flat_map(|end| circle(*end, metres)).collect()).convex_hull(),
        (is_south, is_north) => [if is_south { -90.0 } else { south }, if is_north { 90.0 } else { north }],
    };
    let band = [(-180.0, south), (180.0, south), (180.0, north), (-180.0, north), (-180.0, south)];
    Polygon::new(LineString::from(band.to_vec()), Vec::new())
}

/// Returns the corners around a position, their longitudes beside its own.
fn circle(centre: Coord, metres: f64) -> impl Iterator<Item = Point> {
    let origin = Point::new(turned(centre.x, 0.0), centre.y);
    (0..CORNERS).map(move |corner| {
        let bearing = 360.0 * f64::from(corner) / f64::from(CORNERS);
        let at = Geodesic.destination(origin, bearing, metres * SLACK);
        Point::new(turned(at.x(), centre.x), at.y())
    })
}

/// Returns a longitude by whole turns as near as can be to another.
fn turned(x: f64, near: f64) -> f64 {
    x + 360.0 * ((near - x) / 360.0).round()
}

#[cfg(test)]
mod tests {
    use super::*;
    use geo::{BoundingRect, Contains, Intersects};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn whatever_is_within_the_distance_is_within_the_polygons(
            x in -180.0_f64..180.0, y in -90.0_f64..90.0, dx in -60.0_f64..60.0, dy in -40.0_f64..40.0,
            metres in 1.0_f64..MOST_METRES, along in 0.0_f64..=1.0, bearing in 0.0_f64..360.0, share in 0.0_f64..=1.0,
        ) {
            let ends = [Coord { x, y }, Coord { x: x + dx, y: f64::clamp(y + dy, -90.0, 90.0) }];
            let on_line = Coord { x: x + along * dx, y: y + along * (ends[1].y - y) };
            let (distance, one, both) = (metres * share, [on_line], ends);
            let origin = Point::new(turned(on_line.x, 0.0), on_line.y);
            let at = Geodesic.destination(origin, bearing, distance);
            for line in [&one[..], &both[..]] {
                let polygons = around(line, metres);
                let holds = |turn: f64| {
                    let at = Point::new(turned(at.x(), on_line.x) + turn, at.y());
                    polygons.iter().any(|polygon| polygon.intersects(&at))
                };
                prop_assert!([0.0, 360.0, -360.0].into_iter().any(holds), "{at:?} of {line:?} within {metres} in {polygons:?}");
            }
        }
    }

    #[test]
    fn a_circle_is_hardly_wider_than_asked_for_and_takes_the_pole_when_it_holds_it() {
        let polygons = around(&[Coord { x: 0.0, y: 0.0 }], 111_195.0);
        let bounds = polygons[0].bounding_rect().unwrap();
        assert!((0.99..1.015).contains(&bounds.max().x) && (0.99..1.015).contains(&bounds.max().y), "{bounds:?}");
        let polar = around(&[Coord { x: 20.0, y: 89.0 }], 300_000.0);
        assert!(polar[0].contains(&Point::new(-160.0, 89.9)));
    }
}
