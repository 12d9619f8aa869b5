//! How long something can still be delivered again, which is how long what stands against it must be kept.
//!
//! The **boundary** is one age that bucket lifecycle, ledger and sweep all obey: that of the earliest record that can really be
//! read in any topic or archive, and no less than what the topic is set to keep, with the publish deadline and a margin. What
//! is not known is no bound, and the fault says which piece of evidence is missing.

mod announced;
mod evidence;
mod timing;

pub use announced::Announcement;
pub use evidence::{Evidence, boundary, readable_for};
pub use timing::Timing;
