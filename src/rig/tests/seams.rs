//! Every way to go on, over a real connection and in signals.

#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use super::client::{ask, go_on};
use super::heard;
use crate::event::Signal;
use crate::failure::{Kind, Remedy};
use crate::rig::origin::{Origin, Scripts};
use crate::rig::play::PREAMBLE;
use crate::rig::script::{Continuation, Script};
use crate::rig::signals;
use crate::rig::wire::Api;
use crate::turn::resume::{Anchor, Carry, Continue, How, Origin as Start};

const TEXT: &str = "He said \"wait\" and didn't look back. The bridge was empty, and the river went on.";
const TOLD: &str = "He said \"wait\" and didn't look back. The";
const QUOTE: &str = "\"wait\" and didn't look back. The";
const REST: &str = " bridge was empty, and the river went on.";

async fn wire(continuation: Continuation, told: &str, quote: Option<&str>, api: Api) -> String {
    let origin = Origin::local(Scripts::fixed(Script::telling(TEXT).continuing(continuation))).await.unwrap();
    let got = ask(origin.addr, api, &go_on(told, quote)).await;
    assert_eq!(got.status, 200, "{}", String::from_utf8_lossy(&got.body));
    let heard = heard::read(api, &got.body);
    assert_eq!(heard.finishes[&0], "stop");
    heard.texts.get(&0).cloned().unwrap_or_default()
}

fn simulated(continuation: Continuation, told: &str, anchor: &str, how: How) -> String {
    let anchor = Anchor { text: anchor.to_owned() };
    let origin = Start::Continue(Continue { delivered: told.into(), anchor, how, tokens: 0 });
    let carry = Carry { origin, ..Carry::fresh() };
    let signals = signals::timeline(&Script::telling(TEXT).continuing(continuation), &carry, 3);
    assert!(matches!(signals.last(), Some((_, Signal::Ended))));
    heard::signals(&signals).texts.get(&0).cloned().unwrap_or_default()
}

#[tokio::test]
async fn each_behaviour_after_an_instruction() {
    use Continuation as C;
    let table = [
        (C::Obedient, format!("{QUOTE}{REST}")),
        (C::RefusesPrefill, format!("{QUOTE}{REST}")),
        (C::Verbatim, REST.to_owned()),
        (C::Echo, TEXT.to_owned()),
        (C::Preamble, format!("{PREAMBLE}{QUOTE}{REST}")),
        (C::PreambleOnly, format!("{PREAMBLE}{}", REST.trim_start())),
        (C::Restart, TEXT.to_owned()),
        (C::MissingSpace, REST.trim_start().to_owned()),
        (C::ExtraSpace, format!(" {REST}")),
        (C::ParagraphBreak, format!("\n\n{}", REST.trim_start())),
        (C::CurlyQuotes, format!("“wait” and didn’t look back. The{REST}")),
        (C::Refuses, "I'm sorry, but I can't continue that reply.".to_owned()),
        (C::Empty, String::new()),
    ];
    for (continuation, expected) in table {
        for api in Api::ALL {
            assert_eq!(wire(continuation, TOLD, Some(QUOTE), api).await, expected, "{continuation:?} {api:?}");
        }
        assert_eq!(simulated(continuation, TOLD, QUOTE, How::Instruct), expected, "{continuation:?}");
    }
    let diverged = wire(C::RestartDiverges, TOLD, Some(QUOTE), Api::Chat).await;
    assert!(diverged.starts_with(&TEXT[..TOLD.len() / 2]) && !diverged.contains("bridge"), "{diverged}");
}

#[tokio::test]
async fn after_a_prefill_nothing_is_repeated_that_was_not_asked_for() {
    use Continuation as C;
    for continuation in [C::Obedient, C::Verbatim, C::Preamble, C::PreambleOnly, C::CurlyQuotes] {
        for api in Api::ALL {
            assert_eq!(wire(continuation, TOLD, None, api).await, REST, "{continuation:?} {api:?}");
        }
        assert_eq!(simulated(continuation, TOLD, "", How::Prefill), REST);
    }
    assert_eq!(wire(C::Echo, TOLD, None, Api::Chat).await, TEXT);
}

#[tokio::test]
async fn white_space_at_the_end_of_what_was_told() {
    use Continuation as C;
    let told = format!("{TOLD} ");
    let rest = REST.trim_start();
    assert_eq!(
        wire(C::Obedient, &told, Some(QUOTE), Api::Chat).await,
        format!("{QUOTE}{REST}"),
        "an anchor ends before it"
    );
    assert_eq!(wire(C::Verbatim, &told, None, Api::Chat).await, rest);
    assert_eq!(wire(C::MissingSpace, &told, None, Api::Chat).await, rest);
    assert_eq!(wire(C::ExtraSpace, &told, None, Api::Chat).await, format!(" {rest}"));
    // Inside a word there is no space that could be missing or too many.
    let inside = "He said \"wait\" and did";
    let rest = &TEXT[inside.len()..];
    assert_eq!(wire(C::MissingSpace, inside, None, Api::Chat).await, rest);
    assert_eq!(wire(C::ExtraSpace, inside, None, Api::Chat).await, rest);
    // Anthropic refuses it.
    let origin = Origin::local(Scripts::fixed(Script::telling(TEXT))).await.unwrap();
    let got = ask(origin.addr, Api::Anthropic, &go_on(&told, None)).await;
    assert_eq!(got.status, 400);
    assert!(String::from_utf8_lossy(&got.body).contains("trailing whitespace"));
}

#[tokio::test]
async fn a_refused_prefill_says_so() {
    let script = Script::telling(TEXT).continuing(Continuation::RefusesPrefill);
    let origin = Origin::local(Scripts::fixed(script.clone())).await.unwrap();
    for api in Api::ALL {
        let got = ask(origin.addr, api, &go_on(TOLD, None)).await;
        assert_eq!(got.status, 400);
        let json: serde_json::Value = serde_json::from_slice(&got.body).unwrap();
        assert_eq!(json["error"]["type"], "invalid_request_error");
        assert!(json["error"]["message"].as_str().unwrap().contains("does not support assistant message prefill"));
    }
    let anchor = Anchor::default();
    let origin = Start::Continue(Continue { delivered: TOLD.into(), anchor, how: How::Prefill, tokens: 0 });
    let signals = signals::timeline(&script, &Carry { origin, ..Carry::fresh() }, 1);
    let Some((_, Signal::Failed(failure))) = signals.last() else { unreachable!("{signals:?}") };
    assert_eq!((failure.kind, failure.remedy.clone()), (Kind::BadRequest, Some(Remedy::Instruct)));
}

#[test]
fn a_turn_that_other_providers_told_a_little_differently_goes_on() {
    let loose = "He said “wait” and didn’t look  back. The";
    assert_eq!(simulated(Continuation::Verbatim, loose, "", How::Prefill), REST);
    let foreign = "Something else entirely, then: didn't look back. The";
    assert_eq!(simulated(Continuation::Verbatim, foreign, "didn't look back. The", How::Instruct), REST);
    assert_eq!(simulated(Continuation::Verbatim, "Nothing of it", "", How::Prefill), TEXT, "from the start");
}

#[test]
fn the_end_of_a_text_leaves_nothing_to_tell() {
    assert_eq!(simulated(Continuation::Verbatim, TEXT, "", How::Prefill), "");
    assert_eq!(simulated(Continuation::Obedient, TEXT, "went on.", How::Instruct), "went on.");
}
