//! The contract that both sides of geoclaim share.
pub mod bbox;
pub mod body;
pub mod budget;
pub mod clock;
pub mod digest;
pub mod envelope;
pub mod extent;
pub mod fault;
pub mod geojson;
pub mod kafka;
pub mod key;
pub mod limits;
pub mod store;
pub mod stream;
pub mod telemetry;

pub use bbox::Bbox;
pub use body::{Body, ClaimCheck};
pub use budget::Budget;
pub use clock::{Clock, Timestamp};
pub use digest::Digest;
pub use envelope::Envelope;
pub use fault::{Fault, FaultKind};
