//! A body's geometry as a GeoPackage blob: header, planar box, and ISO WKB, written in one pass over the body.
//!
//! No tree is built: counts are written as zero and filled in when they are known, so a body of a million vertices
//! takes its sixteen bytes a vertex and nothing else.

use geoclaim_common::{
    geojson::{CrsMember, GeometryType, Kind, Position, ScanOptions, Visitor},
    reproject::scan,
};

use crate::sink::State;

/// Length of the header with a box.
const HEADER_BYTES: usize = 8 + 32;

/// A geometry blob and its planar box.
pub(super) struct Encoded {
    pub(super) blob: Option<Vec<u8>>,
    pub(super) bounds: Option<[f64; 4]>,
}

/// Encodes the geometry of a state; `None` when it has none.
pub(super) fn encode(state: &State) -> Encoded {
    let has_geometry = match state.outline.kind {
        Kind::Geometry(_) | Kind::FeatureCollection => true,
        Kind::Feature => state.outline.geometry.is_some(),
    };
    if !has_geometry {
        return Encoded { blob: None, bounds: None };
    }
    let is_collection = state.outline.kind == Kind::FeatureCollection;
    let mut writer = Writer::new(state.extent.has_z, state.extent.vertex_count);
    if is_collection {
        writer.begin_geometry(GeometryType::GeometryCollection);
    }
    let options = ScanOptions { crs: state.crs, ..ScanOptions::default() };
    // The body was scanned before it became a state, so this scan cannot fail.
    if scan(state.body.bytes(), &options, &mut writer).is_err() {
        return Encoded { blob: None, bounds: None };
    }
    if is_collection {
        writer.end_geometry();
    }
    let bounds = writer.bounds();
    Encoded { blob: Some(writer.finish()), bounds }
}

/// Encodes the geometry of a GeoJSON body as a GeoPackage blob. Features of a collection become one geometry
/// collection; `None` for a feature without a geometry.
///
/// # Errors
/// What [`scan`] rejects.
pub fn gpkg_geometry(body: &[u8]) -> Result<Option<Vec<u8>>, geoclaim_common::geojson::ScanError> {
    let (extent, outline) = geoclaim_common::extent::measure(body, &Default::default())?;
    let state = State {
        areas: Vec::new(),
        crs: CrsMember::Ignore,
        body: crate::resolve::BodyBytes::Inline(bytes::Bytes::copy_from_slice(body)),
        extent,
        outline,
    };
    Ok(encode(&state).blob)
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
    points: u32,
    bounds: [f64; 4],
}

impl Writer {
    fn new(has_z: bool, vertex_count: u64) -> Self {
        let ordinates = if has_z { 24 } else { 16 };
        let vertices = usize::try_from(vertex_count).unwrap_or(0);
        let mut out = Vec::with_capacity(HEADER_BYTES + 64 + vertices * (ordinates + 1));
        out.resize(HEADER_BYTES, 0);
        let bounds = [f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY];
        Self { out, has_z, frames: Vec::new(), rings_at: 0, rings: 0, points_at: 0, points: 0, bounds }
    }

    fn bounds(&self) -> Option<[f64; 4]> {
        (self.bounds[0] <= self.bounds[2]).then_some(self.bounds)
    }

    /// Fills in the header: magic, version 0, flags (little-endian; box of four doubles, or empty), EPSG:4326.
    fn finish(mut self) -> Vec<u8> {
        let (flags, start) = if self.bounds().is_some() { (0b0000_0011, 0) } else { (0b0001_0001, HEADER_BYTES - 8) };
        let header = &mut self.out[start..];
        header[..4].copy_from_slice(&[b'G', b'P', 0, flags]);
        header[4..8].copy_from_slice(&4326_i32.to_le_bytes());
        if start > 0 {
            self.out.drain(..start);
            return self.out;
        }
        let [west, south, east, north] = self.bounds;
        for (slot, number) in self.out[8..HEADER_BYTES].chunks_exact_mut(8).zip([west, east, south, north]) {
            slot.copy_from_slice(&number.to_le_bytes());
        }
        self.out
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
        self.points = 0;
    }

    fn position(&mut self, Position { x, y, z }: Position) {
        self.points += 1;
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
        self.fill(self.points_at, self.points);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn wkb(geometry: &str) -> Vec<u8> {
        let blob = gpkg_geometry(geometry.as_bytes()).unwrap().unwrap();
        assert_eq!(&blob[..3], b"GP\0");
        let start = if blob[3] & 0b1110 == 0 { 8 } else { HEADER_BYTES };
        blob[start..].to_vec()
    }

    fn bytes(pieces: &[&[u8]]) -> Vec<u8> {
        pieces.concat()
    }

    #[test]
    fn geometries_are_iso_wkb() {
        let (one, two) = (1.0_f64.to_le_bytes(), 2.0_f64.to_le_bytes());
        let n = |count: u32| count.to_le_bytes();
        assert_eq!(wkb(r#"{"type":"Point","coordinates":[1,2]}"#), bytes(&[&[1], &n(1), &one, &two]));
        assert_eq!(wkb(r#"{"type":"Point","coordinates":[1,2,1]}"#), bytes(&[&[1], &n(1_001), &one, &two, &one]));
        let line = bytes(&[&n(2), &one, &two, &two, &one]);
        assert_eq!(wkb(r#"{"type":"LineString","coordinates":[[1,2],[2,1]]}"#), bytes(&[&[1], &n(2), &line]));
        let polygon = bytes(&[&[1], &n(3), &n(2), &line, &line]);
        assert_eq!(wkb(r#"{"type":"Polygon","coordinates":[[[1,2],[2,1]],[[1,2],[2,1]]]}"#), polygon);
        let multi = r#"{"type":"MultiPolygon","coordinates":[[[[1,2],[2,1]],[[1,2],[2,1]]],[]]}"#;
        assert_eq!(wkb(multi), bytes(&[&[1], &n(6), &n(2), &polygon, &[1], &n(3), &n(0)]));
        let points = r#"{"type":"MultiPoint","coordinates":[[1,2]]}"#;
        let point = bytes(&[&[1], &n(1), &one, &two]);
        assert_eq!(wkb(points), bytes(&[&[1], &n(4), &n(1), &point]));
        let collection =
            format!(r#"{{"type":"GeometryCollection","geometries":[{points},{{"type":"GeometryCollection","geometries":[]}}]}}"#);
        assert_eq!(wkb(&collection), bytes(&[&[1], &n(7), &n(2), &[1], &n(4), &n(1), &point, &[1], &n(7), &n(0)]));
    }

    #[test]
    fn empty_geometries_are_marked_empty_and_a_null_one_is_none() {
        let blob = gpkg_geometry(br#"{"type":"MultiPolygon","coordinates":[]}"#).unwrap().unwrap();
        assert_eq!(blob, bytes(&[b"GP\0", &[0b0001_0001], &4326_i32.to_le_bytes(), &[1], &6_u32.to_le_bytes(), &[0; 4]]));
        assert_eq!(gpkg_geometry(br#"{"type":"Feature","geometry":null}"#).unwrap(), None);
    }
}
