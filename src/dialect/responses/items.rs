//! The items of an input, as the common form has them.
//!
//! Here each call, result and thought is an item of its own; elsewhere those of the model are parts of one message. A
//! result that comes late, after others have spoken, is put behind its call, where the other dialects demand it.

use super::{custom, ids, signed};
use crate::chat::{DialectId, Media, Message, Part, Role};
use crate::dialect::Refusal;
use crate::dialect::openai::field as wrong;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The input of a body, as items. `begun`: something was said before, so that it may be empty.
pub(super) fn asked(raw: &Map<String, Value>, begun: bool) -> Result<Vec<Value>, Refusal> {
    match raw.get("input") {
        Some(Value::String(text)) => Ok(vec![json!({"role": "user", "content": text})]),
        Some(Value::Array(items)) if begun || !items.is_empty() => Ok(items.clone()),
        None | Some(Value::Null) if begun => Ok(Vec::new()),
        Some(Value::Array(_)) => Err(wrong("input", "must hold at least one item")),
        None | Some(Value::Null) => {
            Err(wrong("input", "is missing; send a text, or the conversation as a list of items"))
        }
        Some(_) => Err(wrong("input", "must be a text or a list of items")),
    }
}

/// The answers that items by their ids refer to, each once.
pub(super) fn references(items: &[Value]) -> Vec<String> {
    let mut seen = HashSet::new();
    // An id that was not made here is none that is known, which is told when it is looked for.
    let answer = |id: &str| ids::answer_of(id).unwrap_or_else(|| id.to_owned());
    let answers = items.iter().filter_map(|item| Some(answer(reference(item)?)));
    answers.filter(|answer| seen.insert(answer.clone())).collect()
}

/// The id of the item that stands elsewhere, where `item` is nothing but that.
pub(super) fn reference(item: &Value) -> Option<&str> {
    let only = ["type", "role", "object"].iter().all(|field| item.get(*field).is_none());
    if only || is(item, "item_reference") { item.get("id")?.as_str() } else { None }
}

/// The instructions of a body: a text, or items.
pub(super) fn instructions(value: Option<&Value>) -> Result<Vec<Part>, Refusal> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) if text.is_empty() => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![Part::text(text.as_str())]),
        Some(Value::Array(items)) => {
            let mut parts = Vec::new();
            for (at, item) in items.iter().enumerate() {
                let place = format!("instructions[{at}].content");
                parts.extend(content(item.get("content").unwrap_or(&Value::Null), &place)?);
            }
            Ok(parts)
        }
        Some(_) => Err(wrong("instructions", "must be a string")),
    }
}

/// Instructions that stand before the conversation, and the conversation.
pub(super) fn conversation(items: &[Value]) -> Result<(Vec<Part>, Vec<Message>), Refusal> {
    let mut reader = Reader::default();
    for (at, item) in items.iter().enumerate() {
        match output(item) {
            Some(output) => output.iter().try_for_each(|item| reader.item(item, &format!("input[{at}].output")))?,
            None => reader.item(item, &format!("input[{at}]"))?,
        }
    }
    Ok(reader.end())
}

/// The items of an answer, where one stands whole in a conversation that is kept.
pub(super) fn output(message: &Value) -> Option<&Vec<Value>> {
    message.get("output").filter(|_| message.get("object").is_some_and(|o| o == "response"))?.as_array()
}

/// Whether an item is the model's.
pub(super) fn is_models(item: &Value) -> bool {
    match kind(item) {
        "message" => item.get("role").is_some_and(|role| role == "assistant"),
        "item_reference" | "" => false,
        // What the client ran, or decided.
        kind => !kind.ends_with("_output") && kind != "mcp_approval_response",
    }
}

/// An item's type; that of a message may be left out.
pub(super) fn kind(item: &Value) -> &str {
    match item.get("type").and_then(Value::as_str) {
        Some(kind) => kind,
        None if item.get("role").is_some() => "message",
        None => "",
    }
}

/// Gathers items to messages.
#[derive(Default)]
struct Reader {
    system: Vec<Part>,
    messages: Vec<Message>,
    /// Where each call's message stands.
    calls: HashMap<String, usize>,
    /// Results that come late, by the message of their call.
    late: BTreeMap<usize, Vec<Message>>,
}

// === impl Reader ===

impl Reader {
    fn item(&mut self, item: &Value, place: &str) -> Result<(), Refusal> {
        let text = |field: &str| item.get(field).and_then(Value::as_str);
        let need = |field: &str| {
            text(field).map(str::to_owned).ok_or_else(|| wrong(&format!("{place}.{field}"), "must be a string"))
        };
        if !item.is_object() {
            return Err(wrong(place, "must be an item, such as {\"role\": \"user\", \"content\": \"…\"}"));
        }
        if reference(item).is_some() {
            // Whoever keeps it puts it there.
            return Ok(());
        }
        match kind(item) {
            "message" => {
                let parts = content(item.get("content").unwrap_or(&Value::Null), &format!("{place}.content"))?;
                match text("role") {
                    Some("user") => self.messages.push(Message { role: Role::User, parts }),
                    Some("system" | "developer") if self.messages.is_empty() => self.system.extend(parts),
                    Some("system" | "developer") => self.messages.push(Message { role: Role::System, parts }),
                    Some("assistant") => parts.into_iter().for_each(|part| self.said(part)),
                    _ => {
                        let why = "must be `user`, `assistant`, `system` or `developer`";
                        return Err(wrong(&format!("{place}.role"), why));
                    }
                }
            }
            "function_call" => {
                self.call(need("call_id")?, need("name")?, text("arguments").unwrap_or_default().to_owned());
            }
            "custom_tool_call" => {
                self.call(need("call_id")?, need("name")?, custom::args(text("input").unwrap_or_default()));
            }
            "function_call_output" | "custom_tool_call_output" => {
                let output = item.get("output").unwrap_or(&Value::Null);
                let parts = match output {
                    Value::Null => Vec::new(),
                    Value::String(_) | Value::Array(_) => content(output, &format!("{place}.output"))?,
                    other => vec![Part::text(other.to_string())],
                };
                let failed = text("status") == Some("incomplete");
                self.result(need("call_id")?, parts, failed);
            }
            "reasoning" => self.said(thought(item)),
            "" => return Err(wrong(&format!("{place}.type"), "must name the kind of the item, such as `message`")),
            _ => {
                let part = Part::Other(DialectId::Responses, item.clone());
                if is_models(item) {
                    self.said(part);
                } else {
                    self.messages.push(Message { role: Role::User, parts: vec![part] });
                }
            }
        }
        Ok(())
    }

    /// Adds a part to what the model says.
    fn said(&mut self, part: Part) {
        match self.messages.last_mut() {
            Some(last) if last.role == Role::Assistant => last.parts.push(part),
            _ => self.messages.push(Message { role: Role::Assistant, parts: vec![part] }),
        }
    }

    fn call(&mut self, id: String, name: String, args: String) {
        self.said(Part::ToolCall { id: id.clone(), name, args });
        self.calls.insert(id, self.messages.len() - 1);
    }

    fn result(&mut self, id: String, parts: Vec<Part>, failed: bool) {
        let call = self.calls.get(&id).copied();
        let message = Message { role: Role::Tool, parts: vec![Part::ToolResult { id, parts, failed }] };
        let speaker = self.messages.iter().rposition(|message| message.role != Role::Tool);
        match call {
            Some(call) if speaker != Some(call) => self.late.entry(call).or_default().push(message),
            _ => self.messages.push(message),
        }
    }

    fn end(self) -> (Vec<Part>, Vec<Message>) {
        let Self { system, messages, mut late, .. } = self;
        if late.is_empty() {
            return (system, messages);
        }
        let mut all = Vec::with_capacity(messages.len() + late.len());
        let mut owed = Vec::new();
        for (at, message) in messages.into_iter().enumerate() {
            if message.role != Role::Tool {
                all.append(&mut owed);
            }
            all.push(message);
            owed.extend(late.remove(&at).unwrap_or_default());
        }
        all.append(&mut owed);
        (system, all)
    }
}

// === helpers ===

/// The parts of a content: a text, or a list.
fn content(value: &Value, place: &str) -> Result<Vec<Part>, Refusal> {
    match value {
        Value::String(text) if text.is_empty() => Ok(Vec::new()),
        Value::String(text) => Ok(vec![Part::text(text.as_str())]),
        Value::Array(list) => {
            let mut parts = Vec::with_capacity(list.len());
            for (at, value) in list.iter().enumerate() {
                parts.extend(part(value, &format!("{place}[{at}]"))?);
            }
            Ok(parts)
        }
        _ => Err(wrong(place, "must be a string or a list of parts")),
    }
}

fn part(value: &Value, place: &str) -> Result<Option<Part>, Refusal> {
    let text = |field: &str| value.get(field).and_then(Value::as_str);
    let other = || Part::Other(DialectId::Responses, value.clone());
    let Some(kind) = text("type") else {
        return Err(wrong(place, "must be a part, such as {\"type\": \"input_text\", \"text\": \"…\"}"));
    };
    Ok(Some(match kind {
        "input_text" | "output_text" | "text" | "summary_text" => match text("text") {
            Some("") => return Ok(None),
            Some(text) => Part::text(text),
            None => return Err(wrong(&format!("{place}.text"), "must be a string")),
        },
        "refusal" => Part::Refusal(text("refusal").unwrap_or_default().to_owned()),
        "input_image" | "image_url" => {
            let url = value.get("image_url").and_then(|url| url.as_str().or_else(|| url.get("url")?.as_str()));
            url.map_or_else(other, |url| Part::Image(Media::of_url(url)))
        }
        "input_file" => match (text("file_data"), text("file_url")) {
            (Some(data), _) => match Media::of_url(data) {
                inline @ Media::Data { .. } => Part::Document(inline),
                Media::Url(_) => Part::Document(Media::Data {
                    kind: kind_of(text("filename").unwrap_or_default()).to_owned(),
                    data: data.to_owned(),
                }),
            },
            (None, Some(url)) => Part::Document(Media::Url(url.to_owned())),
            (None, None) => other(),
        },
        _ => other(),
    }))
}

/// The media type of a file of that name.
fn kind_of(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).as_deref() {
        Some("txt" | "md" | "csv") => "text/plain",
        _ => "application/pdf",
    }
}

/// A reasoning item.
fn thought(item: &Value) -> Part {
    let texts = |field: &str| {
        let list = item.get(field).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(|part| part.get("text")?.as_str()).collect::<Vec<_>>().join("\n\n")
    };
    let mut text = texts("content");
    if text.is_empty() {
        text = texts("summary");
    }
    let sealed = item.get("encrypted_content").and_then(Value::as_str).filter(|sealed| !sealed.is_empty());
    let (issuer, signature, redacted) = match sealed.and_then(signed::open) {
        Some((issuer, data, redacted)) => (issuer, Some(data.to_owned()), redacted),
        None => (DialectId::Responses, None, false),
    };
    Part::Reasoning { text, signature, issuer, redacted }
}

fn is(item: &Value, kind: &str) -> bool {
    item.get("type").and_then(Value::as_str) == Some(kind)
}

#[cfg(test)]
#[path = "tests/items.rs"]
mod tests;
