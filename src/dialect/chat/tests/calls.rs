//! Tool calls, in each of the forms in which providers were seen to send them.

#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use super::{delta, finish, told, tools};
use crate::failure::Kind;

#[test]
fn tool_calls_are_told_apart() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        (
            "documented",
            &[
                r#"{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}"#,
                r#"{"index":0,"function":{"arguments":"{\"x\""}}"#,
                r#"{"index":0,"function":{"arguments":":1}"}}"#,
                r#"{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}"#,
            ],
            &["open 0 a f", "args 0 {\"x\"", "args 0 :1}", "close 0", "open 1 b g", "args 1 {}", "close 1"],
        ),
        (
            "same index",
            &[
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}"#,
                r#"{"index":0,"id":"b","function":{"name":"f","arguments":"{\"x\""}}"#,
                r#"{"index":0,"function":{"arguments":":2}"}}"#,
            ],
            &["open 0 a f", "args 0 {\"x\":1}", "close 0", "open 1 b f", "args 1 {\"x\"", "args 1 :2}", "close 1"],
        ),
        (
            "no index",
            &[
                r#"{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}"#,
                r#"{"id":"b","function":{"name":"g","arguments":"{\"x\":2}"}}"#,
            ],
            &["open 0 a f", "args 0 {\"x\":1}", "close 0", "open 1 b g", "args 1 {\"x\":2}", "close 1"],
        ),
        (
            "no index and no id",
            &[
                r#"{"function":{"name":"f","arguments":"{\"x\":1}"}}"#,
                r#"{"function":{"name":"f","arguments":"{\"x\":2}"}}"#,
                r#"{"function":{"name":"g","arguments":{"x":3}}}"#,
            ],
            &[
                "open 0  f",
                "args 0 {\"x\":1}",
                "close 0",
                "open 1  f",
                "args 1 {\"x\":2}",
                "close 1",
                "open 2  g",
                "args 2 {\"x\":3}",
                "close 2",
            ],
        ),
        (
            "index that jumps",
            &[
                r#"{"index":3,"id":"a","function":{"name":"f","arguments":"{"}}"#,
                r#"{"index":9,"function":{"arguments":"}"}}"#,
            ],
            &["open 0 a f", "args 0 {", "args 0 }", "close 0"],
        ),
        (
            "interleaved by index",
            &[
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":""}},{"index":1,"id":"b","function":{"name":"g","arguments":""}}"#,
                r#"{"index":0,"function":{"arguments":"{\"x\":1}"}}"#,
                r#"{"index":1,"function":{"arguments":"{\"x\":2}"}}"#,
            ],
            &["open 0 a f", "open 1 b g", "args 0 {\"x\":1}", "args 1 {\"x\":2}", "close 0", "close 1"],
        ),
        (
            "id and name repeated",
            &[
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}"#,
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}"#,
                r#"{"index":0,"id":"","function":{"name":"","arguments":""}}"#,
            ],
            &["open 0 a f", "args 0 {\"x\"", "args 0 :1}", "close 0"],
        ),
        (
            "a fresh id in each fragment",
            &[
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":""}}"#,
                r#"{"index":0,"id":"b","function":{"arguments":"{\"x\""}}"#,
                r#"{"index":0,"id":"c","function":{"arguments":":1}"}}"#,
            ],
            &["open 0 a f", "args 0 {\"x\"", "args 0 :1}", "close 0"],
        ),
        (
            "id first, name later",
            &[
                r#"{"index":0,"id":"a"}"#,
                r#"{"index":0,"function":{"name":"f"}}"#,
                r#"{"index":0,"function":{"arguments":"{}"}}"#,
            ],
            &["open 0 a f", "args 0 {}", "close 0"],
        ),
        (
            "placeholder, then the object",
            &[
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#,
                r#"{"index":0,"function":{"arguments":"{\"x\""}}"#,
                r#"{"index":0,"function":{"arguments":":1}"}}"#,
            ],
            &["open 0 a f", "args 0 {\"x\"", "args 0 :1}", "close 0"],
        ),
        (
            "snapshot repeated, in pieces too",
            &[
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}"#,
                r#"{"index":0,"function":{"arguments":"1}"}}"#,
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}"#,
                r#"{"index":0,"function":{"arguments":"{\"x\""}}"#,
                r#"{"index":0,"function":{"arguments":":1} "}}"#,
            ],
            &["open 0 a f", "args 0 {\"x\":", "args 0 1}", "close 0"],
        ),
        (
            "no arguments",
            &[
                r#"{"index":0,"id":"a","function":{"name":"f"}}"#,
                r#"{"index":1,"id":"b","function":{"name":"g","arguments":null}}"#,
            ],
            &["open 0 a f", "open 1 b g", "args 0 {}", "close 0", "args 1 {}", "close 1"],
        ),
        (
            "braces in strings",
            &[
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":\"}\\\"{\""}}"#,
                r#"{"index":0,"function":{"arguments":",\"y\":[{}]}"}}"#,
            ],
            &["open 0 a f", "args 0 {\"x\":\"}\\\"{\"", "args 0 ,\"y\":[{}]}", "close 0"],
        ),
        (
            "one id for all",
            &[
                r#"{"index":0,"id":"call","function":{"name":"f","arguments":"{\"x\":1}"}}"#,
                r#"{"index":1,"id":"call","function":{"name":"f","arguments":"{\"x\":1}"}}"#,
            ],
            &["open 0 call f", "args 0 {\"x\":1}", "close 0", "open 1 call f", "args 1 {\"x\":1}", "close 1"],
        ),
    ];
    for (title, entries, expected) in cases {
        let mut events: Vec<String> = entries.iter().map(|e| tools(e)).collect();
        events.push(finish("tool_calls"));
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let (mut words, end) = told(&events);
        assert_eq!(words.pop().as_deref(), Some("finish ToolCalls"), "{title}: {end:?}");
        assert_eq!(words, *expected, "{title}");
    }
}

#[test]
fn calls_that_cannot_be_right_fail_the_attempt() {
    for entries in [
        &[r#"{"index":0,"function":{"arguments":"{}"}}"#][..],
        &[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}"#,
            r#"{"index":0,"function":{"arguments":"{\"y\":2}"}}"#,
        ],
        &[r#"{"index":0,"id":"a"}"#, r#"{"index":0,"id":"a","function":{"arguments":"{}"}}"#],
    ] {
        let mut events: Vec<String> = entries.iter().map(|e| tools(e)).collect();
        events.push(finish("tool_calls"));
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        assert_eq!(told(&events).1.unwrap_err().kind, Kind::Malformed, "{entries:?}");
    }
}

#[test]
fn text_after_a_call_closes_it_and_the_old_form_is_a_call() {
    let (words, _) = told(&[
        &tools(r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}"#),
        &delta(r#"{"content":"then"}"#),
        &delta(r#"{"function_call":{"name":"g","arguments":""}}"#),
        &delta(r#"{"function_call":{"arguments":"{}"}}"#),
        "[DONE]",
    ]);
    let expected = [
        "open 0 a f",
        "args 0 {\"x\":1}",
        "close 0",
        "text then",
        "open 1  g",
        "args 1 {}",
        "close 1",
        "finish ToolCalls",
    ];
    assert_eq!(words, expected);
}
