//! Reading GeoJSON from a file or a pipe, one body at a time, recognised by content.
//!
//! [`Reader`] takes a feature collection, a feature, a geometry, newline-delimited GeoJSON or an RFC 8142 text sequence
//! and yields the bytes of each feature as they are written. Memory is bounded by the largest feature that is not spooled,
//! not by the input. It finds where a feature begins and ends and nothing more; whether a body is good GeoJSON is for
//! [`geoclaim_common::extent::measure`] to say.
//!
//! What is broken is told with its place. A broken line or text of a sequence costs that line or text; in a
//! collection, a feature that is no object costs that feature, and a text that is no JSON ends the reading, since
//! nobody knows where it goes on.

mod balance;
mod buffer;
mod collection;
mod place;
mod reader;
mod shape;
mod window;

use geoclaim_common::{Spool, geojson::CrsMember, limits};

pub use place::{Place, RawBody, ReadProblem};
pub use reader::Reader;

/// How the input is taken apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Taken {
    /// Each feature is a body.
    #[default]
    ByFeature,
    /// The whole document is one body, with every byte as given.
    Whole,
}

/// How a source is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// How the input is taken apart.
    pub taken: Taken,
    /// A body of more bytes is a problem and not kept.
    pub most_bytes: u64,
    /// What a `crs` member of a collection does.
    pub crs: CrsMember,
    /// Where bodies are kept that are larger than memory is to hold.
    pub spool: Spool,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { taken: Taken::ByFeature, most_bytes: limits::BODY_BYTES, crs: CrsMember::Refuse, spool: Spool::default() }
    }
}

#[cfg(test)]
mod tests;
