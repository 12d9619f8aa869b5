//! Folds positions into a bbox.

use super::{
    LongEdges,
    edges::{Edges, RingEnd, less, more},
    longitudes::Longitudes,
};
use crate::{
    cover::Trace,
    geojson::{GeometryType, Position, Visitor},
};

/// Takes positions as a scan meets them.
#[derive(Debug)]
pub(super) struct Fold {
    long_edges: LongEdges,
    /// By how many degrees the box is made wider.
    margin: f64,
    longitudes: Longitudes,
    south: f64,
    north: f64,
    vertex_count: u64,
    suspect: bool,
    has_z: bool,
    part: Part,
    line: Option<Line>,
    in_rings: bool,
    trace: Option<Box<Trace>>,
}

/// What a fold comes to.
#[derive(Debug)]
pub(super) struct Summary {
    pub(super) bbox: Option<[f64; 4]>,
    pub(super) vertex_count: u64,
    pub(super) suspect: bool,
    pub(super) has_z: bool,
    pub(super) trace: Option<Box<Trace>>,
}

/// The longitudes of the current part.
#[derive(Clone, Copy, Debug)]
struct Part {
    west: f64,
    east: f64,
    /// Whether the part must take the full circle.
    full: bool,
}

impl Part {
    const EMPTY: Self = Self { west: f64::INFINITY, east: f64::NEG_INFINITY, full: false };
}

/// The current line string or ring.
#[derive(Clone, Copy, Debug)]
struct Line {
    edges: Edges,
    south: f64,
    north: f64,
}

impl Line {
    const fn empty(edges: Edges) -> Self {
        Self { edges, south: f64::INFINITY, north: f64::NEG_INFINITY }
    }
}

impl Fold {
    /// Makes a fold; with a trace, it also draws what it takes.
    pub(super) fn new(long_edges: LongEdges, margin: f64, trace: Option<Box<Trace>>) -> Self {
        Self {
            long_edges,
            margin,
            longitudes: Longitudes::default(),
            south: f64::INFINITY,
            north: f64::NEG_INFINITY,
            vertex_count: 0,
            suspect: false,
            has_z: false,
            part: Part::EMPTY,
            line: None,
            in_rings: false,
            trace,
        }
    }

    pub(super) fn finish(self) -> Summary {
        // A zero is added so that zero has no sign, in whatever order the positions were compared.
        let [south, north] = [(self.south - self.margin).max(-90.0), (self.north + self.margin).min(90.0)];
        let bbox = self.longitudes.span().map(|(west, east)| [west, south, east, north].map(|edge| edge + 0.0));
        Summary { bbox, vertex_count: self.vertex_count, suspect: self.suspect, has_z: self.has_z, trace: self.trace }
    }

    /// Takes a ring that goes once round the Earth when its long edges are taken the short way: one pole is inside
    /// it, the nearer one, or either for a ring on both sides of the equator.
    fn take_polar_ring(&mut self, ring: &Line) {
        self.part.full = true;
        let south = if ring.south <= 0.0 { -90.0 } else { ring.south };
        let north = if ring.north >= 0.0 { 90.0 } else { ring.north };
        (self.south, self.north) = (self.south.min(south), self.north.max(north));
        if let Some(trace) = &mut self.trace {
            trace.end_polar_ring(south, north);
        }
    }

    #[inline]
    fn take(&mut self, Position { x, y, .. }: Position) {
        let mut unrolled = x;
        if let Some(line) = &mut self.line {
            line.south = line.south.min(y);
            line.north = line.north.max(y);
            let is_long = line.edges.take(x);
            unrolled += line.edges.shift();
            if is_long {
                self.take_long_edge();
            }
            if let Some(trace) = &mut self.trace {
                trace.position(unrolled, y);
            }
        } else {
            self.south = self.south.min(y);
            self.north = self.north.max(y);
            if let Some(trace) = &mut self.trace {
                trace.point(x, y);
            }
        }
        self.part.west = self.part.west.min(unrolled);
        self.part.east = self.part.east.max(unrolled);
    }

    fn take_long_edge(&mut self) {
        if self.long_edges == LongEdges::Suspect {
            self.suspect = true;
            self.part.full = true;
        }
    }
}

/// Returns west, south, east and north of positions, none of whose ordinates is NaN; infinities of none.
#[inline]
fn bounds(positions: &[[f64; 2]]) -> [f64; 4] {
    let [mut low, mut high] = [[f64::INFINITY; 2], [f64::NEG_INFINITY; 2]];
    for position in positions {
        low = std::array::from_fn(|axis| less(position[axis], low[axis]));
        high = std::array::from_fn(|axis| more(position[axis], high[axis]));
    }
    [low[0], low[1], high[0], high[1]]
}

impl Visitor for Fold {
    fn begin_geometry(&mut self, kind: GeometryType) {
        self.in_rings = matches!(kind, GeometryType::Polygon | GeometryType::MultiPolygon);
    }

    fn begin_part(&mut self) {
        self.part = Part::EMPTY;
    }

    fn begin_line(&mut self) {
        self.line = Some(Line::empty(Edges::default()));
        if let Some(trace) = &mut self.trace {
            if self.in_rings { trace.begin_ring() } else { trace.begin_line() }
        }
    }

    #[inline]
    fn position(&mut self, position: Position) {
        self.vertex_count += 1;
        self.has_z |= position.z.is_some();
        self.take(position);
    }

    #[inline]
    fn positions(&mut self, positions: &[[f64; 2]]) {
        let Some(line) = &mut self.line else { return };
        self.vertex_count += positions.len() as u64;
        let [west, south, east, north] = bounds(positions);
        if !line.edges.take_short(positions, west, east) {
            return positions.iter().for_each(|[x, y]| self.take(Position { x: *x, y: *y, z: None }));
        }
        let shift = line.edges.shift();
        let [west, east] = [west + shift, east + shift];
        line.south = less(south, line.south);
        line.north = more(north, line.north);
        self.part.west = less(west, self.part.west);
        self.part.east = more(east, self.part.east);
        if let Some(trace) = &mut self.trace {
            trace.positions(positions, shift, [west, south, east, north]);
        }
    }

    fn inserted(&mut self, position: Position) {
        self.take(position);
    }

    fn end_line(&mut self) {
        let Some(line) = self.line.take() else { return };
        self.south = less(line.south, self.south);
        self.north = more(line.north, self.north);
        if !self.in_rings {
            if let Some(trace) = &mut self.trace {
                trace.end_line();
            }
            return;
        }
        let RingEnd { closes_long, goes_round, may_be_cap } = line.edges.close();
        if closes_long || may_be_cap {
            self.take_long_edge();
        }
        if goes_round || may_be_cap {
            self.take_polar_ring(&line);
        } else if let Some(trace) = &mut self.trace {
            trace.end_ring();
        }
    }

    fn end_part(&mut self) {
        if let Some(trace) = &mut self.trace {
            trace.end_part();
        }
        let Part { west, east, full } = self.part;
        if west > east {
            return;
        }
        if full { self.longitudes.add_full() } else { self.longitudes.add(west - self.margin, east + self.margin) }
    }
}
