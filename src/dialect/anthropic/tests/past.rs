//! Histories that are mended, and those that stay as they are.

use super::*;
use serde_json::json;

fn message(role: &str, blocks: &[Value]) -> Value {
    json!({"role": role, "content": blocks})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "f", "input": {}})
}

fn result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "1"})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn thinking() -> Value {
    json!({"type": "thinking", "thinking": "hm", "signature": "s"})
}

fn mended(messages: &[Value], past: usize) -> Vec<Value> {
    let mut messages = messages.to_vec();
    Anthropic.mend(&mut messages, past);
    messages
}

#[test]
fn whole_conversations_stay_byte_for_byte() {
    let whole = [
        json!({"role": "user", "content": "?"}),
        message("assistant", &[thinking(), text("x"), call("a"), call("b")]),
        message("user", &[result("a"), result("b"), text("and?")]),
        json!({"role": "assistant", "content": "y"}),
    ];
    assert_eq!(mended(&whole, 4), whole);
}

#[test]
fn a_call_without_its_result_goes_and_what_has_nothing_left_to_say_with_it() {
    let user = message("user", &[text("?")]);
    let answer = message("assistant", &[thinking(), text("x"), call("a")]);
    assert_eq!(mended(&[answer, user.clone()], 1), [message("assistant", &[thinking(), text("x")]), user.clone()]);
    let silent = message("assistant", &[thinking(), call("a")]);
    assert_eq!(mended(&[user.clone(), silent.clone(), user.clone()], 2), [user.clone(), user.clone()]);
    let new = message("user", &[result("a")]);
    assert_eq!(mended(&[silent.clone(), new.clone()], 1), [silent, new]);
}

#[test]
fn a_result_without_its_call_goes() {
    let orphan = message("user", &[result("a"), text("?")]);
    assert_eq!(mended(std::slice::from_ref(&orphan), 1), [message("user", &[text("?")])]);
    assert_eq!(mended(&[message("user", &[result("a")]), text("new")], 1), [text("new")]);
    assert_eq!(mended(std::slice::from_ref(&orphan), 0), [orphan]);
}

#[test]
fn an_answer_is_written_without_anything_around_it() {
    let parts = vec![
        Part::Reasoning {
            text: "hm".into(),
            signature: Some("s".into()),
            issuer: DialectId::Anthropic,
            redacted: false,
        },
        Part::text("x"),
        Part::ToolCall { id: "a".into(), name: "f".into(), args: "{}".into() },
    ];
    let spoken = Anthropic.write(&[], &[Message { role: Role::Assistant, parts }]);
    assert_eq!(spoken.messages, [message("assistant", &[thinking(), text("x"), call("a")])]);
    assert_eq!(spoken.system, None);
}

#[test]
fn a_result_that_comes_late_stands_behind_its_call() {
    let user = |content: &str| json!({"role": "user", "content": content});
    let said = |content: &str| json!({"role": "assistant", "content": content});
    let calls = |ids: &[&str]| message("assistant", &ids.iter().map(|id| call(id)).collect::<Vec<_>>());
    let late = [calls(&["a"]), user("stop"), said("stopped"), message("user", &[result("a"), text("now?")])];
    let settled = [
        calls(&["a"]),
        message("user", &[result("a"), text("stop")]),
        said("stopped"),
        message("user", &[text("now?")]),
    ];
    assert_eq!(mended(&late, 3), settled, "it is among the new messages");
    assert_eq!(mended(&late, 4), settled, "or was, a turn ago");
    assert_eq!(mended(&settled, 4), settled);
    // A message of nothing but the late result still asks; between two answers the result gets a message of its own.
    let came = text("The result of an earlier call has come: 1");
    let alone = [calls(&["a"]), said("wait"), message("user", &[result("a")]), user("?")];
    assert_eq!(
        mended(&alone, 3),
        [calls(&["a"]), message("user", &[result("a")]), said("wait"), message("user", &[came]), user("?")]
    );
    let mut second = result("b");
    second["content"] = "2".into();
    let half = [
        calls(&["b", "c"]),
        message("user", &[result("b"), text("stop")]),
        said("stopped"),
        message("user", &[second.clone(), result("c"), text("?")]),
    ];
    assert_eq!(
        mended(&half, 3),
        [
            calls(&["b", "c"]),
            message("user", &[second, result("c"), text("stop")]),
            said("stopped"),
            message("user", &[text("?")])
        ]
    );
}
