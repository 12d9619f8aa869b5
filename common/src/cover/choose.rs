//! Which cells of a raster are worth their bits: a tree that is split first where most of a cell is empty.

use std::collections::VecDeque;

use super::{
    coder::Encoder,
    order::{Candidate, Candidates, Quarter},
    pyramid::Pyramid,
    raster::Raster,
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
    let candidates = Candidates::of(&pyramid, roots);
    let ranks = candidates.ranks();
    let (mut best, mut best_splits) = (None, 0);
    let mut too_many = ranks.len() + 1;
    let mut splits = ranks.len().min((room as f64 * SPLITS_PER_BYTE) as usize);
    for _ in 0..ATTEMPTS {
        let text = write(&candidates, roots, &Kept::new(&candidates, &ranks, splits));
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
fn write(candidates: &Candidates, roots: Roots, kept: &Kept) -> Vec<u8> {
    let deepest = kept.deepest.unwrap_or(roots.level);
    let mut coder = Encoder::new(vec![super::KIND, roots.level as u8, deepest as u8]);
    // The walk asks level by level, for the quarters of what was split in the order of their wholes.
    let mut next: VecDeque<Quarter> = candidates.roots.iter().copied().collect();
    let state = || match next.pop_front() {
        Some(Quarter::Candidate(split)) if kept.splits[split] => {
            next.extend(candidates.all[split].quarters);
            State::Split
        }
        Some(Quarter::Candidate(_) | Quarter::Marked) => State::Full,
        Some(Quarter::Empty) | None => State::Empty,
    };
    match walk(roots, deepest, &mut coder, state) {
        Some(_) => coder.finish(),
        None => vec![0; usize::from(u16::MAX)],
    }
}

/// The splits that are made: those that lead to an empty cell.
struct Kept {
    splits: Vec<bool>,
    deepest: Option<i8>,
}

impl Kept {
    fn new(candidates: &Candidates, ranks: &[usize], most: usize) -> Self {
        let mut kept = Self { splits: vec![false; ranks.len()], deepest: None };
        for root in &candidates.roots {
            kept.visit(candidates, ranks, most, *root);
        }
        kept
    }

    /// Returns whether the cell is empty or leads to an empty one.
    fn visit(&mut self, candidates: &Candidates, ranks: &[usize], most: usize, cell: Quarter) -> bool {
        let split = match cell {
            Quarter::Candidate(split) if ranks[split] < most => split,
            _ => return cell == Quarter::Empty,
        };
        let Candidate { level, quarters, .. } = candidates.all[split];
        // Each quarter is visited, whatever the others lead to.
        let useful = quarters.map(|quarter| self.visit(candidates, ranks, most, quarter)).contains(&true);
        if useful {
            self.splits[split] = true;
            self.deepest = self.deepest.max(Some(level + 1));
        }
        useful
    }
}
