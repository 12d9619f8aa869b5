//! From one reference system to WGS 84. The only module that names `proj4rs`.

use proj4rs::{Proj, transform::transform};

use crate::geojson::Epsg;

/// From a reference system to longitude and latitude in WGS 84, in degrees.
#[derive(Debug)]
pub struct Transform {
    source: Proj,
    target: Proj,
    epsg: Epsg,
}

impl Transform {
    /// Returns the transformation from a system of the EPSG registry.
    ///
    /// # Errors
    /// It is not known, has no way back to longitude and latitude, or needs a grid file.
    pub fn from_epsg(epsg: Epsg) -> Result<Self, String> {
        let unknown = |error| format!("{epsg} is no reference system that can be transformed: {error}");
        let source = Proj::from_epsg_code(epsg.0).map_err(unknown)?;
        let target = Proj::from_proj_string("+proj=longlat +datum=WGS84 +no_defs").map_err(unknown)?;
        if !source.has_inverse() || source.is_geocent() {
            return Err(format!("{epsg} has no way back to longitude and latitude"));
        }
        Ok(Self { source, target, epsg })
    }

    /// Tells whether the ordinates are longitudes and latitudes already, if of another datum.
    pub(crate) fn is_geographic(&self) -> bool {
        self.source.is_latlong()
    }

    pub(super) fn no_position(&self, [x, y]: [f64; 2]) -> String {
        format!("[{x}, {y}] is no position in {}", self.epsg)
    }

    /// Transforms a position, `[east, north]`, to `[longitude, latitude]`, the longitude within ±180.
    ///
    /// # Errors
    /// It has none.
    pub fn apply(&self, [x, y]: [f64; 2]) -> Result<[f64; 2], String> {
        let mut at = if self.is_geographic() { (x.to_radians(), y.to_radians(), 0.0) } else { (x, y, 0.0) };
        let none = || self.no_position([x, y]);
        if self.is_geographic() && y.abs() > 90.0 {
            return Err(none());
        }
        transform(&self.source, &self.target, &mut at).map_err(|_| none())?;
        let [longitude, latitude] = [at.0.to_degrees(), at.1.to_degrees()];
        if !longitude.is_finite() || latitude.is_nan() || latitude.abs() > 90.0 + 1e-9 {
            return Err(none());
        }
        Ok([longitude, latitude.clamp(-90.0, 90.0)])
    }
}
