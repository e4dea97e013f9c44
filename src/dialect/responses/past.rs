//! Conversations that are kept, in the words of this API.
//!
//! What a client asks is a list of items; an answer is an object with the items of its own, as the API itself has it
//! (`{"object": "response", "output": […]}`), so that it is one message.

use super::{Responses, ids, items, signed};
use crate::chat::{DialectId, Media, Message, Part, Request, Role};
use crate::dialect::Refusal;
use crate::dialect::history::{History, Spoken};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

impl History for Responses {
    fn spoken(&self, request: &Request) -> Spoken {
        let system = request.raw.get("instructions").filter(|i| !i.is_null()).cloned();
        let asked = items::asked(&request.raw, true).unwrap_or_default();
        let mut messages: Vec<Value> = Vec::with_capacity(asked.len());
        for item in asked {
            if !items::is_models(&item) {
                messages.push(item);
                continue;
            }
            match messages.last_mut().and_then(|last| last.get_mut("output")?.as_array_mut()) {
                Some(output) => output.push(item),
                None => messages.push(answer(vec![item])),
            }
        }
        Spoken { system, messages }
    }

    fn put(&self, request: &mut Request, spoken: Spoken) -> Result<(), Refusal> {
        (request.system, request.messages) = self.read(&spoken)?;
        match spoken.system {
            Some(system) => request.raw.insert("instructions".to_owned(), system),
            None => request.raw.shift_remove("instructions"),
        };
        request
            .raw
            .insert("input".to_owned(), Value::Array(spoken.messages.into_iter().flat_map(told_again).collect()));
        Ok(())
    }

    fn read(&self, spoken: &Spoken) -> Result<(Vec<Part>, Vec<Message>), Refusal> {
        let mut system = items::instructions(spoken.system.as_ref())?;
        let (more, messages) = items::conversation(&spoken.messages)?;
        system.extend(more);
        Ok((system, messages))
    }

    fn write(&self, system: &[Part], messages: &[Message]) -> Spoken {
        let text = |part: &Part| match part {
            Part::Text { text, .. } if !text.is_empty() => Some(text.clone()),
            _ => None,
        };
        let system: Vec<String> = system.iter().filter_map(text).collect();
        Spoken {
            system: (!system.is_empty()).then(|| system.join("\n\n").into()),
            messages: messages.iter().flat_map(message).collect(),
        }
    }

    fn is_answer(&self, message: &Value) -> bool {
        items::output(message).is_some() || items::is_models(message)
    }

    fn mend(&self, messages: &mut Vec<Value>, past: usize) {
        let past = past.min(messages.len());
        let ids = |items: &mut dyn Iterator<Item = &Value>, calls: bool| -> HashSet<String> {
            items
                .filter(|item| call_id(item, calls).is_some())
                .filter_map(|i| call_id(i, calls))
                .map(str::to_owned)
                .collect()
        };
        let results = ids(&mut messages.iter(), false);
        let outputs =
            messages.iter().flat_map(|m| items::output(m).map_or_else(|| std::slice::from_ref(m), Vec::as_slice));
        let calls = ids(&mut outputs.into_iter(), true);
        let mut at = 0;
        messages.retain_mut(|message| {
            let is_past = at < past;
            at += 1;
            if !is_past {
                return true;
            }
            if let Some(id) = call_id(message, false) {
                return calls.contains(id);
            }
            let Some(Value::Array(output)) = message.get_mut("output") else { return true };
            output.retain(|item| call_id(item, true).is_none_or(|id| results.contains(id)));
            // A thought that nothing follows is refused.
            while output.last().is_some_and(|item| items::kind(item) == "reasoning") {
                output.pop();
            }
            !output.is_empty()
        });
    }

    fn call_id(&self, request: &Request, call: u32) -> String {
        ids::call(request.minted.id, call)
    }
}

// === helpers ===

/// An answer of those items.
fn answer(output: Vec<Value>) -> Value {
    let mut answer = Map::new();
    answer.insert("object".to_owned(), "response".into());
    answer.insert("output".to_owned(), Value::Array(output));
    Value::Object(answer)
}

/// A kept message as items of an input. The ids that we gave them are no provider's.
pub(super) fn told_again(mut message: Value) -> Vec<Value> {
    if items::output(&message).is_none() {
        return vec![message];
    }
    let Some(Value::Array(mut output)) = message.as_object_mut().and_then(|m| m.shift_remove("output")) else {
        return Vec::new();
    };
    output.iter_mut().for_each(nameless);
    output
}

/// Takes our id off an item.
pub(super) fn nameless(item: &mut Value) {
    let ours = item.get("id").and_then(Value::as_str).is_some_and(|id| ids::answer_of(id).is_some());
    if let Some(fields) = item.as_object_mut().filter(|_| ours) {
        fields.shift_remove("id");
    }
}

/// The call that an item makes (`calls`), or answers.
fn call_id(item: &Value, calls: bool) -> Option<&str> {
    let kind = items::kind(item);
    let fits = match kind {
        "function_call" | "custom_tool_call" => calls,
        "function_call_output" | "custom_tool_call_output" => !calls,
        _ => false,
    };
    item.get("call_id").filter(|_| fits)?.as_str()
}

/// A message as items; one of the model's is an answer.
pub(super) fn message(message: &Message) -> Vec<Value> {
    let inputs = |role: &str| {
        let content: Vec<Value> = message.parts.iter().filter_map(input).collect();
        (!content.is_empty()).then(|| json!({"role": role, "content": content}))
    };
    match message.role {
        Role::System => inputs("system").into_iter().collect(),
        Role::User | Role::Tool => message.parts.iter().filter_map(result).chain(inputs("user")).collect(),
        Role::Assistant => {
            let output = outputs(&message.parts);
            if output.is_empty() { Vec::new() } else { vec![answer(output)] }
        }
    }
}

fn result(part: &Part) -> Option<Value> {
    let Part::ToolResult { id, parts, .. } = part else { return None };
    let output = match parts.as_slice() {
        [Part::Text { text, .. }] => json!(text),
        parts => parts.iter().filter_map(input).collect(),
    };
    Some(json!({"type": "function_call_output", "call_id": id, "output": output}))
}

/// A part of what is asked.
pub(super) fn input(part: &Part) -> Option<Value> {
    let url = |media: &Media| match media {
        Media::Url(url) => url.clone(),
        Media::Data { kind, data } => format!("data:{kind};base64,{data}"),
    };
    Some(match part {
        Part::Text { text, .. } => json!({"type": "input_text", "text": text}),
        Part::Image(media) => json!({"type": "input_image", "image_url": url(media), "detail": "auto"}),
        Part::Document(Media::Url(url)) => json!({"type": "input_file", "file_url": url}),
        Part::Document(media @ Media::Data { kind, .. }) => {
            let name = if kind.starts_with("text/") { "document.txt" } else { "document.pdf" };
            json!({"type": "input_file", "filename": name, "file_data": url(media)})
        }
        Part::Other(DialectId::Responses, value) => value.clone(),
        Part::Refusal(_)
        | Part::ToolCall { .. }
        | Part::ToolResult { .. }
        | Part::Reasoning { .. }
        | Part::Other(..) => return None,
    })
}

/// The items of what the model said.
pub(super) fn outputs(parts: &[Part]) -> Vec<Value> {
    let mut output: Vec<Value> = Vec::new();
    for part in parts {
        let said = match part {
            Part::Text { text, .. } => json!({"type": "output_text", "text": text, "annotations": []}),
            Part::Refusal(text) => json!({"type": "refusal", "refusal": text}),
            Part::ToolCall { id, name, args } => {
                let args = if args.trim().is_empty() { "{}" } else { args };
                output.push(json!({"type": "function_call", "call_id": id, "name": name, "arguments": args}));
                continue;
            }
            Part::Reasoning { text, signature, issuer, redacted } => {
                let mut item = json!({"type": "reasoning", "summary": []});
                if !text.is_empty() {
                    item["summary"] = json!([{"type": "summary_text", "text": text}]);
                }
                if let Some(data) = signature {
                    item["encrypted_content"] = signed::seal(data, *issuer, *redacted).into();
                }
                output.push(item);
                continue;
            }
            Part::Other(DialectId::Responses, item) => {
                output.push(item.clone());
                continue;
            }
            Part::Image(_) | Part::Document(_) | Part::ToolResult { .. } | Part::Other(..) => continue,
        };
        match output.last_mut().filter(|last| items::kind(last) == "message").and_then(|l| l["content"].as_array_mut())
        {
            Some(content) => content.push(said),
            None => output.push(json!({"type": "message", "role": "assistant", "content": [said]})),
        }
    }
    output
}

#[cfg(test)]
#[path = "tests/past.rs"]
mod tests;
