//! A raster seen from above: how much of each larger cell is marked.

use std::collections::HashMap;

use super::{
    raster::{PlaceHasher, Raster, Tiles},
    walk::Roots,
};
use crate::Bbox;

/// A cell by level, column and row.
pub(super) type Cell = (i8, i32, i32);

/// Something for each of some cells.
type Cells<T> = HashMap<Cell, T, PlaceHasher>;

/// How many cells of the raster are marked in each cell of each coarser level, within the box.
pub(super) struct Pyramid {
    /// The level of the raster, and its columns and rows that are within the box.
    level: i8,
    columns: [i64; 2],
    rows: [i64; 2],
    tiles: Tiles,
    counts: Cells<u32>,
    roots: i8,
}

impl Pyramid {
    pub(super) fn new(raster: Raster, bbox: &Bbox, roots: i8) -> Self {
        let level = raster.level();
        let Roots { columns, rows, .. } = Roots::over(bbox, level);
        let [columns, rows] = [columns, rows].map(|ends| ends.map(i64::from));
        let mut pyramid = Self { level, columns, rows, tiles: Tiles::default(), counts: Cells::default(), roots };
        let turn = 360_i64 << level;
        for ((column, row), bits) in raster.into_tiles() {
            for offset in [0, turn] {
                pyramid.place(i64::from(column) * 8 + offset, i64::from(row) * 8, bits);
            }
        }
        pyramid.count();
        pyramid
    }

    /// Takes a tile whose south-western cell is given. What lies right beside the box touches its edge, and is held by
    /// the cell within; what lies further out was marked for the other side of ±180.
    fn place(&mut self, column: i64, row: i64, bits: u64) {
        let [west, east] = self.columns;
        let [south, north] = self.rows;
        if column > east + 1 || column + 8 < west || row > north + 1 || row + 8 < south {
            return;
        }
        if column >= west && column + 7 <= east && row >= south && row + 7 <= north {
            *self.tiles.entry(((column >> 3) as i32, (row >> 3) as i32)).or_default() |= bits;
            return;
        }
        for place in (0..64).filter(|place| bits >> place & 1 == 1) {
            let (column, row) = (column + (place & 7), row + (place >> 3));
            if column < west - 1 || column > east + 1 {
                continue;
            }
            let (column, row) = (column.clamp(west, east), row.clamp(south, north));
            let tile = ((column >> 3) as i32, (row >> 3) as i32);
            *self.tiles.entry(tile).or_default() |= 1 << (8 * (row & 7) + (column & 7));
        }
    }

    fn count(&mut self) {
        let mut below: HashMap<(i32, i32), u32, PlaceHasher> =
            self.tiles.iter().map(|(tile, bits)| (*tile, bits.count_ones())).collect();
        for level in (self.roots..=self.level - 3).rev() {
            let mut above = HashMap::default();
            for ((column, row), count) in below {
                self.counts.insert((level, column, row), count);
                *above.entry((column >> 1, row >> 1)).or_default() += count;
            }
            below = above;
        }
    }

    /// Returns how many cells of the raster are marked in a cell.
    pub(super) fn marked(&self, cell: Cell) -> u32 {
        let (level, column, row) = cell;
        let within = level - (self.level - 3);
        if within <= 0 {
            return self.counts.get(&cell).copied().unwrap_or(0);
        }
        let (bits, side) = (self.tiles.get(&(column >> within, row >> within)).copied().unwrap_or(0), 8 >> within);
        let line = ((1_u64 << side) - 1) << (side * (column & ((1 << within) - 1)));
        let first = side * (row & ((1 << within) - 1));
        (first..first + side).map(|row| (bits >> (8 * row) & line).count_ones()).sum()
    }

    /// Returns how many cells of the raster a cell has within the box.
    pub(super) fn all(&self, (level, column, row): Cell) -> u32 {
        let shift = self.level - level;
        let overlap = |at: i32, [low, high]: [i64; 2]| {
            let first = i64::from(at) << shift;
            (high.min(first + (1 << shift) - 1) - low.max(first) + 1).max(0)
        };
        u32::try_from(overlap(column, self.columns) * overlap(row, self.rows)).unwrap_or(u32::MAX)
    }

    pub(super) fn share(&self, roots: Roots) -> f64 {
        let (marked, all) = roots
            .cells()
            .fold((0.0, 0.0), |(marked, all), cell| (marked + f64::from(self.marked(cell)), all + f64::from(self.all(cell))));
        marked / all
    }

    /// Tells whether a cell consists of more than one of the raster.
    pub(super) fn is_divided(&self, cell: Cell) -> bool {
        cell.0 < self.level
    }
}

/// Returns the quarters of a cell, as they are ordered in a tree.
pub(super) fn quarters((level, column, row): Cell) -> [Cell; 4] {
    [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(x, y)| (level + 1, 2 * column + x, 2 * row + y))
}
