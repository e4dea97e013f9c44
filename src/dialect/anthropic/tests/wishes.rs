//! Effort, limits, continuations and what is left out: what a request wishes and a target can.

use super::{assistant, calls, chat, encode, encode_as, go_on, result, to, user, weather};
use crate::chat::{Effort, Part, Request, ToolChoice};
use crate::failure::Remedy;
use crate::turn::form::Form;
use crate::turn::resume::{Carry, How};
use serde_json::{Value, json};

#[test]
fn effort_is_cast_for_each_generation() {
    let mut request = chat(vec![user("a")]);
    request.temperature = Some(0.5);
    let mut ask = |effort: Effort, model: &str, max: Option<u64>| {
        (request.effort, request.max_tokens) = (Some(effort), max);
        encode_as(&request, &to(model), &Carry::fresh())
    };
    let (body, dropped) = ask(Effort::High, "claude-sonnet-4-5", None);
    assert_eq!(body["thinking"], json!({"type": "enabled", "budget_tokens": 4096}));
    assert_eq!(body["max_tokens"], 8192, "what it thinks comes on top of the default");
    assert_eq!((body.get("temperature"), dropped), (None, vec!["temperature".to_owned()]));
    let (body, dropped) = ask(Effort::Minimal, "claude-sonnet-4-5", Some(1000));
    assert_eq!(body.get("thinking"), None, "no budget fits below the limit");
    assert_eq!(dropped, ["reasoning_effort"]);
    assert_eq!(body["temperature"], 0.5);
    assert_eq!(ask(Effort::Max, "claude-sonnet-4-5", Some(8000)).0["thinking"]["budget_tokens"], 4000);
    assert_eq!(ask(Effort::High, "claude-3-haiku-20240307", None).1, ["reasoning_effort"]);
    let (body, _) = ask(Effort::XHigh, "claude-opus-4-6", None);
    assert_eq!((&body["thinking"], &body["output_config"]), (&json!({"type": "adaptive"}), &json!({"effort": "high"})));
    let (body, _) = ask(Effort::XHigh, "claude-opus-4-7", None);
    assert_eq!(body["thinking"], json!({"type": "adaptive", "display": "summarized"}));
    assert_eq!(body["output_config"], json!({"effort": "xhigh"}));
    for (model, thinking, config) in [
        ("claude-sonnet-4-5", Value::Null, Value::Null),
        ("claude-opus-4-7", Value::Null, Value::Null),
        ("claude-opus-5", json!({"type": "disabled"}), Value::Null),
        ("claude-sonnet-5-5", json!({"type": "between_tools"}), Value::Null),
        ("claude-opus-5-5", Value::Null, json!({"effort": "low"})),
    ] {
        let (body, dropped) = ask(Effort::None, model, None);
        assert_eq!((&body["thinking"], &body["output_config"]), (&thinking, &config), "{model}");
        assert!(!dropped.contains(&"reasoning_effort".to_owned()));
    }
}

#[test]
fn thinking_yields_to_forced_calls_and_to_open_calls_without_thinking() {
    let mut request = Request { tools: vec![weather()], effort: Some(Effort::Low), ..chat(vec![user("a")]) };
    request.max_tokens = Some(8000);
    request.tool_choice = Some(ToolChoice::Required);
    let (body, dropped) = encode(&request);
    assert_eq!((body.get("thinking"), &body["tool_choice"]["type"]), (None, &json!("any")));
    assert_eq!(dropped, ["reasoning_effort"]);
    request.tool_choice = None;
    request.messages = vec![user("a"), calls(&[("c", "weather", "{}")]), result("c", "r")];
    assert_eq!(encode(&request).0.get("thinking"), None);
    request.messages.push(assistant("done"));
    request.messages.push(user("more"));
    assert!(encode(&request).0.get("thinking").is_some(), "a closed call does not matter");
}

#[test]
fn a_continuation_has_a_tail_and_nothing_else() {
    let mut request = Request { tools: vec![weather()], ..chat(vec![user("go")]) };
    request.system = vec![Part::text("You are Ada.")];
    request.effort = Some(Effort::High);
    request.max_tokens = Some(1000);
    let (fresh, _) = encode(&request);
    let delivered = "One, two, ";
    let (body, _) = encode_as(&request, &to("claude-sonnet-4-5"), &go_on(delivered, How::Prefill));
    assert_eq!(
        body["messages"],
        json!([{"role": "user", "content": "go"}, {"role": "assistant", "content": "One, two,"}])
    );
    assert_eq!(body["max_tokens"], 996);
    assert_eq!(body.get("thinking"), None);
    for field in ["system", "tools"] {
        assert_eq!(body[field], fresh[field]);
    }
    let carry = go_on(delivered, How::Instruct);
    let (body, _) = encode_as(&request, &to("claude-opus-5"), &carry);
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages[0], fresh["messages"][0]);
    assert_eq!(messages[1], json!({"role": "assistant", "content": "One, two,"}));
    assert_eq!(messages[2]["role"], "user");
    assert!(messages[2]["content"].as_str().unwrap().contains("One, two,"));
    assert_eq!(body["max_tokens"], 1000 - 4 + 3 + 16);
    assert_eq!(body["thinking"], json!({"type": "disabled"}));
    let (body, _) = encode_as(&request, &to("claude-sonnet-4-5"), &go_on(" \n", How::Prefill));
    assert_eq!(body["messages"], fresh["messages"], "an empty prefill is none");
    request.messages.push(assistant("Well:"));
    let (body, _) = encode_as(&request, &to("claude-sonnet-4-5"), &carry);
    let roles: Vec<_> = body["messages"].as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
}

#[test]
fn limits_are_the_targets_at_most_and_one_at_least() {
    let mut request = chat(vec![user("a")]);
    let mut target = to("claude-sonnet-4-5");
    target.max_output = Some(500);
    assert_eq!(encode_as(&request, &target, &Carry::fresh()).0["max_tokens"], 500);
    request.max_tokens = Some(1000);
    assert_eq!(encode_as(&request, &target, &Carry::fresh()).0["max_tokens"], 500);
    assert_eq!(encode_as(&request, &target, &go_on("x", How::Prefill)).0["max_tokens"], 500);
    request.max_tokens = Some(3);
    assert_eq!(encode_as(&request, &target, &go_on("x", How::Prefill)).0["max_tokens"], 1);
}

#[test]
fn the_baseline_sees_the_last_word_of_the_user_alone() {
    let mut request = chat(vec![user("a"), calls(&[("c", "f", "{}")]), result("c", "r"), user("b"), assistant("x")]);
    request.system = vec![Part::text("s")];
    let carry = Carry { last_message_only: true, ..Carry::fresh() };
    let (body, _) = encode_as(&request, &to("claude-sonnet-4-5"), &carry);
    assert_eq!(body["messages"], json!([{"role": "user", "content": "b"}]));
    assert_eq!(body["system"], "s");
}

#[test]
fn drops_of_target_and_carry_are_left_out_and_named() {
    let mut request = chat(vec![user("a")]);
    (request.temperature, request.user, request.effort) = (Some(0.5), Some("u".to_owned()), None);
    let mut target = to("claude-sonnet-4-20250514");
    target.drops = vec!["temperature".to_owned(), "messages".to_owned(), "seed".to_owned()];
    let carry = Carry { form: lacking("metadata"), ..Carry::fresh() };
    let (body, dropped) = encode_as(&request, &target, &carry);
    assert_eq!((body.get("temperature"), body.get("metadata")), (None, None));
    assert!(body.get("messages").is_some());
    assert_eq!(dropped, ["temperature", "user"]);
}

/// The form of a target that does not take `field`.
fn lacking(field: &str) -> Form {
    Form::after(&Remedy::Drop { fields: vec![field.to_owned()], lasting: true })
}
