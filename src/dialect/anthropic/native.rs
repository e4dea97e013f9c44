//! The body of a client of the same dialect, edited: fields that nobody here knows survive.

use crate::chat::Request;
use crate::turn::resume::Carry;
use serde_json::{Map, Value, json};

/// The client's body with the history that this attempt is to see.
pub(super) fn body(request: &Request, carry: &Carry) -> Map<String, Value> {
    let mut body = request.raw.clone();
    if carry.last_message_only
        && let Some(Value::Array(messages)) = body.get_mut("messages")
    {
        last_user_message(messages);
    }
    if carry.form.strip_reasoning {
        strip_reasoning(&mut body);
    }
    body
}

/// Leaves the last message of the user, without results of calls that are no longer there.
fn last_user_message(messages: &mut Vec<Value>) {
    let is_user = |m: &Value| m.get("role").and_then(Value::as_str) == Some("user");
    let says = |m: &Value| match m.get("content") {
        Some(Value::Array(blocks)) => blocks.iter().any(|b| !is(b, &["tool_result"])),
        Some(Value::String(_)) => true,
        _ => false,
    };
    let at = messages.iter().rposition(|m| is_user(m) && says(m));
    let Some(mut last) = at.map(|at| messages.swap_remove(at)) else {
        return;
    };
    if let Some(Value::Array(blocks)) = last.get_mut("content") {
        blocks.retain(|b| !is(b, &["tool_result"]));
    }
    *messages = vec![last];
}

/// Leaves thinking out of the history, and with it the wish to think where the API would miss it: a budget demands
/// that the turn of an open tool call begins with its own thinking.
fn strip_reasoning(body: &mut Map<String, Value>) {
    let Some(Value::Array(messages)) = body.get_mut("messages") else { return };
    for message in messages.iter_mut() {
        if let Some(Value::Array(blocks)) = message.get_mut("content") {
            blocks.retain(|b| !is(b, &["thinking", "redacted_thinking"]));
        }
    }
    messages.retain(|m| !m.get("content").and_then(Value::as_array).is_some_and(Vec::is_empty));
    let results = messages.last().and_then(|m| m.get("content")).and_then(Value::as_array);
    let open = results.is_some_and(|blocks| blocks.iter().any(|b| is(b, &["tool_result"])));
    if open && body.get("thinking").is_some_and(|t| is(t, &["enabled"])) {
        body.insert("thinking".to_owned(), json!({"type": "disabled"}));
    }
}

fn is(block: &Value, kinds: &[&str]) -> bool {
    block.get("type").and_then(Value::as_str).is_some_and(|t| kinds.contains(&t))
}
