//! Writes the request for one attempt.
//!
//! A request that came in this dialect is edited, not rewritten: every field goes on as it stands, known or not, and
//! the history is the very same values in each leg, so that prompt caches hit. One from another dialect is first
//! written in this one (`translate`) and then goes the same way.

use super::quirks::{self, Prefill};
use super::{forms, translate};
use crate::chat::{DialectId, Request, tokens};
use crate::dialect::{WireRequest, note, unsayable};
use crate::failure::{Failure, Kind, Stage};
use crate::routing::Target;
use crate::turn::form::Form;
use crate::turn::resume::{Carry, Continue, How, Origin};
use bytes::Bytes;
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// A body: the fields of the pristine request, some of them replaced.
struct Body<'a> {
    fields: Vec<(&'a str, Field<'a>)>,
}

enum Field<'a> {
    Kept(&'a Value),
    New(Value),
    Messages(Vec<Cow<'a, Value>>),
}

/// Builds the HTTP request.
pub(super) fn encode(request: &Request, target: &Target, carry: &Carry) -> Result<WireRequest, Failure> {
    let mut dropped = Vec::new();
    let written;
    let raw = if request.origin == DialectId::Chat {
        &request.raw
    } else if !request.asks_in(DialectId::Chat) {
        return Err(unsayable());
    } else {
        written = translate::write(request, target, &mut dropped);
        &written
    };
    let form = forms::of(target, &carry.form);
    let refused = |field: &str| form.drops().any(|d| d.split('.').next() == Some(field));
    let drops = |field: &str| target.drops.iter().any(|d| d == field) || refused(field);
    let going_on = match &carry.origin {
        Origin::Fresh => None,
        Origin::Continue(going_on) => Some(going_on),
    };
    let mut body = Body { fields: Vec::with_capacity(raw.len() + 4) };
    for (name, value) in raw {
        let name = name.as_str();
        match name {
            "model" | "messages" | "stream" => body.keep(name, value),
            // Both say the same, and one of them is taken.
            "max_tokens" if form.one_limit && raw.contains_key("max_completion_tokens") => {}
            "max_tokens" | "max_completion_tokens" => match limit_name(name, value, raw, &drops) {
                Some(name) => body.set(name, limited(value, target, form.cap(), going_on)),
                None => drop_field(request.origin, name, &mut dropped),
            },
            "tools" | "functions" if !form.inside().is_empty() => {
                match forms::tools(value, form.inside(), &mut dropped) {
                    Some(tools) => body.set(name, tools),
                    None => body.keep(name, value),
                }
            }
            _ if drops(name) => drop_field(request.origin, name, &mut dropped),
            "reasoning_effort" if going_on.is_some() => body.set(name, json!(least(value))),
            _ => body.keep(name, value),
        }
    }
    body.set("model", json!(&*target.model));
    body.set("messages", Value::Null);
    // Answers are always streamed, save those with audio, which cannot be joined anyway.
    let stream = !request.audio || request.stream;
    body.set("stream", json!(stream));
    if stream && !drops("stream_options") {
        let mut options = raw.get("stream_options").and_then(Value::as_object).cloned().unwrap_or_default();
        options.insert("include_usage".to_owned(), Value::Bool(true));
        body.set("stream_options", Value::Object(options));
    } else if !stream {
        body.remove("stream_options");
    }
    let Some(Value::Array(history)) = raw.get("messages") else {
        return Err(Failure::new(Kind::BadRequest, Stage::Connecting).ours().saying("`messages` is no list"));
    };
    let mut messages = messages(history, carry);
    if let Some(going_on) = going_on {
        body.go_on(&mut messages, going_on, target, &drops);
    }
    if form != Form::default() || quirks::reasoning_name(&target.issuer).is_some() {
        messages = forms::suit(messages, &form, quirks::reasoning_name(&target.issuer), &mut dropped);
        if form.no_thinking && forms::misses_reasoning(&messages) {
            body.set("thinking", json!({ "type": "disabled" }));
            if raw.contains_key("reasoning_effort") {
                body.remove("reasoning_effort");
                drop_field(request.origin, "reasoning_effort", &mut dropped);
            }
        }
    }
    body.place("messages", Field::Messages(messages));
    let bytes = serde_json::to_vec(&body).map_err(|error| {
        Failure::new(Kind::BadRequest, Stage::Connecting)
            .ours()
            .saying(format!("the request cannot be written: {error}"))
    })?;
    dropped.dedup();
    Ok(WireRequest { path: PATH.to_owned(), headers: Vec::new(), body: Bytes::from(bytes), dropped })
}

// === impl Body ===

impl<'a> Body<'a> {
    /// Adds a field of the pristine request. No two of them have one name, so there is nothing to look for: a body may
    /// have a million.
    fn keep(&mut self, name: &'a str, value: &'a Value) {
        self.fields.push((name, Field::Kept(value)));
    }

    fn set(&mut self, name: &'a str, value: Value) {
        self.place(name, Field::New(value));
    }

    /// Puts a field where it stood, or at the end.
    fn place(&mut self, name: &'a str, field: Field<'a>) {
        match self.fields.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = field,
            None => self.fields.push((name, field)),
        }
    }

    fn remove(&mut self, name: &str) {
        self.fields.retain(|(known, _)| *known != name);
    }

    /// Adds what makes the target go on with a turn.
    fn go_on(
        &mut self,
        messages: &mut Vec<Cow<'_, Value>>,
        going_on: &Continue,
        target: &Target,
        drops: &impl Fn(&str) -> bool,
    ) {
        match going_on.how {
            How::Instruct => {
                // Where the client itself ended with the start of an answer, the two are one message.
                if !forms::extend_begun(messages, &going_on.delivered) {
                    messages.push(Cow::Owned(json!({ "role": "assistant", "content": &*going_on.delivered })));
                }
                messages.push(Cow::Owned(json!({ "role": "user", "content": going_on.anchor.instruction() })));
            }
            How::Prefill => {
                // White space at the end is refused by some and lost by others; the seam expects it first.
                let partial = going_on.delivered.trim_end();
                if partial.is_empty() {
                    return;
                }
                if !forms::extend_begun(messages, partial) {
                    messages.push(Cow::Owned(json!({ "role": "assistant", "content": partial })));
                }
                let Some(last) = messages.last_mut().map(Cow::to_mut) else { return };
                match quirks::prefill(&target.issuer, &target.model) {
                    Prefill::Plain => {}
                    Prefill::Prefix => last["prefix"] = Value::Bool(true),
                    Prefill::PrefixNoThinking => {
                        last["prefix"] = Value::Bool(true);
                        if !drops("thinking") {
                            self.set("thinking", json!({ "type": "disabled" }));
                        }
                    }
                    Prefill::ContinueFinal => self.set("continue_final_message", Value::Bool(true)),
                    Prefill::ContinueFinalNoPrompt => {
                        self.set("add_generation_prompt", Value::Bool(false));
                        self.set("continue_final_message", Value::Bool(true));
                    }
                }
            }
        }
    }
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.fields.len()))?;
        for (name, field) in &self.fields {
            map.serialize_entry(name, field)?;
        }
        map.end()
    }
}

impl Serialize for Field<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Kept(value) => value.serialize(serializer),
            Self::New(value) => value.serialize(serializer),
            Self::Messages(messages) => {
                let mut seq = serializer.serialize_seq(Some(messages.len()))?;
                for message in messages {
                    seq.serialize_element(&**message)?;
                }
                seq.end()
            }
        }
    }
}

// === helpers ===

/// The history as this attempt is given it.
fn messages<'a>(history: &'a [Value], carry: &Carry) -> Vec<Cow<'a, Value>> {
    let last_user = history.iter().rposition(|message| forms::role(message) == "user");
    let kept = history.iter().enumerate().filter(|(at, message)| {
        !carry.last_message_only || Some(*at) == last_user || matches!(forms::role(message), "system" | "developer")
    });
    kept.map(|(_, message)| Cow::Borrowed(message)).collect()
}

/// The name under which a limit of tokens goes on. There are two names for it, of which many targets know only one: a
/// limit whose own name is refused goes under the other.
fn limit_name(
    name: &str,
    value: &Value,
    raw: &Map<String, Value>,
    drops: &impl Fn(&str) -> bool,
) -> Option<&'static str> {
    let (own, other) = match name {
        "max_tokens" => ("max_tokens", "max_completion_tokens"),
        _ => ("max_completion_tokens", "max_tokens"),
    };
    if !drops(own) {
        Some(own)
    } else if !drops(other) && !raw.contains_key(other) && value.is_u64() {
        Some(other)
    } else {
        None
    }
}

/// The limit of tokens for this attempt: what is left of what was asked for, within what the target can do.
fn limited(asked: &Value, target: &Target, cap: Option<u64>, going_on: Option<&Continue>) -> Value {
    let Some(asked) = asked.as_u64() else { return asked.clone() };
    let left = going_on.map_or(asked, |going_on| {
        let repeated = match going_on.how {
            How::Instruct => tokens(&going_on.anchor.text) + SLACK,
            How::Prefill => 0,
        };
        (asked.saturating_sub(going_on.tokens) + repeated).max(1)
    });
    json!([target.max_output, cap].into_iter().flatten().fold(left, u64::min))
}

/// The least reasoning that any target with this field allows; less stays as it is.
fn least(asked: &Value) -> &str {
    match asked.as_str() {
        Some(word @ ("none" | "minimal" | "low")) => word,
        _ => "low",
    }
}

fn drop_field(origin: DialectId, name: &str, dropped: &mut Vec<String>) {
    note(dropped, translate::client_name(origin, name));
}

/// Below the base URL and its version segment.
const PATH: &str = "/chat/completions";

/// Tokens beside the anchor that a model may spend on repeating it.
const SLACK: u64 = 16;
