//! The breaker once more, slowly: a list of all that happened, searched anew for each question. Random sequences must
//! lead both to the same answers.

#![expect(clippy::panic, reason = "a test's panic is its report")]

use super::*;
use crate::health::jitter::Seeds;
use std::collections::HashMap;

/// What the reference remembers: everything.
struct Model {
    policy: Policy,
    origin: Instant,
    /// Served or failed, slow or fast, since the circuit last started afresh.
    outcomes: Vec<(Instant, bool)>,
    times: Vec<(Instant, bool)>,
    /// Since when, and from which outcome and time on, the next whole window is looked at.
    calm: (Instant, usize, usize),
    open: Option<(Instant, Cause)>,
    forced: Option<Force>,
    generation: u64,
    issued: HashMap<u64, u64>,
    trial: Option<u64>,
    probation: Option<(u64, Cause)>,
    /// `None`: calm.
    level: Option<Duration>,
    closed_at: Option<Instant>,
    abandoned: u32,
    /// A cooldown that the breaker must have started: its shortest length.
    started: Option<(Instant, Duration)>,
}

impl Model {
    fn new(policy: Policy, origin: Instant) -> Self {
        Self {
            policy,
            origin,
            outcomes: Vec::new(),
            times: Vec::new(),
            calm: (origin, 0, 0),
            open: None,
            forced: None,
            generation: 0,
            issued: HashMap::new(),
            trial: None,
            probation: None,
            level: None,
            closed_at: None,
            abandoned: 0,
            started: None,
        }
    }

    fn bucket(&self, at: Instant) -> u128 {
        (at - self.origin).as_nanos() / (self.policy.window / 10).as_nanos()
    }

    fn recent(&self, list: &[(Instant, bool)], now: Instant) -> (u32, u32) {
        let live = list.iter().filter(|(at, _)| self.bucket(now) - self.bucket(*at) < 10);
        (live.clone().count() as u32, live.filter(|(_, bad)| *bad).count() as u32)
    }

    fn state(&self, now: Instant) -> State {
        match (self.forced, self.open) {
            (Some(Force::Open), _) => State::Open,
            (Some(_), _) | (None, None) => State::Closed,
            (None, Some((until, _))) => {
                if now < until {
                    State::Open
                } else {
                    State::HalfOpen
                }
            }
        }
    }

    fn admits(&self, anyway: bool, now: Instant) -> bool {
        match self.state(now) {
            State::Closed => true,
            State::HalfOpen => self.trial.is_none(),
            State::Open => anyway && self.forced.is_none() && self.trial.is_none(),
        }
    }

    fn admitted(&mut self, id: u64, now: Instant) {
        self.issued.insert(id, self.generation);
        if self.state(now) != State::Closed {
            self.trial = Some(id);
        }
    }

    fn counts_for_something(&self, id: u64) -> bool {
        let known = self.issued.get(&id) == Some(&self.generation) || self.probation.is_some_and(|(p, _)| p == id);
        known && self.open.is_none() && self.forced != Some(Force::Open)
    }

    fn fresh(&mut self, now: Instant) {
        self.generation += 1;
        self.outcomes.clear();
        self.times.clear();
        self.calm = (now, 0, 0);
        (self.trial, self.probation, self.abandoned) = (None, None, 0);
    }

    fn close(&mut self, id: u64, now: Instant) {
        let cause = self.open.map_or(Cause::Consecutive, |(_, cause)| cause);
        self.fresh(now);
        self.open = None;
        self.closed_at = Some(now);
        self.probation = Some((id, cause));
    }

    fn start(&mut self, cause: Cause, longer: bool, now: Instant) {
        if self.forced.is_some() {
            return;
        }
        let degraded = matches!(cause, Cause::ErrorRate | Cause::Latency);
        let cap = if degraded { self.policy.max_cooldown_degraded } else { self.policy.max_cooldown };
        let level = match self.level {
            None => self.policy.cooldown,
            Some(level) if longer && level < cap => (level * 2).min(cap),
            Some(level) => level,
        };
        self.level = Some(level);
        self.started = Some((now, level.min(cap)));
        self.open = Some((now + level.min(cap), cause));
        self.generation += 1;
        (self.trial, self.probation) = (None, None);
    }

    fn trip(&mut self, cause: Cause, now: Instant) {
        let soon = self.closed_at.is_some_and(|at| now < at + self.policy.window);
        self.start(cause, soon, now);
    }

    fn judge(&mut self, now: Instant) {
        if self.open.is_some() || self.forced.is_some() {
            return;
        }
        let row = self.outcomes.iter().rev().take_while(|(_, failed)| *failed).count() as u32;
        let (decided, failed) = self.recent(&self.outcomes, now);
        let (timed, slow) = self.recent(&self.times, now);
        let slow_tenths = (0..10).filter(|back| {
            let bucket: Vec<_> =
                self.times.iter().filter(|(at, _)| self.bucket(*at) + back == self.bucket(now)).collect();
            let slow = bucket.iter().filter(|(_, slow)| *slow).count();
            0 < slow && bucket.len() < 20 * slow
        });
        if self.policy.consecutive <= row && self.policy.consecutive != 0 {
            self.trip(Cause::Consecutive, now);
        } else if self.policy.min_samples <= decided && self.policy.error_rate * f64::from(decided) < f64::from(failed)
        {
            self.trip(Cause::ErrorRate, now);
        } else if self.policy.min_samples <= timed && timed < 20 * slow && 5 <= slow_tenths.count() {
            self.trip(Cause::Latency, now);
        } else {
            let since = |list: &[(Instant, bool)], from: usize| {
                (list.len() - from, list[from..].iter().filter(|(_, bad)| *bad).count())
            };
            let (start, outcomes, times) = self.calm;
            let (decided, failed) = since(&self.outcomes, outcomes);
            let (timed, slow) = since(&self.times, times);
            if self.policy.window <= now - start && self.policy.min_samples as usize <= decided {
                if (failed as f64) < self.policy.error_rate / 2.0 * decided as f64 && 40 * slow <= timed {
                    self.level = None;
                }
                self.calm = (now, self.outcomes.len(), self.times.len());
            }
        }
    }

    fn outcome(&mut self, verdict: Verdict, now: Instant) {
        match verdict {
            Verdict::Serve => self.outcomes.push((now, false)),
            Verdict::Fail | Verdict::Out => self.outcomes.push((now, true)),
            Verdict::Abandon => {}
        }
    }

    fn timed(&mut self, id: u64, time: Duration, answered: bool, now: Instant) {
        if answered && self.trial == Some(id) {
            self.close(id, now);
        }
        if self.counts_for_something(id) {
            let Latency { p95, over_baseline, baseline } = self.policy.latency;
            let bounds = [p95, baseline.zip(over_baseline).map(|(usual, factor)| usual.mul_f64(factor))];
            if let Some(bound) = bounds.into_iter().flatten().min()
                && (answered || bound < time)
            {
                self.times.push((now, bound < time));
            }
            self.judge(now);
        }
    }

    fn stalled(&mut self, id: u64, silence: Duration, now: Instant) {
        let Latency { p95, over_baseline, baseline } = self.policy.latency;
        let bounds = [p95, baseline.zip(over_baseline).map(|(usual, factor)| usual.mul_f64(factor))];
        let slow = bounds.into_iter().flatten().any(|bound| bound < silence);
        if slow && self.counts_for_something(id) {
            self.times.push((now, true));
            self.judge(now);
        }
    }

    fn settle(&mut self, id: u64, verdict: Verdict, now: Instant) {
        let bad = matches!(verdict, Verdict::Fail | Verdict::Out);
        if self.trial == Some(id) {
            self.trial = None;
            match verdict {
                Verdict::Serve => {
                    self.close(id, now);
                    self.probation = None;
                    self.outcome(verdict, now);
                }
                Verdict::Abandon => self.abandoned += 1,
                Verdict::Fail | Verdict::Out => {
                    self.abandoned = 0;
                    self.outcome(verdict, now);
                    if let (State::HalfOpen, Some((_, cause))) = (self.state(now), self.open) {
                        self.start(cause, true, now);
                    }
                }
            }
        } else if let Some((_, cause)) = self.probation.filter(|(p, _)| *p == id) {
            self.probation = None;
            self.outcome(verdict, now);
            if bad { self.start(cause, true, now) } else { self.judge(now) }
        } else if self.counts_for_something(id) {
            self.outcome(verdict, now);
            if verdict == Verdict::Out { self.trip(Cause::Out, now) } else { self.judge(now) }
        }
        self.issued.remove(&id);
    }

    fn force(&mut self, force: Force, now: Instant) {
        match (force, self.forced) {
            (Force::Auto, None) => {}
            (Force::Auto, Some(Force::Close)) => self.forced = None,
            (Force::Open, _) => {
                self.forced = Some(Force::Open);
                self.fresh(now);
            }
            _ => {
                self.forced = (force == Force::Close).then_some(Force::Close);
                (self.open, self.level, self.closed_at) = (None, None, None);
                self.fresh(now);
            }
        }
    }

    /// Takes over how long the breaker really stays open, if jitter can have made it so.
    fn adopt(&mut self, breaker: &Breaker) {
        if let Some((at, least)) = self.started.take() {
            let Phase::Open { until, cause, .. } = breaker.phase else { panic!("it did not open") };
            assert!(at + least <= until && until <= at + least.mul_f64(1.2), "open for {:?} of {least:?}", until - at);
            assert_eq!(self.open, Some((at + least, cause)));
            self.open = Some((until, cause));
        }
    }

    fn compare(&self, breaker: &Breaker, now: Instant) {
        assert_eq!(breaker.state(now), self.state(now));
        let (decided, failed) = self.recent(&self.outcomes, now);
        let (timed, slow) = self.recent(&self.times, now);
        let counts = Counts { served: decided - failed, failed, timed, slow };
        assert_eq!(breaker.counts(now), counts);
        assert_eq!(breaker.outstanding() as usize, self.issued.len());
        assert_eq!(breaker.no_hedge_next(), 2 <= self.abandoned);
        assert_eq!(breaker.is_tried(), self.trial.is_some());
        match (self.state(now), self.forced, breaker.retry_at(now)) {
            (State::Open, None, Some(at)) => assert_eq!(self.open.map(|(until, _)| until), Some(at)),
            (State::HalfOpen, None, at) => assert_eq!(at.is_some(), self.trial.is_some()),
            (_, _, at) => assert_eq!(at, None),
        }
    }
}

/// A number below `below`.
fn pick(seeds: &mut Seeds, below: u64) -> u64 {
    seeds.draw() % below
}

fn policy(seeds: &mut Seeds) -> Policy {
    let ms = Duration::from_millis;
    Policy {
        consecutive: [0, 1, 3, 5][pick(seeds, 4) as usize],
        error_rate: [0.125, 0.25, 0.5, 1.0][pick(seeds, 4) as usize],
        window: ms(1000),
        min_samples: 1 + pick(seeds, 12) as u32,
        latency: Latency {
            p95: (pick(seeds, 2) == 0).then(|| ms(400)),
            over_baseline: (pick(seeds, 2) == 0).then_some(2.0),
            baseline: Some(ms(150)),
        },
        cooldown: ms(100),
        max_cooldown: ms(100 << pick(seeds, 3)),
        max_cooldown_degraded: ms(100 << pick(seeds, 6)),
    }
}

/// Plays one random sequence on both. A case is ill in phases, so that circuits trip, relapse and recover.
fn play(seed: u64, start: Instant) -> Vec<Transition> {
    let seeds = &mut Seeds::new(seed);
    let policy = policy(seeds);
    let mut breaker = Breaker::new(policy.clone(), seed, start);
    let mut model = Model::new(policy, start);
    let mut open: Vec<(Ticket, bool)> = Vec::new();
    let mut now = start;
    let mut told = Vec::new();
    let mut illness = pick(seeds, 101);
    for _ in 0..120 {
        match pick(seeds, 100) {
            0 => {
                let force = [Force::Open, Force::Close, Force::Auto, Force::Auto][pick(seeds, 4) as usize];
                breaker.force(force, now);
                model.force(force, now);
            }
            1..=4 => illness = pick(seeds, 101),
            5..=34 => now += Duration::from_millis(pick(seeds, 60)),
            35..=36 => now += Duration::from_millis(pick(seeds, 1500)),
            37..=64 => {
                let anyway = pick(seeds, 4) == 0;
                let admits = model.admits(anyway, now);
                let ticket = if anyway { breaker.admit_anyway(now) } else { breaker.admit(now) };
                assert_eq!(ticket.is_some(), admits, "anyway: {anyway}");
                if let Some(ticket) = ticket {
                    model.admitted(ticket.id, now);
                    open.push((ticket, false));
                }
            }
            65..=79 if !open.is_empty() => {
                let at = pick(seeds, open.len() as u64) as usize;
                if !std::mem::replace(&mut open[at].1, true) {
                    let slow = pick(seeds, 100) < illness;
                    let time = Duration::from_millis(if slow { 500 } else { 100 });
                    breaker.progress(&open[at].0, time, now);
                    model.timed(open[at].0.id, time, true, now);
                }
            }
            _ if !open.is_empty() => {
                let at = pick(seeds, open.len() as u64) as usize;
                let (ticket, spoke) = open.swap_remove(at);
                let id = ticket.id;
                let verdict = match pick(seeds, 100) {
                    0..10 => Verdict::Abandon,
                    10 => Verdict::Out,
                    _ if pick(seeds, 100) < illness => Verdict::Fail,
                    _ => Verdict::Serve,
                };
                if !spoke {
                    let waited = Duration::from_millis(pick(seeds, 600));
                    breaker.silent(&ticket, waited, now);
                    model.timed(id, waited, false, now);
                    model.adopt(&breaker);
                } else if pick(seeds, 3) == 0 {
                    let silence = Duration::from_millis(pick(seeds, 600));
                    breaker.stalled(&ticket, silence, now);
                    model.stalled(id, silence, now);
                    model.adopt(&breaker);
                }
                breaker.settle(ticket, verdict, now);
                model.settle(id, verdict, now);
            }
            _ => {}
        }
        model.adopt(&breaker);
        model.compare(&breaker, now);
        told.extend(breaker.transitions());
    }
    for (ticket, _) in open.drain(..) {
        model.settle(ticket.id, Verdict::Abandon, now);
        breaker.settle(ticket, Verdict::Abandon, now);
    }
    assert_eq!(breaker.outstanding(), 0);
    assert!(!breaker.is_tried(), "a trial outlived its ticket");
    told
}

#[test]
fn it_agrees_with_a_list_of_all_that_happened() {
    let start = tokio::time::Instant::now().into_std();
    let mut causes: HashMap<Cause, u32> = HashMap::new();
    for seed in 0..crate::health::cases(20_000) {
        let told = std::panic::catch_unwind(|| play(seed, start));
        let Ok(told) = told else { panic!("seed {seed}") };
        let mut state = State::Closed;
        for transition in told {
            // A half-open circuit is open until a turn tries it.
            let from =
                if transition.from == State::HalfOpen && state == State::Open { State::Open } else { transition.from };
            assert_eq!(from, state, "seed {seed}: a gap in the account: {transition:?}");
            state = transition.to;
            *causes.entry(transition.cause).or_default() += 1;
        }
    }
    for cause in [Cause::Consecutive, Cause::ErrorRate, Cause::Latency, Cause::Out, Cause::TrialFailed, Cause::Progress]
    {
        assert!(300 < causes.get(&cause).copied().unwrap_or(0), "{cause:?} hardly ever happened: {causes:?}");
    }
}
