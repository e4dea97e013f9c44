//! Sequential failover, before and after the first word.

use super::*;
use crate::failure::{Remedy, RetryAt};
use crate::routing::{Continuation, RateLimited};

#[test]
fn a_healthy_turn_is_one_attempt_and_passes_untouched() {
    let mut play = setup(&["a", "b"]).begin();
    assert_eq!(play.moves(), "open0:a");
    let step = Step {
        events: smallvec::smallvec![Event::Text { choice: 0, text: "Hi".into() }],
        raw: Some((DialectId::Chat, bytes::Bytes::from_static(b"{}"))),
    };
    play.sent(0).signal(0, Signal::Step(step.clone()));
    assert!(matches!(play.relay.poll_action(), Some(Action::Emit(told)) if told == step));
    play.finish(0, Finish::Stop);
    assert_eq!(play.moves(), "");
    play.signal(0, Signal::Ended);
    assert_eq!(play.moves(), "emit:Stop drop0:ok close:complete");
    assert_eq!(play.wakes_after(), None);
}

#[test]
fn a_failure_before_the_first_word_is_invisible() {
    let mut play = setup(&["a", "b"]).begin();
    play.sent(0).fail(0, Kind::Reset);
    assert_eq!(play.moves(), "open0:a drop0:failed open1:b");
    assert_eq!(play.opens[1].carry.origin, Origin::Fresh);
    play.sent(1).text(1, "Hi.").finish(1, Finish::Stop).signal(1, Signal::Ended);
    assert_eq!(play.moves(), "emit:\"Hi.\" emit:Stop drop1:ok close:complete");
    assert_eq!(play.journal().splices, 0);
}

#[test]
fn a_death_in_mid_turn_is_continued_from_what_was_told() {
    let mut setup = setup(&["a", "b"]);
    setup.candidates[1].how = How::Prefill;
    let mut play = setup.begin();
    play.sent(0).text(0, "One, ").text(0, "two").fail(0, Kind::Reset);
    assert_eq!(play.moves(), "open0:a emit:\"One, \" emit:\"two\" drop0:failed open1:b");
    let Origin::Continue(on) = &play.opens[1].carry.origin else { panic!("{:?}", play.opens[1].carry) };
    assert_eq!((&*on.delivered, on.how), ("One, two", How::Prefill));
    play.sent(1).text(1, ", three.").finish(1, Finish::Stop).signal(1, Signal::Ended);
    assert_eq!(play.moves(), "splice1 emit:\", three.\" emit:Stop drop1:ok close:complete");
}

#[test]
fn a_target_that_only_restarts_is_asked_before_the_first_visible_word_and_never_after() {
    let only_restarts = |retries: u32| {
        let mut setup = setup(&["a", "b"]);
        setup.level.retries = retries;
        for candidate in &mut setup.candidates {
            Arc::make_mut(&mut candidate.target).continuation = Continuation::Restart;
        }
        setup.begin()
    };
    let mut play = only_restarts(0);
    play.sent(0).text(0, "\n ").fail(0, Kind::Reset);
    assert_eq!(play.moves(), "open0:a emit:\"\\n \" drop0:failed open1:b");
    assert_eq!(play.opens[1].carry.origin, Origin::Fresh);
    // Not even the same one once more, and the error is told.
    let mut play = only_restarts(1);
    play.sent(0).text(0, "One, ").fail(0, Kind::Reset);
    assert_eq!(play.moves(), "open0:a emit:\"One, \" drop0:failed close:Exhausted(Reset)");
}

#[test]
fn one_that_restarts_is_passed_over_for_one_that_goes_on() {
    let mut setup = setup(&["a", "b", "c"]);
    Arc::make_mut(&mut setup.candidates[1].target).continuation = Continuation::Restart;
    let mut play = setup.begin();
    play.sent(0).text(0, "One, ").fail(0, Kind::Reset);
    assert_eq!(play.moves(), "open0:a emit:\"One, \" drop0:failed open1:c");
}

#[test]
fn a_role_or_a_ping_is_no_first_token() {
    let mut play = setup(&["a", "b"]).begin();
    play.sent(0).signal(0, Signal::Opened).say(0, Event::Alive).moves();
    assert_eq!(play.wakes_after(), Some(secs(8)));
    play.pass(secs(8));
    assert_eq!(play.moves(), "drop0:failed open1:b");
    assert_eq!(play.journal().attempts[0].end, Some(End::Failed(Kind::FirstTokenTimeout)));
}

#[test]
fn pings_do_not_feed_the_stall_clock_and_tool_arguments_do() {
    let mut play = setup(&["a", "b"]).begin();
    play.sent(0).text(0, "Hi").moves();
    for _ in 0..4 {
        play.pass(secs(1)).say(0, Event::Alive);
        assert_eq!(play.moves(), "");
    }
    play.pass(secs(1));
    assert_eq!(play.moves(), "", "a word that is due just now may be late by the tick of a timer");
    play.pass(ms(50));
    assert_eq!(play.moves(), "drop0:failed open1:b");
    assert_eq!(play.journal().attempts[0].end, Some(End::Failed(Kind::Stalled)));

    let mut play = setup(&["a", "b"]).begin();
    play.sent(0).say(0, Event::ToolOpen { choice: 0, call: 0, id: "c".into(), name: "f".into() }).moves();
    for _ in 0..10 {
        play.pass(secs(4)).say(0, Event::ToolArgs { choice: 0, call: 0, args: "x".into() });
        assert_eq!(play.moves(), "");
    }
}

#[test]
fn no_byte_at_all_is_idle_even_where_the_stall_limit_is_long() {
    let mut setup = setup(&["a", "b"]);
    setup.candidates[0].timeouts.stall = secs(60);
    setup.candidates[0].timeouts.idle = secs(10);
    let mut play = setup.begin();
    play.sent(0).text(0, "Hi").pass(secs(9)).say(0, Event::Alive).pass(secs(9)).moves();
    play.pass(secs(1));
    assert_eq!(play.moves(), "drop0:failed open1:b");
}

#[test]
fn thinking_has_its_own_clock() {
    let mut play = setup(&["a", "b"]).begin();
    play.sent(0).say(0, Event::Thinking(true)).moves();
    play.pass(secs(100)).say(0, Event::Alive).pass(secs(19));
    assert_eq!(play.moves(), "");
    play.pass(secs(1));
    assert_eq!(play.moves(), "drop0:failed open1:b");
}

#[test]
fn while_the_client_takes_nothing_no_silence_counts() {
    let mut play = setup(&["a", "b"]).begin();
    play.sent(0).text(0, "Hi").pass(secs(2)).moves();
    play.relay.handle_blocked(play.now);
    play.pass(secs(60));
    play.relay.handle_unblocked(play.now);
    play.pass(ms(3049));
    assert_eq!(play.moves(), "");
    play.pass(ms(1));
    assert_eq!(play.moves(), "drop0:failed open1:b");
}

#[test]
fn what_comes_after_every_choice_finished_changes_nothing() {
    for kind in [Kind::Reset, Kind::Malformed, Kind::ServerError] {
        let mut play = setup(&["a", "b"]).begin();
        play.sent(0).text(0, "Hi").finish(0, Finish::Stop).moves();
        play.fail(0, kind);
        assert_eq!(play.moves(), "emit:Stop drop0:ok close:complete");
    }
    let mut play = setup(&["a", "b"]).begin();
    play.sent(0).text(0, "Hi").finish(0, Finish::Stop).moves();
    play.pass(secs(1));
    assert_eq!(play.moves(), "emit:Stop drop0:ok close:complete");
}

#[test]
fn a_finish_that_something_follows_is_none_and_the_last_one_holds() {
    let mut play = setup(&["a", "b"]).begin();
    play.sent(0).text(0, "One").finish(0, Finish::Stop).pass(ms(900));
    play.text(0, " two").finish(0, Finish::Stop).pass(ms(900)).finish(0, Finish::Length);
    assert_eq!(play.moves(), "open0:a emit:\"One\" emit:\" two\"");
    play.signal(0, Signal::Ended);
    assert_eq!(play.moves(), "emit:Length drop0:ok close:complete");

    // A death after what followed is a death in mid-turn.
    let mut play = setup(&["a", "b"]).begin();
    play.sent(0).text(0, "One").finish(0, Finish::Stop).text(0, " two").fail(0, Kind::Reset);
    assert_eq!(play.moves(), "open0:a emit:\"One\" emit:\" two\" drop0:failed open1:b");
}

#[test]
fn when_all_are_dead_the_first_real_cause_is_told() {
    let mut play = setup(&["a", "b", "c"]).begin();
    play.sent(0)
        .fail(0, Kind::Overloaded)
        .sent(1)
        .text(1, "x")
        .fail(1, Kind::Reset)
        .declined(2, Declined::CircuitOpen { until: None });
    assert_eq!(
        play.moves(),
        "open0:a drop0:failed open1:b emit:\"x\" drop1:failed open2:c drop2:failed close:Exhausted(Overloaded)"
    );
}

#[test]
fn a_continuation_that_is_refused_goes_to_the_next_and_the_first_cause_stays() {
    let mut play = setup(&["a", "b", "c"]).begin();
    play.sent(0)
        .text(0, "One")
        .fail(0, Kind::Reset)
        .sent(1)
        .fail(1, Kind::BadRequest)
        .sent(2)
        .fail(2, Kind::BadRequest);
    assert!(play.moves().ends_with("drop1:failed open2:c drop2:failed close:Exhausted(Reset)"));
}

#[test]
fn a_refused_prefill_is_asked_again_as_an_instruction_at_once() {
    let mut setup = setup(&["a", "b"]);
    setup.candidates[1].how = How::Prefill;
    let mut play = setup.begin();
    play.sent(0).text(0, "One").fail(0, Kind::Reset).sent(1).moves();
    let mut refusal = Failure::new(Kind::BadRequest, Stage::Refused);
    refusal.remedy = Some(Remedy::Instruct);
    play.signal(1, Signal::Failed(Box::new(refusal)));
    assert_eq!(play.moves(), "drop1:failed open2:b");
    let Origin::Continue(on) = &play.opens[2].carry.origin else { panic!("not continued") };
    assert_eq!(on.how, How::Instruct);
}

#[test]
fn a_server_error_is_tried_once_more_after_a_short_pause_if_a_retry_is_left() {
    let mut setup = setup(&["a", "b"]);
    setup.level.retries = 1;
    let mut play = setup.begin();
    play.sent(0).fail(0, Kind::ServerError);
    assert_eq!(play.moves(), "open0:a drop0:failed pay1");
    let wake = play.wakes_after().expect("it waits");
    assert!(wake >= ms(125) && wake <= ms(375), "{wake:?}");
    play.pass(ms(375));
    assert_eq!(play.moves(), "open1:a");
    play.sent(1).fail(1, Kind::ServerError);
    assert_eq!(play.moves(), "drop1:failed open2:b");
    let counted = play.journal().attempts.iter().filter(|a| a.end == Some(End::Failed(Kind::ServerError))).count();
    assert_eq!(counted, 2);
}

#[test]
fn the_last_target_is_asked_once_more_for_the_rest() {
    let mut setup = setup(&["a"]);
    setup.level.retries = 1;
    let mut play = setup.begin();
    play.sent(0).text(0, "One").fail(0, Kind::Reset);
    assert_eq!(play.moves(), "open0:a emit:\"One\" drop0:failed open1:a");
    play.sent(1).text(1, "One two").fail(1, Kind::Reset);
    assert!(play.moves().ends_with("drop1:failed close:Exhausted(Reset)"));
}

fn limited(wait: Option<Duration>) -> Signal {
    let mut failure = Failure::new(Kind::RateLimited, Stage::Refused);
    failure.retry_at = wait.map(RetryAt::In);
    Signal::Failed(Box::new(failure))
}

#[test]
fn a_rate_limit_is_waited_for_if_its_time_fits_and_a_retry_is_left() {
    let mut setup = setup(&["a", "b"]);
    setup.level.retries = 1;
    let mut play = setup.begin();
    play.sent(0).signal(0, limited(Some(secs(2))));
    assert_eq!(play.moves(), "open0:a drop0:failed");
    assert_eq!(play.wakes_after(), Some(secs(2)));
    play.pass(secs(2));
    assert_eq!(play.moves(), "open1:a");
}

#[test]
fn a_rate_limit_that_is_too_long_or_has_no_time_is_switched_from() {
    for wait in [Some(secs(9)), None] {
        let mut setup = setup(&["a", "b"]);
        setup.level.retries = 1;
        let mut play = setup.begin();
        play.sent(0).signal(0, limited(wait));
        assert_eq!(play.moves(), "open0:a drop0:failed open1:b");
    }
    let mut setup = setup(&["a", "b"]);
    setup.level.retries = 1;
    setup.level.rate_limited = RateLimited::Switch;
    let mut play = setup.begin();
    play.sent(0).signal(0, limited(Some(secs(1))));
    assert_eq!(play.moves(), "open0:a drop0:failed open1:b");
}

#[test]
fn a_rate_limit_over_the_cap_is_never_waited_for() {
    let mut setup = setup(&["a"]);
    setup.level.retries = 2;
    setup.level.rate_limited = RateLimited::Wait;
    let mut play = setup.begin();
    play.sent(0).signal(0, limited(Some(secs(86_400))));
    assert_eq!(play.moves(), "open0:a drop0:failed close:Exhausted(RateLimited)");
}

/// What the fleet answers while the target rests.
impl Play {
    fn rests(&mut self, id: u32, wait: Duration) -> &mut Self {
        let until = self.now + wait;
        self.declined(id, Declined::Resting { until, renewed: false })
    }
}

#[test]
fn to_wait_for_a_rest_that_others_caused_costs_no_retry_but_time() {
    let mut setup = setup(&["a"]);
    setup.level.retries = 1;
    let mut play = setup.begin();
    for id in 0..3 {
        play.rests(id, secs(2));
        assert_eq!(play.moves(), format!("open{id}:a drop{id}:failed"));
        play.pass(secs(2));
    }
    // Its own request is refused now: the one retry is for that.
    play.sent(3).signal(3, limited(Some(secs(1)))).moves();
    play.pass(secs(1)).rests(4, secs(1));
    assert_eq!(play.moves(), "open4:a drop4:failed", "nothing was sent, so the retry is still there");
    play.pass(secs(1)).sent(5).signal(5, limited(Some(secs(1))));
    assert_eq!(play.moves(), "open5:a drop5:failed close:Exhausted(RateLimited)", "two requests, and no third");
}

#[test]
fn rests_are_waited_for_no_longer_than_for_a_first_token() {
    let mut setup = setup(&["a", "b"]);
    setup.level.retries = 1;
    let mut play = setup.begin();
    play.rests(0, secs(5)).pass(secs(5));
    assert_eq!(play.moves(), "open0:a drop0:failed open1:a");
    play.rests(1, secs(4));
    assert_eq!(play.moves(), "drop1:failed open2:b", "nine seconds of eight");
}

#[test]
fn white_space_alone_is_answered_from_the_start_and_not_told_twice() {
    let mut play = setup(&["a", "b"]).begin();
    play.sent(0).text(0, "\n\n").fail(0, Kind::Reset).moves();
    assert_eq!(play.opens[1].carry.origin, Origin::Fresh);
    play.sent(1).text(1, "\n\nHello");
    assert_eq!(play.moves(), "splice1 emit:\"Hello\"");
}

#[test]
fn reasoning_is_told_once_and_that_of_a_later_attempt_not_at_all() {
    let think = |text: &str| Event::Reasoning { choice: 0, text: text.into() };
    let mut play = setup(&["a", "b"]).begin();
    play.sent(0).say(0, think("hm")).fail(0, Kind::Reset);
    assert_eq!(play.moves(), "open0:a emit:think\"hm\" drop0:failed open1:b");
    assert_eq!(play.opens[1].carry.origin, Origin::Fresh);
    play.sent(1).say(1, think("well")).text(1, "Hi");
    assert_eq!(play.moves(), "splice1 emit:\"Hi\"");
}

#[test]
fn several_choices_are_not_continued_after_text() {
    let mut setup = setup(&["a", "b"]);
    setup.policy.choices = 2;
    setup.policy.continuable = false;
    let mut play = setup.begin();
    play.sent(0).text(0, "x").fail(0, Kind::Reset);
    assert!(play.moves().ends_with("drop0:failed close:NotContinuable(Reset)"));
}

#[test]
fn the_clients_limit_holds_over_all_legs() {
    let mut setup = setup(&["a", "b"]);
    setup.policy.max_tokens = Some(4);
    setup.candidates[1].how = How::Prefill;
    let mut play = setup.begin();
    play.sent(0).text(0, "12345678").fail(0, Kind::Reset).sent(1).text(1, "abcdefgh").text(1, "more");
    assert_eq!(
        play.moves(),
        "open0:a emit:\"12345678\" drop0:failed open1:b splice1 emit:\"abcdefgh\" emit:Length drop1:ok close:complete"
    );
    let mut setup = super::setup(&["a", "b"]);
    setup.policy.max_tokens = Some(2);
    let mut play = setup.begin();
    play.sent(0).text(0, "12345678").fail(0, Kind::Reset);
    assert_eq!(play.moves(), "open0:a emit:\"12345678\" drop0:failed emit:Length close:complete");
}

#[test]
fn the_deadline_ends_the_turn_and_blames_only_who_was_silent() {
    let mut setup = setup(&["a"]);
    setup.policy.deadline = secs(6);
    let mut play = setup.begin();
    play.sent(0).text(0, "x").pass(secs(2)).moves();
    play.pass(secs(4));
    assert_eq!(play.moves(), "drop0:failed close:Deadline(Stalled)");
    let mut setup = super::setup(&["a"]);
    setup.policy.deadline = secs(6);
    let mut play = setup.begin();
    play.sent(0).text(0, "x").pass(secs(4)).text(0, "y").moves();
    play.pass(secs(2));
    assert_eq!(play.moves(), "drop0:cancelled close:Deadline(nothing)");
}

#[test]
fn a_client_that_leaves_cancels_everything_and_hears_nothing() {
    let mut play = setup(&["a", "b"]).begin();
    play.sent(0).text(0, "x").moves();
    play.relay.handle_hangup(Why::ClientGone, play.now);
    assert_eq!(play.moves(), "drop0:cancelled close:interrupted");
    play.text(0, "y");
    assert_eq!(play.moves(), "");
}

#[test]
fn a_turn_over_the_limit_ends_with_an_error() {
    let mut setup = setup(&["a", "b"]);
    setup.policy.max_turn = 4;
    let mut play = setup.begin();
    play.sent(0).text(0, "1234").text(0, "5");
    assert_eq!(play.moves(), "open0:a emit:\"1234\" drop0:cancelled close:TooLong(nothing)");
}

#[test]
fn usage_is_that_of_one_turn() {
    let usage = |prompt, completion| {
        Event::Usage(Box::new(Usage { prompt: Some(prompt), completion: Some(completion), ..Usage::default() }))
    };
    let mut setup = setup(&["a", "b"]);
    setup.candidates[1].how = How::Prefill;
    let mut play = setup.begin();
    play.sent(0).text(0, "one two").fail(0, Kind::Reset);
    play.sent(1).text(1, " three.").finish(1, Finish::Stop).say(1, usage(12, 2)).signal(1, Signal::Ended);
    play.moves();
    let Some(Outcome::Complete(total)) = &play.journal().outcome else { panic!("not complete") };
    assert_eq!((total.prompt, total.completion), (Some(10), Some(4)));
}

#[test]
fn without_a_budget_for_retries_the_next_target_is_asked_at_once() {
    let mut setup = setup(&["a", "b"]);
    setup.level.retries = 1;
    let mut play = setup.begin();
    play.sent(0).fail(0, Kind::ServerError);
    assert_eq!(play.moves(), "open0:a drop0:failed pay1");
    play.declined(1, Declined::Budget);
    assert_eq!(play.moves(), "open1:b", "and not after the pause");
}

#[test]
fn a_provider_that_forbids_to_ask_again_is_not_asked_again() {
    for kind in [Kind::ServerError, Kind::RateLimited] {
        let mut play = setup(&["a", "b"]).begin();
        let mut failure = Failure::new(kind, Stage::Refused);
        failure.no_retry = true;
        failure.retry_at = Some(RetryAt::In(ms(10)));
        play.sent(0).signal(0, Signal::Failed(Box::new(failure)));
        assert_eq!(play.moves(), "open0:a drop0:failed open1:b", "{kind:?}");
    }
}

#[test]
fn no_words_of_a_provider_can_be_taken_for_an_answer_of_ours() {
    let words = ["budget", "resting", "retry_budget", "queue", "circuit_open", "key_refused", "unfit"];
    for (kind, word) in Kind::ALL.into_iter().flat_map(|kind| words.map(|word| (kind, word))) {
        let mut failure = Failure::new(kind, Stage::Refused);
        word.clone_into(&mut failure.said.code);
        word.clone_into(&mut failure.said.r#type);
        failure.retry_at = Some(RetryAt::In(secs(2)));
        let told = Signal::Failed(Box::new(failure));
        // Alone, with a retry left or none, and while a hedge is open: the turn ends or somebody is asked.
        for retries in 0..2 {
            let mut setup = setup(&["a"]);
            setup.level.retries = retries;
            let mut play = setup.begin();
            play.sent(0).signal(0, told.clone());
            play.pass(secs(3));
            let moves = play.moves();
            assert!(moves.contains("close:") || moves.contains("open1:a"), "{kind:?} {word}: {moves}");
        }
    }
}
