//! Lines of the log on their way to standard error: a thread of its own writes them, so that a reader that does not read,
//! such as a pager that was paused or a pipe that nobody empties, holds up its own log and nothing else.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

/// How lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// For people.
    Text,
    /// One JSON object a line, for machines; nothing else is written to standard error then.
    Json,
}

/// Where lines are left to be written.
#[derive(Clone, Debug)]
pub(super) struct Outlet {
    lines: SyncSender<Line>,
    dropped: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Line {
    Text(Vec<u8>),
    /// All that came before is written: say so.
    Flush(SyncSender<()>),
}

// === impl Outlet ===

impl Outlet {
    /// Starts the thread that writes to `to`.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub(super) fn start(to: impl Write + Send + 'static, format: Format) -> io::Result<Self> {
        let (lines, waiting) = sync_channel(MOST);
        let dropped = Arc::new(AtomicU64::new(0));
        let missed = Arc::clone(&dropped);
        thread::Builder::new().name("segue-log".to_owned()).spawn(move || write(to, &waiting, &missed, format))?;
        Ok(Self { lines, dropped })
    }

    /// Waits until what was left so far is written, but no longer than `patience`.
    fn flush(&self, patience: Duration) {
        let (written, wait) = sync_channel(1);
        if self.lines.try_send(Line::Flush(written)).is_ok() {
            // Whoever does not read by then has had his chance.
            let _ = wait.recv_timeout(patience);
        }
    }
}

impl Write for Outlet {
    /// Never waits: what finds no room is dropped and counted.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Err(TrySendError::Full(_)) = self.lines.try_send(Line::Text(line.to_vec())) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The log's own way to standard error, opened at the first call.
///
/// # Errors
/// There is no thread to be had.
pub(super) fn stderr(format: Format) -> io::Result<Outlet> {
    if let Some(outlet) = STDERR.get() {
        return Ok(outlet.clone());
    }
    let outlet = Outlet::start(io::stderr(), format)?;
    Ok(STDERR.get_or_init(|| outlet).clone())
}

/// Waits, before the process ends, until the log is written, for a moment at most.
pub(super) fn last_words() {
    if let Some(outlet) = STDERR.get() {
        outlet.flush(MOMENT);
    }
}

// === helpers ===

fn write(mut to: impl Write, lines: &Receiver<Line>, dropped: &AtomicU64, format: Format) {
    for line in lines {
        // Nobody can be told that standard error is closed.
        let _ = match line {
            Line::Text(line) => to.write_all(&line),
            Line::Flush(written) => {
                let _ = written.send(());
                continue;
            }
        };
        let missed = dropped.swap(0, Ordering::Relaxed);
        if missed > 0 {
            let words = format!("{missed} lines of the log were dropped: nobody read them in time");
            let line = match format {
                Format::Text => format!(" WARN segue: {words}\n"),
                Format::Json => {
                    let line = serde_json::json!({"level": "WARN", "message": words, "dropped": missed});
                    format!("{line}\n")
                }
            };
            let _ = to.write_all(line.as_bytes());
        }
    }
}

static STDERR: OnceLock<Outlet> = OnceLock::new();

/// Lines that wait to be written; a longer queue would only hold older news.
const MOST: usize = 4096;

/// What a process that ends waits for its log.
const MOMENT: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;
    use std::sync::Mutex;

    /// Takes a byte only when it is let.
    struct Paused(Receiver<()>, Arc<Mutex<Vec<u8>>>);

    impl Write for Paused {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            self.1.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn nobody_waits_for_a_reader_that_does_not_read_and_what_is_missing_is_told() {
        let (let_go, paused) = sync_channel(0);
        let written = Arc::<Mutex<Vec<u8>>>::default();
        let mut outlet = Outlet::start(Paused(paused, Arc::clone(&written)), Format::Json).unwrap();
        for number in 0..2 * MOST {
            // A line comes in one call.
            outlet.write_all(format!("{{\"line\":{number}}}\n").as_bytes()).unwrap();
        }
        // From here on everything is taken at once.
        drop(let_go);
        let mut text = String::new();
        while !text.contains("were dropped") {
            outlet.flush(Duration::from_secs(10));
            text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
        }
        assert!(text.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
        let kept = text.lines().filter(|line| line.contains("\"line\"")).count();
        assert!((MOST..=MOST + 2).contains(&kept), "{kept} lines");
        assert!(text.contains(&format!("\"dropped\":{}", 2 * MOST - kept)), "{}", 2 * MOST - kept);
    }
}
