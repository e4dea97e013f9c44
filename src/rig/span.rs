//! Durations as people write them in scripts: `"150ms"`, `"1.5s"`, `"250us"`, `"2m"`.

use serde::{Deserialize, Deserializer, Serializer, de::Error};
use std::time::Duration;

// === reading and writing ===

/// Reads a duration.
///
/// # Errors
/// What is wrong, with the forms that are right.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no duration; write a number and a unit, such as \"150ms\", \"1.5s\" or \"2m\"");
    let cut = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
    let (number, unit) = text.split_at(cut);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit.trim() {
        "us" | "µs" => number / 1e6,
        "ms" => number / 1e3,
        "s" => number,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        _ => return Err(wrong()),
    };
    let span = Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?;
    if span > LONGEST { Err(format!("`{text}` is over the longest duration of a script, 24h")) } else { Ok(span) }
}

/// Writes a duration so that [`parse`] reads the same (to the microsecond).
pub fn format(span: Duration) -> String {
    let micros = span.as_micros();
    if micros == 0 {
        "0ms".to_owned()
    } else if micros.is_multiple_of(1_000_000) {
        format!("{}s", micros / 1_000_000)
    } else if micros.is_multiple_of(1_000) {
        format!("{}ms", micros / 1_000)
    } else {
        format!("{micros}us")
    }
}

// === serde ===

/// For `#[serde(with = "span")]`.
///
/// # Errors
/// As the serializer's.
pub fn serialize<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&format(*span))
}

/// For `#[serde(with = "span")]`.
///
/// # Errors
/// As [`parse`].
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    parse(&String::deserialize(from)?).map_err(D::Error::custom)
}

/// For optional durations.
pub mod option {
    use super::{Deserialize, Deserializer, Duration, Error, Serializer, format, parse};

    /// For `#[serde(with = "span::option")]`.
    ///
    /// # Errors
    /// As the serializer's.
    pub fn serialize<S: Serializer>(span: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        match span {
            Some(span) => to.serialize_some(&format(*span)),
            None => to.serialize_none(),
        }
    }

    /// For `#[serde(with = "span::option")]`.
    ///
    /// # Errors
    /// As [`parse`].
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| parse(&text).map_err(D::Error::custom)).transpose()
    }
}

/// For lists of durations.
pub mod list {
    use super::{Deserialize, Deserializer, Duration, Error, Serializer, format, parse};

    /// For `#[serde(with = "span::list")]`.
    ///
    /// # Errors
    /// As the serializer's.
    pub fn serialize<S: Serializer>(spans: &[Duration], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(spans.iter().map(|span| format(*span)))
    }

    /// For `#[serde(with = "span::list")]`.
    ///
    /// # Errors
    /// As [`parse`].
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Duration>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        texts.iter().map(|text| parse(text).map_err(D::Error::custom)).collect()
    }
}

/// No script waits longer.
pub const LONGEST: Duration = Duration::from_secs(24 * 3600);

#[cfg(test)]
mod tests {
    use super::{Duration, format, parse};

    #[test]
    fn durations_are_read_and_written() {
        for (text, micros) in [("150ms", 150_000), ("1.5s", 1_500_000), ("250us", 250), ("2m", 120_000_000), ("0ms", 0)]
        {
            assert_eq!(parse(text), Ok(Duration::from_micros(micros)), "{text}");
            assert_eq!(parse(&format(Duration::from_micros(micros))), Ok(Duration::from_micros(micros)));
        }
        for text in ["", "5", "ms", "-1s", "1 parsec", "1e9h", "48h", "1.2.3s"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("5").is_err_and(|e| e.contains("150ms")));
    }
}
