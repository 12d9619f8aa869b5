//! How strict a scan is, and what it says of the outermost object.

use std::ops::Range;

use super::{Epsg, Kind};

/// How strict a scan is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanOptions {
    /// Whether rings and lines must be valid.
    pub validity: Validity,
    /// What a `crs` member does.
    pub crs: CrsMember,
}

/// Whether rings and lines must be what RFC 7946, section 3.1, wants. The bbox is defined either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Validity {
    /// Unclosed and short rings and lines are taken as they are.
    #[default]
    Lenient,
    /// Rings are closed and have four positions or more, line strings two or more.
    Strict,
}

/// What the coordinates are, and what a `crs` member that says otherwise does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CrsMember {
    /// Longitude and latitude in WGS 84; a member that names anything else is refused.
    #[default]
    Refuse,
    /// The member is ignored and the coordinates are taken for longitude and latitude.
    Ignore,
    /// The body is in this system; a member that names another is refused. The scan tells the ordinates as written:
    /// [`crate::reproject::scan`] makes longitudes and latitudes of them.
    Is(Epsg),
}

/// Where the members of the outermost object lie in the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// The `type`.
    pub kind: Kind,
    /// The value of `id`; absent and null are the same.
    pub id: Option<Range<usize>>,
    /// The value of `properties`; absent and null are the same.
    pub properties: Option<Range<usize>>,
    /// The value of `geometry`; absent and null are the same.
    pub geometry: Option<Range<usize>>,
}
