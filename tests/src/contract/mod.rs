//! What every implementation behind a seam must do. An embedder runs these suites against its own:
//!
//! ```
//! use std::{future::ready, sync::Arc};
//! use geoclaim_consumer::sink::{Sink, gpkg::GeoPackageSink};
//! use geoclaim_tests::contract;
//!
//! # let folder = tempfile::tempdir()?;
//! # let file = folder.path().join("f.gpkg");
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! contract::sink(|| ready(Arc::new(GeoPackageSink::open(&file, "region").unwrap()) as Arc<dyn Sink>)).await;
//! # });
//! # Ok::<(), std::io::Error>(())
//! ```

mod changes;
mod leases;
mod sink;
mod store;
mod write_once;

pub use changes::{change, of_kind, with_body};
pub use leases::{intents, leases};
pub use sink::{one_of_many, one_of_many_again_and_again, sink, sink_within_a_run};
pub use store::store;
pub use write_once::write_once;
