//! One SQLite file, used off the async threads. One place for the sink and the leases.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use geoclaim_common::{Fault, FaultKind};
use rusqlite::{Connection, ErrorCode};

/// An open file. Clones share its connection.
#[derive(Clone, Debug)]
pub(crate) struct SqliteFile {
    path: PathBuf,
    connection: Arc<Mutex<Option<Connection>>>,
}

impl SqliteFile {
    /// Opens a file, or makes it; its directory must be there. `prepare` makes the tables. Write-ahead logging, and what
    /// is committed has reached the disk.
    ///
    /// # Errors
    /// [`FaultKind::Configuration`].
    pub(crate) fn open(path: &Path, prepare: impl FnOnce(&mut Connection) -> rusqlite::Result<()>) -> Result<Self, Fault> {
        let open = || {
            let mut connection = Connection::open(path)?;
            connection.busy_timeout(Duration::from_secs(5))?;
            connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
            connection.pragma_update(None, "synchronous", "full")?;
            prepare(&mut connection)?;
            Ok(connection)
        };
        let connection = open().map_err(|error: rusqlite::Error| Fault::configuration(format!("{}: {error}", path.display())))?;
        Ok(Self { path: path.to_owned(), connection: Arc::new(Mutex::new(Some(connection))) })
    }

    /// Returns where the file lies.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Does work on the connection, off the async threads.
    pub(crate) async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Fault> {
        let file = self.clone();
        let work = move || {
            let mut connection = file.connection.lock().unwrap_or_else(PoisonError::into_inner);
            let closed = || Fault::new(FaultKind::Fenced, format!("{} is closed", file.path.display()));
            work(connection.as_mut().ok_or_else(closed)?).map_err(|error| fault_of(&file.path, &error))
        };
        tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(Fault::unavailable(error.to_string())))
    }

    /// Closes the connection; closing the last one folds the write-ahead log into the file.
    pub(crate) async fn close(&self) -> Result<(), Fault> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner).take();
        let path = self.path.clone();
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
