//! consumer
pub mod aoi;
