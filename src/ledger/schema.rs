//! The tables, and how they grew.

use rusqlite::Connection;

/// Brings the file up to date.
///
/// # Errors
/// What SQLite says; or that a newer Segue has written the file.
pub(super) fn migrate(db: &mut Connection) -> Result<(), String> {
    let version: usize = db.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(|e| e.to_string())?;
    if version > MIGRATIONS.len() {
        return Err(format!(
            "its tables are of version {version}, which a newer Segue has made; this one knows {}",
            MIGRATIONS.len()
        ));
    }
    for (index, step) in MIGRATIONS.iter().enumerate().skip(version) {
        let done = db.transaction().and_then(|change| {
            change.execute_batch(step)?;
            change.pragma_update(None, "user_version", index + 1)?;
            change.commit()
        });
        done.map_err(|error| format!("its tables cannot be brought to version {}: {error}", index + 1))?;
    }
    Ok(())
}

/// Each is done once, in order. One that was shipped is never changed.
pub(super) const MIGRATIONS: &[&str] = &["
CREATE TABLE turns (
    id TEXT PRIMARY KEY,
    started REAL NOT NULL,
    tenant TEXT, key TEXT, level TEXT NOT NULL, conversation TEXT,
    outcome TEXT NOT NULL, finish TEXT,
    connection TEXT, model TEXT, quality INTEGER, best INTEGER NOT NULL,
    attempts INTEGER NOT NULL, secondary INTEGER NOT NULL, splices INTEGER NOT NULL,
    first_told_ms REAL, longest_silence_ms REAL NOT NULL, duration_ms REAL,
    delivered_chars INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, estimated INTEGER NOT NULL,
    cost REAL
) WITHOUT ROWID;
CREATE INDEX turns_started ON turns (started);
CREATE TABLE attempts (
    turn TEXT NOT NULL, number INTEGER NOT NULL,
    connection TEXT NOT NULL, model TEXT NOT NULL,
    cause TEXT NOT NULL, outcome TEXT NOT NULL, failure TEXT, quality INTEGER NOT NULL,
    opened_ms REAL NOT NULL, sent_ms REAL, first_token_ms REAL, told_from_ms REAL, told_to_ms REAL, ended_ms REAL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, delivered_tokens INTEGER NOT NULL,
    estimated INTEGER NOT NULL, spent_as TEXT NOT NULL, overtaken_ms REAL, seam TEXT, gap_ms REAL, cost REAL,
    PRIMARY KEY (turn, number)
) WITHOUT ROWID;
CREATE TABLE circuits (
    at REAL NOT NULL, connection TEXT NOT NULL, model TEXT NOT NULL,
    was TEXT NOT NULL, became TEXT NOT NULL, cause TEXT NOT NULL, until REAL
);
CREATE INDEX circuits_at ON circuits (at);
CREATE TABLE bodies (turn TEXT PRIMARY KEY, request TEXT NOT NULL, answer TEXT NOT NULL) WITHOUT ROWID;
"];
