//! Circuits: when they open, who tries them, and what closes them.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use super::*;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

fn start() -> Instant {
    tokio::time::Instant::now().into_std()
}

fn breaker(policy: Policy, now: Instant) -> Breaker {
    Breaker::new(policy, 1, now)
}

/// A policy under which `n` failures in a row open it, and nothing else does.
fn consecutive(n: u32) -> Policy {
    let latency = Latency { p95: None, over_baseline: None, baseline: None };
    Policy { consecutive: n, error_rate: 1.0, latency, ..Policy::default() }
}

fn end(breaker: &mut Breaker, verdict: Verdict, now: Instant) {
    let ticket = breaker.admit(now).unwrap();
    breaker.settle(ticket, verdict, now);
}

fn fail(breaker: &mut Breaker, times: u32, now: Instant) {
    (0..times).for_each(|_| end(breaker, Verdict::Fail, now));
}

/// How long it stays open.
fn open_for(breaker: &Breaker, now: Instant) -> Duration {
    breaker.retry_at(now).unwrap() - now
}

/// Lets the cooldown pass, and a trial close it.
fn recover(breaker: &mut Breaker, now: Instant) -> Instant {
    let now = breaker.retry_at(now).unwrap();
    let trial = breaker.admit(now).unwrap();
    breaker.progress(&trial, 100 * MS, now);
    breaker.settle(trial, Verdict::Serve, now);
    assert_eq!(breaker.state(now), State::Closed);
    now
}

#[test]
fn it_opens_at_once_and_blocks() {
    let now = start();
    let mut breaker = breaker(consecutive(3), now);
    fail(&mut breaker, 2, now);
    end(&mut breaker, Verdict::Serve, now);
    fail(&mut breaker, 2, now);
    assert_eq!(breaker.state(now), State::Closed, "a success breaks the row");
    fail(&mut breaker, 1, now);
    assert_eq!(breaker.state(now), State::Open);
    assert!(breaker.admit(now + 4 * SECOND).is_none());
    let open = open_for(&breaker, now);
    assert!(5 * SECOND <= open && open <= 6 * SECOND, "{open:?}");
    assert_eq!(breaker.counts(now), Counts { served: 1, failed: 5, timed: 0, slow: 0 });
}

#[test]
fn what_says_nothing_changes_nothing() {
    let now = start();
    let mut breaker = breaker(consecutive(1), now);
    for _ in 0..100 {
        let ticket = breaker.admit(now).unwrap();
        breaker.silent(&ticket, 500 * SECOND, now);
        breaker.settle(ticket, Verdict::Abandon, now);
    }
    assert_eq!(breaker.state(now), State::Closed);
    assert_eq!(breaker.counts(now), Counts::default());
}

#[test]
fn opening_a_stream_is_no_success() {
    let now = start();
    let mut breaker = breaker(consecutive(3), now);
    for _ in 0..3 {
        let ticket = breaker.admit(now).unwrap();
        breaker.progress(&ticket, 100 * MS, now);
        breaker.settle(ticket, Verdict::Fail, now);
    }
    assert_eq!(breaker.state(now), State::Open);
}

#[test]
fn exactly_one_tries() {
    let now = start();
    let mut breaker = breaker(consecutive(1), now);
    fail(&mut breaker, 1, now);
    let now = breaker.retry_at(now).unwrap();
    assert_eq!(breaker.state(now), State::HalfOpen);
    assert_eq!(breaker.retry_at(now), None);
    let trial = breaker.admit(now).unwrap();
    assert!(breaker.admit(now).is_none() && breaker.admit_anyway(now).is_none());
    assert!(breaker.admit(now + 100 * SECOND).is_none(), "however long it takes");
    assert!(breaker.retry_at(now).is_some());
    breaker.progress(&trial, SECOND, now);
    assert_eq!(breaker.state(now), State::Closed, "its first progress closes");
    assert!(breaker.admit(now).is_some());
    breaker.settle(trial, Verdict::Serve, now);
    assert_eq!(breaker.counts(now).served, 1);
}

#[test]
fn the_trials_later_failure_opens_it_again_for_longer() {
    let now = start();
    let mut breaker = breaker(consecutive(3), now);
    fail(&mut breaker, 3, now);
    let now = breaker.retry_at(now).unwrap();
    let trial = breaker.admit(now).unwrap();
    breaker.progress(&trial, SECOND, now);
    let now = now + SECOND;
    end(&mut breaker, Verdict::Serve, now);
    breaker.settle(trial, Verdict::Fail, now);
    assert_eq!(breaker.state(now), State::Open);
    assert!(10 * SECOND <= open_for(&breaker, now));
}

#[test]
fn a_failed_trial_doubles_the_cooldown_up_to_the_cap() {
    let mut now = start();
    let mut breaker = breaker(consecutive(5), now);
    fail(&mut breaker, 5, now);
    let mut open = vec![open_for(&breaker, now)];
    for _ in 0..4 {
        now = breaker.retry_at(now).unwrap();
        fail(&mut breaker, 1, now);
        open.push(open_for(&breaker, now));
    }
    for (open, least) in open.iter().zip([5, 10, 20, 20, 20]) {
        let least = least * SECOND;
        assert!(least <= *open && *open <= least.mul_f64(1.2), "{open:?} for {least:?}");
    }
}

#[test]
fn a_lost_trial_makes_room_for_the_next_and_two_are_not_raced_again() {
    let now = start();
    let mut breaker = breaker(consecutive(3), now);
    fail(&mut breaker, 3, now);
    let now = breaker.retry_at(now).unwrap();
    end(&mut breaker, Verdict::Abandon, now);
    assert_eq!((breaker.state(now), breaker.no_hedge_next()), (State::HalfOpen, false));
    end(&mut breaker, Verdict::Abandon, now);
    assert!(breaker.no_hedge_next());
    let trial = breaker.admit(now).unwrap();
    breaker.progress(&trial, SECOND, now);
    assert_eq!((breaker.state(now), breaker.no_hedge_next()), (State::Closed, false));
    breaker.settle(trial, Verdict::Serve, now);
}

#[test]
fn late_results_of_an_old_generation_are_ignored() {
    let now = start();
    let mut breaker = breaker(consecutive(3), now);
    let old: Vec<_> = (0..10).map(|_| breaker.admit(now).unwrap()).collect();
    fail(&mut breaker, 3, now);
    let until = breaker.retry_at(now);
    let mut old = old.into_iter();
    breaker.settle(old.next().unwrap(), Verdict::Serve, now);
    breaker.settle(old.next().unwrap(), Verdict::Fail, now);
    assert_eq!((breaker.state(now), breaker.retry_at(now)), (State::Open, until));
    let now = recover(&mut breaker, now);
    for ticket in old {
        breaker.progress(&ticket, 100 * SECOND, now);
        breaker.settle(ticket, Verdict::Fail, now);
    }
    assert_eq!(breaker.state(now), State::Closed);
    assert_eq!(breaker.counts(now), Counts { served: 1, failed: 0, timed: 0, slow: 0 });
    assert_eq!(breaker.outstanding(), 0);
}

#[test]
fn where_nobody_else_is_left_one_at_a_time_goes_through() {
    let now = start();
    let mut breaker = breaker(consecutive(3), now);
    fail(&mut breaker, 3, now);
    let until = breaker.retry_at(now);
    for _ in 0..10 {
        let ticket = breaker.admit_anyway(now).unwrap();
        assert!(breaker.admit_anyway(now).is_none());
        breaker.settle(ticket, Verdict::Fail, now);
        assert_eq!(breaker.retry_at(now), until, "what is known already makes it no longer");
    }
    let ticket = breaker.admit_anyway(now).unwrap();
    breaker.progress(&ticket, SECOND, now);
    assert_eq!(breaker.state(now), State::Closed);
    breaker.settle(ticket, Verdict::Serve, now);
}

#[test]
fn a_wrong_key_takes_it_out_until_the_cooldown_ends() {
    let now = start();
    let mut breaker = breaker(Policy::default(), now);
    end(&mut breaker, Verdict::Out, now);
    assert_eq!(breaker.state(now), State::Open);
    recover(&mut breaker, now);
}

#[test]
fn an_operators_word_goes_before_everything() {
    let now = start();
    let mut breaker = breaker(consecutive(1), now);
    breaker.force(Force::Open, now);
    assert_eq!((breaker.state(now), breaker.retry_at(now)), (State::Open, None));
    assert!(breaker.admit(now + HOUR).is_none() && breaker.admit_anyway(now + HOUR).is_none());
    breaker.force(Force::Close, now);
    fail(&mut breaker, 100, now);
    end(&mut breaker, Verdict::Out, now);
    assert_eq!((breaker.state(now), breaker.counts(now).failed), (State::Closed, 101));
    breaker.force(Force::Auto, now);
    fail(&mut breaker, 1, now);
    assert_eq!(breaker.state(now), State::Open);
    breaker.force(Force::Auto, now);
    assert_eq!(breaker.state(now), State::Open, "it was left to the breaker already");
    let causes: Vec<_> = breaker.transitions().map(|t| (t.to, t.cause)).collect();
    let forced = [(State::Open, Cause::Forced), (State::Closed, Cause::Forced), (State::Open, Cause::Consecutive)];
    assert_eq!(causes, forced);
}

#[test]
fn only_a_whole_window_of_health_takes_the_cooldown_back() {
    let policy = Policy { cooldown: 5 * SECOND, min_samples: 10, ..consecutive(3) };
    let mut now = start();
    let mut breaker = breaker(Policy { error_rate: 0.5, ..policy }, now);
    for least in [5, 10, 20] {
        fail(&mut breaker, 3, now);
        assert!(least * SECOND <= open_for(&breaker, now), "a trip soon after closing doubles it");
        now = recover(&mut breaker, now);
    }
    // Two windows, in each of which three of ten failed: more than half of the threshold.
    for _ in 0..120 {
        now += SECOND;
        end(&mut breaker, Verdict::Serve, now);
        end(&mut breaker, Verdict::Serve, now);
        end(&mut breaker, Verdict::Fail, now);
    }
    fail(&mut breaker, 2, now);
    let open = open_for(&breaker, now);
    assert!(20 * SECOND <= open && open < 30 * SECOND, "kept, but not doubled so late: {open:?}");
    now = recover(&mut breaker, now);
    for _ in 0..62 {
        now += SECOND;
        end(&mut breaker, Verdict::Serve, now);
    }
    fail(&mut breaker, 3, now);
    assert!(open_for(&breaker, now) <= 6 * SECOND);
}

#[test]
fn failures_in_a_row_do_not_shorten_what_a_bad_rate_has_built_up() {
    let policy = Policy { error_rate: 0.5, min_samples: 20, consecutive: 5, ..Policy::default() };
    let mut now = start();
    let mut breaker = breaker(policy, now);
    let mostly_bad = |breaker: &mut Breaker, now| {
        for turn in 0.. {
            if breaker.state(now) == State::Open {
                return open_for(breaker, now);
            }
            end(breaker, if turn % 4 == 0 { Verdict::Serve } else { Verdict::Fail }, now);
        }
        unreachable!("it never opened")
    };
    for least in [5, 10, 20, 40, 80] {
        assert!(least * SECOND <= mostly_bad(&mut breaker, now));
        now = recover(&mut breaker, now);
    }
    fail(&mut breaker, 5, now);
    assert!(open_for(&breaker, now) <= 36 * SECOND, "such failures heal sooner");
    now = recover(&mut breaker, now);
    assert!(80 * SECOND <= mostly_bad(&mut breaker, now));
}

// --- what the signals see, over hours ---

/// Plays `hours` at ten turns a second, of which a share of `errors` fail, and returns how often it opened.
/// `forgetful` is a breaker that takes its cooldown back whenever it closes.
fn trips(policy: Policy, hours: u32, errors: f64, forgetful: bool, seed: u64) -> usize {
    let mut now = start();
    let mut breaker = Breaker::new(policy, seed, now);
    let mut seeds = Seeds::new(seed);
    let mut opened = 0;
    for _ in 0..hours * 36_000 {
        now += 100 * MS;
        if let Some(ticket) = breaker.admit(now) {
            if errors <= unit(seeds.draw()) {
                breaker.progress(&ticket, 300 * MS, now);
                breaker.settle(ticket, Verdict::Serve, now);
            } else {
                breaker.settle(ticket, Verdict::Fail, now);
            }
        }
        opened += breaker.transitions().filter(|t| t.to == State::Open).count();
        if forgetful && breaker.state(now) == State::Closed {
            (breaker.level, breaker.closed_at) = (None, None);
        }
    }
    opened
}

#[test]
fn it_does_not_flap_through_a_fifteen_hour_day() {
    let ours = trips(Policy::default(), 15, 0.08, false, 1);
    assert!((50..200).contains(&ours), "opened {ours} times");
    let forgetful = trips(Policy::default(), 15, 0.08, true, 1);
    assert!(10 * ours < forgetful, "{forgetful} times if closing resets the cooldown, {ours} if not");
}

#[test]
fn failures_in_a_row_alone_never_see_eight_percent() {
    assert_eq!(trips(consecutive(5), 2, 0.08, false, 1), 0);
}

#[test]
fn a_healthy_target_stays_closed_all_day() {
    for seed in 0..3 {
        assert_eq!(trips(Policy::default(), 15, 0.01, false, seed), 0);
    }
}

#[test]
fn the_window_sees_eight_percent_within_a_minute() {
    for seed in 0..1000 {
        let now = start();
        let mut breaker = Breaker::new(Policy { consecutive: 0, ..Policy::default() }, seed, now);
        let mut seeds = Seeds::new(seed);
        let opened = (1..=600).find(|turn| {
            let now = now + *turn * 100 * MS;
            let bad = unit(seeds.draw()) < 0.08;
            end(&mut breaker, if bad { Verdict::Fail } else { Verdict::Serve }, now);
            breaker.state(now) == State::Open
        });
        assert!(opened.is_some(), "seed {seed}");
        assert!(Some(100) <= opened, "seed {seed}: too few samples to judge by");
    }
}

// --- latency ---

/// Serves `turns` at ten a second, each with its first token after what `time` says of its number.
fn serve(breaker: &mut Breaker, mut now: Instant, turns: u32, time: impl Fn(u32) -> Duration) -> Instant {
    for turn in 0..turns {
        now += 100 * MS;
        if let Some(ticket) = breaker.admit(now) {
            breaker.progress(&ticket, time(turn), now);
            breaker.settle(ticket, Verdict::Serve, now);
        }
        if breaker.state(now) == State::Open {
            return now;
        }
    }
    now
}

fn opened_by(breaker: &mut Breaker) -> Vec<Cause> {
    breaker.transitions().filter(|t| t.to == State::Open).map(|t| t.cause).collect()
}

#[test]
fn sustained_slowness_opens_it_within_a_window() {
    let begin = start();
    let mut breaker = breaker(Policy::default(), begin);
    let end = serve(&mut breaker, begin, 600, |turn| if turn % 10 == 0 { 9 * SECOND } else { SECOND });
    assert_eq!(opened_by(&mut breaker), [Cause::Latency]);
    assert!(end - begin < 60 * SECOND);
}

#[test]
fn a_burst_of_slowness_does_not() {
    let begin = start();
    let mut breaker = breaker(Policy::default(), begin);
    serve(&mut breaker, begin, 3000, |turn| if turn % 600 < 100 { 9 * SECOND } else { SECOND });
    assert_eq!(opened_by(&mut breaker), []);
}

#[test]
fn twice_the_learned_baseline_opens_it() {
    let begin = start();
    let mut breaker = breaker(Policy::default(), begin);
    assert_eq!(breaker.bound(), Some(8 * SECOND), "nothing is learned yet");
    let now = serve(&mut breaker, begin, 1300, |turn| (300 + turn % 100) * MS);
    let bound = breaker.bound().unwrap();
    assert!(780 * MS < bound && bound < 820 * MS, "{bound:?}");
    let slow = serve(&mut breaker, now, 1200, |_| 900 * MS);
    assert_eq!(opened_by(&mut breaker), [Cause::Latency]);
    assert!(slow - now < 60 * SECOND);
}

#[test]
fn a_day_that_grows_slower_by_the_hour_is_the_new_normal() {
    let begin = start();
    let mut breaker = breaker(Policy::default(), begin);
    serve(&mut breaker, begin, 180_000, |turn| 300 * MS + turn / 100 * MS);
    assert_eq!(opened_by(&mut breaker), [], "300 ms to 2.1 s within five hours");
}

#[test]
fn a_target_that_stays_slow_is_accepted_in_the_end() {
    let begin = start();
    let mut breaker = breaker(Policy::default(), begin);
    let mut now = serve(&mut breaker, begin, 1300, |_| 400 * MS);
    let mut opened = 0;
    while now < begin + 2 * HOUR {
        now = serve(&mut breaker, now + SECOND, 100, |_| 1200 * MS);
        opened += opened_by(&mut breaker).len();
    }
    assert!((2..12).contains(&opened), "{opened}");
    assert_eq!(breaker.state(now), State::Closed);
}

#[test]
fn silence_that_was_cut_off_past_the_bound_is_slow() {
    // A fallback that wins every race would hide from the breaker that its rival has become slow.
    let latency = Latency { p95: None, over_baseline: Some(2.0), baseline: Some(200 * MS) };
    let (mut now, mut blind) = (start(), 0);
    let mut breaker = breaker(Policy { latency, ..Policy::default() }, now);
    for _ in 0..600 {
        now += 100 * MS;
        if let Some(ticket) = breaker.admit(now) {
            breaker.silent(&ticket, 450 * MS, now);
            breaker.settle(ticket, Verdict::Abandon, now);
        } else {
            blind += 1;
        }
    }
    assert!(0 < blind);
    assert_eq!(breaker.transitions().next().map(|t| t.cause), Some(Cause::Latency));
}

#[test]
fn clients_that_hang_up_early_do_not_make_it_slow() {
    let mut now = start();
    let mut breaker = breaker(Policy::default(), now);
    for turn in 0..3000 {
        now += 100 * MS;
        let ticket = breaker.admit(now).unwrap();
        if turn % 2 == 0 {
            breaker.silent(&ticket, 150 * MS, now);
            breaker.settle(ticket, Verdict::Abandon, now);
        } else {
            breaker.progress(&ticket, 300 * MS, now);
            breaker.settle(ticket, Verdict::Serve, now);
        }
    }
    assert_eq!(breaker.state(now), State::Closed);
}
