//! The failover experiment in virtual time: what a listener waits for during an incident, under each policy.
//!
//! Every policy meets the same turns: the same arrivals, the same first-token times, the same faults at the same
//! tokens, drawn from one seed. So a difference between two rows is the policy's doing. Turns run concurrently in one
//! [`World`] after a healthy warm-up, in which the percentiles are learned from which hedges are timed.

use super::stats::{Sample, Summary};
use super::world::{Arrival, PROMPT, World};
use crate::chat::DialectId;
use crate::health::breaker;
use crate::record::account::{self, Account};
use crate::record::turn::{AttemptRecord, Outcome, TurnRecord, millis};
use crate::rig::delay::{Delay, Draw};
use crate::rig::script::{Break, Fault, Reject, Script};
use crate::rig::seed::Dice;
use crate::rig::sim::Report;
use crate::rig::text;
use crate::routing::{After, Entry, Hedge, Level, Pace, Target, Timeouts};
use crate::turn::resume::How;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The experiment's parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Determines everything.
    pub seed: u64,
    /// Turns that are measured, for each policy, distribution and fault.
    pub turns: usize,
    /// Healthy turns before them.
    pub warm: usize,
    /// Turns a second, at random moments.
    pub rate: f64,
    /// Share of turns that the fault strikes at the first target.
    pub share: f64,
    /// The clocks that hold under every policy.
    pub timeouts: Timeouts,
    /// When hedges start. The percentile must leave room for the incident itself: where one turn in twenty is slow, the
    /// 95th percentile is slow, too.
    pub hedge: Hedge,
    /// The silence that starts a challenger.
    pub suspect: Duration,
    /// The pace below which a challenger starts.
    pub pace: Pace,
    /// Challengers in mid-turn, as a share of turns.
    pub budget: f64,
    /// Circuits open and close. Without them every turn meets the fault, and policies alone are compared.
    pub circuits: bool,
}

/// What the gateway does about a slow or silent target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Waits for a failure, then asks the next.
    Sequential,
    /// And asks another before the first word, if that is late.
    Hedged,
    /// And in mid-turn, if the voice falters; the challenger is asked in words to go on and quotes the end first.
    Speculative,
    /// The same with targets that go on from a prefilled text, so that there is no quotation to wait for.
    SpeculativePrefill,
}

/// How long first tokens take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Latency {
    /// Median 180 ms, 99th percentile 800 ms.
    LogNormal,
    /// Pareto: the same 99th percentile, with the tail that real incidents have.
    HeavyTailed,
}

/// What strikes the first target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Nothing.
    Healthy,
    /// Falls silent at a random token.
    Stall,
    /// The connection is reset at a random token.
    Reset,
    /// Answers with an error status: 500, 502, 503 or 529.
    Error,
    /// The first token comes ten seconds late.
    Slow,
}

/// One policy, one distribution, one fault.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The distribution.
    pub latency: Latency,
    /// The fault.
    pub mode: Mode,
    /// The policy.
    pub policy: Policy,
    /// Milliseconds to the first token, of turns that told one.
    pub first_token: Option<Summary>,
    /// The longest mid-turn silence of each turn, in milliseconds.
    pub silence: Option<Summary>,
    /// The same, of those turns alone whose leader failed or was overtaken in mid-turn.
    pub splice_silence: Option<Summary>,
    /// Share of turns that were finished.
    pub completed: f64,
    /// Share of finished turns whose text is, to the character, the one that the model tells; `None` where nobody
    /// knows that one.
    pub exact: Option<f64>,
    /// How much later the 99th percentile of first tokens is than with a healthy first target, in milliseconds.
    pub p99_penalty_ms: Option<f64>,
    /// The share of sequential fallback's penalty that this policy takes away.
    pub penalty_removed: Option<f64>,
    /// Rates and overheads, as the live metrics define them.
    pub account: Account,
    /// All first-token times.
    #[serde(skip)]
    pub first_tokens: Sample,
    /// All longest silences.
    #[serde(skip)]
    pub silences: Sample,
}

// === impl Experiment ===

impl Default for Experiment {
    fn default() -> Self {
        Self {
            seed: 42,
            turns: 10_000,
            warm: 500,
            rate: 20.0,
            share: 0.05,
            timeouts: Timeouts::default(),
            hedge: Hedge {
                after: After::Percentile(92.0),
                min: Duration::from_millis(80),
                max: Duration::from_secs(2),
                budget: 0.10,
            },
            suspect: Duration::from_millis(400),
            pace: Pace { chars: 15.0, window: Duration::from_secs(3) },
            budget: 0.10,
            circuits: false,
        }
    }
}

impl Experiment {
    /// Every cell, in the order of a table. `progress` is told how many are done.
    pub fn run(&self, mut progress: impl FnMut(usize)) -> Vec<Cell> {
        let mut cells = Vec::with_capacity(CELLS);
        for latency in Latency::ALL {
            for mode in Mode::ALL {
                for policy in Policy::ALL {
                    cells.push(self.cell(latency, mode, policy));
                    progress(cells.len());
                }
            }
        }
        relate(&mut cells);
        cells
    }

    /// One cell, without what is relative to others.
    #[expect(clippy::disallowed_methods, reason = "a start for a clock that is moved by hand")]
    pub fn cell(&self, latency: Latency, mode: Mode, policy: Policy) -> Cell {
        let start = Instant::now();
        let mut world = self.world(policy, start);
        let mut tally = Tally::default();
        let texts: Vec<String> = (0..TEXTS).map(|text| pieces(text).concat()).collect();
        world.play(start, self.arrivals(latency, mode), |number, report| {
            if number >= self.warm {
                tally.add(&report, &texts[(self.seed_of(number) % TEXTS) as usize]);
            }
        });
        tally.cell(latency, mode, policy)
    }

    /// A world of two targets under `policy`.
    pub fn world(&self, policy: Policy, start: Instant) -> World {
        let how = if policy == Policy::SpeculativePrefill { How::Prefill } else { How::Instruct };
        let circuits = self.circuits.then(breaker::Policy::default);
        World::new(self.level(policy), how, circuits.as_ref(), self.seed, start)
    }

    /// The level that serves under `policy`.
    pub fn level(&self, policy: Policy) -> Level {
        let mut timeouts = self.timeouts;
        if policy.speculates() {
            (timeouts.suspect, timeouts.pace) = (Some(self.suspect), Some(self.pace));
        }
        let entry = |name: &str| Entry { target: Arc::new(Target::new(name, "m", DialectId::Chat)), timeouts };
        let mut level = Level::new("bench", vec![entry("primary"), entry("secondary")]);
        level.timeouts = timeouts;
        level.budget = self.budget;
        level.hedge = (policy != Policy::Sequential).then_some(self.hedge);
        level
    }

    /// The turns to come: the same for every policy.
    pub fn arrivals(&self, latency: Latency, mode: Mode) -> impl Iterator<Item = Arrival> + '_ {
        let mut dice = Dice::labelled(self.seed, 1);
        let mut at = 0.0;
        (0..self.warm + self.turns).map(move |number| {
            at += -(1.0 - dice.unit()).ln() / self.rate;
            let seed = self.seed_of(number);
            let mode = if number < self.warm { Mode::Healthy } else { mode };
            Arrival { at: Duration::from_secs_f64(at), scripts: self.scripts(latency, mode, seed), seed }
        })
    }

    /// The seed of one turn.
    pub fn seed_of(&self, number: usize) -> u64 {
        Dice::labelled(self.seed, 1000 + number as u64).roll()
    }

    /// What the two targets do in the turn of `seed`.
    pub fn scripts(&self, latency: Latency, mode: Mode, seed: u64) -> Vec<Script> {
        let mut dice = Dice::labelled(seed, 2);
        let delay = latency.delay();
        let mut script = Script::of_pieces(pieces(seed % TEXTS));
        script.content.prompt_tokens = PROMPT;
        script.pace.gap = Delay::Drawn(Draw::LogNormal { median: Duration::from_millis(30), sigma: 0.4 });
        let (mut primary, mut secondary) = (script.clone(), script);
        let first = delay.draw(0, &mut dice);
        primary.pace.first = Delay::Fixed(first);
        secondary.pace.first = Delay::Fixed(delay.draw(0, &mut dice) + SECONDARY);
        let (strikes, at) = (dice.unit() < self.share, dice.below(primary.content.text.len()));
        let status = dice.pick(&[500, 502, 503, 529]).copied().unwrap_or(500);
        let breaks = |how| Some(Fault { at, how });
        match mode {
            Mode::Stall if strikes => primary.fault = breaks(Break::Silence),
            Mode::Reset if strikes => primary.fault = breaks(Break::Reset),
            Mode::Slow if strikes => primary.pace.first = Delay::Fixed(first + LATE),
            Mode::Error if strikes => {
                primary.pace.headers = Delay::Fixed(first / 2);
                primary.reject = Some(Reject::Error { status, headers: BTreeMap::new(), wrong: None });
            }
            _ => {}
        }
        vec![primary, secondary]
    }
}

/// What is kept of the turns of a cell.
#[derive(Default)]
struct Tally {
    records: Vec<TurnRecord>,
    exact: usize,
    completed: usize,
}

// === impl Tally ===

impl Tally {
    fn add(&mut self, report: &Report, truth: &str) {
        let record = record(report);
        if report.is_complete() {
            self.completed += 1;
            self.exact += usize::from(report.text() == truth);
        }
        self.records.push(record);
    }

    fn cell(self, latency: Latency, mode: Mode, policy: Policy) -> Cell {
        let first_tokens = Sample::new(self.records.iter().filter_map(|r| r.first_told_ms));
        let silences = Sample::new(self.records.iter().map(|r| r.longest_silence_ms));
        let spliced = self.records.iter().filter(|r| r.splices > 0).map(|r| r.longest_silence_ms);
        let of = |part: usize, whole: usize| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        Cell {
            latency,
            mode,
            policy,
            first_token: first_tokens.summary(),
            silence: silences.summary(),
            splice_silence: Sample::new(spliced).summary(),
            completed: of(self.completed, self.records.len()),
            exact: Some(of(self.exact, self.completed)),
            p99_penalty_ms: None,
            penalty_removed: None,
            account: account::of(&self.records),
            first_tokens,
            silences,
        }
    }
}

// === impl Policy ===

impl Policy {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Sequential, Self::Hedged, Self::Speculative, Self::SpeculativePrefill];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Hedged => "hedged",
            Self::Speculative => "speculative",
            Self::SpeculativePrefill => "speculative, prefill",
        }
    }

    /// Whether a challenger may start in mid-turn.
    pub fn speculates(self) -> bool {
        matches!(self, Self::Speculative | Self::SpeculativePrefill)
    }
}

// === impl Latency ===

impl Latency {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::LogNormal, Self::HeavyTailed];

    /// Its name in tables and file names.
    pub fn name(self) -> &'static str {
        match self {
            Self::LogNormal => "log-normal",
            Self::HeavyTailed => "heavy-tailed",
        }
    }

    /// First-token times of the first target. The second takes [`SECONDARY`] more.
    pub fn delay(self) -> Delay {
        Delay::Drawn(match self {
            // The standard normal distribution has its 99th percentile at 2.3263: 180 ms · e^(0.641 · 2.3263) = 800 ms.
            Self::LogNormal => Draw::LogNormal { median: Duration::from_millis(180), sigma: 0.641_2 },
            // (1 - 0.99)^(-1/2) = 10: the 99th percentile is ten times the least.
            Self::HeavyTailed => Draw::Pareto { min: Duration::from_millis(80), alpha: 2.0 },
        })
    }
}

// === impl Mode ===

impl Mode {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Healthy, Self::Slow, Self::Stall, Self::Reset, Self::Error];

    /// Its name in tables and file names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Stall => "stall",
            Self::Reset => "reset",
            Self::Error => "5xx",
            Self::Slow => "slow first token",
        }
    }
}

// === helpers ===

/// Fills in what is relative to other cells: to a healthy first target without races, and to sequential fallback.
pub fn relate(cells: &mut [Cell]) {
    let p99 = |cells: &[Cell], latency: Latency, mode: Mode| {
        let of = |c: &&Cell| (c.latency, c.mode, c.policy) == (latency, mode, Policy::Sequential);
        cells.iter().find(of).and_then(|c| c.first_tokens.percentile(99.0))
    };
    for index in 0..cells.len() {
        let (latency, mode) = (cells[index].latency, cells[index].mode);
        let (healthy, sequential) = (p99(cells, latency, Mode::Healthy), p99(cells, latency, mode));
        let cell = &mut cells[index];
        let penalty = |p99: Option<f64>| p99.zip(healthy).map(|(p99, healthy)| p99 - healthy);
        cell.p99_penalty_ms = penalty(cell.first_tokens.percentile(99.0));
        let both = cell.p99_penalty_ms.zip(penalty(sequential).filter(|penalty| *penalty > NO_PENALTY));
        cell.penalty_removed = both.map(|(own, sequential)| 1.0 - own.max(0.0) / sequential);
    }
}

/// A simulated turn as the record that a gateway would keep of it.
pub fn record(report: &Report) -> TurnRecord {
    let journal = &report.journal;
    let silent = journal.first_told.is_none();
    TurnRecord {
        turn: String::new(),
        tenant: None,
        key: None,
        level: "bench".into(),
        conversation: None,
        outcome: Outcome::of(report.outcome.as_ref(), silent),
        finish: report.is_complete().then_some("stop"),
        delivered_chars: report.text().chars().count(),
        splices: journal.splices,
        started: 0.0,
        first_told_ms: journal.first_told.map(|at| millis(at.saturating_duration_since(journal.started))),
        longest_silence_ms: millis(journal.longest_silence),
        duration_ms: Some(millis(report.ended)),
        attempts: AttemptRecord::all(journal, PROMPT),
    }
}

/// The pieces of one of the texts that are told: prose of a few sentences.
fn pieces(number: u64) -> Vec<String> {
    text::words(&text::text(text::Kind::Prose, CHARS, number))
}

/// So many cells are in [`Experiment::run`].
pub const CELLS: usize = Latency::ALL.len() * Mode::ALL.len() * Policy::ALL.len();

/// How much slower the second target is.
pub const SECONDARY: Duration = Duration::from_millis(300);

/// How late a slow first token is.
const LATE: Duration = Duration::from_secs(10);

/// How many different texts there are.
const TEXTS: u64 = 64;

/// About how long they are.
const CHARS: usize = 320;

/// A penalty up to this, in milliseconds, is none that could be taken away.
const NO_PENALTY: f64 = 50.0;
