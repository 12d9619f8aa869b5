//! What a consumer asks at its start: the features that are known, and notes of what was discarded. And old events of the
//! ledger, which go when they may.

use std::time::Duration;

use tokio_postgres::{Client, Error};

use crate::sink::Features;

/// Returns the features that came after a mark, and the mark after them. Transactions end in any order, so a mark is the
/// oldest one that had not ended, and what came since is told again.
pub(super) async fn features(client: &Client, consumer: &str, mark: u64) -> Result<Features, Error> {
    const SINCE: &str = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text, feature_id
      FROM (SELECT 1) AS always LEFT JOIN geoclaim_features ON consumer = $1 AND entered >= $2::text::xid8";
    let mut found = Features { mark, ..Features::default() };
    for row in client.query(SINCE, &[&consumer, &mark.to_string()]).await? {
        found.mark = row.try_get::<_, &str>(0)?.parse().unwrap_or(mark);
        if let Some(feature) = row.try_get::<_, Option<&str>>(1)? {
            found.add(feature);
        }
    }
    Ok(found)
}

/// Keeps a note, and of all notes the latest, up to a number of bytes.
pub(super) async fn remember(client: &mut Client, consumer: &str, note: &[u8], most_bytes: u64) -> Result<(), Error> {
    const FORGET: &str = "DELETE FROM geoclaim_notes WHERE consumer = $1 AND number IN (
      SELECT number FROM (SELECT number, sum(length(note)) OVER (ORDER BY number DESC) AS newer FROM geoclaim_notes
        WHERE consumer = $1) AS notes WHERE newer > $2)";
    let kept = i64::try_from(most_bytes).unwrap_or(i64::MAX);
    let transaction = client.transaction().await?;
    transaction.execute("INSERT INTO geoclaim_notes (consumer, note) VALUES ($1, $2)", &[&consumer, &note]).await?;
    transaction.execute(FORGET, &[&consumer, &kept]).await?;
    transaction.commit().await
}

/// Returns the notes, oldest first.
pub(super) async fn recall(client: &Client, consumer: &str) -> Result<Vec<Vec<u8>>, Error> {
    let rows = client.query("SELECT note FROM geoclaim_notes WHERE consumer = $1 ORDER BY number", &[&consumer]).await?;
    rows.iter().map(|row| row.try_get(0)).collect()
}

/// Forgets old events of the ledger. Their ages are looked up by an index, which those who keep all do without.
pub(super) async fn forget(client: &Client, consumer: &str, older_than: Duration, most: u32) -> Result<u64, Error> {
    const FORGET: &str = "DELETE FROM geoclaim_ledger WHERE consumer = $1 AND event_id IN (SELECT event_id FROM geoclaim_ledger
      WHERE consumer = $1 AND recorded_at < clock_timestamp() - make_interval(secs => $2) ORDER BY recorded_at LIMIT $3)";
    client.batch_execute("CREATE INDEX IF NOT EXISTS geoclaim_ledger_ages ON geoclaim_ledger (consumer, recorded_at)").await?;
    client.execute(FORGET, &[&consumer, &older_than.as_secs_f64(), &i64::from(most)]).await
}
