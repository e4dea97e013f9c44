//! What is noted of a turn as it is told.

use super::*;
use crate::event::Finish;

fn parts(events: Vec<Event>) -> Vec<Part> {
    let mut told = Told::default();
    for event in events {
        told.note(&Step::of(event), DialectId::Anthropic, |call| format!("minted_{call}"));
    }
    told.into_parts()
}

fn text(text: &str) -> Event {
    Event::Text { choice: 0, text: text.to_owned() }
}

fn reason(text: &str) -> Event {
    Event::Reasoning { choice: 0, text: text.to_owned() }
}

fn sign(data: &str, redacted: bool) -> Event {
    Event::Signature { choice: 0, data: data.to_owned(), redacted }
}

fn open(call: u32, id: &str) -> Event {
    Event::ToolOpen { choice: 0, call, id: id.to_owned(), name: "f".to_owned() }
}

fn args(call: u32, args: &str) -> Event {
    Event::ToolArgs { choice: 0, call, args: args.to_owned() }
}

fn close(call: u32) -> Event {
    Event::ToolClose { choice: 0, call }
}

fn finish() -> Event {
    Event::Finish { choice: 0, reason: Finish::Stop, stop_sequence: None }
}

fn call(id: &str, args: &str) -> Part {
    Part::ToolCall { id: id.to_owned(), name: "f".to_owned(), args: args.to_owned() }
}

fn signed(text: &str, signature: &str, redacted: bool) -> Part {
    let signature = Some(signature.to_owned());
    Part::Reasoning { text: text.to_owned(), signature, issuer: DialectId::Anthropic, redacted }
}

#[test]
fn pieces_become_parts_in_the_order_in_which_they_were_told() {
    let told = parts(vec![
        reason("h"),
        reason("m"),
        sign("s1", false),
        Event::Thinking(false),
        sign("blob", true),
        text("Let "),
        text("me see"),
        open(0, "c0"),
        args(0, "{\"a\":"),
        args(0, "1}"),
        close(0),
        text("!"),
        finish(),
    ]);
    let expected = [
        signed("hm", "s1", false),
        signed("", "blob", true),
        Part::text("Let me see"),
        call("c0", "{\"a\":1}"),
        Part::text("!"),
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_call_that_was_cut_off_is_left_out_and_one_that_is_whole_stays() {
    assert_eq!(parts(vec![text("Let me see"), open(0, "c0"), args(0, "{\"a\"")]), [Part::text("Let me see")]);
    assert_eq!(parts(vec![open(0, "c0"), args(0, "{}"), close(0), open(1, "c1"), args(1, "{")]), [call("c0", "{}")]);
    // A finish says that all of them are whole.
    assert_eq!(parts(vec![open(0, "c0"), args(0, "{}"), finish()]), [call("c0", "{}")]);
    assert_eq!(parts(vec![open(0, ""), args(0, "{}"), close(0)]), [call("minted_0", "{}")]);
}

#[test]
fn calls_whose_pieces_are_mixed_keep_their_own() {
    let told = parts(vec![open(0, "x"), open(1, "y"), args(1, "{\"b\":2}"), args(0, "{}"), close(1), close(0)]);
    assert_eq!(told, [call("x", "{}"), call("y", "{\"b\":2}")]);
}

#[test]
fn reasoning_that_nobody_signed_or_nothing_follows_is_left_out() {
    assert_eq!(parts(vec![reason("hm"), text("x")]), [Part::text("x")]);
    assert_eq!(parts(vec![reason("hm"), sign("s", false)]), []);
    assert_eq!(parts(vec![text("x"), reason("hm"), sign("s", false)]), [Part::text("x")]);
    // Two blocks do not run together.
    let two = parts(vec![reason("a"), sign("s", false), reason("b"), Event::Thinking(false), reason("c"), text("x")]);
    assert_eq!(two, [signed("a", "s", false), Part::text("x")]);
    // Where the text of a block is not shown.
    assert_eq!(parts(vec![sign("s", false), text("x")]), [signed("", "s", false), Part::text("x")]);
}

#[test]
fn only_the_first_answer_counts_and_a_refusal_is_one() {
    let other = Event::Text { choice: 1, text: "other".to_owned() };
    let refusal = |text: &str| Event::Refusal { choice: 0, text: text.to_owned() };
    assert_eq!(parts(vec![refusal("I "), other, refusal("cannot")]), [Part::Refusal("I cannot".to_owned())]);
    assert_eq!(parts(vec![Event::Alive, finish()]), []);
}

#[test]
fn a_call_that_is_no_json_is_wrapped_and_a_text_of_blanks_is_not_told_again() {
    let cut = vec![open(0, "a"), args(0, "{\"x\":\"y"), close(0), open(1, "b"), close(1), finish()];
    assert_eq!(parts(cut), [call("a", r#"{"_raw":"{\"x\":\"y"}"#), call("b", "")]);
    assert_eq!(parts(vec![text("\n\n"), text(" ")]), []);
    let between = vec![text("\n\n"), open(0, "a"), args(0, "{}"), close(0), finish()];
    assert_eq!(parts(between), [call("a", "{}")]);
}
