//! One turn over however many attempts it takes: attempts race for what the client hears next.
//!
//! Sequential fallback, hedged requests, mid-stream failover, speculative continuation and slow-stream rescue are
//! one mechanism with different triggers. [`Relay`] is that mechanism as a value: it takes what happened
//! (`handle_*`) and the current time, and gives what to do (`poll_*`). It holds no clock, no randomness, no I/O, and
//! knows neither HTTP nor JSON, so every guarantee of the product is a property that a test can try with millions of
//! random schedules:
//!
//! - what was emitted is a prefix of one coherent turn, each character once, in order;
//! - deltas of two attempts never interleave: there is one leader;
//! - an attempt that is not needed any more is dropped before the winner's second event is emitted, and every
//!   attempt that was opened is dropped exactly once;
//! - attempts are bounded in number, two are open at most, and none outlives the deadline;
//! - the end is the model's own finish, or an error: never an invented one.
//!
//! Call the `handle_*` methods in the order in which things happened, then [`Relay::poll_action`] until it gives
//! `None`, then [`Relay::poll_timeout`].

mod calls;
mod checks;
mod clocks;
mod ending;
mod footprint;
pub mod journal;
mod object;
mod policy;
mod race;
mod recover;
mod sieve;
mod structure;
mod waits;

use crate::event::{Event, Signal, Step};
use crate::failure::{Failure, Kind, Stage};
use crate::routing::Target;
use crate::routing::plan::{Candidate, Plan};
use crate::turn::Turn;
use crate::turn::resume::Carry;
pub use checks::Checked;
use clocks::Clocks;
pub use ending::{Ending, Fault, Outcome, Why};
use journal::{Cause, End, Journal};
pub use policy::Policy;
use race::Race;
use sieve::Sieve;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The state of one turn.
pub struct Relay {
    policy: Policy,
    plan: Plan,
    turn: Turn,
    runners: SmallVec<[Runner; 2]>,
    leader: Option<AttemptId>,
    /// The leader's finishes, which are not told yet; one a choice.
    finishes: SmallVec<[Event; 1]>,
    phase: Phase,
    blocked: Option<Instant>,
    race: Race,
    journal: Journal,
    actions: VecDeque<Action>,
    next_id: u32,
}

/// Which attempt of the turn; counts from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptId(pub u32);

/// What to do.
#[derive(Clone, Debug)]
pub enum Action {
    /// Open an attempt. It is an ask: the answer may be [`Signal::Declined`], and then it was no try.
    Open(Box<Open>),
    /// Pay for another try at the same target, which comes after a pause that is ours and not the provider's. It is an
    /// ask too: the answer may be [`Declined::Budget`](crate::failure::Declined::Budget), and silence is consent.
    Pay {
        /// The attempt that will be opened.
        id: AttemptId,
    },
    /// Drop an attempt, closing what is still open of it, and settle it. Comes exactly once for each that was opened.
    Drop {
        /// Which.
        id: AttemptId,
        /// How it ended.
        end: End,
        /// It counts for the health of its target; `false` if the turn has counted against it before.
        counts: bool,
    },
    /// Another attempt leads from here on, after something was told.
    Spliced {
        /// The new leader.
        id: AttemptId,
    },
    /// Say whether this is the structured answer that was asked for, by [`Relay::handle_checked`]. Until then the attempt
    /// is neither told nor silent.
    Check {
        /// Whose.
        id: AttemptId,
        /// The whole answer.
        text: Arc<String>,
    },
    /// Tell the client.
    Emit(Step),
    /// The turn is over; nothing follows.
    Close(Outcome),
}

/// An attempt to open.
#[derive(Clone, Debug)]
pub struct Open {
    /// Which.
    pub id: AttemptId,
    /// The index of the candidate.
    pub seat: usize,
    /// Whom to ask.
    pub target: Arc<Target>,
    /// What to do.
    pub carry: Carry,
    /// Why it is opened.
    pub cause: Cause,
    /// How long it may queue before it is sent.
    pub patience: Duration,
    /// Something was told to the client already.
    pub delivered: bool,
    /// Another candidate could serve.
    pub others: bool,
}

/// One open attempt.
#[derive(Debug)]
struct Runner {
    id: AttemptId,
    seat: usize,
    clocks: Clocks,
    sieve: Sieve,
    /// An empty finish that waits for the other attempt to do better.
    parked: Option<Step>,
    /// The stream has ended while parked.
    ended: bool,
}

/// Where the turn stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Attempts are open.
    Running,
    /// Nothing is open until then; the seat is asked again.
    Waiting { seat: usize, until: Instant },
    /// Every choice has finished; usage and terminator may follow until then.
    Finishing { until: Instant },
    /// Closed.
    Over,
}

// === impl Relay ===

impl Relay {
    /// A turn over `candidates`, first choice first; without any it fails at once.
    pub fn new(policy: Policy, candidates: Vec<Candidate>, now: Instant) -> Self {
        let plan = Plan::new(candidates, policy.level.retries);
        let mut relay = Self {
            turn: Turn::new(policy.max_turn, policy.whole),
            race: Race::new(policy.seed),
            journal: Journal::new(now),
            plan,
            policy,
            runners: SmallVec::new(),
            leader: None,
            finishes: SmallVec::new(),
            phase: Phase::Running,
            blocked: None,
            actions: VecDeque::new(),
            next_id: 0,
        };
        match relay.plan.next() {
            Some(seat) => relay.open(seat, Cause::First, now),
            None => relay.fault(Ending::Exhausted, now),
        }
        relay
    }

    /// Something happened to an attempt.
    pub fn handle_signal(&mut self, id: AttemptId, signal: Signal, now: Instant) {
        if let Signal::Declined(declined) = signal {
            return self.on_declined(id, &declined, now);
        }
        let Some(index) = self.runners.iter().position(|r| r.id == id) else { return };
        match signal {
            Signal::Queued | Signal::Left(_) => {}
            Signal::Sent => {
                let seat = self.runners[index].seat;
                let first = self.plan.sent(seat, now);
                self.runners[index].clocks.sent(first, now);
                self.journal.sent(id, now);
            }
            Signal::Opened => self.runners[index].clocks.bytes(now),
            Signal::Step(step) => self.on_step(index, step, now),
            Signal::Ended => self.on_ended(index, now),
            // Its finish was heard: whatever comes after that changes nothing.
            Signal::Failed(_) if self.runners[index].sieve.is_asking() => self.runners[index].ended = true,
            Signal::Failed(failure) => self.on_failed(id, &failure, now),
            Signal::Declined(_) => {}
        }
    }

    /// The rules of the turn.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The client does not take bytes: nobody is read, so no silence counts until [`Self::handle_unblocked`].
    pub fn handle_blocked(&mut self, now: Instant) {
        self.blocked.get_or_insert(now);
    }

    /// The client takes bytes again.
    pub fn handle_unblocked(&mut self, now: Instant) {
        if let Some(since) = self.blocked.take() {
            let pause = now.saturating_duration_since(since);
            for runner in &mut self.runners {
                runner.clocks.pause(pause);
            }
            self.race.pause(pause);
        }
    }

    /// Time has passed; at the latest call it when [`Self::poll_timeout`] says.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.phase == Phase::Over {
            return;
        }
        if now >= self.deadline() {
            return self.on_deadline(now);
        }
        match self.phase {
            Phase::Finishing { until } if now >= until => return self.complete(now),
            Phase::Waiting { seat, until } if now >= until => {
                self.phase = Phase::Running;
                return self.open(seat, self.again(), now);
            }
            _ => {}
        }
        if self.blocked.is_some() || self.phase != Phase::Running {
            return;
        }
        while let Some((id, kind)) = self.expired(now) {
            let failure = Failure::new(kind, Stage::Streaming).saying(match kind {
                Kind::FirstTokenTimeout => "no answer within the first-token limit",
                _ => "the answer fell silent",
            });
            self.on_failed(id, &failure, now);
            if self.phase != Phase::Running {
                return;
            }
        }
        self.start_challengers(now);
    }

    /// The turn is not wanted any more.
    pub fn handle_hangup(&mut self, why: Why, now: Instant) {
        if self.phase == Phase::Over {
            return;
        }
        match why {
            Why::ClientGone => {
                self.drop_all(End::Cancelled, now);
                self.close(Outcome::Interrupted(why), now);
            }
            Why::Drain | Why::Superseded | Why::NoRoom => self.fault(Ending::HungUp(why), now),
        }
    }

    /// What to do next; `None` when there is nothing until something happens.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to call [`Self::handle_timeout`]; `None` once the turn is over.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.phase == Phase::Over {
            return None;
        }
        let mut at = self.deadline();
        match self.phase {
            Phase::Finishing { until } | Phase::Waiting { until, .. } => at = at.min(until),
            Phase::Running if self.blocked.is_none() => {
                for runner in &self.runners {
                    if let Some((due, _)) = self.due(runner) {
                        at = at.min(due);
                    }
                }
                if let Some(due) = self.challenge_due() {
                    at = at.min(due);
                }
            }
            Phase::Running | Phase::Over => {}
        }
        Some(at)
    }

    /// The account of the turn.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// What the client was told.
    pub fn turn(&self) -> &Turn {
        &self.turn
    }

    /// When the turn is over whatever happens: at its deadline, or at `first_word` while the client has seen nothing.
    fn deadline(&self) -> Instant {
        let first_word = self.policy.level.timeouts.first_word.filter(|_| self.turn.is_blank());
        self.journal.started + first_word.unwrap_or(Duration::MAX).min(self.policy.deadline)
    }

    // --- what attempts say ---

    fn on_step(&mut self, index: usize, step: Step, now: Instant) {
        let silent = self.turn.is_silent();
        let progress = step.is_progress();
        let runner = &mut self.runners[index];
        let id = runner.id;
        runner.clocks.step(&step, progress, now);
        self.journal.step(id, &step, progress, now);
        if progress {
            // Should this target be asked again in this turn, its first token is another one.
            let seat = self.runners[index].seat;
            self.plan.seat_mut(seat).first_sent = None;
        }
        let runner = &self.runners[index];
        if runner.parked.is_some() {
            return;
        }
        if matches!(self.phase, Phase::Finishing { .. }) {
            // A finish is the last word only if nothing follows it.
            if self.leader != Some(id) || !progress {
                return;
            }
            self.phase = Phase::Running;
        }
        let hold = self.plan.next().is_some() || self.plan.has_retry();
        let told = match self.runners[index].sieve.sift(step, hold) {
            Ok(told) => told,
            Err(failure) => return self.on_failed(id, &failure, now),
        };
        if let Some(text) = self.runners[index].sieve.asks() {
            self.actions.push_back(Action::Check { id, text });
        }
        if self.runners[index].sieve.guessed() {
            self.journal.guessed(id);
            let seat = self.runners[index].seat;
            if self.runners.len() > 1 || self.next_seat().is_some() || self.may_turn(seat) {
                let failure = Failure::new(Kind::SeamRejected, Stage::Joining)
                    .saying("the continuation meets the text inside a word and does not repeat its end");
                return self.on_failed(id, &failure, now);
            }
        }
        let contested = self.runners.iter().any(|r| r.id != id && r.parked.is_none());
        if !contested && self.is_unwanted(&told) {
            return self.on_failed(id, &recover::empty(), now);
        }
        if silent && progress && !told.is_progress() && self.leader != Some(id) {
            // What it said is held, and nobody else has said anything.
            self.crown(id, now);
            return self.deliver(id, told, now);
        }
        self.hear(index, told, now);
    }

    /// Something of an attempt can be told.
    fn hear(&mut self, index: usize, told: Step, now: Instant) {
        let (id, silent) = (self.runners[index].id, self.turn.is_silent());
        if self.leader == Some(id) {
            return self.on_leader(id, told, now);
        }
        let contested = self.runners.iter().any(|r| r.id != id && r.parked.is_none());
        if !told.is_progress() {
            self.runners[index].sieve.keep(told);
        } else if silent && contested && is_empty_finish(&told) {
            self.runners[index].parked = Some(told);
        } else {
            self.crown(id, now);
            self.deliver(id, told, now);
        }
    }

    fn on_leader(&mut self, id: AttemptId, told: Step, now: Instant) {
        if told.events.is_empty() {
            return;
        }
        if self.stash(id, &told, now) {
            return;
        }
        if told.is_progress() && self.runners.len() > 1 {
            self.false_alarm(id, now);
        }
        self.deliver(id, told, now);
    }

    fn on_ended(&mut self, index: usize, now: Instant) {
        let runner = &mut self.runners[index];
        let id = runner.id;
        if runner.parked.is_some() || runner.sieve.is_asking() {
            runner.ended = true;
        } else if self.is_finished() && self.leader == Some(id) {
            self.complete(now);
        } else {
            self.on_failed(id, &Failure::new(Kind::Truncated, Stage::Streaming), now);
        }
    }

    // --- what the client hears ---

    /// Makes `id` the leader and drops every other attempt before anything of it is told.
    fn crown(&mut self, id: AttemptId, now: Instant) {
        let losers: SmallVec<[AttemptId; 2]> = self.runners.iter().map(|r| r.id).filter(|r| *r != id).collect();
        for loser in losers {
            self.supersede(loser, now);
        }
        self.leader = Some(id);
        self.race.led(now);
        if !self.turn.is_silent() {
            self.journal.spliced();
            self.actions.push_back(Action::Spliced { id });
        }
        let Some(runner) = self.runners.iter_mut().find(|r| r.id == id) else { return };
        let preamble = runner.sieve.take_preamble();
        if !preamble.events.is_empty() {
            self.deliver(id, preamble, now);
        }
    }

    fn deliver(&mut self, id: AttemptId, mut told: Step, now: Instant) {
        if told.events.is_empty() || self.phase == Phase::Over {
            return;
        }
        calls::own_up(&self.turn, &mut told);
        self.hold_finishes(&mut told);
        if !told.events.is_empty() {
            if self.turn.absorb(&told).is_err() {
                return self.fault(Ending::TooLong, now);
            }
            self.journal.told(id, &told, now);
            self.race.told(&told, now);
            self.actions.push_back(Action::Emit(told));
        }
        if self.is_finished() {
            self.phase = Phase::Finishing { until: now + LINGER };
            let ended = self.runners.iter().any(|r| r.id == id && r.ended);
            if ended {
                self.complete(now);
            }
        } else if self.over_the_clients_limit() {
            self.finish_at_limit(now);
        }
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay")
            .field("phase", &self.phase)
            .field("leader", &self.leader)
            .field("runners", &self.runners)
            .finish_non_exhaustive()
    }
}

// === helpers ===

/// A finish without a word before it.
fn is_empty_finish(step: &Step) -> bool {
    let mut progress = step.events.iter().filter(|e| e.is_progress()).peekable();
    progress.peek().is_some() && progress.all(|e| matches!(e, Event::Finish { .. }))
}

/// How long usage or the terminator is waited for after every choice has finished.
const LINGER: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
