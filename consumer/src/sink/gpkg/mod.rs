//! GeoPackage: one SQLite file that QGIS and GDAL open.
//!
//! Features and ledger lie in the same file and change in the same transaction, so an event is in both or in neither.
//! Write-ahead logging with `synchronous=FULL`: what is acknowledged has reached the disk.

mod geometry;
mod notes;
mod schema;
mod standing;
mod write;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use geoclaim_common::{Fault, FaultKind};
pub use rusqlite;
use rusqlite::{Connection, ErrorCode, Transaction};

use super::{Change, Effect, Features, OnLeft, Sink};

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
    path: PathBuf,
    consumer: String,
    on_left: OnLeft,
    statements: Option<Arc<dyn Statements>>,
    connection: Arc<Mutex<Option<Connection>>>,
}

impl GeoPackageSink {
    /// Opens a GeoPackage, or makes it; its directory must be there. The ledger is kept by `consumer`.
    ///
    /// # Errors
    /// [`FaultKind::Configuration`] when the file cannot be opened or is no GeoPackage of ours.
    pub fn open(path: impl AsRef<Path>, consumer: impl Into<String>) -> Result<Self, Fault> {
        let path = path.as_ref().to_owned();
        let wrong = |error: rusqlite::Error| Fault::configuration(format!("{}: {error}", path.display()));
        let mut connection = Connection::open(&path).map_err(wrong)?;
        schema::prepare(&mut connection).map_err(wrong)?;
        Ok(Self {
            path,
            consumer: consumer.into(),
            on_left: OnLeft::default(),
            statements: None,
            connection: Arc::new(Mutex::new(Some(connection))),
        })
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

    /// Does work on the connection, off the async threads.
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Fault> {
        let (connection, path) = (Arc::clone(&self.connection), self.path.clone());
        let work = move || {
            let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            let open = connection.as_mut().ok_or_else(|| Fault::new(FaultKind::Fenced, "the GeoPackage is closed"))?;
            work(open).map_err(|error| fault_of(&path, &error))
        };
        tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(Fault::unavailable(error.to_string())))
    }

    /// Returns where the file lies.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[async_trait]
impl Sink for GeoPackageSink {
    async fn apply(&self, batch: Arc<Vec<Change>>) -> Result<Vec<Effect>, Fault> {
        let (consumer, on_left, statements) = (self.consumer.clone(), self.on_left, self.statements.clone());
        self.with(move |connection| write::apply(connection, (&consumer, on_left), statements.as_deref(), &batch)).await
    }

    async fn features(&self, mark: u64) -> Result<Features, Fault> {
        self.with(move |connection| standing::features(connection, mark)).await
    }

    async fn remember(&self, note: Vec<u8>, most_bytes: u64) -> Result<(), Fault> {
        let consumer = self.consumer.clone();
        self.with(move |connection| notes::remember(connection, &consumer, &note, most_bytes)).await
    }

    async fn recall(&self) -> Result<Vec<Vec<u8>>, Fault> {
        let consumer = self.consumer.clone();
        self.with(move |connection| notes::recall(connection, &consumer)).await
    }

    async fn forget(&self, older_than: Duration, most: u32) -> Result<u64, Fault> {
        let consumer = self.consumer.clone();
        self.with(move |connection| notes::forget(connection, &consumer, older_than, most)).await
    }

    async fn close(&self) -> Result<(), Fault> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner).take();
        let path = self.path.clone();
        // Closing the last connection folds the write-ahead log into the file.
        let close = move || connection.map_or(Ok(()), |open| open.close().map_err(|(_, error)| fault_of(&path, &error)));
        tokio::task::spawn_blocking(close).await.unwrap_or_else(|error| Err(Fault::unavailable(error.to_string())))
    }
}

fn fault_of(path: &Path, error: &rusqlite::Error) -> Fault {
    let kind = match error.sqlite_error_code() {
        Some(
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::DiskFull
            | ErrorCode::SystemIoFailure
            | ErrorCode::OutOfMemory,
        ) => FaultKind::Unavailable,
        _ => FaultKind::Configuration,
    };
    Fault::new(kind, format!("{}: {error}", path.display()))
}
