//! The shape of a real bad day: for fifteen and a half hours a provider fails 8 % of its requests, and its first tokens
//! take twice as long. Played in virtual time on the breaker, and on the breaker with the relay.
//!
//! Errors come two in every twenty-five requests, at places that are drawn: never five in a row, so that what each signal
//! sees is the same in every run.
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test's panic is its report; time moves by hand")]

use segue::bench::world::{Arrival, World};
use segue::chat::DialectId;
use segue::failure::Verdict;
use segue::health::breaker::{Breaker, Latency, Policy, State};
use segue::health::jitter::{Seeds, unit};
use segue::rig::script::{Break, Reject, Script};
use segue::routing::{Entry, Level, Target, Timeouts};
use segue::turn::resume::How;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

const HOUR: Duration = Duration::from_secs(3600);
const CALM: Duration = HOUR;
const LASTS: Duration = Duration::from_secs(15 * 3600 + 1800);
/// Ten turns a second.
const EVERY: Duration = Duration::from_millis(100);

/// Which requests fail, and how long first tokens take.
struct Day {
    seeds: Seeds,
    failing: [usize; 2],
    number: usize,
}

impl Day {
    fn new() -> Self {
        Self { seeds: Seeds::new(610), failing: [0, 0], number: 0 }
    }

    /// The next request `at` this time: whether it fails, and after how long it would speak.
    fn next(&mut self, at: Duration) -> (bool, Duration) {
        if self.number.is_multiple_of(25) {
            let first = self.seeds.draw() as usize % 25;
            self.failing = [first, (first + 1 + self.seeds.draw() as usize % 24) % 25];
        }
        let bad = CALM <= at && at < CALM + LASTS;
        let fails = bad && self.failing.contains(&(self.number % 25));
        self.number += 1;
        let first_token = Duration::from_millis(300).mul_f64(1.0 + 2.0 * unit(self.seeds.draw()));
        (fails, if bad { 2 * first_token } else { first_token })
    }
}

/// What a day came to.
#[derive(Debug, Default)]
struct Came {
    /// When the circuit opened from closed.
    trips: Vec<Duration>,
    /// When it closed for the last time.
    closed: Option<Duration>,
    turns: usize,
    /// Turns that the fallback served: the circuit was open, or the first choice failed.
    by_fallback: usize,
    /// Turns that reached the failing provider and failed there.
    struck: usize,
}

/// Ten turns a second from an hour before the incident until an hour after it.
fn play(policy: Policy) -> Came {
    let start = Instant::now();
    let mut breaker = Breaker::new(policy, 7, start);
    let (mut day, mut came, mut at) = (Day::new(), Came::default(), Duration::ZERO);
    while at < LASTS + 2 * CALM {
        let now = start + at;
        let (fails, first_token) = day.next(at);
        came.turns += 1;
        match breaker.admit(now) {
            None => came.by_fallback += 1,
            Some(ticket) if fails => {
                breaker.settle(ticket, Verdict::Fail, now);
                came.by_fallback += 1;
                came.struck += 1;
            }
            Some(ticket) => {
                breaker.progress(&ticket, first_token, now);
                breaker.settle(ticket, Verdict::Serve, now);
            }
        }
        for change in breaker.transitions() {
            match (change.from, change.to) {
                (State::Closed, State::Open) => came.trips.push(change.at - start),
                (_, State::Closed) => came.closed = Some(change.at - start),
                _ => {}
            }
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
fn failures_in_a_row_alone_never_see_it() {
    let came = play(in_a_row());
    assert!(came.trips.is_empty(), "{:?}", came.trips);
    assert!(44_000 < came.struck, "the whole day long turns ran into it: {}", came.struck);
}

#[test]
fn the_window_trips_within_a_minute_and_does_not_flap_all_day() {
    let came = play(Policy::default());
    let first = *came.trips.first().unwrap();
    assert!(CALM <= first && first < CALM + Duration::from_secs(60), "{first:?}");
    // A cooldown that each closing resets to its first length.
    let naive = play(Policy { max_cooldown_degraded: Policy::default().cooldown, ..Policy::default() });
    assert!(came.trips.len() < 200, "{} trips", came.trips.len());
    assert!(10 * came.trips.len() < naive.trips.len(), "{} against {}", came.trips.len(), naive.trips.len());
    let end = CALM + LASTS;
    let longest = Policy::default().max_cooldown_degraded.mul_f64(1.2);
    let closed = came.closed.unwrap();
    assert!(closed < end + longest + Duration::from_secs(1), "found well {:?} after it", closed - end);
    assert!(came.trips.iter().all(|trip| *trip < end + Duration::from_secs(60)), "no trip once it is over");
    let share = came.by_fallback as f64 / came.turns as f64;
    assert!((0.7..0.95).contains(&share), "served by the fallback: {share:.3}");
    assert!(came.struck * 5 < naive.struck, "turns that ran into it: {} against {}", came.struck, naive.struck);
}

#[test]
fn with_the_relay_no_turn_fails_and_the_fallbacks_share_is_known() {
    let entry = |connection: &str| {
        let target = Arc::new(Target::new(connection, "m", DialectId::Chat));
        Entry { target, timeouts: Timeouts::default() }
    };
    let level = Level { retries: 0, ..Level::new("main", vec![entry("primary"), entry("fallback")]) };
    let start = Instant::now();
    let mut world = World::new(level, How::Instruct, Some(&Policy::default()), 3, start);
    let mut day = Day::new();
    // Twenty minutes of it, after a minute that was well.
    let turns = 20 * 60 * 10;
    let healthy = Script::telling("One two three four five six.");
    let arrivals = (0..turns).map(|number| {
        let at = EVERY * number;
        let (fails, first) = day.next(CALM + at - Duration::from_secs(60));
        let script = healthy.clone().paced(first, Duration::from_millis(20));
        let primary = match number % 3 {
            _ if !fails => script,
            0 => script.breaking(3, Break::Reset),
            1 => script.rejecting(Reject::ClosesAtOnce),
            _ => script.rejecting(Reject::Error { status: 502, headers: BTreeMap::new(), wrong: None }),
        };
        let fallback = healthy.clone().paced(Duration::from_millis(400), Duration::from_millis(20));
        Arrival { at, scripts: vec![primary, fallback], seed: u64::from(number) }
    });
    let (mut ended, mut failed, mut garbled, mut by_fallback) = (0, 0, 0, 0);
    world.play(start, arrivals, |_, report| {
        ended += 1;
        failed += usize::from(!report.is_complete());
        garbled += usize::from(report.text() != healthy.text());
        by_fallback += usize::from(report.journal.speaker().is_some_and(|a| &*a.target.connection == "fallback"));
    });
    assert_eq!((ended, failed, garbled), (turns as usize, 0, 0), "turns, failed, garbled");
    let share = by_fallback as f64 / f64::from(turns);
    assert!((0.5..1.0).contains(&share), "served by the fallback: {share:.3}");
    let trips = world.transitions(0).filter(|t| t.from == State::Closed && t.to == State::Open).count();
    assert!((1..20).contains(&trips), "{trips} trips");
    assert_eq!(world.outstanding(), 0);
}
