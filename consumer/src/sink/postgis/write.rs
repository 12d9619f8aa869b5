//! One batch, one transaction, a handful of round trips however many events it has.
//!
//! READ COMMITTED. Events are claimed in the ledger first, in order of their ids: a duplicate on another connection
//! waits there until this transaction has ended, and then finds its event taken. Then the features' rows are locked, in
//! order too, so that two batches never wait for each other in a circle.

use std::collections::{BTreeMap, HashMap, HashSet};

use geoclaim_common::{Fault, Timestamp, stream::Position};
use tokio_postgres::{Client, Row, Statement, Transaction, types::ToSql};

use super::{
    Statements,
    decide::{CLAIMED, Decision, decide},
    rows::{Kept, Written, storable},
};
use crate::{
    holdings::hash,
    postgres::fault_of,
    sink::{Change, Effect, OnLeft, order::Standing},
};

/// The statements of a connection, prepared once.
#[derive(Debug)]
pub(super) struct Prepared {
    claim: Statement,
    enter: Statement,
    lock: Statement,
    keep: Statement,
    remove: Statement,
    write: Statement,
    mark: Statement,
    areas: Statement,
    outcome: Statement,
}

// Rows are found by their keys one by one, and not by joins: a plan that was made while the tables were small would read
// all of them for every batch, for as long as the connection lives. So what changes rows that are there is written as an
// insert that meets them.
const CLAIM: &str = "INSERT INTO geoclaim_ledger (consumer, event_id, feature_id, outcome)
  SELECT $1, event_id, feature_id, $4 FROM unnest($2::text[], $3::text[]) AS given (event_id, feature_id)
  ON CONFLICT (consumer, event_id) DO NOTHING RETURNING event_id";

const ENTER: &str = "INSERT INTO geoclaim_features (consumer, feature_id)
  SELECT $1, feature_id FROM unnest($2::text[]) AS given (feature_id) ON CONFLICT (consumer, feature_id) DO NOTHING";

const LOCK: &str = "SELECT feature.* FROM unnest($2::text[]) AS given (feature_id) CROSS JOIN LATERAL (
  SELECT feature_id, event_id, version, held, partition, record_offset, record_time FROM geoclaim_features
  WHERE consumer = $1 AND feature_id = given.feature_id FOR UPDATE) AS feature";

const KEEP: &str = "INSERT INTO geoclaim_features
    (consumer, feature_id, event_id, version, held, partition, record_offset, record_time)
  SELECT $1, given.* FROM unnest($2::text[], $3::text[], $4::bigint[], $5::boolean[], $6::integer[], $7::bigint[], $8::bigint[])
    AS given
  ON CONFLICT (consumer, feature_id) DO UPDATE SET event_id = excluded.event_id, version = excluded.version,
    held = excluded.held, partition = excluded.partition, record_offset = excluded.record_offset,
    record_time = excluded.record_time";

const REMOVE: &str = "DELETE FROM features WHERE consumer = $1 AND feature_id = ANY ($2)";

// OFFSET 0 keeps the geometry from being made twice.
const WRITE: &str = "INSERT INTO features AS feature
    (consumer, feature_id, geom, geom_z, properties, areas, event_id, version, occurred_at, body_sha256, left_at)
  SELECT $1, feature_id, ST_Force2D(made), CASE WHEN has_z THEN made END, properties::jsonb,
    ARRAY (SELECT jsonb_array_elements_text(areas::jsonb)), event_id, version,
    to_timestamp(occurred_at / 1000.0), body_sha256, CASE WHEN has_left THEN now() END
  FROM (SELECT *, ST_GeomFromWKB(wkb, 4326) AS made
    FROM unnest($2::text[], $3::bytea[], $4::boolean[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bigint[],
      $10::text[], $11::boolean[])
      AS given (feature_id, wkb, has_z, properties, areas, event_id, version, occurred_at, body_sha256, has_left) OFFSET 0) AS given
  ON CONFLICT (consumer, feature_id) DO UPDATE SET geom = excluded.geom, geom_z = excluded.geom_z,
    properties = excluded.properties, areas = excluded.areas, event_id = excluded.event_id,
    version = coalesce(excluded.version, feature.version), occurred_at = excluded.occurred_at,
    body_sha256 = excluded.body_sha256, left_at = excluded.left_at";

const MARK: &str = "UPDATE features SET left_at = now() WHERE consumer = $1 AND feature_id = ANY ($2) AND left_at IS NULL";

const AREAS: &str = "UPDATE features AS feature SET areas = given.areas
  FROM (SELECT feature_id, ARRAY (SELECT jsonb_array_elements_text(areas::jsonb)) AS areas
    FROM unnest($2::text[], $3::text[]) AS given (feature_id, areas)) AS given
  WHERE feature.consumer = $1 AND feature.feature_id = given.feature_id AND feature.areas <> given.areas";

const OUTCOME: &str = "INSERT INTO geoclaim_ledger (consumer, event_id, feature_id, outcome)
  SELECT $1, event_id, '', outcome FROM unnest($2::text[], $3::text[]) AS given (event_id, outcome)
  ON CONFLICT (consumer, event_id) DO UPDATE SET outcome = excluded.outcome";

impl Prepared {
    pub(super) async fn on(client: &Client) -> Result<Self, tokio_postgres::Error> {
        let prepare = |sql| client.prepare(sql);
        Ok(Self {
            claim: prepare(CLAIM).await?,
            enter: prepare(ENTER).await?,
            lock: prepare(LOCK).await?,
            keep: prepare(KEEP).await?,
            remove: prepare(REMOVE).await?,
            write: prepare(WRITE).await?,
            mark: prepare(MARK).await?,
            areas: prepare(AREAS).await?,
            outcome: prepare(OUTCOME).await?,
        })
    }
}

/// Who applies, and how.
pub(super) struct Applying<'a> {
    pub(super) consumer: &'a str,
    pub(super) on_left: OnLeft,
    pub(super) statements: Option<&'a dyn Statements>,
    /// Why nothing of the batch can be stored, where that has been found out.
    pub(super) refused: Option<&'a str>,
}

/// Applies a batch.
///
/// # Errors
/// Nothing was applied; or, when the connection ended before COMMIT was answered, that is not known.
pub(super) async fn apply(
    client: &mut Client,
    prepared: &Prepared,
    applying: &Applying<'_>,
    batch: &[Change],
) -> Result<Vec<Effect>, Fault> {
    let transaction = client.transaction().await.map_err(|error| fault_of(&error))?;
    let known = claim(&transaction, prepared, applying.consumer, batch).await.map_err(|error| fault_of(&error))?;
    let written = Written::prepare(batch);
    let decision =
        decide(batch, applying.on_left, known, |place| applying.refused.map(str::to_owned).or_else(|| written.flaw(place)));
    write(&transaction, prepared, applying.consumer, (&decision, &written)).await.map_err(|error| fault_of(&error))?;
    let effects = decision.effects;
    if let Some(statements) = applying.statements {
        statements.run(&transaction, batch, &effects).await?;
    }
    transaction.commit().await.map_err(|error| fault_of(&error))?;
    Ok(effects)
}

/// Claims the events and locks the features; returns which events had been claimed before, and what stands.
async fn claim(
    transaction: &Transaction<'_>,
    prepared: &Prepared,
    consumer: &str,
    batch: &[Change],
) -> Result<(HashSet<String>, HashMap<String, Standing>), tokio_postgres::Error> {
    let stored: BTreeMap<_, _> = batch.iter().map(|change| (storable(&change.event_id), storable(&change.feature_id))).collect();
    let (events, of): (Vec<&str>, Vec<&str>) = stored.iter().map(|(event, feature)| (&**event, &**feature)).unzip();
    let features: BTreeMap<_, _> = batch.iter().map(|change| (storable(&change.feature_id), &change.feature_id)).collect();
    let ids: Vec<&str> = features.keys().map(|id| &**id).collect();
    let claiming: [&(dyn ToSql + Sync); 4] = [&consumer, &events, &of, &CLAIMED];
    let locking: [&(dyn ToSql + Sync); 2] = [&consumer, &ids];
    // Sent together, done in this order.
    let (claimed, _, locked) = futures::try_join!(
        transaction.query(&prepared.claim, &claiming),
        transaction.execute(&prepared.enter, &locking),
        transaction.query(&prepared.lock, &locking),
    )?;
    let claimed: HashSet<&str> = claimed.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    let recorded = batch.iter().filter(|change| !claimed.contains(&*storable(&change.event_id)));
    let recorded = recorded.map(|change| change.event_id.clone()).collect();
    let mut standings = HashMap::new();
    for row in &locked {
        if let (Some(standing), Some(id)) = (standing_of(row)?, features.get(row.try_get::<_, &str>(0)?)) {
            standings.insert((*id).clone(), standing);
        }
    }
    Ok((recorded, standings))
}

fn standing_of(row: &Row) -> Result<Option<Standing>, tokio_postgres::Error> {
    let Some(event) = row.try_get::<_, Option<&str>>(1)? else { return Ok(None) };
    let timestamp = row.try_get::<_, Option<i64>>(6)?.map(Timestamp::from_millis);
    let position = Position { partition: row.try_get(4)?, offset: row.try_get(5)?, timestamp };
    Ok(Some(Standing { event: hash(event), version: row.try_get(2)?, position, is_held: row.try_get(3)? }))
}

/// Writes what was decided, each kind of row by one statement, all sent together.
async fn write(
    transaction: &Transaction<'_>,
    prepared: &Prepared,
    consumer: &str,
    (decision, written): (&Decision<'_>, &Written<'_>),
) -> Result<(), tokio_postgres::Error> {
    let kept = Kept::of(&decision.standings);
    let rows = written.columns(&decision.rows);
    let (events, outcomes): (Vec<_>, Vec<&str>) =
        decision.outcomes.iter().map(|(event, outcome)| (storable(event), *outcome)).unzip();
    let run = async |statement: &Statement, count: usize, parameters: &[&(dyn ToSql + Sync)]| {
        if count > 0 { transaction.execute(statement, parameters).await.map(drop) } else { Ok(()) }
    };
    let keep: [&(dyn ToSql + Sync); 8] =
        [&consumer, &kept.features, &kept.events, &kept.versions, &kept.held, &kept.partitions, &kept.offsets, &kept.times];
    let columns: [&(dyn ToSql + Sync); 11] = [
        &consumer,
        &rows.features,
        &rows.wkbs,
        &rows.has_z,
        &rows.properties,
        &rows.areas,
        &rows.events,
        &rows.versions,
        &rows.occurred,
        &rows.digests,
        &rows.left,
    ];
    let remove: [&(dyn ToSql + Sync); 2] = [&consumer, &rows.removed];
    let mark: [&(dyn ToSql + Sync); 2] = [&consumer, &rows.marked];
    let areas: [&(dyn ToSql + Sync); 3] = [&consumer, &rows.renewed, &rows.renewed_areas];
    let outcome: [&(dyn ToSql + Sync); 3] = [&consumer, &events, &outcomes];
    futures::try_join!(
        run(&prepared.keep, kept.features.len(), &keep),
        run(&prepared.remove, rows.removed.len(), &remove),
        run(&prepared.write, rows.features.len(), &columns),
        run(&prepared.mark, rows.marked.len(), &mark),
        run(&prepared.areas, rows.renewed.len(), &areas),
        run(&prepared.outcome, events.len(), &outcome),
    )?;
    Ok(())
}
