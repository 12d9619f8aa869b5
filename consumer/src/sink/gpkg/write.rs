//! One batch, one transaction.

use rusqlite::{Connection, OptionalExtension as _, Result, Transaction, TransactionBehavior, params};

use super::geometry::{Encoded, encode};
use crate::sink::{Change, Effect};

/// SQLite holds at most 1,000,000,000 bytes in a row; properties need some of them.
const MOST_BLOB_BYTES: usize = 900_000_000;

/// Records and applies a batch in order. Immediate, for a deferred transaction that has read cannot wait for a writer.
pub(super) fn apply(connection: &mut Connection, consumer: &str, batch: &[Change]) -> Result<Vec<Effect>> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let effects = batch.iter().map(|change| apply_one(&transaction, consumer, change)).collect::<Result<Vec<_>>>()?;
    transaction.commit()?;
    Ok(effects)
}

fn apply_one(transaction: &Transaction<'_>, consumer: &str, change: &Change) -> Result<Effect> {
    let recorded = transaction
        .prepare_cached(
            "INSERT INTO geoclaim_ledger (consumer, event_id, feature_id, outcome) VALUES (?1, ?2, ?3, 'applied') ON CONFLICT DO NOTHING",
        )?
        .execute(params![consumer, change.event_id, change.feature_id])?;
    if recorded == 0 {
        return Ok(Effect::Duplicate);
    }
    let other = |outcome: &str| {
        transaction
            .prepare_cached("UPDATE geoclaim_ledger SET outcome = ?3 WHERE consumer = ?1 AND event_id = ?2")?
            .execute(params![consumer, change.event_id, outcome])
    };
    if is_stale(transaction, change)? {
        other("stale")?;
        return Ok(Effect::Stale);
    }
    let encoded = encode(change);
    if encoded.blob.as_ref().is_some_and(|blob| blob.len() > MOST_BLOB_BYTES) {
        other("rejected")?;
        return Ok(Effect::Rejected(format!(
            "its geometry takes more than the {MOST_BLOB_BYTES} bytes that SQLite holds in a row"
        )));
    }
    upsert(transaction, change, encoded)?;
    Ok(Effect::Applied)
}

/// Tells whether the feature's state has the same or a higher version. Without versions, the order of the partition
/// stands.
fn is_stale(transaction: &Transaction<'_>, change: &Change) -> Result<bool> {
    let Some(version) = change.version else { return Ok(false) };
    let held: Option<Option<i64>> = transaction
        .prepare_cached("SELECT version FROM features WHERE feature_id = ?1")?
        .query_row([&change.feature_id], |row| row.get(0))
        .optional()?;
    Ok(held.flatten().is_some_and(|held| version <= held))
}

fn upsert(transaction: &Transaction<'_>, change: &Change, Encoded { blob, bounds }: Encoded) -> Result<()> {
    let areas: Vec<&str> = change.areas.iter().map(|id| &**id).collect();
    let body = change.body.bytes();
    let properties = change.outline.properties.clone().and_then(|range| std::str::from_utf8(&body[range]).ok());
    transaction
        .prepare_cached(
            "INSERT INTO features (geom, feature_id, properties, areas, event_id, version, occurred_at, body_sha256)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT (feature_id) DO UPDATE SET geom = excluded.geom, properties = excluded.properties, areas = excluded.areas,
               event_id = excluded.event_id, version = coalesce(excluded.version, version), occurred_at = excluded.occurred_at, body_sha256 = excluded.body_sha256",
        )?
        .execute(params![
            blob,
            change.feature_id,
            properties,
            serde_json::to_string(&areas).unwrap_or_default(),
            change.event_id,
            change.version,
            change.occurred_at.map(|moment| moment.to_rfc3339()),
            change.body.claim().map(|claim| claim.digest.to_string()),
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
