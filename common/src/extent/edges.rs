//! The edges of a line string or ring, as far as longitude is concerned: the one place that decides which edges may be
//! meant the short way round, and which rings go once round the Earth.

/// Follows a line string or ring from position to position.
#[derive(Clone, Copy, Debug, Default)]
pub struct Edges {
    first: Option<f64>,
    previous: f64,
    shift: f64,
    jumps_along_cut: bool,
    runs_along_cut: bool,
}

/// Returns the lesser of two numbers, of which none is NaN: one instruction, where [`f64::min`] takes four.
#[inline]
pub(super) fn less(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// Returns the greater of two numbers, of which none is NaN.
#[inline]
pub(super) fn more(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// What a closed ring is found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingEnd {
    /// The edge that closes the ring, implied or not, is long.
    pub closes_long: bool,
    /// The ring goes once round the Earth when its long edges are taken the short way, so a pole is inside it.
    pub goes_round: bool,
    /// The ring jumps from one side of the cut at ±180 to the other without running along it: it may be a cap whose
    /// ends are drawn out to ±180, with a pole inside, or a strip along a parallel.
    pub may_be_cap: bool,
}

impl Edges {
    /// Takes the next longitude. Returns whether the edge to it is long: more than 180 degrees, and not from one side
    /// of the cut at ±180 to the other.
    #[inline]
    pub fn take(&mut self, x: f64) -> bool {
        if self.first.is_none() {
            (self.first, self.previous) = (Some(x), x);
            return false;
        }
        let step = x - self.previous;
        let on_cut = x.abs() == 180.0 && self.previous.abs() == 180.0;
        self.previous = x;
        if on_cut {
            self.jumps_along_cut |= step != 0.0;
            self.runs_along_cut |= step == 0.0;
            return false;
        }
        let is_long = step.abs() > 180.0;
        if is_long {
            self.shift -= 360.0 * (step / 360.0).round();
        }
        is_long
    }

    /// Takes the longitudes of positions at once when no edge to any of them can be long or lie on the cut at ±180, and
    /// they lie between `west` and `east`. Returns whether it has.
    #[inline]
    pub(super) fn take_short(&mut self, positions: &[[f64; 2]], west: f64, east: f64) -> bool {
        let [Some([first, _]), Some([last, _])] = [positions.first(), positions.last()] else { return true };
        let previous = if self.first.is_some() { self.previous } else { *first };
        let is_short = more(east, previous) - less(west, previous) <= 180.0 && west > -180.0 && east < 180.0;
        if is_short {
            (self.first, self.previous) = (self.first.or(Some(*first)), *last);
        }
        is_short
    }

    /// Returns what to add to the last longitude so that no edge is longer than half a turn.
    pub fn shift(&self) -> f64 {
        self.shift
    }

    /// Closes a ring.
    pub fn close(mut self) -> RingEnd {
        let Some(first) = self.first else { return RingEnd { closes_long: false, goes_round: false, may_be_cap: false } };
        // A ring that is closed as written has no further edge.
        let closes_long = first != self.previous && self.take(first);
        RingEnd { closes_long, goes_round: self.shift != 0.0, may_be_cap: self.jumps_along_cut && !self.runs_along_cut }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(longitudes: &[f64]) -> (usize, RingEnd) {
        let mut edges = Edges::default();
        let long = longitudes.iter().filter(|x| edges.take(**x)).count();
        (long, edges.close())
    }

    #[test]
    fn rings_are_told_apart() {
        let plain = RingEnd { closes_long: false, goes_round: false, may_be_cap: false };
        assert_eq!(ring(&[]), (0, plain));
        assert_eq!(ring(&[0.0, 10.0, 10.0, 0.0]), (0, plain));
        assert_eq!(ring(&[179.0, -179.0, -179.0, 179.0, 179.0]), (2, plain));
        assert_eq!(ring(&[-150.0, -50.0, 50.0, 150.0, -150.0]), (1, RingEnd { goes_round: true, ..plain }));
        assert_eq!(ring(&[0.0, 90.0, 180.0, 270.0, 360.0]), (0, RingEnd { closes_long: true, goes_round: true, ..plain }));
        assert_eq!(ring(&[-180.0, 180.0, 180.0, -180.0, -180.0]), (0, plain), "a band along a parallel, cut");
        assert_eq!(ring(&[-180.0, -90.0, 0.0, 90.0, 180.0, -180.0]), (0, RingEnd { may_be_cap: true, ..plain }));
    }
}
