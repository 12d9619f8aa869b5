//! The edges of one polygon, for asking what they meet.

use std::collections::BTreeMap;

use geo::{
    Coord, Intersects, Line, Polygon, Rect,
    kernels::{Kernel, Orientation, RobustKernel},
};
use rstar::{AABB, Envelope as _, RTree, primitives::GeomWithData, primitives::Rectangle};

/// The edges of a polygon by their boxes.
#[derive(Debug)]
pub(super) struct EdgeIndex {
    edges: RTree<Edge>,
}

/// An edge and its ring; ring 0 is the exterior.
type Edge = GeomWithData<Rectangle<[f64; 2]>, (Line, usize)>;

impl EdgeIndex {
    pub(super) fn new(polygon: &Polygon) -> Self {
        let rings = std::iter::once(polygon.exterior()).chain(polygon.interiors());
        let edges = rings.enumerate().flat_map(|(ring, line)| {
            line.lines().map(move |line| {
                let [west, south, east, north] = bounds_of(&line);
                Edge::new(Rectangle::from_corners([west, south], [east, north]), (line, ring))
            })
        });
        Self { edges: RTree::bulk_load(edges.collect()) }
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
        if !self.edges.root().envelope().contains_point(&[at.x, at.y]) {
            return false;
        }
        let mut windings: BTreeMap<usize, i32> = BTreeMap::new();
        let east = self.edges.root().envelope().upper()[0];
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
    fn near(&self, [west, south, east, north]: [f64; 4]) -> impl Iterator<Item = &(Line, usize)> {
        self.edges.locate_in_envelope_intersecting(AABB::from_corners([west, south], [east, north])).map(|edge| &edge.data)
    }
}

/// Returns the planar box of a segment.
pub(super) fn bounds_of(line: &Line) -> [f64; 4] {
    let (a, b) = (line.start, line.end);
    [a.x.min(b.x), a.y.min(b.y), a.x.max(b.x), a.y.max(b.y)]
}
