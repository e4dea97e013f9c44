//! Who is asked next, and what the client is told: the table of failures, row by row, and what holds for all of them.

use super::*;
use crate::failure::{RetryAt, Verdict};
use crate::relay::Ending;
use crate::routing::{Delivery, Empty, RateLimited};

/// What the relay does about a failure: asks the `next` target, the same one `again` (after a pause that is paid for), or
/// `waits` for it; `told`: ends as the request's fault; `over`: ends as somebody else's.
fn decided(moves: &str, before: &str) -> String {
    let moves = moves.strip_prefix(before).unwrap_or_else(|| panic!("{moves} does not begin with {before}")).trim();
    match moves {
        "" => "waits".to_owned(),
        _ if moves.starts_with("pay") => "again".to_owned(),
        _ if moves.starts_with("close:Told") => "told".to_owned(),
        _ if moves.starts_with("close:") => "over".to_owned(),
        _ if moves.ends_with(":a") && before.contains("open0:a") && !before.contains("open1") => "same".to_owned(),
        _ => "next".to_owned(),
    }
}

fn retrying(names: &[&str]) -> Setup {
    let mut setup = setup(names);
    setup.level.retries = 1;
    setup
}

#[test]
fn every_kind_of_failure_has_its_row() {
    use Kind::*;
    // Of the first target, of a fallback, in mid-turn; alone before the first word, and alone in mid-turn.
    let rows = [
        ("next next next again same", &[Connect, Dns, Tls, Reset, Truncated, Malformed, Framing][..]),
        ("next next next over over", &[FirstTokenTimeout, EmptyTurn, SeamRejected, Unavailable, Cancelled]),
        ("next next next over same", &[Stalled]),
        ("again again next again waits", &[ServerError]),
        ("next next next again waits", &[Overloaded, RateLimited]),
        ("next next next over over", &[QuotaExhausted, Auth, NotForUs]),
        ("next next next told told", &[ContextTooLong, Repairable, BadRequest]),
        ("told over told told told", &[ContentFiltered]),
    ];
    let mut seen = 0;
    for (expected, kinds) in rows {
        for kind in kinds {
            seen += 1;
            let mut play = retrying(&["a", "b", "c"]).begin();
            play.sent(0).fail(0, *kind);
            let first = decided(&play.moves(), "open0:a drop0:failed");
            let mut play = retrying(&["a", "b", "c"]).begin();
            play.sent(0).fail(0, Overloaded).sent(1).fail(1, *kind);
            let fallback = decided(&play.moves(), "open0:a drop0:failed open1:b drop1:failed");
            let mut play = retrying(&["a", "b", "c"]).begin();
            play.sent(0).text(0, "One").fail(0, *kind);
            let middle = decided(&play.moves(), "open0:a emit:\"One\" drop0:failed");
            let mut play = retrying(&["a"]).begin();
            play.sent(0).fail(0, *kind);
            let alone = decided(&play.moves(), "open0:a drop0:failed");
            let mut play = retrying(&["a"]).begin();
            play.sent(0).text(0, "One").fail(0, *kind);
            let rest = decided(&play.moves(), "open0:a emit:\"One\" drop0:failed");
            assert_eq!(format!("{first} {fallback} {middle} {alone} {rest}"), expected, "{kind:?}");
        }
    }
    assert_eq!(seen, Kind::ALL.len(), "each kind has a row");
}

/// Everything that a provider's refusal may say beside its kind.
fn refusals() -> Vec<Failure> {
    let times = [None, Some(Duration::ZERO), Some(secs(1)), Some(secs(30)), Some(secs(86_400))];
    let mut all = Vec::new();
    for kind in Kind::ALL {
        for (wait, no_retry) in times.into_iter().flat_map(|time| [(time, false), (time, true)]) {
            let mut failure = Failure::new(kind, Stage::Refused);
            failure.retry_at = wait.map(RetryAt::In);
            failure.no_retry = no_retry;
            all.push(failure);
        }
    }
    all
}

/// Plays a turn in which each target answers as `answers` says (`None`: well) until it is over.
fn play_out(mut setup: Setup, answers: &[Option<Failure>]) -> Play {
    setup.policy.deadline = secs(200);
    let mut play = setup.begin();
    let mut answered = 0;
    for _ in 0..100 {
        play.moves();
        let Some(open) = play.opens.get(answered).cloned() else {
            match play.wakes_after() {
                Some(at) => play.pass((play.start + at).saturating_duration_since(play.now)),
                None => return play,
            };
            continue;
        };
        answered += 1;
        play.sent(open.id.0);
        match &answers[open.seat] {
            Some(failure) => play.signal(open.id.0, Signal::Failed(Box::new(failure.clone()))),
            None => play.text(open.id.0, "Hi").finish(open.id.0, Finish::Stop).signal(open.id.0, Signal::Ended),
        };
    }
    panic!("the turn does not end");
}

#[test]
fn a_healthy_second_target_serves_whatever_the_first_one_refuses_unless_a_policy_does() {
    for refusal in refusals() {
        for (retries, limited) in
            [(0, RateLimited::Auto), (2, RateLimited::Auto), (2, RateLimited::Switch), (1, RateLimited::Wait)]
        {
            let mut setup = setup(&["a", "b"]);
            (setup.level.retries, setup.level.rate_limited) = (retries, limited);
            let play = play_out(setup, &[Some(refusal.clone()), None]);
            let complete = matches!(play.journal().outcome, Some(Outcome::Complete(_)));
            assert_eq!(complete, refusal.kind != Kind::ContentFiltered, "{refusal:?}, {retries} retries, {limited:?}");
            if limited != RateLimited::Wait {
                let took = play.now.saturating_duration_since(play.start);
                assert!(took <= secs(8), "{took:?} while a healthy target stood idle: {refusal:?}");
            }
        }
    }
}

#[test]
fn whatever_later_targets_say_the_first_real_cause_is_told_and_no_turn_hangs() {
    let real = |f: &&Failure| !matches!(f.kind, Kind::Unavailable | Kind::SeamRejected | Kind::Cancelled);
    for first in refusals().iter().filter(real) {
        for second in refusals().iter().step_by(3) {
            let third = Failure::new(Kind::BadRequest, Stage::Refused);
            let play = play_out(retrying(&["a", "b", "c"]), &[Some(first.clone()), Some(second.clone()), Some(third)]);
            let Some(Outcome::Failed(fault)) = &play.journal().outcome else { panic!("{first:?} {second:?}") };
            assert_eq!(fault.cause.as_ref(), Some(first), "then {second:?}");
            assert_ne!(fault.ending, Ending::Deadline, "{first:?}, then {second:?}");
        }
    }
}

#[test]
fn a_second_opinion_is_asked_of_another_vendor() {
    let mut setup = setup(&["a", "b", "c"]);
    for (candidate, vendor) in setup.candidates.iter_mut().zip(["x", "x", "y"]) {
        Arc::make_mut(&mut candidate.target).issuer = vendor.into();
    }
    let mut play = setup.begin();
    play.sent(0).fail(0, Kind::BadRequest);
    assert_eq!(play.moves(), "open0:a drop0:failed open1:c");
    play.sent(1).fail(1, Kind::BadRequest);
    assert_eq!(play.moves(), "drop1:failed close:Told(BadRequest)", "two agree, and a third is not asked");
    assert!(
        play.journal()
            .attempts
            .iter()
            .all(|a| matches!(a.end, Some(End::Failed(kind)) if kind.verdict() == Verdict::Abandon))
    );
}

#[test]
fn one_that_dies_gives_no_opinion() {
    let mut play = setup(&["a", "b", "c"]).begin();
    play.sent(0).fail(0, Kind::BadRequest).sent(1).fail(1, Kind::Reset).sent(2).text(2, "Hi");
    assert_eq!(play.moves(), "open0:a drop0:failed open1:b drop1:failed open2:c emit:\"Hi\"");
}

#[test]
fn a_turn_waits_for_one_rest_while_somebody_else_is_idle() {
    let limited = |wait| {
        let mut failure = Failure::new(Kind::RateLimited, Stage::Refused);
        failure.retry_at = Some(RetryAt::In(wait));
        Signal::Failed(Box::new(failure))
    };
    let mut setup = setup(&["a", "b"]);
    setup.level.retries = 5;
    let mut play = setup.begin();
    play.sent(0).signal(0, limited(secs(1))).pass(secs(1)).sent(1).signal(1, limited(secs(1)));
    assert_eq!(play.moves(), "open0:a drop0:failed open1:a drop1:failed open2:b", "the second is not waited for");
    // Alone, and as the retries allow, it is.
    let mut setup = super::setup(&["a"]);
    setup.level.retries = 2;
    let mut play = setup.begin();
    for id in 0..2 {
        play.sent(id).signal(id, limited(secs(20))).pass(secs(20));
    }
    assert_eq!(play.moves(), "open0:a drop0:failed open1:a drop1:failed open2:a");
    play.sent(2).pass(secs(7)).text(2, "Hi");
    assert_eq!(play.moves(), "emit:\"Hi\"", "its first token has its whole time after the wait");
}

#[test]
fn a_rest_that_was_renewed_is_not_waited_for_by_a_new_turn() {
    for (renewed, moves) in [(false, "open0:a drop0:failed"), (true, "open0:a drop0:failed open1:b")] {
        let mut play = retrying(&["a", "b"]).begin();
        let until = play.now + secs(1);
        play.declined(0, Declined::Resting { until, renewed });
        assert_eq!(play.moves(), moves);
    }
}

#[test]
fn the_time_for_a_rest_runs_from_the_first_request_of_the_turn() {
    let mut play = retrying(&["a", "b", "c"]).begin();
    play.sent(0).pass(secs(6)).fail(0, Kind::Reset).sent(1);
    let mut failure = Failure::new(Kind::RateLimited, Stage::Refused);
    failure.retry_at = Some(RetryAt::In(secs(3)));
    play.signal(1, Signal::Failed(Box::new(failure)));
    assert_eq!(play.moves(), "open0:a drop0:failed open1:b drop1:failed open2:c", "nine seconds of eight");
}

#[test]
fn in_mid_turn_the_one_that_heals_first_is_waited_for_when_nobody_else_is_left() {
    let told = |kind, wait| {
        let mut failure = Failure::new(kind, Stage::Refused);
        failure.retry_at = Some(RetryAt::In(wait));
        Signal::Failed(Box::new(failure))
    };
    let mut play = retrying(&["a", "b", "c"]).begin();
    play.sent(0).text(0, "One").fail(0, Kind::Reset);
    play.sent(1).signal(1, told(Kind::Overloaded, secs(2))).sent(2).signal(2, told(Kind::RateLimited, secs(5)));
    assert_eq!(play.moves(), "open0:a emit:\"One\" drop0:failed open1:b drop1:failed open2:c drop2:failed");
    play.pass(secs(2));
    assert_eq!(play.moves(), "open3:b");
    assert!(matches!(play.opens[3].carry.origin, Origin::Continue(_)));
    play.sent(3).fail(3, Kind::Auth);
    assert_eq!(play.moves(), "drop3:failed close:Exhausted(Reset)", "the retry is spent");
}

#[test]
fn a_wait_that_nobody_pays_for_is_none() {
    let mut play = retrying(&["a"]).begin();
    play.sent(0).fail(0, Kind::Overloaded);
    assert_eq!(play.moves(), "open0:a drop0:failed pay1");
    play.declined(1, Declined::Budget);
    assert_eq!(play.moves(), "close:Exhausted(Overloaded)");
}

#[test]
fn a_challenger_that_is_declined_after_the_leader_died_leaves_no_turn_behind() {
    let mut setup = setup(&["a", "b"]);
    setup.candidates[0].hedge_after = Some(ms(20));
    let mut play = setup.begin();
    play.sent(0).pass(ms(20)).fail(0, Kind::Reset).declined(1, Declined::Budget);
    assert_eq!(play.moves(), "open0:a open1:b drop0:failed drop1:failed open2:b");
}

#[test]
fn an_answer_of_nothing_goes_to_the_next_target_where_that_is_wanted() {
    let think = |text: &str| Event::Reasoning { choice: 0, text: text.into() };
    let next = || {
        let mut setup = setup(&["a", "b"]);
        setup.level.empty = Empty::Next;
        setup.begin()
    };
    let mut play = next();
    play.sent(0).finish(0, Finish::Stop);
    assert_eq!(play.moves(), "open0:a drop0:failed open1:b");
    play.sent(1).finish(1, Finish::Stop).signal(1, Signal::Ended);
    assert_eq!(play.moves(), "emit:Stop drop1:ok close:complete", "nobody is left");

    let mut play = next();
    play.sent(0).say(0, think("hm")).finish(0, Finish::Length);
    assert_eq!(play.moves(), "open0:a emit:think\"hm\" drop0:failed open1:b");
    assert_eq!(play.opens[1].carry.origin, Origin::Fresh);
    play.sent(1).say(1, think("well")).text(1, "Hi").finish(1, Finish::Stop).signal(1, Signal::Ended);
    assert_eq!(play.moves(), "splice1 emit:\"Hi\" emit:Stop drop1:ok close:complete");

    // What was withheld, a call, a word: none of these is nothing.
    let mut play = next();
    play.sent(0).finish(0, Finish::ContentFilter).signal(0, Signal::Ended);
    assert_eq!(play.moves(), "open0:a emit:ContentFilter drop0:ok close:complete");
    let mut play = next();
    play.sent(0).say(0, Event::ToolOpen { choice: 0, call: 0, id: "c".into(), name: "f".into() });
    play.say(0, Event::ToolClose { choice: 0, call: 0 }).finish(0, Finish::ToolCalls);
    play.signal(0, Signal::Ended);
    assert!(play.moves().ends_with("ToolCalls drop0:ok close:complete"));

    let mut play = setup(&["a", "b"]).begin();
    play.sent(0).finish(0, Finish::Stop).signal(0, Signal::Ended);
    assert_eq!(play.moves(), "open0:a emit:Stop drop0:ok close:complete", "by default it is told");
}

#[test]
fn the_last_targets_object_is_told_as_it_comes_and_checked_at_its_end() {
    let lone = |delivery| {
        let mut setup = setup(&["a"]);
        setup.level.structured = delivery;
        setup.policy.structured = true;
        setup.begin()
    };
    let mut play = lone(Delivery::Hold);
    play.sent(0).text(0, "{").text(0, "}").finish(0, Finish::Stop).signal(0, Signal::Ended);
    assert_eq!(play.moves(), "open0:a emit:\"{\" emit:\"}\" check0");
    assert_eq!(play.checked(0, Checked::Fits).moves(), "emit:Stop drop0:ok close:complete");
    let mut play = lone(Delivery::Hold);
    play.sent(0).text(0, "{").finish(0, Finish::Stop);
    assert_eq!(play.moves(), "open0:a emit:\"{\" check0");
    assert_eq!(play.checked(0, Checked::Differs).moves(), "drop0:failed close:Exhausted(Malformed)");
    let mut play = lone(Delivery::Stream);
    play.sent(0).text(0, "{").finish(0, Finish::Stop).signal(0, Signal::Ended);
    assert_eq!(play.moves(), "open0:a emit:\"{\" emit:Stop drop0:ok close:complete", "as it is");
}
