//! The one thread that writes.
#![expect(clippy::disallowed_methods, reason = "a thread of its own; its clock only says how long to wait for rows")]

use super::row::{Row, Turn};
use super::{Counts, schema};
use crate::record::Entry;
use rusqlite::{Connection, Transaction, params};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime};

pub(super) struct Writer {
    path: PathBuf,
    keep: Duration,
    counts: Arc<Counts>,
    db: Option<Connection>,
    /// When the file may be opened again.
    again: Option<Instant>,
    /// When it was last told that rows are lost.
    told: Option<Instant>,
    cleaned: Option<Instant>,
}

// === impl Writer ===

impl Writer {
    pub(super) fn new(path: PathBuf, keep: Duration, counts: Arc<Counts>) -> Self {
        Self { path, keep, counts, db: None, again: None, told: None, cleaned: None }
    }

    /// Writes until nobody can leave rows any more.
    pub(super) fn run(mut self, queue: &Receiver<Row>) {
        self.open();
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            match queue.recv_timeout(IDLE) {
                Ok(row) => batch.push(row),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.leave(),
            }
            let due = Instant::now() + WAIT;
            while !batch.is_empty() && batch.len() < BATCH {
                match queue.recv_timeout(due.saturating_duration_since(Instant::now())) {
                    Ok(row) => batch.push(row),
                    Err(_) => break,
                }
            }
            self.write(&mut batch);
            self.clean();
        }
    }

    fn open(&mut self) {
        if self.db.is_some() || self.again.is_some_and(|again| Instant::now() < again) {
            return;
        }
        match open(&self.path) {
            Ok(db) => {
                (self.db, self.again) = (Some(db), None);
                tracing::info!(path = %self.path.display(), "the ledger is open");
            }
            Err(why) => {
                self.again = Some(Instant::now() + AGAIN);
                self.complain(&why);
            }
        }
    }

    fn write(&mut self, batch: &mut Vec<Row>) {
        if batch.is_empty() {
            return;
        }
        self.open();
        let rows = batch.len() as u64;
        let weight = batch.iter().map(Row::weight).sum();
        let done = self.db.as_mut().map(|db| insert(db, batch));
        match done {
            Some(Ok(())) => {
                self.counts.written.fetch_add(rows, Ordering::Relaxed);
            }
            other => {
                self.counts.dropped.fetch_add(rows, Ordering::Relaxed);
                if let Some(Err(error)) = other {
                    self.complain(&error.to_string());
                    // A file that was moved away or replaced is found again.
                    (self.db, self.again) = (None, Some(Instant::now() + SOON));
                }
            }
        }
        batch.clear();
        self.counts.waiting.fetch_sub(weight, Ordering::Relaxed);
    }

    /// Removes what is older than it is kept.
    fn clean(&mut self) {
        if self.cleaned.is_some_and(|at| at.elapsed() < CLEAN) {
            return;
        }
        let Some(db) = &mut self.db else { return };
        self.cleaned = Some(Instant::now());
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let before = now.saturating_sub(self.keep).as_secs_f64();
        if let Err(error) = remove(db, before) {
            self.complain(&error.to_string());
        }
    }

    fn complain(&mut self, why: &str) {
        if self.told.is_none_or(|at| at.elapsed() >= QUIET) {
            self.told = Some(Instant::now());
            tracing::warn!(path = %self.path.display(), why, "the ledger loses rows; turns go on without it");
        }
    }

    fn leave(mut self) {
        if let Some(db) = self.db.take()
            && let Err((_, error)) = db.close()
        {
            self.complain(&error.to_string());
        }
    }
}

// === helpers ===

pub(super) fn open(path: &Path) -> Result<Connection, String> {
    let mut db = Connection::open(path).map_err(|error| error.to_string())?;
    db.busy_timeout(PATIENCE).map_err(|error| error.to_string())?;
    // Readers do not hinder the writer; a power cut may cost the last batch, never the file.
    db.pragma_update(None, "journal_mode", "WAL").map_err(|error| error.to_string())?;
    db.pragma_update(None, "synchronous", "NORMAL").map_err(|error| error.to_string())?;
    schema::migrate(&mut db)?;
    Ok(db)
}

/// Removes the rows of what began before, in small pieces, so that the file is not locked for long.
pub(super) fn remove(db: &mut Connection, before: f64) -> rusqlite::Result<()> {
    loop {
        let change = db.transaction()?;
        let old = "SELECT id FROM turns WHERE started < ?1 ORDER BY started LIMIT 1000";
        change.execute(&format!("DELETE FROM attempts WHERE turn IN ({old})"), [before])?;
        change.execute(&format!("DELETE FROM bodies WHERE turn IN ({old})"), [before])?;
        let removed = change.execute(&format!("DELETE FROM turns WHERE id IN ({old})"), [before])?;
        change.execute("DELETE FROM circuits WHERE at < ?1", [before])?;
        change.commit()?;
        if removed == 0 {
            return Ok(());
        }
    }
}

/// Writes all rows, or none.
pub(super) fn insert(db: &mut Connection, rows: &[Row]) -> rusqlite::Result<()> {
    let change = db.transaction()?;
    for row in rows {
        match row {
            Row::Turn(turn) => insert_turn(&change, turn)?,
            Row::Circuit(entry) => insert_circuit(&change, entry)?,
        }
    }
    change.commit()
}

fn insert_turn(change: &Transaction<'_>, turn: &Turn) -> rusqlite::Result<()> {
    let record = &turn.record;
    let speaker = record.speaker();
    let sum = |count: fn(&crate::record::AttemptRecord) -> u64| record.attempts.iter().map(count).sum::<u64>();
    // A sum of which a part is not known is not known; what was never sent costs nothing whoever it is.
    let priced = record.attempts.iter().zip(&turn.costs).filter(|(a, _)| a.prompt_tokens + a.completion_tokens > 0);
    let cost: Option<f64> = priced.map(|(_, cost)| *cost).sum();
    change
        .prepare_cached(
            "INSERT OR REPLACE INTO turns VALUES \
             (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22,?23)",
        )?
        .execute(params![
            record.turn,
            record.started,
            record.tenant,
            record.key,
            record.level,
            record.conversation,
            record.outcome.name(),
            record.finish,
            speaker.map(|a| &a.connection),
            speaker.map(|a| &a.model),
            speaker.map(|a| a.quality),
            turn.best,
            record.attempts.len(),
            turn.secondary,
            record.splices,
            record.first_told_ms,
            record.longest_silence_ms,
            record.duration_ms,
            record.delivered_chars,
            whole(sum(|a| a.prompt_tokens)),
            whole(sum(|a| a.completion_tokens)),
            record.attempts.iter().any(|a| a.estimated),
            cost,
        ])?;
    let gaps: Vec<(f64, &crate::record::AttemptRecord)> = record.splice_gaps().collect();
    let mut row = change.prepare_cached(
        "INSERT OR REPLACE INTO attempts VALUES \
         (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22,?23)",
    )?;
    for (number, attempt) in record.attempts.iter().enumerate() {
        row.execute(params![
            record.turn,
            number,
            attempt.connection,
            attempt.model,
            attempt.cause.name(),
            attempt.outcome.name(),
            attempt.failure.map(crate::failure::Kind::name),
            attempt.quality,
            attempt.opened_ms,
            attempt.sent_ms,
            attempt.first_token_ms,
            attempt.told_from_ms,
            attempt.told_to_ms,
            attempt.ended_ms,
            whole(attempt.prompt_tokens),
            whole(attempt.completion_tokens),
            whole(attempt.delivered_tokens),
            attempt.estimated,
            attempt.spent_as(),
            attempt.overtaken_ms,
            attempt.seam,
            gaps.iter().find(|(_, next)| std::ptr::eq(*next, attempt)).map(|(gap, _)| *gap),
            turn.costs.get(number).copied().flatten(),
        ])?;
    }
    if let Some((request, answer)) = &turn.bodies {
        change.prepare_cached("INSERT OR REPLACE INTO bodies VALUES (?1,?2,?3)")?.execute(params![
            record.turn,
            request,
            answer
        ])?;
    }
    Ok(())
}

fn insert_circuit(change: &Transaction<'_>, entry: &Entry) -> rusqlite::Result<()> {
    let unix = |at: SystemTime| at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    change.prepare_cached("INSERT INTO circuits VALUES (?1,?2,?3,?4,?5,?6,?7)")?.execute(params![
        unix(entry.at),
        entry.connection,
        entry.model,
        entry.from.name(),
        entry.to.name(),
        entry.cause.name(),
        entry.until.map(unix),
    ])?;
    Ok(())
}

/// What a provider may claim is bounded, so that sums over many rows are.
fn whole(count: u64) -> u64 {
    count.min(MOST_TOKENS)
}

/// Nobody has generated more tokens at once.
const MOST_TOKENS: u64 = 1 << 40;
/// So many rows make a batch at most …
const BATCH: usize = 1024;
/// … and it waits for so long for more.
const WAIT: Duration = Duration::from_millis(200);
/// Without rows the thread looks up so often.
const IDLE: Duration = Duration::from_secs(60);
/// A locked file is waited for so long.
const PATIENCE: Duration = Duration::from_secs(2);
/// A file that cannot be opened is tried again after so long …
const AGAIN: Duration = Duration::from_secs(30);
/// … and one that did not take a batch after so long.
const SOON: Duration = Duration::from_secs(1);
/// How often old rows are removed.
const CLEAN: Duration = Duration::from_secs(600);
/// Lost rows are told of so often at most.
const QUIET: Duration = Duration::from_secs(60);
