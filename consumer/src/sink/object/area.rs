//! The part of an area that a body can meet.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use geo::{BooleanOps, MultiPolygon, Orient, Polygon, orient::Direction, unary_union};
use geoclaim_common::{Bbox, Digest};

use super::job::digest_of;
use crate::aoi::{AreaSet, LiveAreas, bounds_of_rings, box_polygon, is_own_box};

/// How much wider than the body its window is, in degrees, so that nothing on the body's own box is cut away.
const MARGIN_DEGREES: f64 = 1e-6;

/// How far the sides of a box may lie from where they belong, in degrees: the overlay works on a grid of integers.
const GRID_DEGREES: f64 = 1e-6;

/// An area with all its polygons.
#[derive(Debug)]
pub(super) struct WholeArea {
    pub(super) digest: Digest,
    polygons: Vec<Polygon>,
}

/// The part of an area within a body's box. It lies within ±180: where the box crosses that, in two windows.
#[derive(Debug)]
pub(super) struct Within {
    pub(super) windows: Vec<MultiPolygon>,
    /// The body's box lies in the area as a whole.
    pub(super) is_all: bool,
}

impl WholeArea {
    pub(super) fn new(polygons: Vec<Polygon>) -> Self {
        Self {
            digest: digest_of(&polygons),
            polygons: polygons.iter().map(|polygon| polygon.orient(Direction::Default)).collect(),
        }
    }

    /// Cuts the area to where a body lies: the overlay's grid is then as fine as the body is small.
    pub(super) fn within(&self, bbox: &Bbox) -> Within {
        let (mut windows, mut is_all) = (Vec::new(), true);
        for planar in bbox.planar() {
            let window = window(planar);
            let pieces: Vec<MultiPolygon> = self
                .polygons
                .iter()
                .filter(|polygon| meet(bounds_of_rings(polygon), window))
                .map(|polygon| cut(polygon, window))
                .collect();
            // Pieces of one area may overlap, as those of a buffer do.
            let joined = if pieces.len() > 1 {
                unary_union(&pieces)
            } else {
                pieces.into_iter().next().unwrap_or(MultiPolygon(Vec::new()))
            };
            is_all &= is_box(&joined, window);
            windows.push(joined);
        }
        Within { windows, is_all }
    }
}

/// Cuts a polygon to a window; of a box exactly.
fn cut(polygon: &Polygon, window: [f64; 4]) -> MultiPolygon {
    if !is_own_box(polygon) {
        return box_polygon(window).intersection(polygon);
    }
    let ([west, south, east, north], [w, s, e, n]) = (bounds_of_rings(polygon), window);
    box_polygon([west.max(w), south.max(s), east.min(e), north.min(n)]).into()
}

fn window([west, south, east, north]: [f64; 4]) -> [f64; 4] {
    let [west, east] = [(west - MARGIN_DEGREES).max(-180.0), (east + MARGIN_DEGREES).min(180.0)];
    [west, (south - MARGIN_DEGREES).max(-90.0), east, (north + MARGIN_DEGREES).min(90.0)]
}

fn meet(a: [f64; 4], b: [f64; 4]) -> bool {
    a[0] <= b[2] && a[2] >= b[0] && a[1] <= b[3] && a[3] >= b[1]
}

/// Tells whether polygons are one box, and this one.
fn is_box(polygons: &MultiPolygon, window: [f64; 4]) -> bool {
    let [polygon] = &polygons.0[..] else { return false };
    let near = |a: f64, b: f64| (a - b).abs() <= GRID_DEGREES;
    let is_corner = |x: f64, y: f64| (near(x, window[0]) || near(x, window[2])) && (near(y, window[1]) || near(y, window[3]));
    polygon.interiors().is_empty()
        && polygon.exterior().0.len() == 5
        && polygon.exterior().0.iter().all(|at| is_corner(at.x, at.y))
        && bounds_of_rings(polygon).iter().zip(window).all(|(side, wanted)| near(*side, wanted))
}

/// The areas in force, with what is needed of each kept.
#[derive(Debug)]
pub(super) struct Areas {
    live: Arc<LiveAreas>,
    known: Mutex<Option<Known>>,
}

type Known = (Arc<AreaSet>, HashMap<Arc<str>, Option<Arc<WholeArea>>>);

impl Areas {
    pub(super) fn new(live: Arc<LiveAreas>) -> Self {
        Self { live, known: Mutex::default() }
    }

    /// Returns an area as it is now; `None` when it is no more.
    pub(super) fn get(&self, id: &Arc<str>) -> Option<Arc<WholeArea>> {
        let now = self.live.now();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let of_now = known.take().filter(|(set, _)| Arc::ptr_eq(set, &now));
        let (set, areas) = known.insert(of_now.unwrap_or_else(|| (now, HashMap::new())));
        let area = areas.entry(Arc::clone(id));
        area.or_insert_with(|| set.all().polygons(id).map(|polygons| Arc::new(WholeArea::new(polygons)))).clone()
    }
}
