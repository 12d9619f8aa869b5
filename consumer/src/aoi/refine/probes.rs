//! Which shapes lie in the polygons of a body: a ray from a position of each, whose crossings are counted as the
//! body's segments come.

use std::collections::BTreeMap;

use geo::{
    Coord, Line,
    kernels::{Kernel, Orientation, RobustKernel},
};

/// Longitudes are within ten turns, see [`geoclaim_common::limits::LONGITUDE_DEGREES`].
const TURNS: i32 = 10;
const TURN_COUNT: usize = (2 * TURNS + 1) as usize;

/// A position of a shape.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    pub(super) at: Coord,
    pub(super) shape: u32,
}

/// How often a ring winds around a probe, and whether that was touched since the ring began.
#[derive(Clone, Copy, Debug, Default)]
struct Winding {
    count: i32,
    is_touched: bool,
}

/// The probes, and what is known of the body's current part and them.
#[derive(Debug)]
pub(super) struct Probes {
    /// From south to north.
    probes: Vec<Probe>,
    /// For each turn and probe, how often the current ring winds around the probe. A turn has none until a segment
    /// concerns it: most bodies and areas are within ±180, and concern turn 0 alone.
    windings: [Vec<Winding>; TURN_COUNT],
    /// The turns and probes of which the winding is touched.
    touched: Vec<(usize, usize)>,
    /// The probes within the current part so far, each with a bit for each turn.
    part: BTreeMap<usize, u32>,
}

impl Probes {
    pub(super) fn new(mut probes: Vec<Probe>) -> Self {
        probes.sort_unstable_by(|a, b| a.at.y.total_cmp(&b.at.y));
        Self { probes, windings: Default::default(), touched: Vec::new(), part: BTreeMap::new() }
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
                self.touch((turn + TURNS) as usize, at).count += winding;
            }
        }
    }

    fn touch(&mut self, turn: usize, at: usize) -> &mut Winding {
        let windings = &mut self.windings[turn];
        if windings.is_empty() {
            windings.resize(self.probes.len(), Winding::default());
        }
        let winding = &mut windings[at];
        if !std::mem::replace(&mut winding.is_touched, true) {
            self.touched.push((turn, at));
        }
        winding
    }

    /// Ends a ring. As in `geo`, one that crosses itself holds whatever it winds around.
    pub(super) fn end_ring(&mut self, is_exterior: bool) {
        for (turn, at) in self.touched.drain(..) {
            if std::mem::take(&mut self.windings[turn][at]).count != 0 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_that_crosses_often_takes_no_more_room() {
        let probe = |n: u32| Probe { at: Coord { x: f64::from(n) / 100.0, y: 0.5 }, shape: n };
        let mut probes = Probes::new((0..10).map(probe).collect());
        let zigzag = |n: u32| (f64::from(n % 2), f64::from((n + 1) % 2));
        for n in 0..1_001 {
            let (from, to) = (zigzag(n), zigzag(n + 1));
            probes.segment(&Line::new((100.0, from.0), (100.0, from.1)), |_| false);
            probes.segment(&Line::new((100.0, to.0), (100.0, to.1)), |shape| shape == 3);
        }
        assert_eq!(probes.touched.len(), 10);
        probes.end_ring(true);
        assert_eq!(probes.end_part().collect::<Vec<_>>(), [3], "the others are wound around as often one way as the other");
        assert_eq!(probes.windings.iter().filter(|windings| !windings.is_empty()).count(), 1, "turn 0 alone");
    }
}
