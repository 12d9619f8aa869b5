//! GeoPackage: one SQLite file that QGIS and GDAL open.
//!
//! Features and ledger lie in the same file and change in the same transaction, so an event is in both or in neither.
//! Write-ahead logging with `synchronous=FULL`: what is acknowledged has reached the disk.

mod geometry;
mod notes;
mod schema;
mod standing;
mod write;

use std::{path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use geoclaim_common::Fault;
pub use rusqlite;
use rusqlite::Transaction;

use super::{Change, Effect, Features, OnLeft, Sink};
use crate::sqlite::SqliteFile;

pub use geometry::gpkg_geometry;

/// The layer that features go to.
pub const LAYER: &str = "features";

/// An embedder's own statements in the transaction of a batch.
pub trait Statements: Send + Sync + std::fmt::Debug {
    /// Runs after the features are written and before the commit, with the effect of each change. Commits nothing itself.
    /// A batch may come here more than once, and of those transactions at most one is committed.
    ///
    /// # Errors
    /// The transaction is rolled back. A file that is busy brings the batch again, anything else stops the consumer.
    fn run(&self, transaction: &Transaction<'_>, batch: &[Change], effects: &[Effect]) -> rusqlite::Result<()>;
}

/// Applies changes to a GeoPackage.
#[derive(Debug)]
pub struct GeoPackageSink {
    file: SqliteFile,
    consumer: String,
    on_left: OnLeft,
    statements: Option<Arc<dyn Statements>>,
}

impl GeoPackageSink {
    /// Opens a GeoPackage, or makes it; its directory must be there. The ledger is kept by `consumer`.
    ///
    /// # Errors
    /// [`geoclaim_common::FaultKind::Configuration`] when the file cannot be opened or is no GeoPackage of ours.
    pub fn open(path: impl AsRef<Path>, consumer: impl Into<String>) -> Result<Self, Fault> {
        let file = SqliteFile::open(path.as_ref(), schema::prepare)?;
        Ok(Self { file, consumer: consumer.into(), on_left: OnLeft::default(), statements: None })
    }

    /// Sets what becomes of a feature that leaves the areas. One that is marked stays with `left_at` set.
    #[must_use]
    pub fn on_left(self, on_left: OnLeft) -> Self {
        Self { on_left, ..self }
    }

    /// Adds statements to the transaction of each batch.
    #[must_use]
    pub fn with_statements(self, statements: Arc<dyn Statements>) -> Self {
        Self { statements: Some(statements), ..self }
    }

    /// Returns where the file lies.
    pub fn path(&self) -> &Path {
        self.file.path()
    }
}

#[async_trait]
impl Sink for GeoPackageSink {
    async fn apply(&self, batch: Arc<Vec<Change>>) -> Result<Vec<Effect>, Fault> {
        let (consumer, on_left, statements) = (self.consumer.clone(), self.on_left, self.statements.clone());
        self.file.with(move |connection| write::apply(connection, (&consumer, on_left), statements.as_deref(), &batch)).await
    }

    async fn features(&self, mark: u64) -> Result<Features, Fault> {
        self.file.with(move |connection| standing::features(connection, mark)).await
    }

    async fn remember(&self, note: Vec<u8>, most_bytes: u64) -> Result<(), Fault> {
        let consumer = self.consumer.clone();
        self.file.with(move |connection| notes::remember(connection, &consumer, &note, most_bytes)).await
    }

    async fn recall(&self) -> Result<Vec<Vec<u8>>, Fault> {
        let consumer = self.consumer.clone();
        self.file.with(move |connection| notes::recall(connection, &consumer)).await
    }

    async fn forget(&self, older_than: Duration, most: u32) -> Result<u64, Fault> {
        let consumer = self.consumer.clone();
        self.file.with(move |connection| notes::forget(connection, &consumer, older_than, most)).await
    }

    async fn close(&self) -> Result<(), Fault> {
        self.file.close().await
    }
}
