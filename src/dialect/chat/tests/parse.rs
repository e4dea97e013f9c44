//! What is read of a client's request, and what is refused.

#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use super::request;
use crate::chat::{DialectId, Effort, Format, Media, Part, Role, ToolChoice};
use crate::dialect::chat::Chat;
use crate::dialect::{Client, Reason, Refusal};
use http::HeaderMap;
use serde_json::{Value, json};
use std::time::Duration;

#[test]
fn every_field_is_read() {
    let request = request(&json!({
        "conversation_id": "c1", "turn_index": 3,
        "messages": [
            { "role": "developer", "content": "be kind" },
            { "role": "system", "content": [{ "type": "text", "text": "and brief", "cache_control": { "type": "ephemeral" } }] },
            { "role": "user", "content": [
                { "type": "text", "text": "look" },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } },
                { "type": "image_url", "image_url": "https://x/y.png" },
                { "type": "file", "file": { "file_data": "data:application/pdf;base64,BBBB" } },
                { "type": "input_audio", "input_audio": { "data": "", "format": "wav" } },
            ] },
            { "role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": [
                { "id": "t1", "type": "function", "function": { "name": "f", "arguments": "{}" } } ] },
            { "role": "tool", "tool_call_id": "t1", "content": "42" },
            { "role": "system", "content": "later" },
            { "role": "assistant", "content": "", "refusal": "no" },
        ],
        "tools": [{ "type": "function", "function": { "name": "f", "description": "d", "parameters": { "type": "object" }, "strict": true } },
                  { "type": "web_search" }],
        "tool_choice": { "type": "function", "function": { "name": "f" } }, "parallel_tool_calls": false,
        "response_format": { "type": "json_schema", "json_schema": { "name": "s", "schema": { "type": "object" }, "strict": true } },
        "stop": "END", "max_tokens": 5, "max_completion_tokens": 7, "temperature": 0.5, "top_p": 1, "reasoning_effort": "high",
        "n": 2, "user": "u", "stream": true, "stream_options": { "include_usage": true }, "store": true, "modalities": ["text", "audio"],
        "vendor_field": { "kept": 1.0 },
    }));
    assert_eq!(request.origin, DialectId::Chat);
    assert_eq!((request.extensions.conversation.as_deref(), request.extensions.turn_index), (Some("c1"), Some(3)));
    assert!(!request.raw.contains_key("conversation_id") && !request.raw.contains_key("turn_index"));
    assert_eq!(request.raw["vendor_field"], json!({ "kept": 1.0 }));
    let cache = Some(json!({ "type": "ephemeral" }));
    assert_eq!(request.system, [Part::text("be kind"), Part::Text { text: "and brief".to_owned(), cache }]);
    let roles: Vec<_> = request.messages.iter().map(|m| m.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::System, Role::Assistant]);
    let user = &request.messages[0].parts;
    assert_eq!(user[1], Part::Image(Media::Data { kind: "image/png".to_owned(), data: "AAAA".to_owned() }));
    assert_eq!(user[2], Part::Image(Media::Url("https://x/y.png".to_owned())));
    assert!(
        matches!(&user[3], Part::Document(Media::Data { .. })) && matches!(&user[4], Part::Other(DialectId::Chat, _))
    );
    assert!(matches!(&request.messages[1].parts[..], [Part::Reasoning { .. }, Part::ToolCall { .. }]));
    assert!(
        matches!(&request.messages[2].parts[..], [Part::ToolResult { id, parts, .. }] if id == "t1" && parts == &[Part::text("42")])
    );
    assert_eq!(request.messages[4].parts, [Part::Refusal("no".to_owned())]);
    assert_eq!((request.tools.len(), request.server_tools.len()), (1, 1));
    assert_eq!(request.tool_choice, Some(ToolChoice::Function("f".to_owned())));
    assert!(matches!(&request.format, Format::Schema { name, strict: Some(true), .. } if name == "s"));
    assert_eq!((request.stop.as_slice(), request.max_tokens), (&["END".to_owned()][..], Some(7)));
    assert_eq!((request.temperature, request.top_p, request.effort), (Some(0.5), Some(1.0), Some(Effort::High)));
    assert_eq!((request.choices, request.parallel_tool_calls, request.user.as_deref()), (2, Some(false), Some("u")));
    assert!(request.stream && request.include_usage && request.audio && request.stored);
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let base = json!({ "model": "main", "messages": [{ "role": "user", "content": "go" }] });
    let parse = |patch: &Value| {
        let mut body = base.clone();
        for (name, value) in patch.as_object().unwrap() {
            body[name] = value.clone();
        }
        Chat.parse(&HeaderMap::new(), body.to_string().as_bytes()).map(|_| ())
    };
    let message = |m: Value| json!({ "messages": [{ "role": "user", "content": "a" }, m] });
    for (patch, param) in [
        (json!({ "model": ["main"] }), "model"),
        (json!({ "model": 5 }), "model"),
        (json!({ "messages": [] }), "messages"),
        (json!({ "messages": "hi" }), "messages"),
        (message(json!("hi")), "messages[1]"),
        (message(json!({ "role": "robot", "content": "x" })), "messages[1].role"),
        (message(json!({ "role": "user" })), "messages[1].content"),
        (message(json!({ "role": "user", "content": 5 })), "messages[1].content"),
        (message(json!({ "role": "user", "content": [5] })), "messages[1].content[0]"),
        (message(json!({ "role": "user", "content": [{ "type": "text" }] })), "messages[1].content[0].text"),
        (
            message(json!({ "role": "user", "content": [{ "type": "image_url" }] })),
            "messages[1].content[0].image_url.url",
        ),
        (message(json!({ "role": "assistant", "tool_calls": {} })), "messages[1].tool_calls"),
        (json!({ "tools": [{ "type": "function", "function": {} }] }), "tools[0].function.name"),
        (json!({ "n": 0 }), "n"),
        (json!({ "n": 129 }), "n"),
        (json!({ "stop": [1] }), "stop"),
        (json!({ "stream": "yes" }), "stream"),
        (json!({ "max_tokens": "many" }), "max_tokens"),
        (json!({ "temperature": "hot" }), "temperature"),
        (json!({ "stream_options": true }), "stream_options"),
        (json!({ "response_format": { "type": "json_schema" } }), "response_format.json_schema.schema"),
        (json!({ "conversation_id": 5 }), "conversation_id"),
        (json!({ "turn_index": -1 }), "turn_index"),
    ] {
        let refusal = parse(&patch).unwrap_err();
        assert_eq!(refusal.param.as_deref(), Some(param), "{patch}");
        assert!(refusal.message.contains(param), "{}", refusal.message);
        assert_eq!(refusal.reason, Reason::Request);
    }
    for fine in [
        json!({ "stop": null, "n": null, "max_tokens": null, "stream": null, "tools": null, "response_format": null }),
        message(json!({ "role": "assistant" })),
        message(json!({ "role": "user", "content": [{ "type": "hologram", "x": 1 }] })),
        message(json!({ "role": "function", "name": "f", "content": "42" })),
    ] {
        parse(&fine).unwrap();
    }
    let broken = Chat.parse(&HeaderMap::new(), b"{\n \"model\": }").unwrap_err();
    assert!(broken.message.contains("line 2, column 11"), "{}", broken.message);
    assert!(Chat.parse(&HeaderMap::new(), b"[]").unwrap_err().message.contains("JSON object"));
    let mut headers = HeaderMap::new();
    headers.insert("x-segue-failover", "maybe".parse().unwrap());
    assert_eq!(Chat.parse(&headers, b"{}").unwrap_err().param.as_deref(), Some("x-segue-failover"));
}

#[test]
fn errors_are_worded_for_this_api() {
    let mut refusal = Refusal::new(Reason::Limited, "rate_limit_key", "Too many.");
    refusal.retry_after = Some(Duration::from_millis(1200));
    refusal.attempts = vec!["a/m: RateLimited".to_owned()];
    let reply = Chat.refuse(&refusal);
    let header =
        |name: &str| reply.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.to_str().unwrap().to_owned());
    assert_eq!(reply.status, 429);
    assert_eq!(header("retry-after").as_deref(), Some("2"));
    assert_eq!(header("x-should-retry").as_deref(), Some("false"));
    assert_eq!(header("content-type").as_deref(), Some("application/json"));
    let body: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(body["error"]["type"], "rate_limit_error");
    assert_eq!(body["error"]["code"], "rate_limit_key");
    assert_eq!(body["error"]["param"], Value::Null);
    assert_eq!(body["error"]["attempts"], json!(["a/m: RateLimited"]));
    let mut refusal = Refusal::new(Reason::Unavailable, "x", "y");
    refusal.r#type = Some("overloaded".to_owned());
    refusal.retry_after = Some(Duration::ZERO);
    let reply = Chat.refuse(&refusal);
    assert!(reply.headers.iter().any(|(n, v)| n == "retry-after" && v == "1"));
    assert!(!reply.headers.iter().any(|(n, _)| n == "x-should-retry"));
    assert!(String::from_utf8_lossy(&reply.body).contains(r#""type":"overloaded""#));
}

#[test]
fn other_words_for_the_same_wish() {
    let tools = json!([
        { "type": "function", "function": { "name": "f" } },
        { "type": "function", "function": { "name": "g" } },
    ]);
    let choice = |choice: Value| request(&json!({ "tools": tools, "tool_choice": choice }));
    let allowed = |mode: &str| json!({ "type": "allowed_tools", "allowed_tools": { "mode": mode, "tools": [{ "type": "function", "function": { "name": "g" } }] } });
    for (given, expected, count) in [
        (json!({ "type": "none" }), ToolChoice::None, 2),
        (json!({ "type": "any" }), ToolChoice::Required, 2),
        (allowed("required"), ToolChoice::Required, 1),
        (allowed("auto"), ToolChoice::Auto, 1),
        (
            json!({ "type": "allowed_tools", "mode": "required", "tools": [{ "type": "function", "name": "f" }] }),
            ToolChoice::Required,
            1,
        ),
    ] {
        let request = choice(given.clone());
        assert_eq!((request.tool_choice, request.tools.len()), (Some(expected), count), "{given}");
    }
    assert!(request(&json!({ "usage": { "include": true } })).include_usage);
    assert!(!request(&json!({ "usage": { "include": false } })).include_usage);
    assert_eq!(request(&json!({ "max_tokens": -1 })).max_tokens, None);
    assert_eq!(request(&json!({ "max_tokens": 500.0 })).max_tokens, Some(500));
    let schema = |format: Value| matches!(request(&json!({ "response_format": format })).format, Format::Schema { .. });
    assert!(schema(json!({ "type": "json_object", "schema": { "type": "object" } })));
    assert!(schema(json!({ "type": "json_schema", "schema": { "type": "object" } })));
    assert!(!schema(json!({ "type": "json_object" })));
}

#[test]
fn media_and_marks_in_the_forms_that_clients_write() {
    for (url, kind) in [
        ("data:image/jpg;base64,AA", "image/jpeg"),
        ("data:image/PNG;charset=utf-8;base64,AA", "image/png"),
        ("DATA:image/webp;name=x.webp;base64,AA", "image/webp"),
    ] {
        let content = json!([{ "type": "image_url", "image_url": { "url": url } }]);
        let request = request(&json!({ "messages": [{ "role": "user", "content": content }] }));
        let expected = Part::Image(Media::Data { kind: kind.to_owned(), data: "AA".to_owned() });
        assert_eq!(request.messages[0].parts, [expected], "{url}");
    }
    let mark = json!({ "type": "ephemeral" });
    let request = request(&json!({ "messages": [
        { "role": "system", "content": "s", "cache_control": mark },
        { "role": "user", "content": "u", "cache_control": mark },
    ] }));
    let marked = |text: &str| Part::Text { text: text.to_owned(), cache: Some(mark.clone()) };
    assert_eq!((&request.system[..], &request.messages[0].parts[..]), (&[marked("s")][..], &[marked("u")][..]));
}

#[test]
fn thinking_is_asked_for_in_many_forms() {
    for (mut body, effort) in [
        (json!({}), None),
        (json!({ "reasoning_effort": "low" }), Some(Effort::Low)),
        (json!({ "reasoning": { "effort": "high" } }), Some(Effort::High)),
        (json!({ "reasoning": { "max_tokens": 2000 } }), Some(Effort::Medium)),
        (json!({ "reasoning": { "enabled": true } }), Some(Effort::Medium)),
        (json!({ "reasoning": { "enabled": false } }), Some(Effort::None)),
        (json!({ "thinking": { "type": "enabled" } }), Some(Effort::Medium)),
        (json!({ "thinking": { "type": "disabled" } }), Some(Effort::None)),
        (json!({ "enable_thinking": true }), Some(Effort::Medium)),
        (json!({ "chat_template_kwargs": { "thinking": true } }), Some(Effort::Medium)),
        (json!({ "chat_template_kwargs": { "enable_thinking": false } }), Some(Effort::None)),
        (json!({ "thinking": "yes", "reasoning": 7 }), None),
    ] {
        let shown = body.to_string();
        body["messages"] = json!([{ "role": "user", "content": "go" }]);
        assert_eq!(request(&body).effort, effort, "{shown}");
    }
}
