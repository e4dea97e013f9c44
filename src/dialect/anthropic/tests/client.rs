//! What is read in a client's request.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test's panic is its report")]

use super::parse;
use crate::chat::{DialectId, Effort, Format, Media, Part, Request, Role, ToolChoice};
use crate::dialect::Refusal;
use http::HeaderMap;
use serde_json::{Value, json};

fn read(body: &Value) -> Result<Request, Refusal> {
    parse(&HeaderMap::new(), body.to_string().as_bytes())
}

#[expect(clippy::needless_pass_by_value, reason = "literals read best as arguments")]
fn with(fields: Value) -> Value {
    let mut body = json!({"model": "main", "max_tokens": 64, "messages": [{"role": "user", "content": "hi"}]});
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    body
}

#[test]
fn the_least_request() {
    let request = read(&with(json!({}))).expect("a request");
    assert_eq!((request.model.as_str(), request.max_tokens, request.stream), ("main", Some(64), false));
    assert_eq!(request.messages[0].parts, [Part::text("hi")]);
    assert_eq!(request.choices, 1);
    assert!(request.include_usage);
}

#[test]
fn own_fields_are_taken_off() {
    let mut headers = HeaderMap::new();
    headers.insert("x-segue-failover", "off".parse().unwrap());
    let body = with(json!({"conversation_id": "c1", "turn_index": 4, "stream": true}));
    let request = parse(&headers, body.to_string().as_bytes()).unwrap();
    assert_eq!(request.extensions.conversation.as_deref(), Some("c1"));
    assert_eq!(request.extensions.turn_index, Some(4));
    assert!(request.extensions.failover_off && request.stream);
    assert!(!request.raw.contains_key("conversation_id") && !request.raw.contains_key("turn_index"));
}

#[test]
fn what_is_wrong_is_named() {
    for (fields, place) in [
        (json!({"model": 5}), "model"),
        (json!({"max_tokens": "many"}), "max_tokens"),
        (json!({"max_tokens": -1}), "max_tokens"),
        (json!({"messages": []}), "messages"),
        (json!({"messages": "hi"}), "messages"),
        (json!({"messages": [{"role": "tool", "content": "x"}]}), "messages[0].role"),
        (json!({"messages": [{"role": "user"}]}), "messages[0].content"),
        (json!({"messages": [{"role": "user", "content": [{"type": "text"}]}]}), "messages[0].content[0].text"),
        (json!({"messages": [{"role": "user", "content": [7]}]}), "messages[0].content[0]"),
        (
            json!({"messages": [{"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text"}]}]}]}),
            "messages[0].content[0].content[0].text",
        ),
        (
            json!({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f"}]}]}),
            "messages[0].content[0].input",
        ),
        (json!({"system": 7}), "system"),
        (json!({"tools": [{"description": "x"}]}), "tools[0].name"),
        (json!({"tool_choice": {"type": "maybe"}}), "tool_choice.type"),
        (json!({"tool_choice": {"type": "tool"}}), "tool_choice.name"),
        (json!({"stop_sequences": "END"}), "stop_sequences"),
        (json!({"temperature": "hot"}), "temperature"),
        (json!({"stream": "yes"}), "stream"),
        (json!({"conversation_id": ""}), "conversation_id"),
        (json!({"turn_index": -2}), "turn_index"),
    ] {
        let refusal = read(&with(fields.clone())).expect_err("a refusal");
        assert_eq!(refusal.param.as_deref(), Some(place), "{fields}");
        assert!(refusal.message.contains(place), "{}", refusal.message);
        assert_eq!(refusal.reason.status(), 400);
    }
    let refusal = read(&json!({"model": "m", "messages": [{"role": "user", "content": "x"}]})).unwrap_err();
    assert_eq!(refusal.param.as_deref(), Some("max_tokens"));
    for body in ["", "[]", "{\"model\":"] {
        let refusal = parse(&HeaderMap::new(), body.as_bytes()).unwrap_err();
        assert_eq!(refusal.code, "invalid_json");
    }
}

#[test]
fn blocks_have_their_common_form() {
    let cache = json!({"type": "ephemeral"});
    let request = read(&with(json!({
        "system": [{"type": "text", "text": "s", "cache_control": cache}],
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "a"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}},
                {"type": "image", "source": {"type": "file", "file_id": "f"}},
                {"type": "document", "source": {"type": "url", "url": "https://example.com/x.pdf"}},
                {"type": "document", "title": "T", "source": {"type": "text", "media_type": "text/plain", "data": "d"}},
            ]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "sig"},
                {"type": "redacted_thinking", "data": "dark"},
                {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
                {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}},
                {"type": "tool_use", "id": "t2", "name": "g", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "one"},
                {"type": "tool_result", "tool_use_id": "t2", "is_error": true,
                 "content": [{"type": "text", "text": "two"}]},
                {"type": "text", "text": "b"},
                {"type": "text", "text": "c"},
            ]},
            {"role": "system", "content": "psst"},
        ],
    })))
    .unwrap();
    assert_eq!(request.system, [Part::Text { text: "s".to_owned(), cache: Some(cache) }]);
    let roles: Vec<_> = request.messages.iter().map(|m| m.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Tool, Role::User, Role::System]);
    let first = &request.messages[0].parts;
    assert_eq!(first[1], Part::Image(Media::Data { kind: "image/png".to_owned(), data: "iVBO".to_owned() }));
    assert!(matches!(&first[2], Part::Other(DialectId::Anthropic, block) if block["source"]["file_id"] == "f"));
    assert_eq!(first[3], Part::Document(Media::Url("https://example.com/x.pdf".to_owned())));
    assert_eq!(first[4], Part::text("T\n\nd"));
    let second = &request.messages[1].parts;
    assert!(matches!(&second[0], Part::Reasoning { signature: Some(s), redacted: false, .. } if s == "sig"));
    assert!(matches!(&second[1], Part::Reasoning { signature: Some(s), redacted: true, .. } if s == "dark"));
    assert!(matches!(&second[2], Part::Other(DialectId::Anthropic, _)));
    assert!(matches!(&second[3], Part::ToolCall { args, .. } if args == "{\"a\":1}"));
    assert!(matches!(&request.messages[3].parts[0], Part::ToolResult { failed: true, .. }));
    assert_eq!(request.messages[4].parts, [Part::text("b"), Part::text("c")]);
}

#[test]
fn settings_have_their_common_form() {
    let request = read(&with(json!({
        "tools": [
            {"name": "f", "description": "d", "input_schema": {"type": "object"}, "strict": true},
            {"type": "custom", "name": "g"},
            {"type": "web_search_20250305", "name": "web_search"},
        ],
        "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": true},
        "stop_sequences": ["END"], "temperature": 0.5, "top_p": 0.9, "metadata": {"user_id": "u"},
        "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
    })))
    .unwrap();
    assert_eq!(request.tools.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["f", "g"]);
    assert_eq!((request.tools[0].strict, request.server_tools.len()), (Some(true), 1));
    assert_eq!(request.tool_choice, Some(ToolChoice::Function("f".to_owned())));
    assert_eq!(request.parallel_tool_calls, Some(false));
    assert_eq!(
        (request.stop.as_slice(), request.temperature, request.top_p),
        (&["END".to_owned()][..], Some(0.5), Some(0.9))
    );
    assert_eq!(request.user.as_deref(), Some("u"));
    assert!(matches!(request.format, Format::Schema { ref schema, .. } if *schema == json!({"type": "object"})));
    for (fields, effort) in [
        (json!({}), None),
        (json!({"thinking": {"type": "disabled"}}), Some(Effort::None)),
        (json!({"thinking": {"type": "enabled", "budget_tokens": 1024}}), Some(Effort::Low)),
        (json!({"thinking": {"type": "enabled", "budget_tokens": 30000}}), Some(Effort::Max)),
        (json!({"thinking": {"type": "adaptive"}}), Some(Effort::Medium)),
        (json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": "xhigh"}}), Some(Effort::XHigh)),
        (json!({"output_config": {"effort": "low"}}), Some(Effort::Low)),
    ] {
        assert_eq!(read(&with(fields.clone())).unwrap().effort, effort, "{fields}");
    }
}
