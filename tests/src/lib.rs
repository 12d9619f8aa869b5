//! What the suites stand on: the real components, the real binary, a store that fails on demand, and the contracts of
//! the seams, for an embedder's own implementations too.
//!
//! It promises that nothing which a test has started outlives the test process, and that a component which cannot be
//! had is never skipped in silence: see [`components::require`].
//!
//! ```
//! use geoclaim_tests::sample;
//! assert!(sample::squares(120).len() > 262_144);
//! ```

pub mod binary;
pub mod components;
pub mod contract;
pub mod faulty;
pub mod proxy;
pub mod random;
pub mod sample;
pub mod timing;

/// Compiles and runs the example in the README.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
