//! What the encoder of Messages writes, the decoder reads back: random turns, streamed and whole.
#![expect(clippy::expect_used, reason = "a test's panic is its report")]

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use proptest::prelude::*;
use segue::chat::DialectId;
use segue::dialect::anthropic::Anthropic;
use segue::dialect::{Client, End, Expect, Flow, Provider};
use segue::event::{Event, Extra, Finish, Identity, Place, Step, Usage};
use segue::sse::{Decoder, Item};
use serde_json::{Value, json};

/// One thing of a turn, with its pieces.
#[derive(Clone, Debug)]
enum Thing {
    Text(Vec<String>),
    Thinking(Vec<String>, Option<String>),
    Redacted(String),
    Calls(Vec<(String, Value)>),
    Server(Value),
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{1,8}", "\\PC{1,4}", Just("\u{2028}\n\"\\😀\u{0}".to_owned())]
}

fn thing() -> impl Strategy<Value = Thing> {
    let pieces = || proptest::collection::vec(word(), 1..4);
    let call = ("[a-z]{1,6}", word()).prop_map(|(name, value)| (name, json!({"k": value})));
    prop_oneof![
        4 => pieces().prop_map(Thing::Text),
        2 => (pieces(), proptest::option::of("[A-Za-z0-9=]{1,9}")).prop_map(|(p, s)| Thing::Thinking(p, s)),
        1 => "[A-Za-z0-9=]{1,9}".prop_map(Thing::Redacted),
        2 => proptest::collection::vec(call, 1..3).prop_map(Thing::Calls),
        1 => word().prop_map(|w| Thing::Server(json!({"type": "web_search_tool_result", "content": w}))),
    ]
}

/// The events of a turn, as a decoder of any dialect would tell them.
fn events(things: &[Thing], finish: &Finish) -> Vec<Event> {
    let identity = Identity { id: "msg_x".to_owned(), model: "m".to_owned(), created: 0 };
    let mut events = vec![Event::Identity(Box::new(identity))];
    let mut calls = 0;
    for thing in things {
        match thing {
            Thing::Text(pieces) => {
                events.extend(pieces.iter().map(|text| Event::Text { choice: 0, text: text.clone() }));
            }
            Thing::Thinking(pieces, signature) => {
                events.push(Event::Thinking(true));
                events.extend(pieces.iter().map(|text| Event::Reasoning { choice: 0, text: text.clone() }));
                if let Some(data) = signature {
                    events.push(Event::Signature { choice: 0, data: data.clone(), redacted: false });
                }
                events.push(Event::Thinking(false));
            }
            Thing::Redacted(data) => {
                events.push(Event::Signature { choice: 0, data: data.clone(), redacted: true });
            }
            Thing::Calls(list) => {
                for (name, input) in list {
                    let (call, text) = (calls, input.to_string());
                    calls += 1;
                    events.push(Event::ToolOpen { choice: 0, call, id: format!("t{call}"), name: name.clone() });
                    let (head, tail) = text.split_at(3);
                    events.push(Event::ToolArgs { choice: 0, call, args: head.to_owned() });
                    events.push(Event::ToolArgs { choice: 0, call, args: tail.to_owned() });
                    events.push(Event::ToolClose { choice: 0, call });
                }
            }
            Thing::Server(block) => {
                for fields in [
                    json!({"type": "content_block_start", "content_block": block}),
                    json!({"type": "content_block_stop"}),
                ] {
                    let fields = fields.as_object().expect("an object").clone();
                    let (dialect, place) = (DialectId::Anthropic, Place::Whole);
                    events.push(Event::Extra(Box::new(Extra { dialect, place, fields, bound: true })));
                }
            }
        }
    }
    events.push(Event::Finish { choice: 0, reason: finish.clone(), stop_sequence: None });
    events
}

/// Events without what a stream may cut or tell otherwise: adjacent pieces are joined, signs of life and usage go.
fn settle(events: impl IntoIterator<Item = Event>) -> Vec<Event> {
    let mut out: Vec<Event> = Vec::new();
    for event in events {
        match (&event, out.last_mut()) {
            (Event::Alive | Event::Usage(_) | Event::Thinking(true) | Event::ServerTool(_), _) => continue,
            (Event::Text { text: more, .. }, Some(Event::Text { text, .. })) => text.push_str(more),
            (Event::Reasoning { text: more, .. }, Some(Event::Reasoning { text, .. })) => text.push_str(more),
            (Event::ToolArgs { args: more, .. }, Some(Event::ToolArgs { args, .. })) => args.push_str(more),
            _ => out.push(event),
        }
    }
    out
}

fn write(events: &[Event], stream: bool) -> Bytes {
    let body = json!({"model": "m", "max_tokens": 9, "stream": stream, "messages": [{"role": "user", "content": "x"}]});
    let request = Anthropic.parse(&HeaderMap::new(), body.to_string().as_bytes()).expect("a request");
    let mut encoder = Anthropic.encoder(&request);
    let mut out = BytesMut::new();
    for event in events {
        encoder.step(&Step::of(event.clone()), &mut out);
        if stream {
            encoder.keep_alive(&mut out);
        }
    }
    encoder.close(End::Complete(&Usage { completion: Some(3), ..Usage::default() }), &mut out);
    out.freeze()
}

fn read(body: Bytes) -> Vec<Event> {
    let mut sse = Decoder::new(1 << 20);
    let mut decoder = Anthropic.decoder(Expect::of(1));
    let mut events = Vec::new();
    let (mut open, mut next, mut done) = (None, 0, false);
    sse.push(body);
    while let Some(item) = sse.next().expect("a small event") {
        let Item::Event(event) = item else { continue };
        // The laws of the stream: indexes from 0 without gaps, one block open at a time, nothing after the end.
        assert!(!done);
        let data: Value = serde_json::from_slice(&event.data).expect("JSON");
        assert_eq!(data["type"].as_str().map(str::as_bytes), Some(event.name.as_ref()));
        let index = data["index"].as_u64();
        match data["type"].as_str().unwrap_or_default() {
            "content_block_start" => {
                assert_eq!((open, index), (None, Some(next)));
                (open, next) = (index, next + 1);
            }
            "content_block_delta" => assert_eq!((index, index.is_some()), (open, true)),
            "content_block_stop" => {
                assert_eq!(index, open);
                open = None;
            }
            "message_delta" => assert!(open.is_none() && data["usage"]["output_tokens"].is_u64()),
            _ => {}
        }
        let mut step = Step::default();
        done = decoder.event(&event, &mut step).expect("an event") == Flow::Done;
        events.extend(step.events);
    }
    assert!(done);
    events
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn turns_survive_the_wire(things in proptest::collection::vec(thing(), 0..6), limit in any::<bool>()) {
        let calls = things.iter().any(|t| matches!(t, Thing::Calls(_)));
        let finish = if limit { Finish::Length } else if calls { Finish::ToolCalls } else { Finish::Stop };
        let told = events(&things, &finish);
        let expected = settle(told.clone());
        prop_assert_eq!(&settle(read(write(&told, true))), &expected);
        let whole = Anthropic.whole(&write(&told, false), Expect::of(1)).expect("a message");
        prop_assert_eq!(&settle(whole.into_iter().flat_map(|s| s.events)), &expected);
    }
}
