//! Moments as people write them.

use std::time::{Duration, SystemTime};

/// A moment in seconds of Unix time: `now`, a time before `now` (`90m`, `24h`, `7d`), a day or a moment in UTC
/// (`2026-01-02`, `2026-01-02T03:04`, `2026-01-02T03:04:05Z`), or seconds of Unix time.
///
/// # Errors
/// What can be written.
pub fn moment(text: &str, now: SystemTime) -> Result<f64, String> {
    let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let text = text.trim();
    let parsed = match text {
        "now" => Some(now.as_secs_f64()),
        _ if text.len() > LONGEST => None,
        _ => ago(text, now).or_else(|| date(text)).or_else(|| text.parse().ok()),
    };
    parsed.filter(|seconds: &f64| seconds.is_finite() && (0.0..MOST).contains(seconds)).ok_or_else(|| {
        "write a moment as 24h (ago; also m and d), 2026-01-02, 2026-01-02T03:04:05Z, seconds of Unix time, or now"
            .to_owned()
    })
}

/// The first moments of the day and of the month of a moment, in UTC, and those of the next ones: in seconds of Unix time.
pub fn periods(seconds: f64) -> [(f64, f64); 2] {
    let day = (seconds.max(0.0) / DAY).floor();
    // Days are far below what a float holds exactly.
    let (year, month, _) = crate::record::circuit::civil(day as u64);
    let first = days(year, month, 1).unwrap_or_default();
    let next = if month == 12 { days(year + 1, 1, 1) } else { days(year, month + 1, 1) }.unwrap_or_default();
    [(day * DAY, (day + 1.0) * DAY), (first as f64 * DAY, next as f64 * DAY)]
}

// === helpers ===

fn ago(text: &str, now: Duration) -> Option<f64> {
    let unit = text.chars().last()?;
    let seconds = match unit {
        's' => 1.0,
        'm' => 60.0,
        'h' => 3600.0,
        'd' => DAY,
        _ => return None,
    };
    let count: f64 = text.strip_suffix(unit)?.parse().ok()?;
    Some((now.as_secs_f64() - count * seconds).max(0.0))
}

fn date(text: &str) -> Option<f64> {
    let (day, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let mut parts = day.splitn(3, '-');
    let mut number = |digits: usize| parts.next().filter(|p| p.len() == digits).and_then(|p| p.parse::<u64>().ok());
    let days = days(number(4)?, number(2)?, number(2)?)?;
    let mut clock = time.strip_suffix('Z').unwrap_or(time).splitn(3, ':');
    let mut part = |most: u64| clock.next().map_or(Some(0), |p| p.parse::<u64>().ok().filter(|n| *n < most));
    let (hour, minute, second) = (part(24)?, part(60)?, part(60)?);
    Some((days * 86_400 + hour * 3600 + minute * 60 + second) as f64)
}

/// Days from 1970 to a day (H. Hinnant, "chrono-compatible low-level date algorithms").
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    (era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year).checked_sub(719_468)
}

const DAY: f64 = 86_400.0;
/// The year 9999.
const MOST: f64 = 253_402_300_800.0;
const LONGEST: usize = 64;

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;
    use crate::record::circuit::rfc3339;

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_323_045)
    }

    #[test]
    fn moments_are_read_as_they_are_written() {
        for (text, expected) in [
            ("now", 1_767_323_045.0),
            ("24h", 1_767_236_645.0),
            ("90m", 1_767_317_645.0),
            ("7d", 1_766_718_245.0),
            ("2026-01-02", 1_767_312_000.0),
            ("2026-01-02T03:04", 1_767_323_040.0),
            ("2026-01-02T03:04:05Z", 1_767_323_045.0),
            ("2026-01-02 03:04:05", 1_767_323_045.0),
            ("1767323045.5", 1_767_323_045.5),
            ("99999999d", 0.0),
        ] {
            assert_eq!(moment(text, now()), Ok(expected), "{text}");
        }
        for text in ["", "yesterday", "-1", "2026-13-01", "2026-1-2", "2026-01-02T25:00", "inf", "nan", "1e300", "d"] {
            assert!(moment(text, now()).is_err(), "{text}");
        }
    }

    #[test]
    fn days_are_read_back() {
        for day in (0..60_000_u64).step_by(17) {
            let text = rfc3339(SystemTime::UNIX_EPOCH + Duration::from_secs(day * 86_400 + 61));
            assert_eq!(moment(&text, now()).unwrap(), (day * 86_400 + 61) as f64, "{text}");
        }
    }

    #[test]
    fn a_moment_is_in_its_day_and_month() {
        let text = |seconds: f64| rfc3339(SystemTime::UNIX_EPOCH + Duration::from_secs_f64(seconds));
        let [day, month] = periods(moment("2028-02-29T23:59:59Z", now()).unwrap());
        assert_eq!((&*text(day.0), &*text(day.1)), ("2028-02-29T00:00:00Z", "2028-03-01T00:00:00Z"));
        assert_eq!((&*text(month.0), &*text(month.1)), ("2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"));
        let [_, month] = periods(moment("2027-12-31", now()).unwrap());
        assert_eq!((&*text(month.0), &*text(month.1)), ("2027-12-01T00:00:00Z", "2028-01-01T00:00:00Z"));
    }
}
