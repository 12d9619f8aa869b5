//! Where on the circle of longitudes the parts of a geometry lie, and the smallest interval that holds them all.
//!
//! Method: take each part's longitude interval, merge them on the circle, find the largest gap. If it is not the
//! one at ±180, the interval wraps. Memory is bounded whatever the number of parts: above [`MOST_INTERVALS`]
//! separate intervals the smallest gaps are closed, which can only widen the answer.

/// How many separate intervals are kept.
const MOST_INTERVALS: usize = 1_024;

/// From this many intervals on, it is worth knowing which of them a new one lies in.
const MANY_INTERVALS: usize = 64;

/// How many pieces of a degree are told apart for that.
const PIECES_A_DEGREE: f64 = 4.0;

/// A set of longitude intervals on the circle.
#[derive(Clone, Debug, Default)]
pub(super) struct Longitudes {
    intervals: Vec<[f64; 2]>,
    /// For each piece of a degree, an interval that reaches into it, so that most of a large body's parts need not be
    /// kept; empty while there are few.
    seen: Vec<[f64; 2]>,
    full: bool,
}

impl Longitudes {
    /// Adds the interval from `west` eastward to `east`, in degrees; both may lie beyond ±180. A span of 360
    /// degrees or more is the full circle.
    pub(super) fn add(&mut self, west: f64, east: f64) {
        if east - west >= 360.0 {
            self.full = true;
        } else {
            planar(west, east).for_each(|[west, east]| self.push(west, east));
        }
    }

    /// Adds the whole circle.
    pub(super) fn add_full(&mut self) {
        self.full = true;
    }

    /// Returns west and east of the smallest interval that holds all of them, west greater than east when it runs
    /// over ±180; `None` when nothing was added.
    pub(super) fn span(mut self) -> Option<(f64, f64)> {
        if self.full {
            return Some((-180.0, 180.0));
        }
        self.merge();
        let (first, last) = (self.intervals.first()?, self.intervals.last()?);
        let seam = (first[0] + 180.0) + (180.0 - last[1]);
        let widest = self.gaps().max_by(|a, b| a.1.total_cmp(&b.1));
        match widest {
            Some((at, gap)) if gap > seam => Some((self.intervals[at + 1][0], self.intervals[at][1])),
            _ => Some((first[0], last[1])),
        }
    }

    fn push(&mut self, west: f64, east: f64) {
        if let Some(seen) = self.seen.get_mut(piece(west)) {
            if seen[0] <= west && east <= seen[1] {
                return;
            }
            *seen = [west, east];
        }
        self.intervals.push([west, east]);
        if self.intervals.len() > 2 * MOST_INTERVALS {
            self.merge();
            self.close_smallest_gaps();
            self.look();
        } else if self.intervals.len() == MANY_INTERVALS && self.seen.is_empty() {
            self.look();
        }
    }

    /// Notes which intervals reach into which piece.
    fn look(&mut self) {
        self.seen.resize(piece(180.0) + 1, [f64::INFINITY, f64::NEG_INFINITY]);
        for [west, east] in &self.intervals {
            self.seen[piece(*west)..=piece(*east)].fill([*west, *east]);
        }
    }

    fn merge(&mut self) {
        self.intervals.sort_unstable_by(|a, b| a[0].total_cmp(&b[0]));
        self.intervals.dedup_by(|next, kept| {
            let joined = next[0] <= kept[1];
            if joined {
                kept[1] = kept[1].max(next[1]);
            }
            joined
        });
    }

    /// Returns the index of each interval that a gap follows, with the gap's width.
    fn gaps(&self) -> impl Iterator<Item = (usize, f64)> {
        self.intervals.windows(2).map(|pair| pair[1][0] - pair[0][1]).enumerate()
    }

    fn close_smallest_gaps(&mut self) {
        let surplus = self.intervals.len().saturating_sub(MOST_INTERVALS);
        if surplus == 0 {
            return;
        }
        let mut widths: Vec<f64> = self.gaps().map(|(_, width)| width).collect();
        let (_, limit, _) = widths.select_nth_unstable_by(surplus - 1, f64::total_cmp);
        let limit = *limit;
        self.intervals.dedup_by(|next, kept| {
            let joined = next[0] - kept[1] <= limit;
            if joined {
                kept[1] = kept[1].max(next[1]);
            }
            joined
        });
    }
}

/// Returns the place of a longitude of -180 to 180 among the pieces of degrees.
fn piece(longitude: f64) -> usize {
    ((longitude + 180.0) * PIECES_A_DEGREE) as usize
}

/// Returns how many whole turns east of -180 to 180 a longitude lies.
pub fn turns_of(x: f64) -> i32 {
    // Right beside ±180 the sum rounds up to the next turn.
    let turns = ((x + 180.0) / 360.0).floor();
    let turns = if x - 360.0 * turns < -180.0 { turns - 1.0 } else { turns };
    turns as i32
}

/// Brings the interval from `west` eastward to `east`, in degrees, into -180 to 180, in one or two pieces.
///
/// Exact: a double within half a turn of a multiple of 360 loses nothing when that multiple is subtracted.
pub fn planar(west: f64, east: f64) -> impl Iterator<Item = [f64; 2]> {
    let in_range = west >= -180.0 && east <= 180.0;
    let turns = if in_range { 0.0 } else { 360.0 * f64::from(turns_of(west)) };
    let (west, east) = (west - turns, east - turns);
    let (first, second) = match (east - west >= 360.0, east > 180.0) {
        (true, _) => ([-180.0, 180.0], None),
        (false, true) => ([west, 180.0], Some([-180.0, east - 360.0])),
        (false, false) => ([west, east], None),
    };
    std::iter::once(first).chain(second)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(intervals: &[[f64; 2]]) -> Option<(f64, f64)> {
        let mut longitudes = Longitudes::default();
        intervals.iter().for_each(|[west, east]| longitudes.add(*west, *east));
        longitudes.span()
    }

    #[test]
    fn nothing_has_no_span() {
        assert_eq!(span(&[]), None);
    }

    #[test]
    fn parts_on_both_sides_of_the_antimeridian_wrap() {
        assert_eq!(span(&[[179.0, 180.0], [-180.0, -179.0]]), Some((179.0, -179.0)));
        assert_eq!(span(&[[165.87, 170.0], [-177.0, -176.15]]), Some((165.87, -176.15)));
    }

    #[test]
    fn the_seam_is_preferred_when_no_gap_is_wider() {
        assert_eq!(span(&[[-90.0, -90.0], [90.0, 90.0]]), Some((-90.0, 90.0)));
        assert_eq!(span(&[[-10.0, 0.0], [5.0, 20.0]]), Some((-10.0, 20.0)));
    }

    #[test]
    fn longitudes_beyond_180_are_normalised() {
        assert_eq!(span(&[[368.25, 371.5]]), Some((8.25, 11.5)));
        assert_eq!(span(&[[170.0, 190.0]]), Some((170.0, -170.0)));
        assert_eq!(span(&[[-190.0, -170.0]]), Some((170.0, -170.0)));
        assert_eq!(span(&[[12.0, 738.0]]), Some((-180.0, 180.0)));
    }

    #[test]
    fn a_million_separate_parts_take_bounded_memory_and_are_never_left_out() {
        let mut longitudes = Longitudes::default();
        for step in 0..1_000_000_u32 {
            let at = -100.0 + f64::from(step) * 1e-4;
            longitudes.add(at, at + 1e-5);
        }
        longitudes.add(50.0, 51.0);
        assert!(longitudes.intervals.len() <= 2 * MOST_INTERVALS + 1);
        let (west, east) = longitudes.span().unwrap();
        assert_eq!(west, -100.0);
        assert_eq!(east, 51.0);
    }
}
