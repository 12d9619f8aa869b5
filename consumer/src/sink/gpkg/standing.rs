//! What is known of a feature, held or not.

use geoclaim_common::{Timestamp, stream::Position};
use rusqlite::{Connection, OptionalExtension as _, Result, params};

use crate::{
    holdings::hash,
    sink::{Change, Features, order::Standing},
};

pub(super) fn of(connection: &Connection, feature_id: &str) -> Result<Option<Standing>> {
    connection
        .prepare_cached(
            "SELECT event_id, version, held, partition, record_offset, record_time FROM geoclaim_features WHERE feature_id = ?1",
        )?
        .query_row([feature_id], |row| {
            let timestamp = row.get::<_, Option<i64>>(5)?.map(Timestamp::from_millis);
            let position = Position { partition: row.get(3)?, offset: row.get(4)?, timestamp };
            let event = hash(row.get_ref(0)?.as_str()?);
            Ok(Standing { event, version: row.get(1)?, position, is_held: row.get(2)? })
        })
        .optional()
}

/// Keeps what stands after a change.
pub(super) fn keep(connection: &Connection, change: &Change, standing: &Standing) -> Result<()> {
    let Position { partition, offset, timestamp } = standing.position;
    let time = timestamp.map(Timestamp::as_millis);
    connection
        .prepare_cached(
            "INSERT INTO geoclaim_features (feature_id, event_id, version, held, partition, record_offset, record_time)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (feature_id) DO UPDATE SET event_id = excluded.event_id, version = excluded.version,
               held = excluded.held, partition = excluded.partition, record_offset = excluded.record_offset,
               record_time = excluded.record_time",
        )?
        .execute(params![change.feature_id, change.event_id, standing.version, standing.is_held, partition, offset, time])?;
    Ok(())
}

/// Returns the features that came after a mark, and the mark after them. Numbers rise in the order of the transactions,
/// for SQLite has one writer at a time.
pub(super) fn features(connection: &Connection, mark: u64) -> Result<Features> {
    let mut found = Features { mark, ..Features::default() };
    let after = i64::try_from(mark).unwrap_or(i64::MAX);
    let mut rows =
        connection.prepare_cached("SELECT feature_id, number FROM geoclaim_features WHERE number > ?1 ORDER BY number")?;
    let mut rows = rows.query([after])?;
    while let Some(row) = rows.next()? {
        found.add(row.get_ref(0)?.as_str()?);
        found.mark = row.get::<_, i64>(1)?.unsigned_abs();
    }
    Ok(found)
}
