//! What an answer is written as, event by event and whole.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's panic is its report")]
use super::*;
use crate::chat::Minted;
use crate::dialect::Reason;
use http::HeaderMap;

fn request(stream: bool) -> Request {
    let body = json!({
        "model": "normal", "input": "hi", "stream": stream,
        "tools": [{"type": "custom", "name": "patch"}, {"type": "function", "name": "f"}],
    });
    let mut request = client::parse(&HeaderMap::new(), body.to_string().as_bytes()).unwrap();
    request.minted = Minted { id: 7, unix: 1000 };
    request
}

fn play(stream: bool, events: &[Event], end: End<'_>) -> (String, Option<Value>) {
    let mut encoder = Encoder::new(&request(stream));
    let mut out = BytesMut::new();
    encoder.speaker(DialectId::Anthropic);
    for event in events {
        encoder.step(&Step::of(event.clone()), &mut out);
    }
    encoder.close(end, &mut out);
    (String::from_utf8(out.to_vec()).unwrap(), encoder.record())
}

/// The events of a stream, each with its type twice and its number.
fn events(stream: &str) -> Vec<Value> {
    let frames = stream.split("\n\n").filter(|frame| !frame.is_empty());
    let read = frames.enumerate().map(|(at, frame)| {
        let (name, data) = frame.strip_prefix("event: ").unwrap().split_once("\ndata: ").unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!((data["type"].as_str(), data["sequence_number"].as_u64()), (Some(name), Some(at as u64)));
        data
    });
    read.collect()
}

fn text(text: &str) -> Event {
    Event::Text { choice: 0, text: text.to_owned() }
}

fn open(call: u32, name: &str) -> Event {
    Event::ToolOpen { choice: 0, call, id: format!("call_{call}"), name: name.to_owned() }
}

fn args(call: u32, args: &str) -> Event {
    Event::ToolArgs { choice: 0, call, args: args.to_owned() }
}

fn finish(reason: Finish) -> Event {
    Event::Finish { choice: 0, reason, stop_sequence: None }
}

fn everything() -> Vec<Event> {
    vec![
        Event::Identity(Box::new(Identity { id: "theirs".into(), model: "m".into(), created: 5 })),
        Event::Reasoning { choice: 0, text: "Hm".into() },
        Event::Signature { choice: 0, data: "sig".into(), redacted: false },
        text("Hel"),
        text("lo."),
        Event::Refusal { choice: 0, text: "No.".into() },
        open(0, "f"),
        args(0, "{\"a\""),
        open(1, "patch"),
        args(1, "{\"input\":\"a\\nb\"}"),
        Event::ToolClose { choice: 0, call: 1 },
        args(0, ":1}"),
        Event::ToolClose { choice: 0, call: 0 },
        finish(Finish::ToolCalls),
    ]
}

#[test]
fn each_item_is_opened_and_closed_under_one_id_and_stands_in_the_whole() {
    let usage = Usage { prompt: Some(10), completion: Some(4), ..Usage::default() };
    let (stream, record) = play(true, &everything(), End::Complete(&usage));
    let events = events(&stream);
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let expected = [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "content_part.added",
        "refusal.delta",
        "refusal.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "output_item.added",
        "custom_tool_call_input.delta",
        "custom_tool_call_input.done",
        "output_item.done",
        "completed",
    ];
    assert_eq!(kinds, expected.map(|kind| format!("response.{kind}")));
    let answer = &events.last().unwrap()["response"];
    let output = answer["output"].as_array().unwrap();
    for (index, item) in output.iter().enumerate() {
        let of: Vec<&Value> = events.iter().filter(|event| event["output_index"] == json!(index)).collect();
        assert!(
            of.iter().all(|e| e["item_id"].as_str().or_else(|| e["item"]["id"].as_str()) == item["id"].as_str()),
            "{of:?}"
        );
        assert_eq!(&of.last().unwrap()["item"], item, "what was told last is what is in the whole");
    }
    assert_eq!(output[0]["encrypted_content"], "segue:anthropic:signed:sig");
    assert_eq!(output[1]["content"][0]["text"], "Hello.");
    assert_eq!(output[1]["content"][1], json!({"type": "refusal", "refusal": "No."}));
    assert_eq!((&output[2]["call_id"], &output[2]["arguments"]), (&json!("call_0"), &json!("{\"a\":1}")));
    assert_eq!((&output[3]["type"], &output[3]["input"]), (&json!("custom_tool_call"), &json!("a\nb")));
    assert_eq!((&answer["id"], &answer["model"]), (&json!(ids::answer(7)), &json!("m")));
    assert_eq!(answer["usage"]["total_tokens"], 14);
    let (whole, kept) = play(false, &everything(), End::Complete(&usage));
    assert_eq!(serde_json::from_str::<Value>(&whole).unwrap(), *answer, "a whole answer is the same");
    assert_eq!((record.as_ref(), kept.as_ref()), (Some(answer), Some(answer)));
}

#[test]
fn an_answer_that_was_cut_off_says_why() {
    for (reason, why) in [(Finish::Length, "max_output_tokens"), (Finish::ContentFilter, "content_filter")] {
        let (stream, _) = play(true, &[text("a"), finish(reason)], End::Complete(&Usage::default()));
        let last = events(&stream).pop().unwrap();
        assert_eq!(last["type"], "response.incomplete");
        assert_eq!(last["response"]["incomplete_details"]["reason"], why);
        assert_eq!(last["response"]["output"][0]["status"], "incomplete");
    }
}

#[test]
fn an_error_is_told_as_the_official_libraries_raise_it_and_then_the_answer() {
    let refusal = Refusal::new(Reason::Upstream, "upstream_error", "nobody");
    let (stream, record) = play(true, &[text("Hel"), open(0, "f"), args(0, "{")], End::Failed(&refusal));
    let events = events(&stream);
    let [.., error, failed] = events.as_slice() else { panic!("{stream}") };
    assert_eq!((&error["type"], &error["code"]), (&json!("error"), &json!("upstream_error")));
    assert_eq!((&error["error"]["message"], &error["message"]), (&json!("nobody"), &json!("nobody")));
    assert_eq!((&failed["type"], &failed["response"]["status"]), (&json!("response.failed"), &json!("failed")));
    let output = failed["response"]["output"].as_array().unwrap();
    assert_eq!((output.len(), &output[0]["content"][0]["text"]), (1, &json!("Hel")), "a call in pieces is none");
    assert_eq!(record.as_ref(), Some(&failed["response"]));
}

#[test]
fn what_was_told_before_a_client_left_is_kept() {
    let mut encoder = Encoder::new(&request(true));
    assert_eq!(encoder.record(), None, "nothing was told");
    let mut encoder = Encoder::new(&request(true));
    encoder.step(&Step::of(text("Hel")), &mut BytesMut::new());
    let record = encoder.record().unwrap();
    assert_eq!((&record["status"], &record["output"][0]["content"][0]["text"]), (&json!("cancelled"), &json!("Hel")));
}
