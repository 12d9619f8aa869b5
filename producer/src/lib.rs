//! Producer.
pub mod read;
