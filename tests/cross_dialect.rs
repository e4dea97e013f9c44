//! Chat Completions clients at Messages providers, and the other way round: bodies as they leave, streams as they come.
#![expect(clippy::expect_used, reason = "a test's panic is its report")]

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use segue::chat::DialectId;
use segue::dialect::{Client, End, Expect, Flow, Provider, anthropic::Anthropic, chat::Chat};
use segue::event::{Event, Step, Usage};
use segue::routing::Target;
use segue::sse::{Decoder, Item};
use segue::turn::resume::Carry;
use serde_json::{Value, json};

fn encoded(client: &dyn Client, body: &Value, provider: DialectId, model: &str) -> (Value, Vec<String>) {
    let request = client.parse(&HeaderMap::new(), body.to_string().as_bytes()).expect("a request");
    let target = Target::new("b", model, provider);
    let provider = segue::dialect::provider(provider).expect("a dialect that is built");
    let wire = provider.encode(&request, &target, &Carry::fresh()).expect("a wire request");
    (serde_json::from_slice(&wire.body).expect("JSON"), wire.dropped)
}

/// The frames that a client gets of a provider's stream.
fn relayed(provider: &dyn Provider, stream: &str, client: &dyn Client, body: &Value) -> String {
    let request = client.parse(&HeaderMap::new(), body.to_string().as_bytes()).expect("a request");
    let mut encoder = client.encoder(&request);
    let mut decoder = provider.decoder(Expect::of(1));
    let mut sse = Decoder::new(1 << 20);
    let (mut out, mut usage) = (BytesMut::new(), Usage::default());
    sse.push(Bytes::copy_from_slice(stream.as_bytes()));
    while let Some(item) = sse.next().expect("a small event") {
        let Item::Event(event) = item else { continue };
        let mut step = Step::default();
        let flow = decoder.event(&event, &mut step).expect("an event");
        for event in &step.events {
            if let Event::Usage(told) = event {
                usage.update((**told).clone());
            }
        }
        encoder.step(&step, &mut out);
        if flow == Flow::Done {
            break;
        }
    }
    encoder.close(End::Complete(&usage), &mut out);
    String::from_utf8(out.to_vec()).expect("text")
}

fn data(out: &str) -> Vec<Value> {
    let lines = out.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).expect("JSON")).collect()
}

#[test]
fn a_chat_history_alternates_at_a_messages_provider() {
    let call = json!({"id": "call_1", "type": "function",
                      "function": {"name": "get_weather", "arguments": "{\"city\":\"x\"}"}});
    let body = json!({
        "model": "main", "seed": 1, "max_completion_tokens": 50,
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": "a"},
            {"role": "user", "content": "b"},
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
            {"role": "user", "content": "c"},
        ],
        "tools": [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}],
    });
    let (sent, dropped) = encoded(&Chat, &body, DialectId::Anthropic, "claude-sonnet-4-5");
    assert_eq!(
        sent,
        json!({
            "model": "claude-sonnet-4-5", "max_tokens": 50, "stream": true, "system": "Be brief.",
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                {"role": "assistant", "content": [
                    {"type": "tool_use", "id": "call_1", "name": "get_weather", "input": {"city": "x"}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "call_1", "content": "sunny"},
                    {"type": "text", "text": "c"}]},
            ],
            "tools": [{"name": "get_weather", "input_schema": {"type": "object", "properties": {}}}],
        })
    );
    assert_eq!(dropped, ["seed"]);
}

#[test]
fn a_messages_history_is_flat_at_a_chat_provider() {
    let body = json!({
        "model": "main", "max_tokens": 64, "system": "s",
        "messages": [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "secret-signature"},
                {"type": "tool_use", "id": "t1", "name": "f", "input": {"k": 1}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "r"}, {"type": "text", "text": "b"}]},
        ],
        "tools": [{"name": "f", "input_schema": {"type": "object", "properties": {}}}],
    });
    let (sent, _) = encoded(&Anthropic, &body, DialectId::Chat, "gpt-4.1");
    let roles: Vec<_> = sent["messages"].as_array().expect("messages").iter().map(|m| m["role"].clone()).collect();
    assert_eq!(json!(roles), json!(["system", "user", "assistant", "tool", "user"]));
    assert_eq!(sent["messages"][2]["tool_calls"][0]["function"], json!({"name": "f", "arguments": "{\"k\":1}"}));
    assert_eq!(sent["messages"][3]["tool_call_id"], "t1");
    assert!(!sent.to_string().contains("secret-signature"), "a signature is its issuer's alone");
}

#[test]
fn a_messages_stream_for_a_chat_client() {
    let transcript = include_str!("golden/anthropic/tools_parallel.sse");
    let body = json!({"model": "main", "stream": true, "messages": [{"role": "user", "content": "x"}]});
    let chunks = data(&relayed(&Anthropic, transcript, &Chat, &body));
    let deltas = || chunks.iter().map(|c| &c["choices"][0]["delta"]);
    let text: String = deltas().filter_map(|d| d["content"].as_str()).collect();
    assert_eq!(text, "Looking.");
    let mut calls = vec![String::new(); 3];
    for call in deltas().filter_map(|d| d["tool_calls"].as_array()).flatten() {
        let index = usize::try_from(call["index"].as_u64().expect("an index")).expect("small");
        calls[index].push_str(call["function"]["arguments"].as_str().unwrap_or_default());
    }
    assert_eq!(calls, ["{\"city\": \"Zürich\"}", "{}", "{\"a\":1}"]);
    let finish = chunks.iter().find_map(|c| c["choices"][0]["finish_reason"].as_str());
    assert_eq!(finish, Some("tool_calls"));
}

#[test]
fn a_chat_stream_for_a_messages_client() {
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let chunk =
            json!({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "gpt", "choices": [choice]});
        format!("data: {chunk}\n\n")
    };
    let call = |fields: Value| json!({"tool_calls": [fields]});
    let stream = [
        chunk(json!({"role": "assistant", "content": ""}), Value::Null),
        chunk(json!({"reasoning_content": "hm"}), Value::Null),
        chunk(json!({"content": "Hi"}), Value::Null),
        chunk(
            call(json!({"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}})),
            Value::Null,
        ),
        chunk(call(json!({"index": 0, "function": {"arguments": "{\"x\""}})), Value::Null),
        chunk(call(json!({"index": 0, "function": {"arguments": ":1}"}})), Value::Null),
        chunk(
            call(json!({"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}})),
            Value::Null,
        ),
        chunk(json!({}), json!("tool_calls")),
        "data: [DONE]\n\n".to_owned(),
    ]
    .concat();
    let body =
        json!({"model": "main", "max_tokens": 9, "stream": true, "messages": [{"role": "user", "content": "x"}]});
    let out = relayed(&Chat, &stream, &Anthropic, &body);
    let events = data(&out);
    let starts: Vec<_> = events.iter().filter(|e| e["type"] == "content_block_start").collect();
    let kinds: Vec<_> = starts.iter().map(|e| (e["index"].clone(), e["content_block"]["type"].clone())).collect();
    assert_eq!(json!(kinds), json!([[0, "thinking"], [1, "text"], [2, "tool_use"], [3, "tool_use"]]));
    let args = |index: u64| -> String {
        let deltas = events.iter().filter(|e| e["index"] == index);
        deltas.filter_map(|e| e["delta"]["partial_json"].as_str()).collect()
    };
    assert_eq!((args(2), args(3)), ("{\"x\":1}".to_owned(), "{}".to_owned()));
    let last = events.iter().find(|e| e["type"] == "message_delta").expect("a last delta");
    assert_eq!(last["delta"]["stop_reason"], "tool_use");
    assert_eq!(events.iter().filter(|e| e["type"] == "message_stop").count(), 1);
}
