//! Hedges, suspicion, pace, and who wins.

use super::*;
use crate::routing::Pace;

fn hedged(after: Duration) -> Play {
    let mut setup = setup(&["a", "b", "c"]);
    setup.candidates[0].hedge_after = Some(after);
    setup.begin()
}

#[test]
fn a_hedge_starts_after_the_send_and_the_first_progress_wins() {
    let mut play = hedged(ms(100));
    play.pass(secs(3));
    assert_eq!(play.moves(), "open0:a");
    play.sent(0).pass(ms(100));
    assert_eq!(play.moves(), "open1:b");
    play.sent(1).say(1, Event::Alive).text(1, "fast");
    assert_eq!(play.moves(), "drop0:superseded emit:\"fast\"");
    play.text(0, "slow");
    assert_eq!(play.moves(), "");
}

#[test]
fn an_answer_in_time_is_not_hedged_and_there_is_one_hedge_a_turn() {
    let mut play = hedged(ms(100));
    play.sent(0).pass(ms(99)).text(0, "x").pass(secs(1));
    assert_eq!(play.moves(), "open0:a emit:\"x\"");
    let mut play = hedged(ms(100));
    play.sent(0).pass(ms(100)).sent(1).moves();
    play.pass(secs(2));
    assert_eq!(play.moves(), "");
}

#[test]
fn a_failure_never_wins_while_another_attempt_is_open() {
    let mut play = hedged(ms(20));
    play.sent(0).pass(ms(20)).sent(1).moves();
    play.fail(0, Kind::ServerError);
    assert_eq!(play.moves(), "drop0:failed open2:c");
    play.sent(2).text(1, "Hi");
    assert_eq!(play.moves(), "drop2:superseded emit:\"Hi\"");
}

#[test]
fn a_bad_request_waits_for_the_other_and_is_told_if_that_fails_too() {
    let mut play = hedged(ms(20));
    play.sent(0).pass(ms(20)).sent(1).moves();
    play.fail(0, Kind::BadRequest);
    assert_eq!(play.moves(), "drop0:failed");
    play.fail(1, Kind::BadRequest);
    assert_eq!(play.moves(), "drop1:failed close:Told(BadRequest)");
}

#[test]
fn an_empty_finish_wins_only_when_nobody_else_is_open() {
    let mut play = hedged(ms(20));
    play.sent(0).pass(ms(20)).sent(1).moves();
    play.finish(0, Finish::Stop).signal(0, Signal::Ended);
    assert_eq!(play.moves(), "");
    play.text(1, "Hi");
    assert_eq!(play.moves(), "drop0:superseded emit:\"Hi\"");

    let mut play = hedged(ms(20));
    play.sent(0).pass(ms(20)).sent(1).moves();
    play.finish(0, Finish::Stop).signal(0, Signal::Ended).fail(1, Kind::Reset);
    assert_eq!(play.moves(), "drop1:failed emit:Stop drop0:ok close:complete");
}

#[test]
fn without_budget_the_first_attempt_goes_on_alone() {
    let mut play = hedged(ms(20));
    play.sent(0).pass(ms(20)).moves();
    play.declined(1, Declined::Budget);
    assert_eq!(play.moves(), "drop1:failed");
    play.pass(secs(1)).text(0, "x");
    assert_eq!(play.moves(), "emit:\"x\"");
}

fn suspicious() -> Play {
    let mut setup = setup(&["a", "b", "c"]);
    for candidate in &mut setup.candidates {
        candidate.timeouts.suspect = Some(ms(400));
        candidate.how = How::Prefill;
    }
    let mut play = setup.begin();
    play.sent(0).text(0, "One");
    assert_eq!(play.moves(), "open0:a emit:\"One\"");
    play
}

#[test]
fn mid_turn_silence_starts_a_challenger_and_whoever_speaks_next_leads() {
    let mut play = suspicious();
    play.pass(ms(400));
    assert_eq!(play.moves(), "open1:b");
    play.sent(1).text(1, " two");
    assert_eq!(play.moves(), "drop0:superseded splice1 emit:\" two\"");
}

#[test]
fn a_leader_that_wakes_first_wins_and_is_suspected_later_next_time() {
    let mut play = suspicious();
    play.pass(ms(400)).sent(1).moves();
    play.text(0, " two");
    assert_eq!(play.moves(), "drop1:superseded emit:\" two\"");
    play.pass(ms(799));
    assert_eq!(play.moves(), "");
    play.pass(ms(1));
    assert_eq!(play.moves(), "open2:c");
}

#[test]
fn false_alarms_leave_an_attempt_for_a_leader_that_really_fails() {
    let mut setup = setup(&["a", "b"]);
    for candidate in &mut setup.candidates {
        (candidate.timeouts.suspect, candidate.how) = (Some(ms(400)), How::Prefill);
    }
    let mut play = setup.begin();
    play.sent(0).text(0, "One").moves();
    for alarm in 0..4 {
        play.pass(ms(400 << alarm)).text(0, " more");
    }
    play.moves();
    assert_eq!(play.opens.len(), 3, "of the four that the turn has");
    play.fail(0, Kind::Reset);
    assert!(play.moves().starts_with("drop0:failed open3:b"));
}

#[test]
fn reasoning_and_held_text_of_a_challenger_win_nothing() {
    let mut play = suspicious();
    play.pass(ms(400)).sent(1).moves();
    play.say(1, Event::Reasoning { choice: 0, text: "hm".into() });
    assert_eq!(play.moves(), "");
    play.text(0, " two");
    assert_eq!(play.moves(), "drop1:superseded emit:\" two\"");
}

#[test]
fn a_challenger_that_fails_is_replaced_while_the_leader_stays_silent() {
    let mut play = suspicious();
    play.pass(ms(400)).sent(1).moves();
    play.fail(1, Kind::Reset).pass(ms(1));
    assert_eq!(play.moves(), "drop1:failed open2:c");
}

#[test]
fn gaps_that_are_normal_for_a_target_raise_no_suspicion() {
    let mut setup = setup(&["a", "b"]);
    setup.candidates[0].timeouts.suspect = Some(ms(400));
    setup.candidates[0].normal_gap = ms(900);
    let mut play = setup.begin();
    play.sent(0).text(0, "One").pass(ms(899));
    assert_eq!(play.moves(), "open0:a emit:\"One\"");
    play.pass(ms(1));
    assert_eq!(play.moves(), "open1:b");
}

#[test]
fn a_suspected_leader_that_dies_leaves_the_turn_to_its_challenger() {
    let mut play = suspicious();
    play.pass(ms(400)).sent(1).moves();
    play.fail(0, Kind::Reset);
    assert_eq!(play.moves(), "drop0:failed");
    play.text(1, " two");
    assert_eq!(play.moves(), "splice1 emit:\" two\"");
}

/// Fifteen characters a second over three seconds are wanted of every target.
fn paced() -> Play {
    let mut setup = setup(&["a", "b", "c"]);
    for candidate in &mut setup.candidates {
        candidate.timeouts.pace = Some(Pace { chars: 15.0, window: secs(3) });
        candidate.how = How::Prefill;
    }
    let mut play = setup.begin();
    play.sent(0).text(0, "word");
    play
}

#[test]
fn a_dribbling_leader_is_challenged_and_overtaken() {
    let mut play = paced();
    play.pass(secs(1)).text(0, " one").pass(secs(1)).text(0, " two");
    assert_eq!(play.moves(), "open0:a emit:\"word\" emit:\" one\" emit:\" two\"");
    play.pass(secs(1));
    assert_eq!(play.moves(), "open1:b");
    play.text(0, " held");
    assert_eq!(play.moves(), "");
    play.sent(1).text(1, " three");
    assert_eq!(play.moves(), "drop0:superseded splice1 emit:\" three\"");
    let Origin::Continue(on) = &play.opens[1].carry.origin else { panic!("not continued") };
    assert_eq!(&*on.delivered, "word one two");
}

#[test]
fn a_slow_leader_that_finishes_or_recovers_wins_with_what_was_held() {
    let mut play = paced();
    play.pass(secs(3)).text(0, " held").moves();
    play.finish(0, Finish::Stop);
    assert_eq!(play.moves(), "drop1:superseded emit:\" held\"");

    let mut play = paced();
    play.pass(secs(3)).text(0, " held").moves();
    play.text(0, " and now forty-five characters in one single go");
    assert!(play.moves().starts_with("drop1:superseded emit:\" held and now"));
}

#[test]
fn what_was_held_of_a_slow_leader_is_told_when_its_challenger_fails() {
    let mut play = paced();
    play.pass(secs(3)).text(0, " held").moves();
    play.fail(1, Kind::Reset);
    assert_eq!(play.moves(), "drop1:failed emit:\" held\"");
}

#[test]
fn a_leader_that_keeps_the_pace_is_left_alone() {
    let mut play = paced();
    for _ in 0..20 {
        play.pass(ms(500)).text(0, "123456789");
    }
    assert!(!play.moves().contains("open1"));
}

#[test]
fn a_lost_race_is_no_failure_and_the_loser_may_be_asked_again() {
    let mut setup = setup(&["a", "b"]);
    setup.candidates[0].hedge_after = Some(ms(20));
    let mut play = setup.begin();
    play.sent(0).pass(ms(20)).sent(1).text(1, "One").moves();
    play.fail(1, Kind::Reset);
    assert_eq!(play.moves(), "drop1:failed open2:a");
    assert_eq!(play.journal().attempts[0].end, Some(End::Superseded));
    assert!(matches!(play.opens[2].carry.origin, Origin::Continue(_)));
}

#[test]
fn nobody_is_challenged_where_races_are_off() {
    let mut setup = setup(&["a", "b"]);
    setup.policy.races = false;
    setup.candidates[0].hedge_after = Some(ms(20));
    let mut play = setup.begin();
    play.sent(0).pass(secs(2));
    assert_eq!(play.moves(), "open0:a");
}
