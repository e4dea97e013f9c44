//! Tool calls and structured output across a death.

use super::*;
use crate::routing::Delivery;

fn open(name: &str) -> Event {
    Event::ToolOpen { choice: 0, call: 0, id: "c1".into(), name: name.into() }
}

fn args(args: &str) -> Event {
    Event::ToolArgs { choice: 0, call: 0, args: args.into() }
}

fn close() -> Event {
    Event::ToolClose { choice: 0, call: 0 }
}

#[test]
fn a_held_call_that_dies_costs_the_client_nothing() {
    let mut play = setup(&["a", "b", "c"]).begin();
    play.sent(0).say(0, open("f")).say(0, args("{\"q\":\"par")).fail(0, Kind::Reset);
    assert_eq!(play.moves(), "open0:a drop0:failed open1:b");
    assert_eq!(play.opens[1].carry.origin, Origin::Fresh);
    play.sent(1).say(1, open("f")).say(1, args("{\"q\":1}")).say(1, close());
    assert_eq!(play.moves(), "");
    play.finish(1, Finish::ToolCalls).signal(1, Signal::Ended);
    assert_eq!(play.moves(), "emit:call:f+args\"{\\\"q\\\":1}\"+called emit:ToolCalls drop1:ok close:complete");
}

#[test]
fn with_nobody_behind_it_a_call_is_told_as_it_comes() {
    let mut play = setup(&["a"]).begin();
    play.sent(0).say(0, open("f")).say(0, args("{"));
    assert_eq!(play.moves(), "open0:a emit:call:f emit:args\"{\"");
}

#[test]
fn held_calls_come_before_text_that_follows_them_and_then_nothing_can_go_on() {
    let mut play = setup(&["a", "b"]).begin();
    play.sent(0).say(0, open("f")).say(0, args("{}")).say(0, close()).text(0, "done");
    assert_eq!(play.moves(), "open0:a emit:call:f+args\"{}\"+called+\"done\"");
    play.fail(0, Kind::Reset);
    assert_eq!(play.moves(), "drop0:failed close:NotContinuable(Reset)");
}

#[test]
fn a_streamed_call_must_be_made_again_and_only_its_rest_is_told() {
    let mut setup = setup(&["a", "b"]);
    setup.level.tool_calls = Delivery::Stream;
    let mut play = setup.begin();
    play.sent(0).say(0, open("f")).say(0, args("{\"q\":\"par")).fail(0, Kind::Reset).moves();
    play.sent(1).say(1, open("f")).say(1, args("{\"q\":\"paris\"}")).say(1, close()).finish(1, Finish::ToolCalls);
    assert_eq!(play.moves(), "splice1 emit:args\"is\\\"}\" emit:called");

    let mut setup = super::setup(&["a", "b"]);
    setup.level.tool_calls = Delivery::Stream;
    let mut play = setup.begin();
    play.sent(0).say(0, open("f")).say(0, args("{\"q\":\"par")).fail(0, Kind::Reset).moves();
    play.sent(1).say(1, open("f")).say(1, args("{\"q\":\"rome\"}"));
    assert_eq!(play.moves(), "drop1:failed close:Exhausted(Reset)");
}

fn structured() -> Play {
    let mut setup = setup(&["a", "b"]);
    setup.policy.structured = true;
    setup.begin()
}

#[test]
fn a_structured_answer_is_held_and_checked_and_a_wrong_one_goes_to_the_next() {
    let mut play = structured();
    play.sent(0).text(0, "{\"ok\"").text(0, ":maybe}");
    assert_eq!(play.moves(), "open0:a");
    assert_eq!(play.finish(0, Finish::Stop).moves(), "check0");
    assert_eq!(play.checked(0, Checked::Differs).moves(), "drop0:failed open1:b");
    play.sent(1).text(1, "{\"ok\":true}").finish(1, Finish::Stop).signal(1, Signal::Ended);
    assert_eq!(play.moves(), "emit:\"{\\\"ok\\\":true}\" check1", "nobody else could make it: it is told as it comes");
    assert_eq!(play.checked(1, Checked::Fits).moves(), "emit:Stop drop1:ok close:complete");
    assert_eq!(play.checked(0, Checked::Differs).moves(), "", "nobody asks any more");
}

#[test]
fn while_an_answer_is_checked_its_provider_is_not_silent_and_may_go() {
    let mut play = structured();
    play.sent(0).text(0, "{}").finish(0, Finish::Stop).fail(0, Kind::Reset).pass(secs(200));
    assert_eq!(play.moves(), "open0:a check0");
    assert_eq!(play.checked(0, Checked::Fits).moves(), "emit:\"{}\" emit:Stop drop0:ok close:complete");
    let mut play = structured();
    play.sent(0).text(0, "{}").finish(0, Finish::Stop).pass(secs(300));
    assert_eq!(play.moves(), "open0:a check0 drop0:cancelled close:Deadline(nothing)");
}

#[test]
fn an_answer_of_which_nothing_could_be_said_is_told_and_that_is_in_the_journal() {
    let mut play = structured();
    play.sent(0).text(0, "{}").finish(0, Finish::Stop).checked(0, Checked::Unsure("why"));
    assert_eq!(play.moves(), "open0:a check0 emit:\"{}\"");
    assert_eq!(play.journal().attempts[0].unsure, Some("why"));
}

#[test]
fn a_structured_answer_that_a_limit_cut_is_told_with_its_finish() {
    let mut play = structured();
    play.sent(0).text(0, "{\"ok\"").finish(0, Finish::Length);
    assert_eq!(play.moves(), "open0:a emit:\"{\\\"ok\\\"\"");
}

#[test]
fn a_streamed_object_is_passed_over_where_it_is_known_by_a_deterministic_target() {
    let begin = |deterministic: bool| {
        let mut setup = setup(&["a", "b"]);
        setup.level.structured = Delivery::Stream;
        setup.policy.structured = true;
        let mut target = (*setup.candidates[1].target).clone();
        target.deterministic = deterministic;
        setup.candidates[1].target = Arc::new(target);
        let mut play = setup.begin();
        play.sent(0).text(0, "{\"a\":").fail(0, Kind::Reset);
        play
    };
    let mut play = begin(true);
    assert_eq!(play.moves(), "open0:a emit:\"{\\\"a\\\":\" drop0:failed open1:b");
    play.sent(1).text(1, "{\"a").text(1, "\":1}").finish(1, Finish::Stop);
    assert_eq!(play.moves(), "splice1 emit:\"1}\"");
    assert_eq!(begin(false).moves(), "open0:a emit:\"{\\\"a\\\":\" drop0:failed close:Exhausted(Reset)");
}

#[test]
fn thinking_of_which_nothing_is_shown_is_told_when_its_attempt_leads() {
    let sign = |data: &str, redacted| Event::Signature { choice: 0, data: data.into(), redacted };
    let mut play = setup(&["a", "b"]).begin();
    play.sent(0).say(0, sign("lost", false)).fail(0, Kind::Reset).moves();
    play.sent(1).say(1, Event::Thinking(true)).say(1, sign("s", false)).say(1, Event::Thinking(false));
    play.say(1, sign("blob", true));
    assert_eq!(play.moves(), "", "nobody knows yet whether it will answer");
    play.text(1, "Hi.");
    assert_eq!(play.moves(), "emit:sign\"s\"+sign\"blob\" emit:\"Hi.\"");
}

#[test]
fn a_call_that_was_cut_is_not_handed_on_as_a_whole_one() {
    let cut = |play: &mut Play, reason| {
        play.sent(0).say(0, open("f")).say(0, args("{\"q\":\"par")).say(0, close()).finish(0, reason);
        play.signal(0, Signal::Ended).moves()
    };
    assert_eq!(cut(&mut setup(&["a", "b"]).begin(), Finish::ToolCalls), "open0:a drop0:failed open1:b");
    assert_eq!(
        cut(&mut setup(&["a", "b"]).begin(), Finish::Length),
        "open0:a emit:call:f+args\"{\\\"q\\\":\\\"par\"+called emit:Length drop0:ok close:complete",
        "the model's own word is honest"
    );
    assert_eq!(
        cut(&mut setup(&["a"]).begin(), Finish::ToolCalls),
        "open0:a emit:call:f emit:args\"{\\\"q\\\":\\\"par\" emit:called emit:Length drop0:ok close:complete",
        "nobody could make it whole"
    );
    let mut empty = setup(&["a", "b"]).begin();
    empty.sent(0).say(0, open("f")).say(0, close()).finish(0, Finish::ToolCalls).signal(0, Signal::Ended);
    assert_eq!(
        empty.moves(),
        "open0:a emit:call:f+called emit:ToolCalls drop0:ok close:complete",
        "a call may have no arguments"
    );
}

#[test]
fn thinking_behind_a_held_call_stays_behind_it() {
    let think = |text: &str| Event::Reasoning { choice: 0, text: text.into() };
    let mut play = setup(&["a", "b"]).begin();
    play.sent(0).say(0, think("first")).say(0, open("f")).say(0, args("{}")).say(0, close());
    play.say(0, think("th")).say(0, think("en")).text(0, "done");
    assert_eq!(play.moves(), "open0:a emit:think\"first\" emit:call:f+args\"{}\"+called+think\"then\"+\"done\"");
}
