//! One shape of an area: a box or a polygon.

use std::sync::OnceLock;

use geo::{Coord, Intersects, Line, Polygon, Rect};

use super::edges::EdgeIndex;

/// A shape as the index holds it: a box is its bounds and nothing else.
#[derive(Clone, Copy)]
pub(super) struct Shape<'a> {
    /// Its number among all shapes, in the order of the areas.
    pub(super) number: u32,
    /// Its planar box.
    pub(super) bounds: [f64; 4],
    pub(super) outline: Option<&'a Outline>,
}

/// A polygon that is no box.
#[derive(Debug)]
pub(super) struct Outline {
    polygon: Polygon,
    /// From the first time that they are needed: of a million areas, most are never near anything.
    edges: OnceLock<Box<EdgeIndex>>,
}

impl Outline {
    /// Takes a polygon; returns `None` for one that is its own bounding box.
    pub(super) fn new(polygon: Polygon) -> Option<Self> {
        (!is_own_box(&polygon)).then(|| Self { polygon, edges: OnceLock::new() })
    }

    pub(super) fn polygon(&self) -> &Polygon {
        &self.polygon
    }

    fn edges(&self) -> &EdgeIndex {
        self.edges.get_or_init(|| Box::new(EdgeIndex::new(&self.polygon)))
    }
}

impl Shape<'_> {
    /// Tells whether it has a point in common with a planar box which is known to meet its bounds.
    pub(super) fn meets_box(&self, planar: [f64; 4]) -> bool {
        self.outline.is_none_or(|outline| outline.edges().meet(planar))
    }

    /// Tells whether its boundary meets a segment, of which the bounds are known to meet its own. Of a box, its inside is
    /// as good.
    pub(super) fn meets_segment(&self, segment: &Line) -> bool {
        match self.outline {
            Some(outline) => outline.edges().cross(segment),
            None => self.rect().intersects(segment),
        }
    }

    /// Tells whether it holds a position; its boundary counts.
    pub(super) fn holds(&self, at: Coord) -> bool {
        match self.outline {
            Some(outline) => outline.edges().hold(at),
            None => self.rect().intersects(&at),
        }
    }

    /// Returns a position of its boundary.
    pub(super) fn probe(&self) -> Coord {
        let corner = Coord { x: self.bounds[0], y: self.bounds[1] };
        self.outline.and_then(|outline| outline.polygon.exterior().0.first().copied()).unwrap_or(corner)
    }

    fn rect(&self) -> Rect {
        let [west, south, east, north] = self.bounds;
        Rect::new((west, south), (east, north))
    }
}

/// Tells whether a polygon is its own bounding box.
pub(crate) fn is_own_box(polygon: &Polygon) -> bool {
    let [a, b, c, d, e] = polygon.exterior().0[..] else { return false };
    let turns = a.x == d.x && b.x == c.x && a.y == b.y && c.y == d.y || a.y == d.y && b.y == c.y && a.x == b.x && c.x == d.x;
    a == e && turns && polygon.interiors().is_empty()
}
