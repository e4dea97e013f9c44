//! What a client of the Messages API is told.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test's panic is its report")]

use crate::chat::{DialectId, Minted, Request};
use crate::dialect::{Client, End, Reason, Refusal, anthropic::Anthropic};
use crate::event::{Event, Extra, Finish, Identity, Place, Step, Usage};
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use serde_json::{Value, json};

fn request(stream: bool) -> Request {
    let body = json!({"model": "main", "max_tokens": 64, "stream": stream, "stop_sequences": ["END"],
                      "messages": [{"role": "user", "content": "hi"}]});
    let mut request = Anthropic.parse(&HeaderMap::new(), body.to_string().as_bytes()).expect("a request");
    request.minted = Minted { id: 0xABC, unix: 1 };
    request
}

fn text(text: &str) -> Event {
    Event::Text { choice: 0, text: text.to_owned() }
}

fn reasoning(text: &str) -> Event {
    Event::Reasoning { choice: 0, text: text.to_owned() }
}

fn sign(data: &str, redacted: bool) -> Event {
    Event::Signature { choice: 0, data: data.to_owned(), redacted }
}

fn open(call: u32, name: &str) -> Event {
    Event::ToolOpen { choice: 0, call, id: format!("t{call}"), name: name.to_owned() }
}

fn args(call: u32, args: &str) -> Event {
    Event::ToolArgs { choice: 0, call, args: args.to_owned() }
}

fn shut(call: u32) -> Event {
    Event::ToolClose { choice: 0, call }
}

fn finish(reason: Finish) -> Event {
    Event::Finish { choice: 0, reason, stop_sequence: None }
}

fn identity(id: &str, model: &str) -> Event {
    Event::Identity(Box::new(Identity { id: id.to_owned(), model: model.to_owned(), created: 0 }))
}

#[expect(clippy::needless_pass_by_value, reason = "literals read best as arguments")]
fn extra(place: Place, fields: Value) -> Event {
    let fields = fields.as_object().unwrap().clone();
    Event::Extra(Box::new(Extra { dialect: DialectId::Anthropic, place, fields, bound: false }))
}

fn run(events: Vec<Event>, usage: &Usage) -> String {
    let mut encoder = Anthropic.encoder(&request(true));
    let mut out = BytesMut::new();
    for event in events {
        encoder.step(&Step::of(event), &mut out);
    }
    encoder.close(End::Complete(usage), &mut out);
    String::from_utf8(out.to_vec()).unwrap()
}

/// Names and data of a stream's events; each name must be its data's type.
fn frames(out: &str) -> Vec<Value> {
    let blocks = out.split("\n\n").filter(|b| !b.is_empty() && !b.starts_with(':'));
    blocks
        .map(|block| {
            let (name, data) = block.split_once('\n').expect("two lines");
            let data: Value = serde_json::from_str(data.strip_prefix("data: ").expect("data")).unwrap();
            assert_eq!(name.strip_prefix("event: "), data["type"].as_str());
            data
        })
        .collect()
}

/// `index kind` for starts and stops, `index text` for deltas.
fn brief(out: &str) -> Vec<String> {
    let brief = |data: &Value| {
        let index = &data["index"];
        match data["type"].as_str()? {
            "content_block_start" => Some(format!("{index} +{}", data["content_block"]["type"].as_str()?)),
            "content_block_stop" => Some(format!("{index} -")),
            "content_block_delta" => {
                let delta = data["delta"].as_object()?;
                let told = delta.iter().find(|(field, _)| *field != "type").map(|(_, value)| value)?;
                Some(format!("{index} {}", told.as_str().map_or_else(|| told.to_string(), str::to_owned)))
            }
            _ => None,
        }
    };
    frames(out).iter().filter_map(brief).collect()
}

fn whole(events: Vec<Event>, usage: &Usage) -> Value {
    let mut encoder = Anthropic.encoder(&request(false));
    let mut out = BytesMut::new();
    for event in events {
        encoder.step(&Step::of(event), &mut out);
    }
    assert!(out.is_empty(), "a whole answer is written at its end");
    encoder.close(End::Complete(usage), &mut out);
    serde_json::from_slice(&out).unwrap()
}

#[test]
fn the_plain_turn_to_the_byte() {
    let usage = Usage { prompt: Some(9), completion: Some(4), ..Usage::default() };
    let prompt = Usage { prompt: Some(9), ..Usage::default() };
    let out = run(
        vec![
            identity("msg_a", "claude-x"),
            Event::Usage(Box::new(prompt)),
            text("Hi \"you\"\n"),
            text("😀"),
            finish(Finish::Stop),
        ],
        &usage,
    );
    let expected = [
        r#"event: message_start"#,
        r#"data: {"type":"message_start","message":{"id":"msg_a","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":0}}}"#,
        "",
        r#"event: content_block_start"#,
        r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        "",
        r#"event: content_block_delta"#,
        r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi \"you\"\n"}}"#,
        "",
        r#"event: content_block_delta"#,
        r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"😀"}}"#,
        "",
        r#"event: content_block_stop"#,
        r#"data: {"type":"content_block_stop","index":0}"#,
        "",
        r#"event: message_delta"#,
        r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"input_tokens":9,"output_tokens":4}}"#,
        "",
        r#"event: message_stop"#,
        r#"data: {"type":"message_stop"}"#,
        "",
        "",
    ];
    assert_eq!(out, expected.join("\n"));
}

#[test]
fn a_splice_goes_on_in_the_same_block_under_the_same_name() {
    let out = run(
        vec![
            identity("msg_a", "a"),
            text("Hi"),
            identity("msg_b", "b"),
            Event::Usage(Box::new(Usage { prompt: Some(99), ..Usage::default() })),
            text(" there."),
            finish(Finish::Stop),
        ],
        &Usage::default(),
    );
    assert_eq!(brief(&out), ["0 +text", "0 Hi", "0  there.", "0 -"]);
    assert_eq!(out.matches("message_start\n").count(), 1);
    assert!(out.contains("msg_a") && !out.contains("msg_b"));
}

#[test]
fn one_block_is_open_at_a_time() {
    let out = run(
        vec![
            Event::Thinking(true),
            reasoning("hm"),
            sign("sig", false),
            Event::Thinking(false),
            sign("dark", true),
            Event::Thinking(true),
            sign("unseen", false),
            reasoning("cut off"),
            text("a"),
            open(0, "f"),
            open(1, "g"),
            args(0, "{\"x\":"),
            args(1, "{}"),
            args(0, "1}"),
            shut(1),
            shut(0),
            text("b"),
            finish(Finish::ToolCalls),
        ],
        &Usage::default(),
    );
    assert_eq!(
        brief(&out),
        [
            "0 +thinking",
            "0 hm",
            "0 sig",
            "0 -",
            "1 +redacted_thinking",
            "1 -",
            "2 +thinking",
            "2 unseen",
            "2 -",
            "3 +thinking",
            "3 cut off",
            "3 -",
            "4 +text",
            "4 a",
            "4 -",
            "5 +tool_use",
            "5 {\"x\":",
            "5 1}",
            "5 -",
            "6 +tool_use",
            "6 {}",
            "6 -",
            "7 +text",
            "7 b",
            "7 -",
        ]
    );
}

#[test]
fn calls_that_nobody_closed_are_told_all_the_same() {
    let out = run(vec![open(0, "f"), args(0, "{"), open(1, "g"), args(1, "[")], &Usage::default());
    assert_eq!(brief(&out), ["0 +tool_use", "0 {", "0 -", "1 +tool_use", "1 [", "1 -"]);
}

#[test]
fn raw_deltas_go_through_only_where_they_fit() {
    let mut encoder = Anthropic.encoder(&request(true));
    let mut out = BytesMut::new();
    let raw = |index: u32, data: &str| Step {
        events: smallvec::smallvec![text("x")],
        raw: Some((
            DialectId::Anthropic,
            Bytes::from(format!(
                "{{\"type\":\"content_block_delta\",\"index\":{index},\"delta\":{{\"type\":\"text_delta\",{data}}}}}"
            )),
        )),
    };
    encoder.step(&raw(0, "\"text\":\"x\",\"mark\":1"), &mut out);
    encoder.step(&raw(10, "\"text\":\"x\",\"mark\":2"), &mut out);
    let mut spaced = raw(0, "\"text\":\"x\"");
    spaced.raw = Some((DialectId::Anthropic, Bytes::from_static(b"{\"index\": 0, \"type\": \"content_block_delta\"}")));
    encoder.step(&spaced, &mut out);
    let mut other = raw(0, "\"text\":\"x\",\"mark\":3");
    other.raw = other.raw.map(|(_, data)| (DialectId::Chat, data));
    encoder.step(&other, &mut out);
    let mut two = raw(0, "\"text\":\"x\",\"mark\":4");
    two.events.push(text("y"));
    encoder.step(&two, &mut out);
    let out = String::from_utf8(out.to_vec()).unwrap();
    assert_eq!(brief(&out), ["0 +text", "0 x", "0 x", "0 x", "0 x", "0 x", "0 y"]);
    assert!(out.contains("\"mark\":1"));
    for mark in 2..=4 {
        assert!(!out.contains(&format!("\"mark\":{mark}")), "{mark}");
    }
}

#[test]
fn stop_reasons_agree_with_what_was_told() {
    let reason = |events: Vec<Event>| {
        let out = run(events, &Usage::default());
        let last = frames(&out).into_iter().find(|f| f["type"] == "message_delta").unwrap();
        (last["delta"]["stop_reason"].as_str().unwrap().to_owned(), last["delta"]["stop_sequence"].clone())
    };
    let call = || vec![open(0, "f"), args(0, "{}"), shut(0)];
    let refusal = Event::Refusal { choice: 0, text: "No.".to_owned() };
    let met = Event::Finish { choice: 0, reason: Finish::Stop, stop_sequence: Some("END".to_owned()) };
    let own = |word: &str| extra(Place::Choice(0), json!({"stop_reason": word}));
    for (events, expected) in [
        (vec![text("a"), finish(Finish::Stop)], "end_turn"),
        (vec![text("a"), finish(Finish::Length)], "max_tokens"),
        (vec![text("a"), finish(Finish::ToolCalls)], "end_turn"),
        ([call(), vec![finish(Finish::Stop)]].concat(), "tool_use"),
        ([call(), vec![finish(Finish::Length)]].concat(), "max_tokens"),
        (vec![text("a"), finish(Finish::ContentFilter)], "refusal"),
        (vec![refusal, finish(Finish::Stop)], "refusal"),
        (vec![text("a"), finish(Finish::Pause)], "pause_turn"),
        (vec![text("a"), finish(Finish::Other("eos".to_owned()))], "end_turn"),
        (vec![own("bored"), finish(Finish::Other("bored".to_owned()))], "bored"),
        (vec![own("model_context_window_exceeded"), finish(Finish::Length)], "model_context_window_exceeded"),
        (vec![own("model_context_window_exceeded"), finish(Finish::Stop)], "end_turn"),
    ] {
        assert_eq!(reason(events.clone()).0, expected, "{events:?}");
    }
    assert_eq!(reason(vec![text("a"), met]), ("stop_sequence".to_owned(), json!("END")));
    // A word of a server's own, which the client did not ask for.
    let own = Event::Finish { choice: 0, reason: Finish::Stop, stop_sequence: Some("eos".to_owned()) };
    assert_eq!(reason(vec![text("a"), own]), ("end_turn".to_owned(), json!(null)));
}

#[test]
fn names_are_minted_where_nobody_gave_any() {
    let out =
        run(vec![Event::ToolOpen { choice: 0, call: 3, id: String::new(), name: "f".to_owned() }], &Usage::default());
    let frames = frames(&out);
    assert_eq!(frames[0]["message"]["id"], format!("msg_{:032x}", 0xABC));
    assert_eq!(frames[0]["message"]["model"], "main");
    let id = frames[1]["content_block"]["id"].as_str().unwrap();
    assert!(id.starts_with("toolu_") && id.ends_with("03"), "{id}");
}

#[test]
fn blocks_without_a_common_form_come_back_renumbered() {
    let block = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
    let events = vec![
        text("a"),
        extra(Place::Whole, json!({"type": "content_block_start", "content_block": block})),
        extra(
            Place::Whole,
            json!({"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": "{\"q\":1}"}}),
        ),
        extra(Place::Whole, json!({"type": "content_block_stop"})),
        text("b"),
        extra(Place::Whole, json!({"type": "content_block_start", "content_block": {"type": "text", "text": ""}})),
        extra(Place::Delta(0), json!({"type": "citations_delta", "citation": {"n": 1}})),
        text("c"),
        extra(Place::Whole, json!({"type": "weather", "sky": "clear"})),
        extra(Place::Choice(0), json!({"stop_details": {"type": "refusal"}})),
        extra(Place::Top, json!({"context_management": {}})),
        finish(Finish::ContentFilter),
    ];
    let out = run(events.clone(), &Usage::default());
    assert_eq!(
        brief(&out),
        [
            "0 +text",
            "0 a",
            "0 -",
            "1 +server_tool_use",
            "1 {\"q\":1}",
            "1 -",
            "2 +text",
            "2 b",
            "2 -",
            "3 +text",
            "3 {\"n\":1}",
            "3 c",
            "3 -",
        ]
    );
    let last = frames(&out).into_iter().find(|f| f["type"] == "message_delta").unwrap();
    assert_eq!(last["delta"]["stop_details"], json!({"type": "refusal"}));
    assert_eq!(last["context_management"], json!({}));
    assert!(frames(&out).iter().any(|f| f["type"] == "weather" && f["sky"] == "clear"));
    let message = whole(events, &Usage::default());
    assert_eq!(
        message["content"],
        json!([
            {"type": "text", "text": "a"},
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": 1}},
            {"type": "text", "text": "b"},
            {"type": "text", "text": "c", "citations": [{"n": 1}]},
        ])
    );
}

#[test]
fn a_whole_answer_is_one_message() {
    let native = json!({"input_tokens": 1, "output_tokens": 1, "service_tier": "standard"});
    let usage = Usage {
        prompt: Some(30),
        completion: Some(7),
        cache_read: Some(20),
        native: Some((DialectId::Anthropic, native.as_object().unwrap().clone())),
        ..Usage::default()
    };
    let message = whole(
        vec![
            identity("msg_a", "claude-x"),
            reasoning("h"),
            reasoning("m"),
            sign("sig", false),
            text("Hel"),
            text("lo"),
            open(0, "f"),
            args(0, "{\"a\":"),
            args(0, "1}"),
            shut(0),
            open(1, "g"),
            args(1, "{\"broken"),
            finish(Finish::ToolCalls),
        ],
        &usage,
    );
    assert_eq!(
        message,
        json!({
            "id": "msg_a", "type": "message", "role": "assistant", "model": "claude-x",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "sig"},
                {"type": "text", "text": "Hello"},
                {"type": "tool_use", "id": "t0", "name": "f", "input": {"a": 1}},
                {"type": "tool_use", "id": "t1", "name": "g", "input": {"_raw": "{\"broken"}},
            ],
            "stop_reason": "tool_use", "stop_sequence": null,
            "usage": {"input_tokens": 10, "output_tokens": 7, "service_tier": "standard", "cache_read_input_tokens": 20},
        })
    );
}

#[test]
fn an_error_ends_a_stream_without_a_happy_ending() {
    let mut refusal = Refusal::new(Reason::Upstream, "upstream", "Overloaded");
    refusal.r#type = Some("overloaded_error".to_owned());
    let mut encoder = Anthropic.encoder(&request(true));
    let mut out = BytesMut::new();
    encoder.keep_alive(&mut out);
    encoder.step(&Step::of(text("Hi th")), &mut out);
    encoder.comment("spliced", &mut out);
    encoder.close(End::Failed(&refusal), &mut out);
    let out = String::from_utf8(out.to_vec()).unwrap();
    assert!(out.starts_with("event: ping\ndata: {\"type\":\"ping\"}\n\n"));
    assert!(out.contains("\n: spliced\n\n"));
    assert!(!out.contains("message_delta") && !out.contains("message_stop"));
    let last = frames(&out).pop().unwrap();
    assert_eq!((&last["type"], &last["error"]["type"]), (&json!("error"), &json!("overloaded_error")));
    let mut encoder = Anthropic.encoder(&request(false));
    let mut out = BytesMut::new();
    encoder.keep_alive(&mut out);
    encoder.close(End::Failed(&refusal), &mut out);
    assert_eq!(serde_json::from_slice::<Value>(&out).unwrap()["type"], "error");
}

#[test]
fn an_empty_answer_is_an_answer_and_other_choices_are_none() {
    let other = Event::Text { choice: 1, text: "x".to_owned() };
    let out = run(vec![identity("msg_a", "m"), other, finish(Finish::Stop)], &Usage::default());
    let kinds: Vec<_> = frames(&out).iter().map(|f| f["type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(kinds, ["message_start", "message_delta", "message_stop"]);
}
