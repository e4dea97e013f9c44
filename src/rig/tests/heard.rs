//! What a stream said: a small reader of its own for each API, and the same from signals.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's panic is its report")]

use crate::event::{Event, Finish, Signal};
use crate::rig::wire::Api;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// What a stream said, in no API.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Heard {
    pub(super) texts: BTreeMap<u64, String>,
    pub(super) reasoning: String,
    pub(super) refusal: String,
    pub(super) tools: Vec<(String, String, String)>,
    pub(super) finishes: BTreeMap<u64, String>,
    /// Prompt and completion.
    pub(super) usage: Option<(u64, u64)>,
    pub(super) opened: bool,
    pub(super) done: bool,
    pub(super) errors: usize,
    pub(super) malformed: usize,
    /// Bytes after the last whole event.
    pub(super) rest: Vec<u8>,
}

/// Cuts a body into events (name, data), comments left out; the second is what follows the last blank line.
pub(super) fn events(body: &[u8]) -> (Vec<(String, String)>, Vec<u8>) {
    let body = body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(body);
    let (mut events, mut at, mut line_start, mut after) = (Vec::new(), 0, 0, 0);
    let (mut name, mut data) = (String::new(), Vec::<String>::new());
    while at < body.len() {
        if body[at] != b'\n' && body[at] != b'\r' {
            at += 1;
            continue;
        }
        let line = String::from_utf8(body[line_start..at].to_vec()).unwrap();
        at += if body[at..].starts_with(b"\r\n") { 2 } else { 1 };
        line_start = at;
        if line.is_empty() {
            if !data.is_empty() {
                events.push((std::mem::take(&mut name), data.join("\n")));
            }
            data.clear();
            after = at;
        } else if !line.starts_with(':') {
            let (field, value) = line.split_once(':').unwrap();
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => name = value.to_owned(),
                "data" => data.push(value.to_owned()),
                other => panic!("field {other}"),
            }
        }
    }
    (events, body[after..].to_vec())
}

/// Reads a body.
pub(super) fn read(api: Api, body: &[u8]) -> Heard {
    let (events, rest) = events(body);
    let mut heard = Heard { rest, ..Heard::default() };
    for (name, data) in events {
        assert!(!heard.done, "nothing follows the terminator");
        if data == "[DONE]" {
            assert_eq!(api, Api::Chat);
            heard.done = true;
            continue;
        }
        let Ok(json) = serde_json::from_str::<Value>(&data) else {
            heard.malformed += 1;
            continue;
        };
        match api {
            Api::Chat => {
                assert_eq!(name, "", "chat events have no names");
                chat(&json, &mut heard);
            }
            Api::Anthropic => {
                assert_eq!(json["type"], name.as_str());
                anthropic(&json, &mut heard);
            }
            Api::Responses => panic!("its own reader is the dialect's"),
        }
    }
    heard
}

fn chat(json: &Value, heard: &mut Heard) {
    if json.get("error").is_some() {
        heard.errors += 1;
        return;
    }
    assert_eq!(json["object"], "chat.completion.chunk");
    assert!(json["id"].as_str().unwrap().starts_with("chatcmpl-"));
    assert!(json["created"].as_u64().unwrap() > 1_600_000_000 && json["model"].is_string());
    if let Some(usage) = json["usage"].as_object() {
        assert_eq!(json["choices"].as_array().unwrap().len(), 0);
        heard.usage = Some((usage["prompt_tokens"].as_u64().unwrap(), usage["completion_tokens"].as_u64().unwrap()));
    }
    for choice in json["choices"].as_array().unwrap() {
        let index = choice["index"].as_u64().unwrap();
        let delta = &choice["delta"];
        if delta.get("role").is_some() {
            assert!(!heard.opened, "one role");
            heard.opened = true;
        }
        let text = |field: &str| delta[field].as_str().unwrap_or_default();
        if !text("content").is_empty() {
            heard.texts.entry(index).or_default().push_str(text("content"));
        }
        heard.reasoning.push_str(text("reasoning"));
        heard.reasoning.push_str(text("reasoning_content"));
        heard.refusal.push_str(text("refusal"));
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            let at = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
            if let Some(id) = call["id"].as_str() {
                assert_eq!((at, call["type"].as_str()), (heard.tools.len(), Some("function")));
                heard.tools.push((id.into(), call["function"]["name"].as_str().unwrap().into(), String::new()));
            }
            heard.tools[at].2.push_str(call["function"]["arguments"].as_str().unwrap());
        }
        if let Some(reason) = choice["finish_reason"].as_str() {
            assert!(heard.finishes.insert(index, reason.into()).is_none(), "one finish");
        }
    }
}

fn anthropic(json: &Value, heard: &mut Heard) {
    match json["type"].as_str().unwrap() {
        "message_start" => {
            assert!(!heard.opened && json["message"]["content"].as_array().unwrap().is_empty());
            heard.opened = true;
        }
        "content_block_start" if json["content_block"]["type"] == "tool_use" => {
            let block = &json["content_block"];
            let text = |field: &str| block[field].as_str().unwrap().to_owned();
            heard.tools.push((text("id"), text("name"), String::new()));
        }
        "content_block_start" | "content_block_stop" | "ping" => {}
        "content_block_delta" => {
            let delta = &json["delta"];
            let text = |field: &str| delta[field].as_str().unwrap();
            match delta["type"].as_str().unwrap() {
                "text_delta" => heard.texts.entry(0).or_default().push_str(text("text")),
                "thinking_delta" => heard.reasoning.push_str(text("thinking")),
                "input_json_delta" => heard.tools.last_mut().unwrap().2.push_str(text("partial_json")),
                "signature_delta" => assert!(!text("signature").is_empty()),
                other => panic!("{other}"),
            }
        }
        "message_delta" => {
            let reason = match json["delta"]["stop_reason"].as_str().unwrap() {
                "end_turn" => "stop",
                "max_tokens" => "length",
                "tool_use" => "tool_calls",
                "refusal" => "content_filter",
                other => panic!("{other}"),
            };
            heard.finishes.insert(0, reason.into());
            heard.usage = json["usage"]
                .as_object()
                .map(|usage| (usage["input_tokens"].as_u64().unwrap(), usage["output_tokens"].as_u64().unwrap()));
        }
        "message_stop" => heard.done = true,
        "error" => {
            assert!(json["error"]["type"].is_string() && json["error"]["message"].is_string());
            heard.errors += 1;
        }
        other => panic!("{other}"),
    }
}

/// What signals say. The finish is one that a terminator stands for, too.
pub(super) fn signals(signals: &[(Duration, Signal)]) -> Heard {
    let mut heard = Heard::default();
    for (_, signal) in signals {
        let Signal::Step(step) = signal else { continue };
        for event in &step.events {
            match event {
                Event::Identity(_) => heard.opened = true,
                Event::Text { choice, text } => heard.texts.entry(u64::from(*choice)).or_default().push_str(text),
                Event::Reasoning { text, .. } => heard.reasoning.push_str(text),
                Event::Refusal { text, .. } => heard.refusal.push_str(text),
                Event::ToolOpen { id, name, .. } => heard.tools.push((id.clone(), name.clone(), String::new())),
                Event::ToolArgs { call, args, .. } => {
                    heard.tools[usize::try_from(*call).unwrap()].2.push_str(args);
                }
                Event::Usage(usage) => heard.usage = usage.prompt.zip(usage.completion),
                Event::Finish { choice, reason, .. } => {
                    let reason = match reason {
                        Finish::Stop => "stop",
                        Finish::Length => "length",
                        Finish::ToolCalls => "tool_calls",
                        Finish::ContentFilter => "content_filter",
                        Finish::Pause | Finish::Other(_) => panic!("{reason:?}"),
                    };
                    heard.finishes.insert(u64::from(*choice), reason.into());
                }
                Event::Alive
                | Event::Thinking(_)
                | Event::ServerTool(_)
                | Event::Signature { .. }
                | Event::ToolClose { .. }
                | Event::Extra(_) => {}
            }
        }
    }
    heard
}
