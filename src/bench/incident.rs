//! A long bad day in virtual time: hours in which a provider answers some of its requests with errors.
//!
//! It shows what the parts do together: retries and fallbacks keep turns whole from the first minute on, the circuit
//! learns to stay open for longer and longer instead of flapping, and goes back to the first choice when that is well.

use super::failover::{Experiment, Latency, Policy, record};
use super::stats::{Sample, Summary};
use super::world::{Arrival, World};
use crate::health::breaker::{self, State, Transition};
use crate::record::account::{Account, Sums};
use crate::record::{Outcome, TurnRecord};
use crate::rig::delay::Delay;
use crate::rig::script::{Break, Fault, Reject, Script};
use crate::rig::seed::Dice;
use crate::turn::resume::How;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A day to play.
#[derive(Clone, Debug, PartialEq)]
pub struct Day {
    /// Determines everything.
    pub seed: u64,
    /// How long the incident lasts.
    pub lasts: Duration,
    /// Healthy time before and after it.
    pub calm: Duration,
    /// Turns a second.
    pub rate: f64,
    /// The largest share of requests that the provider fails, each drawn on its own.
    pub worst: f64,
    /// How that share changes over the incident.
    pub shape: Shape,
    /// So many times as long its first tokens take during the incident.
    pub slower: f64,
}

/// How an incident goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// It swells and ebbs: half a sine.
    Swells,
    /// It is as bad from its first second to its last.
    Flat,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Played {
    /// Turns of the whole day.
    pub turns: usize,
    /// Turns that would have failed without a fallback: those whose first choice failed them.
    pub struck: usize,
    /// Turns that a client saw fail.
    pub failed: usize,
    /// Turns whose text was not, to the character, the one that was told.
    pub garbled: usize,
    /// Turns that began during the incident.
    pub during: usize,
    /// Those of them that the second target served, in part or whole.
    pub by_fallback: usize,
    /// How often the closed circuit of the first target opened.
    pub trips: usize,
    /// When it first did, in seconds since the incident began.
    pub noticed: Option<f64>,
    /// When it closed for the last time, in seconds since the incident ended; below zero: it was closed already.
    pub recovered: Option<f64>,
    /// Hour by hour.
    pub hours: Vec<Hour>,
    /// Changes of the first target's circuit: seconds since the beginning, and what it became.
    pub circuit: Vec<(f64, &'static str)>,
    /// Rates and overheads over the whole day.
    pub account: Account,
    /// First tokens over the whole day.
    pub first_token: Option<Summary>,
}

/// One hour of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Hour {
    /// Share of requests that the first target would fail in the middle of this hour.
    pub errors: f64,
    /// Turns.
    pub turns: usize,
    /// Served by the second target, in part or whole.
    pub by_fallback: usize,
    /// Seen to fail.
    pub failed: usize,
    /// How often the circuit opened.
    pub opened: usize,
    /// The 99th percentile of first tokens, in milliseconds.
    pub first_token_p99_ms: f64,
}

// === impl Day ===

impl Default for Day {
    fn default() -> Self {
        Self {
            seed: 42,
            lasts: Duration::from_secs(15 * 3600),
            calm: Duration::from_secs(3600),
            rate: 3.0,
            worst: 0.12,
            shape: Shape::Swells,
            slower: 1.0,
        }
    }
}

impl Day {
    /// Fifteen and a half hours in which 8 % of requests fail and first tokens take twice as long, at ten turns a second.
    pub fn flat() -> Self {
        let lasts = Duration::from_secs(15 * 3600 + 1800);
        Self { lasts, rate: 10.0, worst: 0.08, shape: Shape::Flat, slower: 2.0, ..Self::default() }
    }

    /// Plays it under hedging and speculation, with circuits. `hour` is told of each hour that is over.
    pub fn play(&self, hour: impl FnMut(usize)) -> Played {
        self.play_and_tell(hour, |_, _| ())
    }

    /// Plays it likewise; `each` is told of each turn when it has ended: when it began, in seconds since the beginning, and
    /// its record.
    #[expect(clippy::disallowed_methods, reason = "a start for a clock that is moved by hand")]
    pub fn play_and_tell(&self, mut hour: impl FnMut(usize), mut each: impl FnMut(f64, &TurnRecord)) -> Played {
        let start = Instant::now();
        let experiment = Experiment { seed: self.seed, ..Experiment::default() };
        let circuits = breaker::Policy::default();
        let mut world =
            World::new(experiment.level(Policy::Speculative), How::Instruct, Some(&circuits), self.seed, start);
        let whole = self.lasts + 2 * self.calm;
        let hours = (whole.as_secs_f64() / HOUR).ceil() as usize;
        let mut kept = Kept { hours: vec![Bin::default(); hours], ..Kept::default() };
        // What is known of a turn before it is played, until it has ended.
        let open: RefCell<BTreeMap<usize, Known>> = RefCell::default();
        let arrivals = self.arrivals(&experiment, whole).map(|(number, arrival)| {
            let script = &arrival.scripts[0];
            let struck = script.fault.is_some() || script.reject.is_some();
            let known = Known { at: arrival.at.as_secs_f64(), struck, truth: script.text() };
            open.borrow_mut().insert(number, known);
            arrival
        });
        let mut clock = 0;
        world.play(start, arrivals, |number, report| {
            let Some(known) = open.borrow_mut().remove(&number) else { return };
            let index = ((known.at / HOUR) as usize).min(hours - 1);
            while clock < index {
                clock += 1;
                hour(clock);
            }
            let bad = self.passed(known.at).is_some();
            let record = record(&report);
            each(known.at, &record);
            kept.add((index, bad), known.struck, report.text() == known.truth, &record);
        });
        hour(hours);
        self.played(kept, &world, start)
    }

    fn arrivals<'a>(
        &'a self,
        experiment: &'a Experiment,
        whole: Duration,
    ) -> impl Iterator<Item = (usize, Arrival)> + 'a {
        let mut dice = Dice::labelled(self.seed, 1);
        let mut at = 0.0;
        let times = std::iter::from_fn(move || {
            at += -(1.0 - dice.unit()).ln() / self.rate;
            (at < whole.as_secs_f64()).then_some(at)
        });
        times.enumerate().map(move |(number, at)| {
            let seed = Dice::labelled(self.seed, 1000 + number as u64).roll();
            let mut scripts = experiment.scripts(Latency::LogNormal, super::failover::Mode::Healthy, seed);
            let mut dice = Dice::labelled(seed, 3);
            if let Delay::Fixed(first) = &mut scripts[0].pace.first
                && self.passed(at).is_some()
            {
                *first = first.mul_f64(self.slower);
            }
            if dice.unit() < self.errors(at) {
                strike(&mut scripts[0], &mut dice);
            }
            (number, Arrival { at: Duration::from_secs_f64(at), scripts, seed })
        })
    }

    /// The share of requests that fail `at` seconds after the beginning.
    pub fn errors(&self, at: f64) -> f64 {
        match (self.passed(at), self.shape) {
            (None, _) => 0.0,
            (Some(_), Shape::Flat) => self.worst,
            (Some(passed), Shape::Swells) => self.worst * (passed * std::f64::consts::PI).sin(),
        }
    }

    /// The share of the incident that has passed `at` seconds after the beginning; `None` before and after it.
    fn passed(&self, at: f64) -> Option<f64> {
        let passed = (at - self.calm.as_secs_f64()) / self.lasts.as_secs_f64();
        (0.0..1.0).contains(&passed).then_some(passed)
    }

    fn played(&self, kept: Kept, world: &World, start: Instant) -> Played {
        let Kept { hours, sums, struck, failed, garbled, during, by_fallback } = kept;
        let changes: Vec<&Transition> = world.transitions(0).collect();
        let since = |at: Instant| at.saturating_duration_since(start).as_secs_f64();
        let opened = |index: usize| {
            let is = |at: f64| (at / HOUR) as usize == index;
            changes.iter().filter(|t| t.to == State::Open && is(since(t.at))).count()
        };
        let hour = |(index, bin): (usize, &Bin)| Hour {
            errors: self.errors((index as f64 + 0.5) * HOUR),
            turns: bin.first.len(),
            by_fallback: bin.by_fallback,
            failed: bin.failed,
            opened: opened(index),
            first_token_p99_ms: Sample::new(bin.first.iter().copied()).percentile(99.0).unwrap_or_default(),
        };
        let name = |state: State| match state {
            State::Closed => "closed",
            State::Open => "open",
            State::HalfOpen => "half-open",
        };
        let trips: Vec<f64> = changes
            .iter()
            .filter(|t| t.from == State::Closed && t.to == State::Open)
            .map(|t| since(t.at) - self.calm.as_secs_f64())
            .collect();
        let closed = changes.iter().rev().find(|t| t.to == State::Closed);
        let account = sums.account();
        Played {
            turns: account.turns,
            struck,
            failed,
            garbled,
            during,
            by_fallback,
            trips: trips.len(),
            noticed: trips.first().copied(),
            recovered: closed.map(|t| since(t.at) - (self.calm + self.lasts).as_secs_f64()),
            first_token: Sample::new(hours.iter().flat_map(|bin| bin.first.iter().copied())).summary(),
            hours: hours.iter().enumerate().map(hour).collect(),
            circuit: changes.iter().map(|t| (since(t.at), name(t.to))).collect(),
            account,
        }
    }
}

/// What is known of a turn before it is played.
struct Known {
    at: f64,
    struck: bool,
    truth: String,
}

#[derive(Default)]
struct Kept {
    hours: Vec<Bin>,
    sums: Sums,
    struck: usize,
    failed: usize,
    garbled: usize,
    during: usize,
    by_fallback: usize,
}

#[derive(Clone, Default)]
struct Bin {
    first: Vec<f64>,
    by_fallback: usize,
    failed: usize,
}

// === impl Kept ===

impl Kept {
    fn add(&mut self, (hour, bad): (usize, bool), struck: bool, exact: bool, record: &TurnRecord) {
        let bin = &mut self.hours[hour];
        let complete = record.outcome == Outcome::Complete;
        bin.first.extend(record.first_told_ms);
        let by_fallback = record.attempts.iter().any(|a| &*a.connection != "primary" && a.delivered_tokens > 0);
        bin.by_fallback += usize::from(by_fallback);
        bin.failed += usize::from(!complete);
        self.struck += usize::from(struck);
        self.failed += usize::from(!complete);
        self.garbled += usize::from(complete && !exact);
        self.during += usize::from(bad);
        self.by_fallback += usize::from(bad && by_fallback);
        self.sums.add(record);
    }
}

// === helpers ===

/// What errors of a bad day look like: half are statuses, the rest break a stream that had begun.
fn strike(script: &mut Script, dice: &mut Dice) {
    let at = dice.below(script.content.text.len());
    let status = dice.pick(&[500, 502, 503, 529]).copied().unwrap_or(500);
    match dice.below(4) {
        0 => script.fault = Some(Fault { at, how: Break::Reset }),
        1 => script.fault = Some(Fault { at, how: Break::Silence }),
        _ => script.reject = Some(Reject::Error { status, headers: BTreeMap::new(), wrong: None }),
    }
}

const HOUR: f64 = 3600.0;
