//! Which cells of a raster are worth their bits: a tree that is split first where most of a cell is empty.

use std::collections::HashSet;

use super::{
    coder::Encoder,
    order::order,
    pyramid::{Cell, Cells, Pyramid, quarters},
    raster::{PlaceHasher, Raster},
    walk::{Roots, State, walk},
};
use crate::Bbox;

/// Splits that the first attempt makes for each byte there is room for.
const SPLITS_PER_BYTE: f64 = 1.8;

/// Attempts to fill the room.
const ATTEMPTS: usize = 6;

/// Roots that a box is divided into at most.
const ROOTS: i64 = 12;

/// Cells of the raster along the longer side of the box; more could not be told apart in the room there is.
const MOST_CELLS_OF_A_SIDE: f64 = 32_768.0;

/// A box this full is as good as its cover.
const FULL_SHARE: f64 = 0.98;

/// Returns the cells of a raster within `bbox` in at most `room` bytes; `None` when they say no more than the box.
pub(super) fn choose(mut raster: Raster, bbox: &Bbox, room: usize) -> Option<Vec<u8>> {
    let longest = (bbox.unrolled_east() - bbox.west()).max(bbox.north() - bbox.south());
    while longest * f64::from(raster.level()).exp2() > MOST_CELLS_OF_A_SIDE && raster.coarsen() {}
    let roots = roots_of(bbox, raster.level() - 3)?;
    let pyramid = Pyramid::new(raster, bbox, roots.level);
    if pyramid.share(roots) > FULL_SHARE {
        return None;
    }
    let order = order(&pyramid, roots);
    let rank: Cells<usize> = order.iter().enumerate().map(|(rank, cell)| (*cell, rank)).collect();
    let (mut best, mut best_splits) = (None, 0);
    let mut too_many = order.len() + 1;
    let mut splits = order.len().min((room as f64 * SPLITS_PER_BYTE) as usize);
    for _ in 0..ATTEMPTS {
        let text = write(&pyramid, roots, &Kept::new(&pyramid, &rank, splits, roots));
        let length = text.len().max(1);
        if text.len() <= room {
            (best, best_splits) = (Some(text), splits);
        } else {
            too_many = splits;
        }
        // The next attempt goes where the length of this one points, between what fits and what does not.
        let aim = (splits as f64 * room as f64 / length as f64) as usize;
        splits = aim.clamp(best_splits + 1, too_many.saturating_sub(1).max(best_splits + 1));
        if splits >= too_many || (length as f64) > 0.985 * room as f64 && length <= room {
            break;
        }
    }
    best.filter(|text| text.len() > 3)
}

/// Returns the largest number of roots that are few enough; their level is at most `finest`.
fn roots_of(bbox: &Bbox, finest: i8) -> Option<Roots> {
    (-8..=finest).rev().map(|level| Roots::over(bbox, level)).find(|roots| roots.count() <= ROOTS)
}

/// Writes the tree: kind, level of the roots, deepest level, and the coded cells.
fn write(pyramid: &Pyramid, roots: Roots, kept: &Kept) -> Vec<u8> {
    let deepest = kept.deepest.unwrap_or(roots.level);
    let mut coder = Encoder::new(vec![super::KIND, roots.level as u8, deepest as u8]);
    let state = |level, column, row| {
        let cell = (level, column, row);
        if kept.splits.contains(&cell) {
            State::Split
        } else if pyramid.marked(cell) == 0 {
            State::Empty
        } else {
            State::Full
        }
    };
    match walk(roots, deepest, &mut coder, state) {
        Some(_) => coder.finish(),
        None => vec![0; usize::from(u16::MAX)],
    }
}

/// The splits that are made: those that lead to an empty cell.
struct Kept {
    splits: HashSet<Cell, PlaceHasher>,
    deepest: Option<i8>,
}

impl Kept {
    fn new(pyramid: &Pyramid, rank: &Cells<usize>, most: usize, roots: Roots) -> Self {
        let mut kept = Self { splits: HashSet::default(), deepest: None };
        for cell in roots.cells() {
            kept.visit(pyramid, rank, most, cell);
        }
        kept
    }

    /// Returns whether the cell is empty or leads to an empty one.
    fn visit(&mut self, pyramid: &Pyramid, rank: &Cells<usize>, most: usize, cell: Cell) -> bool {
        if rank.get(&cell).is_none_or(|rank| *rank >= most) {
            return pyramid.marked(cell) == 0;
        }
        // Each quarter is visited, whatever the others lead to.
        let useful = quarters(cell).map(|quarter| self.visit(pyramid, rank, most, quarter)).contains(&true);
        if useful {
            self.splits.insert(cell);
            self.deepest = self.deepest.max(Some(cell.0 + 1));
        }
        useful
    }
}
