//! A body's geometry as ISO WKB, written in one pass over the body.
//!
//! No tree is built: counts are written as zero and filled in when they are known, so a body of a million vertices
//! takes its sixteen bytes a vertex and nothing else.

use geoclaim_common::{
    geojson::{GeometryType, Kind, Position, ScanOptions, Visitor},
    reproject::scan,
};

use super::State;

/// A geometry as ISO WKB, after the bytes that were reserved before it.
pub(super) struct Wkb {
    pub(super) bytes: Vec<u8>,
    /// Its planar box: west, south, east, north.
    pub(super) bounds: Option<[f64; 4]>,
    /// What keeps it from being a geometry of OGC Simple Features, which is stricter than GeoJSON as it arrives.
    pub(super) flaw: Option<&'static str>,
}

/// Encodes the geometry of a state, in WGS 84, after `reserved` zeros; `None` when it has none. Features of a collection
/// become one geometry collection.
pub(super) fn encode(state: &State, reserved: usize) -> Option<Wkb> {
    let has_geometry = match state.outline.kind {
        Kind::Geometry(_) | Kind::FeatureCollection => true,
        Kind::Feature => state.outline.geometry.is_some(),
    };
    if !has_geometry {
        return None;
    }
    let is_collection = state.outline.kind == Kind::FeatureCollection;
    let mut writer = Writer::new(reserved, state.extent.has_z, state.extent.vertex_count);
    if is_collection {
        writer.begin_geometry(GeometryType::GeometryCollection);
    }
    let options = ScanOptions { crs: state.crs, ..ScanOptions::default() };
    // The body was scanned before it became a state, so this scan cannot fail.
    scan(state.body.bytes(), &options, &mut writer).ok()?;
    if is_collection {
        writer.end_geometry();
    }
    Some(Wkb { bounds: writer.bounds(), bytes: writer.out, flaw: writer.flaw })
}

/// A geometry that is being written.
struct Frame {
    kind: GeometryType,
    /// Where its count of members, parts, rings or positions stands.
    count_at: usize,
    count: u32,
    has_position: bool,
}

struct Writer {
    out: Vec<u8>,
    has_z: bool,
    frames: Vec<Frame>,
    rings_at: usize,
    rings: u32,
    points_at: usize,
    line: Line,
    bounds: [f64; 4],
    flaw: Option<&'static str>,
}

/// The line or ring that is being written.
#[derive(Default)]
struct Line {
    points: u32,
    first: [f64; 2],
    last: [f64; 2],
}

impl Writer {
    fn new(reserved: usize, has_z: bool, vertex_count: u64) -> Self {
        let ordinates = if has_z { 24 } else { 16 };
        let vertices = usize::try_from(vertex_count).unwrap_or(0);
        let mut out = Vec::with_capacity(reserved + 64 + vertices * (ordinates + 1));
        out.resize(reserved, 0);
        let bounds = [f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY];
        let (frames, line, flaw) = (Vec::new(), Line::default(), None);
        Self { out, has_z, frames, rings_at: 0, rings: 0, points_at: 0, line, bounds, flaw }
    }

    fn bounds(&self) -> Option<[f64; 4]> {
        (self.bounds[0] <= self.bounds[2]).then_some(self.bounds)
    }

    fn header(&mut self, kind: GeometryType) {
        let code = match kind {
            GeometryType::Point => 1_u32,
            GeometryType::LineString => 2,
            GeometryType::Polygon => 3,
            GeometryType::MultiPoint => 4,
            GeometryType::MultiLineString => 5,
            GeometryType::MultiPolygon => 6,
            GeometryType::GeometryCollection => 7,
        };
        self.out.push(1);
        self.out.extend_from_slice(&(code + if self.has_z { 1_000 } else { 0 }).to_le_bytes());
    }

    /// Writes a count to be filled in and returns where it stands.
    fn count(&mut self) -> usize {
        self.out.extend_from_slice(&[0; 4]);
        self.out.len() - 4
    }

    fn fill(&mut self, at: usize, count: u32) {
        self.out[at..at + 4].copy_from_slice(&count.to_le_bytes());
    }

    fn kind(&self) -> Option<GeometryType> {
        self.frames.last().map(|frame| frame.kind)
    }

    fn ordinates(&mut self, position: [f64; 3]) {
        for ordinate in &position[..if self.has_z { 3 } else { 2 }] {
            self.out.extend_from_slice(&ordinate.to_le_bytes());
        }
    }
}

impl Visitor for Writer {
    fn begin_geometry(&mut self, kind: GeometryType) {
        if let Some(parent) = self.frames.last_mut() {
            parent.count += 1;
        }
        self.header(kind);
        let count_at = match kind {
            GeometryType::Point | GeometryType::LineString => 0,
            _ => self.count(),
        };
        self.frames.push(Frame { kind, count_at, count: 0, has_position: false });
    }

    fn begin_part(&mut self) {
        let part = match self.kind() {
            Some(GeometryType::MultiPoint) => GeometryType::Point,
            Some(GeometryType::MultiLineString) => GeometryType::LineString,
            Some(GeometryType::MultiPolygon) => GeometryType::Polygon,
            _ => {
                self.rings_at = self.frames.last().map_or(0, |frame| frame.count_at);
                self.rings = 0;
                return;
            }
        };
        if let Some(frame) = self.frames.last_mut() {
            frame.count += 1;
        }
        self.header(part);
        self.rings = 0;
        if part == GeometryType::Polygon {
            self.rings_at = self.count();
        }
    }

    fn begin_line(&mut self) {
        self.rings += 1;
        self.points_at = self.count();
        self.line = Line::default();
    }

    fn position(&mut self, Position { x, y, z }: Position) {
        if self.line.points == 0 {
            self.line.first = [x, y];
        }
        self.line.last = [x, y];
        self.line.points += 1;
        let [west, south, east, north] = self.bounds;
        self.bounds = [west.min(x), south.min(y), east.max(x), north.max(y)];
        if let Some(frame) = self.frames.last_mut() {
            frame.has_position = true;
        }
        self.ordinates([x, y, z.unwrap_or(0.0)]);
    }

    /// The geometry has the vertices that the body has.
    fn inserted(&mut self, _: Position) {}

    fn end_line(&mut self) {
        let Line { points, first, last } = self.line;
        self.fill(self.points_at, points);
        let is_ring = matches!(self.kind(), Some(GeometryType::Polygon | GeometryType::MultiPolygon));
        let flaw = match points {
            0 => None,
            1 if !is_ring => Some("a line of one position"),
            1..=3 if is_ring => Some("a ring of fewer than four positions"),
            _ if is_ring && first != last => Some("a ring that does not end where it begins"),
            _ => None,
        };
        self.flaw = self.flaw.or(flaw);
    }

    fn end_part(&mut self) {
        if matches!(self.kind(), Some(GeometryType::Polygon | GeometryType::MultiPolygon)) {
            self.fill(self.rings_at, self.rings);
        }
    }

    fn end_geometry(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        match frame.kind {
            // WKB has no empty point but one without numbers.
            GeometryType::Point if !frame.has_position => self.ordinates([f64::NAN; 3]),
            GeometryType::Point | GeometryType::LineString | GeometryType::Polygon => {}
            _ => self.fill(frame.count_at, frame.count),
        }
    }
}
