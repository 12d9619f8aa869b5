//! Whether a box that somebody declared holds a body. The declared box need not be the smallest: producers in other
//! languages write the planar minimum and maximum, which is wider across the antimeridian and right all the same.

use super::{edges::Edges, longitudes::planar};
use crate::{
    Bbox,
    geojson::{GeometryType, Position, ScanError, ScanOptions, Visitor},
    reproject,
};

/// Tells whether `declared` holds every part of the body, give or take `tolerance` degrees. Of a part with an edge that
/// may be meant either way round, it need hold the positions.
///
/// # Errors
/// What [`reproject::scan`] rejects.
pub fn holds(body: &[u8], declared: &Bbox, tolerance: f64, options: &ScanOptions) -> Result<bool, ScanError> {
    let mut check = Check { declared, tolerance, holds: true, in_rings: false, edges: None, long: false, part: EMPTY };
    reproject::scan(body, options, &mut check)?;
    Ok(check.holds)
}

/// West, south, east and north of nothing.
const EMPTY: [f64; 4] = [f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY];

struct Check<'a> {
    declared: &'a Bbox,
    tolerance: f64,
    holds: bool,
    in_rings: bool,
    edges: Option<Edges>,
    long: bool,
    part: [f64; 4],
}

impl Check<'_> {
    fn must_hold(&mut self, [west, south, east, north]: [f64; 4]) {
        for [west, east] in planar(west, east) {
            let inside = Bbox::new(west, south, east, north).is_ok_and(|piece| self.declared.contains(&piece, self.tolerance));
            self.holds &= inside;
        }
    }
}

impl Visitor for Check<'_> {
    fn begin_geometry(&mut self, kind: GeometryType) {
        self.in_rings = matches!(kind, GeometryType::Polygon | GeometryType::MultiPolygon);
    }

    fn begin_part(&mut self) {
        (self.part, self.long) = (EMPTY, false);
    }

    fn begin_line(&mut self) {
        self.edges = Some(Edges::default());
    }

    fn position(&mut self, Position { x, y, .. }: Position) {
        self.must_hold([x, y, x, y]);
        let [west, south, east, north] = self.part;
        self.part = [west.min(x), south.min(y), east.max(x), north.max(y)];
        self.long |= self.edges.as_mut().is_some_and(|edges| edges.take(x));
    }

    fn end_line(&mut self) {
        if let Some(edges) = self.edges.take().filter(|_| self.in_rings) {
            self.long |= edges.close().closes_long;
        }
    }

    fn end_part(&mut self) {
        if !self.long && self.part[0] <= self.part[2] {
            self.must_hold(self.part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(body: &str, [west, south, east, north]: [f64; 4]) -> bool {
        let declared = Bbox::new(west, south, east, north).unwrap();
        holds(body.as_bytes(), &declared, 0.0, &ScanOptions::default()).unwrap()
    }

    #[test]
    fn a_planar_box_across_the_antimeridian_holds_and_one_that_leaves_a_part_out_does_not() {
        let parts = r#"{"type":"MultiPolygon","coordinates":[[[[166,-47],[178,-47],[178,-34],[166,-47]]],[[[-177,-44],[-176,-44],[-176,-43],[-177,-44]]]]}"#;
        assert!(held(parts, [-177.0, -47.0, 178.0, -34.0]));
        assert!(held(parts, [166.0, -47.0, -176.0, -34.0]));
        assert!(!held(parts, [166.0, -47.0, -176.5, -34.0]));
        assert!(!held(parts, [166.0, -47.0, 178.0, -34.0]));
    }

    #[test]
    fn a_part_must_be_held_between_its_vertices_too() {
        let wide = r#"{"type":"LineString","coordinates":[[-80,0],[80,0]]}"#;
        assert!(held(wide, [-80.0, 0.0, 80.0, 0.0]));
        assert!(!held(wide, [70.0, 0.0, -70.0, 0.0]), "both ends are inside, and what lies between is not");
        let unsplit = r#"{"type":"LineString","coordinates":[[179,0],[-179,0]]}"#;
        assert!(held(unsplit, [-179.0, 0.0, 179.0, 0.0]));
        assert!(held(unsplit, [179.0, 0.0, -179.0, 0.0]));
    }
}
