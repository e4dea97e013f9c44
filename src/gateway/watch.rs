//! Whether the workers answer, and what keeps one of them busy.
//!
//! A worker that polls one turn for long polls no other meanwhile, and nothing inside the workers can say so while it
//! lasts. So each poll leaves a note of what it is at and since when, and somebody on threads of his own looks at the
//! notes ([`Watchdog::keep`]), and asks the workers now and then for a sign of life.

use super::{clock, lock};
use serde::Serialize;
use std::cell::Cell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// Watches the workers of one gateway.
pub struct Watchdog {
    /// What each worker is at, by its number.
    notes: Box<[Mutex<Option<Note>>]>,
    long: AtomicU64,
    recent: Mutex<VecDeque<LongPoll>>,
    /// Since when the workers owe a sign of life.
    owed: Mutex<Option<Instant>>,
}

/// What the watchdog knows, for operators.
#[derive(Clone, Debug, Serialize)]
pub struct Workers {
    /// They answer.
    pub answering: bool,
    /// How long the last sign of life has been owed, in milliseconds, where it is.
    pub silent_ms: Option<u64>,
    /// Polls that took longer than a tenth of a second, since the start.
    pub long_polls: u64,
    /// The last of them, newest first.
    pub recent: Vec<LongPoll>,
}

/// A poll that kept a worker busy for long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LongPoll {
    /// The turn, or what else was done.
    pub turn: Arc<str>,
    /// How long it had taken when it was noted, in milliseconds; it may have gone on.
    pub ms: u64,
}

struct Note {
    turn: Arc<str>,
    since: Instant,
    /// It was told already.
    told: bool,
}

/// A poll under way; it ends on drop.
pub(crate) struct Poll<'a> {
    watchdog: &'a Watchdog,
    worker: usize,
    outer: Option<Note>,
}

// === impl Watchdog ===

impl Default for Watchdog {
    fn default() -> Self {
        Self {
            notes: std::iter::repeat_with(Mutex::default).take(WORKERS).collect(),
            long: AtomicU64::new(0),
            recent: Mutex::default(),
            owed: Mutex::default(),
        }
    }
}

impl Watchdog {
    /// Begins a poll of `turn` on this thread.
    pub(crate) fn poll(&self, turn: &Arc<str>) -> Poll<'_> {
        let worker = WORKER.get();
        let note = Note { turn: Arc::clone(turn), since: clock::now(), told: false };
        let outer = lock(&self.notes[worker]).replace(note);
        Poll { watchdog: self, worker, outer }
    }

    /// Notes each poll of `work` under the name of `what`.
    pub async fn over<F: Future>(&self, what: &Arc<str>, work: F) -> F::Output {
        let mut work = pin!(work);
        std::future::poll_fn(|cx| {
            let _poll = self.poll(what);
            work.as_mut().poll(cx)
        })
        .await
    }

    /// Looks at the workers for as long as it is polled, which must not be by one of them.
    pub async fn keep(&self, workers: &Handle) {
        let mut sign = workers.spawn(async {});
        let mut asked = clock::now();
        loop {
            tokio::time::sleep(TICK).await;
            let now = clock::now();
            self.look(now);
            if sign.is_finished() {
                *lock(&self.owed) = None;
                sign = workers.spawn(async {});
                asked = now;
            } else {
                *lock(&self.owed) = Some(asked);
            }
        }
    }

    /// How long the workers have owed a sign of life, if that is too long.
    pub fn silent(&self) -> Option<Duration> {
        let since = *lock(&self.owed);
        since.map(|since| clock::now().saturating_duration_since(since)).filter(|silent| *silent >= PATIENCE)
    }

    /// What is known.
    pub fn report(&self) -> Workers {
        let silent = self.silent();
        Workers {
            answering: silent.is_none(),
            silent_ms: silent.map(millis),
            long_polls: self.long.load(Ordering::Relaxed),
            recent: lock(&self.recent).iter().rev().cloned().collect(),
        }
    }

    /// Tells of polls that go on for long.
    fn look(&self, now: Instant) {
        for note in &self.notes {
            let mut note = lock(note);
            let Some(note) = note.as_mut().filter(|note| !note.told) else { continue };
            let ms = now.saturating_duration_since(note.since);
            if ms >= LONG {
                note.told = true;
                self.tell(&note.turn, ms);
            }
        }
    }

    fn tell(&self, turn: &Arc<str>, took: Duration) {
        self.long.fetch_add(1, Ordering::Relaxed);
        let ms = millis(took);
        tracing::warn!(turn = &**turn, ms, "a worker was kept busy for long");
        let mut recent = lock(&self.recent);
        if recent.len() == RECENT {
            recent.pop_front();
        }
        recent.push_back(LongPoll { turn: Arc::clone(turn), ms });
    }
}

impl std::fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watchdog").field("long_polls", &self.long).finish_non_exhaustive()
    }
}

// === impl Poll ===

impl Drop for Poll<'_> {
    fn drop(&mut self) {
        let Self { watchdog, worker, outer } = self;
        let Some(note) = lock(&watchdog.notes[*worker]).take() else { return };
        let took = clock::now().saturating_duration_since(note.since);
        let long = took >= LONG;
        if long && !note.told {
            watchdog.tell(&note.turn, took);
        }
        if let Some(mut outer) = outer.take() {
            // What was told of the inner one is the outer one's time too.
            outer.told |= long;
            *lock(&watchdog.notes[*worker]) = Some(outer);
        }
    }
}

// === helpers ===

thread_local! {
    /// This thread's number. There may be more threads than notes; two that share one hide each other now and then.
    static WORKER: Cell<usize> = Cell::new(NEXT.fetch_add(1, Ordering::Relaxed) % WORKERS);
}

static NEXT: AtomicUsize = AtomicUsize::new(0);

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// A poll that takes longer is told of.
const LONG: Duration = Duration::from_millis(100);
/// So often the workers are looked at.
const TICK: Duration = Duration::from_millis(50);
/// Workers that owe a sign of life for longer do not answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// The most threads that are told apart.
const WORKERS: usize = 256;
/// So many long polls are remembered.
const RECENT: usize = 32;

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_long_poll_is_told_once_and_a_short_one_not_at_all() {
        let watchdog = Watchdog::default();
        let (outer, inner) = (Arc::from("outer"), Arc::from("inner"));
        {
            let _outer = watchdog.poll(&outer);
            drop(watchdog.poll(&inner));
            let poll = watchdog.poll(&inner);
            tokio::time::advance(LONG).await;
            watchdog.look(clock::now());
            watchdog.look(clock::now());
            assert_eq!(watchdog.report().recent, [LongPoll { turn: Arc::clone(&inner), ms: 100 }]);
            drop(poll);
        }
        assert_eq!(watchdog.report().long_polls, 1, "what was told of the inner one is not told again");
        {
            let _outer = watchdog.poll(&outer);
            tokio::time::advance(LONG * 2).await;
        }
        let report = watchdog.report();
        assert_eq!((report.long_polls, &report.recent[0].turn, report.recent[0].ms), (2, &outer, 200));
        watchdog.look(clock::now());
        assert_eq!(watchdog.report().long_polls, 2, "nothing is under way");
    }

    #[test]
    fn workers_that_are_all_busy_do_not_answer_and_then_do_again() {
        let workers = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let control = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let (release, held) = std::sync::mpsc::sync_channel::<()>(0);
        let (begun, begins) = std::sync::mpsc::sync_channel::<()>(0);
        workers.spawn(async move {
            begun.send(()).unwrap();
            held.recv().unwrap();
        });
        begins.recv().unwrap();
        let watchdog = Watchdog::default();
        control.block_on(async {
            let watch = async {
                watchdog.keep(workers.handle()).await;
            };
            let look = async {
                tokio::time::sleep(PATIENCE * 2).await;
                assert!(watchdog.silent().is_some() && !watchdog.report().answering);
                release.send(()).unwrap();
                // Here the workers' own time counts, which no clock of a test moves.
                while watchdog.silent().is_some() {
                    tokio::time::sleep(TICK).await;
                    std::thread::yield_now();
                }
                assert!(watchdog.report().answering);
            };
            tokio::select! {
                () = watch => {}
                () = look => {}
            }
        });
        workers.shutdown_background();
    }
}
