//! Exact refinement: which areas a body meets, in one pass over its bytes.
//!
//! A body meets a polygon when one of its segments meets an edge of the polygon, one of its vertices lies in the
//! polygon, or a vertex of the polygon lies in one of its own polygons. The three together are what `geo`'s
//! `Intersects` says of whole geometries, with `geo`'s exact predicates, but nothing of the body is kept: crossings of
//! a ray are counted as its segments come.

use std::{collections::BTreeSet, sync::Arc};

use geo::{
    Coord, Intersects, Line, Polygon,
    kernels::{Kernel, Orientation, RobustKernel},
};
use geoclaim_common::{
    Bbox,
    extent::{Edges, turns_of},
    geojson::{GeometryType, Position, ScanError, ScanOptions, Visitor, scan},
};

use super::{
    AreaIndex,
    area::bounds_of_rings,
    index::{EdgeIndex, Slot},
};

/// Longitudes are within ten turns, see [`geoclaim_common::limits::LONGITUDE_DEGREES`].
const TURNS: i32 = 10;

/// Returns the ids of the areas that the body meets; boundaries count. `bbox` is the body's.
///
/// A body with an edge of more than 180 degrees of longitude may be meant either way round, so it meets every area
/// that its box meets. Longitudes beyond ±180 are compared where they lie on the Earth.
///
/// # Errors
/// What [`scan`] rejects.
pub fn refine(body: &[u8], bbox: &Bbox, index: &AreaIndex, options: &ScanOptions) -> Result<Vec<Arc<str>>, ScanError> {
    let slots: Vec<Slot> = index.candidates(bbox).into_iter().collect();
    let mut refine = Refine::new(&slots, index);
    scan(body, options, &mut refine)?;
    let met: BTreeSet<usize> = slots
        .iter()
        .zip(&refine.candidates)
        .filter(|(_, candidate)| refine.is_ambiguous || candidate.is_met)
        .map(|(slot, _)| slot.area)
        .collect();
    Ok(met.into_iter().map(|area| Arc::clone(&index.areas()[area].id)).collect())
}

/// A polygon of an area, and what is known of the body and it.
struct Candidate<'a> {
    edges: &'a EdgeIndex,
    bounds: [f64; 4],
    is_met: bool,
    /// A vertex of the polygon.
    probe: Coord,
    /// For each turn, how often the current ring winds around the probe.
    windings: [i32; (2 * TURNS + 1) as usize],
    /// For each turn a bit: whether the probe is within the current part so far.
    part: u32,
}

struct Refine<'a> {
    candidates: Vec<Candidate<'a>>,
    is_ambiguous: bool,
    in_rings: bool,
    rings: usize,
    /// First and last position of the current line, and its edges.
    line: Option<(Coord, Coord)>,
    edges: Option<Edges>,
}

impl<'a> Refine<'a> {
    fn new(slots: &[Slot], index: &'a AreaIndex) -> Self {
        let candidates = slots.iter().filter_map(|slot| Candidate::new(index.polygon(*slot), index.edges(*slot))).collect();
        Self { candidates, is_ambiguous: false, in_rings: false, rings: 0, line: None, edges: None }
    }

    fn vertex(&mut self, at: Coord) {
        for candidate in self.candidates.iter_mut().filter(|candidate| !candidate.is_met) {
            candidate.is_met = turns(at.x, at.x).any(|turn| candidate.holds(shifted(at, turn)));
        }
    }

    fn segment(&mut self, segment: Line) {
        let (west, east) = (segment.start.x.min(segment.end.x), segment.start.x.max(segment.end.x));
        for candidate in self.candidates.iter_mut().filter(|candidate| !candidate.is_met) {
            candidate.is_met = turns(west, east)
                .any(|turn| candidate.meets(&Line::new(shifted(segment.start, turn), shifted(segment.end, turn))));
            if self.in_rings {
                candidate.cross(&segment);
            }
        }
    }
}

impl Visitor for Refine<'_> {
    fn begin_geometry(&mut self, kind: GeometryType) {
        self.in_rings = matches!(kind, GeometryType::Polygon | GeometryType::MultiPolygon);
    }

    fn begin_part(&mut self) {
        self.rings = 0;
        self.candidates.iter_mut().for_each(|candidate| candidate.part = 0);
    }

    fn begin_line(&mut self) {
        self.edges = Some(Edges::default());
        self.line = None;
        self.candidates.iter_mut().for_each(|candidate| candidate.windings.fill(0));
    }

    #[inline]
    fn position(&mut self, Position { x, y, .. }: Position) {
        let at = Coord { x, y };
        self.is_ambiguous |= self.edges.as_mut().is_some_and(|edges| edges.take(x));
        match self.line {
            Some((first, previous)) => {
                self.segment(Line::new(previous, at));
                self.line = Some((first, at));
            }
            None => {
                self.vertex(at);
                self.line = self.edges.is_some().then_some((at, at));
            }
        }
    }

    fn end_line(&mut self) {
        let edges = self.edges.take().unwrap_or_default();
        let Some((first, last)) = self.line.take() else { return };
        if self.in_rings {
            let end = edges.close();
            self.is_ambiguous |= end.closes_long || end.may_be_cap;
            if first != last {
                self.segment(Line::new(last, first));
            }
            let is_exterior = self.rings == 0;
            for candidate in &mut self.candidates {
                let within = candidate.within_ring();
                candidate.part = if is_exterior { within } else { candidate.part & !within };
            }
            self.rings += 1;
        }
    }

    fn end_part(&mut self) {
        for candidate in &mut self.candidates {
            candidate.is_met |= candidate.part != 0;
            candidate.part = 0;
        }
    }
}

impl<'a> Candidate<'a> {
    fn new(polygon: &'a Polygon, edges: &'a EdgeIndex) -> Option<Self> {
        let probe = *polygon.exterior().0.first()?;
        let bounds = bounds_of_rings(polygon);
        Some(Self { edges, bounds, is_met: false, probe, windings: [0; (2 * TURNS + 1) as usize], part: 0 })
    }

    fn holds(&self, at: Coord) -> bool {
        let [west, south, east, north] = self.bounds;
        at.x >= west && at.x <= east && at.y >= south && at.y <= north && self.edges.hold(at, east)
    }

    fn meets(&self, segment: &Line) -> bool {
        let [west, south, east, north] = self.bounds;
        let (a, b) = (segment.start, segment.end);
        let apart = a.x.max(b.x) < west || a.x.min(b.x) > east || a.y.max(b.y) < south || a.y.min(b.y) > north;
        !apart && self.edges.near(segment).any(|edge| edge.intersects(segment))
    }

    /// Returns, for each turn, a bit that says whether the ring winds around the probe; as in `geo`, a ring that
    /// crosses itself holds whatever it winds around.
    fn within_ring(&self) -> u32 {
        self.windings.iter().enumerate().filter(|(_, winding)| **winding != 0).fold(0, |bits, (turn, _)| bits | 1 << turn)
    }

    /// Counts whether a ray from the probe crosses the segment. The ray runs towards the nearer end of the Earth's
    /// turns (east for turns to the east, west for the others), so that a segment within ±180 concerns turn 0 alone.
    fn cross(&mut self, segment: &Line) {
        let (a, b) = (segment.start, segment.end);
        if (a.y > self.probe.y) == (b.y > self.probe.y) {
            return;
        }
        let in_range = a.x.abs() <= 180.0 && b.x.abs() <= 180.0 && self.probe.x.abs() <= 180.0;
        let turns = if in_range { 0..=0 } else { -TURNS..=TURNS };
        for turn in turns {
            let probe = shifted(self.probe, -turn);
            let (low, high) = if a.y < b.y { (a, b) } else { (b, a) };
            let probe_is_left = RobustKernel::orient2d(low, high, probe) == Orientation::CounterClockwise;
            let crosses = if turn >= 0 { probe_is_left } else { !probe_is_left };
            if crosses {
                self.windings[(turn + TURNS) as usize] += if a.y < b.y { 1 } else { -1 };
            }
        }
    }
}

/// Returns the turns that bring longitudes from `west` to `east` to where areas are, within ±180; of a segment beyond
/// it that touches ±180, both sides.
fn turns(west: f64, east: f64) -> impl Iterator<Item = i32> {
    if west >= -180.0 && east <= 180.0 { 0..=0 } else { -turns_of(-west)..=turns_of(east) }
}

fn shifted(at: Coord, turns: i32) -> Coord {
    Coord { x: at.x - 360.0 * f64::from(turns), y: at.y }
}

#[cfg(test)]
mod tests;
