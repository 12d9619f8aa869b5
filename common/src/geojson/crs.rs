//! The `crs` member, which RFC 7946 has removed and writers still write.

use std::ops::Range;

use super::{ScanError, member, scalar_text};

/// Refuses a `crs` value that names anything but WGS 84; null names nothing. `value` is where it lies in `body`.
///
/// # Errors
/// It names something else, or nothing that can be read.
pub fn check_crs(body: &[u8], value: Range<usize>) -> Result<(), ScanError> {
    let start = value.start;
    if &body[value.clone()] == b"null" {
        return Ok(());
    }
    let name = member(body, value, "properties")
        .and_then(|properties| member(body, properties, "name"))
        .and_then(|name| scalar_text(&body[name]));
    match name {
        Some(name) if is_wgs84(&name) => Ok(()),
        Some(name) => {
            let name: String = name.chars().take(80).collect();
            let problem = format!("crs {name:?} is not WGS 84: transform the body, or ignore the member by option");
            Err(ScanError::new(start, problem))
        }
        None => Err(ScanError::new(start, "a crs member without a name: WGS 84 longitude and latitude are expected")),
    }
}

/// Tells whether a `crs` name means WGS 84 longitude and latitude, as GeoJSON writers use these names.
pub fn is_wgs84(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let code = name.rsplit([':', '/', '#']).next().unwrap_or_default();
    let authority = name.contains("EPSG") || name.contains("OGC") || name == code;
    match code {
        "CRS84" | "CRS84H" => authority,
        "4326" | "4979" => name.contains("EPSG"),
        _ => matches!(&*name, "WGS84" | "WGS 84"),
    }
}
