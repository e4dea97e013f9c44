//! A circuit that changed, and times of day as text.

use crate::health::breaker::{Cause, State};
use serde::{Serialize, Serializer};
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

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

// === helpers ===

/// As [`rfc3339`].
///
/// # Errors
/// Those of the serializer.
pub fn as_text<S: Serializer>(at: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rfc3339(*at))
}

/// As [`rfc3339`], or null.
///
/// # Errors
/// Those of the serializer.
pub fn as_text_or_null<S: Serializer>(at: &Option<SystemTime>, serializer: S) -> Result<S::Ok, S::Error> {
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
pub(crate) fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

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
