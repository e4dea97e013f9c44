//! Histories that are mended, and those that stay as they are.

use super::*;
use serde_json::json;

fn call(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}})
}

fn calling(content: Option<&str>, ids: &[&str]) -> Value {
    json!({"role": "assistant", "content": content, "tool_calls": ids.iter().map(|id| call(id)).collect::<Vec<_>>()})
}

fn result(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "1"})
}

fn user() -> Value {
    json!({"role": "user", "content": "?"})
}

fn mended(messages: &[Value], past: usize) -> Vec<Value> {
    let mut messages = messages.to_vec();
    Chat.mend(&mut messages, past);
    messages
}

#[test]
fn whole_conversations_stay_byte_for_byte() {
    let whole =
        [user(), calling(None, &["a", "b"]), result("b"), result("a"), json!({"role": "assistant", "content": "x"})];
    assert_eq!(mended(&whole, 5), whole);
    let old = [
        user(),
        json!({"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}}),
        json!({"role": "function", "name": "f", "content": "1"}),
    ];
    assert_eq!(mended(&old, 3), old);
}

#[test]
fn a_call_without_its_result_goes_and_an_empty_answer_with_it() {
    let text = json!({"role": "assistant", "content": "wait"});
    assert_eq!(mended(&[user(), calling(Some("wait"), &["a"]), user()], 2), [user(), text, user()]);
    assert_eq!(mended(&[user(), calling(None, &["a"]), user()], 2), [user(), user()]);
    assert_eq!(
        mended(&[calling(None, &["a", "b"]), result("b"), user()], 2),
        [calling(None, &["b"]), result("b"), user()]
    );
}

#[test]
fn a_result_without_its_call_goes_unless_the_client_just_sent_it() {
    assert_eq!(mended(&[user(), result("a"), user()], 2), [user(), user()]);
    assert_eq!(mended(&[user(), result("a")], 1), [user(), result("a")]);
    // The new result keeps the call.
    assert_eq!(mended(&[calling(None, &["a"]), result("a")], 1), [calling(None, &["a"]), result("a")]);
}

#[test]
fn a_result_that_comes_late_stands_behind_its_call() {
    let said = |text: &str| json!({"role": "assistant", "content": text});
    let late = [user(), calling(None, &["a"]), user(), said("stopped"), result("a"), user()];
    let settled = [user(), calling(None, &["a"]), result("a"), user(), said("stopped"), user()];
    assert_eq!(mended(&late, 4), settled, "it is among the new messages");
    assert_eq!(mended(&late, 6), settled, "or was, a turn ago");
    assert_eq!(mended(&settled, 6), settled);
    // Some calls were answered at once, one of them twice.
    let mut second = result("b");
    second["content"] = "2".into();
    let half = [calling(None, &["a", "b", "c"]), result("b"), user(), result("c"), second.clone(), user()];
    assert_eq!(
        mended(&half, 3),
        [calling(None, &["b", "c"]), result("c"), second, user(), user()],
        "what has no result yet waits for it"
    );
    let alone = [user(), calling(None, &["a"]), user(), said("stopped"), result("a")];
    let came = json!({"role": "user", "content": "The result of an earlier call has come: 1"});
    assert_eq!(mended(&alone, 4), [user(), calling(None, &["a"]), result("a"), user(), said("stopped"), came]);
    let unknown = [user(), said("x"), result("z"), user()];
    assert_eq!(mended(&unknown, 2), unknown, "a result of no call is the client's affair");
}
