//! A body's geometry as a GeoPackage blob: header, planar box, and ISO WKB.

use geoclaim_common::geojson::CrsMember;

use crate::sink::{
    State,
    wkb::{self, Wkb},
};

/// Length of the header with a box.
const HEADER_BYTES: usize = 8 + 32;

/// A geometry blob and its planar box.
pub(super) struct Encoded {
    pub(super) blob: Option<Vec<u8>>,
    pub(super) bounds: Option<[f64; 4]>,
}

/// Encodes the geometry of a state; `None` when it has none.
pub(super) fn encode(state: &State) -> Encoded {
    let wkb = wkb::encode(state, HEADER_BYTES);
    let bounds = wkb.as_ref().and_then(|wkb| wkb.bounds);
    Encoded { blob: wkb.map(with_header), bounds }
}

/// Encodes the geometry of a GeoJSON body as a GeoPackage blob. Features of a collection become one geometry
/// collection; `None` for a feature without a geometry.
///
/// # Errors
/// What [`geoclaim_common::geojson::scan`] rejects.
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

/// Fills in the header: magic, version 0, flags (little-endian; box of four doubles, or empty), EPSG:4326.
fn with_header(Wkb { mut bytes, bounds, .. }: Wkb) -> Vec<u8> {
    let (flags, start) = if bounds.is_some() { (0b0000_0011, 0) } else { (0b0001_0001, HEADER_BYTES - 8) };
    let header = &mut bytes[start..];
    header[..4].copy_from_slice(&[b'G', b'P', 0, flags]);
    header[4..8].copy_from_slice(&4326_i32.to_le_bytes());
    let Some([west, south, east, north]) = bounds else {
        bytes.drain(..start);
        return bytes;
    };
    for (slot, number) in bytes[8..HEADER_BYTES].chunks_exact_mut(8).zip([west, east, south, north]) {
        slot.copy_from_slice(&number.to_le_bytes());
    }
    bytes
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
