//! Between two ends of one dialect nothing is lost: each field of a request, at every depth, and each digit of its numbers
//! reaches the provider, and what a provider says beside the documented fields reaches the client, before a splice and
//! behind it.
#![expect(clippy::expect_used, clippy::panic, reason = "a test's panic is its report")]

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use segue::chat::{DialectId, Request};
use segue::dialect::anthropic::Anthropic;
use segue::dialect::chat::Chat;
use segue::dialect::{Client, End, Expect, Flow, Provider};
use segue::event::{Event, Identity, Step, Usage};
use segue::routing::Target;
use segue::sse;
use segue::turn::resume::{Anchor, Carry, Continue, How, Origin};
use serde_json::{Value, json};

// === requests ===

#[test]
fn a_chat_request_reaches_a_chat_provider_whole() {
    for body in CHAT_BODIES {
        let sent = value(body);
        let request = Chat.parse(&HeaderMap::new(), body.as_bytes()).unwrap_or_else(|e| panic(body, &e.message));
        for carry in [Carry::fresh(), going_on()] {
            let fresh = carry == Carry::fresh();
            let wire = Chat.encode(&request, &Target::new("a", "m-a", DialectId::Chat), &carry).expect("a request");
            let got: Value = serde_json::from_slice(&wire.body).expect("JSON");
            holds(
                &sent,
                &got,
                &["model", "stream", "stream_options", "messages", "max_tokens", "max_completion_tokens"],
                body,
            );
            history(&sent, &got, body);
            for limit in ["max_tokens", "max_completion_tokens"] {
                assert!(!fresh || sent.get(limit) == got.get(limit), "{body}: {limit}");
            }
            assert!(wire.dropped.is_empty(), "{body}: {:?}", wire.dropped);
        }
    }
}

#[test]
fn a_messages_request_reaches_a_messages_provider_whole() {
    for body in MESSAGES_BODIES {
        let sent = value(body);
        let request = Anthropic.parse(&HeaderMap::new(), body.as_bytes()).unwrap_or_else(|e| panic(body, &e.message));
        for carry in [Carry::fresh(), going_on()] {
            let target = Target::new("a", "claude-sonnet-4-6", DialectId::Anthropic);
            let wire = Anthropic.encode(&request, &target, &carry).expect("a request");
            let got: Value = serde_json::from_slice(&wire.body).expect("JSON");
            // A continuation thinks as little as it can, and its limit is what is left.
            let own = ["model", "stream", "messages", "max_tokens", "thinking", "output_config"];
            holds(&sent, &got, if carry == Carry::fresh() { &own[..3] } else { &own }, body);
            history(&sent, &got, body);
        }
    }
}

// === answers ===

#[test]
fn what_a_chat_provider_says_reaches_a_chat_client() {
    for (title, chunks) in CHAT_STREAMS {
        let said = gathered(chunks.iter().map(|chunk| value(chunk)));
        for spliced in [false, true] {
            let told = gathered(chat_stream(chunks, spliced).into_iter());
            let mut said = said.clone();
            if spliced && let Some(content) = said["content"].as_str() {
                said["content"] = format!("Before. {content}").into();
            }
            covers(&said, &told, &format!("{title}, spliced: {spliced}"));
        }
        let whole = chat_whole(chunks);
        let mut message = whole["choices"][0]["message"].clone();
        message["finish_reason"] = whole["choices"][0]["finish_reason"].clone();
        message["logprobs"] = whole["choices"][0]["logprobs"].clone();
        covers(&said, &message, &format!("{title}, whole"));
    }
}

#[test]
fn what_a_messages_provider_says_of_a_call_reaches_a_messages_client() {
    let frames = [
        r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"c","content":[],"stop_reason":null,"usage":{"input_tokens":5,"output_tokens":0}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{},"caller":{"type":"code_execution_20250825","tool_id":"srvtoolu_1"}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"n\":12345678901234567890123}"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":3}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    for stream in [true, false] {
        let body =
            json!({"model": "m", "max_tokens": 9, "stream": stream, "messages": [{"role": "user", "content": "go"}]});
        let request = Anthropic.parse(&HeaderMap::new(), body.to_string().as_bytes()).expect("a request");
        let mut encoder = Anthropic.encoder(&request);
        let mut decoder = Anthropic.decoder(Expect::of(1));
        let mut out = BytesMut::new();
        for frame in frames {
            let mut step = Step::default();
            decoder.event(&event(frame), &mut step).expect("an event");
            encoder.step(&step, &mut out);
        }
        encoder.close(End::Complete(&Usage::default()), &mut out);
        let text = String::from_utf8_lossy(&out);
        assert!(text.contains(r#""caller":{"type":"code_execution_20250825","tool_id":"srvtoolu_1"}"#), "{text}");
        assert!(text.contains("12345678901234567890123"), "{text}");
    }
}

// === helpers ===

fn panic(body: &str, why: &str) -> ! {
    panic!("{body}: {why}")
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn event(data: &str) -> sse::Event {
    sse::Event { name: Bytes::new(), data: Bytes::copy_from_slice(data.as_bytes()), single_line: true }
}

fn going_on() -> Carry {
    let delivered = "One, two,";
    let origin = Origin::Continue(Continue {
        delivered: delivered.into(),
        anchor: Anchor::of(delivered),
        how: How::Instruct,
        tokens: 3,
    });
    Carry { origin, ..Carry::fresh() }
}

/// Every field of `sent` but these is in `got`, digit by digit.
fn holds(sent: &Value, got: &Value, but: &[&str], whose: &str) {
    for (name, field) in sent.as_object().expect("an object").iter().filter(|(name, _)| !but.contains(&name.as_str())) {
        assert_eq!(Some(field.to_string()), got.get(name).map(Value::to_string), "{whose}: {name}");
    }
}

/// The messages that were sent come first, each as it was, save one that the client began for the model.
fn history(sent: &Value, got: &Value, whose: &str) {
    let (sent, got) = (sent["messages"].as_array().expect("messages"), got["messages"].as_array().expect("messages"));
    for (at, message) in sent.iter().enumerate() {
        if at + 1 == sent.len() && message["role"] == "assistant" {
            continue;
        }
        assert_eq!(message.to_string(), got[at].to_string(), "{whose}");
    }
}

fn chat_request(stream: bool) -> Request {
    let body = json!({"model": "m", "stream": stream, "messages": [{"role": "user", "content": "go"}]});
    Chat.parse(&HeaderMap::new(), body.to_string().as_bytes()).expect("a request")
}

fn steps(chunks: &[&str]) -> Vec<Step> {
    let mut decoder = Chat.decoder(Expect::of(1));
    let mut steps = Vec::new();
    for chunk in chunks.iter().copied().chain(["[DONE]"]) {
        let mut step = Step::default();
        let flow = decoder.event(&event(chunk), &mut step).expect("an event");
        steps.push(step);
        if flow == Flow::Done {
            break;
        }
    }
    steps
}

/// The chunks that a client is given; `spliced`: behind words of another provider.
fn chat_stream(chunks: &[&str], spliced: bool) -> Vec<Value> {
    let mut encoder = Chat.encoder(&chat_request(true));
    let mut out = BytesMut::new();
    if spliced {
        let identity = Identity { id: "first".to_owned(), model: "m-a".to_owned(), created: 7 };
        encoder.step(&Step::of(Event::Identity(Box::new(identity))), &mut out);
        encoder.step(&Step::of(Event::Text { choice: 0, text: "Before. ".to_owned() }), &mut out);
    }
    for mut step in steps(chunks) {
        if spliced {
            step.raw = None;
        }
        encoder.step(&step, &mut out);
    }
    encoder.close(End::Complete(&Usage::default()), &mut out);
    let text = String::from_utf8(out.to_vec()).expect("text");
    let data = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    data.map(value).collect()
}

fn chat_whole(chunks: &[&str]) -> Value {
    let mut encoder = Chat.encoder(&chat_request(false));
    let mut out = BytesMut::new();
    steps(chunks).iter().for_each(|step| encoder.step(step, &mut out));
    encoder.close(End::Complete(&Usage::default()), &mut out);
    serde_json::from_slice(&out).expect("JSON")
}

/// The message that a client's library makes of chunks: texts and lists are joined, calls by their index.
fn gathered(chunks: impl Iterator<Item = Value>) -> Value {
    let mut message = json!({});
    for chunk in chunks {
        let Some(choice) = chunk["choices"].get(0) else { continue };
        gather(&mut message, &choice["delta"]);
        for beside in ["finish_reason", "logprobs"] {
            if let Some(field) = choice.get(beside).filter(|field| !field.is_null()) {
                gather(&mut message, &json!({ beside: field }));
            }
        }
    }
    if let Some(calls) = message.get_mut("tool_calls").and_then(Value::as_array_mut) {
        calls.iter_mut().filter_map(Value::as_object_mut).for_each(|call| {
            call.shift_remove("index");
        });
    }
    message
}

fn gather(into: &mut Value, delta: &Value) {
    let (Some(into), Some(delta)) = (into.as_object_mut(), delta.as_object()) else { return };
    for (name, new) in delta.iter().filter(|(_, new)| !new.is_null()) {
        match (into.get_mut(name), new) {
            (None, Value::Array(items)) if name == "tool_calls" => {
                into.insert(name.clone(), json!([]));
                calls(into.get_mut(name).expect("it is there"), items);
            }
            (Some(old), Value::Array(items)) if name == "tool_calls" => calls(old, items),
            (Some(Value::String(old)), Value::String(new)) if !matches!(name.as_str(), "id" | "type" | "role") => {
                old.push_str(new);
            }
            (Some(Value::Array(old)), Value::Array(new)) => old.extend(new.iter().cloned()),
            (Some(old @ Value::Object(_)), Value::Object(_)) => gather(old, new),
            _ => {
                into.insert(name.clone(), new.clone());
            }
        }
    }
}

fn calls(old: &mut Value, items: &[Value]) {
    let old = old.as_array_mut().expect("a list");
    for item in items {
        match old.iter_mut().find(|call| call["index"] == item["index"]) {
            Some(call) => gather(call, item),
            None => old.push(item.clone()),
        }
    }
}

/// Everything of `said` is in `told`.
fn covers(said: &Value, told: &Value, whose: &str) {
    match (said, told) {
        (Value::Object(said), Value::Object(told)) => {
            for (name, field) in said {
                match told.get(name) {
                    Some(told) => covers(field, told, &format!("{whose}: {name}")),
                    // An empty text and none are the same.
                    None => assert!(matches!(field, Value::String(text) if text.is_empty()), "{whose} lacks {name}"),
                }
            }
        }
        (Value::Array(said), Value::Array(told)) => {
            assert_eq!(said.len(), told.len(), "{whose}");
            said.iter().zip(told).for_each(|(said, told)| covers(said, told, whose));
        }
        (Value::String(said), Value::Null) if said.is_empty() => {}
        _ => assert_eq!(said.to_string(), told.to_string(), "{whose}"),
    }
}

/// Bodies in the forms that agents, voice platforms and chat UIs send.
const CHAT_BODIES: &[&str] = &[
    r#"{"model":"m","messages":[{"role":"user","content":"go"}],"seed":9007199254740993,"temperature":0.70,"top_p":1.0}"#,
    r#"{"model":"m","messages":[{"role":"developer","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral","ttl":"1h"}}]}],"reasoning_effort":"low","verbosity":"low","prompt_cache_key":"k","safety_identifier":"u"}"#,
    r#"{"model":"m","messages":[{"role":"user","content":"go","name":"ann"}],"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object","properties":{"n":{"type":"integer","maximum":340282366920938463463374607431768211455,"minimum":-170141183460469231731687303715884105728},"x":{"multipleOf":0.10}}}}}],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"f"}}]}}}"#,
    r#"{"model":"m","messages":[{"role":"user","content":"w"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"AbC=="}}}]},{"role":"tool","tool_call_id":"c1","content":"sunny"}]}"#,
    r#"{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","reasoning":"because","reasoning_details":[{"type":"reasoning.encrypted","data":"x","index":0}]},{"role":"user","content":"c"}],"usage":{"include":true},"provider":{"order":["x"],"allow_fallbacks":false},"plugins":[{"id":"web"}]}"#,
    r#"{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","reasoning_content":"r"},{"role":"user","content":"c"}],"chat_template_kwargs":{"enable_thinking":false},"min_p":0.05,"top_k":40,"repetition_penalty":1.10,"stop_token_ids":[151643]}"#,
    r#"{"model":"m","messages":[{"role":"user","content":"go"}],"response_format":{"type":"json_object","schema":{"type":"object"}},"grammar":"root ::= x","n_predict":-1,"cache_prompt":true}"#,
    r#"{"model":"m","messages":[{"role":"user","content":"go"}],"max_tokens":-1,"logit_bias":{"50256":-100},"presence_penalty":1e-3}"#,
    r#"{"model":"m","messages":[{"role":"user","content":"go"}],"response_format":{"type":"json_schema","json_schema":{"name":"a","strict":true,"schema":{"type":"object","properties":{"a":{"const":1.0}}}}},"metadata":{"run":"1"},"service_tier":"flex","store":false}"#,
    r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"what?"},{"type":"image_url","image_url":{"url":"data:image/jpg;base64,/9j/4AAQ","detail":"low"}},{"type":"input_audio","input_audio":{"data":"UklGRg==","format":"wav"}},{"type":"file","file":{"file_id":"f1"}}]}]}"#,
    r#"{"model":"m","messages":[{"role":"system","content":"x"},{"role":"user","content":"go"}],"call":{"id":"c"},"session_id":"s1","elevenlabs_extra_body":{"k":1},"user_id":"u1","customer":{"n":1}}"#,
    r#"{"model":"m","messages":[{"role":"user","content":"go"}],"functions":[{"name":"f","parameters":{"type":"object"}}],"function_call":"auto"}"#,
    r#"{"model":"m","messages":[{"role":"user","content":"go"}],"max_completion_tokens":800,"stream":true,"stream_options":{"include_usage":true,"include_obfuscation":false},"web_search_options":{"user_location":{"type":"approximate"}}}"#,
    r#"{"model":"m","messages":[{"role":"user","content":"Zähle: ✓ \u0000 \ud83d\ude00"},{"role":"assistant","content":"Well,"}],"guided_json":{"type":"object"},"priority":0,"logprobs":true,"top_logprobs":5}"#,
    r#"{"model":"m","messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"text","text":"a"}],"refusal":null,"annotations":[],"audio":null},{"role":"user","content":"on"}],"tools":[{"type":"custom","custom":{"name":"x","format":{"type":"text"}}},{"type":"web_search_preview"}]}"#,
    r#"{"model":"m","messages":[{"role":"user","content":"go"}],"extra_body":{"google":{"thinking_config":{"include_thoughts":true,"thinking_budget":-1}}},"modalities":["text"],"prediction":{"type":"content","content":"x"}}"#,
];

const MESSAGES_BODIES: &[&str] = &[
    r#"{"model":"m","max_tokens":500,"messages":[{"role":"user","content":"go"}],"metadata":{"user_id":"u"},"top_k":5}"#,
    r#"{"model":"m","max_tokens":500,"system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"go","cache_control":{"type":"ephemeral","ttl":"1h"}}]}],"service_tier":"auto","container":null,"context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]}}"#,
    r#"{"model":"m","max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":2048},"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"toolu_1","name":"f","input":{"n":12345678901234567890123,"x":1.10},"caller":{"type":"direct"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"ok","is_error":false}]}],"tools":[{"name":"f","input_schema":{"type":"object","properties":{"n":{"maximum":340282366920938463463374607431768211455}}},"defer_loading":true,"eager_input_streaming":true},{"type":"web_search_20250305","name":"web_search","max_uses":3}]}"#,
    r#"{"model":"m","max_tokens":500,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"},"title":"T","citations":{"enabled":true}},{"type":"text","text":"why?"}]},{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"sea"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://x.example","encrypted_content":"Eo8"}]},{"type":"text","text":"blue","citations":[{"type":"char_location","start_char_index":0}]}]},{"role":"user","content":"more"}],"mcp_servers":[{"type":"url","url":"https://y.example","name":"y"}]}"#,
];

/// Streams in the forms that providers send.
const CHAT_STREAMS: &[(&str, &[&str])] = &[
    (
        "a call with a signature",
        &[
            r#"{"id":"a","object":"chat.completion.chunk","created":1,"model":"g","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"AbC=="}}}]},"finish_reason":null}]}"#,
            r#"{"id":"a","object":"chat.completion.chunk","created":1,"model":"g","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
        ],
    ),
    (
        "a signature behind the arguments, and fields of a function",
        &[
            r#"{"id":"a","object":"chat.completion.chunk","created":1,"model":"g","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":","parsed":1.50}}]},"finish_reason":null}]}"#,
            r#"{"id":"a","object":"chat.completion.chunk","created":1,"model":"g","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}},{"index":1,"id":"c2","type":"function","function":{"name":"g","arguments":"{}"},"caller":{"type":"direct"}}]},"finish_reason":null}]}"#,
            r#"{"id":"a","object":"chat.completion.chunk","created":1,"model":"g","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"extra_content":{"google":{"thought_signature":"Late=="}}}]},"finish_reason":null}]}"#,
            r#"{"id":"a","object":"chat.completion.chunk","created":1,"model":"g","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
        ],
    ),
    (
        "arguments before id and name",
        &[
            r#"{"id":"a","object":"chat.completion.chunk","created":1,"model":"g","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]},"finish_reason":null}]}"#,
            r#"{"id":"a","object":"chat.completion.chunk","created":1,"model":"g","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"1}"}}]},"finish_reason":null}]}"#,
            r#"{"id":"a","object":"chat.completion.chunk","created":1,"model":"g","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
        ],
    ),
    (
        "text with annotations and log-probabilities",
        &[
            r#"{"id":"a","object":"chat.completion.chunk","created":1,"model":"o","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"logprobs":{"content":[{"token":"Hi","logprob":-0.10,"bytes":[72,105]}]},"finish_reason":null}]}"#,
            r#"{"id":"a","object":"chat.completion.chunk","created":1,"model":"o","choices":[{"index":0,"delta":{"content":".","annotations":[{"type":"url_citation","url_citation":{"start_index":0}}]},"finish_reason":null}]}"#,
            r#"{"id":"a","object":"chat.completion.chunk","created":1,"model":"o","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        ],
    ),
];

/// What of reasoning a provider says goes to a client that was told nothing before.
#[test]
fn reasoning_keeps_its_name() {
    for name in ["reasoning", "reasoning_content", "reasoning_text", "thinking"] {
        let chunk = |delta: &Value, finish: Option<&str>| {
            json!({"id":"a","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":delta,"finish_reason":finish}]}).to_string()
        };
        let chunks = [
            chunk(&json!({"role": "assistant", name: "h"}), None),
            chunk(&json!({name: "m"}), None),
            chunk(&json!({"content": "Hi."}), None),
            chunk(&json!({}), Some("stop")),
        ];
        let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
        let told = gathered(chat_stream(&chunks, false).into_iter());
        assert_eq!((&told[name], &told["content"]), (&json!("hm"), &json!("Hi.")), "{name}: {told}");
        assert_eq!(chat_whole(&chunks)["choices"][0]["message"][name], "hm");
    }
}
