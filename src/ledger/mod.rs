//! The account of every turn and attempt that outlives the process: one SQLite file.
//!
//! [`Ledger`] is a sink. A turn leaves its record in a bounded queue and goes on; a thread of the ledger's own writes what
//! lies there, many rows in one transaction. So a disk that is slow, full, locked or read-only costs rows, which are
//! counted, and never a turn. A process that is killed loses at most the last batch.
//!
//! `schema` has the tables and how they grew, `writer` the thread, `row` what a row holds, [`reader`] what is asked of
//! it, [`report`] what is made of that for people.

pub mod export;
pub mod reader;
pub mod report;
mod row;
mod schema;
pub mod when;
mod writer;

use crate::config::prices::Prices;
use crate::record::{Ended, Entry, Sink, TurnRecord};
use crate::routing::Level;
use row::Row;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What a ledger is to do.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The file; its folder must be there.
    pub path: PathBuf,
    /// How long a row is kept.
    pub keep: Duration,
    /// Whether requests and answers are kept too.
    pub bodies: bool,
    /// What tokens cost.
    pub prices: Prices,
}

/// A ledger at work.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    bodies: bool,
    prices: Mutex<Prices>,
    rows: Mutex<Option<SyncSender<Row>>>,
    /// Closed when the writer has ended.
    ended: Mutex<Option<Receiver<Infallible>>>,
    counts: Arc<Counts>,
}

/// What came of the rows so far.
#[derive(Debug, Default)]
struct Counts {
    written: AtomicU64,
    /// The queue was full, or the file did not take them.
    dropped: AtomicU64,
    /// Bytes of bodies in the queue.
    waiting: AtomicUsize,
}

// === impl Ledger ===

impl Ledger {
    /// Opens the file, or creates it, and begins to write. A file that cannot be opened now is tried again and again;
    /// rows are dropped until then.
    ///
    /// # Errors
    /// Where the thread cannot be started.
    pub fn start(settings: Settings) -> Result<Arc<Self>, String> {
        let (rows, queue): (_, Receiver<Row>) = sync_channel(QUEUE);
        let counts = Arc::<Counts>::default();
        let Settings { path, keep, bodies, prices } = settings;
        let writer = writer::Writer::new(path.clone(), keep, Arc::clone(&counts));
        let (ending, ended) = sync_channel(0);
        let work = move || {
            writer.run(&queue);
            drop(ending);
        };
        let thread = std::thread::Builder::new().name("ledger".to_owned()).spawn(work);
        thread.map_err(|error| format!("the ledger's thread cannot be started: {error}"))?;
        Ok(Arc::new(Self {
            path,
            bodies,
            prices: Mutex::new(prices),
            rows: Mutex::new(Some(rows)),
            ended: Mutex::new(Some(ended)),
            counts,
        }))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many rows were written so far.
    pub fn written(&self) -> u64 {
        self.counts.written.load(Ordering::Relaxed)
    }

    /// Prices from now on; rows that were written keep theirs.
    pub fn reprice(&self, prices: Prices) {
        *self.prices.lock().unwrap_or_else(PoisonError::into_inner) = prices;
    }

    /// Takes no more, writes what lies in the queue, and waits for that, for at most `patience`. Blocks.
    pub fn close(&self, patience: Duration) {
        let closed = self.rows.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(closed);
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
        if ended.is_some_and(|ended| ended.recv_timeout(patience) == Err(RecvTimeoutError::Timeout)) {
            tracing::warn!("the ledger did not write its last rows in time");
        }
    }

    fn leave(&self, row: Row) {
        let weight = row.weight();
        let fits = |waiting: usize| waiting.checked_add(weight).filter(|all| *all <= MOST_WAITING);
        let waiting = &self.counts.waiting;
        let taken = waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let left = taken && rows.as_ref().is_some_and(|rows| rows.try_send(row).is_ok());
        drop(rows);
        if !left {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
            if taken {
                waiting.fetch_sub(weight, Ordering::Relaxed);
            }
        }
    }
}

impl Sink for Ledger {
    fn name(&self) -> &'static str {
        "ledger"
    }

    fn turn(&self, ended: &Ended<'_>) {
        let prices = self.prices.lock().unwrap_or_else(PoisonError::into_inner);
        let mut row = row::turn(Arc::clone(ended.record), ended.level, &prices);
        drop(prices);
        row.bodies = self.bodies.then(|| row::bodies(ended));
        self.leave(Row::Turn(Box::new(row)));
    }

    fn circuit(&self, entry: &Entry) {
        self.leave(Row::Circuit(Box::new(entry.clone())));
    }

    fn dropped(&self) -> u64 {
        self.counts.dropped.load(Ordering::Relaxed)
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        self.close(LAST_WORDS);
    }
}

/// Writes a ledger at once: for turns that were played, and not served.
///
/// # Errors
/// What SQLite says.
pub fn fill(
    path: &Path,
    prices: &Prices,
    level: &Level,
    turns: impl IntoIterator<Item = Arc<TurnRecord>>,
    circuits: impl IntoIterator<Item = Entry>,
) -> Result<(), String> {
    let mut db = writer::open(path)?;
    let turns = turns.into_iter().map(|record| Row::Turn(Box::new(row::turn(record, level, prices))));
    let mut rows = turns.chain(circuits.into_iter().map(|entry| Row::Circuit(Box::new(entry))));
    loop {
        let batch: Vec<Row> = rows.by_ref().take(QUEUE).collect();
        if batch.is_empty() {
            return Ok(());
        }
        writer::insert(&mut db, &batch).map_err(|error| error.to_string())?;
    }
}

/// So many rows may wait.
const QUEUE: usize = 8192;
/// So many bytes of bodies may wait.
const MOST_WAITING: usize = 64 << 20;
/// When nobody closed it, the last rows have so long.
const LAST_WORDS: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests;
