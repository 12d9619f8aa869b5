//! GeoPackage: one SQLite file that QGIS and GDAL open.
//!
//! Features and ledger lie in the same file and change in the same transaction, so an event is in both or in neither.
//! Write-ahead logging with `synchronous=FULL`: what is acknowledged has reached the disk.

mod geometry;
mod schema;
mod write;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use geoclaim_common::{Fault, FaultKind};
use rusqlite::{Connection, ErrorCode};

use super::{Change, Effect, Sink};

pub use geometry::gpkg_geometry;

/// The layer that features go to.
pub const LAYER: &str = "features";

/// Applies changes to a GeoPackage.
#[derive(Debug)]
pub struct GeoPackageSink {
    path: PathBuf,
    consumer: String,
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
        Ok(Self { path, consumer: consumer.into(), connection: Arc::new(Mutex::new(Some(connection))) })
    }

    /// Returns where the file lies.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[async_trait]
impl Sink for GeoPackageSink {
    async fn apply(&self, batch: Arc<Vec<Change>>) -> Result<Vec<Effect>, Fault> {
        let (connection, consumer, path) = (Arc::clone(&self.connection), self.consumer.clone(), self.path.clone());
        let apply = move || {
            let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(connection) = connection.as_mut() else {
                return Err(Fault::new(FaultKind::Fenced, "the GeoPackage is closed"));
            };
            write::apply(connection, &consumer, &batch).map_err(|error| fault_of(&path, &error))
        };
        tokio::task::spawn_blocking(apply).await.unwrap_or_else(|error| Err(Fault::unavailable(error.to_string())))
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
