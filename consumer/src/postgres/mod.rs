//! Connections to PostgreSQL, and what its errors mean. One place for the sink and the leases.

mod fault;

use std::time::Duration;

use geoclaim_common::{Fault, telemetry};
use tokio_postgres::{Client, Config, NoTls};

pub(crate) use fault::{cannot, fault_of};

/// How long a connection may take, where the URL says nothing.
const CONNECT: Duration = Duration::from_secs(10);

/// How long sent bytes may stay unanswered before the connection counts as lost.
const SILENCE: Duration = Duration::from_secs(60);

/// Of a session: READ COMMITTED whatever the server's default; durable commits; a transaction whose owner stands still
/// does not hold its locks for ever.
const SESSION: &str = "SET default_transaction_isolation = 'read committed'; SET synchronous_commit = on;
  SET idle_in_transaction_session_timeout = '60s'; SET client_min_messages = warning";

/// Reads a URL and adds what it does not set: limits, and the password of `PGPASSWORD`.
pub(crate) fn config(url: &str) -> Result<Config, Fault> {
    let mut config: Config =
        url.parse().map_err(|error: tokio_postgres::Error| Fault::configuration(format!("the URL of PostgreSQL: {error}")))?;
    if let (None, Some(password)) = (config.get_password(), std::env::var_os("PGPASSWORD")) {
        config.password(password.as_encoded_bytes());
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENCE);
    }
    if config.get_application_name().is_none() {
        config.application_name("geoclaim");
    }
    Ok(config)
}

/// Connects and sets the session up.
pub(crate) async fn connect(config: &Config) -> Result<Client, Fault> {
    let (client, connection) = config.connect(NoTls).await.map_err(|error| fault_of(&error))?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            telemetry::hiccup("keep the connection to PostgreSQL", &error);
        }
    });
    client.batch_execute(SESSION).await.map_err(|error| fault_of(&error))?;
    Ok(client)
}
