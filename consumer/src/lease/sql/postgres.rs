//! Leases in a PostgreSQL database.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use geoclaim_common::{Digest, Fault};
use tokio::sync::Mutex;
use tokio_postgres::{Client, Config, Error, GenericClient};
use uuid::Uuid;

use super::{Found, Statements, TABLE, fence_of, hanging_of, seconds};
use crate::{
    lease::{Claim, Hanging, Intents, Lease, Leases},
    postgres::{cannot, config, connect, fault_of},
};

/// PostgreSQL's clock, read when the statement gets there, not when its transaction began.
const NOW: &str = "CAST(extract(epoch FROM clock_timestamp()) AS double precision)";

/// Held while the table is made, so that of many who start at once one makes it.
const LOCK: i64 = 0x0067_656f_6c65_6173;

/// Grants leases in a PostgreSQL database, which may be that of a sink.
#[derive(Clone, Debug)]
pub struct PostgresLeases {
    config: Config,
    consumer: String,
    lasts: Duration,
    statements: Statements,
    /// `None` after a connection is lost, until the next use.
    connection: Arc<Mutex<Option<Arc<Client>>>>,
}

impl PostgresLeases {
    /// Connects, makes the table where there is none, and grants leases that last so long without a renewal to workers of
    /// `consumer`.
    ///
    /// # Errors
    /// [`geoclaim_common::FaultKind::Configuration`] when the URL or the rights are not as they must be,
    /// [`geoclaim_common::FaultKind::Unavailable`] when nothing answers.
    pub async fn open(url: &str, consumer: impl Into<String>, lasts: Duration) -> Result<Self, Fault> {
        let config = config(url)?;
        let client = connect(&config).await?;
        let make = format!("BEGIN; SELECT pg_advisory_xact_lock({LOCK}); {TABLE} COMMIT");
        client.batch_execute(&make).await.map_err(|error| cannot("make the table of leases", &error))?;
        let connection = Arc::new(Mutex::new(Some(Arc::new(client))));
        Ok(Self { config, consumer: consumer.into(), lasts, statements: Statements::new(NOW, "$"), connection })
    }

    /// Commits a lease in a transaction of the caller, on the same database: what the job has changed there and its end
    /// become durable together. Returns whether the lease still was the job's; `false`, and the transaction must be rolled
    /// back.
    ///
    /// # Errors
    /// PostgreSQL's.
    pub async fn commit_in(&self, transaction: &impl GenericClient, lease: &Lease, result: &str) -> Result<bool, Error> {
        let fence = i64::try_from(lease.fence()).unwrap_or(i64::MAX);
        let job = lease.job().to_string();
        let done = transaction.execute(&self.statements.commit, &[&self.consumer, &job, &lease.token(), &result, &fence]).await?;
        Ok(done == 1 || self.find(transaction, lease.job()).await?.is_some_and(|found| found.is_committed_by(lease)))
    }

    async fn find(&self, client: &impl GenericClient, job: Digest) -> Result<Option<Found>, Error> {
        let row = client.query_opt(&self.statements.look, &[&self.consumer, &job.to_string()]).await?;
        row.map(|row| Ok(Found { committed_at: row.try_get(0)?, result: row.try_get(1)?, token: row.try_get(2)? })).transpose()
    }

    async fn client(&self) -> Result<Arc<Client>, Fault> {
        let mut slot = self.connection.lock().await;
        if let Some(open) = slot.as_ref().filter(|client| !client.is_closed()) {
            return Ok(Arc::clone(open));
        }
        Ok(Arc::clone(slot.insert(Arc::new(connect(&self.config).await?))))
    }
}

#[async_trait]
impl Leases for PostgresLeases {
    async fn claim(&self, job: Digest) -> Result<Claim, Fault> {
        self.intend(job, "").await
    }

    async fn renew(&self, lease: &Lease) -> Result<(), Fault> {
        let (job, lasts) = (lease.job().to_string(), seconds(self.lasts));
        let renewed = self.client().await?.execute(&self.statements.renew, &[&self.consumer, &job, &lease.token(), &lasts]).await;
        if renewed.map_err(|error| fault_of(&error))? == 1 { Ok(()) } else { Err(lease.lost()) }
    }

    async fn commit(&self, lease: Lease) -> Result<(), Fault> {
        self.commit_with(lease, "").await
    }

    async fn release(&self, lease: Lease) -> Result<(), Fault> {
        let released = self
            .client()
            .await?
            .execute(&self.statements.release, &[&self.consumer, &lease.job().to_string(), &lease.token()])
            .await;
        released.map(drop).map_err(|error| fault_of(&error))
    }

    fn lasts(&self) -> Duration {
        self.lasts
    }
}

#[async_trait]
impl Intents for PostgresLeases {
    async fn intend(&self, job: Digest, about: &str) -> Result<Claim, Fault> {
        let (client, token) = (self.client().await?, Uuid::now_v7().to_string());
        let (name, lasts) = (job.to_string(), seconds(self.lasts));
        let won = client.query_opt(&self.statements.claim, &[&self.consumer, &name, &token, &about, &lasts]).await;
        if let Some(row) = won.map_err(|error| fault_of(&error))? {
            let fence = row.try_get(0).map_err(|error| fault_of(&error))?;
            return Ok(Claim::Won(Lease::new(job, fence_of(fence), token)));
        }
        let found = self.find(&*client, job).await.map_err(|error| fault_of(&error))?;
        Ok(found.map_or(Claim::Held, Found::claim))
    }

    async fn commit_with(&self, lease: Lease, result: &str) -> Result<(), Fault> {
        let is_done = self.commit_in(&*self.client().await?, &lease, result).await.map_err(|error| fault_of(&error))?;
        if is_done { Ok(()) } else { Err(lease.lost()) }
    }

    async fn result(&self, job: Digest) -> Result<Option<String>, Fault> {
        let found = self.find(&*self.client().await?, job).await.map_err(|error| fault_of(&error))?;
        Ok(found.and_then(|found| found.result))
    }

    async fn hanging(&self, older_than: Duration, most: u32) -> Result<Vec<Hanging>, Fault> {
        let given = (seconds(older_than), i64::from(most));
        let rows = self.client().await?.query(&self.statements.hanging, &[&self.consumer, &given.0, &given.1]).await;
        let of_row = |row: &tokio_postgres::Row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?));
        let rows: Result<Vec<_>, Error> = rows.and_then(|rows| rows.iter().map(of_row).collect());
        Ok(rows.map_err(|error| fault_of(&error))?.into_iter().filter_map(hanging_of).collect())
    }

    async fn forget(&self, older_than: Duration, most: u32) -> Result<u64, Fault> {
        let given = (seconds(older_than), i64::from(most));
        let forgotten = self.client().await?.execute(&self.statements.forget, &[&self.consumer, &given.0, &given.1]).await;
        forgotten.map_err(|error| fault_of(&error))
    }
}
