//! Leases in a table, beside a ledger: one row a job.
//!
//! ```text
//! geoclaim_leases   consumer, job, about, fence, token, claimed_at, lapses_at, committed_at, result
//! ```
//!
//! Times are seconds since 1970 by the database's clock, and the database alone compares them. Statements are written so
//! that SQLite and PostgreSQL take the same text but for the mark of parameters.

mod postgres;
mod sqlite;

use std::time::Duration;

pub use postgres::PostgresLeases;
pub use sqlite::SqliteLeases;

use super::{Claim, Hanging, Lease};

/// The statements, for a database whose clock is read by an expression.
#[derive(Clone, Debug)]
struct Statements {
    claim: String,
    look: String,
    renew: String,
    release: String,
    commit: String,
    hanging: String,
    forget: String,
}

const TABLE: &str = "
CREATE TABLE IF NOT EXISTS geoclaim_leases (
  consumer text NOT NULL, job text NOT NULL, about text NOT NULL, fence bigint NOT NULL, token text NOT NULL,
  claimed_at double precision NOT NULL, lapses_at double precision NOT NULL, committed_at double precision, result text,
  PRIMARY KEY (consumer, job));
CREATE INDEX IF NOT EXISTS geoclaim_leases_hanging ON geoclaim_leases (consumer, lapses_at) WHERE committed_at IS NULL;
CREATE INDEX IF NOT EXISTS geoclaim_leases_committed ON geoclaim_leases (consumer, committed_at) WHERE committed_at IS NOT NULL;
";

impl Statements {
    /// `mark`: what stands before the number of a parameter.
    fn new(now: &str, mark: &str) -> Self {
        let marked = |statement: String| statement.replace('$', mark);
        let seconds = |parameter: &str| format!("CAST({parameter} AS double precision)");
        let of_ours = "consumer = $1 AND job = $2 AND token = $3 AND committed_at IS NULL";
        Self {
            // Of two at once the second waits for the first, and then looks at what the first has left.
            claim: marked(format!(
                "INSERT INTO geoclaim_leases (consumer, job, token, about, fence, claimed_at, lapses_at)
                 VALUES ($1, $2, $3, $4, 1, {now}, {now} + {})
                 ON CONFLICT (consumer, job) DO UPDATE SET token = excluded.token, fence = geoclaim_leases.fence + 1,
                   claimed_at = excluded.claimed_at, lapses_at = excluded.lapses_at
                 WHERE geoclaim_leases.committed_at IS NULL AND geoclaim_leases.lapses_at < excluded.claimed_at
                 RETURNING fence",
                seconds("$5")
            )),
            look: marked("SELECT committed_at, result, token FROM geoclaim_leases WHERE consumer = $1 AND job = $2".to_owned()),
            renew: marked(format!("UPDATE geoclaim_leases SET lapses_at = {now} + {} WHERE {of_ours}", seconds("$4"))),
            release: marked(format!("UPDATE geoclaim_leases SET lapses_at = {now} - 0.001 WHERE {of_ours}")),
            commit: marked(format!(
                "UPDATE geoclaim_leases SET committed_at = {now}, result = $4 WHERE {of_ours} AND fence = $5"
            )),
            hanging: marked(format!(
                "SELECT job, about, fence FROM geoclaim_leases
                 WHERE consumer = $1 AND committed_at IS NULL AND lapses_at < {now} - {} ORDER BY lapses_at LIMIT $3",
                seconds("$2")
            )),
            forget: marked(format!(
                "DELETE FROM geoclaim_leases WHERE consumer = $1 AND job IN (
                   SELECT job FROM geoclaim_leases WHERE consumer = $1 AND committed_at < {now} - {} LIMIT $3)",
                seconds("$2")
            )),
        }
    }
}

/// What the table has of a job.
struct Found {
    committed_at: Option<f64>,
    result: Option<String>,
    token: String,
}

impl Found {
    fn claim(self) -> Claim {
        if self.committed_at.is_some() { Claim::Committed } else { Claim::Held }
    }

    /// Tells whether a lease is the one that was committed: its answer had been lost.
    fn is_committed_by(&self, lease: &Lease) -> bool {
        self.committed_at.is_some() && self.token == lease.token()
    }
}

fn hanging_of((job, about, fence): (String, String, i64)) -> Option<Hanging> {
    Some(Hanging { job: job.parse().ok()?, about, fence: u64::try_from(fence).ok()? })
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}

fn fence_of(fence: i64) -> u64 {
    u64::try_from(fence).unwrap_or_default()
}
