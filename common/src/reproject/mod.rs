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

use crate::geojson::{self, CrsMember, Epsg, Outline, ScanError, ScanOptions, Visitor, is_wgs84};
use densify::Densify;
pub use transform::Transform;

/// How far a chord may lie from the curve that it stands for, in degrees (about a centimetre).
pub const TOLERANCE_DEGREES: f64 = 1e-7;

/// Reads the name of a reference system that bodies may be in; `None` for WGS 84.
///
/// # Errors
/// It is not known, or cannot be transformed.
pub fn named(name: &str) -> Result<Option<Epsg>, String> {
    if is_wgs84(name) {
        return Ok(None);
    }
    let epsg = name.parse()?;
    Transform::from_epsg(epsg).map(|_| Some(epsg))
}

/// As [`geojson::scan`], and tells longitudes and latitudes whatever the body is in.
///
/// # Errors
/// What [`geojson::scan`] rejects, a system that is not known, a position that has no longitude and latitude, and edges
/// so long that they would need more than a million positions between their ends.
pub fn scan<V: Visitor>(body: &[u8], options: &ScanOptions, visitor: &mut V) -> Result<Outline, ScanError> {
    scan_through(transform_of(options)?, body, options, visitor)
}

/// Returns the transformation that a scan takes; `None` for WGS 84.
pub(crate) fn transform_of(options: &ScanOptions) -> Result<Option<Transform>, ScanError> {
    let CrsMember::Is(epsg) = options.crs else { return Ok(None) };
    Transform::from_epsg(epsg).map(Some).map_err(|problem| ScanError::new(0, problem))
}

/// As [`scan`], with the transformation of [`transform_of`].
pub(crate) fn scan_through<V: Visitor>(
    transform: Option<Transform>,
    body: &[u8],
    options: &ScanOptions,
    visitor: &mut V,
) -> Result<Outline, ScanError> {
    let Some(transform) = transform else { return geojson::scan(body, options, visitor) };
    let mut densify = Densify::new(transform, visitor);
    let outline = geojson::scan(body, options, &mut densify)?;
    densify.finish().map_err(|problem| ScanError::new(0, problem))?;
    Ok(outline)
}

#[cfg(test)]
mod tests;
