//! The inside of rings, from where their edges cross the southern sides of rows.

/// Crossings are merged when so many have come since the last time.
const MERGED_AFTER: usize = 1 << 14;

/// Edges cross the southern side of a row, within a column: so many more northward than southward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Crossing {
    /// The row and the column, so that the order is by row and then by column.
    place: u64,
    delta: i32,
}

/// How many bits of a place are its column's: of 2²⁰ a degree, for many turns of the Earth.
const COLUMN_BITS: u32 = 34;

/// What is added to a column, so that it is not negative; rows are within 2²⁸ and take half of what bits are left.
const COLUMN_ZERO: i64 = 1 << (COLUMN_BITS - 1);
const ROW_ZERO: i64 = 1 << 29;

impl Crossing {
    fn new(row: i64, column: i64, delta: i32) -> Self {
        Self { place: ((row + ROW_ZERO) << COLUMN_BITS | (column + COLUMN_ZERO)) as u64, delta }
    }

    fn row(self) -> i64 {
        (self.place >> COLUMN_BITS) as i64 - ROW_ZERO
    }

    fn column(self) -> i64 {
        (self.place & ((1 << COLUMN_BITS) - 1)) as i64 - COLUMN_ZERO
    }
}

/// The crossings of one or more rings.
#[derive(Clone, Debug, Default)]
pub(super) struct Crossings {
    all: Vec<Crossing>,
    merged: usize,
}

impl Crossings {
    /// Adds the crossing of an edge, northward (1) or southward (-1).
    #[inline]
    pub(super) fn push(&mut self, row: i64, column: i64, delta: i32) {
        let crossing = Crossing::new(row, column, delta);
        match self.all.last_mut() {
            // An edge that comes back the same way.
            Some(last) if last.place == crossing.place => {
                last.delta += delta;
                if last.delta == 0 {
                    self.all.pop();
                }
            }
            _ => {
                self.all.push(crossing);
                self.bound();
            }
        }
    }

    /// Adds those of a ring, and leaves `ring` empty.
    pub(super) fn add(&mut self, ring: &mut Self) {
        self.all.append(&mut ring.all);
        ring.merged = 0;
        self.bound();
    }

    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.merged = 0;
    }

    /// Brings crossings to a level that is coarser by `shift`; those of sides that it does not have fall away.
    pub(super) fn coarsen(&mut self, shift: i8) {
        self.all.retain_mut(|crossing| {
            let (row, column) = (crossing.row(), crossing.column());
            *crossing = Crossing::new(row >> shift, column >> shift, crossing.delta);
            row & ((1 << shift) - 1) == 0
        });
        self.merge();
    }

    /// Keeps the memory within what the cells that are crossed take.
    fn bound(&mut self) {
        if self.all.len() > 2 * self.merged + MERGED_AFTER {
            self.merge();
        }
    }

    fn merge(&mut self) {
        self.all.sort();
        self.all.dedup_by(|next, kept| {
            let same = next.place == kept.place;
            if same {
                kept.delta += next.delta;
            }
            same
        });
        self.all.retain(|crossing| crossing.delta != 0);
        self.merged = self.all.len();
    }

    /// Returns the runs of cells between two crossings that the rings wind around, in order, and forgets the crossings.
    fn take_inside(&mut self) -> Vec<Span> {
        self.merge();
        let mut spans = Vec::new();
        let mut winding = 0;
        for pair in self.all.windows(2) {
            let [west, east] = [pair[0], pair[1]];
            winding += west.delta;
            let row = west.row();
            if row != east.row() {
                winding = 0;
            } else if winding != 0 && east.place - west.place > 1 {
                spans.push(Span { row, from: west.column() + 1, to: east.column() - 1 });
            }
        }
        self.clear();
        spans
    }
}

/// Columns `from` to `to` of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) row: i64,
    pub(super) from: i64,
    pub(super) to: i64,
}

/// Returns what is inside `exterior` and in none of the `holes`, cells that an edge passes through aside. Holes that
/// overlap the wrong way round may be filled: the answer errs to the larger.
pub(super) fn inside(exterior: &mut Crossings, holes: &mut Crossings) -> Vec<Span> {
    let (spans, holes) = (exterior.take_inside(), holes.take_inside());
    if holes.is_empty() {
        return spans;
    }
    let mut left = Vec::with_capacity(spans.len() + holes.len());
    let mut next_hole = 0;
    for mut span in spans {
        while holes.get(next_hole).is_some_and(|hole| (hole.row, hole.to) < (span.row, span.from)) {
            next_hole += 1;
        }
        let within = holes[next_hole..].iter().take_while(|hole| hole.row == span.row && hole.from <= span.to);
        for hole in within {
            if hole.from > span.from {
                left.push(Span { to: hole.from - 1, ..span });
            }
            span.from = span.from.max(hole.to + 1);
        }
        if span.from <= span.to {
            left.push(span);
        }
    }
    left
}
