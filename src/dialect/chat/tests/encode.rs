//! What goes to a provider: fresh, continued, and from another dialect.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's panic is its report")]

use super::{request, target};
use crate::chat::{DialectId, Effort, Format, Media, Message, Minted, Part, Request, Role, Tool, ToolChoice};
use crate::dialect::chat::Chat;
use crate::dialect::{Credential, Provider, WireRequest};
use crate::failure::Remedy;
use crate::routing::Target;
use crate::turn::form::Form;
use crate::turn::resume::{Anchor, Carry, Continue, How, Origin};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use std::time::SystemTime;

fn encode(request: &Request, target: &Target, carry: &Carry) -> (Value, WireRequest) {
    let wire = Chat.encode(request, target, carry).unwrap();
    (serde_json::from_slice(&wire.body).unwrap(), wire)
}

fn going_on(delivered: &str, how: How, tokens: u64) -> Carry {
    let anchor = Anchor::of(delivered);
    Carry { origin: Origin::Continue(Continue { delivered: delivered.into(), anchor, how, tokens }), ..Carry::fresh() }
}

#[test]
fn a_request_of_the_same_dialect_is_edited() {
    let request = request(&json!({
        "seed": 7, "vendor_field": { "b": 1, "a": [1.0, 2e3] }, "stream": false, "stream_options": { "include_obfuscation": false },
        "tools": [{ "type": "function", "function": { "name": "f" } }], "metadata": { "z": "1", "a": "2" }, "conversation_id": "c",
    }));
    let (body, wire) = encode(&request, &target(), &Carry::fresh());
    let mut expected = Value::Object(request.raw.clone());
    expected["model"] = json!("m-b");
    expected["stream"] = json!(true);
    expected["stream_options"] = json!({ "include_obfuscation": false, "include_usage": true });
    assert_eq!(body, expected);
    let names: Vec<_> = body.as_object().unwrap().keys().cloned().collect();
    assert_eq!(names, ["model", "messages", "seed", "vendor_field", "stream", "stream_options", "tools", "metadata"]);
    assert!(std::str::from_utf8(&wire.body).unwrap().contains(r#"{"b":1,"a":[1.0,2000.0]}"#));
    assert_eq!((&*wire.path, wire.headers.len(), wire.dropped.len()), ("/chat/completions", 0, 0));
}

#[test]
fn what_a_target_lacks_is_left_out_and_named() {
    let request = request(&json!({
        "seed": 7, "reasoning_effort": "high", "max_tokens": 1000, "logit_bias": {}, "stream_options": { "include_usage": true }
    }));
    let mut target = target();
    target.drops = vec!["reasoning_effort".to_owned(), "stream_options".to_owned(), "top_k".to_owned()];
    target.max_output = Some(500);
    let carry = Carry { form: lacking("seed"), ..Carry::fresh() };
    let (body, wire) = encode(&request, &target, &carry);
    assert_eq!(wire.dropped, ["seed", "reasoning_effort", "stream_options"]);
    assert!(["seed", "reasoning_effort", "stream_options"].iter().all(|f| body.get(*f).is_none()));
    assert_eq!((&body["max_tokens"], &body["logit_bias"]), (&json!(500), &json!({})));
}

#[test]
fn a_limit_goes_under_the_name_that_the_target_takes() {
    let old = request(&json!({ "max_tokens": 10 }));
    let mut target = target();
    target.drops = vec!["max_tokens".to_owned()];
    let (body, wire) = encode(&old, &target, &Carry::fresh());
    assert_eq!((body.get("max_tokens"), &body["max_completion_tokens"]), (None, &json!(10)));
    assert!(wire.dropped.is_empty());
    target.drops.push("max_completion_tokens".to_owned());
    assert_eq!(encode(&old, &target, &Carry::fresh()).1.dropped, ["max_tokens"]);
    let both = request(&json!({ "max_tokens": 10, "max_completion_tokens": 20 }));
    let (body, wire) = encode(&both, &super::target(), &Carry::fresh());
    assert_eq!((&body["max_tokens"], &body["max_completion_tokens"]), (&json!(10), &json!(20)));
    assert!(wire.dropped.is_empty());
}

#[test]
fn instruct_adds_the_turn_and_one_ordinary_request() {
    let request = request(&json!({
        "messages": [{ "role": "system", "content": "s" }, { "role": "user", "content": "go", "name": "n" }],
        "max_tokens": 100, "reasoning_effort": "high", "tool_choice": "required", "stop": ["X"],
    }));
    let (fresh, _) = encode(&request, &target(), &Carry::fresh());
    let carry = going_on("One two three ", How::Instruct, 30);
    let (body, _) = encode(&request, &target(), &carry);
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages[..2], fresh["messages"].as_array().unwrap()[..]);
    assert_eq!(messages[2], json!({ "role": "assistant", "content": "One two three " }));
    let Origin::Continue(continued) = &carry.origin else { panic!() };
    assert_eq!(messages[3], json!({ "role": "user", "content": continued.anchor.instruction() }));
    assert_eq!(messages.len(), 4);
    // 13 characters of anchor are 4 tokens.
    assert_eq!(body["max_tokens"], json!(100 - 30 + 4 + 16));
    assert_eq!(body["reasoning_effort"], "low");
    for field in ["tool_choice", "stop", "stream", "stream_options"] {
        assert_eq!(body[field], fresh[field]);
    }
    assert_eq!(encode(&request, &target(), &going_on("x", How::Prefill, 5000)).0["max_tokens"], json!(1));
}

#[test]
fn prefill_is_asked_for_as_each_vendor_wants_it() {
    let request = request(&json!({}));
    let ask = |issuer: &str| {
        let mut target = target();
        target.issuer = issuer.into();
        encode(&request, &target, &going_on("One, two, \n", How::Prefill, 3)).0
    };
    let last = |body: &Value| body["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last(&ask("groq")), json!({ "role": "assistant", "content": "One, two," }));
    assert_eq!(last(&ask("mistral")), json!({ "role": "assistant", "content": "One, two,", "prefix": true }));
    assert_eq!(last(&ask("deepseek"))["prefix"], true);
    assert_eq!(ask("deepseek")["thinking"], json!({ "type": "disabled" }));
    assert_eq!(ask("sglang")["continue_final_message"], true);
    assert_eq!(ask("sglang").get("add_generation_prompt"), None);
    assert_eq!(
        (&ask("vllm")["continue_final_message"], &ask("vllm")["add_generation_prompt"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(ask("groq")["messages"].as_array().unwrap().len(), 2);
    let blank = encode(&request, &target(), &going_on(" \n", How::Prefill, 0)).0;
    assert_eq!(blank["messages"], json!([{ "role": "user", "content": "go" }]));
}

#[test]
fn a_start_that_the_client_gave_is_one_message_with_what_followed() {
    let request = request(
        &json!({ "messages": [{ "role": "user", "content": "go" }, { "role": "assistant", "content": "1 " }] }),
    );
    let (body, _) = encode(&request, &target(), &going_on("2 3", How::Prefill, 1));
    assert_eq!(body["messages"][1], json!({ "role": "assistant", "content": "1 2 3" }));
    assert_eq!(body["messages"].as_array().unwrap().len(), 2);
}

#[test]
fn parts_of_the_history_can_be_left_out() {
    let request = request(&json!({ "messages": [
        { "role": "system", "content": "s" }, { "role": "user", "content": "a" },
        { "role": "assistant", "content": [{ "type": "thinking", "thinking": "t" }, { "type": "text", "text": "b" }],
          "reasoning_content": "r", "reasoning": "r", "reasoning_details": [{ "data": "x" }] },
        { "role": "user", "content": "c" }, { "role": "assistant", "content": "d" },
    ] }));
    let carry = Carry { form: Form::after(&Remedy::StripReasoning), ..Carry::fresh() };
    let (body, _) = encode(&request, &target(), &carry);
    assert_eq!(body["messages"][2], json!({ "role": "assistant", "content": [{ "type": "text", "text": "b" }] }));
    assert_eq!(encode(&request, &target(), &Carry::fresh()).0["messages"], request.raw["messages"]);
    let carry = Carry { last_message_only: true, ..Carry::fresh() };
    let (body, _) = encode(&request, &target(), &carry);
    assert_eq!(body["messages"], json!([{ "role": "system", "content": "s" }, { "role": "user", "content": "c" }]));
}

#[test]
fn whole_answers_with_audio_are_not_streamed() {
    let audio = json!({ "modalities": ["text", "audio"], "audio": { "voice": "x" } });
    let (body, _) = encode(&request(&audio), &target(), &Carry::fresh());
    assert_eq!((&body["stream"], body.get("stream_options")), (&json!(false), None));
}

fn foreign() -> Request {
    let raw = json!({ "model": "main", "max_tokens": 9, "top_k": 5, "metadata": { "user_id": "u" }, "system": "s", "thinking": {} });
    let message = |role, parts| Message { role, parts };
    let image = || Part::Image(Media::Data { kind: "image/png".to_owned(), data: "AA".to_owned() });
    let thought = Part::Reasoning {
        text: "hm".to_owned(),
        signature: Some("sig".to_owned()),
        issuer: DialectId::Anthropic,
        redacted: false,
    };
    let call = |id: &str| Part::ToolCall { id: id.to_owned(), name: "f".to_owned(), args: String::new() };
    let result = |id: &str, parts| Part::ToolResult { id: id.to_owned(), parts, failed: false };
    Request {
        origin: DialectId::Anthropic,
        raw: raw.as_object().cloned().unwrap_or_else(Map::new),
        model: "main".to_owned(),
        system: vec![Part::text("s1"), Part::Text { text: "s2".to_owned(), cache: Some(json!({})) }],
        messages: vec![
            message(Role::User, vec![Part::text("a"), image()]),
            message(Role::Assistant, vec![thought, Part::text("b"), call("t1"), call("t2")]),
            message(
                Role::User,
                vec![
                    result("t1", vec![Part::text("1"), image()]),
                    result("t2", vec![Part::text("2")]),
                    Part::text("c"),
                ],
            ),
            message(Role::Assistant, vec![Part::Other(DialectId::Anthropic, json!({ "type": "server_tool_use" }))]),
        ],
        tools: vec![Tool {
            name: "f".to_owned(),
            description: Some("d".to_owned()),
            parameters: Some(json!({ "type": "object" })),
            strict: None,
            cache: None,
        }],
        server_tools: vec![json!({ "type": "web_search_20260101", "name": "web_search" })],
        tool_choice: Some(ToolChoice::Required),
        parallel_tool_calls: Some(false),
        format: Format::Json,
        stop: ["1", "2", "3", "4", "5"].map(str::to_owned).to_vec(),
        max_tokens: Some(9),
        temperature: Some(0.5),
        top_p: None,
        effort: Some(Effort::Max),
        choices: 1,
        user: Some("u".to_owned()),
        stream: true,
        include_usage: true,
        audio: false,
        stored: false,
        extensions: crate::chat::Extensions::default(),
        minted: Minted::default(),
        passed: Vec::new(),
    }
}

#[test]
fn a_request_of_another_dialect_is_written_anew() {
    let (body, wire) = encode(&foreign(), &target(), &Carry::fresh());
    let function = |id: &str| json!({ "id": id, "type": "function", "function": { "name": "f", "arguments": "{}" } });
    let image = json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,AA" } });
    let expected = json!({
        "model": "m-b",
        "messages": [
            { "role": "system", "content": "s1\n\ns2" },
            { "role": "user", "content": [{ "type": "text", "text": "a" }, image] },
            { "role": "assistant", "content": "b", "tool_calls": [function("t1"), function("t2")] },
            { "role": "tool", "tool_call_id": "t1", "content": "1" },
            { "role": "tool", "tool_call_id": "t2", "content": "2" },
            { "role": "user", "content": [image, { "type": "text", "text": "c" }] },
        ],
        "tools": [{ "type": "function", "function": { "name": "f", "description": "d", "parameters": { "type": "object" } } }],
        "tool_choice": "required", "parallel_tool_calls": false, "response_format": { "type": "json_object" },
        "stop": ["1", "2", "3", "4"], "max_tokens": 9, "temperature": 0.5, "user": "u",
        "stream": true, "stream_options": { "include_usage": true },
    });
    assert_eq!(body, expected);
    let dropped =
        ["cache_control", "thinking", "messages.server_tool_use", "tools.web_search", "stop_sequences[4]", "top_k"];
    assert_eq!(wire.dropped, dropped);
}

#[test]
fn what_is_left_out_is_named_up_to_a_bound_however_much_it_is() {
    let mut request = foreign();
    request.stop = vec!["x".to_owned(); 200_000];
    let long = Part::Other(DialectId::Anthropic, json!({ "type": "é".repeat(100_000) }));
    request.messages.push(Message { role: Role::User, parts: vec![long, Part::text("d")] });
    let (body, wire) = encode(&request, &target(), &Carry::fresh());
    assert_eq!(body["stop"].as_array().unwrap().len(), 4);
    assert!(wire.dropped.len() <= 64, "{} names", wire.dropped.len());
    assert!(wire.dropped.iter().all(|name| name.len() <= 64), "{:?}", wire.dropped);
}

#[test]
fn targets_that_reason_are_asked_in_their_words() {
    let mut target = target();
    target.reasons = true;
    target.drops = vec!["stop".to_owned()];
    let (body, wire) = encode(&foreign(), &target, &going_on("b", How::Instruct, 1));
    assert_eq!((&body["reasoning_effort"], &body["max_completion_tokens"]), (&json!("low"), &json!(9 - 1 + 1 + 16)));
    assert_eq!((body.get("max_tokens"), body.get("stop")), (None, None));
    assert!(wire.dropped.iter().any(|d| d == "stop_sequences"));
    assert_eq!(body["messages"].as_array().unwrap().len(), 8);
}

#[test]
fn credentials_are_bearers() {
    let signed = |key| {
        let mut wire =
            WireRequest { path: String::new(), headers: Vec::new(), body: Bytes::new(), dropped: Vec::new() };
        Chat.sign(&mut wire, &Credential { key, version: None }, SystemTime::UNIX_EPOCH);
        wire.headers
    };
    let headers = signed(Some("key"));
    assert!(
        headers.len() == 1
            && headers[0].0 == "authorization"
            && headers[0].1 == "Bearer key"
            && headers[0].1.is_sensitive()
    );
    assert!(signed(None).is_empty() && signed(Some("a\nb")).is_empty());
}

/// The form of a target that does not take `field`.
fn lacking(field: &str) -> Form {
    Form::after(&Remedy::Drop { fields: vec![field.to_owned()], lasting: true })
}
