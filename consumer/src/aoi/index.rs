//! The areas by their boxes. The only module that names `rstar`; its `AABB` and `Envelope` are boxes, not ours.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::OnceLock,
};

use geo::{
    Coord, Intersects, Line, Polygon, Rect,
    kernels::{Kernel, Orientation, RobustKernel},
};
use geoclaim_common::{Bbox, cover::Cover};
use rstar::{AABB, RTree, primitives::GeomWithData, primitives::Rectangle};

use super::{Area, area::bounds_of_rings};

/// A box of one polygon of an area.
type Entry = GeomWithData<Rectangle<[f64; 2]>, Slot>;

/// Which polygon of which area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot {
    pub(super) area: usize,
    pub(super) polygon: usize,
}

/// A set of areas that answers which of them a box may meet. Immutable once built.
#[derive(Debug)]
pub struct AreaIndex {
    areas: Vec<Area>,
    boxes: RTree<Entry>,
    /// For each polygon of each area, its edges, from the first time that they are needed.
    edges: Vec<Vec<OnceLock<EdgeIndex>>>,
}

impl AreaIndex {
    /// Builds the index.
    pub fn new(areas: Vec<Area>) -> Self {
        let entries = areas.iter().enumerate().flat_map(|(area, found)| {
            found
                .polygons
                .iter()
                .enumerate()
                .filter_map(move |(polygon, shape)| Some(Entry::new(rectangle(shape)?, Slot { area, polygon })))
        });
        let boxes = RTree::bulk_load(entries.collect());
        let edges = areas.iter().map(|area| area.polygons.iter().map(|_| OnceLock::new()).collect()).collect();
        Self { areas, boxes, edges }
    }

    /// Returns the areas in the order in which they were given.
    pub fn areas(&self) -> &[Area] {
        &self.areas
    }

    /// Tells whether the box meets the box of any area. Never says no when the geometry in the box meets an area.
    pub fn meets(&self, bbox: &Bbox) -> bool {
        bbox.planar().any(|planar| self.boxes.locate_in_envelope_intersecting(aabb(planar)).next().is_some())
    }

    /// Tells whether a cover meets any area. Never says no when the geometry in the cover meets an area; says yes in vain
    /// only where the cover is larger than the geometry.
    pub fn meets_cover(&self, cover: &Cover) -> bool {
        self.met_by_cover(cover).next().is_some()
    }

    /// Returns the places, in [`AreaIndex::areas`], of the areas whose boxes a planar box meets.
    pub fn near(&self, planar: [f64; 4]) -> BTreeSet<usize> {
        self.boxes.locate_in_envelope_intersecting(aabb(planar)).map(|entry| entry.data.area).collect()
    }

    /// Returns the places, in [`AreaIndex::areas`], of the areas that a cover meets.
    pub fn near_cover(&self, cover: &Cover) -> BTreeSet<usize> {
        self.met_by_cover(cover).map(|slot| slot.area).collect()
    }

    fn met_by_cover<'a>(&'a self, cover: &'a Cover) -> impl Iterator<Item = Slot> + 'a {
        let near = cover.bbox().planar().flat_map(|planar| self.boxes.locate_in_envelope_intersecting(aabb(planar)));
        let met = near.filter(|entry| {
            let (low, high) = (entry.geom().lower(), entry.geom().upper());
            let is_box = is_box(self.polygon(entry.data));
            let test = |piece| is_box || self.edges(entry.data).meet(piece);
            cover.any_within([low[0], low[1], high[0], high[1]], test)
        });
        met.map(|entry| entry.data)
    }

    /// Returns the polygons whose boxes the box meets, each once, in order.
    pub(super) fn candidates(&self, bbox: &Bbox) -> BTreeSet<Slot> {
        bbox.planar()
            .flat_map(|planar| self.boxes.locate_in_envelope_intersecting(aabb(planar)).map(|entry| entry.data))
            .collect()
    }

    /// Returns the polygon in a slot.
    pub(super) fn polygon(&self, slot: Slot) -> &Polygon {
        &self.areas[slot.area].polygons[slot.polygon]
    }

    /// Returns the edges of the polygon in a slot.
    pub(super) fn edges(&self, slot: Slot) -> &EdgeIndex {
        self.edges[slot.area][slot.polygon].get_or_init(|| EdgeIndex::new(self.polygon(slot)))
    }
}

/// Tells whether a polygon is its own bounding box.
fn is_box(polygon: &Polygon) -> bool {
    let [a, b, c, d, e] = polygon.exterior().0[..] else { return false };
    let turns = a.x == d.x && b.x == c.x && a.y == b.y && c.y == d.y || a.y == d.y && b.y == c.y && a.x == b.x && c.x == d.x;
    a == e && turns && polygon.interiors().is_empty()
}

fn rectangle(polygon: &Polygon) -> Option<Rectangle<[f64; 2]>> {
    let [west, south, east, north] = bounds_of_rings(polygon);
    (west <= east).then(|| Rectangle::from_corners([west, south], [east, north]))
}

/// Makes a box; its corners are in order, for `rstar` would silently put them in order and so turn a wrapped box
/// into the rest of the world.
fn aabb([west, south, east, north]: [f64; 4]) -> AABB<[f64; 2]> {
    debug_assert!(west <= east && south <= north);
    AABB::from_corners([west, south], [east, north])
}

/// The edges of a polygon, for asking which of them a segment may meet.
#[derive(Debug)]
pub(super) struct EdgeIndex {
    edges: RTree<Edge>,
}

/// An edge and its ring; ring 0 is the exterior.
type Edge = GeomWithData<Rectangle<[f64; 2]>, (Line, usize)>;

impl EdgeIndex {
    pub(super) fn new(polygon: &Polygon) -> Self {
        let rings = std::iter::once(polygon.exterior()).chain(polygon.interiors());
        let edges =
            rings.enumerate().flat_map(|(ring, line)| line.lines().map(move |line| Edge::new(bounds_of(&line), (line, ring))));
        Self { edges: RTree::bulk_load(edges.collect()) }
    }

    /// Returns the edges whose boxes the box of `segment` meets.
    pub(super) fn near(&self, segment: &Line) -> impl Iterator<Item = &Line> {
        self.entries_near(segment).map(|edge| &edge.data.0)
    }

    /// Tells whether the polygon and a planar box have a point in common; boundaries count.
    pub(super) fn meet(&self, [west, south, east, north]: [f64; 4]) -> bool {
        let bounds = Rect::new((west, south), (east, north));
        let near = AABB::from_corners([west, south], [east, north]);
        let mut edges = self.edges.locate_in_envelope_intersecting(near);
        // Without an edge in it, the box is inside or outside as a whole.
        edges.any(|edge| edge.data.0.intersects(&bounds))
            || self.hold(Coord { x: west, y: south }, self.edges.root().envelope().upper()[0])
    }

    /// Tells whether the polygon holds a position; its boundary counts. `east` is the polygon's eastern edge.
    ///
    /// As in `geo`, a ring holds what it winds around, and a hole takes away what lies within it but not on it.
    pub(super) fn hold(&self, at: Coord, east: f64) -> bool {
        let mut windings: BTreeMap<usize, i32> = BTreeMap::new();
        for edge in self.entries_near(&Line::new(at, Coord { x: east, y: at.y })) {
            let (line, ring) = &edge.data;
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

    fn entries_near(&self, segment: &Line) -> impl Iterator<Item = &Edge> {
        let bounds = bounds_of(segment);
        let bounds = AABB::from_corners(bounds.lower(), bounds.upper());
        self.edges.locate_in_envelope_intersecting(bounds)
    }
}

fn bounds_of(line: &Line) -> Rectangle<[f64; 2]> {
    let (a, b) = (line.start, line.end);
    Rectangle::from_corners([a.x.min(b.x), a.y.min(b.y)], [a.x.max(b.x), a.y.max(b.y)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bbox(west: f64, south: f64, east: f64, north: f64) -> Bbox {
        Bbox::new(west, south, east, north).unwrap()
    }

    #[test]
    fn a_wrapped_area_is_met_on_both_sides_and_reported_once() {
        let index = AreaIndex::new(vec![
            Area::from_bbox("fiji", &bbox(170.0, -20.0, -170.0, -15.0)),
            Area::from_bbox("null", &bbox(-1.0, -1.0, 1.0, 1.0)),
        ]);
        assert!(index.meets(&bbox(175.0, -18.0, 176.0, -17.0)));
        assert!(index.meets(&bbox(-175.0, -18.0, -174.0, -17.0)));
        assert!(!index.meets(&bbox(-169.0, -18.0, 169.0, -17.0)));
        let areas: BTreeSet<usize> =
            index.candidates(&bbox(179.0, -18.0, -179.0, -17.0)).into_iter().map(|slot| slot.area).collect();
        assert_eq!(areas, [0].into());
        assert!(index.meets(&Bbox::WORLD));
    }
}
