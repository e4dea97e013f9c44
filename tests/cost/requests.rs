//! What a client sends, read and written for each kind of target.

use super::measure::{Dear, MANY, PLACED, linear, report};
use super::shapes::{SHAPES, Shape, list};
use super::{bounds, lifted};
use http::HeaderMap;
use segue::bounds::Bounds;
use segue::chat::{DialectId, Request};
use segue::dialect::{self, Client};
use segue::routing::Target;
use segue::store::{Conversation, replay};
use segue::turn::resume::{Anchor, Carry, Continue, How, Origin};
use std::sync::Arc;

const DIALECTS: [DialectId; 3] = [DialectId::Chat, DialectId::Anthropic, DialectId::Responses];

const RESPONSES: [&str; 11] = [
    "@",
    r#"{"model":"m","input":@}"#,
    r#"{"model":"m","instructions":@,"input":[{"role":"user","content":@}]}"#,
    r#"{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":@},{"type":"input_file","file_data":@,"filename":@}]}]}"#,
    r#"{"model":"m","input":[{"type":"function_call","call_id":"a","name":"f","arguments":@},{"type":"function_call_output","call_id":"a","output":@}]}"#,
    r#"{"model":"m","input":[{"type":"custom_tool_call","call_id":"a","name":"f","input":@},{"type":"custom_tool_call_output","call_id":"a","output":@}]}"#,
    r#"{"model":"m","input":[{"role":"user","content":"a"},{"type":"reasoning","summary":@,"encrypted_content":@,"content":@}]}"#,
    r#"{"model":"m","input":"a","tools":@,"tool_choice":@}"#,
    r#"{"model":"m","input":"a","tools":[{"type":"custom","name":"f","format":{"type":"grammar","definition":@}},{"type":"function","name":"g","parameters":@}]}"#,
    r#"{"model":"m","input":"a","text":{"format":{"type":"json_schema","schema":@}},"include":@,"metadata":@}"#,
    r#"{"model":"m","input":"a","x_unknown":@,"reasoning":@}"#,
];

/// Whole inputs that consist of many of one thing.
const MANY_RESPONSES: [Shape; 6] = [
    ("one user's messages", |_| r#"{"role":"user","content":"a"}"#.to_owned()),
    ("results without a call", |at| format!(r#"{{"type":"function_call_output","call_id":"c{at}","output":"b"}}"#)),
    ("calls without a result", |at| {
        format!(r#"{{"type":"function_call","call_id":"c{at}","name":"f","arguments":"{{}}"}}"#)
    }),
    ("calls of one id, and late results", |at| match at % 3 {
        0 => r#"{"type":"function_call","call_id":"c","name":"f","arguments":"{"}"#.to_owned(),
        1 => r#"{"role":"user","content":"a"}"#.to_owned(),
        _ => r#"{"type":"function_call_output","call_id":"c","output":"b"}"#.to_owned(),
    }),
    ("thoughts", |_| r#"{"type":"reasoning","summary":[],"encrypted_content":"segue:chat:signed:"}"#.to_owned()),
    ("references", |at| format!(r#"{{"type":"item_reference","id":"msg_{at:036x}"}}"#)),
];

/// Where a foreign value may stand in a request: `@` is its place.
const CHAT: [&str; 16] = [
    "@",
    r#"{"model":"m","messages":@}"#,
    r#"{"model":@,"messages":[{"role":"user","content":"hi"}]}"#,
    r#"{"model":"m","messages":[{"role":"user","content":@}]}"#,
    r#"{"model":"m","messages":[{"role":"system","content":@},{"role":"user","content":"hi"}]}"#,
    r#"{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":@,"reasoning_details":@}]}"#,
    r#"{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":@},{"role":"tool","tool_call_id":"a","content":@}]}"#,
    r#"{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":@}}]},{"role":"tool","tool_call_id":"a","content":"b"}]}"#,
    r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":@}"#,
    r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f","description":@,"parameters":@}}],"tool_choice":@}"#,
    r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stop":@}"#,
    r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":@}}}"#,
    r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stream_options":@,"metadata":@}"#,
    r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"conversation_id":@}"#,
    r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"user":@,"x_unknown":@}"#,
    r#"{"messages":[{"role":"user","content":"hi","name":@}],"model":"m","temperature":@,"n":@,"seed":@}"#,
];

const ANTHROPIC: [&str; 12] = [
    "@",
    r#"{"model":"m","max_tokens":9,"messages":@}"#,
    r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":@}]}"#,
    r#"{"model":"m","max_tokens":9,"system":@,"messages":[{"role":"user","content":"hi"}]}"#,
    r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":@}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":@}]}]}"#,
    r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"thinking","thinking":@,"signature":@}]}]}"#,
    r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"text/plain","data":@}},{"type":"x","y":@}]}]}"#,
    r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"tools":@}"#,
    r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"tools":[{"name":"f","description":@,"input_schema":@}],"tool_choice":@}"#,
    r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"stop_sequences":@,"metadata":@}"#,
    r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"output_config":@,"thinking":@}"#,
    r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"x_unknown":@}"#,
];

/// Whole requests that consist of many of one thing.
const MANY_CHAT: [Shape; 7] = [
    ("one user's messages", |_| r#"{"role":"user","content":"a"}"#.to_owned()),
    ("instructions", |_| r#"{"role":"system","content":"a"}"#.to_owned()),
    ("results without a call", |at| format!(r#"{{"role":"tool","tool_call_id":"c{at}","content":"b"}}"#)),
    ("calls without a result", |at| {
        format!(
            r#"{{"role":"assistant","tool_calls":[{{"id":"c{at}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}]}}"#
        )
    }),
    ("calls of one id", |at| {
        if at % 2 == 0 {
            r#"{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{"}}]}"#.to_owned()
        } else {
            r#"{"role":"tool","tool_call_id":"c","content":"b"}"#.to_owned()
        }
    }),
    ("calls of ids that collide", |at| {
        format!(
            r#"{{"role":"assistant","tool_calls":[{{"id":"c.{}","type":"function","function":{{"name":"f","arguments":"1"}}}}]}}"#,
            at % 2
        )
    }),
    ("thoughts", |_| r#"{"role":"assistant","reasoning_content":"hm","content":null}"#.to_owned()),
];

#[test]
fn reading_and_writing_a_request_is_linear() {
    let mut dear = Vec::new();
    let all =
        [(DialectId::Chat, &CHAT[..]), (DialectId::Anthropic, &ANTHROPIC[..]), (DialectId::Responses, &RESPONSES[..])];
    for (id, templates) in all {
        for template in templates {
            for (shape, make) in SHAPES {
                let what = || format!("{} {template}, {shape}", id.name());
                let slots = template.matches('@').count().max(1);
                let make = |n: usize| {
                    let body = template.replace('@', &make(n / slots));
                    let length = body.len();
                    (body, length)
                };
                dear.extend(check(&what, PLACED, id, &make, &lifted()));
            }
        }
    }
    for (bound, bounds) in bounds() {
        for (shape, unit) in MANY_CHAT {
            let what = || format!("chat, many {shape}{bound}");
            let make = |n: usize| {
                let body = format!(r#"{{"model":"m","messages":{}}}"#, list(n, unit));
                let length = body.len();
                (body, length)
            };
            dear.extend(check(&what, MANY, DialectId::Chat, &make, &bounds));
        }
        for (shape, unit) in MANY_RESPONSES {
            let what = || format!("responses, many {shape}{bound}");
            let make = |n: usize| {
                let body = format!(r#"{{"model":"m","input":{}}}"#, list(n, unit));
                let length = body.len();
                (body, length)
            };
            dear.extend(check(&what, MANY, DialectId::Responses, &make, &bounds));
        }
    }
    report(&dear);
}

fn check(
    what: &dyn Fn() -> String,
    size: usize,
    id: DialectId,
    make: &dyn Fn(usize) -> (String, usize),
    bounds: &Bounds,
) -> Option<Dear> {
    let work = |body: &String| {
        let client = dialect::client(id).unwrap();
        let Ok(request) = dialect::read(client, &HeaderMap::new(), body.as_bytes(), bounds) else { return };
        serve(client, &request);
    };
    linear(what, (size, HEAP), make, &work)
}

/// What becomes of a request before anybody has answered.
fn serve(client: &dyn Client, request: &Request) {
    std::hint::black_box(request.estimated_prompt());
    for id in DIALECTS {
        let target = Target::new("c", "claude-sonnet-4-5", id);
        for carry in [Carry::fresh(), going_on()] {
            let _ = std::hint::black_box(dialect::provider(id).unwrap().encode(request, &target, &carry));
        }
    }
    let history = client.history();
    let turn: Arc<str> = "turn".into();
    let mut kept = Conversation::default();
    kept.ask(replay::full(&kept, request, history, &turn));
    let _ = std::hint::black_box(replay::full(&kept, request, history, &turn));
    let _ = std::hint::black_box(replay::append(&kept, request, history, &turn, None));
}

fn going_on() -> Carry {
    let delivered: Arc<str> = "The answer that was told so far, and which goes on".into();
    let anchor = Anchor::of(&delivered);
    Carry { origin: Origin::Continue(Continue { delivered, anchor, how: How::Instruct, tokens: 12 }), ..Carry::fresh() }
}

/// A request costs no more heap than so many times its bytes, in all of its forms together: the smallest values cost most.
const HEAP: u64 = 400;
