//! PostGIS: features and ledger in one PostgreSQL database, changed in the same transaction.
//!
//! ```text
//! features          fid, consumer, feature_id, geom (4326), geom_z, properties (jsonb), areas (text[]), event_id,
//!                   version, occurred_at, body_sha256, left_at        unique (consumer, feature_id), GiST on geom
//! geoclaim_ledger   consumer, event_id, feature_id, outcome, recorded_at
//! geoclaim_features what is known of every feature that came, held or not
//! geoclaim_notes    what was discarded, as far as it is remembered
//! geoclaim_schema   one row: the version of these tables
//! ```
//!
//! Each consumer, by its name, has a state and a ledger of its own, so that regional consumers share a database and none
//! undoes what another holds. The tables are in the first schema of the search path
//! (`?options=-csearch_path%3Dregion,public`); PostGIS must be found there, too.
//!
//! A batch is one transaction at READ COMMITTED. Serialisation failures, deadlocks and lost connections are
//! [`geoclaim_common::FaultKind::Unavailable`]: the whole batch comes again. A COMMIT whose answer is lost may have
//! happened; nothing is acknowledged for it, and when the batch comes again the ledger says what of it there is.

mod connection;
mod decide;
mod notes;
mod rows;
mod schema;
mod write;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use geoclaim_common::{Fault, FaultKind};
use tokio::sync::Mutex;
pub use tokio_postgres;
use tokio_postgres::{Config, Transaction};

use super::{Change, Effect, Features, OnLeft, Sink};
use crate::postgres::{self, connect, fault_of};
use connection::Connection;
use write::Applying;

/// An embedder's own statements in the transaction of a batch.
#[async_trait]
pub trait Statements: Send + Sync + std::fmt::Debug {
    /// Runs after the features are written and before COMMIT, with the effect of each change. Commits nothing itself. A
    /// batch may come here more than once, and of those transactions at most one is committed.
    ///
    /// # Errors
    /// The transaction is rolled back. [`FaultKind::Unavailable`] brings the batch again, any other kind stops the
    /// consumer.
    async fn run(&self, transaction: &Transaction<'_>, batch: &[Change], effects: &[Effect]) -> Result<(), Fault>;
}

/// Applies changes to a PostgreSQL database with PostGIS.
#[derive(Debug)]
pub struct PostgisSink {
    config: Config,
    consumer: String,
    on_left: OnLeft,
    statements: Option<Arc<dyn Statements>>,
    /// `None` after a connection is lost, until the next use.
    connection: Mutex<Option<Connection>>,
}

impl PostgisSink {
    /// Connects, and makes or migrates the tables. State and ledger are kept by `consumer`.
    ///
    /// # Errors
    /// [`FaultKind::Configuration`] when the URL, the rights or the extension are not as they must be, or a newer version
    /// has been there; [`FaultKind::Unavailable`] when nothing answers.
    pub async fn open(url: &str, consumer: impl Into<String>) -> Result<Self, Fault> {
        let config = postgres::config(url)?;
        let mut first = connect(&config).await?;
        schema::prepare(&mut first).await?;
        let connection = Connection::ready(first).await?;
        let consumer = consumer.into();
        Ok(Self { config, consumer, on_left: OnLeft::default(), statements: None, connection: Mutex::new(Some(connection)) })
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

    async fn apply_once(&self, batch: &[Change], refused: Option<&str>) -> Result<Vec<Effect>, Fault> {
        let mut slot = self.connection.lock().await;
        let connection = self.connected(&mut slot).await?;
        let applying =
            Applying { consumer: &self.consumer, on_left: self.on_left, statements: self.statements.as_deref(), refused };
        write::apply(&mut connection.client, &connection.prepared, &applying, batch).await
    }

    async fn connected<'a>(&self, slot: &'a mut Option<Connection>) -> Result<&'a mut Connection, Fault> {
        match slot.take().filter(Connection::is_open) {
            Some(open) => Ok(slot.insert(open)),
            None => Ok(slot.insert(Connection::ready(connect(&self.config).await?).await?)),
        }
    }

    /// Applies changes one by one, since one of them, as PostgreSQL says, cannot be stored. That one is recorded as
    /// rejected, with what was said.
    async fn apply_singly(&self, batch: &[Change]) -> Result<Vec<Effect>, Fault> {
        let mut effects = Vec::with_capacity(batch.len());
        for change in batch {
            let one = std::slice::from_ref(change);
            let applied = match self.apply_once(one, None).await {
                Err(fault) if fault.kind == FaultKind::Rejected && change.state().is_some() => {
                    self.apply_once(one, Some(&fault.one_line())).await
                }
                applied => applied,
            };
            effects.extend(applied.map_err(stopping)?);
        }
        Ok(effects)
    }
}

/// An error of rows that are none of a feature's state: it would come again for ever.
fn stopping(fault: Fault) -> Fault {
    match fault.kind {
        FaultKind::Rejected => Fault::configuration(fault.detail),
        _ => fault,
    }
}

#[async_trait]
impl Sink for PostgisSink {
    async fn apply(&self, batch: Arc<Vec<Change>>) -> Result<Vec<Effect>, Fault> {
        match self.apply_once(&batch, None).await {
            Err(fault) if fault.kind == FaultKind::Rejected => self.apply_singly(&batch).await,
            applied => applied,
        }
    }

    async fn features(&self, mark: u64) -> Result<Features, Fault> {
        let mut slot = self.connection.lock().await;
        let connection = self.connected(&mut slot).await?;
        notes::features(&connection.client, &self.consumer, mark).await.map_err(|error| fault_of(&error))
    }

    async fn remember(&self, note: Vec<u8>, most_bytes: u64) -> Result<(), Fault> {
        let mut slot = self.connection.lock().await;
        let connection = self.connected(&mut slot).await?;
        let remembered = notes::remember(&mut connection.client, &self.consumer, &note, most_bytes).await;
        remembered.map_err(|error| fault_of(&error))
    }

    async fn recall(&self) -> Result<Vec<Vec<u8>>, Fault> {
        let mut slot = self.connection.lock().await;
        let connection = self.connected(&mut slot).await?;
        notes::recall(&connection.client, &self.consumer).await.map_err(|error| fault_of(&error))
    }

    async fn forget(&self, older_than: Duration, most: u32) -> Result<u64, Fault> {
        let mut slot = self.connection.lock().await;
        let connection = self.connected(&mut slot).await?;
        let forgotten = notes::forget(&connection.client, &self.consumer, older_than, most).await;
        forgotten.map_err(|error| fault_of(&error))
    }

    async fn close(&self) -> Result<(), Fault> {
        drop(self.connection.lock().await.take());
        Ok(())
    }
}
