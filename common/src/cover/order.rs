//! The order in which cells are split, so that each further split frees as much as it can.
//!
//! A split frees its empty quarters; what it frees further down takes further splits. Among all orders in which a cell
//! comes before its quarters, this one frees the most for any number of splits: the best-paying group of splits is
//! taken again and again, and joined to the group it depends on (Horn 1972, "Single-machine job sequencing with treelike
//! precedence ordering").

use std::collections::BinaryHeap;

use super::{
    pyramid::{Cell, Cells, Pyramid, quarters},
    walk::Roots,
};

/// Splits that are considered, those with the most vacant first; about 700 fill 400 bytes.
const MOST_SPLITS: usize = 2_000;

/// Splits that are taken together.
struct Group {
    freed: u64,
    splits: Vec<usize>,
    /// The split that the first of them depends on.
    parent: Option<usize>,
    is_done: bool,
}

impl Group {
    /// Returns what each of its splits frees, in some small unit.
    fn worth(&self) -> u64 {
        (self.freed << 16) / self.splits.len().max(1) as u64
    }
}

/// Returns the cells in the order in which they are worth splitting.
pub(super) fn order(pyramid: &Pyramid, roots: Roots) -> Vec<Cell> {
    let candidates = candidates(pyramid, roots);
    let places: Cells<usize> = candidates.iter().enumerate().map(|(place, cell)| (*cell, place)).collect();
    let mut groups: Vec<Group> = candidates
        .iter()
        .enumerate()
        .map(|(place, (level, column, row))| {
            let parent = places.get(&(level - 1, column >> 1, row >> 1)).copied();
            let cell = candidates[place];
            let empty = quarters(cell).into_iter().filter(|quarter| pyramid.marked(*quarter) == 0);
            Group {
                freed: empty.map(|quarter| u64::from(pyramid.all(quarter))).sum(),
                splits: vec![place],
                parent,
                is_done: false,
            }
        })
        .collect();
    let mut group_of: Vec<usize> = (0..groups.len()).collect();
    let mut heap: BinaryHeap<(u64, usize)> = groups.iter().enumerate().map(|(id, group)| (group.worth(), id)).collect();
    let mut order = Vec::with_capacity(groups.len());
    while let Some((worth, id)) = heap.pop() {
        if groups[id].is_done || groups[id].worth() != worth || group_of[id] != id {
            continue;
        }
        let depends_on = groups[id].parent.map(|parent| find(&mut group_of, parent)).filter(|parent| !groups[*parent].is_done);
        let splits = std::mem::take(&mut groups[id].splits);
        match depends_on {
            None => {
                groups[id].is_done = true;
                order.extend(splits.into_iter().map(|place| candidates[place]));
            }
            Some(parent) => {
                groups[parent].freed += groups[id].freed;
                groups[parent].splits.extend(splits);
                group_of[id] = parent;
                heap.push((groups[parent].worth(), parent));
            }
        }
    }
    order
}

/// Returns the group that a split has been joined to.
fn find(group_of: &mut [usize], mut split: usize) -> usize {
    while group_of[split] != split {
        group_of[split] = group_of[group_of[split]];
        split = group_of[split];
    }
    split
}

fn candidates(pyramid: &Pyramid, roots: Roots) -> Vec<Cell> {
    let entry = |cell: Cell| pyramid.can_split(cell).then(|| (pyramid.vacant(cell), cell));
    let mut open: BinaryHeap<(Option<u32>, Cell)> = roots.cells().filter_map(entry).collect();
    let mut candidates = Vec::new();
    while let Some((_, cell)) = open.pop().filter(|_| candidates.len() < MOST_SPLITS) {
        candidates.push(cell);
        open.extend(quarters(cell).into_iter().filter_map(entry));
    }
    candidates
}
