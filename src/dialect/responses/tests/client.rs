//! Requests of clients, and what is refused of them.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
use super::*;
use serde_json::json;

fn read(body: &Value) -> Result<Request, Refusal> {
    parse(&HeaderMap::new(), body.to_string().as_bytes())
}

#[test]
fn what_is_asked_has_its_common_form() {
    let request = read(&json!({
        "model": "normal", "input": "hi", "instructions": "Be brief.", "stream": true, "max_output_tokens": 50,
        "temperature": 0.5, "reasoning": {"effort": "low"}, "parallel_tool_calls": false,
        "text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}, "strict": true}},
        "tools": [
            {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": true},
            {"type": "custom", "name": "c", "description": "Any text.",
                "format": {"type": "grammar", "syntax": "regex", "definition": "a+"}},
            {"type": "web_search"},
        ],
        "tool_choice": {"type": "function", "name": "f"},
        "previous_response_id": "resp_1", "store": false,
    }))
    .unwrap();
    assert_eq!(request.system, [crate::chat::Part::text("Be brief.")]);
    assert_eq!(request.messages.len(), 1);
    let names: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!((names, request.server_tools.len()), (vec!["f", "c"], 1));
    assert!(request.tools[1].description.as_deref().unwrap().contains("regex grammar"), "{:?}", request.tools[1]);
    assert_eq!(request.tool_choice, Some(ToolChoice::Function("f".to_owned())));
    assert!(matches!(&request.format, Format::Schema { strict: Some(true), .. }));
    assert_eq!((request.max_tokens, request.effort), (Some(50), Some(Effort::Low)));
    assert_eq!(request.extensions.previous.as_deref(), Some("resp_1"));
    assert!(!request.extensions.keep && !request.stored);
    assert!(!request.raw.contains_key("previous_response_id"), "no provider knows our ids");
    assert!(uncommon(&request).is_empty(), "{:?}", uncommon(&request));
}

#[test]
fn a_conversation_is_one_of_ours() {
    for conversation in [json!("c1"), json!({"id": "c1"})] {
        let request = read(&json!({"model": "m", "input": "hi", "conversation": conversation})).unwrap();
        assert_eq!(request.extensions.conversation.as_deref(), Some("c1"));
        assert!(request.extensions.append_history && request.extensions.keep);
    }
}

#[test]
fn what_cannot_be_served_is_refused_by_its_place() {
    for (body, place) in [
        (json!({"model": "m"}), "input"),
        (json!({"model": "m", "input": []}), "input"),
        (json!({"model": "m", "input": 5}), "input"),
        (json!({"model": "m", "input": "a", "background": true}), "background"),
        (json!({"model": "m", "input": "a", "stream": 1}), "stream"),
        (json!({"model": "m", "input": "a", "conversation": "c", "previous_response_id": "r"}), "conversation"),
        (json!({"model": "m", "input": "a", "max_output_tokens": -1}), "max_output_tokens"),
        (json!({"model": "m", "input": "a", "tools": [{"type": "function"}]}), "tools[0].name"),
        (json!({"model": "m", "input": [{"role": "robot", "content": "a"}]}), "input[0].role"),
        (json!({"model": "m", "input": [{"type": "function_call", "name": "f"}]}), "input[0].call_id"),
        (json!({"model": "m", "input": [{"role": "user", "content": [{"text": "a"}]}]}), "input[0].content[0]"),
        (json!({"model": "m", "input": "a", "text": {"format": {"type": "json_schema"}}}), "text.format.schema"),
    ] {
        let refusal = read(&body).unwrap_err();
        assert_eq!((refusal.reason.status(), refusal.param.as_deref()), (400, Some(place)), "{body}");
    }
    // What follows another answer may add nothing.
    assert!(read(&json!({"model": "m", "previous_response_id": "resp_1"})).is_ok());
}

#[test]
fn what_no_other_api_has_is_named() {
    let request = read(&json!({
        "model": "m", "input": "a", "truncation": "auto", "include": ["web_search_call.results"],
        "service_tier": "auto", "metadata": {}, "max_tool_calls": 3, "prompt": {"id": "p"}, "top_logprobs": 0,
    }))
    .unwrap();
    assert_eq!(uncommon(&request), ["truncation", "include", "prompt"]);
}
