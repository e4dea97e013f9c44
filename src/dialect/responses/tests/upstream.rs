//! What a provider is sent.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
use super::*;
use crate::dialect::responses::{Responses, signed};
use crate::dialect::{Client, client};
use crate::failure::Remedy;
use crate::turn::form::Form;
use crate::turn::resume::Anchor;
use http::HeaderMap;

fn read(origin: DialectId, body: &Value) -> Request {
    client(origin).unwrap().parse(&HeaderMap::new(), body.to_string().as_bytes()).unwrap()
}

fn target() -> Target {
    Target::new("c", "gpt", DialectId::Responses)
}

fn written(request: &Request, target: &Target, carry: &Carry) -> (Value, Vec<String>) {
    let wire = encode(request, target, carry).unwrap();
    assert_eq!(wire.path, "/responses");
    (serde_json::from_slice(&wire.body).unwrap(), wire.dropped)
}

fn going_on(how: How) -> Carry {
    let delivered = "The sea is wide. ";
    let on = Continue { delivered: delivered.into(), anchor: Anchor::of(delivered), how, tokens: 5 };
    Carry { origin: Origin::Continue(on), ..Carry::fresh() }
}

#[test]
fn a_chat_request_has_its_form_here() {
    let request = read(
        DialectId::Chat,
        &json!({
            "model": "normal", "max_tokens": 100, "stop": ["x"], "reasoning_effort": "high", "temperature": 0.5,
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "https://x/y"}}]},
                {"role": "assistant", "content": "b", "tool_calls": [{"id": "functions.f:0", "type": "function", "function": {"name": "f", "arguments": ""}}]},
                {"role": "tool", "tool_call_id": "functions.f:0", "content": "c"},
                {"role": "user", "content": "d"},
            ],
            "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
            "tool_choice": {"type": "function", "function": {"name": "f"}},
            "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
            "logit_bias": {"1": 2},
        }),
    );
    let (body, dropped) = written(&request, &target(), &Carry::fresh());
    assert_eq!(
        body,
        json!({
            "model": "gpt", "instructions": "Be brief.",
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "https://x/y", "detail": "auto"}]},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "b", "annotations": []}]},
                {"type": "function_call", "call_id": "functions_f_0", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "functions_f_0", "output": "c"},
                {"role": "user", "content": "d"},
            ],
            "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": false}],
            "tool_choice": {"type": "function", "name": "f"},
            "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}},
            "max_output_tokens": 100, "temperature": 0.5, "reasoning": {"effort": "high"},
            "stream": true, "store": false,
        })
    );
    assert_eq!(dropped, ["stop", "logit_bias"]);
}

#[test]
fn a_client_of_the_same_api_gets_its_own_body() {
    let ours = crate::dialect::responses::ids::item("msg", 7, 0);
    let request = read(
        DialectId::Responses,
        &json!({
            "model": "normal", "store": true, "previous_response_id": "resp_1", "x_vendor": [1],
            "input": [
                {"role": "user", "content": "a"},
                {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "theirs"},
                {"type": "reasoning", "summary": [], "encrypted_content": signed::seal("s", DialectId::Anthropic, false)},
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
                {"id": ours, "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "b"}]},
                {"role": "user", "content": "c"},
            ],
        }),
    );
    let mut target = target();
    target.reasons = true;
    let (body, dropped) = written(&request, &target, &Carry::fresh());
    assert_eq!(
        (&body["store"], &body["x_vendor"], body.get("previous_response_id")),
        (&json!(false), &json!([1]), None)
    );
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    let input = body["input"].as_array().unwrap();
    assert_eq!(input.len(), 4, "reasoning of others is of no use: {input:?}");
    assert!(input[1]["encrypted_content"] == "theirs" && input[2].get("id").is_none(), "{input:?}");
    assert!(dropped.is_empty(), "{dropped:?}");
}

#[test]
fn a_turn_goes_on_after_what_was_told() {
    let body = json!({"model": "m", "input": "a", "max_output_tokens": 40, "reasoning": {"effort": "high"}});
    let request = read(DialectId::Responses, &body);
    let (body, _) = written(&request, &target(), &going_on(How::Instruct));
    let input = body["input"].as_array().unwrap();
    assert_eq!(input.len(), 3);
    assert_eq!((&input[0]["content"], &input[1]["content"][0]["text"]), (&json!("a"), &json!("The sea is wide. ")));
    assert!(input[2]["content"].as_str().unwrap().contains("The sea is wide."));
    assert_eq!(body["reasoning"]["effort"], "low");
    assert!((36..70).contains(&body["max_output_tokens"].as_u64().unwrap()), "{}", body["max_output_tokens"]);
    let (body, _) = written(&request, &target(), &going_on(How::Prefill));
    let last = body["input"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&last["status"], &last["content"][0]["text"]), (&json!("incomplete"), &json!("The sea is wide.")));
}

#[test]
fn what_a_target_refuses_is_left_out() {
    let body = json!({"model": "m", "temperature": 1, "reasoning": {"effort": "low", "summary": "auto"}, "input": [
        {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}, {"type": "input_text", "text": "a"}]},
        {"type": "reasoning", "summary": [], "encrypted_content": "x"},
        {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"},
    ]});
    let request = read(DialectId::Responses, &body);
    let mut form =
        Form::after(&Remedy::Drop { fields: vec!["temperature".into(), "reasoning.summary".into()], lasting: true });
    form.learn(&Remedy::StripReasoning);
    form.learn(&Remedy::Lacks(crate::chat::modality::Modality::Image));
    let (body, dropped) = written(&request, &target(), &Carry { form, ..Carry::fresh() });
    assert_eq!((body.get("temperature"), &body["reasoning"]), (None, &json!({"effort": "low"})));
    assert_eq!(body["input"].as_array().unwrap().len(), 3);
    assert_eq!(body["input"][0]["content"][0], json!({"type": "input_text", "text": "[image]"}));
    assert_eq!(dropped, ["messages.image", "temperature", "reasoning.summary"]);
    let last = Carry { last_message_only: true, ..Carry::fresh() };
    assert_eq!(written(&request, &target(), &last).0["input"], json!([{"role": "user", "content": "c"}]));
    assert_eq!(Responses.word(Field::Limit), "max_output_tokens");
}
