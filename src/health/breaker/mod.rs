//! Whether a target may be asked.
//!
//! Closed, it counts. It opens on any of three signals, since each is blind where another sees: *consecutive failures*
//! see a dead target within a few turns, but at 8 % errors hardly ever five in a row; the *error rate* over a window sees
//! 8 %, but needs samples; *sustained latency* sees a target that answers everything, too late. After a cooldown exactly
//! one turn tries (the *trial*); its first progress closes the circuit.
//!
//! That a circuit closes proves little: at 8 % errors eleven of twelve trials succeed. A breaker that forgets its
//! cooldown on closing flaps thousands of times through a bad day. So the cooldown is kept, and doubled when the circuit
//! trips again soon; only a whole window of health takes it back.
//!
//! An attempt holds a [`Ticket`]. Its outcome is decided once, at its end, and one that was admitted before the circuit
//! last opened or closed has nothing to say any more.

use super::jitter::{Seeds, unit};
use crate::failure::Verdict;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use window::{Calm, Window};

mod policy;
mod state;
mod window;

pub use policy::{Latency, Policy};
pub use state::{Cause, Force, State, Transition};
pub use window::Counts;

/// One circuit.
#[derive(Clone, Debug)]
pub struct Breaker {
    policy: Policy,
    phase: Phase,
    /// What an operator said; it goes before everything else.
    forced: Option<Force>,
    /// Counts openings and closings; tickets of an earlier epoch say nothing.
    epoch: u64,
    tickets: Tickets,
    window: Window,
    /// Failures since the last success.
    row: u32,
    calm: Calm,
    /// The cooldown that the next trip starts from; `None`: the policy's.
    level: Option<Duration>,
    /// When a trial last closed it.
    closed_at: Option<Instant>,
    /// What the target usually takes, as far as it was learned.
    learned: Option<Duration>,
    log: VecDeque<Transition>,
    seeds: Seeds,
}

/// The right to make one attempt, and to say how it ended.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a ticket that is not settled keeps its place for ever"]
pub struct Ticket {
    id: u64,
    epoch: u64,
}

/// `HalfOpen` is an open phase whose time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Closed,
    /// `cause` is the signal that tripped it; a failed trial does not change it.
    Open {
        until: Instant,
        cause: Cause,
        /// That it became half-open was noted.
        cooled: bool,
    },
}

/// The attempts under way that matter.
#[derive(Clone, Debug, Default)]
struct Tickets {
    /// The next id.
    next: u64,
    /// Issued and not settled.
    out: u32,
    /// The one that tries.
    trial: Option<u64>,
    /// The one that closed the circuit and goes on; should it fail, the circuit re-opens for this cause.
    probation: Option<(u64, Cause)>,
    /// Trials in a row that ended without a word on the target.
    abandoned: u32,
}

// === impl Breaker ===

impl Breaker {
    /// A closed circuit. `seed` determines its jitter.
    pub fn new(policy: Policy, seed: u64, now: Instant) -> Self {
        Self {
            window: Window::new(policy.window, now),
            policy,
            phase: Phase::Closed,
            forced: None,
            epoch: 0,
            tickets: Tickets::default(),
            row: 0,
            calm: Calm::new(now),
            level: None,
            closed_at: None,
            learned: None,
            log: VecDeque::new(),
            seeds: Seeds::new(seed),
        }
    }

    /// What it does with the next turn.
    pub fn state(&self, now: Instant) -> State {
        match (self.forced, self.phase) {
            (Some(Force::Open), _) => State::Open,
            (Some(Force::Close), _) | (_, Phase::Closed) => State::Closed,
            (_, Phase::Open { until, .. }) if now < until => State::Open,
            (_, Phase::Open { .. }) => State::HalfOpen,
        }
    }

    /// Lets an attempt through, if the circuit is closed, or half-open and nobody tries. Whoever may not be the trial
    /// must look at [`Self::state`] first.
    pub fn admit(&mut self, now: Instant) -> Option<Ticket> {
        match self.state(now) {
            State::Closed => Some(self.issue()),
            State::HalfOpen => self.try_out(now),
            State::Open => None,
        }
    }

    /// The same where there is nobody else to ask: the circuit may be open, but one at a time. It takes the trial's
    /// place. What an operator forced open stays open.
    pub fn admit_anyway(&mut self, now: Instant) -> Option<Ticket> {
        match self.state(now) {
            State::Closed => Some(self.issue()),
            State::Open if self.forced.is_some() => None,
            State::HalfOpen | State::Open => self.try_out(now),
        }
    }

    /// The attempt made its first progress, `first_token` after it was sent. To be called once an attempt.
    pub fn progress(&mut self, ticket: &Ticket, first_token: Duration, now: Instant) {
        if self.tickets.trial == Some(ticket.id) {
            self.close(Some(ticket.id), Cause::Progress, now);
        }
        if !self.heeds(ticket) {
            return;
        }
        self.calm.first_token.record(first_token);
        if let Some(bound) = self.bound() {
            self.time(bound < first_token, now);
        }
        self.judge(now);
    }

    /// The attempt is over without progress, `waited` after it was sent. If that is within the bound, nobody knows what
    /// it would have taken, and it counts for nothing; past it, it was slow. To be called before it is settled.
    pub fn silent(&mut self, ticket: &Ticket, waited: Duration, now: Instant) {
        if !self.heeds(ticket) {
            return;
        }
        self.calm.first_token.censor(waited);
        if self.bound().is_some_and(|bound| bound < waited) {
            self.time(true, now);
        }
        self.judge(now);
    }

    /// The attempt is over in the middle of a silence of its answer that has lasted for `silence`. Past the bound it was
    /// slow, though its first token was not: whoever is overtaken in every other turn must be noticed. To be called before
    /// it is settled.
    pub fn stalled(&mut self, ticket: &Ticket, silence: Duration, now: Instant) {
        if self.heeds(ticket) && self.bound().is_some_and(|bound| bound < silence) {
            self.time(true, now);
            self.judge(now);
        }
    }

    /// The attempt is over.
    #[expect(clippy::needless_pass_by_value, reason = "a ticket is used up")]
    pub fn settle(&mut self, ticket: Ticket, verdict: Verdict, now: Instant) {
        self.tickets.out = self.tickets.out.saturating_sub(1);
        if self.tickets.trial == Some(ticket.id) {
            self.settle_trial(ticket.id, verdict, now);
        } else if let Some((_, cause)) = self.tickets.probation.take_if(|(id, _)| *id == ticket.id) {
            self.count(verdict, now);
            match verdict {
                Verdict::Fail | Verdict::Out => self.reopen(cause, now),
                Verdict::Serve | Verdict::Abandon => self.judge(now),
            }
        } else if self.heeds(&ticket) {
            self.count(verdict, now);
            match verdict {
                Verdict::Out => self.trip(Cause::Out, now),
                Verdict::Serve | Verdict::Fail | Verdict::Abandon => self.judge(now),
            }
        }
    }

    /// Follows an operator's word.
    pub fn force(&mut self, force: Force, now: Instant) {
        let from = self.state(now);
        match (force, self.forced) {
            (Force::Auto, None) => return,
            (Force::Auto, Some(Force::Close)) => self.forced = None,
            (Force::Open, _) => {
                self.forced = Some(Force::Open);
                self.clean(now);
            }
            (Force::Close | Force::Auto, _) => {
                self.forced = (force == Force::Close).then_some(Force::Close);
                self.phase = Phase::Closed;
                self.level = None;
                self.closed_at = None;
                self.clean(now);
            }
        }
        self.note(from, Cause::Forced, None, now);
    }

    /// What an operator said, if that holds now.
    pub fn forced(&self) -> Option<Force> {
        self.forced
    }

    /// When it may let a turn through again; `None` if it does now, or if only an operator can say.
    pub fn retry_at(&self, now: Instant) -> Option<Instant> {
        match (self.forced, self.phase) {
            (None, Phase::Open { until, .. }) if now < until => Some(until),
            (None, Phase::Open { .. }) => self.tickets.trial.map(|_| now + TRIAL_PATIENCE),
            _ => None,
        }
    }

    /// What the window holds.
    pub fn counts(&self, now: Instant) -> Counts {
        self.window.counts(now)
    }

    /// How many tickets are issued and not settled.
    pub fn outstanding(&self) -> u32 {
        self.tickets.out
    }

    /// Whether a turn tries it now.
    pub fn is_tried(&self) -> bool {
        self.tickets.trial.is_some()
    }

    /// Whether the next trial must not be raced: two in a row were abandoned, so it would never be judged.
    pub fn no_hedge_next(&self) -> bool {
        ABANDONED_TRIALS <= self.tickets.abandoned
    }

    /// The bound on first-token times at this moment.
    pub fn bound(&self) -> Option<Duration> {
        let Latency { p95, over_baseline, baseline } = self.policy.latency;
        let relative = over_baseline.zip(baseline.or(self.learned)).map(|(factor, usual)| {
            let bound = Duration::try_from_secs_f64(usual.as_secs_f64() * factor).unwrap_or(Duration::MAX);
            bound.max(LATENCY_FLOOR)
        });
        p95.into_iter().chain(relative).min()
    }

    /// The changes of state since the last call, oldest first; at most [`LOG`] are kept.
    pub fn transitions(&mut self) -> impl Iterator<Item = Transition> + use<'_> {
        self.log.drain(..)
    }

    /// Whether a ticket's word counts: it was issued in this epoch, or is the one that closed the circuit.
    fn heeds(&self, ticket: &Ticket) -> bool {
        let probation = self.tickets.probation.is_some_and(|(id, _)| id == ticket.id);
        self.phase == Phase::Closed && self.forced != Some(Force::Open) && (ticket.epoch == self.epoch || probation)
    }

    fn issue(&mut self) -> Ticket {
        let id = self.tickets.next;
        self.tickets.next += 1;
        self.tickets.out += 1;
        Ticket { id, epoch: self.epoch }
    }

    fn try_out(&mut self, now: Instant) -> Option<Ticket> {
        if self.tickets.trial.is_some() {
            return None;
        }
        if let (State::HalfOpen, Phase::Open { cooled, .. }) = (self.state(now), &mut self.phase)
            && !std::mem::replace(cooled, true)
        {
            let (from, to) = (State::Open, State::HalfOpen);
            self.push(Transition { at: now, from, to, cause: Cause::Cooled, until: None });
        }
        let ticket = self.issue();
        self.tickets.trial = Some(ticket.id);
        Some(ticket)
    }

    fn settle_trial(&mut self, id: u64, verdict: Verdict, now: Instant) {
        match verdict {
            Verdict::Serve => {
                self.close(Some(id), Cause::Progress, now);
                self.tickets.probation = None;
                self.count(verdict, now);
            }
            Verdict::Abandon => {
                self.tickets.trial = None;
                self.tickets.abandoned += 1;
            }
            Verdict::Fail | Verdict::Out => {
                self.tickets.trial = None;
                self.tickets.abandoned = 0;
                self.count(verdict, now);
                // One that was let through before the cooldown's end tells nothing that is not known.
                if let (State::HalfOpen, Phase::Open { cause, .. }) = (self.state(now), self.phase) {
                    self.reopen(cause, now);
                }
            }
        }
    }

    fn count(&mut self, verdict: Verdict, now: Instant) {
        let closed = self.phase == Phase::Closed;
        for counts in [self.window.at(now), &mut self.calm.counts] {
            match verdict {
                Verdict::Serve => counts.served += 1,
                Verdict::Fail | Verdict::Out => counts.failed += 1,
                Verdict::Abandon => {}
            }
        }
        match verdict {
            Verdict::Serve => self.row = 0,
            Verdict::Fail | Verdict::Out if closed => self.row += 1,
            _ => {}
        }
    }

    fn time(&mut self, slow: bool, now: Instant) {
        for counts in [self.window.at(now), &mut self.calm.counts] {
            counts.timed += 1;
            counts.slow += u32::from(slow);
        }
    }

    /// Opens the circuit if a signal says so.
    fn judge(&mut self, now: Instant) {
        if self.phase != Phase::Closed || self.forced.is_some() {
            return;
        }
        let counts = self.window.counts(now);
        let decided = counts.served + counts.failed;
        if self.policy.consecutive != 0 && self.policy.consecutive <= self.row {
            self.trip(Cause::Consecutive, now);
        } else if self.policy.suffices(decided) && self.policy.error_rate < share(counts.failed, decided) {
            self.trip(Cause::ErrorRate, now);
        } else if self.policy.suffices(counts.timed)
            && counts.is_slow()
            && window::BUCKETS / 2 <= self.window.slow_buckets(now)
        {
            self.habituate();
            self.trip(Cause::Latency, now);
        } else {
            self.soothe(now);
        }
    }

    /// After a whole window with samples enough: takes the cooldown back if it was healthy, and learns what is usual.
    fn soothe(&mut self, now: Instant) {
        let Calm { since, counts, first_token } = &self.calm;
        let decided = counts.served + counts.failed;
        if now.saturating_duration_since(*since) < self.policy.window || !self.policy.suffices(decided) {
            return;
        }
        let few_slow = !Counts { slow: counts.slow.saturating_mul(2), ..*counts }.is_slow();
        if share(counts.failed, decided) < self.policy.error_rate / 2.0 && few_slow {
            self.level = None;
        }
        if let Some(p95) = first_token.percentile(95.0).filter(|_| self.policy.suffices(decided)) {
            self.learned = Some(match self.learned {
                Some(usual) if usual < p95 => usual + (p95 - usual).min(usual) / SLOWLY,
                Some(usual) => (usual + p95) / 2,
                None => p95,
            });
        }
        self.calm = Calm::new(now);
    }

    /// A target that stays slower has a new normal: each trip moves the learned baseline towards it.
    fn habituate(&mut self) {
        self.learned = self.learned.map(|usual| usual + usual / SLOWLY);
    }

    /// Opens the closed circuit: for longer, if it closed only just now.
    fn trip(&mut self, cause: Cause, now: Instant) {
        let relapse = self.closed_at.is_some_and(|at| now.saturating_duration_since(at) < self.policy.window);
        self.open(cause, cause, relapse, now);
    }

    /// Opens it again after a trial, for longer. `cause` is what opened it first.
    fn reopen(&mut self, cause: Cause, now: Instant) {
        self.open(cause, Cause::TrialFailed, true, now);
    }

    fn open(&mut self, cause: Cause, told: Cause, longer: bool, now: Instant) {
        if self.forced.is_some() {
            return;
        }
        let from = self.state(now);
        let cap = self.policy.cap(cause);
        let level = match self.level {
            None => self.policy.cooldown,
            Some(level) if longer => level.max(level.saturating_mul(2).min(cap)),
            Some(level) => level,
        };
        self.level = Some(level);
        let wait = level.min(cap).mul_f64(1.0 + JITTER * unit(self.seeds.draw()));
        let until = now + wait;
        self.phase = Phase::Open { until, cause, cooled: false };
        self.epoch += 1;
        self.row = 0;
        self.tickets.trial = None;
        self.tickets.probation = None;
        self.note(from, told, Some(until), now);
    }

    fn close(&mut self, by: Option<u64>, cause: Cause, now: Instant) {
        let from = self.state(now);
        let opened_for = match self.phase {
            Phase::Open { cause, .. } => cause,
            Phase::Closed => Cause::Consecutive,
        };
        self.phase = Phase::Closed;
        self.closed_at = Some(now);
        self.clean(now);
        self.tickets.probation = by.map(|id| (id, opened_for));
        self.note(from, cause, None, now);
    }

    /// Starts afresh: what was counted and who was under way says nothing about what comes.
    fn clean(&mut self, now: Instant) {
        self.epoch += 1;
        self.row = 0;
        self.window.clear();
        self.calm = Calm::new(now);
        self.tickets.trial = None;
        self.tickets.probation = None;
        self.tickets.abandoned = 0;
    }

    fn note(&mut self, from: State, cause: Cause, until: Option<Instant>, now: Instant) {
        let to = self.state(now);
        if from != to {
            self.push(Transition { at: now, from, to, cause, until });
        }
    }

    fn push(&mut self, transition: Transition) {
        if self.log.len() == LOG {
            self.log.pop_front();
        }
        self.log.push_back(transition);
    }
}

// === helpers ===

fn share(part: u32, whole: u32) -> f64 {
    f64::from(part) / f64::from(whole.max(1))
}

/// The jitter lengthens a cooldown by at most this part: replicas must not try all at once, and none too early.
const JITTER: f64 = 0.2;

/// So many trials in a row that say nothing, and the next is not raced.
const ABANDONED_TRIALS: u32 = 2;

/// While one tries, another turn may hope so long from now: a first token is usually there by then.
const TRIAL_PATIENCE: Duration = Duration::from_secs(1);

/// No multiple of a baseline below this is slow: a few hundred milliseconds more hurt nobody.
const LATENCY_FLOOR: Duration = Duration::from_millis(250);

/// The learned baseline follows slower times by at most this part of itself a window: what doubles within minutes is
/// noticed, what changes over hours is the new normal.
const SLOWLY: u32 = 8;

/// Changes of state that are kept for the caller.
pub const LOG: usize = 16;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
