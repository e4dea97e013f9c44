//! A client's own Messages body, edited for each attempt.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test's panic is its report")]

use crate::chat::{DialectId, Request};
use crate::dialect::{Client, Credential, Provider, WireRequest, anthropic::Anthropic};
use crate::failure::Remedy;
use crate::routing::Target;
use crate::turn::form::Form;
use crate::turn::resume::{Anchor, Carry, Continue, How, Origin};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use std::time::SystemTime;

fn parse(body: &Value) -> Request {
    Anthropic.parse(&HeaderMap::new(), body.to_string().as_bytes()).expect("a request")
}

fn encode(body: &Value, model: &str, carry: &Carry) -> (Value, Vec<String>) {
    let target = Target::new("a", model, DialectId::Anthropic);
    let wire = Anthropic.encode(&parse(body), &target, carry).expect("a request");
    (serde_json::from_slice(&wire.body).unwrap(), wire.dropped)
}

fn go_on(delivered: &str, how: How) -> Carry {
    let anchor = Anchor::of(delivered);
    Carry {
        origin: Origin::Continue(Continue { delivered: delivered.into(), anchor, how, tokens: 10 }),
        ..Carry::fresh()
    }
}

fn history() -> Value {
    json!([
        {"role": "user", "content": [
            {"type": "text", "text": "look", "cache_control": {"type": "ephemeral"}},
            {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
        ]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "tool_use", "id": "t1", "name": "f", "input": {}},
        ]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "r"}]},
    ])
}

#[test]
fn what_nobody_here_knows_survives() {
    let mut body = json!({
        "model": "main", "max_tokens": 100, "stream": false, "conversation_id": "c1", "turn_index": 3,
        "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
        "messages": history(), "mcp_servers": [{"url": "https://example.com"}], "novelty": {"deep": [1]},
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
    });
    let (sent, dropped) = encode(&body, "claude-sonnet-4-5", &Carry::fresh());
    let own = body.as_object_mut().unwrap();
    own.remove("conversation_id");
    own.remove("turn_index");
    (body["model"], body["stream"]) = (json!("claude-sonnet-4-5"), json!(true));
    assert_eq!(sent, body);
    assert!(dropped.is_empty());
}

#[test]
fn a_continuation_changes_the_tail_alone() {
    let body = json!({
        "model": "main", "max_tokens": 100, "messages": history(), "thinking": {"type": "enabled", "budget_tokens": 2000},
        "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
    });
    let (sent, dropped) = encode(&body, "claude-sonnet-4-5", &go_on("So far ", How::Prefill));
    let messages = sent["messages"].as_array().unwrap();
    assert_eq!(json!(messages[..3]), history());
    assert_eq!(messages[3], json!({"role": "assistant", "content": "So far"}));
    assert_eq!((sent.get("thinking"), sent.get("output_config"), &sent["max_tokens"]), (None, None, &json!(90)));
    assert_eq!(dropped, ["output_config.format"]);
    let (sent, _) = encode(&body, "claude-opus-5-5", &go_on("So far ", How::Instruct));
    let messages = sent["messages"].as_array().unwrap();
    assert_eq!(json!(messages[..3]), history());
    assert_eq!((&messages[3]["role"], &messages[4]["role"]), (&json!("assistant"), &json!("user")));
    assert_eq!(messages.len(), 5);
    assert_eq!((sent.get("thinking"), &sent["output_config"]["effort"]), (None, &json!("low")));
    assert!(sent["output_config"]["format"].is_object());
}

#[test]
fn the_clients_own_prefill_is_carried_on() {
    for content in [json!("{\"a\":"), json!([{"type": "text", "text": "{\"a\":"}])] {
        let messages = json!([{"role": "user", "content": "go"}, {"role": "assistant", "content": content}]);
        let body = json!({"model": "main", "max_tokens": 100, "messages": messages});
        let (sent, _) = encode(&body, "claude-3-haiku-20240307", &go_on(" 1,", How::Prefill));
        let last = &sent["messages"][1]["content"];
        let text = last.as_str().or_else(|| last[0]["text"].as_str()).unwrap();
        assert_eq!(text, "{\"a\": 1,");
        assert_eq!(sent["messages"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn reasoning_is_stripped_and_a_budget_with_it() {
    let mut body = json!({
        "model": "main", "max_tokens": 5000, "messages": history(),
        "thinking": {"type": "enabled", "budget_tokens": 2000},
    });
    let strip = Carry { form: Form::after(&Remedy::StripReasoning), ..Carry::fresh() };
    let (sent, _) = encode(&body, "claude-sonnet-4-5", &strip);
    assert!(!sent["messages"].to_string().contains("thinking"));
    assert_eq!(sent["messages"][1]["content"][0]["type"], "tool_use");
    assert_eq!(sent["thinking"], json!({"type": "disabled"}));
    body["messages"].as_array_mut().unwrap().push(json!({"role": "assistant", "content": [
        {"type": "thinking", "thinking": "cut", "signature": ""}]}));
    body["messages"].as_array_mut().unwrap().push(json!({"role": "user", "content": "and?"}));
    let (sent, _) = encode(&body, "claude-sonnet-4-5", &strip);
    assert_eq!(sent["messages"].as_array().unwrap().len(), 4, "a message of nothing but thinking goes whole");
    assert_eq!(sent["thinking"]["type"], "enabled", "no call is open");
}

#[test]
fn the_baseline_sees_the_last_word_of_the_user() {
    let last = Carry { last_message_only: true, ..Carry::fresh() };
    let body = json!({"model": "main", "max_tokens": 9, "messages": history()});
    let (sent, _) = encode(&body, "claude-sonnet-4-5", &last);
    assert_eq!(sent["messages"], json!([history()[0]]));
    let messages = json!([
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}, {"type": "text", "text": "b"}]},
    ]);
    let (sent, _) = encode(&json!({"model": "main", "max_tokens": 9, "messages": messages}), "m", &last);
    assert_eq!(sent["messages"], json!([{"role": "user", "content": [{"type": "text", "text": "b"}]}]));
}

#[test]
fn a_request_for_one_generation_is_recast_for_another() {
    let ask = |fields: Value, model: &str| {
        let mut body = json!({"model": "main", "max_tokens": 9000, "messages": [{"role": "user", "content": "a"}]});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let (sent, dropped) = encode(&body, model, &Carry::fresh());
        (sent["thinking"].clone(), sent["output_config"]["effort"].clone(), dropped)
    };
    let budget = json!({"thinking": {"type": "enabled", "budget_tokens": 4096}});
    assert_eq!(ask(budget.clone(), "claude-sonnet-4-5"), (budget["thinking"].clone(), Value::Null, vec![]));
    assert_eq!(ask(budget.clone(), "claude-opus-5"), (json!({"type": "adaptive"}), json!("high"), vec![]));
    assert_eq!(ask(budget.clone(), "kimi-k2"), (budget["thinking"].clone(), Value::Null, vec![]));
    assert_eq!(ask(budget, "claude-3-haiku-20240307"), (Value::Null, Value::Null, vec!["thinking".to_owned()]));
    let adaptive = json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": "xhigh"}});
    assert_eq!(ask(adaptive.clone(), "claude-opus-5"), (json!({"type": "adaptive"}), json!("xhigh"), vec![]));
    assert_eq!(ask(adaptive.clone(), "claude-opus-4-6").1, json!("high"));
    assert_eq!(
        ask(adaptive, "claude-sonnet-4-5"),
        (json!({"type": "enabled", "budget_tokens": 8192}), Value::Null, vec![])
    );
    let disabled = json!({"thinking": {"type": "disabled"}});
    assert_eq!(ask(disabled.clone(), "claude-opus-5"), (json!({"type": "disabled"}), Value::Null, vec![]));
    assert_eq!(ask(disabled.clone(), "claude-sonnet-5-5").0, json!({"type": "between_tools"}));
    assert_eq!(ask(disabled, "claude-opus-5-5"), (Value::Null, json!("low"), vec!["thinking".to_owned()]));
}

#[test]
fn a_budget_shrinks_with_the_limit_and_the_clients_mistake_stays_its_own() {
    let body = |max: u64| {
        json!({"model": "main", "max_tokens": max, "messages": [{"role": "user", "content": "a"}],
               "thinking": {"type": "enabled", "budget_tokens": 6000}})
    };
    let mut target = Target::new("a", "claude-sonnet-4-5", DialectId::Anthropic);
    target.max_output = Some(4000);
    let wire = Anthropic.encode(&parse(&body(9000)), &target, &Carry::fresh()).unwrap();
    let sent: Value = serde_json::from_slice(&wire.body).unwrap();
    assert_eq!((&sent["max_tokens"], &sent["thinking"]["budget_tokens"]), (&json!(4000), &json!(2000)));
    let (sent, _) = encode(&body(3000), "claude-sonnet-4-5", &Carry::fresh());
    assert_eq!(sent["thinking"]["budget_tokens"], 6000);
}

#[test]
fn sampling_that_a_model_refuses_is_named_unless_it_is_the_default() {
    let body = json!({"model": "main", "max_tokens": 9, "messages": [{"role": "user", "content": "a"}],
                      "temperature": 1.0, "top_k": 5});
    let (sent, dropped) = encode(&body, "claude-opus-5", &Carry::fresh());
    assert_eq!((sent.get("temperature"), sent.get("top_k")), (None, None));
    assert_eq!(dropped, ["top_k"]);
}

#[test]
fn beta_headers_go_to_this_dialect_and_zero_tokens_are_a_request() {
    let mut headers = HeaderMap::new();
    headers.append("anthropic-beta", "a-1".parse().unwrap());
    headers.append("anthropic-beta", "b-2".parse().unwrap());
    headers.append("x-api-key", "secret".parse().unwrap());
    let body = json!({"model": "main", "max_tokens": 0, "messages": [{"role": "user", "content": "a"}]});
    let request = Anthropic.parse(&headers, body.to_string().as_bytes()).unwrap();
    let wire = Anthropic.encode(&request, &Target::new("a", "m", DialectId::Anthropic), &Carry::fresh()).unwrap();
    let sent: Vec<_> = wire.headers.iter().map(|(n, v)| (n.as_str(), v.to_str().unwrap())).collect();
    assert_eq!(sent, [("anthropic-beta", "a-1,b-2")]);
    assert!(String::from_utf8_lossy(&wire.body).contains("\"max_tokens\":0"));
}

#[test]
fn credentials_are_the_targets_own() {
    let signed = |key, version| {
        // What stands there under the name of one of them is replaced.
        let headers = vec![(HeaderName::from_static("anthropic-version"), HeaderValue::from_static("1"))];
        let mut wire = WireRequest { path: String::new(), headers, body: Bytes::new(), dropped: Vec::new() };
        Anthropic.sign(&mut wire, &Credential { key, version }, SystemTime::UNIX_EPOCH);
        wire.headers
    };
    let pairs = |key, version| -> Vec<(String, String)> {
        signed(key, version).iter().map(|(n, v)| (n.to_string(), v.to_str().unwrap().to_owned())).collect()
    };
    let own = |list: &[(&str, &str)]| -> Vec<(String, String)> {
        list.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect()
    };
    assert_eq!(pairs(Some("k"), None), own(&[("x-api-key", "k"), ("anthropic-version", "2023-06-01")]));
    assert_eq!(pairs(None, Some("2026-10-21")), own(&[("anthropic-version", "2026-10-21")]));
    assert!(signed(Some("k"), None)[0].1.is_sensitive());
    assert_eq!(Anthropic.how("claude-haiku-4-5"), How::Prefill);
    assert_eq!(Anthropic.how("claude-haiku-5-5"), How::Instruct);
}
