//! Answers that are kept under their ids, and what refers to them.

use super::{Responses, client, ids, items, past};
use crate::chat::Request;
use crate::dialect::history::{Answers, History, Spoken};
use crate::dialect::{Reason, Refusal};
use serde_json::{Value, json};
use std::collections::HashMap;

impl Answers for Responses {
    fn id(&self, request: &Request) -> String {
        client::answer_id(request)
    }

    fn asked(&self, request: &Request) -> Vec<Value> {
        items::asked(&request.raw, true).unwrap_or_default()
    }

    fn before(&self, answer: &Value) -> Option<String> {
        answer.get("previous_response_id").and_then(Value::as_str).map(str::to_owned)
    }

    fn references(&self, asked: &[Value]) -> Vec<String> {
        items::references(asked)
    }

    fn recall(&self, request: &mut Request, past: Vec<Value>, known: &HashMap<String, Value>) -> Result<(), Refusal> {
        let asked = self.asked(request);
        let mut messages = Vec::with_capacity(past.len() + asked.len());
        for item in past.into_iter().chain(asked) {
            match items::reference(&item) {
                Some(id) => messages.push(found(id, known).ok_or_else(|| lost(id))?),
                None => messages.push(item),
            }
        }
        let system = request.raw.get("instructions").filter(|i| !i.is_null()).cloned();
        self.put(request, Spoken { system, messages })
    }

    fn missing(&self, id: &str) -> Refusal {
        let message = format!(
            "Previous response with id '{id}' not found: it is not kept here (any more). Send the whole conversation in \
             `input`, without `previous_response_id`."
        );
        Refusal::new(Reason::Request, "previous_response_not_found", message).about("previous_response_id")
    }

    fn forgotten(&self, id: &str) -> Value {
        json!({"id": id, "object": "response", "deleted": true})
    }
}

// === helpers ===

/// The item of that id, out of the answer that it is part of.
fn found(id: &str, known: &HashMap<String, Value>) -> Option<Value> {
    let output = items::output(known.get(&ids::answer_of(id)?)?)?;
    let mut item = output.iter().find(|item| item.get("id").and_then(Value::as_str) == Some(id))?.clone();
    past::nameless(&mut item);
    Some(item)
}

fn lost(id: &str) -> Refusal {
    let message = format!(
        "Item with id '{id}' not found: its answer is not kept here (any more). Send the item itself instead of a \
         reference (most libraries do with `store` = false)."
    );
    Refusal::new(Reason::NotFound, "item_not_found", message).about("input")
}

#[cfg(test)]
#[path = "tests/answers.rs"]
mod tests;
