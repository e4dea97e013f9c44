//! A body in the form that a target takes.
//!
//! Ids of calls are always put into the API's alphabet: a conversation that another provider led has that one's. The
//! rest is what the target's refusals taught.

use super::dropped::Dropped;
use crate::chat::modality::{Modalities, Modality};
use crate::dialect::ids::Ids;
use crate::dialect::json;
use crate::failure::CallIds;
use crate::turn::form::Form;
use serde_json::{Map, Value, json};

/// Puts the body into that form. `native`: a client of this dialect wrote it.
pub(super) fn suit(body: &mut Map<String, Value>, form: &Form, lacks: Modalities, native: bool, dropped: &mut Dropped) {
    if native && let Some(Value::Array(messages)) = body.get_mut("messages") {
        name_calls(messages);
    }
    let lacks = lacks.and(form.lacks);
    if !lacks.is_empty()
        && let Some(Value::Array(messages)) = body.get_mut("messages")
    {
        let contents = messages.iter_mut().filter_map(|message| message.get_mut("content"));
        contents.for_each(|content| without_media(content, lacks, dropped));
    }
    if !form.inside().is_empty() {
        leave_out(body, form.inside(), dropped);
    }
    if form.no_thinking && misses_thinking(body) {
        body.insert("thinking".to_owned(), json!({ "type": "disabled" }));
    }
}

// === helpers ===

fn name_calls(messages: &mut [Value]) {
    let mut ids = Ids::new(CallIds::Word);
    for message in messages {
        let Some(Value::Array(blocks)) = message.get_mut("content") else { continue };
        if blocks.iter().any(|block| is(block, "tool_use")) {
            ids.begin();
        }
        for block in blocks {
            let (field, call) = match block.get("type").and_then(Value::as_str) {
                Some("tool_use") => ("id", true),
                Some("tool_result") => ("tool_use_id", false),
                _ => continue,
            };
            let Some(id) = block.get(field).and_then(Value::as_str) else { continue };
            let name = if call { ids.call(id) } else { ids.result(id) };
            if name != id {
                block[field] = name.into();
            }
        }
    }
}

fn without_media(content: &mut Value, lacks: Modalities, dropped: &mut Dropped) {
    let Value::Array(blocks) = content else { return };
    for block in blocks {
        let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
        match Modality::of_type(kind).filter(|kind| lacks.has(*kind)) {
            Some(kind) => {
                dropped.name(&format!("messages.{}", kind.name()));
                *block = json!({ "type": "text", "text": format!("[{}]", kind.name()) });
            }
            None if kind == "tool_result" => {
                if let Some(content) = block.get_mut("content") {
                    without_media(content, lacks, dropped);
                }
            }
            None => {}
        }
    }
}

/// Takes fields out of instructions, messages, their blocks and the tools, but none that they consist of.
fn leave_out(body: &mut Map<String, Value>, fields: &[String], dropped: &mut Dropped) {
    for (place, list) in body.iter_mut().filter(|(name, _)| matches!(name.as_str(), "system" | "messages" | "tools")) {
        let Value::Array(items) = list else { continue };
        let mut take = |object: &mut Map<String, Value>| {
            for field in fields.iter().filter(|field| !KEPT.contains(&field.as_str())) {
                if json::remove(object, field) {
                    dropped.name(&format!("{place}.{field}"));
                }
            }
        };
        for item in items.iter_mut().filter_map(Value::as_object_mut) {
            take(item);
            let Some(Value::Array(blocks)) = item.get_mut("content") else { continue };
            for block in blocks.iter_mut().filter_map(Value::as_object_mut) {
                take(block);
                if let Some(Value::Array(inner)) = block.get_mut("content") {
                    inner.iter_mut().filter_map(Value::as_object_mut).for_each(&mut take);
                }
            }
        }
    }
}

/// Whether the last answer made calls without the thinking that led to them.
fn misses_thinking(body: &Map<String, Value>) -> bool {
    let messages = body.get("messages").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let last = messages.iter().rfind(|message| message.get("role").is_some_and(|role| role == "assistant"));
    let blocks = last.and_then(|message| message.get("content")?.as_array());
    blocks.is_some_and(|blocks| {
        blocks.iter().any(|block| is(block, "tool_use"))
            && !blocks.iter().any(|block| is(block, "thinking") || is(block, "redacted_thinking"))
    })
}

fn is(block: &Value, kind: &str) -> bool {
    block.get("type").and_then(Value::as_str) == Some(kind)
}

/// What messages, blocks and tools consist of.
const KEPT: [&str; 18] = [
    "role",
    "content",
    "type",
    "text",
    "id",
    "name",
    "input",
    "tool_use_id",
    "source",
    "media_type",
    "data",
    "url",
    "thinking",
    "signature",
    "input_schema",
    "description",
    "is_error",
    "document",
];
