//! The consumer side of geoclaim: filter, resolve, apply once, set aside.
//!
//! It promises: an envelope that meets no area costs no store request; only verified bytes reach a sink; each event has
//! its effect once, through duplicates, crashes and rebalances; an offset is acknowledged after the effect is durable
//! and never past an unfinished record; every record ends in one of seven outcomes, and each is counted.
//!
//! It does not publish or store bodies; that is `geoclaim-producer`. It does not print.
//!
//! ```
//! use std::sync::Arc;
//! use geoclaim_common::{Timestamp, clock::SystemClock, store, stream::{OutgoingRecord, memory::{MemorySink, MemorySource}}};
//! use geoclaim_consumer::{ConsumeSettings, Consumer, DeadLetters, aoi::{AreaSet, LiveAreas, parse_areas}, sink::stdout::LineSink};
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let consumer = Consumer {
//!     settings: ConsumeSettings::default(),
//!     areas: Arc::new(LiveAreas::new(AreaSet::new(parse_areas(b"[8,47,9,48]")?))),
//!     holdings: Default::default(),
//!     store: store::open("memory://", store::LocalDirectory::Expect)?,
//!     sink: Arc::new(LineSink::new(std::io::sink())),
//!     dead_letters: DeadLetters::new(Arc::new(MemorySink::default())),
//!     clock: Arc::new(SystemClock),
//!     counters: Default::default(),
//! };
//! let value = br#"{"feature_id":"f","event_id":"e","bbox":[8.5,47.4,8.5,47.4],"geometry":{"type":"Point","coordinates":[8.5,47.4]}}"#;
//! let record = OutgoingRecord { value: Some(value.as_slice().into()), ..OutgoingRecord::default() };
//! let source = MemorySource::new(vec![record], Timestamp::from_millis(0), consumer.gate().await?);
//! let report = consumer.run(source, std::future::pending()).await?;
//! assert_eq!((report.consumed, report.applied), (1, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod aoi;
pub mod compare;
pub mod dead_letter;
mod engine;
mod holdings;
pub mod lease;
pub mod plan;
mod postgres;
pub mod redrive;
pub mod report;
pub mod resolve;
mod settings;
pub mod sink;
mod sqlite;
pub mod watch;

pub use dead_letter::DeadLetters;
pub use engine::Consumer;
pub use holdings::Holdings;
pub use report::{ConsumeCounters, ConsumeReport, Outcome};
pub use settings::ConsumeSettings;
