//! Histories in the words of either dialect.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use super::*;
use crate::store::ServedBy;
use http::HeaderMap;
use serde_json::{Value, json};

fn turn() -> Arc<str> {
    "t9".into()
}

fn chat(messages: &Value) -> Request {
    let body = json!({"model": "m", "messages": messages, "weird": [1.50, "a"]});
    dialect::client(DialectId::Chat).unwrap().parse(&HeaderMap::new(), body.to_string().as_bytes()).unwrap()
}

fn claude(messages: &Value) -> Request {
    let body = json!({"model": "m", "max_tokens": 9, "messages": messages});
    dialect::client(DialectId::Anthropic).unwrap().parse(&HeaderMap::new(), body.to_string().as_bytes()).unwrap()
}

fn words(origin: DialectId) -> &'static dyn History {
    dialect::client(origin).unwrap().history()
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn said(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

fn exchange(origin: DialectId, asked: &[Value], turn: &str, state: State, message: Option<Value>) -> Exchange {
    let served_by = message.as_ref().map(|_| ServedBy { connection: "a".into(), model: "m".into() });
    let answer = Some(Answer { state, message, served_by });
    Exchange { origin, asked: asked.to_vec(), turn: Some(turn.into()), answer }
}

fn stored(exchanges: Vec<Exchange>) -> Conversation {
    Conversation { system: None, exchanges: exchanges.into_iter().map(Arc::new).collect() }
}

fn chat_exchange(asked: Value, turn: &str, state: State, message: Option<Value>) -> Exchange {
    exchange(DialectId::Chat, &[asked], turn, state, message)
}

fn appended(stored: &Conversation, request: &Request, index: Option<u64>) -> (Question, Spoken) {
    append(stored, request, words(request.origin), &turn(), index).unwrap()
}

// === append ===

#[test]
fn what_is_kept_stands_before_what_is_new_byte_for_byte() {
    let odd = json!({"role": "user", "content": [{"type": "text", "text": "hi", "x": null}], "name": "ann", "z": 1e3});
    let known = stored(vec![chat_exchange(odd.clone(), "t1", State::Complete, Some(said("Hello.")))]);
    let mut request = chat(&json!([user("and?")]));
    let (question, spoken) = appended(&known, &request, None);
    assert_eq!(
        serde_json::to_string(&spoken.messages).unwrap(),
        serde_json::to_string(&[odd, said("Hello."), user("and?")]).unwrap()
    );
    assert_eq!((question.keep, question.more.len()), (1, 1));
    assert_eq!(question.more[0].asked, [user("and?")]);
    words(DialectId::Chat).put(&mut request, spoken).unwrap();
    assert_eq!(request.messages.len(), 3);
    assert_eq!(request.raw["messages"].as_array().unwrap().len(), 3);
    assert_eq!(request.raw["weird"], json!([1.50, "a"]));
}

#[test]
fn an_interrupted_answer_is_told_and_one_that_failed_never_happened() {
    let known = stored(vec![
        chat_exchange(user("a"), "t1", State::Interrupted, Some(said("Once"))),
        chat_exchange(user("b"), "t2", State::Failed, None),
        chat_exchange(user("c"), "t3", State::Interrupted, None),
        chat_exchange(user("d"), "t4", State::Incomplete, Some(said("Half"))),
    ]);
    let (question, spoken) = appended(&known, &chat(&json!([user("e")])), None);
    assert_eq!(spoken.messages, [user("a"), said("Once"), user("c"), user("d"), said("Half"), user("e")]);
    assert_eq!(question.keep, 4, "all of it stays to be seen");
}

#[test]
fn a_question_that_nobody_answered_and_that_is_asked_again_is_asked_once() {
    for state in [State::Failed, State::Interrupted] {
        let known = stored(vec![
            chat_exchange(user("a"), "t1", State::Complete, Some(said("A"))),
            chat_exchange(user("b"), "t2", state, None),
        ]);
        let (question, spoken) = appended(&known, &chat(&json!([user("b")])), None);
        assert_eq!(question.keep, 1);
        assert_eq!(spoken.messages, [user("a"), said("A"), user("b")]);
    }
    // What was answered may be asked again.
    let known = stored(vec![chat_exchange(user("b"), "t1", State::Interrupted, Some(said("B")))]);
    let (question, _) = appended(&known, &chat(&json!([user("b")])), None);
    assert_eq!(question.keep, 1);
}

#[test]
fn guesses_that_were_given_up_before_a_word_are_one_question() {
    let asked = |text: &str| chat_exchange(user(text), "t1", State::Interrupted, None);
    let kept = |guesses: &[&str], now: &str| {
        let known = stored(guesses.iter().map(|guess| asked(guess)).collect());
        appended(&known, &chat(&json!([user(now)])), None).1.messages.len() - 1
    };
    for (guesses, now) in [
        (&["what is the wea"][..], "what is the weather?"),
        (&["What", "what's the", "What's the weather in"], "what's the weather in Ulm?"),
        (&["what is the whether"], "What is the weather?"),
        (&["\u{660e}\u{5929}\u{7684}\u{5929}"], "\u{660e}\u{5929}\u{7684}\u{5929}\u{6c14}\u{600e}\u{4e48}\u{6837}"),
    ] {
        assert_eq!(kept(guesses, now), 0, "{guesses:?}");
    }
    // What was said in its own right is not lost.
    assert_eq!(kept(&["Book a table for two"], "at eight, please"), 1);
    assert_eq!(kept(&["Book a table for two", "at ei"], "at eight, please"), 1);
    let told = stored(vec![chat_exchange(user("what"), "t1", State::Interrupted, Some(said("Yes?")))]);
    assert_eq!(appended(&told, &chat(&json!([user("what is it?")])), None).1.messages.len(), 3, "somebody had spoken");
}

#[test]
fn the_clients_count_takes_a_conversation_back_and_a_gap_is_told() {
    let known = stored(vec![
        chat_exchange(user("a"), "t1", State::Complete, Some(said("A"))),
        chat_exchange(user("b"), "t2", State::Complete, Some(said("B"))),
    ]);
    let request = chat(&json!([user("b, but better")]));
    let (question, spoken) = appended(&known, &request, Some(1));
    assert_eq!((question.keep, spoken.messages), (1, vec![user("a"), said("A"), user("b, but better")]));
    let (question, spoken) = appended(&known, &request, Some(0));
    assert_eq!((question.keep, spoken.messages.len()), (0, 1));
    assert_eq!(appended(&known, &request, Some(2)).0.keep, 2);
    let gap = append(&known, &request, words(DialectId::Chat), &turn(), Some(3));
    assert_eq!(gap.unwrap_err(), Gap { kept: 2 });
}

#[test]
fn instructions_stay_until_the_client_gives_others() {
    let first = chat(&json!([{"role": "system", "content": "Be brief."}, user("a")]));
    let mut known = Conversation::default();
    known.ask(appended(&known, &first, None).0);
    known.answer("t9", Answer { state: State::Complete, message: Some(said("A")), served_by: None });
    let (question, spoken) = appended(&known, &chat(&json!([user("b")])), None);
    assert_eq!(spoken.system, Some(json!([{"role": "system", "content": "Be brief."}])));
    assert!(Arc::ptr_eq(&question.system.unwrap().words, &known.system.as_ref().unwrap().words));
    let other = chat(&json!([{"role": "developer", "content": "Be long."}, user("b")]));
    let (_, spoken) = appended(&known, &other, None);
    assert_eq!(spoken.system, Some(json!([{"role": "developer", "content": "Be long."}])));
    assert_eq!(spoken.messages, [user("a"), said("A"), user("b")]);
}

#[test]
fn calls_go_with_their_results_and_not_without() {
    let call = json!({"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let with_call = json!({"role": "assistant", "content": "Let me see.", "tool_calls": [call]});
    let known = stored(vec![chat_exchange(user("a"), "t1", State::Complete, Some(with_call.clone()))]);
    let result = json!({"role": "tool", "tool_call_id": "c1", "content": "42"});
    let (_, spoken) = appended(&known, &chat(&json!([result])), None);
    assert_eq!(spoken.messages, [user("a"), with_call.clone(), result]);
    let (_, spoken) = appended(&known, &chat(&json!([user("never mind")])), None);
    assert_eq!(spoken.messages, [user("a"), said("Let me see."), user("never mind")]);
    assert_eq!(known.exchanges[0].answer.as_ref().unwrap().message, Some(with_call), "what is kept is not changed");
}

#[test]
fn a_conversation_goes_on_in_another_dialect() {
    let call = json!({"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"x\":1}"}});
    let mut known = stored(vec![
        chat_exchange(user("a"), "t1", State::Complete, Some(said("A"))),
        chat_exchange(
            user("b"),
            "t2",
            State::Complete,
            Some(json!({"role": "assistant", "content": null, "tool_calls": [call]})),
        ),
    ]);
    known.system =
        Some(System { origin: DialectId::Chat, words: Arc::new(json!([{"role": "system", "content": "S"}])) });
    let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "42"}]});
    let mut request = claude(&json!([result]));
    let (question, spoken) = appended(&known, &request, None);
    let called =
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {"x": 1}}]});
    assert_eq!(spoken.messages, [user("a"), said("A"), user("b"), called.clone(), result.clone()]);
    assert_eq!(spoken.system, Some(json!([{"type": "text", "text": "S"}])));
    words(DialectId::Anthropic).put(&mut request, spoken).unwrap();
    assert_eq!(request.system.len(), 1);

    // And back: each part is kept in the words in which it was said.
    known.ask(question);
    known.answer("t9", Answer { state: State::Complete, message: Some(said("42.")), served_by: None });
    let (_, spoken) = appended(&known, &chat(&json!([user("c")])), None);
    let roles: Vec<&str> = spoken.messages.iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "tool", "assistant", "user"]);
    assert_eq!(spoken.system, Some(json!([{"role": "system", "content": "S"}])));
}

// === full ===

#[test]
fn a_client_that_sends_everything_adds_only_what_is_new() {
    let first = chat(&json!([user("a")]));
    let mut known = Conversation::default();
    known.ask(full(&known, &first, words(DialectId::Chat), &turn()));
    let by = Some(ServedBy { connection: "b".into(), model: "m".into() });
    known.answer("t9", Answer { state: State::Interrupted, message: Some(said("Onc")), served_by: by.clone() });

    // The client writes the answer down in its own way: its words count, and how the answer ended is still known.
    let echoed = json!({"role": "assistant", "content": "Onc", "refusal": null});
    let second = chat(&json!([user("a"), echoed, user("b")]));
    let question = full(&known, &second, words(DialectId::Chat), &"t10".into());
    assert_eq!((question.keep, question.more.len()), (0, 2));
    let answer = question.more[0].answer.clone().unwrap();
    assert_eq!(
        (answer.state, answer.served_by, question.more[0].turn.as_deref()),
        (State::Interrupted, by, Some("t9"))
    );
    known.ask(question);
    known.answer("t10", Answer { state: State::Complete, message: Some(said("B")), served_by: None });

    // From then on nothing of it is written again.
    let third = chat(&json!([user("a"), echoed_again(&known), said("B, said I"), user("c")]));
    let question = full(&known, &third, words(DialectId::Chat), &"t11".into());
    assert_eq!(question.keep, 1);

    // What the client tells otherwise is as the client tells it.
    let edited = chat(&json!([user("a"), said("Something else"), user("b")]));
    let question = full(&known, &edited, words(DialectId::Chat), &"t12".into());
    assert_eq!((question.keep, question.more.len()), (0, 2));
    assert_eq!(question.more[0].answer.as_ref().unwrap().state, State::Complete);
    assert_eq!(question.more[0].turn, None);
    known.ask(question);
    assert_eq!(known.exchanges.len(), 2);
}

fn echoed_again(known: &Conversation) -> Value {
    known.exchanges[0].answer.as_ref().unwrap().message.clone().unwrap()
}

#[test]
fn the_start_of_an_answer_at_the_end_is_part_of_the_question() {
    let request = claude(&json!([user("a"), said("A"), user("b"), said("{\"x\":")]));
    let question = full(&Conversation::default(), &request, words(DialectId::Anthropic), &turn());
    assert_eq!(question.more.len(), 2);
    assert_eq!(question.more[1].asked, [user("b"), said("{\"x\":")]);
    let only = chat(&json!([said("x")]));
    let question = full(&Conversation::default(), &only, words(DialectId::Chat), &turn());
    assert_eq!((question.more.len(), question.more[0].asked.len()), (1, 1));
}
