//! Resolves names, on threads of its own.
//!
//! The system's resolver blocks, for twenty seconds and more where a name server says nothing. On the runtime's shared
//! threads, one name that hangs would keep all other names from being resolved, and the process from ending. So each
//! connection of the configuration has its own few threads: callers for one name share one look-up, a new one is begun
//! only where that has taken long, and there are never more than [`MOST`]. Who waits no longer (`timeouts.connect`) leaves;
//! the thread ends with its look-up.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// What a look-up found.
type Found = Result<Arc<[SocketAddr]>, Arc<io::Error>>;

/// The names of one connection. Cheap to clone; clones share their threads.
#[derive(Clone)]
pub(super) struct Names {
    flights: Arc<Mutex<Vec<Flight>>>,
    look_up: Arc<LookUp>,
}

type LookUp = dyn Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync;

/// A look-up under way.
struct Flight {
    name: String,
    since: Instant,
    found: watch::Receiver<Option<Found>>,
    /// Lives as long as its thread.
    thread: Weak<()>,
}

// === impl Names ===

impl Names {
    /// Names as the system resolves them.
    pub(super) fn of_system() -> Self {
        Self::with(Arc::new(system))
    }

    fn with(look_up: Arc<LookUp>) -> Self {
        Self { flights: Arc::default(), look_up }
    }

    /// The addresses of `name`.
    ///
    /// # Errors
    /// Where there are none, or too many look-ups of this connection hang already.
    pub(super) async fn resolve(&self, name: &str) -> io::Result<Vec<SocketAddr>> {
        let mut found = self.join(name)?;
        let found = found.wait_for(Option::is_some).await.map(|found| found.clone());
        match found {
            Ok(Some(Ok(addresses))) => Ok(addresses.to_vec()),
            Ok(Some(Err(error))) => Err(copy(&error)),
            _ => Err(io::Error::other("the look-up broke off")),
        }
    }

    /// A look-up of `name`: one that is under way, or a new one.
    fn join(&self, name: &str) -> io::Result<watch::Receiver<Option<Found>>> {
        let now = Instant::now();
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        flights.retain(|flight| flight.thread.strong_count() > 0);
        let newest = flights.iter().rev().find(|flight| flight.name == name);
        let full = flights.len() >= MOST;
        if let Some(flight) = newest.filter(|flight| full || now.saturating_duration_since(flight.since) < RENEW) {
            return Ok(flight.found.clone());
        }
        if full {
            return Err(io::Error::other("too many look-ups of this connection's names hang"));
        }
        let (tell, found) = watch::channel(None);
        let alive = Arc::new(());
        let thread = Arc::downgrade(&alive);
        let (look_up, owned) = (Arc::clone(&self.look_up), name.to_owned());
        let work = move || {
            let found = look_up(&owned).map(Into::into).map_err(Arc::new);
            // Nobody may be left who waits.
            let _ = tell.send(Some(found));
            drop(alive);
        };
        std::thread::Builder::new().name("segue-names".to_owned()).stack_size(STACK).spawn(work)?;
        flights.push(Flight { name: name.to_owned(), since: now, found: found.clone(), thread });
        Ok(found)
    }
}

// === helpers ===

fn system(name: &str) -> io::Result<Vec<SocketAddr>> {
    match (name, 0).to_socket_addrs() {
        Ok(found) => Ok(found.collect()),
        // The system's resolver says "try again" also where it had no descriptor to ask with: that is our own fault, and
        // shows where anything else is opened.
        Err(error) => match std::fs::File::open("/dev/null") {
            Err(own) if own.raw_os_error().is_some() && own.kind() != io::ErrorKind::NotFound => Err(own),
            _ => Err(error),
        },
    }
}

fn copy(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

/// The most look-ups of one connection at once.
const MOST: usize = 4;
/// A look-up that takes longer may have lost its question: the next caller asks again.
const RENEW: Duration = Duration::from_secs(1);
/// The stack of a thread; the system's resolver needs some hundred KiB at most.
const STACK: usize = 512 * 1024;

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Names of which `hangs` hangs until the sender is dropped; and how often the system was asked.
    fn names() -> (Names, Arc<AtomicUsize>, std::sync::mpsc::SyncSender<()>) {
        let (release, held) = std::sync::mpsc::sync_channel::<()>(0);
        let held = Mutex::new(held);
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let look_up = move |name: &str| {
            count.fetch_add(1, Ordering::SeqCst);
            match name {
                "hangs" => {
                    let _ = held.lock().unwrap().recv();
                    Err(io::Error::other("at last"))
                }
                "nowhere" => Err(io::Error::other("no such host")),
                _ => Ok(vec![SocketAddr::from(([127, 0, 0, 1], 0))]),
            }
        };
        (Names::with(Arc::new(look_up)), asked, release)
    }

    #[tokio::test]
    async fn a_name_that_hangs_keeps_no_other_name_and_few_threads() {
        let (names, asked, release) = names();
        let waits: Vec<_> = (0..100)
            .map(|_| {
                let names = names.clone();
                tokio::spawn(async move { names.resolve("hangs").await })
            })
            .collect();
        tokio::task::yield_now().await;
        assert_eq!(names.resolve("there").await.unwrap().len(), 1);
        assert_eq!(names.resolve("nowhere").await.unwrap_err().to_string(), "no such host");
        assert_eq!(asked.load(Ordering::SeqCst), 3, "a hundred callers share one look-up");
        drop(release);
        for wait in waits {
            assert_eq!(wait.await.unwrap().unwrap_err().to_string(), "at last");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_up_that_takes_long_is_begun_anew_but_never_without_bound() {
        let (names, asked, release) = names();
        for round in 1..=MOST + 3 {
            // Whoever waits no longer leaves.
            assert!(tokio::time::timeout(RENEW, names.resolve("hangs")).await.is_err());
            while asked.load(Ordering::SeqCst) < round.min(MOST) {
                std::thread::yield_now();
            }
        }
        assert_eq!(asked.load(Ordering::SeqCst), MOST);
        let full = names.resolve("there").await.unwrap_err().to_string();
        assert!(full.contains("too many look-ups"), "{full}");
        drop(release);
    }
}
