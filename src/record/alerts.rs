//! Who is told of trouble, and of what: a webhook, as JSON; of circuits also the log.
//!
//! Four events: `circuit_open` and `recovered` (a circuit left and came back to its healthy state), `below_quality` (a
//! turn was served by a target worse than the level's best), `chain_exhausted` (a turn for which nobody was left). The
//! last two are told once a minute and level at most, with how many turns they stand for. A task of its own sends them; a
//! turn only leaves a note, and where too many lie there already, that one is lost.

use super::{Ended, Entry, Sink};
use crate::health::backoff;
use crate::health::breaker::{Cause, State};
use crate::relay::journal::Journal;
use crate::relay::{Ending, Outcome};
use crate::routing::Level;
use crate::upstream::client::Client;
use http::HeaderMap;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// Where notes of trouble are left.
#[derive(Default)]
pub struct Alerts {
    /// `None`: nobody wants to know.
    notes: Option<mpsc::Sender<Alert>>,
    /// What was told last of each level, and how many turns it was since.
    quiet: Mutex<HashMap<Trouble, (Instant, u64)>>,
    lost: AtomicU64,
}

/// An event and the level that it is about.
type Trouble = (&'static str, Arc<str>);

/// One note, as it is sent.
#[derive(Clone, Debug, Serialize)]
struct Alert {
    event: &'static str,
    /// Seconds of Unix time.
    at: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connection: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<Arc<str>>,
    /// Turns that it stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    turns: Option<u64>,
    message: String,
}

// === impl Alerts ===

impl Alerts {
    /// Tells `webhook` of what happens from now on. Without a runtime nobody is told.
    pub fn new(webhook: Option<&str>) -> Self {
        let notes = webhook.zip(tokio::runtime::Handle::try_current().ok()).map(|(url, runtime)| {
            let (notes, kept) = mpsc::channel(NOTES);
            runtime.spawn(send_all(url.into(), kept));
            notes
        });
        Self { notes, quiet: Mutex::default(), lost: AtomicU64::new(0) }
    }

    /// A turn of `level` has ended.
    fn learn(&self, level: &Level, journal: &Journal, now: Instant) {
        if self.notes.is_none() {
            return;
        }
        if matches!(&journal.outcome, Some(Outcome::Failed(fault)) if fault.ending == Ending::Exhausted) {
            let message = format!("nobody was left to serve a turn of the level `{}`", level.name);
            self.tell("chain_exhausted", level, None, message, now);
        }
        let best = level.chain.iter().map(|entry| entry.target.quality).min().unwrap_or_default();
        if let Some(speaker) = journal.speaker().filter(|speaker| best < speaker.target.quality) {
            let target = &speaker.target;
            let message = format!(
                "a turn of the level `{}` was served by {}/{} of quality {}; its best is {best}",
                level.name, target.connection, target.model, target.quality
            );
            let served = Some((Arc::clone(&target.connection), Arc::clone(&target.model)));
            self.tell("below_quality", level, served, message, now);
        }
    }

    fn tell(
        &self,
        event: &'static str,
        level: &Level,
        target: Option<(Arc<str>, Arc<str>)>,
        message: String,
        now: Instant,
    ) {
        let Some(notes) = &self.notes else { return };
        let turns = {
            let mut quiet = lock(&self.quiet);
            let known = quiet.get_mut(&(event, Arc::clone(&level.name)));
            match known {
                Some((at, turns)) if now.saturating_duration_since(*at) < QUIET => {
                    *turns += 1;
                    return;
                }
                Some(last) => 1 + std::mem::replace(last, (now, 0)).1,
                None => {
                    // `connection/model` makes levels of any name.
                    if quiet.len() < LEVELS {
                        quiet.insert((event, Arc::clone(&level.name)), (now, 0));
                    }
                    1
                }
            }
        };
        let (connection, model) = target.unzip();
        let level = Some(Arc::clone(&level.name));
        let alert = Alert { event, at: unix(SystemTime::now()), level, connection, model, turns: Some(turns), message };
        self.leave(notes, alert);
    }

    fn leave(&self, notes: &mpsc::Sender<Alert>, alert: Alert) {
        if let Err(error) = notes.try_send(alert) {
            self.lost.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(%error, "an alert is lost");
        }
    }
}

impl Sink for Alerts {
    fn name(&self) -> &'static str {
        "alerts"
    }

    fn turn(&self, ended: &Ended<'_>) {
        self.learn(ended.level, ended.journal, ended.now);
    }

    /// Tells the log too.
    fn circuit(&self, entry: &Entry) {
        let Some(alert) = of_circuit(entry) else { return };
        match entry.to {
            State::Open => tracing::warn!("{}", alert.message),
            _ => tracing::info!("{}", alert.message),
        }
        if let Some(notes) = &self.notes {
            self.leave(notes, alert);
        }
    }

    fn dropped(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl std::fmt::Debug for Alerts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Alerts").field("webhook", &self.notes.is_some()).finish_non_exhaustive()
    }
}

// === helpers ===

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A circuit that leaves its healthy state, or is back in it. The trials in between are nobody's business.
fn of_circuit(entry: &Entry) -> Option<Alert> {
    let name = format!("{}/{}", entry.connection, entry.model);
    let (event, message) = match (entry.from, entry.to) {
        (State::Closed, State::Open) => {
            let why = entry.cause.name();
            ("circuit_open", format!("the circuit of {name} is open: {why} ({})", because(entry.cause)))
        }
        (_, State::Closed) => ("recovered", format!("{name} serves again")),
        _ => return None,
    };
    Some(Alert {
        event,
        at: unix(entry.at),
        level: None,
        connection: Some(Arc::clone(&entry.connection)),
        model: Some(Arc::clone(&entry.model)),
        turns: None,
        message,
    })
}

fn because(cause: Cause) -> &'static str {
    match cause {
        Cause::Consecutive => "so many attempts in a row failed",
        Cause::ErrorRate => "too many of its attempts failed",
        Cause::Latency => "it is too slow",
        Cause::Out => "it refuses the key or the model, or its credit is used up",
        Cause::TrialFailed => "its trial failed",
        Cause::Forced => "an operator opened it",
        Cause::Cooled | Cause::Progress => "its trial begins",
    }
}

async fn send_all(url: Arc<str>, mut notes: mpsc::Receiver<Alert>) {
    let client = match Client::new() {
        Ok(client) => client,
        Err(error) => return tracing::error!(?error, "no alerts can be sent"),
    };
    while let Some(alert) = notes.recv().await {
        // An alert is plain data: it has a JSON form.
        let Ok(body) = serde_json::to_vec(&alert) else { continue };
        if !send(&client, &url, &body).await {
            tracing::error!(event = alert.event, message = alert.message, "the webhook did not take an alert");
        }
    }
}

async fn send(client: &Client, url: &str, body: &[u8]) -> bool {
    for attempt in 0..TRIES {
        let posted = timeout(PATIENCE, client.post(url, HeaderMap::new(), body.to_vec())).await;
        match posted {
            Ok(Ok(answer)) if answer.status < 300 => return true,
            // What is wrong with the call will not heal.
            Ok(Ok(answer)) if (400..500).contains(&answer.status) && ![408, 425, 429].contains(&answer.status) => {
                return false;
            }
            _ if attempt + 1 < TRIES => sleep(backoff::pause(BASE, CAP, attempt, rand::random())).await,
            _ => {}
        }
    }
    false
}

fn unix(at: SystemTime) -> f64 {
    at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// So many notes may lie there.
const NOTES: usize = 256;
/// A level's trouble is told so often at most.
const QUIET: Duration = Duration::from_secs(60);
/// Of so many levels it is known what was told.
const LEVELS: usize = 1024;
/// So often a webhook is called for one alert …
const TRIES: u32 = 5;
/// … each time so long …
const PATIENCE: Duration = Duration::from_secs(10);
/// … and pauses in between grow from here …
const BASE: Duration = Duration::from_millis(500);
/// … up to here.
const CAP: Duration = Duration::from_secs(10);
