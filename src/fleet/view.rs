//! What is shown of the fleet: its circuits as they are, and the journal of how they changed.

use crate::health::breaker::{Cause, Force, State, Transition};
use crate::health::connection::View;
use serde::{Serialize, Serializer};
use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

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

/// A circuit that changed its state.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// Counts from 1, without gaps.
    pub number: u64,
    /// When.
    #[serde(serialize_with = "as_text")]
    pub at: SystemTime,
    /// The connection.
    pub connection: Arc<str>,
    /// The model.
    pub model: Arc<str>,
    /// From what.
    pub from: State,
    /// To what.
    pub to: State,
    /// Why.
    pub cause: Cause,
    /// When it opened: until when.
    #[serde(serialize_with = "as_text_or_null")]
    pub until: Option<SystemTime>,
}

/// The last [`JOURNAL`] changes.
#[derive(Default)]
pub(super) struct Journal {
    entries: VecDeque<Entry>,
    /// Of the last entry.
    number: u64,
    observer: Option<Box<Observer>>,
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
        if let Some(observer) = &self.observer {
            observer(&entry);
        }
        self.entries.push_back(entry);
    }

    pub(super) fn observe(&mut self, observer: Box<Observer>) {
        self.observer = Some(observer);
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

fn as_text<S: Serializer>(at: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rfc3339(*at))
}

#[expect(clippy::ref_option, reason = "serde hands a reference to the field")]
fn as_text_or_null<S: Serializer>(at: &Option<SystemTime>, serializer: S) -> Result<S::Ok, S::Error> {
    at.map(rfc3339).serialize(serializer)
}

/// A time of day in UTC as RFC 3339 writes it, rounded up to a second: who comes then does not come too early.
pub fn rfc3339(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs() + u64::from(Duration::from_secs(since.as_secs()) < since);
    let (days, second) = (seconds / DAY, seconds % DAY);
    let (year, month, day) = civil(days);
    let mut text = String::with_capacity("2026-01-02T03:04:05Z".len());
    // Writing to a string does not fail.
    let _ = write!(text, "{year:04}-{month:02}-{day:02}T");
    let _ = write!(text, "{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60);
    text
}

/// Year, month and day of a day since 1970 (H. Hinnant, "chrono-compatible low-level date algorithms").
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

/// How many changes the journal keeps.
pub const JOURNAL: usize = 1024;

const DAY: u64 = 86_400;

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;

    #[test]
    fn times_are_written_as_http_dates_mean_them() {
        // The days around every turn of a year and a leap day, against another implementation.
        for day in (0..60_000_u64).filter(|day| day % 365 < 3 || day % 1461 < 70) {
            let at = UNIX_EPOCH + Duration::from_secs(day * DAY + 3661);
            let other = httpdate::fmt_http_date(at);
            let ours = rfc3339(at);
            let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
            let month = months.iter().position(|m| *m == &other[8..11]).unwrap() + 1;
            let (year, day) = (&other[12..16], &other[5..7]);
            assert_eq!(ours, format!("{year}-{month:02}-{day}T01:01:01Z"));
        }
    }

    #[test]
    fn a_part_of_a_second_is_rounded_up() {
        assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_millis(1)), "1970-01-01T00:00:01Z");
        assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_millis(86_399_999)), "1970-01-02T00:00:00Z");
        assert_eq!(rfc3339(UNIX_EPOCH), "1970-01-01T00:00:00Z");
    }
}
