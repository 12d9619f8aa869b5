//! One batch, one transaction.

use rusqlite::{Connection, OptionalExtension as _, Result, Transaction, TransactionBehavior, params};

use super::{
    Statements,
    geometry::{Encoded, encode},
    standing,
};
use crate::sink::{
    Change, ChangeKind, Effect, OnLeft, State,
    order::{Standing, Verdict, judge},
};

/// SQLite holds at most 1,000,000,000 bytes in a row; properties need some of them.
const MOST_BLOB_BYTES: usize = 900_000_000;

/// Records and applies a batch in order. Immediate, for a deferred transaction that has read cannot wait for a writer.
pub(super) fn apply(
    connection: &mut Connection,
    consumer: (&str, OnLeft),
    statements: Option<&dyn Statements>,
    batch: &[Change],
) -> Result<Vec<Effect>> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let effects = batch.iter().map(|change| apply_one(&transaction, consumer, change)).collect::<Result<Vec<_>>>()?;
    if let Some(statements) = statements {
        statements.run(&transaction, batch, &effects)?;
    }
    transaction.commit()?;
    Ok(effects)
}

fn apply_one(transaction: &Transaction<'_>, (consumer, on_left): (&str, OnLeft), change: &Change) -> Result<Effect> {
    let is_recorded = transaction
        .prepare_cached("SELECT 1 FROM geoclaim_ledger WHERE consumer = ?1 AND event_id = ?2")?
        .query_row([consumer, &change.event_id], |_| Ok(()))
        .optional()?
        .is_some();
    let before = standing::of(transaction, &change.feature_id)?;
    let effect = match judge(change, before.as_ref(), is_recorded) {
        Verdict::Duplicate => return Ok(Effect::Duplicate),
        Verdict::Renew => {
            renew_areas(transaction, change)?;
            return Ok(Effect::Duplicate);
        }
        Verdict::Stale => Effect::Stale,
        Verdict::Apply => take_effect(transaction, on_left, change)?,
    };
    let outcome = effect.recorded_as().unwrap_or_default();
    transaction
        .prepare_cached(
            "INSERT INTO geoclaim_ledger (consumer, event_id, feature_id, outcome) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (consumer, event_id) DO UPDATE SET outcome = excluded.outcome",
        )?
        .execute(params![consumer, change.event_id, change.feature_id, outcome])?;
    if !matches!(effect, Effect::Stale | Effect::Rejected(_)) {
        standing::keep(transaction, change, &Standing::after(change, before.as_ref()))?;
    }
    Ok(effect)
}

fn take_effect(transaction: &Transaction<'_>, on_left: OnLeft, change: &Change) -> Result<Effect> {
    let gone = match (&change.kind, on_left) {
        (ChangeKind::Hold(state), _) => {
            let encoded = encode(state);
            if encoded.blob.as_ref().is_some_and(|blob| blob.len() > MOST_BLOB_BYTES) {
                let why = format!("its geometry takes more than the {MOST_BLOB_BYTES} bytes that SQLite holds in a row");
                return Ok(Effect::Rejected(why));
            }
            upsert(transaction, change, state, encoded)?;
            return Ok(Effect::Applied);
        }
        (ChangeKind::Leave, OnLeft::Mark) => {
            "UPDATE features SET left_at = strftime('%Y-%m-%dT%H:%M:%fZ','now') WHERE feature_id = ?1 AND left_at IS NULL"
        }
        (ChangeKind::Leave, OnLeft::Remove) | (ChangeKind::Delete, _) => "DELETE FROM features WHERE feature_id = ?1",
    };
    match transaction.prepare_cached(gone)?.execute([&change.feature_id])? {
        0 => Ok(Effect::NotHeld),
        _ => touch(transaction).map(|()| Effect::Left),
    }
}

/// Writes the areas that the state which stands meets by now.
fn renew_areas(transaction: &Transaction<'_>, change: &Change) -> Result<()> {
    let Some(state) = change.state() else { return Ok(()) };
    transaction
        .prepare_cached("UPDATE features SET areas = ?2 WHERE feature_id = ?1 AND areas <> ?2")?
        .execute(params![change.feature_id, areas_of(state)])?;
    Ok(())
}

fn areas_of(state: &State) -> String {
    let areas: Vec<&str> = state.areas.iter().map(|id| &**id).collect();
    serde_json::to_string(&areas).unwrap_or_default()
}

fn touch(transaction: &Transaction<'_>) -> Result<()> {
    transaction
        .prepare_cached(
            "UPDATE gpkg_contents SET last_change = strftime('%Y-%m-%dT%H:%M:%fZ','now') WHERE table_name = 'features'",
        )?
        .execute([])?;
    Ok(())
}

fn upsert(transaction: &Transaction<'_>, change: &Change, state: &State, encoded: Encoded) -> Result<()> {
    let Encoded { blob, bounds } = encoded;
    transaction
        .prepare_cached(
            "INSERT INTO features (geom, feature_id, properties, areas, event_id, version, occurred_at, body_sha256)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT (feature_id) DO UPDATE SET geom = excluded.geom, properties = excluded.properties, areas = excluded.areas,
               event_id = excluded.event_id, version = coalesce(excluded.version, version), occurred_at = excluded.occurred_at,
               body_sha256 = excluded.body_sha256, left_at = NULL",
        )?
        .execute(params![
            blob,
            change.feature_id,
            state.properties(),
            areas_of(state),
            change.event_id,
            change.version,
            change.occurred_at.map(|moment| moment.to_rfc3339()),
            state.body.claim().map(|claim| claim.digest.to_string()),
        ])?;
    let Some([west, south, east, north]) = bounds else { return Ok(()) };
    transaction
        .prepare_cached(
            "UPDATE gpkg_contents SET last_change = strftime('%Y-%m-%dT%H:%M:%fZ','now'),
               min_x = min(coalesce(min_x, ?1), ?1), min_y = min(coalesce(min_y, ?2), ?2),
               max_x = max(coalesce(max_x, ?3), ?3), max_y = max(coalesce(max_y, ?4), ?4) WHERE table_name = 'features'",
        )?
        .execute(params![west, south, east, north])?;
    Ok(())
}
