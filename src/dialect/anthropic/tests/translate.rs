//! Requests of other dialects as Messages bodies: each trap by name.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test's panic is its report")]

use crate::chat::{DialectId, Extensions, Format, Media, Message, Minted, Part, Request, Role, Tool, ToolChoice};
use crate::dialect::{Provider, anthropic::Anthropic};
use crate::failure::Remedy;
use crate::routing::Target;
use crate::turn::form::Form;
use crate::turn::resume::{Anchor, Carry, Continue, How, Origin};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

fn chat(messages: Vec<Message>) -> Request {
    Request {
        origin: DialectId::Chat,
        raw: Map::new(),
        passed: Vec::new(),
        model: "main".to_owned(),
        system: Vec::new(),
        messages,
        tools: Vec::new(),
        server_tools: Vec::new(),
        tool_choice: None,
        parallel_tool_calls: None,
        format: Format::Text,
        stop: Vec::new(),
        max_tokens: None,
        temperature: None,
        top_p: None,
        effort: None,
        choices: 1,
        user: None,
        stream: true,
        include_usage: false,
        audio: false,
        stored: false,
        extensions: Extensions::default(),
        minted: Minted::default(),
    }
}

fn say(role: Role, text: &str) -> Message {
    Message { role, parts: vec![Part::text(text)] }
}

fn user(text: &str) -> Message {
    say(Role::User, text)
}

fn assistant(text: &str) -> Message {
    say(Role::Assistant, text)
}

fn calls(list: &[(&str, &str, &str)]) -> Message {
    let call = |(id, name, args): &(&str, &str, &str)| Part::ToolCall {
        id: (*id).to_owned(),
        name: (*name).to_owned(),
        args: (*args).to_owned(),
    };
    Message { role: Role::Assistant, parts: list.iter().map(call).collect() }
}

fn result(id: &str, text: &str) -> Message {
    let part = Part::ToolResult { id: id.to_owned(), parts: vec![Part::text(text)], failed: false };
    Message { role: Role::Tool, parts: vec![part] }
}

fn weather() -> Tool {
    Tool {
        name: "weather".to_owned(),
        description: Some("Tells the weather.".to_owned()),
        parameters: Some(json!({"type": "object", "properties": {"city": {"type": "string"}}})),
        strict: None,
        cache: None,
    }
}

fn to(model: &str) -> Target {
    Target::new("b", model, DialectId::Anthropic)
}

fn encode_as(request: &Request, target: &Target, carry: &Carry) -> (Value, Vec<String>) {
    let wire = Anthropic.encode(request, target, carry).expect("a request");
    assert_eq!(wire.path, "/messages");
    (serde_json::from_slice(&wire.body).unwrap(), wire.dropped)
}

fn encode(request: &Request) -> (Value, Vec<String>) {
    encode_as(request, &to("claude-sonnet-4-5"), &Carry::fresh())
}

fn go_on(delivered: &str, how: How) -> Carry {
    let anchor = Anchor::of(delivered);
    Carry {
        origin: Origin::Continue(Continue { delivered: delivered.into(), anchor, how, tokens: 4 }),
        ..Carry::fresh()
    }
}

#[test]
fn the_least_request() {
    let (body, dropped) = encode(&chat(vec![user("hi")]));
    assert_eq!(
        body,
        json!({
            "model": "claude-sonnet-4-5", "max_tokens": 4096, "stream": true,
            "messages": [{"role": "user", "content": "hi"}],
        })
    );
    assert!(dropped.is_empty());
}

#[test]
fn roles_alternate_and_results_follow_their_calls() {
    let history = vec![
        user("a"),
        user("b"),
        calls(&[("call_1", "weather", "{\"city\":\"x\"}"), ("call_2", "weather", "")]),
        result("call_2", "rain"),
        result("call_1", "sunny"),
        user("c"),
    ];
    let (body, _) = encode(&Request { tools: vec![weather()], ..chat(history) });
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "x"}},
                {"type": "tool_use", "id": "call_2", "name": "weather", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "call_1", "content": "sunny"},
                {"type": "tool_result", "tool_use_id": "call_2", "content": "rain"},
                {"type": "text", "text": "c"},
            ]},
        ])
    );
}

#[test]
fn calls_and_results_without_each_other_are_mended() {
    let history = vec![
        user("a"),
        calls(&[("c1", "f", "{}")]),
        assistant("I give up."),
        user("b"),
        result("ghost", "boo"),
        calls(&[("c2", "f", "{}")]),
    ];
    let (body, _) = encode(&chat(history));
    let messages = body["messages"].as_array().unwrap();
    let roles: Vec<_> = messages.iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
    // Text that stood behind a call stands before it.
    assert_eq!(messages[1]["content"][0], json!({"type": "text", "text": "I give up."}));
    assert_eq!(messages[1]["content"][1]["type"], "tool_use");
    let first = &messages[2]["content"];
    assert_eq!(first[0]["type"], "tool_result");
    assert_eq!((&first[0]["tool_use_id"], &first[0]["is_error"]), (&json!("c1"), &json!(true)));
    assert_eq!(first[1], json!({"type": "text", "text": "boo"}), "a result without a call is text");
    assert_eq!(first[2], json!({"type": "text", "text": "b"}));
    assert_eq!(messages[4]["content"][0]["tool_use_id"], "c2");
    // The API wants tools that the history calls to be defined, and nobody asked for new calls.
    assert_eq!(body["tools"], json!([{"name": "f", "input_schema": {"type": "object", "properties": {}}}]));
    assert_eq!(body["tool_choice"], json!({"type": "none"}));
}

#[test]
fn the_user_begins_and_blank_texts_vanish() {
    let (body, _) = encode(&chat(vec![assistant("Hello!"), user(" \n"), user("hi")]));
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": "."},
            {"role": "assistant", "content": "Hello!"},
            {"role": "user", "content": "hi"},
        ])
    );
    let (body, _) = encode(&chat(vec![user("hi"), assistant("Hello!"), user("")]));
    assert_eq!(body["messages"][2], json!({"role": "user", "content": "."}), "an empty last word is no prefill");
    let (body, _) = encode(&chat(Vec::new()));
    assert_eq!(body["messages"], json!([{"role": "user", "content": "."}]));
}

#[test]
fn a_prefill_of_the_client_is_kept_where_the_model_takes_one() {
    let request = chat(vec![user("hi"), assistant("Sure, \n")]);
    let (body, _) = encode(&request);
    assert_eq!(body["messages"][1], json!({"role": "assistant", "content": "Sure,"}));
    let (body, _) = encode_as(&request, &to("claude-opus-5"), &Carry::fresh());
    assert_eq!(body["messages"][2], json!({"role": "user", "content": "."}));
}

#[test]
fn ids_are_of_the_alphabet_and_unlike_each_other() {
    let history = vec![
        user("a"),
        calls(&[("call:1/ü", "f", "{}"), ("", "f", "{}"), ("", "g", "{}")]),
        result("call:1/ü", "one"),
        result("", "two"),
        result("", "three"),
        calls(&[("call:1/ü", "f", "{}")]),
        result("call:1/ü", "four"),
    ];
    let (body, _) = encode(&chat(history));
    let ids = |at: usize, field: &str| -> Vec<String> {
        let blocks = body["messages"][at]["content"].as_array().unwrap();
        blocks.iter().map(|b| b[field].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(1, "id"), ["call_1__", "call", "call_2"]);
    assert_eq!(ids(2, "tool_use_id"), ids(1, "id"));
    assert_eq!(ids(2, "content"), ["one", "two", "three"]);
    assert_eq!(ids(3, "id"), ["call_1___2"]);
    assert_eq!(ids(4, "tool_use_id"), ids(3, "id"));
}

#[test]
fn arguments_become_objects() {
    for (args, input) in [
        ("", json!({})),
        ("  ", json!({})),
        ("{\"a\":1}", json!({"a": 1})),
        ("{\"a\":", json!({"_raw": "{\"a\":"})),
        ("[1]", json!({"_raw": "[1]"})),
    ] {
        let (body, _) = encode(&chat(vec![user("a"), calls(&[("c", "f", args)]), result("c", "r")]));
        assert_eq!(body["messages"][1]["content"][0]["input"], input, "{args:?}");
    }
}

#[test]
fn instructions_at_the_top_become_the_system_prompt_and_others_keep_their_place() {
    let mut request = chat(vec![user("a"), say(Role::System, "Be brief."), assistant("b"), user("c")]);
    request.system = vec![Part::text("You are Ada.")];
    let (body, _) = encode(&request);
    assert_eq!(body["system"], "You are Ada.", "what was cached of it stays cached");
    assert_eq!(
        body["messages"][0],
        json!({"role": "user", "content": [
            {"type": "text", "text": "a"}, {"type": "text", "text": "<system>\nBe brief.\n</system>"}
        ]})
    );
    assert_eq!(body["messages"].as_array().unwrap().len(), 3);
    // Between a call and its result nothing may stand.
    let late = chat(vec![user("a"), calls(&[("c", "f", "{}")]), say(Role::System, "Be brief."), result("c", "r")]);
    let content = encode(&late).0["messages"][2]["content"].clone();
    assert_eq!(
        (&content[0]["type"], &content[1]["text"]),
        (&json!("tool_result"), &json!("<system>\nBe brief.\n</system>"))
    );
    let cache = json!({"type": "ephemeral"});
    request.system = vec![Part::Text { text: "You are Ada.".to_owned(), cache: Some(cache.clone()) }];
    assert_eq!(encode(&request).0["system"], json!([{"type": "text", "text": "You are Ada.", "cache_control": cache}]));
}

#[test]
fn media_are_sources() {
    let data = |kind: &str, data: &str| Media::Data { kind: kind.to_owned(), data: data.to_owned() };
    let parts = vec![
        Part::Image(Media::Url("https://example.com/a.png".to_owned())),
        Part::Image(Media::Url("data:image/png;base64,iVBO".to_owned())),
        Part::Document(data("application/pdf", "JVBE")),
        Part::Document(data("text/markdown", "SGVsbG8gV8O2cmxk")),
        Part::Other(DialectId::Chat, json!({"type": "input_audio"})),
    ];
    let (body, dropped) = encode(&chat(vec![Message { role: Role::User, parts }]));
    assert_eq!(
        body["messages"][0]["content"],
        json!([
            {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}},
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}},
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Hello Wörld"}},
        ])
    );
    assert_eq!(dropped, ["messages.input_audio"]);
}

#[test]
fn calls_are_paired_with_their_results_however_many_there_are() {
    let ids: Vec<String> = (0..20_000).map(|n| if n % 2 == 0 { "twin".to_owned() } else { format!("c{n}") }).collect();
    let list: Vec<_> = ids.iter().map(|id| (id.as_str(), "f", "{}")).collect();
    let mut messages = vec![user("a"), calls(&list)];
    messages.extend(ids.iter().enumerate().rev().map(|(n, id)| result(id, &n.to_string())));
    let (body, _) = encode(&chat(messages));
    let (calls, results) = (body["messages"][1]["content"].as_array(), body["messages"][2]["content"].as_array());
    let (calls, results) = (calls.unwrap(), results.unwrap());
    assert_eq!((calls.len(), results.len()), (ids.len(), ids.len()));
    let names: BTreeSet<_> = calls.iter().map(|call| call["id"].as_str().unwrap()).collect();
    assert_eq!(names.len(), ids.len(), "each call has an id of its own");
    for (n, (call, result)) in calls.iter().zip(results).enumerate() {
        assert_eq!(call["id"], result["tool_use_id"]);
        // Of twins the first result is the first call's; the results came in reverse.
        let told = if n % 2 == 0 { ids.len() - 2 - n } else { n };
        assert_eq!(result["content"], told.to_string(), "{n}");
    }
}

#[test]
fn results_hold_texts_images_and_failures() {
    let part = Part::ToolResult {
        id: "c".to_owned(),
        parts: vec![
            Part::text("see"),
            Part::text(" "),
            Part::Image(Media::Data { kind: "image/png".to_owned(), data: "iVBO".to_owned() }),
        ],
        failed: true,
    };
    let history = vec![user("a"), calls(&[("c", "f", "{}")]), Message { role: Role::Tool, parts: vec![part] }];
    let (body, _) = encode(&chat(history));
    assert_eq!(
        body["messages"][2]["content"],
        json!([{"type": "tool_result", "tool_use_id": "c", "is_error": true, "content": [
            {"type": "text", "text": "see"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}},
        ]}])
    );
    let empty = vec![user("a"), calls(&[("c", "f", "{}")]), result("c", "")];
    assert_eq!(encode(&chat(empty)).0["messages"][2]["content"][0]["content"], "");
}

#[test]
fn only_own_signed_reasoning_goes_along() {
    let think = |text: &str, signature: Option<&str>, issuer, redacted| Part::Reasoning {
        text: text.to_owned(),
        signature: signature.map(str::to_owned),
        issuer,
        redacted,
    };
    let parts = vec![
        think("mine", Some("sig"), DialectId::Anthropic, false),
        think("", Some("dark"), DialectId::Anthropic, true),
        think("cut off", Some(""), DialectId::Anthropic, false),
        think("unsigned", None, DialectId::Anthropic, false),
        think("theirs", Some("sig"), DialectId::Gemini, false),
        think("plain", None, DialectId::Chat, false),
        Part::Refusal("I will not.".to_owned()),
    ];
    let request = chat(vec![user("a"), Message { role: Role::Assistant, parts }, user("b")]);
    let (body, _) = encode(&request);
    assert_eq!(
        body["messages"][1]["content"],
        json!([
            {"type": "thinking", "thinking": "mine", "signature": "sig"},
            {"type": "redacted_thinking", "data": "dark"},
            {"type": "text", "text": "I will not."},
        ])
    );
    let strip = Carry { form: Form::after(&Remedy::StripReasoning), ..Carry::fresh() };
    let (body, _) = encode_as(&request, &to("claude-sonnet-4-5"), &strip);
    assert_eq!(body["messages"][1], json!({"role": "assistant", "content": "I will not."}));
}

#[test]
fn tools_and_choices() {
    let mut bare = weather();
    (bare.name, bare.description, bare.parameters, bare.strict) = ("bare".to_owned(), None, None, Some(true));
    let mut request = Request { tools: vec![weather(), bare], ..chat(vec![user("a")]) };
    let (body, dropped) = encode(&request);
    assert_eq!(
        body["tools"],
        json!([
            {"name": "weather", "description": "Tells the weather.",
             "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}},
            {"name": "bare", "input_schema": {"type": "object", "properties": {}}},
        ])
    );
    assert_eq!(body.get("tool_choice"), None);
    assert_eq!(dropped, ["tools.strict"]);
    let function = |name: &str| Some(ToolChoice::Function(name.to_owned()));
    for (choice, parallel, expected) in [
        (Some(ToolChoice::Auto), None, json!({"type": "auto"})),
        (Some(ToolChoice::None), Some(false), json!({"type": "none"})),
        (Some(ToolChoice::Required), Some(true), json!({"type": "any"})),
        (function("bare"), Some(false), json!({"type": "tool", "name": "bare", "disable_parallel_tool_use": true})),
        (None, Some(false), json!({"type": "auto", "disable_parallel_tool_use": true})),
        (None, Some(true), Value::Null),
        (function("ghost"), None, Value::Null),
    ] {
        (request.tool_choice, request.parallel_tool_calls) = (choice.clone(), parallel);
        assert_eq!(encode(&request).0["tool_choice"], expected, "{choice:?}");
    }
    (request.tool_choice, request.parallel_tool_calls) = (Some(ToolChoice::Required), None);
    let (body, dropped) = encode_as(&request, &to("claude-opus-5-5"), &Carry::fresh());
    assert_eq!(body["tool_choice"], json!({"type": "auto"}), "a model that cannot be forced");
    assert!(dropped.contains(&"tool_choice".to_owned()));
    request.tools.clear();
    assert_eq!(encode(&request).0.get("tool_choice"), None, "no choice without tools");
}

#[test]
fn sampling_stop_user_and_format() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "object", "properties": {}}}});
    let mut request = chat(vec![user("a")]);
    request.temperature = Some(1.7);
    request.stop = vec!["END".to_owned(), " \n".to_owned()];
    request.user = Some("u1".to_owned());
    request.format = Format::Schema { name: "n".to_owned(), schema, strict: Some(true) };
    let (body, dropped) = encode(&request);
    assert_eq!(body["temperature"], 1.0);
    assert_eq!(body["stop_sequences"], json!(["END"]));
    assert_eq!(body["metadata"], json!({"user_id": "u1"}));
    assert_eq!(
        body["output_config"]["format"],
        json!({"type": "json_schema", "schema": {
            "type": "object", "additionalProperties": false,
            "properties": {"a": {"type": "object", "additionalProperties": false, "properties": {}}},
        }})
    );
    assert_eq!(dropped, ["stop"]);
    let (body, dropped) = encode_as(&request, &to("claude-3-haiku-20240307"), &Carry::fresh());
    assert_eq!(body.get("output_config"), None);
    assert_eq!(dropped, ["stop", "response_format"]);
    request.format = Format::Json;
    assert_eq!(encode(&request).1, ["stop", "response_format"]);
    (request.temperature, request.top_p, request.format) = (Some(0.3), Some(0.9), Format::Text);
    let (body, dropped) = encode(&request);
    assert_eq!((&body["temperature"], body.get("top_p")), (&json!(0.3), None), "one of the two");
    assert_eq!(dropped, ["stop", "top_p"]);
    let (body, dropped) = encode_as(&request, &to("claude-opus-5"), &Carry::fresh());
    assert_eq!((body.get("temperature"), body.get("top_p")), (None, None));
    assert_eq!(dropped, ["stop", "temperature", "top_p"]);
}

#[test]
fn what_has_no_counterpart_is_named() {
    let mut request = chat(vec![user("a")]);
    let raw = json!({
        "model": "main", "messages": [], "stream": true, "stream_options": {"include_usage": true},
        "seed": 7, "n": 2, "logprobs": true, "frequency_penalty": 0.5, "presence_penalty": 0, "logit_bias": {},
        "service_tier": "auto", "modalities": ["text"], "store": true, "prediction": null, "verbosity": "low",
        "metadata": {"k": "v"}, "top_k": 40, "novelty": 1,
    });
    request.raw = raw.as_object().unwrap().clone();
    let (body, dropped) = encode(&request);
    assert_eq!(body["top_k"], 40);
    assert_eq!(
        dropped,
        ["seed", "n", "logprobs", "frequency_penalty", "verbosity", "metadata", "novelty"].map(str::to_owned)
    );
    request.raw = json!({"n": 1, "seed": null}).as_object().unwrap().clone();
    assert!(encode(&request).1.is_empty());
}

#[path = "wishes.rs"]
mod wishes;
