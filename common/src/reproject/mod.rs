//! Bodies that are not in WGS 84, told as if they were.
//!
//! An edge is straight in the body's own reference system, and there a curve in longitude and latitude. So positions
//! are inserted between its ends until no chord is farther than [`TOLERANCE_DEGREES`] from the curve; a bbox is made
//! wider by twice that, and a cover is right to that (a centimetre).
//!
//! Transformations are those of `proj4rs`, with the definitions of `crs-definitions`: where a system's datum is not that
//! of WGS 84, they shift by the published seven parameters, which are right to some metres; systems that need a grid file
//! are refused. Ordinates come as GeoJSON has them, east before north, whatever order the registry gives the axes.

mod densify;
mod transform;

use crate::geojson::{self, CrsMember, Epsg, Outline, ScanError, ScanOptions, Visitor};
use densify::Densify;
pub use transform::Transform;

/// How far a chord may lie from the curve that it stands for, in degrees (about a centimetre).
pub const TOLERANCE_DEGREES: f64 = 1e-7;

/// As [`geojson::scan`], and tells longitudes and latitudes whatever the body is in.
///
/// # Errors
/// What [`geojson::scan`] rejects, a system that is not known, a position that has no longitude and latitude, and edges
/// so long that they would need more than a million positions between their ends.
pub fn scan<V: Visitor>(body: &[u8], options: &ScanOptions, visitor: &mut V) -> Result<Outline, ScanError> {
    let CrsMember::Is(epsg) = options.crs else { return geojson::scan(body, options, visitor) };
    let transform = Transform::from_epsg(epsg).map_err(|problem| ScanError::new(0, problem))?;
    let mut densify = Densify::new(transform, visitor);
    let outline = geojson::scan(body, options, &mut densify)?;
    densify.finish().map_err(|problem| ScanError::new(0, problem))?;
    Ok(outline)
}

/// Tells whether a system's ordinates are longitudes and latitudes already; of one that is not known, it says no.
pub fn is_geographic(epsg: Epsg) -> bool {
    Transform::from_epsg(epsg).is_ok_and(|transform| transform.is_geographic())
}

/// Returns by how many degrees a box of a scan's positions must be made wider to hold the body's edges.
pub fn margin_degrees(options: &ScanOptions) -> f64 {
    if matches!(options.crs, CrsMember::Is(_)) { 2.0 * TOLERANCE_DEGREES } else { 0.0 }
}

#[cfg(test)]
mod tests;
