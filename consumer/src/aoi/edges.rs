//! The edges of one polygon, for asking what they meet.

use std::collections::BTreeMap;

use geo::{
    Coord, Intersects, Line, Polygon, Rect,
    kernels::{Kernel, Orientation, RobustKernel},
};

use super::tree::BoxTree;

/// The edges of a polygon by their boxes, each with its ring; ring 0 is the exterior.
#[derive(Debug)]
pub(super) struct EdgeIndex {
    edges: BoxTree<(Line, usize)>,
}

impl EdgeIndex {
    pub(super) fn new(polygon: &Polygon) -> Self {
        let rings = std::iter::once(polygon.exterior()).chain(polygon.interiors());
        let edges = rings.enumerate().flat_map(|(ring, line)| line.lines().map(move |line| (bounds_of(&line), (line, ring))));
        Self { edges: BoxTree::new(edges) }
    }

    /// Tells whether an edge and a segment have a point in common.
    pub(super) fn cross(&self, segment: &Line) -> bool {
        self.near(bounds_of(segment)).any(|(edge, _)| edge.intersects(segment))
    }

    /// Tells whether the polygon and a planar box have a point in common; boundaries count.
    pub(super) fn meet(&self, planar: [f64; 4]) -> bool {
        let [west, south, east, north] = planar;
        let bounds = Rect::new((west, south), (east, north));
        // Without an edge in it, the box is inside or outside as a whole.
        self.near(planar).any(|(edge, _)| edge.intersects(&bounds)) || self.hold(Coord { x: west, y: south })
    }

    /// Tells whether the polygon holds a position; its boundary counts.
    ///
    /// As in `geo`, a ring holds what it winds around, and a hole takes away what lies within it but not on it.
    pub(super) fn hold(&self, at: Coord) -> bool {
        let [west, south, east, north] = self.edges.bounds();
        if at.x < west || at.x > east || at.y < south || at.y > north {
            return false;
        }
        let mut windings: BTreeMap<usize, i32> = BTreeMap::new();
        for (line, ring) in self.near([at.x, at.y, east, at.y]) {
            if line.intersects(&at) {
                return true;
            }
            let (a, b) = (line.start, line.end);
            if (a.y > at.y) != (b.y > at.y) {
                let (low, high) = if a.y < b.y { (a, b) } else { (b, a) };
                if RobustKernel::orient2d(low, high, at) == Orientation::CounterClockwise {
                    *windings.entry(*ring).or_default() += if a.y < b.y { 1 } else { -1 };
                }
            }
        }
        let within = |ring: &usize| windings.get(ring).is_some_and(|winding| *winding != 0);
        within(&0) && !windings.keys().any(|ring| *ring != 0 && within(ring))
    }

    /// Returns the edges whose boxes meet a planar box, and their rings.
    fn near(&self, planar: [f64; 4]) -> impl Iterator<Item = &(Line, usize)> {
        self.edges.near(planar).map(|(_, edge)| edge)
    }
}

/// Returns the planar box of a segment.
pub(super) fn bounds_of(line: &Line) -> [f64; 4] {
    let (a, b) = (line.start, line.end);
    [a.x.min(b.x), a.y.min(b.y), a.x.max(b.x), a.y.max(b.y)]
}
