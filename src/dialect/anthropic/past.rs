//! Conversations that are kept, in the words of this API.

use super::dropped::Dropped;
use super::{Anthropic, client, encoder, history};
use crate::chat::{DialectId, Message, Part, Request, Role};
use crate::dialect::Refusal;
use crate::dialect::history::{History, Spoken, mend_each, told_late};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};

impl History for Anthropic {
    fn spoken(&self, request: &Request) -> Spoken {
        let messages = request.raw.get("messages").and_then(Value::as_array).cloned();
        Spoken {
            system: request.raw.get("system").filter(|s| !s.is_null()).cloned(),
            messages: messages.unwrap_or_default(),
        }
    }

    fn put(&self, request: &mut Request, spoken: Spoken) -> Result<(), Refusal> {
        (request.system, request.messages) = self.read(&spoken)?;
        match spoken.system {
            Some(system) => request.raw.insert("system".to_owned(), system),
            None => request.raw.shift_remove("system"),
        };
        request.raw.insert("messages".to_owned(), Value::Array(spoken.messages));
        Ok(())
    }

    fn read(&self, spoken: &Spoken) -> Result<(Vec<Part>, Vec<Message>), Refusal> {
        let system = spoken.system.as_ref().map(|content| client::parts(content, "system")).transpose()?;
        let messages = if spoken.messages.is_empty() { Vec::new() } else { client::messages_of(&spoken.messages)? };
        Ok((system.unwrap_or_default(), messages))
    }

    fn write(&self, system: &[Part], messages: &[Message]) -> Spoken {
        let mut dropped = Dropped::new(DialectId::Chat);
        let instructions: Vec<Value> = system.iter().filter_map(history::text_block).collect();
        let mut out = history::conversation(messages, &mut dropped);
        // The result that is made up for a call at the end: the client's own is yet to come.
        let open = messages.iter().rfind(|m| m.role != Role::System).is_some_and(|m| m.role == Role::Assistant);
        if open && out.last().is_some_and(|last| !self.is_answer(last)) {
            out.pop();
        }
        Spoken { system: (!instructions.is_empty()).then_some(Value::Array(instructions)), messages: out }
    }

    fn is_answer(&self, message: &Value) -> bool {
        text(message, "role") == Some("assistant")
    }

    fn mend(&self, messages: &mut Vec<Value>, past: usize) {
        let past = gather_late(messages, past);
        mend_each(messages, past, |before, message, after| {
            let kept: HashSet<String> = if self.is_answer(message) {
                after.first().map(|next| ids(next, "tool_result", "tool_use_id")).unwrap_or_default()
            } else {
                before.map(|last| ids(last, "tool_use", "id")).unwrap_or_default()
            };
            let Some(Value::Array(blocks)) = message.get_mut("content") else { return true };
            blocks.retain(|block| match text(block, "type") {
                Some("tool_use") => text(block, "id").is_some_and(|id| kept.contains(id)),
                Some("tool_result") => text(block, "tool_use_id").is_some_and(|id| kept.contains(id)),
                _ => true,
            });
            // Thinking alone is no answer.
            blocks.iter().any(|block| !matches!(text(block, "type"), Some("thinking" | "redacted_thinking")))
        });
    }

    fn call_id(&self, request: &Request, call: u32) -> String {
        encoder::call_id(request.minted.id, call)
    }
}

// === helpers ===

/// Moves results that came late, after others had spoken, to the start of the message behind the calls that they answer,
/// where the API demands them; of two results of one call the later one holds. Gives how many messages are past now.
fn gather_late(messages: &mut Vec<Value>, past: usize) -> usize {
    let past = past.min(messages.len());
    let mut made: HashMap<String, usize> = HashMap::new();
    let mut late: BTreeMap<usize, Vec<Value>> = BTreeMap::new();
    let mut lone: BTreeMap<usize, String> = BTreeMap::new();
    for (at, message) in messages.iter_mut().enumerate() {
        if text(message, "role") == Some("assistant") {
            made.extend(ids(message, "tool_use", "id").into_iter().map(|id| (id, at)));
            continue;
        }
        let Some(Value::Array(blocks)) = message.get_mut("content") else { continue };
        let call = |block: &Value| {
            let id = text(block, "tool_use_id").filter(|_| text(block, "type") == Some("tool_result"))?;
            made.get(id).copied().filter(|call| *call < past && call + 1 != at)
        };
        let mut told = Vec::new();
        for block in blocks.extract_if(.., |block| call(block).is_some()) {
            if let Some(call) = call(&block) {
                told.extend(block.get("content").map(told_late));
                late.entry(call).or_default().push(block);
            }
        }
        if blocks.is_empty() {
            lone.insert(at, told.join("\n"));
        }
    }
    if late.is_empty() {
        return past;
    }
    let mut now_past = past;
    let mut before: Option<usize> = None;
    for (at, mut message) in std::mem::take(messages).into_iter().enumerate() {
        let results = before.take().and_then(|caller| late.remove(&caller)).unwrap_or_default();
        let answers = text(&message, "role") == Some("assistant");
        if !results.is_empty() && answers {
            messages.push(json!({"role": "user", "content": newest(results, Vec::new())}));
        } else if !results.is_empty() {
            let blocks = match message["content"].take() {
                Value::Array(blocks) => blocks,
                Value::String(text) => vec![json!({"type": "text", "text": text})],
                _ => Vec::new(),
            };
            message["content"] = newest(results, blocks).into();
        }
        before = answers.then_some(at);
        // A message that held nothing but what was moved is still a question.
        if message.get("content").and_then(Value::as_array).is_some_and(Vec::is_empty) {
            let text = lone.remove(&at).unwrap_or_default();
            message["content"] = json!([{"type": "text", "text": text}]);
        }
        messages.push(message);
        if at + 1 == past {
            now_past = messages.len();
        }
    }
    if let Some(results) = before.and_then(|caller| late.remove(&caller)) {
        messages.push(json!({"role": "user", "content": newest(results, Vec::new())}));
        now_past = messages.len();
    }
    now_past
}

/// `late` results, each call's last one, before the rest of `blocks`; what they take the place of is left out.
fn newest(late: Vec<Value>, blocks: Vec<Value>) -> Vec<Value> {
    let called = |block: &Value| text(block, "tool_use_id").map(str::to_owned);
    let mut seen = HashSet::new();
    let mut all: Vec<Value> = late.into_iter().rev().filter(|block| seen.insert(called(block))).collect();
    let earlier = |block: &Value| text(block, "type") == Some("tool_result");
    let (results, rest): (Vec<_>, Vec<_>) = blocks.into_iter().partition(earlier);
    all.reverse();
    let mut kept: Vec<Value> = results.into_iter().filter(|block| !seen.contains(&called(block))).collect();
    kept.extend(all);
    kept.extend(rest);
    kept
}

/// The ids that blocks of one kind name.
fn ids(message: &Value, kind: &str, field: &str) -> HashSet<String> {
    let Some(blocks) = message.get("content").and_then(Value::as_array) else { return HashSet::new() };
    let of_kind = blocks.iter().filter(|block| text(block, "type") == Some(kind));
    of_kind.filter_map(|block| text(block, field)).map(str::to_owned).collect()
}

fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field).and_then(Value::as_str)
}

#[cfg(test)]
#[path = "tests/past.rs"]
mod tests;
