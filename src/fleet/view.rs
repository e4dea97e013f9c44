//! What is shown of the fleet: its circuits as they are, and the journal of how they changed.

use crate::health::breaker::{Force, State, Transition};
use crate::health::connection::View;
use crate::record::circuit::as_text_or_null;
pub use crate::record::circuit::{Entry, rfc3339};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// One circuit, as the admin interface shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CircuitView {
    /// The connection.
    pub connection: Arc<str>,
    /// The model.
    pub model: Arc<str>,
    /// Closed, open or half-open.
    pub state: State,
    /// Attempts in the breaker's window that failed.
    pub failures: u32,
    /// Attempts in it that served.
    pub successes: u32,
    /// Attempts open at this moment.
    pub in_flight: u32,
    /// The end of the provider's own "not before" for the connection's key, or of the cooldown, whichever is later.
    #[serde(serialize_with = "as_text_or_null")]
    pub resting_until: Option<SystemTime>,
    /// How many may ask at once after a rest, until it has its old rate again; `None`: as many as come.
    pub window: Option<u32>,
    /// How many tenants, or keys of tenants, rest by themselves.
    pub tenants_resting: usize,
    /// What an operator said.
    pub forced: Option<Force>,
    /// Attempts in line at the connection, whatever their model.
    pub queued: usize,
    /// The median of recent first-token times, in milliseconds.
    pub first_token_p50_ms: Option<f64>,
    /// Their 95th percentile.
    pub first_token_p95_ms: Option<f64>,
    /// The 95th percentile of recent silences in mid-turn, in milliseconds.
    pub gap_p95_ms: Option<f64>,
    /// It refused an assistant message at the end.
    pub prefill_denied: bool,
}

/// The last [`JOURNAL`] changes.
#[derive(Default)]
pub(super) struct Journal {
    entries: VecDeque<Entry>,
    /// Of the last entry.
    number: u64,
    observers: Vec<Box<Observer>>,
}

type Observer = dyn Fn(&Entry) + Send + Sync;

// === impl CircuitView ===

impl CircuitView {
    /// `queued`: attempts in line at the connection.
    pub(super) fn of(
        connection: &Arc<str>,
        view: View,
        queued: usize,
        prefill_denied: &dyn Fn(&str) -> bool,
        now: Instant,
    ) -> Self {
        let millis = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1e3);
        Self {
            connection: Arc::clone(connection),
            state: view.state,
            failures: view.counts.failed,
            successes: view.counts.served,
            in_flight: view.in_flight,
            resting_until: view.cooldown.into_iter().chain(view.rest).max().map(|until| wall(until, now)),
            window: view.window,
            tenants_resting: view.tenants_resting,
            forced: view.forced,
            queued,
            first_token_p50_ms: millis(view.first_token_p50),
            first_token_p95_ms: millis(view.first_token_p95),
            gap_p95_ms: millis(view.gap_p95),
            prefill_denied: prefill_denied(&view.model),
            model: view.model,
        }
    }
}

// === impl Journal ===

impl Journal {
    pub(super) fn enter(&mut self, connection: &Arc<str>, model: &Arc<str>, change: &Transition, now: Instant) {
        let Transition { at, from, to, cause, until } = *change;
        if self.entries.len() == JOURNAL {
            self.entries.pop_front();
        }
        self.number += 1;
        let entry = Entry {
            number: self.number,
            at: wall(at, now),
            connection: Arc::clone(connection),
            model: Arc::clone(model),
            from,
            to,
            cause,
            until: until.map(|until| wall(until, now)),
        };
        self.observers.iter().for_each(|observer| observer(&entry));
        self.entries.push_back(entry);
    }

    pub(super) fn observe(&mut self, observer: Box<Observer>) {
        self.observers.push(observer);
    }

    pub(super) fn after(&self, number: u64) -> Vec<Entry> {
        self.entries.iter().filter(|entry| number < entry.number).cloned().collect()
    }
}

// === helpers ===

/// The time of day at `at`, which is near `now`.
pub(super) fn wall(at: Instant, now: Instant) -> SystemTime {
    let wall = SystemTime::now();
    let later = wall.checked_add(at.saturating_duration_since(now)).unwrap_or(wall);
    later.checked_sub(now.saturating_duration_since(at)).unwrap_or(wall)
}

/// How many changes the journal keeps.
pub const JOURNAL: usize = 1024;
