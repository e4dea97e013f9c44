//! What bytes do not bound is bounded by count: at the bound it passes, one beyond it is refused and named.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use segue::bounds::Bounds;
use segue::chat::DialectId;
use segue::dialect::{self, Expect, Reason};
use segue::event::{Event, Identity, Step};
use segue::failure::{Failure, Kind};
use segue::sse;
use serde_json::{Value, json};

/// Small bounds, so that what is over one of them is easy to read.
const BOUNDS: Bounds =
    Bounds { depth: 12, values: 300, messages: 4, parts: 6, tools: 3, stops: 2, choices: 2, calls: 3 };

/// Who reads, the bound and the field that it names, how many are allowed, and a request with so many.
type Row<'a> = (DialectId, &'a str, &'a str, usize, &'a dyn Fn(usize) -> Value);

#[test]
fn a_request_over_a_bound_is_refused_by_name_and_one_at_it_is_served() {
    let message = json!({ "role": "user", "content": "a" });
    let parts = |n: usize| json!([{ "role": "user", "content": vec![json!({ "type": "text", "text": "a" }); n] }]);
    let deep = |n: usize| (0..n).fold(json!(1), |inner, _| json!([inner]));
    let chat_tool = json!({ "type": "function", "function": { "name": "f" } });
    let tool = json!({ "name": "f", "input_schema": {} });
    let rows: [Row<'_>; 11] = [
        (DialectId::Chat, "max_messages", "messages", 4, &|n| json!({ "messages": vec![message.clone(); n] })),
        (DialectId::Chat, "max_parts", "messages", 6, &|n| json!({ "messages": parts(n) })),
        (DialectId::Chat, "max_tools", "tools", 3, &|n| json!({ "tools": vec![chat_tool.clone(); n] })),
        (DialectId::Chat, "max_stops", "stop", 2, &|n| json!({ "stop": vec!["x"; n] })),
        (DialectId::Chat, "max_choices", "n", 2, &|n| json!({ "n": n })),
        (DialectId::Chat, "max_depth", "", 11, &|n| json!({ "metadata": deep(n) })),
        (DialectId::Chat, "max_values", "", 280, &|n| json!({ "metadata": vec![0; n] })),
        (DialectId::Anthropic, "max_messages", "messages", 4, &|n| json!({ "messages": vec![message.clone(); n] })),
        (DialectId::Anthropic, "max_parts", "messages", 6, &|n| json!({ "messages": parts(n) })),
        (DialectId::Anthropic, "max_tools", "tools", 3, &|n| json!({ "tools": vec![tool.clone(); n] })),
        (DialectId::Anthropic, "max_stops", "stop", 2, &|n| json!({ "stop_sequences": vec!["x"; n] })),
    ];
    for (id, key, field, most, fields) in rows {
        let read = |n: usize| {
            let mut body = json!({ "model": "m", "max_tokens": 9, "messages": [message] });
            body.as_object_mut().unwrap().extend(fields(n).as_object().unwrap().clone());
            let client = dialect::client(id).unwrap();
            dialect::read(client, &HeaderMap::new(), body.to_string().as_bytes(), &BOUNDS).map(drop)
        };
        assert_eq!(read(most), Ok(()), "{key} of {}", id.name());
        let over = if key == "max_values" { 320 } else { most + 1 };
        let refusal = read(over).unwrap_err();
        assert_eq!((refusal.reason, &*refusal.code), (Reason::Request, "too_much"), "{key}");
        assert!(refusal.message.contains(&format!("limits.{key}")), "{}", refusal.message);
        assert_eq!(refusal.param.as_deref().unwrap_or_default(), field, "{key}");
    }
}

#[test]
fn an_answer_over_a_bound_fails_its_attempt_in_words() {
    let entry = json!({ "index": 0, "id": "a", "function": { "name": "f", "arguments": "1" } });
    let call = |at: usize| {
        let entry = json!({ "index": at, "id": format!("c{at}"), "function": { "name": "f", "arguments": "{}" } });
        json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [entry] } }] }).to_string()
    };
    let chunk = |delta: Value| json!({ "choices": [{ "index": 0, "delta": delta }] }).to_string();
    let block = |at: usize| {
        let block = json!({ "type": "tool_use", "id": format!("c{at}"), "name": "f", "input": {} });
        json!({ "type": "content_block_start", "index": at, "content_block": block }).to_string()
    };
    let named = |n: usize| json!([{ "id": "a", "function": { "name": "f".repeat(n), "arguments": "{}" } }]);
    let rows: [(DialectId, &str, Vec<String>, Vec<String>); 6] = [
        (DialectId::Chat, "max_calls", (0..3).map(call).collect(), (0..4).map(call).collect()),
        (
            DialectId::Chat,
            "max_calls",
            vec![chunk(json!({ "tool_calls": vec![entry.clone(); 3] }))],
            vec![chunk(json!({ "tool_calls": vec![entry; 4] }))],
        ),
        (
            DialectId::Chat,
            "max_values",
            vec![chunk(json!({ "content": "a", "x": vec![0; 200] }))],
            vec![chunk(json!({ "content": "a", "x": vec![0; 400] }))],
        ),
        (
            DialectId::Chat,
            "name",
            vec![chunk(json!({ "tool_calls": named(100) }))],
            vec![chunk(json!({ "tool_calls": named(5000) }))],
        ),
        (DialectId::Anthropic, "max_calls", (0..3).map(block).collect(), (0..4).map(block).collect()),
        (
            DialectId::Anthropic,
            "max_values",
            vec![json!({ "type": "ping", "x": vec![0; 200] }).to_string()],
            vec![json!({ "type": "ping", "x": vec![0; 400] }).to_string()],
        ),
    ];
    for (id, words, within, over) in rows {
        assert!(decode(id, &within).is_ok(), "{words} of {}", id.name());
        let failure = decode(id, &over).unwrap_err();
        assert_eq!(failure.kind, Kind::Malformed, "{words} of {}", id.name());
        assert!(failure.said.message.contains(words), "{}", failure.said.message);
    }
    for (id, body) in [
        (DialectId::Chat, json!({ "choices": [{ "message": { "content": "a", "x": vec![0; 400] } }] })),
        (DialectId::Anthropic, json!({ "content": [], "x": vec![0; 400] })),
        (DialectId::Anthropic, json!({ "content": vec![json!({ "type": "text", "text": "a" }); 7] })),
    ] {
        let whole = dialect::provider(id).unwrap().whole(body.to_string().as_bytes(), expect());
        assert_eq!(whole.unwrap_err().kind, Kind::Malformed, "a whole answer of {}", id.name());
    }
}

#[test]
fn arguments_that_nobody_is_told_are_bounded_as_a_turn_is() {
    // A call without a name: nothing of it can be told, and all of it is kept.
    let piece = json!({ "index": 0, "id": "a", "function": { "arguments": "1".repeat(100) } });
    let event = json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [piece] } }] }).to_string();
    assert!(decode(DialectId::Chat, &vec![event.clone(); 5]).is_ok());
    let failure = decode(DialectId::Chat, &vec![event; 20]).unwrap_err();
    assert_eq!(failure.kind, Kind::Framing);
    assert!(failure.said.message.contains("limits.max_turn"), "{}", failure.said.message);
    // A signature is kept until its block ends.
    let start = json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "thinking" } });
    let signed = json!({ "type": "content_block_delta", "index": 0,
        "delta": { "type": "signature_delta", "signature": "s".repeat(100) } });
    let events: Vec<String> = std::iter::once(start).chain(vec![signed; 20]).map(|event| event.to_string()).collect();
    assert!(decode(DialectId::Anthropic, &events[..6]).is_ok());
    assert_eq!(decode(DialectId::Anthropic, &events).unwrap_err().kind, Kind::Framing);
}

#[test]
fn a_providers_long_names_are_not_told_in_every_chunk() {
    let long = "x".repeat(Identity::BYTES + 1);
    let chat = |id: &str, model: &str| {
        let choice = json!([{ "index": 0, "delta": { "content": "a" }, "finish_reason": null }]);
        json!({ "id": id, "object": "chat.completion.chunk", "created": 1, "model": model, "choices": choice })
            .to_string()
    };
    let message = |id: &str, model: &str| {
        json!({ "type": "message_start", "message": { "id": id, "model": model, "usage": {} } }).to_string()
    };
    for (id, event) in [(DialectId::Chat, chat(&long, &long)), (DialectId::Anthropic, message(&long, &long))] {
        let steps = decode(id, &[event]).unwrap();
        let events: Vec<&Event> = steps.iter().flat_map(|step| &step.events).collect();
        let Some(Event::Identity(told)) = events.first() else { panic_with(&events) };
        assert_eq!((&*told.id, told.model.len()), ("", Identity::BYTES), "{}", id.name());
        assert!(steps.iter().all(|step| step.raw.is_none()), "it does not go on as it came");
    }
    // The client is given an id that was minted.
    let steps = decode(DialectId::Chat, &[chat(&long, "m"), chat(&long, "m")]).unwrap();
    let body = br#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
    let client = dialect::client(DialectId::Chat).unwrap();
    let mut encoder = client.encoder(&client.parse(&HeaderMap::new(), body).unwrap());
    let mut out = BytesMut::new();
    steps.iter().for_each(|step| encoder.step(step, &mut out));
    assert!(out.len() < 1000, "{}", String::from_utf8_lossy(&out));
    let short = chat("c1", "m");
    let steps = decode(DialectId::Chat, &[short.clone(), short]).unwrap();
    assert!(steps.iter().all(|step| step.raw.is_some()), "names of the usual length go on as they came");
}

fn panic_with(events: &[&Event]) -> ! {
    unreachable!("no identity first: {events:?}")
}

fn expect() -> Expect {
    Expect { bounds: BOUNDS, max_turn: 1000, ..Expect::of(1) }
}

fn decode(id: DialectId, events: &[String]) -> Result<Vec<Step>, Failure> {
    let mut decoder = dialect::provider(id).unwrap().decoder(expect());
    let mut steps = Vec::new();
    for data in events {
        let event = sse::Event { name: Bytes::new(), data: Bytes::from(data.clone()), single_line: true };
        let mut step = Step::default();
        decoder.event(&event, &mut step)?;
        steps.push(step);
    }
    Ok(steps)
}
