//! The producer side of geoclaim: the life of a body, from reading to storing and publishing, and to its end.
//!
//! It promises *store, then publish*: any envelope that a consumer can see refers to a complete body, and a failed put
//! publishes nothing. It reads input of any length in memory bounded by its largest feature, keeps the order of each
//! feature's events, awaits every delivery, and tells of everything that it did not publish.
//!
//! Creating and deleting are one protocol, so the [`sweep`] lives here too: no body is deleted while something can still refer
//! to it. The [`audit`] says whether topic, bucket, ledger and limits still agree.
//!
//! It does not filter, fetch or apply; that is `geoclaim-consumer`. It does not print.
//!
//! ```
//! use std::sync::Arc;
//! use geoclaim_common::{clock::SystemClock, store, stream::memory::MemorySink};
//! use geoclaim_producer::{IdRule, Publisher, PublishSettings, Source};
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let sink = MemorySink::default();
//! let publisher = Publisher {
//!     settings: PublishSettings { id_rule: IdRule::Index, ..PublishSettings::default() },
//!     store: store::open("memory://", store::LocalDirectory::Create)?,
//!     sink: Arc::new(sink.clone()),
//!     clock: Arc::new(SystemClock),
//!     counters: Default::default(),
//!     on_problem: Arc::new(|problem| eprintln!("{problem}")),
//! };
//! let source = Source::bytes("example", &br#"{"type":"Point","coordinates":[8.5,47.4]}"#[..]);
//! let report = publisher.run(vec![source], std::future::pending()).await?;
//! assert_eq!((report.published, sink.records().len()), (1, 1));
//! # Ok::<(), geoclaim_common::Fault>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod audit;
pub mod identity;
pub mod publish;
pub mod put;
pub mod read;
pub mod sizes;
pub mod sweep;

pub use identity::IdRule;
pub use publish::{Problem, PublishCounters, PublishReport, PublishSettings, Publisher, Source};
pub use sweep::{Sweep, SweepReport, SweepSettings};
