//! What is asked of a ledger, by a connection of its own that cannot write.

use super::report::{Ask, Report, Sums};
use super::schema;
use rusqlite::{Connection, OpenFlags, Row, named_params};
use std::path::Path;
use std::time::Duration;

/// A ledger to read.
#[derive(Debug)]
pub struct Reader(Connection);

/// What was spent, in one row of who and in which day.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Spent {
    /// The tenant; `None` without tenants.
    pub tenant: Option<String>,
    /// The first digits of the digest of its key.
    pub key: Option<String>,
    /// Turns.
    pub turns: u64,
    /// Tokens of prompts and answers, over all attempts.
    pub tokens: u64,
    /// What they cost in dollars, as far as prices are known.
    pub cost: f64,
    /// Turns whose cost is not known.
    pub unpriced: u64,
}

// === impl Reader ===

impl Reader {
    /// Opens the file for reading.
    ///
    /// # Errors
    /// A sentence that says what is wrong and what to do.
    pub fn open(path: &Path) -> Result<Self, String> {
        let wrong = |why: &dyn std::fmt::Display| {
            format!("the ledger {} cannot be read: {why}; name one that `segue serve` has written", path.display())
        };
        let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)
            .map_err(|error| wrong(&error))?;
        db.busy_timeout(PATIENCE).map_err(|error| wrong(&error))?;
        let version: usize = db.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(|e| wrong(&e))?;
        match version {
            0 => Err(wrong(&"it holds no ledger")),
            known if known == schema::MIGRATIONS.len() => Ok(Self(db)),
            other => Err(wrong(&format!("its tables are of version {other}, not {}", schema::MIGRATIONS.len()))),
        }
    }

    /// The report that is asked for.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn report(&self, ask: &Ask) -> Result<Report, String> {
        self.gather(ask).map_err(|error| error.to_string())
    }

    fn gather(&self, ask: &Ask) -> rusqlite::Result<Report> {
        // One snapshot: turns that are written meanwhile are not in it.
        let db = self.0.unchecked_transaction()?;
        let mut sums = Sums::new(ask);
        let about = named_params! {":from": ask.from, ":to": ask.to, ":tenant": ask.tenant, ":level": ask.level};
        let wanted = "started >= :from AND started < :to AND (:tenant IS NULL OR tenant = :tenant) \
                      AND (:level IS NULL OR level = :level)";
        let mut turns = db.prepare(&format!(
            "SELECT started, tenant, level, outcome, connection, model, quality, best, secondary, splices, \
             first_told_ms, longest_silence_ms, conversation, id FROM turns WHERE {wanted} ORDER BY started"
        ))?;
        let mut rows = turns.query(about)?;
        while let Some(row) = rows.next()? {
            sums.turn(row)?;
        }
        let mut attempts = db.prepare(&format!(
            "SELECT a.connection, a.model, a.cause, a.outcome, a.failure, a.first_token_ms, a.seam, a.gap_ms, \
             a.prompt_tokens, a.completion_tokens, a.spent_as, a.cost, t.tenant \
             FROM turns t JOIN attempts a ON a.turn = t.id WHERE {}",
            wanted.replace("started", "t.started").replace("tenant =", "t.tenant =").replace("level =", "t.level =")
        ))?;
        let mut rows = attempts.query(about)?;
        while let Some(row) = rows.next()? {
            sums.attempt(row)?;
        }
        let mut circuits =
            db.prepare("SELECT at, connection, model, was, became, cause FROM circuits WHERE at < ?1 ORDER BY at")?;
        let mut rows = circuits.query([ask.to])?;
        while let Some(row) = rows.next()? {
            sums.circuit(row)?;
        }
        Ok(sums.report())
    }

    /// When the first turn began and the last one, in seconds of Unix time; `None`: there are none.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn span(&self) -> Result<Option<(f64, f64)>, String> {
        let span = |row: &Row<'_>| Ok(row.get::<_, Option<f64>>(0)?.zip(row.get::<_, Option<f64>>(1)?));
        self.0.query_row("SELECT min(started), max(started) FROM turns", [], span).map_err(|error| error.to_string())
    }

    /// What was spent from `from` to `to` (seconds of Unix time), by tenant and key, the dearest first.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn spent(&self, from: f64, to: f64) -> Result<Vec<Spent>, String> {
        let spent = |row: &Row<'_>| {
            Ok(Spent {
                tenant: row.get(0)?,
                key: row.get(1)?,
                turns: row.get(2)?,
                tokens: row.get(3)?,
                cost: row.get(4)?,
                unpriced: row.get(5)?,
            })
        };
        let ask = || {
            let mut rows = self.0.prepare(
                "SELECT tenant, key, count(*), coalesce(sum(prompt_tokens + completion_tokens), 0), \
                 coalesce(sum(cost), 0.0), coalesce(sum(cost IS NULL), 0) FROM turns \
                 WHERE started >= ?1 AND started < ?2 GROUP BY tenant, key ORDER BY 5 DESC, 4 DESC",
            )?;
            rows.query_map([from, to], spent)?.collect::<rusqlite::Result<Vec<_>>>()
        };
        ask().map_err(|error| error.to_string())
    }

    /// The connection, for exports.
    pub(super) fn db(&self) -> &Connection {
        &self.0
    }
}

/// A locked file is waited for so long.
const PATIENCE: Duration = Duration::from_secs(5);
