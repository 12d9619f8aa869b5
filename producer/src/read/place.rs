//! What is found in the input, and where.

use bytes::Bytes;
use geoclaim_common::geojson::ScanError;

/// One body of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawBody {
    /// The bytes as they are written.
    pub bytes: Bytes,
    /// Where they are.
    pub place: Place,
}

/// A place in the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Which feature of the source it is, from 0.
    pub index: u64,
    /// Byte offset from the start of the source.
    pub offset: u64,
    /// Line, from 1.
    pub line: u64,
    /// Column in bytes, from 1.
    pub column: u64,
}

impl Place {
    /// Returns the place of an error within the body that begins here.
    pub fn within(self, body: &[u8], error: &ScanError) -> Self {
        let (line, column) = error.line_and_column(body);
        let column = if line == 1 { self.column + column as u64 - 1 } else { column as u64 };
        Self { index: self.index, offset: self.offset + error.at as u64, line: self.line + line as u64 - 1, column }
    }
}

/// Something in the input that is no body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadProblem {
    /// Where it is.
    pub place: Place,
    /// What it is.
    pub problem: String,
}
