//! Reading GeoJSON without a document tree.
//!
//! [`scan`] validates one body (JSON grammar, UTF-8, GeoJSON structure, number range) in one pass over its bytes and
//! tells a [`Visitor`] of each geometry, part, line and position as they come. Nothing is allocated that grows with
//! the body. What a caller wants to know (extent, refinement, another encoding) is a visitor.
//!
//! Accepted: any member order, foreign members anywhere, a byte order mark, any ring orientation, unclosed rings,
//! empty coordinates, three and more ordinates. Rejected, with the place: whatever is no JSON (`NaN`, trailing bytes,
//! a missing brace), coordinates of the wrong depth, latitudes beyond ±90, numbers beyond [`crate::limits`], a member
//! that decides something and comes twice, a `crs` that is not WGS 84
//! or what the body is said to be in.

mod coordinates;
mod crs;
mod cursor;
mod decimal;
mod grammar;
mod number;
mod options;
mod run;
mod visit;

use std::{fmt, ops::Range};

pub use crs::{Epsg, check_crs, is_wgs84};
pub use cursor::Cursor;
pub use grammar::scan;
pub use options::{CrsMember, Outline, ScanOptions, Validity};
pub use visit::{GeometryType, Kind, Position, Visitor};

/// A body that is no good, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanError {
    /// Byte offset from the start of the body.
    pub at: usize,
    /// What is wrong and, where it helps, what was expected.
    pub problem: String,
}

impl ScanError {
    /// Makes an error at a byte offset.
    pub fn new(at: usize, problem: impl Into<String>) -> Self {
        Self { at, problem: problem.into() }
    }

    /// Returns line and column of the place, both from 1; the column counts bytes.
    pub fn line_and_column(&self, body: &[u8]) -> (usize, usize) {
        let before = &body[..self.at.min(body.len())];
        let line_start = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
        (memchr::memchr_iter(b'\n', before).count() + 1, before.len() - line_start + 1)
    }
}

impl fmt::Display for ScanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {})", self.problem, self.at)
    }
}

impl std::error::Error for ScanError {}

/// Returns the text of a scalar member, such as `id`: a string without its quotes and escapes, a number as it is
/// written. `None` for anything else.
pub fn scalar_text(raw: &[u8]) -> Option<String> {
    match raw.first()? {
        b'"' => serde_json::from_slice(raw).ok(),
        b'-' | b'0'..=b'9' => String::from_utf8(raw.to_vec()).ok(),
        _ => None,
    }
}

/// Returns where the value of the member `name` of the object at `object` lies; `None` when `object` is no object
/// or has no such member. The last one counts when there are several.
pub fn member(body: &[u8], object: Range<usize>, name: &str) -> Option<Range<usize>> {
    let mut cursor = Cursor::at(body, object.start);
    let mut found = None;
    cursor.open_object().ok()?;
    while let Some(key) = cursor.next_key().ok()? {
        let start = cursor.position();
        let is_wanted = cursor.key_is(&key, name);
        cursor.skip_value().ok()?;
        if is_wanted {
            found = Some(start..cursor.position());
        }
    }
    found
}

#[cfg(test)]
mod tests;
