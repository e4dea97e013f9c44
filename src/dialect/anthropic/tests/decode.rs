//! What the transcripts under `tests/golden` do not say: whole answers, and limits.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use super::Decoder;
use crate::dialect::{Decode, Expect, Flow, Provider, anthropic::Anthropic};
use crate::event::{Event, Finish, Step};
use crate::failure::Kind;
use crate::sse;
use bytes::Bytes;
use serde_json::{Value, json};

fn whole(body: &Value) -> Result<Vec<Event>, Kind> {
    let steps = Anthropic.whole(body.to_string().as_bytes(), Expect::of(1));
    steps.map(|s| s.into_iter().flat_map(|s| s.events).collect()).map_err(|f| f.kind)
}

#[expect(clippy::needless_pass_by_value, reason = "literals read best as arguments")]
fn message(content: Value, stop: Value) -> Value {
    json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content,
           "stop_reason": stop, "stop_sequence": null, "usage": {"input_tokens": 3, "output_tokens": 5}})
}

fn tell(decoder: &mut Decoder, data: &Value) -> Result<(Flow, Step), Kind> {
    let event = sse::Event { name: Bytes::new(), data: Bytes::from(data.to_string()), single_line: true };
    let mut step = Step::default();
    decoder.event(&event, &mut step).map(|flow| (flow, step)).map_err(|f| f.kind)
}

#[test]
fn a_whole_answer_is_told_like_a_stream() {
    let content = json!([
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "text", "text": "Hi."},
        {"type": "text", "text": " So.", "citations": [{"type": "char_location"}]},
        {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}},
    ]);
    let events = whole(&message(content, json!("tool_use"))).unwrap();
    let brief: Vec<String> = events
        .iter()
        .map(|event| match event {
            Event::Identity(who) => who.id.clone(),
            Event::Usage(usage) => format!("{:?}/{:?}", usage.prompt, usage.completion),
            Event::Thinking(open) => format!("thinking {open}"),
            Event::Reasoning { text, .. } | Event::Text { text, .. } => text.clone(),
            Event::Signature { data, .. } => data.clone(),
            Event::Extra(extra) => format!("extra {}", extra.bound),
            Event::ToolOpen { name, .. } => name.clone(),
            Event::ToolArgs { args, .. } => args.clone(),
            Event::ToolClose { .. } => "closed".to_owned(),
            Event::Finish { reason, .. } => format!("{reason:?}"),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(
        brief,
        [
            "msg_1",
            "Some(3)/Some(5)",
            "thinking true",
            "hm",
            "sig",
            "thinking false",
            "Hi.",
            "extra false",
            " So.",
            "extra true",
            "f",
            "{\"a\":1}",
            "closed",
            "ToolCalls",
        ]
    );
}

#[test]
fn whole_bodies_that_are_no_answer() {
    assert_eq!(
        whole(&json!({"type": "error", "error": {"type": "overloaded_error", "message": "x"}})),
        Err(Kind::Overloaded)
    );
    assert_eq!(whole(&json!({"error": "broken"})), Err(Kind::ServerError));
    assert_eq!(whole(&json!({"choices": []})), Err(Kind::Framing));
    assert_eq!(whole(&json!("text")), Err(Kind::Framing));
    assert_eq!(whole(&message(json!([]), Value::Null)), Err(Kind::EmptyTurn));
    let empty = whole(&message(json!([]), json!("end_turn"))).unwrap();
    assert!(matches!(empty.last(), Some(Event::Finish { reason: Finish::Stop, .. })));
}

#[test]
fn stop_reasons() {
    for (word, expected) in [
        ("end_turn", Finish::Stop),
        ("stop_sequence", Finish::Stop),
        ("max_tokens", Finish::Length),
        ("model_context_window_exceeded", Finish::Length),
        ("tool_use", Finish::ToolCalls),
        ("refusal", Finish::ContentFilter),
        ("pause_turn", Finish::Pause),
        ("bored", Finish::Other("bored".to_owned())),
    ] {
        assert_eq!(super::reason(word), expected);
    }
}

#[test]
fn usage_is_added_up_from_its_pieces() {
    let mut decoder = Decoder::new(Expect::of(1));
    let start = json!({"type": "message_start", "message": {"id": "m", "model": "m", "usage": {
        "input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 300, "output_tokens": 1}}});
    let (_, step) = tell(&mut decoder, &start).unwrap();
    let first = step.events.iter().find_map(|e| if let Event::Usage(u) = e { Some(u.clone()) } else { None }).unwrap();
    assert_eq!((first.prompt, first.completion), (Some(330), None), "the first count of output is a placeholder");
    let delta = json!({"type": "message_delta", "delta": {}, "usage": {"output_tokens": 7, "input_tokens": null}});
    let (_, step) = tell(&mut decoder, &delta).unwrap();
    let last = step.events.iter().find_map(|e| if let Event::Usage(u) = e { Some(u.clone()) } else { None }).unwrap();
    assert_eq!((last.prompt, last.completion, last.cache_read), (Some(330), Some(7), Some(300)));
    let absurd = json!({"type": "message_delta", "delta": {}, "usage": {
        "input_tokens": u64::MAX, "cache_read_input_tokens": u64::MAX, "output_tokens": u64::MAX}});
    let (_, step) = tell(&mut decoder, &absurd).unwrap();
    let last = step.events.iter().find_map(|e| if let Event::Usage(u) = e { Some(u.clone()) } else { None }).unwrap();
    assert_eq!((last.prompt, last.completion, last.cache_read), (None, None, None), "no model could reach these");
}

#[test]
fn a_delta_that_had_to_be_repaired_does_not_go_on_as_it_came() {
    for (text, raw) in [("plain", true), (r"a \ud83d\ude00", true), (r"a \ud83d b", false), (r"\ude00", false)] {
        let mut decoder = Decoder::new(Expect::of(1));
        let start = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
        tell(&mut decoder, &start).unwrap();
        let data =
            format!(r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#);
        let event = sse::Event { name: Bytes::new(), data: Bytes::from(data), single_line: true };
        let mut step = Step::default();
        decoder.event(&event, &mut step).unwrap();
        assert_eq!(step.raw.is_some(), raw, "{text}");
    }
}

#[test]
fn blocks_that_never_close_are_bounded() {
    let mut decoder = Decoder::new(Expect::of(1));
    let results: Vec<_> = (0..300)
        .map(|index| {
            let start =
                json!({"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}});
            tell(&mut decoder, &start).map(|_| ())
        })
        .collect();
    assert_eq!(results[0], Ok(()));
    assert_eq!(results[299], Err(Kind::Malformed));
}

#[test]
fn an_error_beside_content_counts() {
    let mut decoder = Decoder::new(Expect::of(1));
    let event = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"},
                       "error": {"type": "overloaded_error", "message": "x"}});
    assert_eq!(tell(&mut decoder, &event).unwrap_err(), Kind::Overloaded);
    let quiet =
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}, "error": null});
    assert!(tell(&mut decoder, &quiet).is_ok());
    assert_eq!(tell(&mut decoder, &json!([1])).unwrap_err(), Kind::Malformed);
    assert_eq!(tell(&mut decoder, &json!({"type": "content_block_start", "index": 0})).unwrap_err(), Kind::Malformed);
}
