//! How strict a scan is, and what it says of the outermost object.

use std::ops::Range;

use super::Kind;

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

/// What a `crs` member that does not name WGS 84 does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CrsMember {
    /// The body is refused.
    #[default]
    Refuse,
    /// The member is ignored and the coordinates are taken for longitude and latitude.
    Ignore,
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
