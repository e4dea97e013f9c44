//! Levels and circuit breakers as the text that is read back into them.
//!
//! What is written is the shape that [`super::redact`] shows, without the keys that say what would hold anyway, so a key
//! that is added there is written here too.

use super::redact;
use super::{Breaker, Config};
use crate::routing::{Entry, Level, Target};
use serde_json::{Map, Value};
use std::sync::Arc;

/// A level as a whole table, to stand in the place of the one of its name in a file with the `[timeouts]` of `config`.
pub fn level(level: &Level, config: &Config) -> String {
    let silent = Level { timeouts: config.timeouts, ..Level::new(Arc::clone(&level.name), Vec::new()) };
    let shown = redact::level(level);
    let mut text = format!("[levels.{}]\nchain = [\n", key(&level.name));
    let rows = shown.get("chain").and_then(Value::as_array);
    for (entry, row) in level.chain.iter().zip(rows.into_iter().flatten()) {
        let differs = without(row, &unremarkable(entry, level));
        text += &format!("  {},\n", inline(&Value::Object(differs)));
    }
    text += "]\n";
    let differs = without(&shown, &redact::level(&silent));
    for (name, value) in differs.iter().filter(|(name, _)| *name != "chain") {
        text += &format!("{} = {}\n", key(name), inline(value));
    }
    text
}

/// A connection's breaker as a whole table.
pub fn breaker(connection: &str, breaker: &Breaker) -> String {
    let differs = without(&redact::breaker(breaker), &redact::breaker(&Breaker::default()));
    let mut text = format!("[connections.{}.breaker]\n", key(connection));
    for (name, value) in &differs {
        text += &format!("{} = {}\n", key(name), inline(value));
    }
    text
}

// === helpers ===

/// What a place in the chain of `level` is if its row names nothing but connection and model. Those it must always name.
fn unremarkable(entry: &Entry, level: &Level) -> Value {
    let target = Arc::new(Target::new("", "", entry.target.dialect));
    let silent = Level::new("", vec![Entry { target, timeouts: level.timeouts }]);
    redact::level(&silent).pointer("/chain/0").cloned().unwrap_or_default()
}

/// The keys of `shown` whose values are others than in `silent`; of tables, their keys.
fn without(shown: &Value, silent: &Value) -> Map<String, Value> {
    let mut differs = Map::new();
    for (name, value) in shown.as_object().into_iter().flatten() {
        match (value, silent.get(name)) {
            (Value::Null, _) => {}
            (value, Some(same)) if value == same => {}
            (Value::Object(_), Some(other @ Value::Object(_))) => {
                differs.insert(name.clone(), Value::Object(without(value, other)));
            }
            _ => {
                differs.insert(name.clone(), value.clone());
            }
        }
    }
    differs
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Object(table) => {
            let filled = table.iter().filter(|(_, value)| !value.is_null());
            let pairs: Vec<String> = filled.map(|(name, value)| format!("{} = {}", key(name), inline(value))).collect();
            format!("{{ {} }}", pairs.join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn key(name: &str) -> String {
    let bare = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if bare { name.to_owned() } else { quoted(name) }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted += &format!("\\u{:04X}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
