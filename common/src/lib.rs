//! The contract that both sides of geoclaim share: words, wire, extent, store, stream, clock.
//!
//! A **body** is the bytes of one GeoJSON object. Its **digest** is their SHA-256, and digest and length are its **claim
//! check**, from which its key in the store is derived. An **envelope** is the small record that says where on Earth a
//! body lies and carries the body itself or its claim check. The **extent** is what one pass over a body yields.
//!
//! It promises: a [`Body`] in hand has the digest it claims; a bbox holds every vertex exactly, either side of 180° and
//! around the poles; what is no GeoJSON or no envelope is an error with its place and never a panic; no key is built
//! from a text that somebody sent; every fault has one of the kinds of [`FaultKind`], and [`fault::next_step`] alone
//! decides what follows from it.
//!
//! It neither publishes nor consumes; that is `geoclaim-producer` and `geoclaim-consumer`. It does not print.
//!
//! ```
//! use geoclaim_common::{
//!     Body, Envelope, Timestamp,
//!     envelope::{Content, DEFAULT_CRS, Peek, peek},
//!     extent::{MeasureOptions, measure},
//! };
//!
//! let body = Body::seal(br#"{"type":"LineString","coordinates":[[179.5,-17],[180,-16.5]]}"#.as_slice().into());
//! let (extent, _) = measure(body.bytes(), &MeasureOptions::default())?;
//! let envelope = Envelope {
//!     feature_id: "ferry".into(),
//!     event_id: "ferry-1".into(),
//!     version: None,
//!     occurred_at: Timestamp::parse_rfc3339("2026-08-08T10:00:00Z"),
//!     crs: DEFAULT_CRS.into(),
//!     bbox: extent.bbox,
//!     cells: extent.cells,
//!     vertex_count: Some(extent.vertex_count),
//!     suspect: extent.suspect,
//!     content: Content::Claim(body.claim()),
//!     others: Default::default(),
//! };
//! let value = envelope.encode();
//! assert!(value.len() < 2_048);
//! // A consumer reads the box at its fixed place, and fetches nothing of what lies elsewhere.
//! let Peek::Placed(bbox) = peek(&value) else { panic!() };
//! assert_eq!(bbox.to_array(), [179.5, -17.0, 180.0, -16.5]);
//! // After a fetch, length and digest are proven.
//! assert!(Body::verify(body.bytes().clone(), body.claim()).is_ok());
//! # Ok::<(), geoclaim_common::geojson::ScanError>(())
//! ```

pub mod bbox;
pub mod body;
pub mod budget;
pub mod clock;
pub mod cover;
pub mod digest;
pub mod encoding;
pub mod envelope;
pub mod extent;
pub mod fault;
pub mod fetch;
pub mod geojson;
pub mod kafka;
pub mod key;
pub mod lease;
pub mod limits;
pub mod reproject;
pub mod retention;
pub mod spool;
pub mod store;
pub mod stream;
pub mod telemetry;

pub use bbox::Bbox;
pub use body::{Body, ClaimCheck};
pub use budget::Budget;
pub use clock::{Clock, Timestamp};
pub use digest::Digest;
pub use encoding::Encoding;
pub use envelope::Envelope;
pub use fault::{Fault, FaultKind};
pub use spool::Spool;
