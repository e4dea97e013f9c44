//! When a provider wants to be asked again, read from its headers or its error body.
//!
//! Providers say it in a handful of ways and often in several at once, so there is one order of precedence:
//! `retry-after-ms`, `retry-after` (integer, decimal or HTTP date), the reset time of whichever limit is used up, and
//! last the body. What cannot be read counts as not said: a wrong guess here is a tight loop or a lost day.

use crate::failure::RetryAt;
use http::HeaderMap;
use serde_json::Value;
use std::time::{Duration, SystemTime};

/// The retry time that the headers name; `None` if there is none or none can be read.
pub fn from_headers(headers: &HeaderMap) -> Option<RetryAt> {
    let text = |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).map(str::trim);
    let millis = text("retry-after-ms").and_then(decimal).and_then(|ms| seconds(ms / 1000.0));
    if let Some(wait) = millis {
        return Some(RetryAt::In(wait));
    }
    if let Some(value) = text("retry-after") {
        if let Some(wait) = decimal(value).and_then(seconds) {
            return Some(RetryAt::In(wait));
        }
        if let Ok(at) = httpdate::parse_http_date(value) {
            return Some(RetryAt::At(at));
        }
    }
    let resets = LIMITS.iter().filter_map(|(remaining, reset)| {
        let exhausted = text(remaining).and_then(decimal).is_some_and(|left| left < 1.0);
        if exhausted { text(reset).and_then(reset_time) } else { None }
    });
    // Several limits may be used up: the last of them to be reset decides. Times of both forms never meet, for a
    // provider uses one of them.
    resets.reduce(|a, b| match (a, b) {
        (RetryAt::In(x), RetryAt::In(y)) => RetryAt::In(x.max(y)),
        (RetryAt::At(x), RetryAt::At(y)) => RetryAt::At(x.max(y)),
        (first, _) => first,
    })
}

/// How many further requests the provider takes now, as the headers of its answer tell; none where no tokens are left
/// for one.
pub fn left(headers: &HeaderMap) -> Option<u64> {
    let number = |name: &str| headers.get(name)?.to_str().ok().map(str::trim).and_then(decimal);
    let requests = REQUESTS
        .iter()
        .filter_map(|name| number(name))
        .fold(None, |least: Option<f64>, left| Some(least.map_or(left, |least| least.min(left))))?;
    let spent = LIMITS.iter().filter_map(|(remaining, _)| number(remaining)).any(|left| left < 1.0);
    Some(if spent { 0 } else { requests as u64 })
}

/// The retry time that an error body names: Google's `RetryInfo`, a `retry_after` of seconds, or the words "try again
/// in 7.66s" that OpenAI and Groq write.
pub fn from_body(body: &Value) -> Option<RetryAt> {
    let body = body.get(0).unwrap_or(body);
    let error = body.get("error").unwrap_or(body);
    let details = error.get("details").and_then(Value::as_array);
    let info = details.into_iter().flatten().find(|d| {
        let kind = d.get("@type").and_then(Value::as_str).unwrap_or_default();
        kind.ends_with("google.rpc.RetryInfo")
    });
    let delay = info.and_then(|d| d.get("retryDelay")).and_then(Value::as_str).and_then(go_duration);
    let field = || error.get("retry_after").and_then(Value::as_f64).and_then(seconds);
    let words = || {
        let message = error.as_str().or_else(|| error.get("message").and_then(Value::as_str))?;
        let (_, rest) = message.split_once("try again in ")?;
        let word = rest.split(char::is_whitespace).next()?;
        // A bare number is no duration here: "try again in 5 minutes".
        let word = word.trim_end_matches(['.', ',', ';', ')', '"']);
        if word.ends_with(|c: char| c.is_ascii_alphabetic()) { go_duration(word) } else { None }
    };
    delay.or_else(field).or_else(words).map(RetryAt::In)
}

/// Reads a duration as Go and Protobuf write it: `12ms`, `6m0s`, `1h2m3.5s`, `30s`; a bare number is seconds.
pub fn go_duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    if let Some(bare) = decimal(rest) {
        return seconds(bare);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number = decimal(&rest[..digits])?;
        rest = &rest[digits..];
        let (unit, scale) = UNITS.iter().find(|(unit, _)| rest.starts_with(unit))?;
        rest = &rest[unit.len()..];
        total += number * scale;
    }
    seconds(total)
}

// === helpers ===

/// A reset header's value: a Go duration, an RFC 3339 time, or a Unix time in seconds or milliseconds.
fn reset_time(value: &str) -> Option<RetryAt> {
    if let Some(number) = decimal(value) {
        let unix =
            if number >= UNIX_MILLIS { Some(number / 1000.0) } else { Some(number).filter(|n| *n >= UNIX_SECONDS) };
        return match unix {
            Some(unix) => SystemTime::UNIX_EPOCH.checked_add(seconds(unix)?).map(RetryAt::At),
            None => seconds(number).map(RetryAt::In),
        };
    }
    go_duration(value).map(RetryAt::In).or_else(|| rfc3339(value).map(RetryAt::At))
}

/// Reads `2026-11-30T04:05:06Z`, with a fraction and an offset where there are any; `None` if it is no such time.
pub fn rfc3339(text: &str) -> Option<SystemTime> {
    let (date, time) = text.split_at_checked(10)?;
    let mut ymd = date.splitn(3, '-').map(str::parse::<i64>);
    let (year, month, day) = (ymd.next()?.ok()?, ymd.next()?.ok()?, ymd.next()?.ok()?);
    let time = time.strip_prefix(['T', 't', ' '])?;
    let (clock, zone) = time.split_at_checked(8)?;
    let mut hms = clock.splitn(3, ':').map(str::parse::<i64>);
    let (hour, minute, second) = (hms.next()?.ok()?, hms.next()?.ok()?, hms.next()?.ok()?);
    let zone = zone.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    let offset = match zone.as_bytes().first() {
        Some(b'Z' | b'z') if zone.len() == 1 => 0,
        Some(sign @ (b'+' | b'-')) => {
            let (hours, minutes) = zone[1..].split_once(':')?;
            let (hours, minutes) = (hours.parse::<u8>().ok()?, minutes.parse::<u8>().ok()?);
            let east = i64::from(hours) * 3600 + i64::from(minutes) * 60;
            if *sign == b'+' { east } else { -east }
        }
        _ => return None,
    };
    let sane = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !sane || !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0..=60).contains(&second) {
        return None;
    }
    // Days since 1970 of the proleptic Gregorian calendar, by counting years from March.
    let (y, m) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719_468;
    let unix = days * 86_400 + hour * 3600 + minute * 60 + second - offset;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(u64::try_from(unix).ok()?))
}

/// A plain decimal number: digits and at most one point, no sign, no exponent.
fn decimal(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.') && text.bytes().any(|b| b.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

fn seconds(number: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(number).ok()
}

/// Headers that tell what is left of a limit, and those that tell when it is reset.
const LIMITS: [(&str, &str); 7] = [
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("x-ratelimit-remaining", "x-ratelimit-reset"),
    ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
    ("anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"),
    ("anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"),
];

/// Headers that tell how many requests are left.
const REQUESTS: [&str; 3] =
    ["x-ratelimit-remaining-requests", "x-ratelimit-remaining", "anthropic-ratelimit-requests-remaining"];

/// Units of a Go duration, in seconds; `m` after the longer ones that begin with it.
const UNITS: [(&str, f64); 8] =
    [("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0)];

/// A reset value from here on is a Unix time in seconds, not a wait (it would be of 31 years).
const UNIX_SECONDS: f64 = 1e9;
/// A reset value from here on is a Unix time in milliseconds.
const UNIX_MILLIS: f64 = 1e12;

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;
    use http::HeaderName;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.insert(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        map
    }

    fn wait(millis: u64) -> Option<RetryAt> {
        Some(RetryAt::In(Duration::from_millis(millis)))
    }

    fn at(unix: u64) -> Option<RetryAt> {
        Some(RetryAt::At(SystemTime::UNIX_EPOCH + Duration::from_secs(unix)))
    }

    #[test]
    fn each_form_of_header_is_read() {
        for (pairs, expected) in [
            (&[("retry-after-ms", "250"), ("retry-after", "9")][..], wait(250)),
            (&[("retry-after-ms", "soon"), ("retry-after", "9")], wait(9000)),
            (&[("retry-after", "2")], wait(2000)),
            (&[("retry-after", "1.5")], wait(1500)),
            (&[("retry-after", "0")], wait(0)),
            (&[("retry-after", "Thu, 01 Jan 1970 00:01:00 GMT")], at(60)),
            (&[("retry-after", "-3")], None),
            (&[("retry-after", "NaN")], None),
            (&[("retry-after", "1e3")], None),
            (&[("retry-after", "a while")], None),
            (&[("retry-after", "99999999999999999999999999")], None),
            (&[("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "6m0s")], wait(360_000)),
            (&[("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "12ms")], wait(12)),
            (&[("x-ratelimit-remaining-tokens", "7"), ("x-ratelimit-reset-tokens", "12ms")], None),
            (
                &[
                    ("x-ratelimit-remaining-requests", "0"),
                    ("x-ratelimit-reset-requests", "1s"),
                    ("x-ratelimit-remaining-tokens", "0"),
                    ("x-ratelimit-reset-tokens", "3s"),
                ],
                wait(3000),
            ),
            (&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1700000000000")], at(1_700_000_000)),
            (
                &[
                    ("anthropic-ratelimit-tokens-remaining", "0"),
                    ("anthropic-ratelimit-tokens-reset", "2026-11-30T04:05:06Z"),
                ],
                at(1_796_011_506),
            ),
            (
                &[
                    ("anthropic-ratelimit-tokens-remaining", "0"),
                    ("anthropic-ratelimit-tokens-reset", "2026-11-30T06:05:06.25+02:00"),
                ],
                at(1_796_011_506),
            ),
        ] {
            assert_eq!(from_headers(&headers(pairs)), expected, "{pairs:?}");
        }
    }

    #[test]
    fn what_is_left_is_read() {
        for (pairs, expected) in [
            (&[("x-ratelimit-remaining-requests", "59")][..], Some(59)),
            (&[("anthropic-ratelimit-requests-remaining", "12"), ("x-ratelimit-remaining", "7")], Some(7)),
            (&[("x-ratelimit-remaining-requests", "59"), ("x-ratelimit-remaining-tokens", "0")], Some(0)),
            (&[("x-ratelimit-remaining-tokens", "1000")], None),
            (&[("x-ratelimit-remaining-requests", "many")], None),
            (&[("x-ratelimit-remaining-requests", "99999999999999999999999999")], Some(u64::MAX)),
        ] {
            assert_eq!(left(&headers(pairs)), expected, "{pairs:?}");
        }
    }

    #[test]
    fn a_time_whose_offset_is_absurd_is_none() {
        for offset in ["+9000000000000000000:00", "-00:9000000000000000000", "+-1:00", "+99:99x"] {
            assert_eq!(rfc3339(&format!("2026-11-30T04:05:06{offset}")), None, "{offset}");
        }
    }

    #[test]
    fn each_form_of_body_is_read() {
        let info = serde_json::json!({"error": {"code": 429, "details": [
            {"@type": "type.googleapis.com/google.rpc.QuotaFailure"},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "30s"},
        ]}});
        assert_eq!(from_body(&info), wait(30_000));
        assert_eq!(from_body(&serde_json::json!([info])), wait(30_000));
        let words = |m: &str| from_body(&serde_json::json!({"error": {"message": m}}));
        assert_eq!(words("Limit reached. Please try again in 7.66s. Visit …"), wait(7660));
        assert_eq!(words("Please try again in 1m2.5s"), wait(62_500));
        assert_eq!(words("Please try again in 5 minutes"), None);
        assert_eq!(words("Please try again in a moment"), None);
        assert_eq!(from_body(&serde_json::json!({"error": {"retry_after": 2}})), wait(2000));
        assert_eq!(from_body(&serde_json::json!("busy")), None);
    }

    #[test]
    fn durations_of_go() {
        for (text, millis) in
            [("1h2m3s", 3_723_000), ("0s", 0), ("12ms", 12), ("1.5s", 1500), ("7", 7000), ("2m59.56s", 179_560)]
        {
            assert_eq!(go_duration(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "5x", "-5s", "5s5", "1..2s"] {
            assert_eq!(go_duration(text), None, "{text}");
        }
    }
}
