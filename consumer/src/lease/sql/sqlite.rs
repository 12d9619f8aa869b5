//! Leases in a SQLite file.

use std::{path::Path, time::Duration};

use async_trait::async_trait;
use geoclaim_common::{Digest, Fault};
use rusqlite::{Connection, OptionalExtension as _, params};
use uuid::Uuid;

use super::{Found, Statements, TABLE, fence_of, hanging_of, seconds};
use crate::{
    lease::{Claim, Hanging, Intents, Lease, Leases},
    sqlite::SqliteFile,
};

/// SQLite's clock, which is that of the machine: all who open the file are on it.
const NOW: &str = "unixepoch('subsec')";

/// Grants leases in a SQLite file, which may be the GeoPackage of a sink.
#[derive(Clone, Debug)]
pub struct SqliteLeases {
    file: SqliteFile,
    consumer: String,
    lasts: Duration,
    statements: Statements,
}

impl SqliteLeases {
    /// Opens a file, or makes it, and grants leases that last so long without a renewal to workers of `consumer`.
    ///
    /// # Errors
    /// [`geoclaim_common::FaultKind::Configuration`] when the file cannot be opened.
    pub fn open(path: impl AsRef<Path>, consumer: impl Into<String>, lasts: Duration) -> Result<Self, Fault> {
        let file = SqliteFile::open(path.as_ref(), |connection| connection.execute_batch(TABLE))?;
        Ok(Self { file, consumer: consumer.into(), lasts, statements: Statements::new(NOW, "?") })
    }

    /// Commits a lease in a transaction of the caller, on the same file: what the job has changed there and its end become
    /// durable together. Returns whether the lease still was the job's; `false`, and the transaction must be rolled back.
    ///
    /// # Errors
    /// SQLite's.
    pub fn commit_in(&self, transaction: &Connection, lease: &Lease, result: &str) -> rusqlite::Result<bool> {
        commit(transaction, &self.statements, &self.consumer, lease, result)
    }
}

fn find(connection: &Connection, statements: &Statements, consumer: &str, job: Digest) -> rusqlite::Result<Option<Found>> {
    let found = |row: &rusqlite::Row<'_>| Ok(Found { committed_at: row.get(0)?, result: row.get(1)?, token: row.get(2)? });
    connection.prepare_cached(&statements.look)?.query_row(params![consumer, job.to_string()], found).optional()
}

fn commit(
    connection: &Connection,
    statements: &Statements,
    consumer: &str,
    lease: &Lease,
    result: &str,
) -> rusqlite::Result<bool> {
    let fence = i64::try_from(lease.fence()).unwrap_or(i64::MAX);
    let done = connection.prepare_cached(&statements.commit)?.execute(params![
        consumer,
        lease.job().to_string(),
        lease.token(),
        result,
        fence
    ])?;
    Ok(done == 1 || find(connection, statements, consumer, lease.job())?.is_some_and(|found| found.is_committed_by(lease)))
}

#[async_trait]
impl Leases for SqliteLeases {
    async fn claim(&self, job: Digest) -> Result<Claim, Fault> {
        self.intend(job, "").await
    }

    async fn renew(&self, lease: &Lease) -> Result<(), Fault> {
        let Self { statements, consumer, lasts, .. } = self.clone();
        let (job, token) = (lease.job().to_string(), lease.token().to_owned());
        let renew = move |connection: &mut Connection| {
            connection.prepare_cached(&statements.renew)?.execute(params![consumer, job, token, seconds(lasts)])
        };
        if self.file.with(renew).await? == 1 { Ok(()) } else { Err(lease.lost()) }
    }

    async fn commit(&self, lease: Lease) -> Result<(), Fault> {
        self.commit_with(lease, "").await
    }

    async fn release(&self, lease: Lease) -> Result<(), Fault> {
        let Self { statements, consumer, .. } = self.clone();
        let release = move |connection: &mut Connection| {
            connection.prepare_cached(&statements.release)?.execute(params![consumer, lease.job().to_string(), lease.token()])
        };
        self.file.with(release).await.map(drop)
    }

    fn lasts(&self) -> Duration {
        self.lasts
    }
}

#[async_trait]
impl Intents for SqliteLeases {
    async fn intend(&self, job: Digest, about: &str) -> Result<Claim, Fault> {
        let Self { statements, consumer, lasts, .. } = self.clone();
        let (token, about) = (Uuid::now_v7().to_string(), about.to_owned());
        let claim = move |connection: &mut Connection| {
            let given = params![consumer, job.to_string(), token, about, seconds(lasts)];
            let fence = connection.prepare_cached(&statements.claim)?.query_row(given, |row| row.get(0)).optional()?;
            Ok(match fence {
                Some(fence) => Claim::Won(Lease::new(job, fence_of(fence), token)),
                None => find(connection, &statements, &consumer, job)?.map_or(Claim::Held, Found::claim),
            })
        };
        self.file.with(claim).await
    }

    async fn commit_with(&self, lease: Lease, result: &str) -> Result<(), Fault> {
        let Self { statements, consumer, .. } = self.clone();
        let (of, result) = (lease.again(), result.to_owned());
        let is_done = self.file.with(move |connection| commit(connection, &statements, &consumer, &of, &result)).await?;
        if is_done { Ok(()) } else { Err(lease.lost()) }
    }

    async fn result(&self, job: Digest) -> Result<Option<String>, Fault> {
        let Self { statements, consumer, .. } = self.clone();
        let found = self.file.with(move |connection| find(connection, &statements, &consumer, job)).await?;
        Ok(found.and_then(|found| found.result))
    }

    async fn hanging(&self, older_than: Duration, most: u32) -> Result<Vec<Hanging>, Fault> {
        let Self { statements, consumer, .. } = self.clone();
        let look = move |connection: &mut Connection| {
            let mut rows = connection.prepare_cached(&statements.hanging)?;
            let rows =
                rows.query_map(params![consumer, seconds(older_than), most], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        Ok(self.file.with(look).await?.into_iter().filter_map(hanging_of).collect())
    }

    async fn forget(&self, older_than: Duration, most: u32) -> Result<u64, Fault> {
        let Self { statements, consumer, .. } = self.clone();
        let forget = move |connection: &mut Connection| {
            connection.prepare_cached(&statements.forget)?.execute(params![consumer, seconds(older_than), most])
        };
        Ok(self.file.with(forget).await? as u64)
    }
}
