//! The features of a GeoPackage.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use geoclaim_common::{Digest, Fault};
use rusqlite::{Connection, OpenFlags, Row, params};

use super::{Held, HeldFeatures};

/// Reads a GeoPackage that a sink has written. Changes nothing.
#[derive(Clone, Debug)]
pub struct GeoPackageFeatures {
    path: PathBuf,
    connection: Arc<Mutex<Connection>>,
}

impl GeoPackageFeatures {
    /// Opens a file, which must be there.
    ///
    /// # Errors
    /// [`geoclaim_common::FaultKind::Configuration`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Fault> {
        let path = path.as_ref().to_owned();
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&path, flags).map_err(|error| failed(&path, &error))?;
        Ok(Self { path, connection: Arc::new(Mutex::new(connection)) })
    }
}

fn failed(path: &Path, error: &rusqlite::Error) -> Fault {
    Fault::configuration(format!("{}: {error}", path.display()))
}

fn held(row: &Row<'_>) -> rusqlite::Result<Held> {
    let areas: String = row.get(4)?;
    let (geometry, properties): (Option<Vec<u8>>, Option<String>) = (row.get(6)?, row.get(7)?);
    let content = [geometry.unwrap_or_default(), properties.unwrap_or_default().into_bytes()].concat();
    Ok(Held {
        feature_id: row.get(0)?,
        event_id: row.get(1)?,
        version: row.get(2)?,
        body_sha256: row.get(3)?,
        areas: serde_json::from_str(&areas).unwrap_or_else(|_| vec![areas]),
        has_left: row.get(5)?,
        content: Some(Digest::of(&content).to_string()),
    })
}

#[async_trait]
impl HeldFeatures for GeoPackageFeatures {
    async fn after(&self, feature_id: Option<&str>, most: u32) -> Result<Vec<Held>, Fault> {
        let (features, after) = (self.clone(), feature_id.map(str::to_owned));
        let read = move || {
            let connection = features.connection.lock().unwrap_or_else(PoisonError::into_inner);
            let mut rows = connection.prepare_cached(
                "SELECT feature_id, event_id, version, body_sha256, areas, left_at IS NOT NULL, geom, properties FROM features
                 WHERE ?1 IS NULL OR feature_id > ?1 ORDER BY feature_id LIMIT ?2",
            )?;
            rows.query_map(params![after, most], held)?.collect::<rusqlite::Result<Vec<_>>>()
        };
        let path = self.path.clone();
        let done = tokio::task::spawn_blocking(read).await.map_err(|error| Fault::unavailable(error.to_string()))?;
        done.map_err(|error| failed(&path, &error))
    }

    fn kind(&self) -> &'static str {
        "GeoPackage"
    }
}
