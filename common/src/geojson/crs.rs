//! The `crs` member, which RFC 7946 has removed and writers still write, and the systems that it names.

use std::{fmt, ops::Range, str::FromStr};

use super::{CrsMember, ScanError, member, scalar_text};

/// The code of a coordinate reference system in the EPSG registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Epsg(pub u16);

impl fmt::Display for Epsg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EPSG:{}", self.0)
    }
}

impl FromStr for Epsg {
    type Err = String;

    /// Reads `EPSG:2056`, and the URNs and URLs that GeoJSON writers make of it.
    fn from_str(name: &str) -> Result<Self, String> {
        let code = Some(code_of(name)).filter(|code| name.to_ascii_uppercase().contains("EPSG") && *code != name);
        code.and_then(|code| code.parse().ok())
            .map(Self)
            .ok_or_else(|| format!("{name:?} is no reference system: EPSG:n is expected, such as EPSG:2056"))
    }
}

/// Refuses a `crs` value that names anything but what is expected; null names nothing. `value` is where it lies in
/// `body`.
///
/// # Errors
/// It names something else, or nothing that can be read.
pub fn check_crs(body: &[u8], value: Range<usize>, expected: CrsMember) -> Result<(), ScanError> {
    let start = value.start;
    if expected == CrsMember::Ignore || &body[value.clone()] == b"null" {
        return Ok(());
    }
    let name = member(body, value, "properties")
        .and_then(|properties| member(body, properties, "name"))
        .and_then(|name| scalar_text(&body[name]));
    let Some(name) = name else {
        return Err(ScanError::new(start, "a crs member without a name: WGS 84 longitude and latitude are expected"));
    };
    let short = || name.chars().take(80).collect::<String>();
    match expected {
        CrsMember::Is(epsg) if name.parse() != Ok(epsg) => {
            Err(ScanError::new(start, format!("crs {:?} is not {epsg}, which the body is said to be in", short())))
        }
        CrsMember::Refuse if !is_wgs84(&name) => {
            let problem = format!(
                "crs {:?} is not WGS 84: say so (--crs EPSG:n), transform the body, or ignore the member (--ignore-crs)",
                short()
            );
            Err(ScanError::new(start, problem))
        }
        _ => Ok(()),
    }
}

/// Returns the last part of a name, URN or URL: the code, where there is one.
fn code_of(name: &str) -> &str {
    name.rsplit([':', '/', '#']).next().unwrap_or_default()
}

/// Tells whether a `crs` name means WGS 84 longitude and latitude, as GeoJSON writers use these names.
pub fn is_wgs84(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let code = code_of(&name);
    let authority = name.contains("EPSG") || name.contains("OGC") || name == code;
    match code {
        "CRS84" | "CRS84H" => authority,
        "4326" | "4979" => name.contains("EPSG"),
        _ => matches!(&*name, "WGS84" | "WGS 84"),
    }
}
