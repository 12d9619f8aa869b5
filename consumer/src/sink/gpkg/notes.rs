//! Notes of a consumer: kept whole, and the oldest go first. And old events of the ledger, which go when they may.

use std::time::Duration;

use rusqlite::{Connection, Result, params};

pub(super) fn remember(connection: &mut Connection, consumer: &str, note: &[u8], most_bytes: u64) -> Result<()> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    transaction
        .prepare_cached("INSERT INTO geoclaim_notes (consumer, note) VALUES (?1, ?2)")?
        .execute(params![consumer, note])?;
    let kept = i64::try_from(most_bytes).unwrap_or(i64::MAX);
    transaction
        .prepare_cached(
            "DELETE FROM geoclaim_notes WHERE consumer = ?1 AND number IN (
               SELECT number FROM (SELECT number, sum(length(note)) OVER (ORDER BY number DESC) AS newer FROM geoclaim_notes
                 WHERE consumer = ?1) WHERE newer > ?2)",
        )?
        .execute(params![consumer, kept])?;
    transaction.commit()
}

pub(super) fn recall(connection: &Connection, consumer: &str) -> Result<Vec<Vec<u8>>> {
    let mut notes = connection.prepare_cached("SELECT note FROM geoclaim_notes WHERE consumer = ?1 ORDER BY number")?;
    notes.query_map([consumer], |row| row.get(0))?.collect()
}

/// Forgets old events of the ledger. Their ages are looked up by an index, which those who keep all do without.
pub(super) fn forget(connection: &Connection, consumer: &str, older_than: Duration, most: u32) -> Result<u64> {
    connection.execute_batch("CREATE INDEX IF NOT EXISTS geoclaim_ledger_ages ON geoclaim_ledger (consumer, recorded_at)")?;
    let age = format!("-{} seconds", older_than.as_secs());
    let forgotten = connection
        .prepare_cached(
            "DELETE FROM geoclaim_ledger WHERE consumer = ?1 AND event_id IN (SELECT event_id FROM geoclaim_ledger
               WHERE consumer = ?1 AND recorded_at < strftime('%Y-%m-%dT%H:%M:%fZ', 'now', ?2) ORDER BY recorded_at LIMIT ?3)",
        )?
        .execute(params![consumer, age, most])?;
    Ok(forgotten as u64)
}
