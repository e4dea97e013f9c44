//! Messages in the form that a target takes.
//!
//! A form is what the vendor's table knows and what the target's refusals taught. The default one touches nothing: each
//! message then goes on as the client wrote it. Whatever is changed here is changed alike in every leg of a turn and in
//! every turn, so that prompt caches hold.

use super::quirks;
use crate::chat::modality::Modality;
use crate::dialect::ids::Ids;
use crate::dialect::json;
use crate::dialect::note;
use crate::failure::{CallIds, Instructions};
use crate::routing::Target;
use crate::turn::form::Form;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

type Messages<'a> = Vec<Cow<'a, Value>>;

/// The form in which `target` takes requests: what its vendor's table and its configuration say, and what was learnt.
pub(super) fn of(target: &Target, learnt: &Form) -> Form {
    let mut form = quirks::form(&target.issuer, &target.model);
    form.join(learnt);
    form.lacks = form.lacks.and(target.lacks());
    form
}

/// Puts `messages` into that form.
pub(super) fn suit<'a>(
    mut messages: Messages<'a>,
    form: &Form,
    reasoning: Option<&str>,
    dropped: &mut Vec<String>,
) -> Messages<'a> {
    if form.strip_reasoning {
        messages.iter_mut().for_each(strip_reasoning);
    } else if let Some(name) = reasoning {
        messages.iter_mut().for_each(|message| rename_reasoning(message, name));
    }
    match form.instructions {
        Instructions::AsWritten => {}
        Instructions::System => messages.iter_mut().for_each(|message| {
            if role(message) == "developer" {
                message.to_mut()["role"] = "system".into();
            }
        }),
        Instructions::First => instructions_first(&mut messages),
        Instructions::User => instructions_to_user(&mut messages),
    }
    if !form.inside().is_empty() {
        messages.iter_mut().for_each(|message| leave_out(message, form.inside(), dropped));
    }
    if form.call_ids != CallIds::Any {
        name_calls(&mut messages, form.call_ids);
    }
    if !form.lacks.is_empty() {
        messages.iter_mut().for_each(|message| without_media(message, form, dropped));
    }
    if form.tool_text {
        messages = results_in_text(messages);
    }
    if form.flat {
        messages.iter_mut().for_each(flatten);
    }
    if form.alternate {
        messages = alternating(messages);
    }
    if form.mark_calls {
        messages.iter_mut().for_each(mark);
    }
    messages
}

/// Whether an assistant's message made calls without the reasoning that led to them.
pub(super) fn misses_reasoning(messages: &[Cow<'_, Value>]) -> bool {
    messages.iter().any(|message| {
        let Some(fields) = message.as_object() else { return false };
        let calls = fields.get("tool_calls").and_then(Value::as_array).is_some_and(|calls| !calls.is_empty());
        calls && !quirks::REASONING.iter().any(|name| fields.get(*name).is_some_and(|r| !r.is_null() && r != ""))
    })
}

/// Leaves fields that a target does not know out of the tools.
pub(super) fn tools(tools: &Value, fields: &[String], dropped: &mut Vec<String>) -> Option<Value> {
    let mut tools = tools.as_array()?.clone();
    let mut changed = false;
    for tool in tools.iter_mut().filter_map(Value::as_object_mut) {
        changed |= take(tool, fields, &["type", "function", "name", "parameters", "description"], "tools", dropped);
        if let Some(Value::Object(function)) = tool.get_mut("function") {
            changed |= take(function, fields, &["name", "parameters", "description"], "tools", dropped);
        }
    }
    changed.then_some(Value::Array(tools))
}

/// Adds `text` to the assistant's message at the end, where the client itself began the answer: the two are one message.
/// `false`: it did not.
pub(super) fn extend_begun(messages: &mut [Cow<'_, Value>], text: &str) -> bool {
    let Some(last) = messages.last_mut() else { return false };
    if role(last) != "assistant" || last.get("tool_calls").is_some_and(|calls| !calls.is_null()) {
        return false;
    }
    match last.to_mut().get_mut("content") {
        Some(Value::String(begun)) => begun.push_str(text),
        Some(Value::Array(parts)) => match parts.last_mut().and_then(|part| part.get_mut("text")) {
            Some(Value::String(begun)) => begun.push_str(text),
            _ => parts.push(json!({ "type": "text", "text": text })),
        },
        _ => return false,
    }
    true
}

// === helpers ===

pub(super) fn role(message: &Value) -> &str {
    message.get("role").and_then(Value::as_str).unwrap_or_default()
}

fn strip_reasoning(message: &mut Cow<'_, Value>) {
    let thinks = |part: &Value| part.get("type").is_some_and(|kind| kind == "thinking" || kind == "redacted_thinking");
    let Some(fields) = message.as_object() else { return };
    let named = quirks::REASONING.iter().any(|field| fields.contains_key(*field));
    let parts = fields.get("content").and_then(Value::as_array).is_some_and(|parts| parts.iter().any(thinks));
    if !named && !parts {
        return;
    }
    let Some(fields) = message.to_mut().as_object_mut() else { return };
    for field in quirks::REASONING {
        fields.shift_remove(field);
    }
    if let Some(Value::Array(parts)) = fields.get_mut("content") {
        parts.retain(|part| !thinks(part));
    }
}

/// Earlier reasoning under the name that the target takes back.
fn rename_reasoning(message: &mut Cow<'_, Value>, name: &str) {
    let other = if name == "reasoning" { "reasoning_content" } else { "reasoning" };
    let Some(fields) = message.as_object() else { return };
    if role(message) != "assistant" || fields.contains_key(name) || !fields.contains_key(other) {
        return;
    }
    let Some(fields) = message.to_mut().as_object_mut() else { return };
    if let Some(text) = fields.shift_remove(other) {
        fields.insert(name.to_owned(), text);
    }
}

/// Instructions that come later become the user's own; the first ones are one message.
fn instructions_first(messages: &mut Messages<'_>) {
    let first = messages.iter().position(|message| !is_instruction(message)).unwrap_or(messages.len());
    for message in messages.iter_mut().skip(first).filter(|message| is_instruction(message)) {
        message.to_mut()["role"] = "user".into();
    }
    if first > 0 && (first > 1 || role(&messages[0]) != "system") {
        let texts: Vec<String> = messages.drain(..first).map(|message| words(&message)).collect();
        messages.insert(0, Cow::Owned(json!({ "role": "system", "content": texts.join("\n\n") })));
    }
}

/// Instructions stand before the first words of the user's; those that come later become the user's own.
fn instructions_to_user(messages: &mut Messages<'_>) {
    let first = messages.iter().position(|message| !is_instruction(message)).unwrap_or(messages.len());
    let texts: Vec<String> = messages.drain(..first).map(|message| words(&message)).filter(|t| !t.is_empty()).collect();
    for message in messages.iter_mut().filter(|message| is_instruction(message)) {
        message.to_mut()["role"] = "user".into();
    }
    if texts.is_empty() {
        return;
    }
    let text = texts.join("\n\n");
    match messages.first_mut().filter(|message| role(message) == "user") {
        Some(user) => match user.to_mut().get_mut("content") {
            Some(Value::String(content)) => *content = format!("{text}\n\n{content}"),
            Some(Value::Array(parts)) => parts.insert(0, json!({ "type": "text", "text": text })),
            _ => {}
        },
        None => messages.insert(0, Cow::Owned(json!({ "role": "user", "content": text }))),
    }
}

fn is_instruction(message: &Value) -> bool {
    matches!(role(message), "system" | "developer")
}

/// The text of a message, in whatever form.
fn words(message: &Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|part| part.get("text")?.as_str()).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Takes fields out of a message, its parts and its calls, but none that they consist of.
fn leave_out(message: &mut Cow<'_, Value>, fields: &[String], dropped: &mut Vec<String>) {
    let holds = |object: &Value| fields.iter().any(|field| json::holds(object, field));
    let list = |name: &str| message.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let inside = list("content").iter().any(holds)
        || list("tool_calls").iter().any(|call| holds(call) || call.get("function").is_some_and(holds));
    if !holds(message) && !inside {
        return;
    }
    let Some(object) = message.to_mut().as_object_mut() else { return };
    take(object, fields, &["role", "content", "tool_calls", "tool_call_id", "function_call"], "messages", dropped);
    if let Some(Value::Array(parts)) = object.get_mut("content") {
        let parts = parts.iter_mut().filter_map(Value::as_object_mut);
        parts.for_each(|part| {
            take(part, fields, &["type", "text", "image_url", "input_audio", "file"], "messages", dropped);
        });
    }
    if let Some(Value::Array(calls)) = object.get_mut("tool_calls") {
        for call in calls.iter_mut().filter_map(Value::as_object_mut) {
            take(call, fields, &["id", "type", "function"], "messages", dropped);
            if let Some(Value::Object(function)) = call.get_mut("function") {
                take(function, fields, &["name", "arguments"], "messages", dropped);
            }
        }
    }
}

fn take(
    object: &mut Map<String, Value>,
    fields: &[String],
    kept: &[&str],
    place: &str,
    dropped: &mut Vec<String>,
) -> bool {
    let mut changed = false;
    for field in fields.iter().filter(|field| !kept.contains(&field.as_str())) {
        if json::remove(object, field) {
            note(dropped, &format!("{place}.{field}"));
            changed = true;
        }
    }
    changed
}

fn name_calls(messages: &mut Messages<'_>, want: CallIds) {
    let mut ids = Ids::new(want);
    for message in messages.iter_mut() {
        let calls = message.get("tool_calls").and_then(Value::as_array).is_some_and(|calls| !calls.is_empty());
        if calls {
            ids.begin();
            let Some(Value::Array(calls)) = message.to_mut().get_mut("tool_calls") else { continue };
            for call in calls {
                let name = ids.call(call.get("id").and_then(Value::as_str).unwrap_or_default());
                if let Some(call) = call.as_object_mut() {
                    call.insert("id".to_owned(), name.into());
                }
            }
        } else if let Some(id) = message.get("tool_call_id").and_then(Value::as_str) {
            let name = ids.result(id);
            if name != id {
                message.to_mut()["tool_call_id"] = name.into();
            }
        }
    }
}

fn kind(part: &Value) -> Option<Modality> {
    Modality::of_type(part.get("type")?.as_str()?)
}

/// In the history a word stands for what the target does not take. The question itself is never put to such a target.
fn without_media(message: &mut Cow<'_, Value>, form: &Form, dropped: &mut Vec<String>) {
    let lacked = |part: &Value| kind(part).filter(|kind| form.lacks.has(*kind));
    let parts = message.get("content").and_then(Value::as_array);
    if !parts.is_some_and(|parts| parts.iter().any(|part| lacked(part).is_some())) {
        return;
    }
    let Some(Value::Array(parts)) = message.to_mut().get_mut("content") else { return };
    for part in parts {
        if let Some(kind) = lacked(part) {
            note(dropped, &format!("messages.{}", kind.name()));
            *part = json!({ "type": "text", "text": format!("[{}]", kind.name()) });
        }
    }
}

/// Moves what is no text out of the results of tools: it follows the last result of a run, in one message of the user's.
fn results_in_text(messages: Messages<'_>) -> Messages<'_> {
    let mut out = Vec::with_capacity(messages.len() + 1);
    let mut moved: Vec<Value> = Vec::new();
    for mut message in messages {
        if role(&message) != "tool" {
            flush(&mut moved, &mut out);
            out.push(message);
            continue;
        }
        let mixed =
            message.get("content").and_then(Value::as_array).is_some_and(|p| p.iter().any(|p| kind(p).is_some()));
        if mixed && let Some(Value::Array(parts)) = message.to_mut().get_mut("content") {
            let (media, text): (Vec<_>, Vec<_>) = parts.drain(..).partition(|part| kind(part).is_some());
            moved.extend(media);
            *parts = if text.is_empty() { vec![json!({ "type": "text", "text": "(see below)" })] } else { text };
        }
        out.push(message);
    }
    flush(&mut moved, &mut out);
    out
}

fn flush(moved: &mut Vec<Value>, out: &mut Messages<'_>) {
    if !moved.is_empty() {
        out.push(Cow::Owned(json!({ "role": "user", "content": std::mem::take(moved) })));
    }
}

/// Content of texts alone becomes one text.
fn flatten(message: &mut Cow<'_, Value>) {
    let texts = message.get("content").and_then(Value::as_array).is_some_and(|parts| {
        parts.iter().all(|part| part.is_string() || part.get("text").is_some_and(Value::is_string))
    });
    if texts {
        let text = words(message);
        message.to_mut()["content"] = text.into();
    }
}

/// Joins neighbours of one role. Results of tools and messages with calls stay as they are.
fn alternating<'a>(messages: Messages<'a>) -> Messages<'a> {
    let mut out: Messages<'a> = Vec::with_capacity(messages.len());
    for message in messages {
        let joins = out.last().is_some_and(|last| {
            role(last) == role(&message)
                && matches!(role(last), "user" | "assistant" | "system")
                && last.get("tool_calls").is_none()
                && message.get("tool_calls").is_none()
        });
        let Some(last) = out.last_mut().filter(|_| joins) else {
            out.push(message);
            continue;
        };
        let content = message.get("content").cloned().unwrap_or_default();
        let last = last.to_mut();
        match (last.get_mut("content"), content) {
            (Some(Value::String(old)), Value::String(new)) => {
                old.push_str("\n\n");
                old.push_str(&new);
            }
            (Some(old), new) => {
                let mut parts = as_parts(old.take());
                parts.extend(as_parts(new));
                *old = Value::Array(parts);
            }
            (None, new) => last["content"] = new,
        }
    }
    out
}

fn as_parts(content: Value) -> Vec<Value> {
    match content {
        Value::Array(parts) => parts,
        Value::String(text) if !text.is_empty() => vec![json!({ "type": "text", "text": text })],
        _ => Vec::new(),
    }
}

/// Google's own mark for a call of which it has no signature, on the first call of each message.
fn mark(message: &mut Cow<'_, Value>) {
    let first = message.get("tool_calls").and_then(|calls| calls.get(0));
    if first.is_none_or(|call| call.pointer("/extra_content/google/thought_signature").is_some()) {
        return;
    }
    if let Some(Value::Object(call)) = message.to_mut().get_mut("tool_calls").and_then(|calls| calls.get_mut(0)) {
        let mark = json!({ "google": { "thought_signature": "skip_thought_signature_validator" } });
        call.insert("extra_content".to_owned(), mark);
    }
}
