//! Exact refinement: which areas a body meets, in one pass over its bytes.
//!
//! A body meets a polygon when one of its segments meets an edge of the polygon, one of its vertices lies in the
//! polygon, or a vertex of the polygon lies in one of its own polygons. The three together are what `geo`'s
//! `Intersects` says of whole geometries, with `geo`'s exact predicates, but nothing of the body is kept: crossings of
//! a ray are counted as its segments come.

mod probes;

use std::{collections::BTreeSet, sync::Arc};

use geo::{Coord, Line};
use geoclaim_common::{
    Bbox,
    extent::{Edges, turns_of},
    geojson::{GeometryType, Position, ScanError, ScanOptions, Visitor},
    reproject::scan,
};

use super::{AreaIndex, edges::bounds_of, shape::Shape};
use probes::{Probe, Probes};

/// Returns the ids of the areas that the body meets; boundaries count. `bbox` is the body's.
///
/// A body with an edge of more than 180 degrees of longitude may be meant either way round, so it meets every area
/// that its box meets. Longitudes beyond ±180 are compared where they lie on the Earth.
///
/// # Errors
/// What [`scan`] rejects.
pub fn refine(body: &[u8], bbox: &Bbox, index: &AreaIndex, options: &ScanOptions) -> Result<Vec<Arc<str>>, ScanError> {
    let met = refine_places(body, bbox, index, options)?;
    Ok(met.into_iter().map(|area| Arc::clone(&index.ids()[area])).collect())
}

/// As [`refine`], and returns the areas' places in the index.
///
/// # Errors
/// What [`scan`] rejects.
pub fn refine_places(body: &[u8], bbox: &Bbox, index: &AreaIndex, options: &ScanOptions) -> Result<BTreeSet<usize>, ScanError> {
    let mut refine = Refine::new(bbox, index);
    scan(body, options, &mut refine)?;
    let is_met = |shape: &&u32| refine.is_ambiguous || refine.is_met[**shape as usize];
    Ok(refine.candidates.iter().filter(is_met).map(|shape| index.area_of(*shape)).collect())
}

struct Refine<'a> {
    index: &'a AreaIndex,
    /// The shapes whose boxes the body's box meets, and the box of them all.
    candidates: Vec<u32>,
    around: [f64; 4],
    /// Of each shape of the index, whether nothing more is to be found out: it is met, or is no candidate.
    is_met: Vec<bool>,
    /// Of how many candidates something is.
    unmet: usize,
    probes: Probes,
    is_ambiguous: bool,
    in_rings: bool,
    rings: usize,
    /// First and last position of the current line, and its edges.
    line: Option<(Coord, Coord)>,
    edges: Option<Edges>,
}

impl<'a> Refine<'a> {
    fn new(bbox: &Bbox, index: &'a AreaIndex) -> Self {
        let mut is_met = vec![true; index.shape_count()];
        let (mut candidates, mut probes, mut around) = (Vec::new(), Vec::new(), NOWHERE);
        for shape in bbox.planar().flat_map(|planar| index.shapes_near(planar)) {
            // A box that crosses the antimeridian finds some shapes twice.
            if std::mem::replace(&mut is_met[shape.number as usize], false) {
                let ([west, south, east, north], [w, s, e, n]) = (shape.bounds, around);
                around = [w.min(west), s.min(south), e.max(east), n.max(north)];
                candidates.push(shape.number);
                probes.push(Probe { at: shape.probe(), shape: shape.number });
            }
        }
        Self {
            index,
            around,
            is_met,
            unmet: candidates.len(),
            probes: Probes::new(probes),
            candidates,
            is_ambiguous: false,
            in_rings: false,
            rings: 0,
            line: None,
            edges: None,
        }
    }

    /// The body may be meant either way round, so that all candidates are met and nothing more is to be found out.
    fn be_ambiguous(&mut self) {
        (self.is_ambiguous, self.unmet, self.probes) = (true, 0, Probes::new(Vec::new()));
    }

    fn vertex(&mut self, at: Coord) {
        for turn in turns(at.x, at.x) {
            let at = shifted(at, turn);
            self.meet([at.x, at.y, at.x, at.y], |shape| shape.holds(at));
        }
    }

    fn segment(&mut self, segment: Line) {
        if self.unmet == 0 {
            return;
        }
        let (west, east) = (segment.start.x.min(segment.end.x), segment.start.x.max(segment.end.x));
        for turn in turns(west, east) {
            let turned = Line::new(shifted(segment.start, turn), shifted(segment.end, turn));
            self.meet(bounds_of(&turned), |shape| shape.meets_segment(&turned));
        }
        if self.in_rings {
            self.probes.segment(&segment, |shape| self.is_met[shape as usize]);
        }
    }

    /// Looks which shapes near a planar box are met.
    fn meet(&mut self, near: [f64; 4], test: impl Fn(&Shape<'_>) -> bool) {
        let ([west, south, east, north], [w, s, e, n]) = (near, self.around);
        if east < w || west > e || north < s || south > n {
            return;
        }
        for shape in self.index.shapes_near(near) {
            let is_met = &mut self.is_met[shape.number as usize];
            if !*is_met && test(&shape) {
                *is_met = true;
                self.unmet -= 1;
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
    }

    fn begin_line(&mut self) {
        self.edges = Some(Edges::default());
        self.line = None;
    }

    #[inline]
    fn position(&mut self, Position { x, y, .. }: Position) {
        let at = Coord { x, y };
        if self.edges.as_mut().is_some_and(|edges| edges.take(x)) {
            self.be_ambiguous();
        }
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
            if end.closes_long || end.may_be_cap {
                self.be_ambiguous();
            }
            if first != last {
                self.segment(Line::new(last, first));
            }
            self.probes.end_ring(self.rings == 0);
            self.rings += 1;
        }
    }

    fn end_part(&mut self) {
        for shape in self.probes.end_part() {
            if !std::mem::replace(&mut self.is_met[shape as usize], true) {
                self.unmet -= 1;
            }
        }
    }
}

/// Returns the turns that bring longitudes from `west` to `east` to where areas are, within ±180; of a segment beyond
/// it that touches ±180, both sides.
pub(crate) fn turns(west: f64, east: f64) -> impl Iterator<Item = i32> {
    if west > -180.0 && east < 180.0 { 0..=0 } else { -turns_of(-west)..=turns_of(east) }
}

/// The box of no position.
const NOWHERE: [f64; 4] = [f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY];

/// Returns a position so many turns further west.
pub(crate) fn shifted(at: Coord, turns: i32) -> Coord {
    Coord { x: at.x - 360.0 * f64::from(turns), y: at.y }
}

#[cfg(test)]
mod tests;
