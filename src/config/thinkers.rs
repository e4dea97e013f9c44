//! What is known of models by their names: whether they think before they speak although nobody asked.
//!
//! The table is data with a date, in `config/models.toml`. A name that no row fits is not known, and nothing is presumed
//! of it.

use serde::Deserialize;

#[derive(Deserialize)]
struct Table {
    thinking: Thinking,
}

#[derive(Deserialize)]
struct Thinking {
    models: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    /// A pattern: `*` is anything, `{2.5}` a version of at least 2.5.
    name: String,
    thinks: bool,
}

/// The table, to ask several names.
pub(super) struct Thinkers(Vec<Row>);

// === impl Thinkers ===

impl Thinkers {
    pub(super) fn new() -> Self {
        // A test reads it; a table that cannot be read knows nothing.
        Self(toml::from_str::<Table>(super::zero::MODELS).map(|table| table.thinking.models).unwrap_or_default())
    }

    /// Whether `model` thinks unasked; `None`: nothing is known of it.
    pub(super) fn know(&self, model: &str) -> Option<bool> {
        let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
        self.0.iter().find(|row| fits(row.name.as_bytes(), name.as_bytes())).map(|row| row.thinks)
    }
}

// === helpers ===

fn fits(pattern: &[u8], name: &[u8]) -> bool {
    match pattern {
        [] => name.is_empty(),
        [b'*', rest @ ..] => (0..=name.len()).any(|at| fits(rest, &name[at..])),
        [b'{', ..] => {
            let Some(end) = pattern.iter().position(|byte| *byte == b'}') else { return false };
            let Some((least, _)) = version(&pattern[1..end]) else { return false };
            version(name).is_some_and(|(found, length)| found >= least && fits(&pattern[end + 1..], &name[length..]))
        }
        [first, rest @ ..] => name.first() == Some(first) && fits(rest, &name[1..]),
    }
}

/// The version that `name` starts with, and its length: `5`, `4.1`, `4-7`. A date is no version, and neither is a size:
/// of `4-20250514` and `3-8b` only the first number counts.
fn version(name: &[u8]) -> Option<((u32, u32), usize)> {
    let (major, after) = number(name)?;
    let minor = match name.get(after) {
        Some(b'.') => number(&name[after + 1..]),
        Some(b'-' | b'_') => number(&name[after + 1..])
            .filter(|(_, end)| !name.get(after + 1 + end).is_some_and(u8::is_ascii_alphanumeric)),
        _ => None,
    };
    Some(match minor {
        Some((minor, end)) => ((major, minor), after + 1 + end),
        None => ((major, 0), after),
    })
}

/// A number of one or two digits, and its length.
fn number(text: &[u8]) -> Option<(u32, usize)> {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let value = text[..length].iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'));
    (1..=2).contains(&length).then_some((value, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_known_by_their_names() {
        let thinkers = Thinkers::new();
        for model in [
            "o1",
            "o3-2025-04-16",
            "o4-mini",
            "gpt-5",
            "gpt-5-mini-2025-08-07",
            "gpt-5.6-terra",
            "openai/gpt-oss-120b",
            "claude-opus-4-7",
            "claude-sonnet-5",
            "claude-sonnet-5-5",
            "us.anthropic.claude-opus-4-8-20260101-v1:0",
            "anthropic/claude-opus-4.8",
            "deepseek-reasoner",
            "deepseek-v4-flash",
            "deepseek-r1:7b",
            "gemini-2.5-pro",
            "gemini-3-flash-preview",
            "google/gemini-3.8-flash",
            "qwen3:8b",
            "Qwen/Qwen3-32B",
            "qwen3.5-plus",
            "QwQ-32B",
            "grok-4-0709",
            "kimi-k2-thinking",
            "glm-4.6",
            "magistral-small-latest",
        ] {
            assert_eq!(thinkers.know(model), Some(true), "{model}");
        }
        for model in [
            "gpt-4.1",
            "gpt-4o-2024-08-06",
            "gpt-3.5-turbo",
            "gpt-5-chat-latest",
            "claude-3-5-sonnet-20241022",
            "claude-3-opus",
            "claude-sonnet-4-20250514",
            "claude-opus-4-5",
            "claude-sonnet-4-6",
            "claude-haiku-4-5@20251001",
            "gemini-2.0-flash",
            "gemini-2.5-flash-lite",
            "deepseek-chat",
            "deepseek-v3.1",
            "qwen2.5-72b-instruct",
            "Qwen/Qwen3-30B-A3B-Instruct-2507",
            "mistral-large-latest",
            "meta-llama/Llama-3.3-70B-Instruct",
        ] {
            assert_eq!(thinkers.know(model), Some(false), "{model}");
        }
        for model in ["", "m", "main", "house-model-7b", "olmo-3", "opus"] {
            assert_eq!(thinkers.know(model), None, "{model}");
        }
    }

    #[test]
    fn every_model_that_is_asked_without_a_configuration_is_known() {
        // These are names of others' choosing.
        let open = ["openrouter/auto", "llama3.2"];
        let table: toml::Value = toml::from_str(super::super::zero::MODELS).unwrap_or(toml::Value::Boolean(false));
        let vendors = table.get("vendors").and_then(toml::Value::as_array).cloned().unwrap_or_default();
        assert!(!vendors.is_empty());
        for vendor in vendors {
            let models = vendor.get("models").and_then(toml::Value::as_table).cloned().unwrap_or_default();
            for model in models.values().filter_map(toml::Value::as_str).filter(|model| !open.contains(model)) {
                assert!(Thinkers::new().know(model).is_some(), "{model}");
            }
        }
    }
}
