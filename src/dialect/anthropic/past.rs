//! Conversations that are kept, in the words of this API.

use super::upstream::Dropped;
use super::{Anthropic, client, encoder, history};
use crate::chat::{DialectId, Message, Part, Request, Role};
use crate::dialect::Refusal;
use crate::dialect::history::{History, Spoken, mend_each};
use serde_json::Value;
use std::collections::HashSet;

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
        let mut instructions: Vec<Value> = system.iter().filter_map(history::text_block).collect();
        let mut out = history::conversation(messages, &mut instructions, &mut dropped);
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
