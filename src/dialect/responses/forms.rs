//! A body in the form that a target takes: ids of calls in the API's alphabet, and what the target's refusals taught.

use crate::chat::modality::{Modalities, Modality};
use crate::dialect::ids::Ids;
use crate::dialect::note;
use crate::failure::CallIds;
use crate::turn::form::Form;
use serde_json::{Map, Value, json};

/// Puts the body into that form.
pub(super) fn suit(body: &mut Map<String, Value>, form: &Form, lacks: Modalities, dropped: &mut Vec<String>) {
    let lacks = lacks.and(form.lacks);
    if let Some(Value::Array(input)) = body.get_mut("input") {
        name_calls(input, form.call_ids.max(CallIds::Word));
        if !lacks.is_empty() {
            input.iter_mut().for_each(|item| without_media(item, lacks, dropped));
        }
    }
    if form.no_thinking && body.shift_remove("reasoning").is_some() {
        note(dropped, "reasoning");
    }
    for (place, list) in body.iter_mut().filter(|(name, _)| matches!(name.as_str(), "input" | "tools")) {
        let Value::Array(items) = list else { continue };
        for item in items.iter_mut().filter_map(Value::as_object_mut) {
            for field in form.inside().iter().filter(|field| !KEPT.contains(&field.as_str())) {
                if item.shift_remove(field.as_str()).is_some() {
                    note(dropped, &format!("{place}.{field}"));
                }
            }
        }
    }
}

// === helpers ===

fn name_calls(input: &mut [Value], want: CallIds) {
    let mut ids = Ids::new(want);
    let mut calling = false;
    for item in input {
        let kind = item.get("type").and_then(Value::as_str).unwrap_or_default();
        let call = match kind {
            "function_call" | "custom_tool_call" => true,
            "function_call_output" | "custom_tool_call_output" => false,
            _ => continue,
        };
        // Calls in a row are one message's.
        if call && !std::mem::replace(&mut calling, true) {
            ids.begin();
        }
        calling = call;
        let Some(id) = item.get("call_id").and_then(Value::as_str) else { continue };
        let name = if call { ids.call(id) } else { ids.result(id) };
        if name != id {
            item["call_id"] = name.into();
        }
    }
}

fn without_media(item: &mut Value, lacks: Modalities, dropped: &mut Vec<String>) {
    for field in ["content", "output"] {
        let Some(Value::Array(parts)) = item.get_mut(field) else { continue };
        for part in parts {
            let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
            if let Some(kind) = Modality::of_type(kind).filter(|kind| lacks.has(*kind)) {
                note(dropped, &format!("messages.{}", kind.name()));
                *part = json!({"type": "input_text", "text": format!("[{}]", kind.name())});
            }
        }
    }
}

/// What items and tools consist of.
const KEPT: [&str; 14] = [
    "type",
    "role",
    "content",
    "call_id",
    "name",
    "arguments",
    "input",
    "output",
    "summary",
    "encrypted_content",
    "parameters",
    "description",
    "id",
    "format",
];
