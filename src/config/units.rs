//! Durations, sizes, speeds, percentiles and dates as people write them.
//!
//! Every function says no with a short reason that ends no sentence; the caller adds place, key and an example.

use crate::routing::Pace;
use std::time::{Duration, SystemTime};
use toml::value::{Datetime, Offset};

/// Reads `150ms`, `5s`, `1.5s`, `2m`, `1h30m`, `30d`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err("is empty".to_owned());
    }
    let mut total = 0.0;
    while !rest.is_empty() {
        let (number, after) = number(rest).ok_or_else(|| format!("`{text}` is no duration"))?;
        let unit_end = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let seconds = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86400.0,
            "" if after.is_empty() => return Err(format!("`{text}` has no unit")),
            "" => return Err(format!("`{text}` is no duration")),
            _ => return Err(format!("`{text}` has the unknown unit `{unit}`")),
        };
        total += number * seconds;
        rest = after;
    }
    let long = || format!("`{text}` is longer than {} days", MAX_DURATION.as_secs() / 86400);
    let value = Duration::try_from_secs_f64(total).map_err(|_| long())?;
    // Fractions of seconds are rounded to what can be written: nobody means 1.4999999.
    let value =
        Duration::from_micros(u64::try_from((value + Duration::from_nanos(500)).as_micros()).unwrap_or(u64::MAX));
    if value > MAX_DURATION { Err(long()) } else { Ok(value) }
}

/// Reads `512B`, `64KiB`, `8MiB`, `1.5GiB`, and the decimal `8MB`.
pub(super) fn size(text: &str) -> Result<usize, String> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err("is empty".to_owned());
    }
    let (number, unit) = number(trimmed).ok_or_else(|| format!("`{text}` is no size"))?;
    let scale: f64 = match unit.trim() {
        "B" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        "TiB" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        "" => return Err(format!("`{text}` has no unit")),
        other => return Err(format!("`{text}` has the unknown unit `{other}`")),
    };
    let bytes = (number * scale).round();
    if bytes > MAX_SIZE as f64 {
        return Err(format!("`{text}` is larger than {} TiB", MAX_SIZE >> 40));
    }
    // In range: MAX_SIZE is far below 2^53, and a number has no sign.
    Ok(bytes as usize)
}

/// Reads `15 chars/s over 3s`.
pub(super) fn pace(text: &str) -> Result<Pace, String> {
    let no = || format!("`{text}` is no pace");
    let (speed, window) = text.split_once(" over ").ok_or_else(no)?;
    let (chars, unit) = number(speed.trim()).ok_or_else(no)?;
    if unit.trim() != "chars/s" {
        return Err(format!("`{text}` counts in `{}`, not in chars/s", unit.trim()));
    }
    let window = duration(window)?;
    if chars <= 0.0 || window.is_zero() {
        return Err(format!("`{text}` is zero"));
    }
    Ok(Pace { chars, window })
}

/// Reads `p90` or `p99.9`: a percentile between 0 and 100, both excluded. `None` if it is not meant as one.
pub(super) fn percentile(text: &str) -> Option<Result<f64, String>> {
    let digits = text.trim().strip_prefix(['p', 'P'])?;
    Some(match number(digits) {
        Some((value, "")) if value > 0.0 && value < 100.0 => Ok(value),
        _ => Err(format!("`{text}` is no percentile between p0 and p100")),
    })
}

/// The moment that a TOML date or date-time means; without an offset it is UTC, without a time the start of the day.
pub(super) fn moment(value: &Datetime) -> Result<SystemTime, String> {
    let date = value.date.ok_or_else(|| format!("`{value}` has no date"))?;
    let mut seconds = days(i64::from(date.year), i64::from(date.month), i64::from(date.day)) * 86400;
    if let Some(time) = value.time {
        seconds +=
            i64::from(time.hour) * 3600 + i64::from(time.minute) * 60 + i64::from(time.second.unwrap_or_default());
    }
    if let Some(Offset::Custom { minutes }) = value.offset {
        seconds -= i64::from(minutes) * 60;
    }
    // Whatever lies before 1970 has passed just as well as 1970 has.
    Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or_default()))
}

/// Writes a duration as [`duration`] reads it, in the largest unit that loses nothing.
pub(super) fn show(value: Duration) -> String {
    let micros = value.as_micros();
    let millis = micros / 1000;
    match millis {
        _ if !micros.is_multiple_of(1000) => format!("{}ms", micros as f64 / 1000.0),
        0 => "0s".to_owned(),
        _ if millis.is_multiple_of(86_400_000) => format!("{}d", millis / 86_400_000),
        _ if millis.is_multiple_of(3_600_000) => format!("{}h", millis / 3_600_000),
        _ if millis.is_multiple_of(60_000) => format!("{}m", millis / 60_000),
        _ if millis.is_multiple_of(1000) => format!("{}s", millis / 1000),
        _ => format!("{millis}ms"),
    }
}

/// A decimal number at the start, without sign or exponent, and what follows it.
fn number(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let value: f64 = text[..end].parse().ok()?;
    (text.starts_with(|c: char| c.is_ascii_digit()) && value.is_finite()).then_some((value, &text[end..]))
}

/// Days from 1970-01-01 to a date of the Gregorian calendar (the era algorithm: years begin in March, 400 to an era).
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Longer is a slip, and would overflow clocks.
const MAX_DURATION: Duration = Duration::from_secs(3650 * 86400);

/// Larger is a slip.
const MAX_SIZE: u64 = 64 << 40;

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test's panic is its report")]
    use super::*;

    #[test]
    fn durations() {
        for (text, millis) in [
            ("150ms", 150),
            ("5s", 5_000),
            ("1.5s", 1_500),
            ("0.1s", 100),
            ("2m", 120_000),
            ("1h30m", 5_400_000),
            ("1m30s", 90_000),
            ("30d", 2_592_000_000),
            ("0s", 0),
            (" 8s ", 8_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in
            ["", "5", "s", "-5s", "5 s", "5x", "5sec", "1e3s", "5s!", "99999999999999d", "3651d", "..s", "1..2s"]
        {
            assert!(duration(text).is_err(), "{text}");
        }
        assert!(duration("5").unwrap_err().contains("no unit"));
    }

    #[test]
    fn what_is_shown_reads_back() {
        for text in ["150ms", "5s", "90s", "2m", "1h", "30d", "0s", "1500ms"] {
            let value = duration(text).expect("good");
            assert_eq!(duration(&show(value)), Ok(value), "{text}");
        }
        assert_eq!(show(Duration::from_micros(1500)), "1.5ms");
    }

    #[test]
    fn sizes() {
        for (text, bytes) in
            [("512B", 512), ("8KiB", 8192), ("8MiB", 8 << 20), ("1.5GiB", 3 << 29), ("8MB", 8_000_000), ("0B", 0)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "8", "8M", "MiB", "-1MiB", "8mib", "65TiB", "9e9MiB"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn paces_and_percentiles() {
        assert_eq!(pace("15 chars/s over 3s"), Ok(Pace { chars: 15.0, window: Duration::from_secs(3) }));
        for text in ["15 chars/s", "15 words/s over 3s", "0 chars/s over 3s", "15 chars/s over 0s", "fast"] {
            assert!(pace(text).is_err(), "{text}");
        }
        assert_eq!(percentile("p90"), Some(Ok(90.0)));
        assert_eq!(percentile("p99.9"), Some(Ok(99.9)));
        assert_eq!(percentile("150ms"), None);
        for text in ["p0", "p100", "p", "p9x", "p-1"] {
            assert!(percentile(text).is_some_and(|p| p.is_err()), "{text}");
        }
    }

    #[test]
    fn dates_are_moments() {
        for (text, seconds) in [
            ("1970-01-01", 0),
            ("2000-03-01", 951_868_800),
            ("2024-02-29", 1_709_164_800),
            ("2027-01-01", 1_798_761_600),
            ("2027-01-01T00:00:00Z", 1_798_761_600),
            ("2027-01-01T01:00:00+01:00", 1_798_761_600),
            ("2027-01-01T00:00:10", 1_798_761_610),
            ("1960-01-01", 0),
        ] {
            let value: Datetime = text.parse().expect("a date");
            assert_eq!(moment(&value), Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)), "{text}");
        }
        assert!(moment(&"07:30:00".parse().expect("a time")).is_err());
    }
}
