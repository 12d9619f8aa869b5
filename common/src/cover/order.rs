//! The order in which cells are split, so that each further split frees as much as it can.
//!
//! A split frees its empty quarters; what it frees further down takes further splits. Among all orders in which a cell
//! comes before its quarters, this one frees the most for any number of splits: the best-paying group of splits is
//! taken again and again, and joined to the group it depends on (Horn 1972, "Single-machine job sequencing with treelike
//! precedence ordering").

use std::collections::BinaryHeap;

use super::{
    pyramid::{Cell, Pyramid, quarters},
    walk::Roots,
};

/// Splits that are considered, those with the most vacant first; about 700 fill 400 bytes.
const MOST_SPLITS: usize = 2_000;

/// A cell that can be split.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) level: i8,
    /// What its quarters are, south-west, south-east, north-west, north-east.
    pub(super) quarters: [Quarter; 4],
    /// How many cells of the raster its empty quarters have.
    freed: u64,
    parent: Option<usize>,
}

/// What a cell is before it is known how many splits there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quarter {
    /// Nothing of the geometry is in it.
    Empty,
    /// Something is.
    Marked,
    /// Something is, and it is the candidate of this number.
    Candidate(usize),
}

/// The cells that can be split, and what is to be known of them.
pub(super) struct Candidates {
    pub(super) all: Vec<Candidate>,
    /// The roots, in their order.
    pub(super) roots: Vec<Quarter>,
}

impl Candidates {
    /// Finds them.
    pub(super) fn of(pyramid: &Pyramid, roots: Roots) -> Self {
        let mut found = Self { all: Vec::new(), roots: Vec::new() };
        let mut open: BinaryHeap<(u32, Cell, Place)> = BinaryHeap::new();
        for (number, cell) in roots.cells().enumerate() {
            let quarter = look(pyramid, cell, Place { parent: None, number }, &mut open).0;
            found.roots.push(quarter);
        }
        while let Some((_, cell, place)) = open.pop().filter(|_| found.all.len() < MOST_SPLITS) {
            let number = found.all.len();
            let mut freed = 0;
            let mut at = 0;
            let within = quarters(cell).map(|quarter| {
                let place = Place { parent: Some(number), number: at };
                at += 1;
                let (kind, all) = look(pyramid, quarter, place, &mut open);
                freed += if kind == Quarter::Empty { u64::from(all) } else { 0 };
                kind
            });
            found.all.push(Candidate { level: cell.0, quarters: within, freed, parent: place.parent });
            match place.parent {
                Some(parent) => found.all[parent].quarters[place.number] = Quarter::Candidate(number),
                None => found.roots[place.number] = Quarter::Candidate(number),
            }
        }
        found
    }

    /// Returns the rank of each in the order in which they are worth splitting.
    pub(super) fn ranks(&self) -> Vec<usize> {
        let mut ranks = vec![usize::MAX; self.all.len()];
        let mut next = 0;
        self.in_order(|split| {
            ranks[split] = next;
            next += 1;
        });
        ranks
    }

    fn in_order(&self, mut take: impl FnMut(usize)) {
        let mut groups: Vec<Group> = self.all.iter().enumerate().map(|(split, candidate)| Group::of(split, candidate)).collect();
        let mut group_of: Vec<usize> = (0..groups.len()).collect();
        // The next split of the same group.
        let mut next: Vec<Option<usize>> = vec![None; groups.len()];
        let mut heap: BinaryHeap<(u64, usize)> = groups.iter().enumerate().map(|(id, group)| (group.worth(), id)).collect();
        while let Some((worth, id)) = heap.pop() {
            let group = groups[id];
            if group.is_done || group.worth() != worth || group_of[id] != id {
                continue;
            }
            let depends_on = group.parent.map(|parent| find(&mut group_of, parent)).filter(|parent| !groups[*parent].is_done);
            match depends_on {
                None => {
                    groups[id].is_done = true;
                    let mut split = Some(id);
                    while let Some(this) = split {
                        take(this);
                        split = next[this];
                    }
                }
                Some(parent) => {
                    let whole = &mut groups[parent];
                    (whole.freed, whole.count) = (whole.freed + group.freed, whole.count + group.count);
                    next[whole.last] = Some(id);
                    whole.last = group.last;
                    group_of[id] = parent;
                    heap.push((whole.worth(), parent));
                }
            }
        }
    }
}

/// Where a cell stands: which quarter of which candidate, or which root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    parent: Option<usize>,
    number: usize,
}

/// Says what a cell is and how many cells of the raster it has, and opens it if it can be split.
fn look(pyramid: &Pyramid, cell: Cell, place: Place, open: &mut BinaryHeap<(u32, Cell, Place)>) -> (Quarter, u32) {
    let (marked, all) = (pyramid.marked(cell), pyramid.all(cell));
    if marked == 0 {
        return (Quarter::Empty, all);
    }
    if pyramid.is_divided(cell) && all > marked {
        open.push((all - marked, cell, place));
    }
    (Quarter::Marked, all)
}

/// Splits that are taken together, named after the first of them.
#[derive(Clone, Copy)]
struct Group {
    freed: u64,
    count: u64,
    last: usize,
    /// The split that the first of them depends on.
    parent: Option<usize>,
    is_done: bool,
}

impl Group {
    fn of(split: usize, candidate: &Candidate) -> Self {
        Self { freed: candidate.freed, count: 1, last: split, parent: candidate.parent, is_done: false }
    }

    /// Returns what each of its splits frees, in some small unit.
    fn worth(&self) -> u64 {
        (self.freed << 16) / self.count
    }
}

/// Returns the group that a split has been joined to.
fn find(group_of: &mut [usize], mut split: usize) -> usize {
    while group_of[split] != split {
        group_of[split] = group_of[group_of[split]];
        split = group_of[split];
    }
    split
}
