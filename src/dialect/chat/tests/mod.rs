//! Tests of the dialect, by direction, and what they share.

#![expect(clippy::panic, reason = "a test's panic is its report")]

mod calls;
mod classify;
mod decode;
mod encode;
mod forms;
mod parse;
mod stream;

use super::Chat;
use crate::chat::{DialectId, Request};
use crate::dialect::{Client, Expect, Flow, Provider};
use crate::event::{Event, Step};
use crate::failure::Failure;
use crate::routing::Target;
use crate::sse;
use bytes::Bytes;
use http::HeaderMap;
use serde_json::{Value, json};

/// An event of a stream: `name|data`, or data alone.
fn sse(text: &str) -> sse::Event {
    let (name, data) = match text.split_once('|') {
        Some((name, data)) if name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') => (name, data),
        _ => ("", text),
    };
    let single_line = !data.contains('\n');
    sse::Event { name: Bytes::from(name.to_owned()), data: Bytes::from(data.to_owned()), single_line }
}

/// A chunk of choice 0 with this delta.
fn delta(delta: &str) -> String {
    format!(
        r#"{{"id":"a1","object":"chat.completion.chunk","created":1,"model":"m-a","choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#
    )
}

/// The chunk that finishes choice 0.
fn finish(reason: &str) -> String {
    delta("{}").replace("\"finish_reason\":null", &format!("\"finish_reason\":\"{reason}\""))
}

/// A chunk of choice 0 with these elements of `tool_calls`.
fn tools(entries: &str) -> String {
    delta(&format!("{{\"tool_calls\":[{entries}]}}"))
}

/// The steps of a stream, and how it ended: at its terminator, or with the body.
fn steps(events: &[&str], choices: u32) -> (Vec<Step>, Result<Flow, Failure>) {
    let mut decoder = Chat.decoder(Expect::of(choices));
    let mut steps = Vec::new();
    for text in events {
        let mut step = Step::default();
        let flow = decoder.event(&sse(text), &mut step);
        if !step.events.is_empty() {
            steps.push(step);
        }
        match flow {
            Ok(Flow::More) => {}
            Ok(Flow::Done) => return (steps, Ok(Flow::Done)),
            Err(failure) => return (steps, Err(failure)),
        }
    }
    let mut step = Step::default();
    let end = decoder.end(None, &mut step);
    if !step.events.is_empty() {
        steps.push(step);
    }
    (steps, end.map(|()| Flow::More))
}

/// The events of a stream in short words, without those that say nothing about the answer.
fn told(events: &[&str]) -> (Vec<String>, Result<Flow, Failure>) {
    let (steps, end) = steps(events, 1);
    let words = steps.iter().flat_map(|step| step.events.iter().filter_map(short)).collect();
    (words, end)
}

fn short(event: &Event) -> Option<String> {
    Some(match event {
        Event::Alive | Event::Identity(_) | Event::Thinking(_) | Event::ServerTool(_) | Event::Signature { .. } => {
            return None;
        }
        Event::Text { text, .. } => format!("text {text}"),
        Event::Reasoning { text, .. } => format!("reasoning {text}"),
        Event::Refusal { text, .. } => format!("refusal {text}"),
        Event::ToolOpen { call, id, name, .. } => format!("open {call} {id} {name}"),
        Event::ToolArgs { call, args, .. } => format!("args {call} {args}"),
        Event::ToolClose { call, .. } => format!("close {call}"),
        Event::Usage(usage) => format!("usage {:?}/{:?}", usage.prompt, usage.completion),
        Event::Finish { reason, .. } => format!("finish {reason:?}"),
        Event::Extra(extra) => format!("extra {:?} {}", extra.place, Value::Object(extra.fields.clone())),
    })
}

/// A client's request with these fields besides the necessary ones.
fn request(fields: &Value) -> Request {
    let mut body = json!({ "model": "main", "messages": [{ "role": "user", "content": "go" }] });
    for (name, value) in fields.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    match Chat.parse(&HeaderMap::new(), body.to_string().as_bytes()) {
        Ok(request) => request,
        Err(refusal) => panic!("{refusal:?}"),
    }
}

fn target() -> Target {
    Target::new("b", "m-b", DialectId::Chat)
}
