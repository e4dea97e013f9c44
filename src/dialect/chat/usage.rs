//! Tokens in this API's words, both ways.

use crate::chat::DialectId;
use crate::event::Usage;
use serde_json::{Map, Value, json};

/// Reads a provider's `usage`, in the documented words and DeepSeek's.
pub(super) fn read(native: Map<String, Value>) -> Usage {
    let mut kept = Map::new();
    Usage::keep(&mut kept, native);
    let count = |path: &[&str]| {
        let (first, rest) = path.split_first()?;
        Usage::count(rest.iter().try_fold(kept.get(*first)?, |value, key| value.get(*key))?)
    };
    Usage {
        prompt: count(&["prompt_tokens"]),
        completion: count(&["completion_tokens"]),
        reasoning: count(&["completion_tokens_details", "reasoning_tokens"]),
        cache_read: count(&["prompt_tokens_details", "cached_tokens"]).or_else(|| count(&["prompt_cache_hit_tokens"])),
        cache_write: count(&["prompt_tokens_details", "cache_write_tokens"]),
        native: Some((DialectId::Chat, kept)),
    }
}

/// Writes a turn's usage: what its provider said in its own words, with the counts of the turn, which may be of
/// several attempts.
pub(super) fn write(usage: &Usage) -> Value {
    let native = match &usage.native {
        Some((DialectId::Chat, native)) => native.clone(),
        _ => Map::new(),
    };
    let mut out = Map::with_capacity(native.len().max(3));
    let (prompt, completion) = (usage.prompt.unwrap_or(0), usage.completion.unwrap_or(0));
    out.insert("prompt_tokens".to_owned(), json!(prompt));
    out.insert("completion_tokens".to_owned(), json!(completion));
    out.insert("total_tokens".to_owned(), json!(prompt.saturating_add(completion)));
    for (name, value) in native {
        out.entry(name).or_insert(value);
    }
    let details = [
        ("prompt_tokens_details", "cached_tokens", usage.cache_read),
        ("completion_tokens_details", "reasoning_tokens", usage.reasoning),
    ];
    for (group, name, count) in details {
        let Some(count) = count else { continue };
        let group = out.entry(group).or_insert_with(|| json!({}));
        if !group.is_object() {
            *group = json!({});
        }
        group[name] = json!(count);
    }
    Value::Object(out)
}
