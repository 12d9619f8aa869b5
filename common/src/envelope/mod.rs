//! The envelope: the small Kafka record that says where on Earth a body lies.
//!
//! The wire is UTF-8 JSON that anyone can read without this project. [`Envelope::encode`] writes the canonical order
//! (`cover` first, then `bbox`), [`Envelope::decode`] reads any order, and [`peek`] reads the box at its fixed place
//! without parsing. Absent and null mean the same; unknown members are kept and ignored. The record's key is the
//! `feature_id`.
//!
//! | Member | Type | Meaning |
//! | --- | --- | --- |
//! | `cover` | string or null | first member: version, box and cells in binary, see [`peek`] and [`crate::cover`] |
//! | `bbox` | `[west, south, east, north]` or null | second member; west > east crosses the antimeridian; null: no place |
//! | `feature_id` | string, 1 to 512 bytes | the thing that changed |
//! | `event_id` | string, 1 to 256 bytes | the change itself, the same on every retry and redrive |
//! | `version` | integer, optional | rises per feature |
//! | `occurred_at` | RFC 3339 string, optional | event time, for age and never for order |
//! | `crs` | string, default `EPSG:4326` | of the body; `cover` and `bbox` are WGS 84 whatever it is |
//! | `vertex_count` | integer, optional | how many positions the body has |
//! | `suspect` | boolean, optional | an edge may be meant either way round, so the bbox is the full circle |
//! | `deleted` | boolean, optional | the feature is gone; such an envelope needs no body, and one that it has is not read |
//! | `geometry` or `geojson` | object | a small body: a bare geometry, or a feature or collection, byte for byte |
//! | `body_key`, `body_sha256`, `body_bytes` | strings, integer | the claim check of a large one; `body_bytes` is the last member |
//! | `body_encoding` | string, default `identity` | `zstd`: what is stored is the body compressed, under a key that ends in `.zst` |
//! | `body_encoded_sha256`, `body_encoded_bytes` | string, integer | of what is stored, where that is not the body as it is |
//!
//! ```
//! use geoclaim_common::{Bbox, Body, Timestamp, envelope::{Content, Envelope, Peek, peek}};
//! let body = Body::seal(br#"{"type":"Point","coordinates":[8.5,47.4]}"#.as_slice().into());
//! let envelope = Envelope {
//!     feature_id: "zurich".into(),
//!     event_id: "e-1".into(),
//!     version: None,
//!     occurred_at: Some(Timestamp::from_millis(0)),
//!     crs: "EPSG:4326".into(),
//!     bbox: Some(Bbox::new(8.5, 47.4, 8.5, 47.4)?),
//!     cells: None,
//!     vertex_count: Some(1),
//!     suspect: false,
//!     content: Content::Claim(body.claim()),
//!     others: Default::default(),
//! };
//! let value = envelope.encode();
//! assert_eq!(peek(&value), Peek::Placed(envelope.bbox.unwrap()));
//! assert_eq!(Envelope::decode(&value)?, envelope);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cover;
mod decode;
mod encode;
mod identity;

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::{
    Bbox, ClaimCheck, Timestamp,
    cover::{Cells, Cover, NotCells},
    geojson::Kind,
    limits,
};

pub use cover::{Peek, peek, peek_body_bytes};
pub use identity::{Identity, peek_identity};

/// The coordinate reference system of a body when nothing else is said.
pub const DEFAULT_CRS: &str = "EPSG:4326";

/// One envelope.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    /// The thing that changed; also the record's key.
    pub feature_id: String,
    /// The change itself: minted once, before the first attempt, and kept on every retry and redrive.
    pub event_id: String,
    /// Rises per feature; the only thing that may order two states of a feature.
    pub version: Option<i64>,
    /// Event time; used for age, never for order.
    pub occurred_at: Option<Timestamp>,
    /// The coordinate reference system of the body. Bbox and cover are WGS 84 whatever it is.
    pub crs: String,
    /// Where the body lies; `None` for a body without a place.
    pub bbox: Option<Bbox>,
    /// Where within the bbox the body lies, when that says more than the bbox.
    pub cells: Option<Cells>,
    /// How many positions the body has.
    pub vertex_count: Option<u64>,
    /// Whether an edge may be meant the short way over the antimeridian, so that the bbox is the full circle.
    pub suspect: bool,
    /// The body itself, its claim check, or that the feature is gone.
    pub content: Content,
    /// Members that this version does not know, as raw JSON.
    pub others: BTreeMap<String, String>,
}

impl Envelope {
    /// Returns where the body may lie; `None` for a body without a place.
    ///
    /// # Errors
    /// The cells are no good.
    pub fn cover(&self) -> Result<Option<Cover>, NotCells> {
        self.bbox.map(|bbox| Cover::new(bbox, self.cells.as_ref())).transpose()
    }
}

/// What an envelope carries.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// A small body, byte for byte as given.
    Inline(InlineBody),
    /// The claim check of a stored body.
    Claim(ClaimCheck),
    /// Nothing: the feature has been deleted.
    Deleted,
}

/// A small body that travels in its envelope.
#[derive(Clone, Debug, PartialEq)]
pub struct InlineBody {
    /// The member it travels under.
    pub member: InlineMember,
    /// The bytes of one JSON object.
    pub bytes: Bytes,
}

/// The member of the envelope that an inline body travels under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InlineMember {
    /// A bare geometry.
    Geometry,
    /// A feature or a collection.
    Geojson,
}

impl InlineMember {
    /// Returns the member for a body of this kind.
    pub const fn of(kind: Kind) -> Self {
        match kind {
            Kind::Geometry(_) => Self::Geometry,
            Kind::Feature | Kind::FeatureCollection => Self::Geojson,
        }
    }

    /// Returns the member's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Geometry => "geometry",
            Self::Geojson => "geojson",
        }
    }
}

/// Returns the bytes that a record takes as the broker counts it: key, value, headers and framing.
pub fn record_bytes<'a>(key: &[u8], value_bytes: usize, headers: impl IntoIterator<Item = (&'a str, usize)>) -> usize {
    let headers = headers.into_iter().map(|(name, value)| name.len() + value + limits::HEADER_FRAMING_BYTES).sum::<usize>();
    key.len() + value_bytes + headers + limits::RECORD_FRAMING_BYTES
}

#[cfg(test)]
mod tests;
