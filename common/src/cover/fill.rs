//! The inside of rings, from where their edges cross the southern sides of rows.

/// Crossings are merged when so many have come since the last time.
const MERGED_AFTER: usize = 1 << 14;

/// An edge crosses the southern side of a row, within a column: northward (1) or southward (-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Crossing {
    pub(super) row: i64,
    pub(super) column: i64,
    pub(super) delta: i64,
}

/// The crossings of one or more rings.
#[derive(Clone, Debug, Default)]
pub(super) struct Crossings {
    all: Vec<Crossing>,
    merged: usize,
}

impl Crossings {
    pub(super) fn push(&mut self, crossing: Crossing) {
        self.all.push(crossing);
        self.bound();
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
            let stays = crossing.row & ((1 << shift) - 1) == 0;
            (crossing.row, crossing.column) = (crossing.row >> shift, crossing.column >> shift);
            stays
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
        self.all.sort_unstable();
        self.all.dedup_by(|next, kept| {
            let same = (next.row, next.column) == (kept.row, kept.column);
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
            if west.row != east.row {
                winding = 0;
            } else if winding != 0 && east.column - west.column > 1 {
                spans.push(Span { row: west.row, from: west.column + 1, to: east.column - 1 });
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
