//! Messages in the form that a target takes.

use super::{request, target};
use crate::chat::Request;
use crate::chat::modality::Modality;
use crate::dialect::Provider;
use crate::dialect::chat::Chat;
use crate::failure::{CallIds, Instructions, Remedy};
use crate::routing::Target;
use crate::turn::form::Form;
use crate::turn::resume::{Anchor, Carry, Continue, How, Origin};
use serde_json::{Value, json};

fn written(request: &Request, target: &Target, remedies: &[Remedy]) -> (Value, Vec<String>) {
    let mut form = Form::default();
    for remedy in remedies {
        assert!(form.learn(remedy), "{remedy:?}");
    }
    let carry = Carry { form, ..Carry::fresh() };
    match Chat.encode(request, target, &carry) {
        Ok(wire) => (serde_json::from_slice(&wire.body).unwrap_or_default(), wire.dropped),
        Err(failure) => panic!("{failure:?}"),
    }
}

fn messages(messages: &Value, remedy: Remedy) -> (Value, Vec<String>) {
    let (mut body, dropped) = written(&request(&json!({ "messages": messages })), &target(), &[remedy]);
    (body["messages"].take(), dropped)
}

#[test]
fn a_form_changes_what_it_is_about_and_nothing_else() {
    let call = |id: &str| json!({ "id": id, "type": "function", "function": { "name": "f", "arguments": "{}" } });
    let image = json!({ "type": "image_url", "image_url": { "url": "https://x/y.png" } });
    let text = |text: &str| json!({ "type": "text", "text": text });
    let rows = [
        (
            Remedy::StripReasoning,
            json!([{ "role": "assistant", "content": "b", "reasoning_content": "r", "reasoning": "r" }]),
            json!([{ "role": "assistant", "content": "b" }]),
        ),
        (
            Remedy::Instructions(Instructions::System),
            json!([{ "role": "developer", "content": "x" }, { "role": "user", "content": "y" }]),
            json!([{ "role": "system", "content": "x" }, { "role": "user", "content": "y" }]),
        ),
        (
            Remedy::Instructions(Instructions::User),
            json!([{ "role": "system", "content": "x" }, { "role": "user", "content": "y" }, { "role": "system", "content": "z" }]),
            json!([{ "role": "user", "content": "x\n\ny" }, { "role": "user", "content": "z" }]),
        ),
        (
            Remedy::Instructions(Instructions::First),
            json!([{ "role": "system", "content": "x" }, { "role": "developer", "content": "y" }, { "role": "user", "content": "u" }, { "role": "system", "content": "z" }]),
            json!([{ "role": "system", "content": "x\n\ny" }, { "role": "user", "content": "u" }, { "role": "user", "content": "z" }]),
        ),
        (
            Remedy::DropInside(vec!["name".to_owned(), "role".to_owned()]),
            json!([{ "role": "user", "content": "y", "name": "ann" }, { "role": "assistant", "content": null, "tool_calls": [call("c")] }]),
            json!([{ "role": "user", "content": "y" }, { "role": "assistant", "content": null, "tool_calls": [call("c")] }]),
        ),
        (
            Remedy::Lacks(Modality::Image),
            json!([{ "role": "user", "content": [text("look"), image.clone()] }, { "role": "assistant", "content": "a cat" }, { "role": "user", "content": "why?" }]),
            json!([{ "role": "user", "content": [text("look"), text("[image]")] }, { "role": "assistant", "content": "a cat" }, { "role": "user", "content": "why?" }]),
        ),
        (
            Remedy::ToolText,
            json!([
                { "role": "assistant", "content": null, "tool_calls": [call("a"), call("b")] },
                { "role": "tool", "tool_call_id": "a", "content": [text("done"), image.clone()] },
                { "role": "tool", "tool_call_id": "b", "content": "x" },
                { "role": "user", "content": "so?" },
            ]),
            json!([
                { "role": "assistant", "content": null, "tool_calls": [call("a"), call("b")] },
                { "role": "tool", "tool_call_id": "a", "content": [text("done")] },
                { "role": "tool", "tool_call_id": "b", "content": "x" },
                { "role": "user", "content": [image.clone()] },
                { "role": "user", "content": "so?" },
            ]),
        ),
        (
            Remedy::Flat,
            json!([{ "role": "user", "content": [text("a"), text("b")] }, { "role": "user", "content": [image.clone()] }]),
            json!([{ "role": "user", "content": "a\nb" }, { "role": "user", "content": [image] }]),
        ),
        (
            Remedy::Alternate,
            json!([{ "role": "user", "content": "a" }, { "role": "user", "content": [text("b")] }, { "role": "assistant", "content": "c" }, { "role": "assistant", "content": "d" }]),
            json!([{ "role": "user", "content": [text("a"), text("b")] }, { "role": "assistant", "content": "c\n\nd" }]),
        ),
        (
            Remedy::MarkCalls,
            json!([{ "role": "assistant", "content": null, "tool_calls": [call("a"), call("b")] }]),
            json!([{ "role": "assistant", "content": null, "tool_calls": [
                { "id": "a", "type": "function", "function": { "name": "f", "arguments": "{}" },
                  "extra_content": { "google": { "thought_signature": "skip_thought_signature_validator" } } },
                call("b"),
            ] }]),
        ),
    ];
    for (remedy, given, expected) in rows {
        let name = format!("{remedy:?}");
        assert_eq!(messages(&given, remedy).0, expected, "{name}");
    }
}

#[test]
fn calls_and_results_are_named_alike_in_every_leg() {
    let history = json!([
        { "role": "user", "content": "w" },
        { "role": "assistant", "content": null, "tool_calls": [{ "id": "functions.f:0", "type": "function", "function": { "name": "f", "arguments": "{}" } }] },
        { "role": "tool", "tool_call_id": "functions.f:0", "content": "x" },
        { "role": "assistant", "content": null, "tool_calls": [{ "id": "functions.f:0", "type": "function", "function": { "name": "f", "arguments": "{}" } }] },
        { "role": "tool", "tool_call_id": "functions.f:0", "content": "y" },
    ]);
    let (first, _) = messages(&history, Remedy::CallIds(CallIds::Nine));
    let id = |at: usize| first[at]["tool_calls"][0]["id"].as_str().map(str::to_owned);
    assert_eq!((id(1).map(|id| id.len()), first[2]["tool_call_id"].as_str()), (Some(9), id(1).as_deref()));
    assert_eq!(first[4]["tool_call_id"].as_str(), id(3).as_deref());
    assert_ne!(id(1), id(3));
    // A vendor that is known needs no refusal; a turn that goes on has the same names.
    let mut mistral = target();
    mistral.issuer = "mistral".into();
    let delivered = "One, two,";
    let origin = Origin::Continue(Continue {
        delivered: delivered.into(),
        anchor: Anchor::of(delivered),
        how: How::Instruct,
        tokens: 2,
    });
    let carry = Carry { origin, ..Carry::fresh() };
    let wire = Chat.encode(&request(&json!({ "messages": history })), &mistral, &carry);
    let body: Value = wire.ok().and_then(|wire| serde_json::from_slice(&wire.body).ok()).unwrap_or_default();
    assert_eq!(body["messages"].as_array().map(|m| json!(m[..5])), Some(first));
}

#[test]
fn limits_fit_what_the_target_gives() {
    let both = request(&json!({ "max_tokens": 500, "max_completion_tokens": 600 }));
    let (body, dropped) = written(&both, &target(), &[Remedy::OneLimit]);
    assert_eq!((body.get("max_tokens"), &body["max_completion_tokens"], dropped.len()), (None, &json!(600), 0));
    let much = request(&json!({ "max_tokens": 32_000 }));
    let cap = |tokens, lasting| Remedy::Cap { tokens, lasting };
    assert_eq!(written(&much, &target(), &[cap(8192, true), cap(9000, false)]).0["max_tokens"], 8192);
    let none = request(&json!({ "max_tokens": -1 }));
    assert_eq!((none.max_tokens, &written(&none, &target(), &[]).0["max_tokens"]), (None, &json!(-1)));
    let fields = vec!["max_tokens".to_owned(), "max_completion_tokens".to_owned()];
    let (body, _) = written(&none, &target(), &[Remedy::Drop { fields, lasting: false }]);
    assert_eq!((body.get("max_tokens"), body.get("max_completion_tokens")), (None, None));
}

#[test]
fn thinking_is_turned_off_only_where_reasoning_is_missed() {
    let calls = |reasoning: Value| {
        let call = json!({ "id": "c", "type": "function", "function": { "name": "f", "arguments": "{}" } });
        request(&json!({ "reasoning_effort": "high", "messages": [
            { "role": "user", "content": "w" },
            { "role": "assistant", "content": null, "reasoning_content": reasoning, "tool_calls": [call] },
            { "role": "tool", "tool_call_id": "c", "content": "x" },
        ] }))
    };
    let (body, dropped) = written(&calls(Value::Null), &target(), &[Remedy::NoThinking]);
    assert_eq!((&body["thinking"], body.get("reasoning_effort")), (&json!({ "type": "disabled" }), None));
    assert_eq!(dropped, ["reasoning_effort"]);
    let (body, _) = written(&calls(json!("because")), &target(), &[Remedy::NoThinking]);
    assert_eq!((body.get("thinking"), &body["reasoning_effort"]), (None, &json!("high")));
}

#[test]
fn reasoning_goes_back_under_the_vendors_name() {
    let mut cerebras = target();
    cerebras.issuer = "cerebras".into();
    let history =
        json!([{ "role": "assistant", "content": "b", "reasoning_content": "r" }, { "role": "user", "content": "c" }]);
    let (body, _) = written(&request(&json!({ "messages": history })), &cerebras, &[]);
    assert_eq!(body["messages"][0], json!({ "role": "assistant", "content": "b", "reasoning": "r" }));
}

#[test]
fn tools_lose_what_the_target_does_not_know() {
    let tool = json!({ "type": "function", "cache_control": {}, "function": { "name": "f", "strict": true, "parameters": { "strict": 1 } } });
    let remedy = Remedy::DropInside(vec!["strict".to_owned(), "cache_control".to_owned()]);
    let (body, dropped) = written(&request(&json!({ "tools": [tool] })), &target(), &[remedy]);
    assert_eq!(
        body["tools"][0],
        json!({ "type": "function", "function": { "name": "f", "parameters": { "strict": 1 } } })
    );
    assert_eq!(dropped, ["tools.cache_control", "tools.strict"]);
}

#[test]
fn the_clients_own_beginning_and_what_was_told_are_one_message() {
    for how in [How::Instruct, How::Prefill] {
        let origin =
            Origin::Continue(Continue { delivered: " one".into(), anchor: Anchor::of(" one"), how, tokens: 1 });
        let carry = Carry { origin, ..Carry::fresh() };
        let history = json!([{ "role": "user", "content": "go" }, { "role": "assistant", "content": "Well," }]);
        let wire = Chat.encode(&request(&json!({ "messages": history })), &target(), &carry);
        let body: Value = wire.ok().and_then(|wire| serde_json::from_slice(&wire.body).ok()).unwrap_or_default();
        assert_eq!(body["messages"][1], json!({ "role": "assistant", "content": "Well, one" }));
        assert_eq!(body["messages"].as_array().map(Vec::len), Some(if how == How::Instruct { 3 } else { 2 }));
    }
}
