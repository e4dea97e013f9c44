//! What a decoder makes of well-formed and other streams.

#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use super::{delta, finish, short, sse, steps, told, tools};
use crate::chat::DialectId;
use crate::dialect::chat::Chat;
use crate::dialect::{Expect, Flow, Provider};
use crate::event::{Event, Identity, Place, Step};
use crate::failure::{Kind, Stage};
use proptest::prelude::{any, prop, proptest};

#[test]
fn an_ordinary_answer() {
    let role = delta(r#"{"role":"assistant","content":"","refusal":null}"#);
    let (steps, end) = steps(&[&role, &delta(r#"{"content":"Hi"}"#), &finish("stop"), "[DONE]"], 1);
    assert_eq!(end, Ok(Flow::Done));
    let identity = Identity { id: "a1".to_owned(), model: "m-a".to_owned(), created: 1 };
    assert_eq!(steps[0].events[..], [Event::Identity(Box::new(identity))]);
    assert_eq!(steps[0].raw, None);
    assert_eq!(steps[1].events[..], [Event::Text { choice: 0, text: "Hi".to_owned() }]);
    assert_eq!(steps[1].raw.as_ref().unwrap().0, DialectId::Chat);
    assert_eq!(steps[1].raw.as_ref().unwrap().1, delta(r#"{"content":"Hi"}"#));
    assert_eq!(steps[2].raw, None);
}

#[test]
fn only_a_plain_chunk_may_go_on_as_it_came() {
    let role = delta(r#"{"role":"assistant"}"#);
    let plain = delta(r#"{"content":"x"}"#);
    let raw = |chunk: &str| steps(&[&role, chunk], 2).0.last().unwrap().raw.is_some();
    assert!(raw(&plain));
    assert!(raw(&delta(r#"{"reasoning_content":"x","content":null}"#)));
    assert!(raw(&plain.replace("\"index\":0", "\"index\":0,\"logprobs\":{\"content\":[]}")));
    assert!(raw(&plain.replace("\"created\":1", "\"created\":1,\"usage\":null,\"service_tier\":\"default\"")));
    assert!(raw(&plain.replace("\"choices\"", "\"obfuscation\":\"xyz\",\"choices\"")));
    for other in [
        delta(r#"{"role":"assistant","content":"x"}"#),
        delta(r#"{"content":""}"#),
        delta(r#"{"reasoning":"x"}"#),
        delta(r#"{"content":[{"type":"text","text":"x"}]}"#),
        delta(r#"{"content":"x","tool_calls":[]}"#),
        delta(r#"{"content":"\ud83d"}"#),
        plain.replace("\"finish_reason\":null", "\"finish_reason\":\"stop\""),
        plain.replace("\"finish_reason\":null", "\"finish_reason\":\"\""),
        plain.replace("chat.completion.chunk", "chat.completion"),
        plain.replace("\"id\":\"a1\",", ""),
        plain.replace("\"created\":1,", ""),
        plain.replace("\"index\":0,", ""),
        plain.replace("\"choices\"", "\"usage\":{\"prompt_tokens\":1},\"choices\""),
        plain.replace("\"created\"", "\n\"created\""),
        format!("completion|{plain}"),
    ] {
        assert!(!raw(&other), "{other}");
    }
}

#[test]
fn deltas_are_sets_of_fields() {
    let (words, _) = told(&[
        &delta(r#"{"reasoning":"a"}"#),
        &delta(r#"{"reasoning":"b","reasoning_content":"b","role":"assistant"}"#),
        &delta(r#"{"reasoning_content":"c","content":"A"}"#),
        &delta(r#"{"content":"n","reasoning_content":"","foo":7,"annotations":[]}"#),
        &delta(
            r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"d"}]},{"type":"text","text":"s"}]}"#,
        ),
        &delta(r#"{"refusal":"no"}"#),
        &delta(
            r#"{"reasoning_details":[{"type":"reasoning.text","text":"e"},{"type":"reasoning.encrypted","data":"z"}]}"#,
        ),
        &delta("null"),
        &delta("[]"),
        r#"{"choices":[{"index":0,"content_filter_results":{"hate":{"filtered":false}}}]}"#,
        r#"{"choices":[]}"#,
        "{}",
        &finish("stop"),
    ]);
    let expected = [
        "extra Names {\"reasoning\":\"reasoning\"}",
        "reasoning a",
        "reasoning b",
        "reasoning c",
        "text A",
        "text n",
        r#"extra Delta(0) {"foo":7}"#,
        "reasoning d",
        "text s",
        "refusal no",
        "reasoning e",
        r#"extra Delta(0) {"reasoning_details":[{"type":"reasoning.text","text":"e","index":0},{"type":"reasoning.encrypted","data":"z","index":1}]}"#,
        r#"extra Choice(0) {"content_filter_results":{"hate":{"filtered":false}}}"#,
        "finish Stop",
    ];
    assert_eq!(words, expected);
}

#[test]
fn fields_at_the_top_are_told_when_they_change() {
    let with = |fields: &str| delta(r#"{"content":"x"}"#).replace("\"choices\"", &format!("{fields},\"choices\""));
    let (words, _) = told(&[
        &with(r#""system_fingerprint":"fp1","service_tier":null,"obfuscation":"q""#),
        &with(r#""system_fingerprint":"fp1""#),
        &with(r#""system_fingerprint":"fp2","citations":["u"]"#),
    ]);
    let expected = [
        r#"extra Top {"system_fingerprint":"fp1"}"#,
        "text x",
        "text x",
        r#"extra Top {"system_fingerprint":"fp2","citations":["u"]}"#,
        "text x",
    ];
    assert_eq!(words, expected);
    let (steps, _) = steps(&[&with(r#""citations":["u"]"#)], 1);
    let extra = steps[0].events.iter().find_map(|e| if let Event::Extra(x) = e { Some(x) } else { None }).unwrap();
    assert!(extra.bound && extra.place == Place::Top);
}

#[test]
fn identity_is_told_first_and_when_it_changes() {
    let azure =
        r#"{"id":"","object":"","created":0,"model":"","choices":[],"prompt_filter_results":[{"prompt_index":0}]}"#;
    let first = delta(r#"{"content":"x"}"#);
    let second = first.replace("\"a1\"", "\"a2\"").replace(":1,\"model\"", ":2,\"model\"");
    let (steps, _) = steps(&[azure, &first, &first, &second, r#"{"choices":[{"delta":{"content":"z"}}]}"#], 1);
    let ids: Vec<_> = steps
        .iter()
        .flat_map(|s| &s.events)
        .filter_map(|e| if let Event::Identity(i) = e { Some((i.id.clone(), i.created)) } else { None })
        .collect();
    assert_eq!(ids, [("a1".to_owned(), 1), ("a2".to_owned(), 2)]);
    assert!(matches!(&steps[0].events[0], Event::Extra(x) if x.fields.contains_key("prompt_filter_results")));
    assert!(!steps[0].is_progress());
}

#[test]
fn errors_are_seen_before_anything_else() {
    let text = delta(r#"{"content":"x"}"#);
    let error = r#"{"message":"busy","type":"server_error","code":502}"#;
    for (event, kind) in [
        (format!(r#"{{"error":{error},"choices":[]}}"#), Kind::ServerError),
        (r#"{"error":"model unloaded"}"#.to_owned(), Kind::ServerError),
        (r#"{"object":"error","message":"Overloaded","type":"overloaded_error"}"#.to_owned(), Kind::Overloaded),
        ("error|gone".to_owned(), Kind::ServerError),
        (r#"error|{"message":"slow down","code":"rate_limit_exceeded"}"#.to_owned(), Kind::RateLimited),
        (text.replace("\"index\":0", &format!("\"index\":0,\"error\":{error}")), Kind::ServerError),
        (finish("error"), Kind::ServerError),
        (finish("network_error"), Kind::ServerError),
        (
            finish("error").replace("\"choices\"", r#""error":{"code":429,"message":"slow"},"choices""#),
            Kind::RateLimited,
        ),
        (text.replace("\"choices\"", r#""x_groq":{"error":"over capacity"},"choices""#), Kind::Overloaded),
        (
            r#"{"error":{"code":400,"message":"context too large","type":"exceed_context_size_error"}}"#.to_owned(),
            Kind::ContextTooLong,
        ),
        (r#"{"error":{"code":"429","message":"slow"}}"#.to_owned(), Kind::RateLimited),
        (r#"{"detail":"Internal error"}"#.to_owned(), Kind::ServerError),
        ("{\"id\":\"a1\",\"choi".to_owned(), Kind::Malformed),
        ("<html>".to_owned(), Kind::Malformed),
    ] {
        let (words, end) = told(&[&text, &event, &text, "[DONE]"]);
        let failure = end.unwrap_err();
        assert_eq!((failure.kind, failure.stage), (kind, Stage::Streaming), "{event}");
        assert_eq!(words[0], "text x");
        assert!(!failure.said.message.is_empty());
    }
    for fine in ["null", "\"\"", "false", "{}"] {
        let chunk = text.replace("\"choices\"", &format!("\"error\":{fine},\"choices\""));
        assert!(told(&[&chunk, "[DONE]"]).1.is_ok(), "{fine}");
    }
}

#[test]
fn signs_of_life_are_no_chunks() {
    let events = [
        ": keepalive",
        "",
        "  ",
        "ping|{\"type\":\"ping\"}",
        "keepalive",
        "{\"type\":\"ping\"}",
        "sglext_ids|{\"ids\":[1]}",
        "novel|not json",
    ];
    let (steps, end) = steps(&events, 1);
    assert!(steps.len() == events.len() && steps.iter().all(|s| s.events[..] == [Event::Alive]));
    assert_eq!(end.unwrap_err().kind, Kind::EmptyTurn);
    // A chunk is a chunk under any name.
    assert_eq!(told(&[&format!("chunk|{}", delta(r#"{"content":"x"}"#))]).0, ["text x"]);
}

#[test]
fn how_streams_end() {
    let role = delta(r#"{"role":"assistant","content":""}"#);
    let text = delta(r#"{"content":"x"}"#);
    let stop = finish("stop");
    for (events, expected) in [
        (vec!["[DONE]"], Err(Kind::EmptyTurn)),
        (vec![], Err(Kind::EmptyTurn)),
        (vec![&*role, "[DONE]"], Err(Kind::Truncated)),
        (vec![&*role], Err(Kind::Truncated)),
        (vec![&*role, &text], Err(Kind::Truncated)),
        (vec![&*role, &stop, "[DONE]"], Ok("finish Stop")),
        (vec![&*text, &stop], Ok("finish Stop")),
        (vec![&*text, "[DONE]"], Ok("finish Stop")),
        (vec![&*text, &stop, &finish("length"), &text, "[DONE]", &text], Ok("text x")),
        (vec![&*text, &finish("eos_token")], Ok("finish Stop")),
        (vec![&*text, &finish("weird")], Ok("finish Other(\"weird\")")),
    ] {
        let (words, end) = told(&events);
        match expected {
            Ok(last) => assert!(end.is_ok() && words.last().unwrap() == last, "{words:?} {end:?}"),
            Err(kind) => assert_eq!(end.unwrap_err().kind, kind, "{events:?}"),
        }
    }
}

#[test]
fn a_finish_is_the_last_word_only_if_nothing_follows() {
    let with = |content: &str, word: &str| {
        delta(content).replace("\"finish_reason\":null", &format!("\"finish_reason\":\"{word}\""))
    };
    let one = with(r#"{"content":"One"}"#, "null");
    let (words, end) = told(&[&one, &with(r#"{"content":" two"}"#, "None"), &finish("stop"), "[DONE]"]);
    assert_eq!(
        (words, end),
        (vec!["text One".to_owned(), "text  two".to_owned(), "finish Stop".to_owned()], Ok(Flow::Done))
    );
    let (words, _) = told(&[&with(r#"{"content":"One"}"#, "stop"), &with(r#"{"content":" two"}"#, "length"), "[DONE]"]);
    assert_eq!(words, ["text One", "finish Stop", "text  two", "finish Length"]);
    assert_eq!(told(&[&one, &finish("not_finished")]).1.unwrap_err().kind, Kind::Truncated);
    let malformed = told(&[&one, &finish("function_call_filter: MALFORMED_FUNCTION_CALL"), "[DONE]"]).1.unwrap_err();
    assert_eq!(malformed.kind, Kind::Malformed);
}

#[test]
fn a_call_whose_arguments_go_on_after_a_finish_is_one_call() {
    let stop = |entries: &str| tools(entries).replace("\"finish_reason\":null", "\"finish_reason\":\"stop\"");
    let open = stop(r#"{"index":0,"id":"c","function":{"name":"f","arguments":"{\"a\":"}}"#);
    let rest = stop(r#"{"index":0,"function":{"arguments":"1}"}}"#);
    for end in [vec!["[DONE]"], vec![]] {
        let (words, ended) = told(&[&[&*open, &rest], &end[..]].concat());
        assert!(ended.is_ok(), "{words:?} {ended:?}");
        assert_eq!(words.iter().filter(|word| word.starts_with("open")).count(), 1, "{words:?}");
        assert!(words.last().unwrap().starts_with("finish"), "{words:?}");
    }
}

#[test]
fn reasoning_under_any_name_is_reasoning_and_goes_on_as_it_came() {
    let (steps, _) = steps(
        &[&delta(r#"{"reasoning_text":"hm"}"#), &delta(r#"{"thinking_signature":"s","effort_of_reasoning":1}"#)],
        1,
    );
    assert!(steps[0].events.contains(&Event::Reasoning { choice: 0, text: "hm".to_owned() }));
    assert!(steps[0].raw.is_some() && !steps[1].is_progress());
}

#[test]
fn each_choice_has_its_own_end() {
    let at = |index: u32, chunk: String| chunk.replace("\"index\":0", &format!("\"index\":{index}"));
    let (a, b) = (delta(r#"{"content":"a"}"#), at(1, delta(r#"{"content":"b"}"#)));
    assert!(steps(&[&a, &b, &finish("stop"), &at(1, finish("length"))], 2).1.is_ok());
    assert_eq!(steps(&[&a, &b, &finish("stop")], 2).1.unwrap_err().kind, Kind::Truncated);
    let (told, end) = steps(&[&a, &b, "[DONE]"], 2);
    assert_eq!(end, Ok(Flow::Done));
    assert_eq!(told.last().unwrap().events.iter().filter(|e| matches!(e, Event::Finish { .. })).count(), 2);
    // What nobody asked for is not told.
    assert_eq!(steps(&[&b], 1).0[0].events.iter().filter_map(short).count(), 0);
}

#[test]
fn an_unterminated_event_counts_if_it_is_a_whole_terminal_one() {
    let text = delta(r#"{"content":"x"}"#);
    let cut = &finish("stop")[..40];
    for (rest, expected) in [
        (finish("stop"), Ok(())),
        ("[DONE]".to_owned(), Ok(())),
        (r#"{"error":{"code":429}}"#.to_owned(), Err(Kind::RateLimited)),
        (text.clone(), Err(Kind::Truncated)),
        (cut.to_owned(), Err(Kind::Truncated)),
        ("[DO".to_owned(), Err(Kind::Truncated)),
    ] {
        let mut decoder = Chat.decoder(Expect::of(1));
        decoder.event(&sse(&text), &mut Step::default()).unwrap();
        let mut step = Step::default();
        let end = decoder.end(Some(&sse(&rest)), &mut step).map_err(|f| f.kind);
        assert_eq!(end, expected, "{rest}");
        assert_eq!(step.events.iter().any(|e| matches!(e, Event::Finish { .. })), end.is_ok());
    }
}

#[test]
fn usage_may_come_on_any_chunk_and_the_last_holds() {
    let with = |usage: &str| delta(r#"{"content":"x"}"#).replace("\"choices\"", &format!("{usage},\"choices\""));
    let (words, _) = told(&[
        &with(r#""usage":{"prompt_tokens":5,"completion_tokens":1}"#),
        &with(r#""usage":{"prompt_tokens":5,"completion_tokens":2}"#),
        &with(r#""usage":null"#),
        &with(r#""x_groq":{"id":"r","usage":{"prompt_tokens":6,"completion_tokens":3}}"#),
    ]);
    let usage: Vec<_> = words.iter().filter(|w| w.starts_with("usage")).collect();
    assert_eq!(usage, ["usage Some(5)/Some(1)", "usage Some(5)/Some(2)", "usage Some(6)/Some(3)"]);
    let words = told(&[&with(r#""usage":{"prompt_tokens":18446744073709551615,"completion_tokens":-1}"#)]).0;
    assert!(words.contains(&"usage None/None".to_owned()), "no count that a model could reach: {words:?}");
    let details = r#""usage":{"prompt_tokens":9,"completion_tokens":8,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":7}}"#;
    let (steps, _) = steps(&[&with(details)], 1);
    let usage = steps[0].events.iter().find_map(|e| if let Event::Usage(u) = e { Some(u) } else { None }).unwrap();
    assert_eq!((usage.cache_read, usage.reasoning), (Some(4), Some(7)));
    assert_eq!(usage.native.as_ref().unwrap().1["prompt_tokens"], 9);
}

#[test]
fn characters_cut_in_two_are_joined_for_each_field() {
    let (words, _) = told(&[
        &delta(r#"{"content":"a\ud83d","reasoning_content":"\ud83d"}"#),
        &delta(r#"{"content":"","reasoning_content":null}"#),
        &delta(r#"{"content":"\ude00b"}"#),
        &delta(r#"{"reasoning_content":"\ude01"}"#),
        &tools(r#"{"index":0,"id":"c","function":{"name":"f","arguments":"{\"q\":\"\ud83d"}}"#),
        &tools(r#"{"index":0,"function":{"arguments":"\ude00\"}"}}"#),
        &delta(r#"{"content":"\ud83d"}"#),
        &finish("stop"),
    ]);
    let expected = [
        "text a",
        "text 😀b",
        "reasoning 😁",
        "open 0 c f",
        "args 0 {\"q\":\"",
        "args 0 😀\"}",
        "text \u{FFFD}",
        "close 0",
        "finish Stop",
    ];
    assert_eq!(words, expected);
}

#[test]
fn invalid_utf8_is_replaced_in_its_event_alone() {
    let mut event = sse(&delta(r#"{"content":"a#b"}"#));
    event.data = event.data.iter().map(|b| if *b == b'#' { 0xFF } else { *b }).collect::<Vec<_>>().into();
    let mut step = Step::default();
    Chat.decoder(Expect::of(1)).event(&event, &mut step).unwrap();
    assert_eq!(step.events[1], Event::Text { choice: 0, text: "a\u{FFFD}b".to_owned() });
    assert_eq!(step.raw, None);
}

#[test]
fn a_whole_answer_is_read_like_a_stream() {
    let body = r#"
        {"id":"a1","object":"chat.completion","created":1,"model":"m-a","system_fingerprint":"fp","choices":[{"index":0,"message":
        {"role":"assistant","content":"Hi","reasoning_content":"hm","refusal":null,"annotations":[],"tool_calls":[
        {"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},
        {"id":"b","type":"function","function":{"name":"f","arguments":""}}]},
        "logprobs":{"content":[{"token":"Hi"}]},"finish_reason":"tool_calls"}],
        "usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}}"#;
    let steps = Chat.whole(body.as_bytes(), Expect::of(1)).unwrap();
    assert!(steps.iter().all(|s| s.raw.is_none()));
    let words: Vec<_> = steps.iter().flat_map(|s| s.events.iter().filter_map(short)).collect();
    let expected = [
        "usage Some(5)/Some(1)",
        r#"extra Top {"system_fingerprint":"fp"}"#,
        "reasoning hm",
        "text Hi",
        "open 0 a f",
        "args 0 {\"x\":1}",
        "close 0",
        "open 1 b f",
        r#"extra Choice(0) {"logprobs":{"content":[{"token":"Hi"}]}}"#,
        "args 1 {}",
        "close 1",
        "finish ToolCalls",
    ];
    assert_eq!(words, expected);
    let two = r#"{"id":"i","created":1,"model":"m","choices":[{"index":0,"message":{"content":"a"}},{"index":1,"message":{"content":"b"}}]}"#;
    let steps = Chat.whole(two.as_bytes(), Expect::of(2)).unwrap();
    let finishes = steps.iter().flat_map(|s| &s.events).filter(|e| matches!(e, Event::Finish { .. })).count();
    assert_eq!(finishes, 2);
    for (body, kind) in [
        (r#"{"error":{"message":"rate limited","type":"rate_limit_error","code":429}}"#, Kind::RateLimited),
        (r#"{"choices":[],"error":{"code":502}}"#, Kind::ServerError),
        (r#"{"choices":[{"message":{"content":""},"finish_reason":"error"}]}"#, Kind::ServerError),
        (r#"{"choices":[]}"#, Kind::EmptyTurn),
        (r#"{"ok":true}"#, Kind::Framing),
        ("<html><title>Sign in</title></html>", Kind::Framing),
        ("", Kind::Framing),
    ] {
        assert_eq!(Chat.whole(body.as_bytes(), Expect::of(1)).unwrap_err().kind, kind, "{body}");
    }
}

proptest! {
    /// Whatever comes, a decoder neither panics nor says nothing.
    #[test]
    fn broken_events_are_survived(
        which in 0..5_usize, cuts in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6), twice in any::<bool>(),
    ) {
        let events = [
            delta(r#"{"role":"assistant","content":"a\ud83d","reasoning":"b"}"#),
            tools(r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":\"\ud83d\"}"}}"#),
            finish("stop"),
            delta(r#"{"content":[{"type":"text","text":"x"}],"reasoning_details":[{"type":"reasoning.text","text":"e"}]}"#),
            r#"{"error":{"code":"429","message":"m","metadata":{"raw":"x"},"details":[]},"choices":[{"error":{}}]}"#.to_owned(),
        ];
        let mut data = events[which].clone().into_bytes();
        for (at, byte) in cuts {
            let at = at.index(data.len());
            data[at] = byte;
        }
        let event = sse::Event { name: "".into(), data: data.into(), single_line: true };
        let mut decoder = Chat.decoder(Expect::of(2));
        for _ in 0..1 + usize::from(twice) {
            let mut step = Step::default();
            if decoder.event(&event, &mut step).is_ok() {
                assert!(!step.events.is_empty());
            }
        }
        let _ = decoder.end(Some(&event), &mut Step::default());
    }
}
