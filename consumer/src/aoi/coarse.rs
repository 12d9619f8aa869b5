//! Where on Earth there is any area at all, to four degrees and to a quarter of one: most envelopes of a regional consumer
//! lie where there is none, and a tree takes hundreds of nanoseconds to say so.

use std::ops::Range;

/// Bits for cells of four degrees (720 bytes) and of a quarter of a degree (130 kB each).
#[derive(Debug)]
pub(super) struct Coarse {
    /// The cells that boxes reach into, the large ones first.
    reached: [Grid; 2],
    /// The small cells that the south-western corners of boxes lie in.
    corners: Grid,
}

impl Coarse {
    /// Marks the cells of planar boxes. What two boxes share lies in a cell that both reach into, edges included.
    pub(super) fn new(boxes: impl Iterator<Item = [f64; 4]>) -> Self {
        let (mut reached, mut corners) = ([Grid::new(0.25), Grid::new(4.0)], Grid::new(4.0));
        for bounds @ [west, south, _, _] in boxes {
            reached.iter_mut().for_each(|grid| grid.mark(bounds));
            corners.mark([west, south, west, south]);
        }
        Self { reached, corners }
    }

    /// Tells whether a planar box may meet any of the boxes. Never says no when it does.
    #[inline]
    pub(super) fn may_meet(&self, bounds: [f64; 4]) -> bool {
        self.reached.iter().all(|grid| grid.has_any(&grid.cells(bounds)))
    }

    /// Tells whether a planar box meets any of the boxes, where that is certain.
    #[inline]
    pub(super) fn meets(&self, bounds: [f64; 4]) -> Option<bool> {
        if !self.may_meet(bounds) {
            return Some(false);
        }
        // What lies in a cell that is wholly within the box lies in the box.
        let cells = self.corners.cells(bounds).within();
        self.corners.has_any(&cells?).then_some(true)
    }
}

/// Cells of one size, row by row from the South Pole, those of a row westernmost first.
#[derive(Debug)]
struct Grid {
    /// Cells a degree.
    scale: f64,
    columns: usize,
    /// Words of a row, a bit for each column.
    words: usize,
    bits: Vec<u64>,
}

/// The cells that a box reaches into: their rows, and their columns from the first to the last.
struct Cells {
    rows: Range<usize>,
    from: usize,
    to: usize,
}

impl Grid {
    fn new(scale: f64) -> Self {
        let [columns, rows] = [360.0, 180.0].map(|degrees: f64| (degrees * scale).ceil() as usize);
        let words = columns.div_ceil(64);
        Self { scale, columns, words, bits: vec![0; words * rows] }
    }

    fn mark(&mut self, bounds: [f64; 4]) {
        let cells = self.cells(bounds);
        for row in cells.rows.clone() {
            for word in cells.words() {
                self.bits[row * self.words + word] |= cells.mask(word);
            }
        }
    }

    #[inline]
    fn has_any(&self, cells: &Cells) -> bool {
        cells.words().any(|word| {
            let mask = cells.mask(word);
            cells.rows.clone().any(|row| self.bits[row * self.words + word] & mask != 0)
        })
    }

    #[inline]
    fn cells(&self, [west, south, east, north]: [f64; 4]) -> Cells {
        // Out of range, it is the last cell or, below, the first.
        let place = |degrees: f64, half: f64, count: usize| (((degrees + half) * self.scale) as usize).min(count - 1);
        let rows = self.bits.len() / self.words;
        Cells {
            rows: place(south, 90.0, rows)..place(north, 90.0, rows) + 1,
            from: place(west, 180.0, self.columns),
            to: place(east, 180.0, self.columns),
        }
    }
}

impl Cells {
    /// Returns the cells of which the box has all; `None` when there are none.
    #[inline]
    fn within(self) -> Option<Self> {
        let Self { rows, from, to } = self;
        let (rows, from, to) = (rows.start + 1..rows.end - 1, from + 1, to.wrapping_sub(1));
        (!rows.is_empty() && from <= to && to != usize::MAX).then_some(Self { rows, from, to })
    }

    /// Returns the words of their columns.
    #[inline]
    fn words(&self) -> Range<usize> {
        self.from / 64..self.to / 64 + 1
    }

    /// Returns which columns of a word they have.
    #[inline]
    fn mask(&self, word: usize) -> u64 {
        let from = if word == self.from / 64 { u64::MAX << (self.from % 64) } else { u64::MAX };
        let to = if word == self.to / 64 { u64::MAX >> (63 - self.to % 64) } else { u64::MAX };
        from & to
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn boxes(longest: f64) -> impl Strategy<Value = [f64; 4]> {
        let edges = (-720..=720_i32, -360..=360_i32, 0.0..longest, 0.0..longest, any::<bool>());
        edges.prop_map(|(x, y, width, height, on_edge)| {
            let off = if on_edge { 0.0 } else { 0.1 };
            let (west, south) = ((f64::from(x) / 4.0 + off).min(180.0), (f64::from(y) / 4.0 + off).min(90.0));
            [west, south, (west + width).min(180.0), (south + height).min(90.0)]
        })
    }

    #[test]
    fn where_nothing_is_nothing_is_met() {
        let coarse = Coarse::new([[10.0, 10.0, 10.3, 10.2]].into_iter());
        assert!(!coarse.may_meet([-50.0, -40.0, -49.7, -39.0]));
        assert!(!coarse.may_meet([9.0, 9.0, 9.9, 9.9]));
        assert!(coarse.may_meet([-180.0, -90.0, 180.0, 90.0]));
        assert!(coarse.may_meet([10.3, 10.2, 20.0, 20.0]), "they touch");
        assert_eq!(coarse.meets([9.0, 9.0, 11.0, 11.0]), Some(true));
        assert_eq!(coarse.meets([10.3, 10.2, 20.0, 20.0]), None);
        assert!(!Coarse::new(std::iter::empty()).may_meet([-180.0, -90.0, 180.0, 90.0]));
    }

    proptest! {
        #[test]
        fn what_it_is_certain_of_is_so(a in boxes(40.0), b in boxes(200.0)) {
            let meet = a[0] <= b[2] && b[0] <= a[2] && a[1] <= b[3] && b[1] <= a[3];
            let coarse = Coarse::new([a].into_iter());
            prop_assert!(!meet || coarse.may_meet(b));
            prop_assert!(coarse.meets(b).is_none_or(|certain| certain == meet));
        }
    }
}
