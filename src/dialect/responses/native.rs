//! The body of a client of the same dialect, edited: fields that nobody here knows survive.

use super::{items, past, signed};
use crate::chat::{DialectId, Request};
use serde_json::{Map, Value, json};

/// The client's body, its input as items.
pub(super) fn body(request: &Request) -> Map<String, Value> {
    let mut body = request.raw.clone();
    body.shift_remove("background");
    let input = match body.shift_remove("input") {
        Some(Value::Array(items)) => items,
        Some(Value::String(text)) => vec![json!({"role": "user", "content": text})],
        _ => Vec::new(),
    };
    let mut input: Vec<Value> = input.into_iter().filter(is_theirs).collect();
    input.iter_mut().for_each(past::nameless);
    body.insert("input".to_owned(), Value::Array(input));
    body
}

/// Whether a provider of this API can make anything of an item. Reasoning that another API's provider signed, or that
/// nobody did and that is nothing but a summary, is of no use to it.
fn is_theirs(item: &Value) -> bool {
    if items::kind(item) != "reasoning" {
        return true;
    }
    let sealed = item.get("encrypted_content").and_then(Value::as_str).filter(|sealed| !sealed.is_empty());
    match sealed {
        Some(sealed) => signed::open(sealed).is_some_and(|(issuer, ..)| issuer == DialectId::Responses),
        None => item.get("content").and_then(Value::as_array).is_some_and(|content| !content.is_empty()),
    }
}
