//! What a provider sends: events, whole answers and errors.

use super::measure::{MANY, PLACED, linear, report};
use super::shapes::{SHAPES, list};
use super::{bounds, lifted};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue};
use segue::bounds::Bounds;
use segue::chat::{DialectId, Request};
use segue::dialect::{self, End, Expect};
use segue::event::{Step, Usage};
use segue::sse;
use segue::store::replay;
use segue::store::told::Told;
use segue::turn::Turn;

const DIALECTS: [DialectId; 3] = [DialectId::Chat, DialectId::Anthropic, DialectId::Responses];

/// Where a foreign value may stand in an event: `@` is its place.
const CHAT: [&str; 14] = [
    "@",
    r#"{"id":@,"object":"chat.completion.chunk","created":1,"model":@,"choices":[{"index":0,"delta":{"content":"a"}}]}"#,
    r#"{"id":"c","created":@,"model":"m","choices":@}"#,
    r#"{"id":"c","created":1,"model":"m","choices":[{"index":0,"delta":@,"finish_reason":null}]}"#,
    r#"{"id":"c","created":1,"model":"m","choices":[{"index":0,"delta":{"content":@}}]}"#,
    r#"{"id":"c","created":1,"model":"m","choices":[{"index":0,"delta":{"reasoning":@,"refusal":@}}]}"#,
    r#"{"id":"c","created":1,"model":"m","choices":[{"index":0,"delta":{"reasoning_details":@}}]}"#,
    r#"{"id":"c","created":1,"model":"m","choices":[{"index":0,"delta":{"tool_calls":@}}]}"#,
    r#"{"id":"c","created":1,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":@,"id":@,"function":{"name":@,"arguments":@}}]}}]}"#,
    r#"{"id":"c","created":1,"model":"m","choices":[{"index":0,"delta":{"function_call":@},"finish_reason":@}]}"#,
    r#"{"id":"c","created":1,"model":"m","choices":[{"index":0,"delta":{},"logprobs":@,"x":@}]}"#,
    r#"{"id":"c","created":1,"model":"m","choices":[],"usage":@,"citations":@}"#,
    r#"{"error":@}"#,
    r#"{"detail":@,"message":@,"code":@,"status":@}"#,
];

const ANTHROPIC: [&str; 12] = [
    "@",
    r#"{"type":"message_start","message":@}"#,
    r#"{"type":"message_start","message":{"id":@,"model":@,"usage":@,"x":@}}"#,
    r#"{"type":"content_block_start","index":@,"content_block":@}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":@,"citations":@}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":@,"name":@,"input":@}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":@,"signature":@}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","input":@}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":@}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":@}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":@,"stop_sequence":@,"x":@},"usage":@}"#,
    r#"{"type":"error","error":@}"#,
];

const RESPONSES: [&str; 9] = [
    "@",
    r#"{"type":"response.created","response":@}"#,
    r#"{"type":"response.output_item.added","output_index":@,"item":@}"#,
    r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":@}}"#,
    r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","summary":@,"content":@,"encrypted_content":@}}"#,
    r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"custom_tool_call","call_id":@,"name":"f","input":@}}"#,
    r#"{"type":"response.output_text.delta","output_index":0,"delta":@,"logprobs":@}"#,
    r#"{"type":"response.completed","response":{"output":@,"usage":@,"status":"completed"}}"#,
    r#"{"type":"response.failed","response":{"status":"failed","error":@}}"#,
];

/// A stream of many small events.
type Stream = (DialectId, &'static str, fn(usize) -> String);

const STREAMS: [Stream; 27] = [
    (DialectId::Responses, "letters", |_| {
        r#"{"type":"response.output_text.delta","output_index":0,"delta":"a"}"#.to_owned()
    }),
    (DialectId::Responses, "one-byte fragments of a custom call", |at| {
        match at {
        0 => r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"custom_tool_call","call_id":"a","name":"f"}}"#.to_owned(),
        _ => r#"{"type":"response.custom_tool_call_input.delta","output_index":0,"delta":"1"}"#.to_owned(),
    }
    }),
    (DialectId::Responses, "items that never end", |at| {
        format!(r#"{{"type":"response.output_item.added","output_index":{at},"item":{{"type":"reasoning"}}}}"#)
    }),
    (DialectId::Responses, "one item begun again and again", |_| {
        r#"{"type":"response.output_item.added","output_index":7,"item":{"type":"message"}}"#.to_owned()
    }),
    (DialectId::Responses, "items of no common form", |at| {
        format!(
            r#"{{"type":"response.output_item.done","output_index":{at},"item":{{"type":"web_search_call","x":1}}}}"#
        )
    }),
    (DialectId::Chat, "letters", |_| delta(r#""content":"a""#)),
    (DialectId::Chat, "blanks", |_| delta(r#""content":" ""#)),
    (DialectId::Chat, "letters and reasoning", |at| {
        delta(if at % 2 == 0 { r#""content":"a""# } else { r#""reasoning":"b""# })
    }),
    (DialectId::Chat, "one-byte fragments of a call", |at| {
        if at == 0 { call(0, r#""id":"a","#, "f", "[") } else { call(0, "", "", "1") }
    }),
    (DialectId::Chat, "one-byte fragments of two calls in turn", |at| {
        let index = u64::from(at % 2 == 1);
        if at < 2 { call(index, &format!(r#""id":"a{at}","#), "f", "[") } else { call(index, "", "", "1") }
    }),
    (DialectId::Chat, "blank fragments of a call", |at| {
        if at == 0 { call(0, r#""id":"a","#, "f", "") } else { call(0, "", "", " ") }
    }),
    (DialectId::Chat, "blanks behind a call that may be a placeholder", |at| {
        if at == 0 { call(0, r#""id":"a","#, "f", &format!("{}{{}}", " ".repeat(9000))) } else { call(0, "", "", " ") }
    }),
    (DialectId::Chat, "a call told again and again", |at| {
        if at == 0 { call(0, r#""id":"a","#, "f", "[1,2,3]") } else { call(0, "", "", "[1,2,3]") }
    }),
    (DialectId::Chat, "fragments without a name", |at| {
        if at == 0 { call(0, r#""id":"a","#, "", "[") } else { call(0, "", "", "1") }
    }),
    (DialectId::Chat, "new calls", |at| call(at as u64, &format!(r#""id":"a{at}","#), "f", "{}")),
    (DialectId::Chat, "calls at huge indexes", |at| call(u64::MAX - at as u64, "", "f", "{}")),
    (DialectId::Chat, "calls and text in turn", |at| {
        if at % 2 == 0 { delta(r#""content":"a""#) } else { call(0, r#""id":"a","#, "f", "1") }
    }),
    (DialectId::Chat, "choices that nobody asked for", |at| {
        format!(r#"{{"choices":[{{"index":{at},"delta":{{"content":"a"}}}}]}}"#)
    }),
    (DialectId::Chat, "new names", |at| format!(r#"{{"id":"{at}","model":"m{at}","created":{at},"choices":[]}}"#)),
    (DialectId::Chat, "usage of new fields", |at| format!(r#"{{"choices":[],"usage":{{"u{at}":{at}}}}}"#)),
    (DialectId::Chat, "new fields at the top", |at| format!(r#"{{"choices":[],"t{at}":[{at}]}}"#)),
    (DialectId::Chat, "halves of letters", |_| delta(r#""content":"\ud83d""#)),
    (DialectId::Anthropic, "letters", |at| match at {
        0 => r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#.to_owned(),
        _ => r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}"#.to_owned(),
    }),
    (DialectId::Anthropic, "one-byte fragments of a call", |at| {
        match at {
        0 => r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}"#.to_owned(),
        _ => r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"1"}}"#.to_owned(),
    }
    }),
    (DialectId::Anthropic, "blocks that never end", |at| {
        format!(
            r#"{{"type":"content_block_start","index":{at},"content_block":{{"type":"thinking","thinking":"a","signature":"s"}}}}"#
        )
    }),
    (DialectId::Anthropic, "usage of new fields", |at| {
        format!(r#"{{"type":"message_delta","delta":{{"x{at}":1}},"usage":{{"u{at}":{at}}},"y{at}":2}}"#)
    }),
    (DialectId::Anthropic, "blocks of no common form", |at| match at % 3 {
        0 => {
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"a"}}"#.to_owned()
        }
        1 => r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"1"}}"#
            .to_owned(),
        _ => r#"{"type":"content_block_stop","index":0}"#.to_owned(),
    }),
];

fn delta(fields: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{{fields}}}}}]}}"#)
}

fn call(index: u64, id: &str, name: &str, args: &str) -> String {
    let name = if name.is_empty() { String::new() } else { format!(r#""name":"{name}","#) };
    delta(&format!(r#""tool_calls":[{{"index":{index},{id}"function":{{{name}"arguments":"{args}"}}}}]"#))
}

#[test]
fn an_event_of_any_shape_is_read_and_told_linearly() {
    let mut dear = Vec::new();
    let all =
        [(DialectId::Chat, &CHAT[..]), (DialectId::Anthropic, &ANTHROPIC[..]), (DialectId::Responses, &RESPONSES[..])];
    for (id, templates) in all {
        for template in templates {
            for (shape, make) in SHAPES {
                let slots = template.matches('@').count().max(1);
                let make = |n: usize| {
                    let data = template.replace('@', &make(n / slots));
                    let length = data.len();
                    (vec![event(data)], length)
                };
                let what = || format!("{} {template}, {shape}", id.name());
                dear.extend(linear(&what, (PLACED, HEAP), &make, &|events| play(id, events, lifted())));
            }
        }
    }
    for (bound, bounds) in bounds() {
        // One event that holds many of one thing.
        for (shape, unit) in [
            ("entries that say nothing", "{}"),
            ("fragments of one call", r#"{"index":0,"id":"a","function":{"name":"f","arguments":"1"}}"#),
            ("fragments without a call", r#"{"function":{"arguments":"1"}}"#),
            ("custom calls", r#"{"type":"custom","custom":{}}"#),
            ("one custom call among many", r#"{"custom":1,"function":{}}"#),
        ] {
            let make = |n: usize| {
                let data = CHAT[7].replace('@', &list(n, |_| unit.to_owned()));
                let length = data.len();
                (vec![event(data)], length)
            };
            let what = || format!("chat, an event of {shape}{bound}");
            dear.extend(linear(&what, (MANY, HEAP), &make, &|events| play(DialectId::Chat, events, bounds)));
        }
    }
    report(&dear);
}

#[test]
fn a_stream_of_any_events_is_read_and_told_linearly() {
    let mut dear = Vec::new();
    for (id, shape, unit) in STREAMS {
        let make = |n: usize| {
            let typical = unit(n / 200).len();
            let events: Vec<_> = (0..n / typical).map(|at| event(unit(at))).collect();
            (events, n)
        };
        let what = || format!("{}, a stream of {shape}", id.name());
        dear.extend(linear(&what, (MANY, HEAP), &make, &|events| play(id, events, Bounds::default())));
    }
    report(&dear);
}

#[test]
fn whole_answers_and_errors_are_read_linearly() {
    let mut dear = Vec::new();
    let mut headers = HeaderMap::new();
    headers.insert("retry-after", HeaderValue::from_static("1"));
    for id in DIALECTS {
        for template in [
            "@",
            "<html><title>@",
            r#"{"choices":@}"#,
            r#"{"choices":[{"message":@}]}"#,
            r#"{"choices":[{"message":{"content":@,"tool_calls":@}}],"usage":@}"#,
            r#"{"type":"message","content":@,"stop_reason":"end_turn"}"#,
            r#"{"type":"message","content":[{"type":"tool_use","id":"a","name":"f","input":@}],"usage":@}"#,
            r#"{"output":@,"status":"completed","usage":@}"#,
            r#"{"error":@}"#,
            r#"[{"error":{"message":@,"type":@,"code":@,"param":@,"metadata":@,"details":@}}]"#,
            r#"{"error":{"message":"Unsupported parameter: 'x'","details":[{"retryDelay":@}],"metadata":{"raw":@}}}"#,
            r#"{"detail":@}"#,
        ] {
            for (shape, make) in SHAPES {
                let slots = template.matches('@').count().max(1);
                let make = |n: usize| {
                    let body = template.replace('@', &make(n / slots));
                    let length = body.len();
                    (body, length)
                };
                let what = || format!("{} whole {template}, {shape}", id.name());
                let expect = Expect { bounds: lifted(), ..Expect::of(1) };
                let work = |body: &String| {
                    let provider = dialect::provider(id).unwrap();
                    if let Ok(steps) = provider.whole(body.as_bytes(), expect) {
                        tell(id, &steps);
                    }
                    for status in [200, 400, 429, 500] {
                        std::hint::black_box(provider.classify(status, &headers, body.as_bytes()));
                    }
                };
                dear.extend(linear(&what, (PLACED, HEAP), &make, &work));
            }
        }
    }
    report(&dear);
}

fn event(data: String) -> sse::Event {
    sse::Event { name: Bytes::new(), data: Bytes::from(data), single_line: true }
}

/// Reads events, and tells what they say to each kind of client, streamed and whole.
fn play(id: DialectId, events: &[sse::Event], bounds: Bounds) {
    let mut decoder = dialect::provider(id).unwrap().decoder(Expect { bounds, ..Expect::of(1) });
    let mut steps = Vec::new();
    for event in events {
        let mut step = Step::default();
        if decoder.event(event, &mut step).is_err() {
            break;
        }
        steps.push(step);
    }
    let _ = decoder.end(events.last(), &mut Step::default());
    tell(id, &steps);
}

fn tell(issuer: DialectId, steps: &[Step]) {
    for id in DIALECTS {
        let client = dialect::client(id).unwrap();
        for stream in [true, false] {
            let mut encoder = client.encoder(&request(id, stream));
            let mut out = BytesMut::new();
            for step in steps {
                encoder.step(step, &mut out);
            }
            encoder.close(End::Complete(&Usage::default()), &mut out);
        }
        let mut turn = Turn::new(1 << 30, true);
        let mut told = Told::default();
        for step in steps {
            let _ = turn.absorb(step);
            std::hint::black_box((turn.tokens(), turn.is_blank(), turn.is_silent()));
            told.note(step, issuer, |call| call.to_string());
        }
        std::hint::black_box(replay::answer(told, client.history()));
    }
}

fn request(id: DialectId, stream: bool) -> Request {
    let body = format!(
        r#"{{"model":"m","max_tokens":99,"stream":{stream},"messages":[{{"role":"user","content":"hi"}}],"input":"a"}}"#
    );
    dialect::client(id).unwrap().parse(&HeaderMap::new(), body.as_bytes()).unwrap()
}

/// What a provider sends costs no more heap than so many times its bytes, told to every kind of client at once.
const HEAP: u64 = 600;
