//! The shape of a real bad day: for fifteen and a half hours a provider fails 8 % of its requests, each drawn on its own,
//! and its first tokens take twice as long. Played in virtual time on the breaker, and on the breaker with the relay.
//!
//! With draws of their own five failures in a row do happen: 0.08^5 · 0.92 · 558,000, 1.7 times a day. So nothing here
//! says that the signal never sees such a day: it says how little of it.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test's panic is its report; time moves by hand; figures are printed"
)]

use segue::bench::incident::Day;
use segue::failure::Verdict;
use segue::health::breaker::{Breaker, Cause, Latency, Policy, State};
use segue::health::jitter::{Seeds, unit};
use std::time::{Duration, Instant};

const HOUR: Duration = Duration::from_secs(3600);
const MINUTE: Duration = Duration::from_secs(60);
const CALM: Duration = HOUR;
const LASTS: Duration = Duration::from_secs(15 * 3600 + 1800);
/// Ten turns a second.
const EVERY: Duration = Duration::from_millis(100);
const ERRORS: f64 = 0.08;

/// Which requests fail, and how long first tokens take.
struct Fate(Seeds);

impl Fate {
    /// The next request `at` this time: whether it fails, and after how long it would speak.
    fn next(&mut self, at: Duration) -> (bool, Duration) {
        let bad = CALM <= at && at < CALM + LASTS;
        let fails = unit(self.0.draw()) < ERRORS;
        let first_token = Duration::from_millis(300).mul_f64(1.0 + 2.0 * unit(self.0.draw()));
        (bad && fails, if bad { 2 * first_token } else { first_token })
    }
}

/// What a day came to.
#[derive(Debug, Default)]
struct Came {
    /// When the circuit opened from closed, and for what.
    trips: Vec<(Duration, Cause)>,
    /// When it closed for the last time.
    closed: Option<Duration>,
    turns: usize,
    /// Turns whose request would fail, wherever the circuit stood.
    doomed: usize,
    /// Turns that the open circuit kept away.
    kept_away: usize,
    /// Turns that reached the failing provider and failed there.
    struck: usize,
}

impl Came {
    /// Turns that the fallback served: the circuit was open, or the first choice failed.
    fn by_fallback(&self) -> f64 {
        (self.kept_away + self.struck) as f64 / self.turns as f64
    }
}

/// Ten turns a second from an hour before the incident until an hour after it. A breaker that `forgets` begins anew with
/// each closing.
fn play(policy: &Policy, seed: u64, forgets: bool) -> Came {
    let start = Instant::now();
    let mut breaker = Breaker::new(policy.clone(), seed, start);
    let (mut fate, mut came, mut at) = (Fate(Seeds::new(seed)), Came::default(), Duration::ZERO);
    while at < LASTS + 2 * CALM {
        let now = start + at;
        let (fails, first_token) = fate.next(at);
        came.turns += 1;
        came.doomed += usize::from(fails);
        match breaker.admit(now) {
            None => came.kept_away += 1,
            Some(ticket) if fails => {
                breaker.settle(ticket, Verdict::Fail, now);
                came.struck += 1;
            }
            Some(ticket) => {
                breaker.progress(&ticket, first_token, now);
                breaker.settle(ticket, Verdict::Serve, now);
            }
        }
        let mut closes = false;
        for change in breaker.transitions() {
            match (change.from, change.to) {
                (State::Closed, State::Open) => came.trips.push((change.at - start, change.cause)),
                (_, State::Closed) => (came.closed, closes) = (Some(change.at - start), true),
                _ => {}
            }
        }
        if closes && forgets {
            breaker = Breaker::new(policy.clone(), seed ^ at.as_nanos() as u64, now);
        }
        at += EVERY;
    }
    assert_eq!(breaker.state(start + at), State::Closed, "an hour after it all is well");
    came
}

/// Only failures in a row count.
fn in_a_row() -> Policy {
    Policy { error_rate: 1.0, latency: Latency { p95: None, over_baseline: None, baseline: None }, ..Policy::default() }
}

#[test]
fn failures_in_a_row_alone_are_as_good_as_blind_to_it() {
    let days: Vec<Came> = (0..4).map(|seed| play(&in_a_row(), seed, false)).collect();
    let trips: Vec<usize> = days.iter().map(|day| day.trips.len()).collect();
    println!("failures in a row alone: {trips:?} trips in four such days");
    for came in &days {
        assert!(came.trips.len() <= 8, "1.7 are expected of chance: {:?}", came.trips);
        assert!(came.kept_away < came.turns / 1000, "{} of {} turns were kept away", came.kept_away, came.turns);
        assert!(came.doomed * 99 / 100 < came.struck, "all day long turns ran into it: {}", came.struck);
    }
    // The window on the first of these days.
    let seen = play(&Policy::default(), 0, false);
    assert!(20 * seen.struck < days[0].struck, "{} against {}", seen.struck, days[0].struck);
}

#[test]
fn the_window_trips_within_a_minute_and_does_not_flap_all_day() {
    let policy = Policy::default();
    let (came, naive) = (play(&policy, 610, false), play(&policy, 610, true));
    // As the configuration has it by default, without bounds on latency.
    let errors_alone = play(&Policy { latency: in_a_row().latency, ..policy.clone() }, 610, false);
    assert!(errors_alone.trips.first().is_some_and(|(at, _)| *at < CALM + MINUTE) && errors_alone.trips.len() < 200);
    println!(
        "the window: {} trips, {} turns ran into it, {:.1} % were served by the fallback; a breaker that forgets its \
         cooldown on closing: {} trips, {} turns",
        came.trips.len(),
        came.struck,
        100.0 * came.by_fallback(),
        naive.trips.len(),
        naive.struck
    );
    let (first, cause) = *came.trips.first().unwrap();
    assert!(CALM <= first && first < CALM + MINUTE, "{first:?}");
    assert_eq!(cause, Cause::ErrorRate);
    assert!(came.trips.len() < 200, "{} trips", came.trips.len());
    assert!(10 * came.trips.len() < naive.trips.len(), "{} against {}", came.trips.len(), naive.trips.len());
    assert!(came.struck * 5 < naive.struck, "turns that ran into it: {} against {}", came.struck, naive.struck);
    let end = CALM + LASTS;
    let longest = policy.max_cooldown_degraded.mul_f64(1.2);
    let closed = came.closed.unwrap();
    assert!(closed < end + longest + Duration::from_secs(1), "found well {:?} after it", closed.saturating_sub(end));
    assert!(came.trips.iter().all(|(trip, _)| *trip < end + MINUTE), "no trip once it is over");
    assert!((0.7..0.95).contains(&came.by_fallback()), "served by the fallback: {:.3}", came.by_fallback());
}

/// The whole of it takes minutes where nothing is optimised, so a quarter of an hour is played; `SEGUE_HOURS=15.5` plays
/// all.
#[test]
fn with_the_relay_no_turn_fails_and_the_fallbacks_share_is_known() {
    let hours = std::env::var("SEGUE_HOURS").ok().map_or(0.25, |hours| hours.parse().unwrap());
    let lasts = Duration::from_secs_f64(hours * 3600.0);
    let calm = if hours < 1.0 { Duration::from_secs(30) } else { HOUR };
    let day = Day { lasts, calm, ..Day::flat() };
    let played = day.play(|_| {});
    let share = played.by_fallback as f64 / played.during as f64;
    println!(
        "{hours} hours: {} turns, {} failed; the fallback served {:.1} % of the {} during the incident; {} trips, first \
         after {:?} s, closed for good {:?} s after the end",
        played.turns,
        played.failed,
        100.0 * share,
        played.during,
        played.trips,
        played.noticed,
        played.recovered
    );
    assert_eq!((played.failed, played.garbled), (0, 0), "turns that failed, that were garbled");
    let doomed = played.struck as f64 / played.during as f64;
    assert!((0.07..0.09).contains(&doomed), "{doomed:.3} of requests would have failed");
    assert!((10.0 * lasts.as_secs_f64() - played.during as f64).abs() < 0.1 * played.during as f64, "ten a second");
    assert!(played.noticed.is_some_and(|noticed| (0.0..60.0).contains(&noticed)), "{:?}", played.noticed);
    assert!((0.8..1.0).contains(&share), "served by the fallback: {share:.3}");
    let most = 10.0 + 200.0 * hours / 15.5;
    assert!((played.trips as f64) < most, "{} trips in {hours} hours", played.trips);
    if calm == HOUR {
        assert!(played.recovered.is_some_and(|after| after < 361.0), "closed {:?} s after the end", played.recovered);
    }
}
