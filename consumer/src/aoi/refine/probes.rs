//! Which shapes lie in the polygons of a body: a ray from a position of each, whose crossings are counted as the
//! body's segments come.

use std::collections::BTreeMap;

use geo::{
    Coord, Line,
    kernels::{Kernel, Orientation, RobustKernel},
};

/// Longitudes are within ten turns, see [`geoclaim_common::limits::LONGITUDE_DEGREES`].
const TURNS: i32 = 10;

/// A position of a shape.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    pub(super) at: Coord,
    pub(super) shape: u32,
}

/// The probes, and what is known of the body's current part and them.
#[derive(Debug)]
pub(super) struct Probes {
    /// From south to north.
    probes: Vec<Probe>,
    /// For each turn and probe, how often the current ring winds around the probe; a turn has its probes together, and of
    /// a body within ±180 only turn 0 is ever touched.
    windings: Vec<i32>,
    /// The windings that may differ from 0.
    touched: Vec<usize>,
    /// The probes within the current part so far, each with a bit for each turn.
    part: BTreeMap<usize, u32>,
}

impl Probes {
    pub(super) fn new(mut probes: Vec<Probe>) -> Self {
        probes.sort_unstable_by(|a, b| a.at.y.total_cmp(&b.at.y));
        let windings = vec![0; probes.len() * (2 * TURNS + 1) as usize];
        Self { probes, windings, touched: Vec::new(), part: BTreeMap::new() }
    }

    /// Begins a polygon.
    pub(super) fn begin_part(&mut self) {
        self.part.clear();
    }

    /// Begins a ring.
    pub(super) fn begin_ring(&mut self) {
        self.touched.drain(..).for_each(|at| self.windings[at] = 0);
    }

    /// Takes a segment of a ring.
    pub(super) fn segment(&mut self, segment: &Line, is_met: impl Fn(u32) -> bool) {
        let (low, high) =
            if segment.start.y < segment.end.y { (segment.start, segment.end) } else { (segment.end, segment.start) };
        let from = self.probes.partition_point(|probe| probe.at.y < low.y);
        for at in from..self.probes.len() {
            let probe = self.probes[at];
            if probe.at.y >= high.y {
                break;
            }
            if !is_met(probe.shape) {
                self.count(at, (low, high), if segment.start.y < segment.end.y { 1 } else { -1 });
            }
        }
    }

    /// Counts whether a ray from the probe crosses the segment, which its latitude does. The ray runs towards the nearer
    /// end of the Earth's turns (east for turns to the east, west for the others), so that a segment within ±180 concerns
    /// turn 0 alone.
    fn count(&mut self, at: usize, (low, high): (Coord, Coord), winding: i32) {
        let probe = self.probes[at].at;
        let in_range = low.x.abs() <= 180.0 && high.x.abs() <= 180.0 && probe.x.abs() <= 180.0;
        let turns = if in_range { 0..=0 } else { -TURNS..=TURNS };
        for turn in turns {
            let probe = Coord { x: probe.x + 360.0 * f64::from(turn), y: probe.y };
            let is_left = probe.x < low.x.min(high.x)
                || probe.x <= low.x.max(high.x) && RobustKernel::orient2d(low, high, probe) == Orientation::CounterClockwise;
            if is_left == (turn >= 0) {
                let place = (turn + TURNS) as usize * self.probes.len() + at;
                self.windings[place] += winding;
                self.touched.push(place);
            }
        }
    }

    /// Ends a ring. As in `geo`, one that crosses itself holds whatever it winds around.
    pub(super) fn end_ring(&mut self, is_exterior: bool) {
        for place in self.touched.drain(..) {
            if std::mem::take(&mut self.windings[place]) != 0 {
                let (turn, at) = (place / self.probes.len(), place % self.probes.len());
                if is_exterior {
                    *self.part.entry(at).or_default() |= 1 << turn;
                } else if let Some(turns) = self.part.get_mut(&at) {
                    *turns &= !(1 << turn);
                }
            }
        }
    }

    /// Ends a polygon; returns the shapes whose probes lie in it.
    pub(super) fn end_part(&mut self) -> impl Iterator<Item = u32> {
        let part = std::mem::take(&mut self.part);
        part.into_iter().filter(|(_, turns)| *turns != 0).map(|(at, _)| self.probes[at].shape)
    }
}
