//! A set of cells of one size that grows coarser instead of growing beyond its bound.
//!
//! A cell of level n is 2⁻ⁿ degrees wide and high; columns and rows begin at longitude and latitude 0, so that cells of
//! one level nest in those of the level above and every edge of a cell is exact in binary. Columns are folded onto the
//! Earth, where level n has 360·2ⁿ of them. Cells lie in tiles of eight by eight.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

/// The level that a raster begins with: cells of a decimetre.
const FINEST: i8 = 20;

/// The coarsest level, half a degree, at which the whole Earth has 4,050 tiles.
const COARSEST: i8 = 1;

/// Tiles that are kept before the level is lowered.
const MOST_TILES: usize = 4_096;

/// Tiles by column and row, each with a bit for each of its cells, row by row from the south-west.
pub(super) type Tiles = HashMap<(i32, i32), u64, PlaceHasher>;

/// Hashes places on the Earth.
pub(super) type PlaceHasher = BuildHasherDefault<TileHasher>;

/// Cells that a geometry may be in. What is marked stays marked: the set only ever grows.
#[derive(Clone, Debug)]
pub(super) struct Raster {
    level: i8,
    tiles: Tiles,
    /// The tile that is being marked, not yet in the map.
    current: ((i32, i32), u64),
}

impl Raster {
    pub(super) fn new() -> Self {
        Self { level: FINEST, tiles: Tiles::default(), current: ((0, 0), 0) }
    }

    pub(super) fn level(&self) -> i8 {
        self.level
    }

    /// Marks the columns `from` to `to` of a row, all of `level`, which is that of the raster or a finer one.
    #[inline]
    pub(super) fn mark(&mut self, level: i8, row: i64, from: i64, to: i64) {
        // Most of what is marked lies in the tile that was marked last.
        let (tile_column, tile_row) = self.current.0;
        let [tile_column, tile_row] = [tile_column, tile_row].map(i64::from);
        let is_current = from >> 3 == tile_column && to >> 3 == tile_column && row >> 3 == tile_row;
        if is_current && level == self.level && self.is_folded(from, to) {
            self.current.1 |= columns(from & 7, to & 7) << (8 * (row & 7));
            return;
        }
        self.mark_elsewhere(level, row, from, to);
    }

    /// Tells whether columns lie on the Earth as they are, and not at ±180.
    #[inline]
    fn is_folded(&self, from: i64, to: i64) -> bool {
        let half = 180 << self.level;
        from > -half && to < half
    }

    #[inline(never)]
    fn mark_elsewhere(&mut self, level: i8, row: i64, from: i64, to: i64) {
        let shift = level - self.level;
        let (row, from, to) = (row >> shift, from >> shift, to >> shift);
        let half = 180 << self.level;
        if self.is_folded(from, to) {
            return self.mark_folded(row, from, to);
        }
        if to - from >= 2 * half - 1 {
            return self.mark_folded(row, -half, half - 1);
        }
        let west = (from + half).rem_euclid(2 * half) - half;
        let east = west + (to - from);
        self.mark_folded(row, west, east.min(half - 1));
        if east >= half {
            self.mark_folded(row, -half, east - 2 * half);
        }
        if west == -half || east >= half {
            // What touches the cut at ±180 may be meant on either side of it.
            self.mark_folded(row, half - 1, half - 1);
        }
    }

    fn mark_folded(&mut self, row: i64, from: i64, to: i64) {
        for tile in from >> 3..=to >> 3 {
            let first = from.max(tile << 3) & 7;
            let last = to.min((tile << 3) + 7) & 7;
            let key = (tile as i32, (row >> 3) as i32);
            if key != self.current.0 {
                self.flush();
                self.current.0 = key;
            }
            self.current.1 |= columns(first, last) << (8 * (row & 7));
        }
    }

    fn flush(&mut self) {
        let (key, bits) = self.current;
        if bits != 0 {
            *self.tiles.entry(key).or_default() |= bits;
        }
        self.current.1 = 0;
    }

    /// Tells whether the tiles are within their bound.
    #[inline]
    pub(super) fn fits(&self) -> bool {
        self.tiles.len() <= MOST_TILES
    }

    /// Lowers the level until the tiles are within their bound again.
    pub(super) fn fit(&mut self) {
        while self.tiles.len() > MOST_TILES && self.coarsen() {}
    }

    /// Lowers the level by one; `false` at the coarsest.
    pub(super) fn coarsen(&mut self) -> bool {
        if self.level <= COARSEST {
            return false;
        }
        self.flush();
        let mut tiles = Tiles::default();
        for ((column, row), bits) in self.tiles.drain() {
            let corner = 4 * (column & 1) + 32 * (row & 1);
            *tiles.entry((column >> 1, row >> 1)).or_default() |= halved(bits) << corner;
        }
        (self.tiles, self.level) = (tiles, self.level - 1);
        true
    }

    pub(super) fn into_tiles(mut self) -> Tiles {
        self.flush();
        self.tiles
    }
}

/// Returns the bits of columns of a tile, ends included, in its southernmost row.
#[inline]
fn columns(first: i64, last: i64) -> u64 {
    (0xFF_u64 >> (7 - last)) & (0xFF << first)
}

/// Returns a tile's cells in fours, in the south-western quarter of a tile.
fn halved(bits: u64) -> u64 {
    let pairs = bits | bits >> 1 | bits >> 8 | bits >> 9;
    let mut quarter = 0;
    for row in 0..4 {
        let cells = pairs >> (16 * row);
        quarter |= (cells & 1 | cells >> 1 & 2 | cells >> 2 & 4 | cells >> 3 & 8) << (8 * row);
    }
    quarter
}

/// Mixes the two halves of a tile's place, which nobody chooses to collide but at the cost of their own cover.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TileHasher(u64);

impl Hasher for TileHasher {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_i32(i32::from(*byte)));
    }

    fn write_i8(&mut self, level: i8) {
        self.write_i32(i32::from(level));
    }

    fn write_i32(&mut self, half: i32) {
        self.0 = (self.0.rotate_left(32) ^ u64::from(half as u32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coarser_raster_holds_what_a_finer_one_held() {
        let mut raster = Raster::new();
        raster.mark(FINEST, 5, -9, 17);
        let level = raster.level();
        assert!(raster.coarsen());
        assert_eq!(raster.level(), level - 1);
        let tiles = raster.into_tiles();
        for column in -9_i64..=17 {
            let (column, row) = (column >> 1, 5_i64 >> 1);
            let bits = tiles[&((column >> 3) as i32, (row >> 3) as i32)];
            assert_ne!(bits & 1 << (8 * (row & 7) + (column & 7)), 0, "{column}");
        }
        assert_eq!(tiles.values().map(|bits| bits.count_ones()).sum::<u32>(), 14);
    }

    #[test]
    fn columns_are_folded_onto_the_earth() {
        let mut raster = Raster::new();
        while raster.coarsen() {}
        raster.mark(COARSEST, 0, 359, 361);
        raster.mark(COARSEST, 1, 0, 800);
        let tiles = raster.into_tiles();
        let row = |row: i64| tiles.values().map(|bits| (bits >> (8 * row) & 0xFF).count_ones()).sum::<u32>();
        assert_eq!((row(0), row(1)), (3, 720));
    }
}
