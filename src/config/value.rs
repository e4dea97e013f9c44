//! Values of every type that the configuration knows, read with one complaint each.

use super::document::{Section, Value};
use super::problem::{did_you_mean, one_of};
use super::secret::Secret;
use super::units;
use crate::routing::Pace;
use std::ops::RangeInclusive;
use std::time::{Duration, SystemTime};
use toml::de::DeValue;

/// Whether nothing at all is a sensible amount of something.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Zero {
    Allowed,
    Refused,
}

// === impl Value ===

impl<'a> Value<'a> {
    /// Text that is not empty.
    pub(super) fn text(&self, example: &str) -> Option<&'a str> {
        match self.value {
            DeValue::String(text) if text.trim().is_empty() => {
                self.error("is empty", self.example(example));
                None
            }
            DeValue::String(text) => Some(text.as_ref()),
            _ => {
                self.wrong("a string", example);
                None
            }
        }
    }

    pub(super) fn flag(&self) -> Option<bool> {
        if let DeValue::Boolean(flag) = self.value {
            return Some(*flag);
        }
        self.wrong("true or false", "true");
        None
    }

    /// A whole number within a range.
    pub(super) fn whole(&self, range: RangeInclusive<u64>) -> Option<u64> {
        let example = self.example_in(&range);
        let DeValue::Integer(integer) = self.value else {
            self.wrong("a whole number", &example);
            return None;
        };
        let value = u64::from_str_radix(&integer.as_str().replace('_', ""), integer.radix()).ok();
        let value = value.filter(|v| range.contains(v));
        if value.is_none() {
            let bounds = match (*range.start(), *range.end()) {
                (0, u64::MAX) => "must not be negative".to_owned(),
                (low, u64::MAX) => format!("must be at least {low}"),
                (low, high) => format!("must be between {low} and {high}"),
            };
            self.error(format!("{bounds}, not {integer}"), self.example(&example));
        }
        value
    }

    fn example_in(&self, range: &RangeInclusive<u64>) -> String {
        let usual = match self.name() {
            "rpm" => 600,
            "tpm" => 200_000,
            "context_window" => 128_000,
            "max_output" => 8192,
            "in_flight" | "min_samples" => 100,
            "max_turns" => 20_000,
            "max_connections" => 10_000,
            "max_depth" => 127,
            "max_choices" => 16,
            "max_calls" => 512,
            "window" => 240,
            "consecutive" => 5,
            _ => 1,
        };
        usual.clamp(*range.start(), *range.end()).to_string()
    }

    /// A share: above 0 (or 0 itself, if allowed) and at most 1.
    pub(super) fn share(&self, zero: Zero) -> Option<f64> {
        let value = self.decimal("0.1")?;
        if value > 0.0 && value <= 1.0 || value == 0.0 && zero == Zero::Allowed {
            return Some(value);
        }
        let low = if zero == Zero::Allowed { "from 0" } else { "above 0" };
        self.error(format!("must be a share {low} up to 1, not {value}"), self.example("0.1"));
        None
    }

    /// A finite number, with or without a point.
    pub(super) fn decimal(&self, example: &str) -> Option<f64> {
        let text = match self.value {
            DeValue::Float(float) => float.as_str(),
            DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str(),
            _ => {
                self.wrong("a number", example);
                return None;
            }
        };
        let value = text.replace('_', "").parse::<f64>().ok().filter(|v| v.is_finite());
        if value.is_none() {
            self.error(format!("must be a finite number, not {text}"), self.example(example));
        }
        value
    }

    pub(super) fn duration(&self, zero: Zero) -> Option<Duration> {
        let text = match self.value {
            DeValue::String(text) => text.as_ref(),
            DeValue::Integer(number) => {
                let unit = if number.as_str().len() > 2 { "ms" } else { "s" };
                self.wrong("a duration with its unit", &format!("\"{number}{unit}\""));
                return None;
            }
            _ => {
                self.wrong("a duration", "\"5s\"");
                return None;
            }
        };
        match units::duration(text) {
            Ok(value) if value.is_zero() && zero == Zero::Refused => {
                self.error("must not be zero", self.example("\"5s\""));
                None
            }
            Ok(value) => Some(value),
            Err(why) if text.chars().all(|c| c.is_ascii_digit()) && !text.is_empty() => {
                self.error(why, self.example(&format!("\"{text}s\"")));
                None
            }
            Err(why) => {
                self.error(why, format!("{}; units are ms, s, m, h and d", self.example("\"5s\"")));
                None
            }
        }
    }

    /// A duration, or `"off"`.
    pub(super) fn duration_or_off(&self) -> Option<Option<Duration>> {
        if self.is_off() { Some(None) } else { self.duration(Zero::Refused).map(Some) }
    }

    /// A speed over a time, or `"off"`.
    pub(super) fn pace_or_off(&self) -> Option<Option<Pace>> {
        const EXAMPLE: &str = "\"15 chars/s over 3s\"";
        if self.is_off() {
            return Some(None);
        }
        match units::pace(self.text(EXAMPLE)?) {
            Ok(pace) => Some(Some(pace)),
            Err(why) => {
                self.error(why, self.example(EXAMPLE));
                None
            }
        }
    }

    pub(super) fn is_off(&self) -> bool {
        matches!(self.value, DeValue::String(text) if text == "off")
    }

    /// A number of bytes, not zero.
    pub(super) fn size(&self) -> Option<usize> {
        const EXAMPLE: &str = "\"8MiB\"";
        let DeValue::String(text) = self.value else {
            self.wrong("a size with its unit", EXAMPLE);
            return None;
        };
        match units::size(text) {
            Ok(0) => {
                self.error("must not be zero", self.example(EXAMPLE));
                None
            }
            Ok(bytes) => Some(bytes),
            Err(why) => {
                self.error(why, self.example(EXAMPLE));
                None
            }
        }
    }

    /// A TOML date or date-time.
    pub(super) fn moment(&self) -> Option<SystemTime> {
        const EXAMPLE: &str = "2027-01-01";
        let DeValue::Datetime(date) = self.value else {
            self.wrong("a date without quotes", EXAMPLE);
            return None;
        };
        match units::moment(date) {
            Ok(moment) => Some(moment),
            Err(why) => {
                self.error(why, self.example(EXAMPLE));
                None
            }
        }
    }

    /// One of a few words.
    pub(super) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Option<T> {
        let names = || choices.iter().map(|(name, _)| *name);
        let DeValue::String(text) = self.value else {
            self.wrong(&one_of(names()), &format!("{:?}", choices.first().map_or("", |c| c.0)));
            return None;
        };
        let found = choices.iter().find(|(name, _)| name == text).map(|(_, value)| *value);
        if found.is_none() {
            let otherwise = self.example(&format!("{:?}", choices.first().map_or("", |c| c.0)));
            let message = format!("must be {}, not {text:?}", one_of(names()));
            self.error(message, did_you_mean(text, names(), &otherwise));
        }
        found
    }

    /// A list of texts that are not empty.
    pub(super) fn texts(&self, example: &str) -> Vec<String> {
        let entries = self.list(&format!("[{example}]")).unwrap_or_default();
        entries.iter().filter_map(|entry| entry.text(example)).map(str::to_owned).collect()
    }

    /// Failure domains: `kind:name` each.
    pub(super) fn domains(&self) -> Vec<String> {
        const EXAMPLE: &str = "\"region:us-east\"";
        let mut domains = Vec::new();
        for entry in self.list(&format!("[{EXAMPLE}]")).unwrap_or_default() {
            let Some(text) = entry.text(EXAMPLE) else { continue };
            let whole = text.split_once(':').is_some_and(|(kind, name)| !kind.is_empty() && !name.is_empty());
            if !whole || text.contains(char::is_whitespace) {
                entry.error(
                    format!("{text:?} is no domain: a domain is a kind and a name"),
                    "write for example \"vendor:openai\", \"cloud:azure\" or \"region:us-east\"",
                );
            } else if !domains.iter().any(|d| d == text) {
                domains.push(text.to_owned());
            }
        }
        domains
    }

    /// A secret by reference. `whose` names in errors what it is for.
    pub(super) fn secret(&self, whose: &str) -> Option<Secret> {
        const HOW: &str = "{ env = \"NAME\" } or { file = \"PATH\" }";
        let DeValue::Table(table) = self.value else {
            if matches!(self.value, DeValue::String(_)) {
                self.error("a secret must not stand in the file", self.example(HOW));
            } else {
                self.wrong("a reference to a secret", HOW);
            }
            return None;
        };
        let mut found = table.iter().map(|(name, value)| (name.get_ref().as_ref(), value));
        let (Some((kind, source)), None) = (found.next(), found.next()) else {
            self.error("must name one source of the secret", self.example(HOW));
            return None;
        };
        let DeValue::String(from) = source.get_ref() else {
            self.error(format!("`{kind}` must be a string"), self.example(HOW));
            return None;
        };
        let (value, from) = match kind {
            "env" if !is_variable(from) => {
                // It may be the secret itself, so it is not repeated.
                self.error("`env` must be the name of an environment variable", self.example(HOW));
                return None;
            }
            "env" => (self.doc.env.env(from), format!("the environment variable `{from}`")),
            "file" => match self.doc.env.file(from) {
                Ok(text) => (Some(text), format!("the file `{from}`")),
                Err(why) => {
                    let remedy = "create the file, or correct the path".to_owned();
                    self.error(format!("the file `{from}`, which holds {whose}, cannot be read: {why}"), remedy);
                    return None;
                }
            },
            _ => {
                self.error(format!("`{kind}` is no source of a secret"), self.example(HOW));
                return None;
            }
        };
        let Some(value) = value else {
            self.error(format!("{from}, which holds {whose}, is not set"), "set it before Segue starts");
            return None;
        };
        let value = value.trim();
        if value.is_empty() {
            self.error(format!("{from}, which holds {whose}, is empty"), "give it a value, or leave the key out");
            return None;
        }
        if !value.chars().all(|c| matches!(c, ' '..='~')) {
            let message = format!("{from}, which holds {whose}, has characters that no HTTP header can carry");
            self.error(message, "look for line breaks or typographic characters inside it");
            return None;
        }
        let secret = Secret::new(value);
        self.doc.keep(&secret);
        Some(secret)
    }
}

// === impl Section ===

impl<'a> Section<'a> {
    pub(super) fn duration(&self, key: &str, zero: Zero, default: Duration) -> Duration {
        self.get(key).and_then(|v| v.duration(zero)).unwrap_or(default)
    }

    pub(super) fn size(&self, key: &str, default: usize) -> usize {
        self.get(key).and_then(|v| v.size()).unwrap_or(default)
    }

    pub(super) fn whole(&self, key: &str, range: RangeInclusive<u64>, default: u64) -> u64 {
        self.get(key).and_then(|v| v.whole(range)).unwrap_or(default)
    }

    pub(super) fn flag(&self, key: &str, default: bool) -> bool {
        self.get(key).and_then(|v| v.flag()).unwrap_or(default)
    }

    pub(super) fn choice<T: Copy>(&self, key: &str, choices: &[(&str, T)], default: T) -> T {
        self.get(key).and_then(|v| v.choice(choices)).unwrap_or(default)
    }

    pub(super) fn share(&self, key: &str, zero: Zero, default: f64) -> f64 {
        self.get(key).and_then(|v| v.share(zero)).unwrap_or(default)
    }

    pub(super) fn domains(&self, key: &str) -> Vec<String> {
        self.get(key).map(|v| v.domains()).unwrap_or_default()
    }

    pub(super) fn texts(&self, key: &str, example: &str) -> Vec<String> {
        self.get(key).map(|v| v.texts(example)).unwrap_or_default()
    }
}

// === helpers ===

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
