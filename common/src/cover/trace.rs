//! From positions to a raster, as a scan meets them.
//!
//! Every cell that an edge passes through is marked. For the inside of rings, each place where an edge crosses the
//! southern side of a row is noted with its direction; a cell that no edge passes through is inside a ring when the
//! crossings west of it do not add up to zero. The southern sides of a coarser level are among those of a finer one,
//! so crossings survive when the raster grows coarser.

use super::{
    fill::{Crossings, inside},
    raster::Raster,
};

/// An edge that spans more cells than this makes the raster coarser first.
const MOST_CELLS_OF_AN_EDGE: f64 = 1_024.0;

/// A raster of more cells across the body is made coarser.
const MOST_CELLS_ACROSS: f64 = 8_192.0;

/// Marks that a trace may make before the raster is made coarser, at first and after that.
const FIRST_MARKS: i64 = 8_000;
const FURTHER_MARKS: i64 = 4_000;

/// Positions that allow one mark more, so that drawing stays cheap beside reading.
const POSITIONS_A_MARK: i64 = 12;

/// How far beside a computed crossing the true one may lie, in cells; the error is below a quarter of it.
const SLACK: f64 = 1e-6;

/// Draws one body.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    raster: Raster,
    /// Two to the level of the raster.
    scale: f64,
    first: Option<[f64; 2]>,
    at: [f64; 2],
    /// The cell that the last position lies in: west, south, east, north.
    cell: [f64; 4],
    ring: Crossings,
    in_ring: bool,
    is_given_up: bool,
    exterior: Crossings,
    holes: Crossings,
    rings: usize,
    /// What is left of the marks, in twelfths of one.
    allowance: i64,
    /// West, south, east and north of all that was met.
    bounds: [f64; 4],
}

impl Trace {
    pub(crate) fn new() -> Self {
        let raster = Raster::new();
        Self {
            scale: scale_of(raster.level()),
            raster,
            first: None,
            at: [0.0; 2],
            cell: [0.0; 4],
            ring: Crossings::default(),
            in_ring: false,
            is_given_up: false,
            exterior: Crossings::default(),
            holes: Crossings::default(),
            rings: 0,
            allowance: FIRST_MARKS * POSITIONS_A_MARK,
            bounds: [f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY],
        }
    }

    pub(crate) fn begin_line(&mut self) {
        (self.first, self.in_ring) = (None, false);
    }

    pub(crate) fn begin_ring(&mut self) {
        (self.first, self.in_ring) = (None, true);
    }

    /// Takes a position that stands alone.
    pub(crate) fn point(&mut self, x: f64, y: f64) {
        self.reach([x, y]);
        self.mark_cell([x, y]);
        self.fit();
    }

    /// Takes the next position of a line or ring. No edge is longer than half a turn but by the writer's will.
    #[inline]
    pub(crate) fn position(&mut self, x: f64, y: f64) {
        self.allowance += 1;
        let [west, south, east, north] = self.cell;
        if self.first.is_some() && x >= west && x < east && y >= south && y < north {
            self.at = [x, y];
            return;
        }
        self.leave([x, y]);
    }

    /// Takes the next positions of a line or ring, whose longitudes are `shift` farther east; they lie within
    /// `bounds`: west, south, east, north.
    #[inline]
    pub(crate) fn positions(&mut self, positions: &[[f64; 2]], shift: f64, bounds: [f64; 4]) {
        let [west, south, east, north] = self.cell;
        let stay = self.first.is_some() && bounds[0] >= west && bounds[2] < east && bounds[1] >= south && bounds[3] < north;
        match positions.last() {
            Some([x, y]) if stay => {
                self.allowance += positions.len() as i64;
                self.at = [*x + shift, *y];
            }
            _ => positions.iter().for_each(|[x, y]| self.position(*x + shift, *y)),
        }
    }

    #[inline(never)]
    fn leave(&mut self, to: [f64; 2]) {
        if self.is_given_up {
            return;
        }
        self.reach(to);
        match self.first {
            None => {
                self.first = Some(to);
                self.mark_cell(to);
            }
            // It marks the cells of both its ends.
            Some(_) => self.edge(self.at, to),
        }
        self.at = to;
        self.fit();
        self.enter(to);
    }

    /// Ends a line string.
    pub(crate) fn end_line(&mut self) {
        self.first = None;
    }

    /// Ends a ring, with the edge that closes it.
    pub(crate) fn end_ring(&mut self) {
        let Some(first) = self.first.take() else { return };
        if first != self.at {
            self.edge(self.at, first);
        }
        self.fit();
        let crossings = if self.rings == 0 { &mut self.exterior } else { &mut self.holes };
        crossings.add(&mut self.ring);
        self.rings += 1;
    }

    /// Ends a part: what is inside its exterior ring and in none of its holes is filled.
    pub(crate) fn end_part(&mut self) {
        self.rings = 0;
        let level = self.raster.level();
        for span in inside(&mut self.exterior, &mut self.holes) {
            self.raster.mark(level, span.row, span.from, span.to);
            self.allowance -= POSITIONS_A_MARK * (1 + (span.to - span.from) / 64);
            self.raster.fit();
        }
        self.economise();
        self.scale = scale_of(self.raster.level());
        self.cell = [0.0; 4];
    }

    /// Ends a ring that goes round a pole: marks all longitudes between two latitudes.
    pub(crate) fn end_polar_ring(&mut self, south: f64, north: f64) {
        let level = self.raster.level();
        while self.raster.coarsen() {}
        self.ring.clear();
        self.follow(level);
        let half = 180 << self.raster.level();
        for row in floor(south * self.scale)..=floor(north * self.scale) {
            self.raster.mark(self.raster.level(), row, -half, half - 1);
        }
        (self.first, self.cell, self.rings) = (None, [0.0; 4], self.rings + 1);
    }

    /// Returns the cells; `None` when the body is a scribble over half the Earth, which its bbox says as well.
    pub(super) fn finish(self) -> Option<Raster> {
        (!self.is_given_up).then_some(self.raster)
    }

    /// Takes note of how far the body reaches: cells that are small beside that tell nothing that a cover has room for.
    fn reach(&mut self, [x, y]: [f64; 2]) {
        let [west, south, east, north] = self.bounds;
        if x >= west && x <= east && y >= south && y <= north {
            return;
        }
        let bounds = [west.min(x), south.min(y), east.max(x), north.max(y)];
        self.bounds = bounds;
        let across = (bounds[2] - bounds[0]).max(bounds[3] - bounds[1]);
        if across * self.scale <= MOST_CELLS_ACROSS {
            return;
        }
        let level = self.raster.level();
        while across * scale_of(self.raster.level()) > MOST_CELLS_ACROSS && self.raster.coarsen() {}
        self.follow(level);
    }

    fn mark_cell(&mut self, [x, y]: [f64; 2]) {
        let column = floor(x * self.scale);
        self.raster.mark(self.raster.level(), floor(y * self.scale), column, column);
    }

    /// Takes note of the cell that a position lies in.
    fn enter(&mut self, [x, y]: [f64; 2]) {
        let (column, row) = (floor(x * self.scale), floor(y * self.scale));
        // The scale is a power of two, so that nothing is lost.
        let side = 1.0 / self.scale;
        self.cell = [column, row, column + 1, row + 1].map(|edge| edge as f64 * side);
    }

    #[inline]
    fn fit(&mut self) {
        if self.allowance < 0 || !self.raster.fits() {
            self.shrink();
        }
    }

    #[cold]
    fn shrink(&mut self) {
        let level = self.raster.level();
        self.raster.fit();
        self.economise();
        self.follow(level);
    }

    fn economise(&mut self) {
        if self.allowance < 0 {
            self.is_given_up |= !self.raster.coarsen();
            self.allowance = FURTHER_MARKS * POSITIONS_A_MARK;
        }
    }

    /// Makes the crossings as coarse as the raster, which was at `level`.
    fn follow(&mut self, level: i8) {
        let shift = level - self.raster.level();
        if shift > 0 {
            self.scale = scale_of(self.raster.level());
            self.ring.coarsen(shift);
            self.exterior.coarsen(shift);
            self.holes.coarsen(shift);
            self.cell = [0.0; 4];
        }
    }

    fn edge(&mut self, from: [f64; 2], to: [f64; 2]) {
        let longest = (to[0] - from[0]).abs().max((to[1] - from[1]).abs());
        if longest * self.scale > MOST_CELLS_OF_AN_EDGE {
            let level = self.raster.level();
            while longest * scale_of(self.raster.level()) > MOST_CELLS_OF_AN_EDGE && self.raster.coarsen() {}
            self.follow(level);
        }
        let ([u0, v0], [u1, v1]) = (from.map(|degrees| degrees * self.scale), to.map(|degrees| degrees * self.scale));
        let (delta, [low_u, low_v], [high_u, high_v]) = if v0 <= v1 { (1, [u0, v0], [u1, v1]) } else { (-1, [u1, v1], [u0, v0]) };
        let (west, east) = (u0.min(u1), u0.max(u1));
        let (first, last) = (floor(low_v), floor(high_v));
        self.allowance -= POSITIONS_A_MARK * (last - first + 1);
        let mut entry = low_u;
        for row in first..=last {
            let exit = if row == last {
                high_u
            } else {
                let side = (row + 1) as f64;
                let crossing = low_u + (side - low_v) / (high_v - low_v) * (high_u - low_u);
                let crossing = crossing.clamp(west, east);
                if self.in_ring {
                    self.ring.push(row + 1, floor(crossing), delta);
                }
                crossing
            };
            let (a, b) = if entry <= exit { (entry, exit) } else { (exit, entry) };
            let (a, b) = ((a - SLACK).max(west), (b + SLACK).min(east));
            self.raster.mark(self.raster.level(), row, floor(a), floor(b));
            entry = exit;
        }
    }
}

/// Returns the greatest integer that is not above a number of cells, without the call that [`f64::floor`] is where the CPU
/// is not known to have an instruction for it.
#[inline]
fn floor(cells: f64) -> i64 {
    let towards_zero = cells as i64;
    towards_zero - i64::from(towards_zero as f64 > cells)
}

fn scale_of(level: i8) -> f64 {
    f64::from(1_u32 << level)
}
