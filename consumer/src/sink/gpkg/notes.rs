//! Notes of a consumer: kept whole, and the oldest go first.

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
