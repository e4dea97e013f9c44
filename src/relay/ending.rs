//! How a turn and its attempts end.

use super::journal::End;
use super::{Action, AttemptId, Phase, Relay};
use crate::event::{Event, Finish, Step, Usage};
use crate::failure::{Failure, Kind, Stage};
use crate::routing::plan::State;
use smallvec::SmallVec;
use std::time::{Duration, Instant};

/// How a turn ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Every choice has finished.
    Complete(Box<Usage>),
    /// It could not be finished.
    Failed(Box<Fault>),
    /// It was hung up; nothing more is told.
    Interrupted(Why),
}

/// Why a turn could not be finished.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Why nobody goes on.
    pub ending: Ending,
    /// The first real failure, whatever came after it; `None` if there was none.
    pub cause: Option<Failure>,
}

/// Why nobody goes on with a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The first real failure is about the request itself, and nobody served it.
    Told,
    /// Every candidate has failed or cannot serve.
    Exhausted,
    /// What was told cannot be continued by anybody.
    NotContinuable,
    /// The time is over.
    Deadline,
    /// The answer is over the limit.
    TooLong,
    /// The turn was hung up by the gateway.
    HungUp(Why),
}

/// Why a turn was hung up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The client is gone.
    ClientGone,
    /// The gateway shuts down.
    Drain,
    /// A newer turn of the same conversation took its place.
    Superseded,
    /// All turns together hold more than they may, and this one held the most.
    NoRoom,
}

// === impl Relay ===

impl Relay {
    /// The client's limit counts over all legs; a later leg was given some tokens more, for the anchor.
    pub(super) fn over_the_clients_limit(&self) -> bool {
        self.journal.splices > 0 && self.policy.max_tokens.is_some_and(|max| self.turn.tokens() >= max)
    }

    pub(super) fn finish_at_limit(&mut self, now: Instant) {
        self.finishes.clear();
        self.finishes.push(Event::Finish { choice: 0, reason: Finish::Length, stop_sequence: None });
        self.complete(now);
    }

    /// Keeps finishes back: they are provisional until the attempt ends or the wait for it does. What follows the finish
    /// of its choice makes it none, and of several the last holds.
    pub(super) fn hold_finishes(&mut self, told: &mut Step) {
        let finish = |event: &Event| matches!(event, Event::Finish { .. });
        if self.finishes.is_empty() && !told.events.iter().any(finish) {
            return;
        }
        let (finishes, rest): (SmallVec<[Event; 2]>, _) =
            std::mem::take(&mut told.events).into_iter().partition(finish);
        told.events = rest;
        let goes_on = |held: &Event| told.events.iter().any(|e| e.is_progress() && e.choice() == held.choice());
        self.finishes.retain(|held| !goes_on(held));
        for finish in finishes {
            self.finishes.retain(|held| held.choice() != finish.choice());
            self.finishes.push(finish);
        }
    }

    /// Whether every choice has finished, as far as is known.
    pub(super) fn is_finished(&self) -> bool {
        u32::try_from(self.finishes.len()).is_ok_and(|finished| finished >= self.policy.choices)
    }

    pub(super) fn complete(&mut self, now: Instant) {
        let step = Step { events: std::mem::take(&mut self.finishes).into_iter().collect(), raw: None };
        if !step.events.is_empty() && self.turn.absorb(&step).is_ok() {
            if let Some(leader) = self.leader.filter(|_| self.journal.first_told.is_none()) {
                self.journal.told(leader, &step, now);
            }
            self.actions.push_back(Action::Emit(step));
        }
        if let Some(id) = self.leader.take() {
            self.end(id, End::Ok, true, now);
        }
        self.drop_all(End::Superseded, now);
        let usage = self.journal.usage(&self.policy, &self.turn);
        self.close(Outcome::Complete(Box::new(usage)), now);
    }

    pub(super) fn fault(&mut self, ending: Ending, now: Instant) {
        self.drop_all(End::Cancelled, now);
        let cause = self.journal.first_cause().cloned();
        self.close(Outcome::Failed(Box::new(Fault { ending, cause })), now);
    }

    pub(super) fn close(&mut self, outcome: Outcome, now: Instant) {
        self.phase = Phase::Over;
        self.journal.close(&outcome, now);
        self.actions.push_back(Action::Close(outcome));
    }

    pub(super) fn drop_all(&mut self, end: End, now: Instant) {
        while let Some(runner) = self.runners.first() {
            self.end(runner.id, end, false, now);
        }
        self.leader = None;
    }

    pub(super) fn supersede(&mut self, id: AttemptId, now: Instant) {
        if self.leader == Some(id) && !self.turn.is_silent() {
            let last = self.runners.iter().find(|r| r.id == id).and_then(|r| r.clocks.progress);
            self.journal.overtaken(id, last.map_or(Duration::ZERO, |last| now.saturating_duration_since(last)));
        }
        if let Some(seat) = self.end(id, End::Superseded, false, now) {
            self.plan.seat_mut(seat).state = State::Superseded;
        }
    }

    /// Takes an attempt away, however it ended; gives its seat.
    pub(super) fn end(&mut self, id: AttemptId, end: End, counts: bool, now: Instant) -> Option<usize> {
        let index = self.runners.iter().position(|r| r.id == id)?;
        let runner = self.runners.remove(index);
        self.journal.seam(id, runner.sieve.decided());
        if self.leader == Some(id) {
            self.leader = None;
            self.finishes.clear();
        }
        self.journal.ended(id, end, now);
        self.actions.push_back(Action::Drop { id, end, counts });
        Some(runner.seat)
    }

    pub(super) fn on_deadline(&mut self, now: Instant) {
        let stalled: Vec<(AttemptId, Kind)> =
            self.runners.iter().filter_map(|r| Some((r.id, self.is_half_stalled(r, now)?))).collect();
        if matches!(self.phase, Phase::Finishing { .. }) {
            return self.complete(now);
        }
        for (id, kind) in stalled {
            let failure =
                Failure::new(kind, Stage::Streaming).saying("the answer was silent when the turn's time was over");
            let Some(seat) = self.runners.iter().find(|r| r.id == id).map(|r| r.seat) else { continue };
            let counts = !self.plan.seat(seat).counted;
            self.plan.seat_mut(seat).counted = true;
            self.journal.failed(id, &failure);
            self.end(id, End::Failed(kind), counts, now);
        }
        self.fault(Ending::Deadline, now);
    }
}
