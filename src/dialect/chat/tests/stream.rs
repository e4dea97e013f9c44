//! What a client is given, read as strictly as the strictest of its libraries does.

#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use super::{delta, finish, request, steps};
use crate::chat::{DialectId, Minted, Request};
use crate::dialect::chat::Chat;
use crate::dialect::{Client, End, Expect, Provider, Reason, Refusal};
use crate::event::{Event, Extra, Finish, Identity, Place, Step, Usage};
use bytes::{Bytes, BytesMut};
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use serde_json::{Map, Value, json};

/// What a client's library makes of a stream.
#[derive(Debug, Default, PartialEq)]
struct Message {
    text: String,
    reasoning: String,
    calls: Vec<(String, String, String)>,
    finish: Option<String>,
}

/// Reads a stream and checks it against all that libraries need.
fn read(bytes: &[u8], usage: bool) -> Vec<Message> {
    let text = std::str::from_utf8(bytes).unwrap();
    let mut frames: Vec<&str> = text.strip_suffix("\n\n").unwrap().split("\n\n").collect();
    assert_eq!(frames.pop(), Some("data: [DONE]"), "{text}");
    let (mut messages, mut identity, mut roles) = (Vec::<Message>::new(), None, Vec::<bool>::new());
    let mut counts = 0;
    for frame in frames {
        let chunk: Value = serde_json::from_str(frame.strip_prefix("data: ").unwrap()).unwrap();
        assert!(!frame.contains('\n') && counts == 0, "{frame}");
        assert_eq!(chunk["object"], "chat.completion.chunk");
        let who = (chunk["id"].clone(), chunk["created"].clone(), chunk["model"].clone());
        assert!(who.0 != "" && who.2 != "" && who.1.is_u64());
        assert_eq!(*identity.get_or_insert_with(|| who.clone()), who);
        let choices = chunk["choices"].as_array().unwrap();
        if choices.is_empty() {
            assert!(usage && chunk["usage"]["total_tokens"].is_u64(), "{frame}");
            counts += 1;
        }
        for choice in choices {
            let index = usize::try_from(choice["index"].as_u64().unwrap()).unwrap();
            assert!(index <= messages.len(), "the first chunk of a choice comes after those before it: {frame}");
            if index == messages.len() {
                messages.push(Message::default());
                roles.push(false);
            }
            let (message, delta) = (&mut messages[index], choice["delta"].as_object().unwrap());
            assert_eq!(delta.contains_key("role"), !roles[index], "{frame}");
            roles[index] = true;
            assert_eq!(message.finish, None, "nothing follows a finish: {frame}");
            let piece = |name: &str| delta.get(name).and_then(Value::as_str).unwrap_or_default();
            message.text.push_str(piece("content"));
            message.reasoning.push_str(piece("reasoning_content"));
            message.reasoning.push_str(piece("reasoning"));
            for call in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
                let at = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
                let first = at == message.calls.len();
                assert!(first || at < message.calls.len());
                assert_eq!((call.get("id").is_some(), call.get("type").is_some()), (first, first));
                assert_eq!(call["function"].get("name").is_some(), first);
                if first {
                    let word = |v: &Value| v.as_str().unwrap().to_owned();
                    message.calls.push((word(&call["id"]), word(&call["function"]["name"]), String::new()));
                    assert!(!message.calls[at].0.is_empty());
                }
                message.calls[at].2.push_str(call["function"]["arguments"].as_str().unwrap());
            }
            message.finish = choice["finish_reason"].as_str().map(str::to_owned);
        }
    }
    assert_eq!(counts, usize::from(usage));
    assert!(messages.iter().all(|m| m.finish.is_some()));
    messages
}

fn streamed(n: u32, usage: bool) -> Request {
    request(&json!({ "stream": true, "n": n, "stream_options": { "include_usage": usage } }))
}

fn encode(request: &Request, steps: &[Step]) -> Vec<u8> {
    let mut encoder = Chat.encoder(request);
    let mut out = BytesMut::new();
    steps.iter().for_each(|step| encoder.step(step, &mut out));
    encoder.close(End::Complete(&Usage { prompt: Some(5), completion: Some(2), ..Usage::default() }), &mut out);
    out.to_vec()
}

fn text(choice: u32, text: &str) -> Event {
    Event::Text { choice, text: text.to_owned() }
}

fn end(choice: u32, reason: Finish) -> Event {
    Event::Finish { choice, reason, stop_sequence: None }
}

fn who(id: &str) -> Event {
    Event::Identity(Box::new(Identity { id: id.to_owned(), model: "m".to_owned(), created: 7 }))
}

fn extra(place: Place, fields: &Value) -> Event {
    let fields = fields.as_object().cloned().unwrap_or_else(Map::new);
    Event::Extra(Box::new(Extra { dialect: DialectId::Chat, place, fields, bound: false }))
}

fn each(events: Vec<Event>) -> Vec<Step> {
    events.into_iter().map(Step::of).collect()
}

#[test]
fn a_plain_chunk_goes_on_as_it_came() {
    let role = delta(r#"{"role":"assistant","content":""}"#);
    let odd = delta(r#"{"content": "x"}"#).replace("\"choices\"", "\"system_fingerprint\":\"fp\",\"choices\"");
    let (steps, _) = steps(&[&role, &odd, &odd, &finish("stop"), "[DONE]"], 1);
    let bytes = encode(&streamed(1, false), &steps);
    let wire = String::from_utf8(bytes.clone()).unwrap();
    // The first carries the role and is written anew.
    assert_eq!(wire.matches("{\"content\": \"x\"}").count(), 1);
    assert!(
        wire.contains(r#"{"role":"assistant","content":"x"},"finish_reason":null}],"system_fingerprint":"fp"}"#),
        "{wire}"
    );
    assert_eq!(read(&bytes, false)[0].text, "xx");
}

#[test]
fn another_speaker_keeps_the_turns_name() {
    let (mut all, _) = steps(&[&delta(r#"{"role":"assistant","content":"One"}"#)], 1);
    let other = delta(r#"{"content":" two"}"#).replace("\"a1\"", "\"b9\"");
    let (more, _) = steps(&[&delta(r#"{"role":"assistant"}"#).replace("\"a1\"", "\"b9\""), &other, &finish("stop")], 1);
    all.extend(more);
    let bytes = encode(&streamed(1, true), &all);
    let message = &read(&bytes, true)[0];
    assert_eq!((message.text.as_str(), message.finish.as_deref()), ("One two", Some("stop")));
    assert!(!String::from_utf8(bytes).unwrap().contains("b9"));
}

#[test]
fn the_last_identity_before_the_first_word_is_the_turns() {
    let bytes = encode(
        &streamed(1, false),
        &each(vec![who("dead"), Event::Alive, who("a1"), text(0, "x"), end(0, Finish::Stop)]),
    );
    let wire = String::from_utf8(bytes).unwrap();
    assert!(wire.contains("\"id\":\"a1\"") && !wire.contains("dead"));
}

#[test]
fn what_no_provider_named_is_minted() {
    let mut request = streamed(1, false);
    request.minted = Minted { id: 0xABC, unix: 99 };
    let call = |n| Event::ToolOpen { choice: 0, call: n, id: String::new(), name: "f".to_owned() };
    let bytes = encode(&request, &each(vec![call(0), call(1), end(0, Finish::Stop)]));
    let message = &read(&bytes, false)[0];
    assert_ne!(message.calls[0].0, message.calls[1].0);
    assert!(message.calls[0].0.starts_with("call_"));
    let wire = String::from_utf8(bytes).unwrap();
    assert!(wire.contains(r#""id":"chatcmpl-00000000000000000000000000000abc","object":"chat.completion.chunk","created":99,"model":"main""#));
}

#[test]
fn choices_begin_in_order() {
    let events =
        vec![who("a"), text(2, "c"), text(0, "a"), end(2, Finish::Stop), end(0, Finish::Length), end(1, Finish::Stop)];
    let messages = read(&encode(&streamed(3, true), &each(events)), true);
    let texts: Vec<_> = messages.iter().map(|m| (m.text.as_str(), m.finish.as_deref().unwrap())).collect();
    assert_eq!(texts, [("a", "length"), ("", "stop"), ("c", "stop")]);
}

#[test]
fn calls_have_indexes_of_their_own_and_the_finish_agrees() {
    let open = |call, id: &str| Event::ToolOpen { choice: 0, call, id: id.to_owned(), name: "f".to_owned() };
    let args = |call, args: &str| Event::ToolArgs { choice: 0, call, args: args.to_owned() };
    let step = |events: Vec<Event>| Step { events: events.into(), raw: None };
    let steps = [
        step(vec![who("a"), open(4, "x"), args(4, "{\"a\""), args(4, ":1}"), open(7, "y")]),
        step(vec![args(7, "{}"), Event::ToolClose { choice: 0, call: 7 }]),
        step(vec![end(0, Finish::Stop), text(0, "late"), end(0, Finish::Length)]),
    ];
    let message = &read(&encode(&streamed(1, false), &steps), false)[0];
    let call = |id: &str, args: &str| (id.to_owned(), "f".to_owned(), args.to_owned());
    assert_eq!(message.calls, [call("x", "{\"a\":1}"), call("y", "{}")]);
    assert_eq!((message.finish.as_deref(), &*message.text), (Some("tool_calls"), ""));
    for (reason, word) in [
        (Finish::ToolCalls, "stop"),
        (Finish::Pause, "length"),
        (Finish::Other("eos".to_owned()), "stop"),
        (Finish::ContentFilter, "content_filter"),
    ] {
        let message = &read(&encode(&streamed(1, false), &each(vec![text(0, "x"), end(0, reason)])), false)[0];
        assert_eq!(message.finish.as_deref(), Some(word));
    }
}

#[test]
fn clients_that_speak_of_functions_are_answered_so() {
    let open = |call| Event::ToolOpen { choice: 0, call, id: "x".to_owned(), name: "f".to_owned() };
    let args = |args: &str| Event::ToolArgs { choice: 0, call: 0, args: args.to_owned() };
    let events = || each(vec![who("a"), open(0), args("{\"a\""), args(":1}"), open(1), end(0, Finish::ToolCalls)]);
    let ask = |stream| request(&json!({ "stream": stream, "functions": [{ "name": "f" }] }));
    let wire = String::from_utf8(encode(&ask(true), &events())).unwrap();
    assert!(wire.contains(r#""content":null,"function_call":{"name":"f","arguments":""}}"#), "{wire}");
    assert!(wire.contains(r#""delta":{"function_call":{"arguments":":1}"}}"#), "{wire}");
    assert!(wire.contains(r#""finish_reason":"function_call""#) && !wire.contains("tool_calls"), "{wire}");
    let body: Value = serde_json::from_slice(&encode(&ask(false), &events())).unwrap();
    assert_eq!(body["choices"][0]["message"]["function_call"], json!({ "name": "f", "arguments": "{\"a\":1}" }));
    assert_eq!(body["choices"][0]["finish_reason"], "function_call");
}

#[test]
fn fields_of_the_same_dialect_are_written_back_where_they_stood() {
    let logprobs = |token: &str| extra(Place::Choice(0), &json!({ "logprobs": { "content": [{ "token": token }] } }));
    let events = vec![
        who("a"),
        text(0, "x"),
        extra(Place::Delta(0), &json!({ "annotations": [1] })),
        logprobs("x"),
        logprobs("y"),
        text(0, "y"),
        extra(Place::Top, &json!({ "service_tier": "flex" })),
        end(0, Finish::Stop),
        Event::Extra(Box::new(Extra {
            dialect: DialectId::Anthropic,
            place: Place::Top,
            fields: Map::new(),
            bound: false,
        })),
    ];
    let bytes = encode(&streamed(1, false), &[Step { events: events.into(), raw: None }]);
    read(&bytes, false);
    let wire = String::from_utf8(bytes).unwrap();
    let frames: Vec<_> = wire.split("\n\n").collect();
    assert!(frames[0].contains(r#""delta":{"role":"assistant","content":"x","annotations":[1]},"logprobs":{"content":[{"token":"x"}]},"finish_reason":null"#), "{wire}");
    assert!(frames[1].contains(r#""delta":{},"logprobs":{"content":[{"token":"y"}]}"#), "{wire}");
    assert!(frames[2].contains(r#""delta":{"content":"y"},"finish_reason":"stop"}],"service_tier":"flex"}"#), "{wire}");
}

#[test]
fn errors_and_signs_of_life() {
    let mut encoder = Chat.encoder(&streamed(1, true));
    let mut out = BytesMut::new();
    encoder.keep_alive(&mut out);
    encoder.comment("two\r\nlines", &mut out);
    assert_eq!(out.split().to_vec(), b": keep-alive\n: twolines\n");
    encoder.step(&Step::of(text(0, "a\n\"\u{2028}")), &mut out);
    assert_eq!(out.split().iter().filter(|b| **b == b'\n').count(), 2);
    let mut refusal = Refusal::new(Reason::Upstream, "c", "m");
    refusal.r#type = Some("overloaded_error".to_owned());
    encoder.close(End::Failed(&refusal), &mut out);
    encoder.close(End::Complete(&Usage::default()), &mut out);
    encoder.step(&Step::of(text(0, "late")), &mut out);
    let expected =
        "data: {\"error\":{\"message\":\"m\",\"type\":\"overloaded_error\",\"param\":null,\"code\":\"c\"}}\n\n";
    assert_eq!(out.to_vec(), expected.as_bytes());
}

#[test]
fn usage_is_the_turns_in_the_providers_words() {
    let native = json!({ "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2, "queue_time": 0.1, "completion_tokens_details": null });
    let usage = Usage {
        prompt: Some(5),
        completion: Some(7),
        reasoning: Some(3),
        native: Some((DialectId::Chat, native.as_object().unwrap().clone())),
        ..Usage::default()
    };
    let mut encoder = Chat.encoder(&streamed(1, true));
    let mut out = BytesMut::new();
    encoder.step(&Step { events: vec![text(0, "x"), end(0, Finish::Stop)].into(), raw: None }, &mut out);
    encoder.close(End::Complete(&usage), &mut out);
    let expected = r#""usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12,"queue_time":0.1,"completion_tokens_details":{"reasoning_tokens":3}}}"#;
    assert!(String::from_utf8(out.to_vec()).unwrap().contains(expected));
}

#[test]
fn a_whole_answer_is_gathered() {
    let open = Event::ToolOpen { choice: 0, call: 0, id: "t".to_owned(), name: "f".to_owned() };
    let args = |args: &str| Event::ToolArgs { choice: 0, call: 0, args: args.to_owned() };
    let logprobs = |token: &str| {
        extra(Place::Choice(0), &json!({ "logprobs": { "content": [{ "token": token }], "refusal": null } }))
    };
    let reasoning = Event::Reasoning { choice: 0, text: "hm".to_owned() };
    let events = vec![
        who("dead"),
        who("a"),
        reasoning,
        text(0, "x"),
        logprobs("x"),
        who("b"),
        text(0, "y"),
        logprobs("y"),
        open,
        args("{"),
        args("}"),
        extra(Place::Delta(0), &json!({ "annotations": [1] })),
        extra(Place::Delta(0), &json!({ "annotations": [2] })),
        extra(Place::Top, &json!({ "service_tier": "flex" })),
        end(0, Finish::Stop),
        text(0, "late"),
    ];
    let body: Value = serde_json::from_slice(&encode(&request(&json!({})), &each(events))).unwrap();
    let expected = json!({
        "id": "a", "object": "chat.completion", "created": 7, "model": "m",
        "choices": [{ "index": 0, "finish_reason": "tool_calls",
            "message": { "role": "assistant", "content": "xy", "refusal": null, "reasoning_content": "hm",
                "tool_calls": [{ "id": "t", "type": "function", "function": { "name": "f", "arguments": "{}" } }], "annotations": [1, 2] },
            "logprobs": { "content": [{ "token": "x" }, { "token": "y" }], "refusal": null } }],
        "usage": { "prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7 }, "service_tier": "flex",
    });
    assert_eq!(body, expected);
    // It can be read back.
    let again = Chat.whole(body.to_string().as_bytes(), Expect::of(1)).unwrap();
    assert!(again.iter().flat_map(|s| &s.events).any(|e| *e == text(0, "xy")));
    let refused = encode(
        &request(&json!({})),
        &each(vec![Event::Refusal { choice: 0, text: "no".to_owned() }, end(0, Finish::Stop)]),
    );
    let refused: Value = serde_json::from_slice(&refused).unwrap();
    assert_eq!(refused["choices"][0]["message"], json!({ "role": "assistant", "content": null, "refusal": "no" }));
}

/// One delta of an answer, in any provider's form.
fn any_delta() -> impl Strategy<Value = String> {
    let text = "[a-z \"\\\\\n😀é]{0,6}";
    prop_oneof![
        text.prop_map(|t| json!({ "content": t }).to_string()),
        text.prop_map(|t| json!({ "role": "assistant", "content": t }).to_string()),
        text.prop_map(|t| json!({ "reasoning": t, "content": null }).to_string()),
        (text, text).prop_map(|(r, t)| json!({ "reasoning_content": r, "content": t }).to_string()),
        (0..3_u8, any::<bool>(), text).prop_map(|(n, index, value)| {
            let args = json!({ "v": value }).to_string();
            let mut call =
                json!({ "id": format!("c{n}"), "type": "function", "function": { "name": "f", "arguments": args } });
            if index {
                call["index"] = json!(0);
            }
            json!({ "tool_calls": [call] }).to_string()
        }),
        Just("{}".to_owned()),
    ]
}

/// The answer that events tell.
fn gathered(steps: &[Step]) -> Message {
    let mut message = Message::default();
    for event in steps.iter().flat_map(|s| &s.events) {
        match event {
            Event::Text { text, .. } => message.text.push_str(text),
            Event::Reasoning { text, .. } => message.reasoning.push_str(text),
            Event::ToolOpen { id, name, .. } => message.calls.push((id.clone(), name.clone(), String::new())),
            Event::ToolArgs { call, args, .. } => message.calls[usize::try_from(*call).unwrap()].2.push_str(args),
            Event::Finish { .. } => {
                message.finish = Some(if message.calls.is_empty() { "stop" } else { "tool_calls" }.to_owned())
            }
            _ => {}
        }
    }
    message
}

proptest! {
    #[test]
    fn what_is_read_is_what_is_written(deltas in proptest::collection::vec(any_delta(), 0..12), raw in any::<bool>()) {
        let mut events: Vec<String> = deltas.iter().map(|d| delta(d)).collect();
        events.push(finish("stop"));
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        // The same call told twice with other arguments is refused; such a stream tells nothing here.
        if let (mut steps, Ok(_)) = steps(&events, 1) {
            if !raw {
                steps.iter_mut().for_each(|s| s.raw = None);
            }
            let bytes = encode(&streamed(1, raw), &steps);
            let message = gathered(&steps);
            let read = read(&bytes, raw);
            assert_eq!(read[0], message);
            // And read once more, as another gateway behind this one would.
            let wire = String::from_utf8(bytes).unwrap();
            let frames: Vec<&str> = wire.split("\n\n").filter_map(|f| f.strip_prefix("data: ")).collect();
            let (again, _) = super::steps(&frames, 1);
            assert_eq!(gathered(&again), message);
        }
    }
}

#[test]
fn raw_bytes_of_another_dialect_are_not_passed_on() {
    let mut encoder = Chat.encoder(&streamed(1, false));
    let mut out = BytesMut::new();
    encoder.step(&Step { events: vec![who("a"), text(0, "x")].into(), raw: None }, &mut out);
    let raw = Some((DialectId::Anthropic, Bytes::from_static(b"{}")));
    encoder.step(&Step { events: vec![text(0, "y")].into(), raw }, &mut out);
    assert!(!String::from_utf8(out.to_vec()).unwrap().contains("data: {}"));
}
