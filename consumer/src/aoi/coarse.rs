//! Where on Earth there is any area at all, to a quarter of a degree: most envelopes of a regional consumer lie where there
//! is none, and a tree takes hundreds of nanoseconds to say so.

/// Cells a degree.
const SCALE: f64 = 4.0;

const COLUMNS: usize = 1_440;
const ROWS: usize = 720;

/// Words of a row, a bit for each column.
const WORDS: usize = COLUMNS.div_ceil(64);

/// A bit for each quarter of a degree that a box reaches into; 130 kB.
#[derive(Debug)]
pub(super) struct Coarse {
    rows: Box<[[u64; WORDS]]>,
}

impl Coarse {
    /// Marks the cells of planar boxes. What two boxes share lies in a cell that both reach into, edges included.
    pub(super) fn new(boxes: impl Iterator<Item = [f64; 4]>) -> Self {
        let mut rows = vec![[0; WORDS]; ROWS].into_boxed_slice();
        for bounds in boxes {
            let (reached, columns) = cells(bounds);
            for row in &mut rows[reached] {
                columns.masks().for_each(|(word, mask)| row[word] |= mask);
            }
        }
        Self { rows }
    }

    /// Tells whether a planar box may meet any of the boxes. Never says no when it does.
    #[inline]
    pub(super) fn may_meet(&self, bounds: [f64; 4]) -> bool {
        let (reached, columns) = cells(bounds);
        let rows = &self.rows[reached];
        if columns.from / 64 == columns.to / 64 {
            let mask = columns.first() & columns.last();
            return rows.iter().fold(0, |met, row| met | row[columns.from / 64] & mask) != 0;
        }
        rows.iter().any(|row| columns.masks().any(|(word, mask)| row[word] & mask != 0))
    }
}

/// The columns that a box reaches into.
#[derive(Clone, Copy)]
struct Columns {
    from: usize,
    to: usize,
}

impl Columns {
    /// Returns the columns of the first word.
    fn first(self) -> u64 {
        u64::MAX << (self.from % 64)
    }

    /// Returns the columns of the last word.
    fn last(self) -> u64 {
        u64::MAX >> (63 - self.to % 64)
    }

    /// Returns each word with its columns.
    fn masks(self) -> impl Iterator<Item = (usize, u64)> {
        let (first, last) = (self.from / 64, self.to / 64);
        (first..=last).map(move |word| {
            let from = if word == first { self.first() } else { u64::MAX };
            let to = if word == last { self.last() } else { u64::MAX };
            (word, from & to)
        })
    }
}

/// Returns the rows and columns that a box reaches into.
#[inline]
fn cells([west, south, east, north]: [f64; 4]) -> (std::ops::Range<usize>, Columns) {
    // Out of range, it is the last cell or, below, the first.
    let place = |degrees: f64, half: f64, count: usize| (((degrees + half) * SCALE) as usize).min(count - 1);
    let columns = Columns { from: place(west, 180.0, COLUMNS), to: place(east, 180.0, COLUMNS) };
    (place(south, 90.0, ROWS)..place(north, 90.0, ROWS) + 1, columns)
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
        assert!(!Coarse::new(std::iter::empty()).may_meet([-180.0, -90.0, 180.0, 90.0]));
    }

    proptest! {
        #[test]
        fn it_never_says_no_where_two_boxes_meet(a in boxes(40.0), b in boxes(200.0)) {
            let meet = a[0] <= b[2] && b[0] <= a[2] && a[1] <= b[3] && b[1] <= a[3];
            prop_assert!(!meet || Coarse::new([a].into_iter()).may_meet(b));
        }
    }
}
