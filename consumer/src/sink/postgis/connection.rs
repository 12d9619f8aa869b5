//! A connection with the sink's statements.

use geoclaim_common::Fault;
use tokio_postgres::Client;

use super::write::Prepared;
use crate::postgres::cannot;

/// A connection with its statements.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) client: Client,
    pub(super) prepared: Prepared,
}

impl Connection {
    /// Prepares the statements, for which the tables must be there.
    pub(super) async fn ready(client: Client) -> Result<Self, Fault> {
        let prepared = Prepared::on(&client).await.map_err(|error| cannot("use the tables", &error))?;
        Ok(Self { client, prepared })
    }

    pub(super) fn is_open(&self) -> bool {
        !self.client.is_closed()
    }
}
