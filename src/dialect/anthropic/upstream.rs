//! Builds the request for one attempt.
//!
//! A client of the same dialect gets its own body, edited; any other gets one written from the common form. From there
//! on the two are alike: what the model does not take is recast or left out and named, the limit is the target's at
//! most, and a continuation adds its tail to the messages and nothing anywhere else.

use super::dropped::{Dropped, remove};
use super::quirks::{self, Model, Sampling};
use super::{forms, native, thinking, translate};
use crate::chat::{DialectId, Request, tokens};
use crate::dialect::{WireRequest, unsayable};
use crate::failure::{Failure, Kind, Stage};
use crate::routing::Target;
use crate::turn::resume::{Carry, Continue, How, Origin};
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value, json};

/// The limit of tokens where neither client nor target names one; the API requires one.
pub(super) const MAX_TOKENS: u64 = 4096;

/// What an instruct continuation may generate besides the anchor that it repeats, in tokens.
const ANCHOR_SLACK: u64 = 16;

/// The request of one attempt.
pub(super) fn encode(request: &Request, target: &Target, carry: &Carry) -> Result<WireRequest, Failure> {
    let model = quirks::model(&target.model);
    let native = request.origin == DialectId::Anthropic;
    if !native && !request.asks_in(DialectId::Anthropic) {
        return Err(unsayable());
    }
    let mut dropped = Dropped::new(request.origin);
    let mut body =
        if native { native::body(request, carry) } else { translate::body(request, model, carry, &mut dropped) };
    body.insert("model".to_owned(), (*target.model).into());
    body.insert("stream".to_owned(), true.into());
    let asked = request.max_tokens.unwrap_or_else(|| unasked(&body, target));
    let limit = limit(asked, target, carry);
    body.insert("max_tokens".to_owned(), limit.into());
    match &carry.origin {
        Origin::Fresh => {}
        Origin::Continue(on) => go_on(&mut body, on, model, native, &mut dropped),
    }
    suit(&mut body, model, &mut dropped);
    forms::suit(&mut body, &carry.form, target.lacks(), native, &mut dropped);
    thinking::settle(&mut body, model, limit < asked, !native, &mut dropped);
    if !native {
        unheat(&mut body, &mut dropped);
    }
    for field in target.drops.iter().map(String::as_str).chain(carry.form.drops()) {
        if !REQUIRED.contains(&field) && remove(&mut body, field) {
            dropped.field(field);
        }
    }
    let body = serde_json::to_vec(&body).map_err(|error| {
        Failure::new(Kind::BadRequest, Stage::Connecting).ours().saying(format!("the request is no JSON: {error}"))
    })?;
    Ok(WireRequest {
        path: "/messages".to_owned(),
        headers: if native { headers(request) } else { Vec::new() },
        body: Bytes::from(body),
        dropped: dropped.into_names(),
    })
}

/// Fields that no `drops` takes out.
const REQUIRED: [&str; 4] = ["model", "messages", "max_tokens", "stream"];

/// A limit for a client that named none: what the target can, else the default and what it is to think on top.
fn unasked(body: &Map<String, Value>, target: &Target) -> u64 {
    let budget = body.get("thinking").and_then(|t| t.get("budget_tokens")).and_then(Value::as_u64);
    target.max_output.unwrap_or_else(|| MAX_TOKENS + budget.unwrap_or(0))
}

fn limit(asked: u64, target: &Target, carry: &Carry) -> u64 {
    let most = [target.max_output, carry.form.cap()].into_iter().flatten().min().unwrap_or(u64::MAX);
    let Origin::Continue(on) = &carry.origin else {
        // Zero is a request too: it warms the prompt cache.
        return asked.min(most);
    };
    let repeats = match on.how {
        How::Instruct => tokens(&on.anchor.text) + ANCHOR_SLACK,
        How::Prefill => 0,
    };
    asked.saturating_sub(on.tokens).saturating_add(repeats).min(most).max(1)
}

/// The tail of a continuation. It thinks as little as the model allows: the client is past that.
fn go_on(body: &mut Map<String, Value>, on: &Continue, model: Model, native: bool, dropped: &mut Dropped) {
    thinking::least(body, model);
    let delivered = on.delivered.trim_end();
    if delivered.trim_start().is_empty() {
        return;
    }
    if on.how == How::Prefill && remove(body, "output_config.format") {
        dropped.field("output_config.format");
    }
    let messages = body.entry("messages").or_insert_with(|| json!([]));
    let Value::Array(messages) = messages else { return };
    let open = messages.last_mut().filter(|last| last.get("role").and_then(Value::as_str) == Some("assistant"));
    match open.and_then(|last| last.get_mut("content")) {
        // The client's own prefill: what was delivered is the rest of its text.
        Some(Value::String(text)) if native => text.push_str(delivered),
        Some(content @ Value::String(_)) => {
            let first = json!({"type": "text", "text": content});
            *content = json!([first, {"type": "text", "text": delivered}]);
        }
        Some(Value::Array(blocks)) => match blocks.last_mut().and_then(|b| b.get_mut("text")) {
            Some(Value::String(text)) if native => text.push_str(delivered),
            _ => blocks.push(json!({"type": "text", "text": delivered})),
        },
        _ => messages.push(json!({"role": "assistant", "content": delivered})),
    }
    if on.how == How::Instruct {
        messages.push(json!({"role": "user", "content": on.anchor.instruction()}));
    }
}

/// Leaves out what the model is known to refuse, whoever wrote the body.
fn suit(body: &mut Map<String, Value>, model: Model, dropped: &mut Dropped) {
    let default = |value: &Value| value.as_f64() == Some(1.0);
    match model.sampling {
        Sampling::Free => {}
        Sampling::One => {
            if body.contains_key("temperature") && body.contains_key("top_p") {
                let one = body.shift_remove("top_p").is_some_and(|p| default(&p));
                if !one {
                    dropped.field("top_p");
                }
            }
        }
        Sampling::None => {
            for field in ["temperature", "top_p", "top_k"] {
                if body.shift_remove(field).is_some_and(|value| !default(&value)) {
                    dropped.field(field);
                }
            }
        }
    }
    if !model.structured && remove(body, "output_config.format") {
        dropped.field("output_config.format");
    }
    if !model.forced_tools
        && let Some(Value::Object(choice)) = body.get_mut("tool_choice")
        && matches!(choice.get("type").and_then(Value::as_str), Some("any" | "tool"))
    {
        choice.insert("type".to_owned(), "auto".into());
        choice.shift_remove("name");
        dropped.field("tool_choice");
    }
}

/// Thinking goes with the default temperature only, and with a `top_p` near 1.
fn unheat(body: &mut Map<String, Value>, dropped: &mut Dropped) {
    let thinks = body.get("thinking").and_then(|t| t.get("type")).and_then(Value::as_str);
    if !matches!(thinks, Some("enabled" | "adaptive")) {
        return;
    }
    for (field, least) in [("temperature", 1.0), ("top_p", 0.95), ("top_k", f64::INFINITY)] {
        if body.get(field).is_some_and(|v| v.as_f64().is_none_or(|n| n < least)) {
            body.shift_remove(field);
            dropped.field(field);
        }
    }
}

fn headers(request: &Request) -> Vec<(HeaderName, HeaderValue)> {
    let header =
        |(name, value): &(String, String)| Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?));
    request.passed.iter().filter_map(header).collect()
}

#[cfg(test)]
#[path = "tests/upstream.rs"]
mod tests;
