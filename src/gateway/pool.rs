//! A few threads for work on foreign bytes that may take longer than a worker of the runtime may be held: no other
//! turn waits for it. The line before them is bounded, and who finds it full does without.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use tokio::sync::oneshot;

/// The threads; started when there is first something to do.
pub(super) struct Pool {
    name: &'static str,
    jobs: OnceLock<SyncSender<Job>>,
}

type Job = Box<dyn FnOnce() + Send>;

// === impl Pool ===

impl Pool {
    /// Threads that are called `name`, in the operating system's lists too.
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, jobs: OnceLock::new() }
    }

    /// Does `work` as soon as a thread is free; `None` if too much waits already. The work of one who has stopped waiting
    /// is not begun.
    pub(super) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<oneshot::Receiver<T>> {
        let (done, result) = oneshot::channel();
        let job = move || {
            if !done.is_closed() {
                // Whoever has left needs no result.
                let _ = done.send(work());
            }
        };
        self.jobs.get_or_init(|| start(self.name)).try_send(Box::new(job)).ok().map(|()| result)
    }
}

// === helpers ===

fn start(name: &str) -> SyncSender<Job> {
    let (jobs, line) = sync_channel(LINE);
    let line = Arc::new(Mutex::new(line));
    for number in 0..THREADS {
        let line = Arc::clone(&line);
        let thread = thread::Builder::new().name(format!("segue-{name}-{number}")).stack_size(STACK);
        if let Err(error) = thread.spawn(move || work(&line)) {
            // Without any thread the line has no end at the other side, and is always full.
            tracing::warn!(%error, "a thread for work on foreign bytes could not be started");
        }
    }
    jobs
}

fn work(line: &Mutex<Receiver<Job>>) {
    loop {
        let next = super::lock(line).recv();
        let Ok(job) = next else { return };
        if catch_unwind(AssertUnwindSafe(job)).is_err() {
            tracing::error!("work on foreign bytes panicked; it is given up");
        }
    }
}

/// Few: what comes from outside may keep them busy, and must leave the machine to the turns.
const THREADS: usize = 2;
/// The most that wait; each holds its text meanwhile.
const LINE: usize = 64;
/// Twice what the deepest check needs.
const STACK: usize = 4 << 20;

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, clippy::panic, reason = "a test's panic is its report")]
    use super::*;

    #[tokio::test]
    async fn work_is_done_in_a_bounded_line_and_a_panic_ends_no_thread() {
        let pool = Pool::new("test");
        for _ in 0..THREADS {
            assert!(pool.run(|| panic!("on purpose")).unwrap().await.is_err());
        }
        assert_eq!(pool.run(|| 7).unwrap().await, Ok(7));
        let (go, gate) = std::sync::mpsc::channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let held: Vec<_> = std::iter::from_fn(|| {
            let gate = Arc::clone(&gate);
            pool.run(move || gate.lock().unwrap().recv().is_ok())
        })
        .collect();
        assert!((LINE..=LINE + THREADS).contains(&held.len()), "{}", held.len());
        drop(go);
        for work in held {
            work.await.unwrap();
        }
        assert_eq!(pool.run(|| 8).unwrap().await, Ok(8));
    }
}
