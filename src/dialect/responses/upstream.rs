//! Builds the request for one attempt.
//!
//! A client of the same dialect gets its own body, edited; any other gets one written from the common form
//! (`translate`). From there on the two are alike. No provider is asked to keep an answer: what is kept is kept here, and
//! our ids mean nothing elsewhere.

use super::{forms, items, native, translate};
use crate::chat::{DialectId, Request, tokens};
use crate::dialect::field::word;
use crate::dialect::{Field, WireRequest, note, unsayable};
use crate::failure::{Failure, Kind, Stage};
use crate::routing::Target;
use crate::turn::resume::{Carry, Continue, How, Origin};
use bytes::Bytes;
use serde_json::{Map, Value, json};

/// The request of one attempt.
pub(super) fn encode(request: &Request, target: &Target, carry: &Carry) -> Result<WireRequest, Failure> {
    let native = request.origin == DialectId::Responses;
    if !native && !request.asks_in(DialectId::Responses) {
        return Err(unsayable());
    }
    let mut dropped = Vec::new();
    let mut body = if native { native::body(request) } else { translate::body(request, &mut dropped) };
    body.insert("model".to_owned(), (*target.model).into());
    body.insert("stream".to_owned(), true.into());
    body.insert("store".to_owned(), false.into());
    if target.reasons {
        include(&mut body);
    }
    limit(&mut body, target, carry);
    if let Some(Value::Array(input)) = body.get_mut("input") {
        if carry.last_message_only {
            last_user_message(input);
        }
        if carry.form.strip_reasoning {
            input.retain(|item| items::kind(item) != "reasoning");
        }
        if let Origin::Continue(on) = &carry.origin {
            go_on(input, on);
        }
    }
    if matches!(carry.origin, Origin::Continue(_)) {
        least(&mut body);
    }
    forms::suit(&mut body, &carry.form, target.lacks(), &mut dropped);
    for field in target.drops.iter().map(String::as_str).chain(carry.form.drops()) {
        if !REQUIRED.contains(&field) && remove(&mut body, field) {
            note(&mut dropped, client_name(request.origin, field));
        }
    }
    let body = serde_json::to_vec(&body).map_err(|error| {
        Failure::new(Kind::BadRequest, Stage::Connecting).ours().saying(format!("the request is no JSON: {error}"))
    })?;
    Ok(WireRequest { path: "/responses".to_owned(), headers: Vec::new(), body: Bytes::from(body), dropped })
}

// === helpers ===

/// Asks for what must be sent back of reasoning, since nothing of it is kept there.
fn include(body: &mut Map<String, Value>) {
    let include = body.entry("include").or_insert_with(|| json!([]));
    if let Value::Array(list) = include
        && !list.iter().any(|what| what == ENCRYPTED)
    {
        list.push(ENCRYPTED.into());
    }
}

/// The limit of tokens for this attempt: what is left of what was asked for, within what the target can do.
fn limit(body: &mut Map<String, Value>, target: &Target, carry: &Carry) {
    let Some(asked) = body.get("max_output_tokens").and_then(Value::as_u64) else { return };
    let left = match &carry.origin {
        Origin::Fresh => asked,
        Origin::Continue(on) => {
            let repeats = match on.how {
                How::Instruct => tokens(&on.anchor.text) + ANCHOR_SLACK,
                How::Prefill => 0,
            };
            asked.saturating_sub(on.tokens).saturating_add(repeats).max(LEAST)
        }
    };
    let limit = [target.max_output, carry.form.cap()].into_iter().flatten().fold(left, u64::min);
    body.insert("max_output_tokens".to_owned(), limit.into());
}

/// Leaves the last message of the user, and instructions.
fn last_user_message(input: &mut Vec<Value>) {
    let role = |item: &Value| item.get("role").and_then(Value::as_str).unwrap_or_default().to_owned();
    let last = input.iter().rposition(|item| role(item) == "user");
    let mut at = 0;
    input.retain(|item| {
        let kept = Some(at) == last || matches!(&*role(item), "system" | "developer");
        at += 1;
        kept
    });
}

/// The tail of a continuation.
fn go_on(input: &mut Vec<Value>, on: &Continue) {
    let told = match on.how {
        How::Instruct => &*on.delivered,
        How::Prefill => on.delivered.trim_end(),
    };
    if told.trim().is_empty() {
        return;
    }
    let mut answer = json!({
        "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": told, "annotations": []}],
    });
    if on.how == How::Prefill {
        // Servers that go on with an answer do so where it is not over.
        answer["status"] = "incomplete".into();
    }
    input.push(answer);
    if on.how == How::Instruct {
        input.push(json!({"role": "user", "content": on.anchor.instruction()}));
    }
}

/// The least reasoning that any target with this field allows; less stays as it is.
fn least(body: &mut Map<String, Value>) {
    if let Some(effort) = body.get_mut("reasoning").and_then(|reasoning| reasoning.get_mut("effort"))
        && !matches!(effort.as_str(), Some("none" | "minimal" | "low"))
        && !effort.is_null()
    {
        *effort = "low".into();
    }
}

/// Removes a field, or a field of an object of the body (`reasoning.effort`), whether it was there.
fn remove(body: &mut Map<String, Value>, field: &str) -> bool {
    let Some((outer, inner)) = field.split_once('.') else { return body.shift_remove(field).is_some() };
    let Some(Value::Object(object)) = body.get_mut(outer) else { return false };
    let found = object.shift_remove(inner).is_some();
    if object.is_empty() {
        body.shift_remove(outer);
    }
    found
}

/// A field of this dialect under the name that clients of `origin` know it by.
fn client_name(origin: DialectId, name: &str) -> &str {
    let field = match name.split('.').next().unwrap_or_default() {
        _ if origin == DialectId::Responses => return name,
        "reasoning" => Field::Effort,
        "text" => Field::Format,
        "max_output_tokens" => Field::Limit,
        "user" => Field::User,
        _ => return name,
    };
    word(origin, field)
}

/// What holds reasoning for its issuer.
const ENCRYPTED: &str = "reasoning.encrypted_content";

/// Fields that no `drops` takes out.
const REQUIRED: [&str; 3] = ["model", "input", "stream"];

/// Tokens beside the anchor that a model may spend on repeating it.
const ANCHOR_SLACK: u64 = 16;

/// The API takes no smaller limit.
const LEAST: u64 = 16;

#[cfg(test)]
#[path = "tests/upstream.rs"]
mod tests;
