//! The tables in PostgreSQL, and how those of an older version become those of this one.

use geoclaim_common::Fault;
use tokio_postgres::{Client, Error};

use crate::postgres::{cannot, fault_of};

/// One step each; a database is brought from its version to the number of steps. A step that has been released never
/// changes.
const MIGRATIONS: &[&str] = &["
CREATE TABLE features (
  fid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  consumer text COLLATE \"C\" NOT NULL,
  feature_id text COLLATE \"C\" NOT NULL,
  geom geometry(Geometry, 4326),
  geom_z geometry(GeometryZ, 4326),
  properties jsonb,
  areas text[] NOT NULL,
  event_id text NOT NULL,
  version bigint,
  occurred_at timestamptz,
  body_sha256 text,
  left_at timestamptz,
  UNIQUE (consumer, feature_id));
CREATE INDEX features_geom ON features USING gist (geom);
COMMENT ON TABLE features IS 'the latest state of each feature that meets an area of interest, of each consumer';
COMMENT ON COLUMN features.geom IS 'longitude and latitude in degrees';
COMMENT ON COLUMN features.geom_z IS 'the same with heights, where the body has them';
COMMENT ON COLUMN features.left_at IS 'when it left the areas, where it is kept nevertheless';
CREATE TABLE geoclaim_ledger (
  consumer text COLLATE \"C\" NOT NULL,
  event_id text COLLATE \"C\" NOT NULL,
  feature_id text NOT NULL,
  outcome text NOT NULL,
  recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (consumer, event_id));
COMMENT ON TABLE geoclaim_ledger IS 'which events were applied, and what became of each';
CREATE TABLE geoclaim_features (
  consumer text COLLATE \"C\" NOT NULL,
  feature_id text COLLATE \"C\" NOT NULL,
  event_id text,
  version bigint,
  held boolean NOT NULL DEFAULT false,
  partition integer NOT NULL DEFAULT -1,
  record_offset bigint NOT NULL DEFAULT -1,
  record_time bigint,
  entered xid8 NOT NULL DEFAULT pg_current_xact_id(),
  PRIMARY KEY (consumer, feature_id));
CREATE INDEX geoclaim_features_entered ON geoclaim_features (consumer, entered);
COMMENT ON TABLE geoclaim_features IS 'what is known of every feature that came, held or not, so that no older state brings it back';
CREATE TABLE geoclaim_notes (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  consumer text NOT NULL,
  note bytea NOT NULL);
COMMENT ON TABLE geoclaim_notes IS 'notes of what was discarded';
"];

/// Held while the schema is made or migrated, so that of many who start at once one does it.
const LOCK: i64 = 0x0067_656f_636c_6169;

/// Makes the tables, or brings them to this version.
///
/// # Errors
/// A newer version has been there, or PostgreSQL or its PostGIS is not as it must be.
pub(super) async fn prepare(client: &mut Client) -> Result<(), Fault> {
    let transaction = client.transaction().await.map_err(|error| fault_of(&error))?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await.map_err(|error| fault_of(&error))?;
    let version = version(&transaction).await.map_err(|error| cannot("read the version of the schema", &error))?;
    let known = MIGRATIONS.len();
    let steps = usize::try_from(version).ok().and_then(|version| MIGRATIONS.get(version..)).ok_or_else(|| {
        let what = format!("its tables are of version {version}, and this geoclaim knows {known}: take a newer geoclaim");
        Fault::configuration(format!("PostgreSQL: {what}"))
    })?;
    if version == 0 {
        has_postgis(&transaction).await?;
    }
    for step in steps {
        transaction.batch_execute(step).await.map_err(|error| cannot("make the tables", &error))?;
    }
    if !steps.is_empty() {
        let set = "UPDATE geoclaim_schema SET version = $1, migrated_at = now()";
        let known = i32::try_from(known).unwrap_or(i32::MAX);
        transaction.execute(set, &[&known]).await.map_err(|error| cannot("note the version of the schema", &error))?;
    }
    transaction.commit().await.map_err(|error| fault_of(&error))
}

/// Reads the version row; 0 where there is none yet.
async fn version(transaction: &tokio_postgres::Transaction<'_>) -> Result<i32, Error> {
    transaction
        .batch_execute(
            "CREATE TABLE IF NOT EXISTS geoclaim_schema (
               one boolean PRIMARY KEY DEFAULT true CHECK (one), version integer NOT NULL,
               migrated_at timestamptz NOT NULL DEFAULT now());
             INSERT INTO geoclaim_schema (version) VALUES (0) ON CONFLICT DO NOTHING",
        )
        .await?;
    transaction.query_one("SELECT version FROM geoclaim_schema", &[]).await?.try_get(0)
}

async fn has_postgis(transaction: &tokio_postgres::Transaction<'_>) -> Result<(), Fault> {
    let hint = |error: Error| {
        let fault = cannot("make the extension postgis", &error);
        Fault::configuration(format!("{}; install PostGIS, or have an administrator run CREATE EXTENSION postgis", fault.detail))
    };
    transaction.batch_execute("CREATE EXTENSION IF NOT EXISTS postgis").await.map_err(hint)
}
