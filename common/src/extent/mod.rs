//! The extent of a body: what one pass over its bytes yields.
//!
//! [`measure`] reads a body of any size without a document tree and in memory that does not grow with it. It is
//! pure: no I/O, no clock. The bbox contains every vertex exactly as written (of a body that is not in WGS 84, every
//! edge, and two centimetres more), and follows RFC 7946, section 5: it is
//! the smallest interval of longitudes that holds every part, so west is greater than east where that interval runs
//! over ±180.

mod edges;
mod fold;
mod longitudes;
mod within;

pub use edges::{Edges, RingEnd};
pub use longitudes::{planar as planar_longitudes, turns_of};
pub use within::holds;

use crate::{
    Bbox,
    cover::{Cells, Trace},
    geojson::{Kind, Outline, ScanError, ScanOptions},
    reproject,
};

/// What a body's bytes say about where it lies.
#[derive(Clone, Debug, PartialEq)]
pub struct Extent {
    /// The `type` of the body.
    pub kind: Kind,
    /// The smallest box that holds every vertex; `None` for a body without a position.
    pub bbox: Option<Bbox>,
    /// How many positions the body has, a ring's closing position included.
    pub vertex_count: u64,
    /// Whether an edge spans more than 180 degrees of longitude, so that it may be meant the short way round. The
    /// bbox is then the full circle: it is never guessed narrow.
    pub suspect: bool,
    /// Whether any position has a third ordinate.
    pub has_z: bool,
    /// Where within the bbox the body lies, when that was asked for and says more than the bbox. A suspect body has
    /// none, for it may lie anywhere in its bbox.
    pub cells: Option<Cells>,
}

/// What an edge of more than 180 degrees of longitude means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LongEdges {
    /// Nobody knows: the bbox takes the full circle, and the extent is marked suspect.
    #[default]
    Suspect,
    /// It crosses the antimeridian, the short way round.
    Cross,
}

/// How a body is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeasureOptions {
    /// How strict the scan is.
    pub scan: ScanOptions,
    /// What an edge of more than 180 degrees means.
    pub long_edges: LongEdges,
    /// How many bytes the cells of the cover may take; 0 for none, which is faster.
    pub cover_bytes: usize,
}

/// Measures one body. The extent is in WGS 84 whatever the body is in.
///
/// ```
/// use geoclaim_common::extent::{MeasureOptions, measure};
/// let fiji = br#"{"type":"MultiPolygon","coordinates":[
///     [[[179,-17],[180,-17],[180,-16],[179,-17]]], [[[-180,-17],[-179,-17],[-180,-16],[-180,-17]]]]}"#;
/// let (extent, _) = measure(fiji, &MeasureOptions::default())?;
/// assert_eq!(extent.bbox.map(|bbox| bbox.to_array()), Some([179.0, -17.0, -179.0, -16.0]));
/// assert_eq!(extent.vertex_count, 8);
/// # Ok::<(), geoclaim_common::geojson::ScanError>(())
/// ```
///
/// # Errors
/// What [`reproject::scan`] rejects.
pub fn measure(body: &[u8], options: &MeasureOptions) -> Result<(Extent, Outline), ScanError> {
    let trace = (options.cover_bytes > 0).then(|| Box::new(Trace::new()));
    let transform = reproject::transform_of(&options.scan)?;
    let margin = if transform.is_some() { 2.0 * reproject::TOLERANCE_DEGREES } else { 0.0 };
    // Of a projected body nobody wrote a longitude, so that no edge is meant the long way round.
    let is_projected = transform.as_ref().is_some_and(|transform| !transform.is_geographic());
    let long_edges = if is_projected { LongEdges::Cross } else { options.long_edges };
    let mut fold = fold::Fold::new(long_edges, margin, trace);
    let outline = reproject::scan_through(transform, body, &options.scan, &mut fold)?;
    let summary = fold.finish();
    let bbox = match summary.bbox {
        Some([west, south, east, north]) => {
            Some(Bbox::new(west, south, east, north).map_err(|error| ScanError::new(0, error.to_string()))?)
        }
        None => None,
    };
    let fold::Summary { vertex_count, suspect, has_z, trace, .. } = summary;
    let cells = trace.filter(|_| !suspect).zip(bbox).and_then(|(trace, bbox)| Cells::of(*trace, &bbox, options.cover_bytes));
    Ok((Extent { kind: outline.kind, bbox, vertex_count, suspect, has_z, cells }, outline))
}

#[cfg(test)]
mod tests;
