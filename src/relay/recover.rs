//! What happens after an attempt has failed: who is asked next, when, and with what.

use super::calls::Replay;
use super::clocks::Clocks;
use super::journal::{Cause, End};
use super::sieve::Sieve;
use super::waits::Limit;
use super::{Action, AttemptId, Ending, Open, Phase, Relay, Runner};
use crate::event::{Event, Finish, Step};
use crate::failure::{Declined, Disposition, Failure, Kind, Remedy, Stage, Verdict};
use crate::routing::plan::{Heal, State};
use crate::routing::{Continuation, Delivery, Empty, History, Target};
use crate::turn::resume::{Anchor, Carry, Continue, How, Origin};
use crate::turn::seam::Seam;
use std::sync::Arc;
use std::time::Instant;

impl Relay {
    /// An attempt has failed, by its own word or by a clock.
    pub(super) fn on_failed(&mut self, id: AttemptId, failure: &Failure, now: Instant) {
        if matches!(self.phase, Phase::Finishing { .. }) && self.leader == Some(id) {
            // Every choice has finished: whatever comes after that changes nothing.
            return self.complete(now);
        }
        let Some(seat) = self.runners.iter().find(|r| r.id == id).map(|r| r.seat) else { return };
        let led = self.leader == Some(id);
        self.journal.failed(id, failure);
        let counts = failure.verdict() != Verdict::Abandon && !self.plan.seat(seat).counted;
        self.plan.seat_mut(seat).counted |= counts;
        self.end(id, End::Failed(failure.kind), counts, now);
        self.plan.seat_mut(seat).paid = false;
        self.plan.seat_mut(seat).state = State::Failed;
        if self.apply_remedy(seat, failure) {
            self.journal.forgive(id);
            return self.open(seat, self.again(), now);
        }
        self.note_healing(seat, failure, now);
        let replace = !matches!(failure.kind.disposition(), Disposition::Tell | Disposition::Opinion);
        match (self.leader, self.runners.first().map(|r| r.id)) {
            (Some(leader), _) if !led => self.challenger_failed(leader, now),
            (_, Some(other)) => self.on_rival_failed(other, replace, now),
            _ => self.recover(seat, failure, now),
        }
    }

    /// An attempt is not made, or not paid for: it was no try.
    pub(super) fn on_declined(&mut self, id: AttemptId, declined: &Declined, now: Instant) {
        if let Phase::Waiting { seat, .. } = self.phase
            && id.0 == self.next_id
        {
            self.phase = Phase::Running;
            self.plan.refund(seat);
            return self.next_or_end(now);
        }
        let Some(seat) = self.runners.iter().find(|r| r.id == id).map(|r| r.seat) else { return };
        self.journal.declined(id, declined, now);
        self.end(id, End::Failed(Kind::Unavailable), false, now);
        self.plan.give_back(seat);
        let unpaid = *declined == Declined::Budget;
        // Nobody failed where there is no budget: the suspicion cannot be acted on.
        self.plan.seat_mut(seat).state = if unpaid { State::Fresh } else { State::Failed };
        if unpaid {
            self.race.deny();
        }
        if let Declined::Resting { until, .. } | Declined::Crowded { until } = declined {
            let waits = until.saturating_duration_since(now) <= self.policy.retry_after_cap;
            self.plan.seat_mut(seat).heals = waits.then_some(Heal { at: *until, named: true });
        }
        match (self.leader, self.runners.first().map(|r| r.id)) {
            (Some(leader), _) => self.challenger_failed(leader, now),
            (None, Some(other)) => self.on_rival_failed(other, !unpaid, now),
            (None, None) => match declined {
                Declined::Resting { until, renewed } if self.turn.is_silent() => {
                    let wait = until.saturating_duration_since(now);
                    self.wait_or_switch(seat, &Limit::resting(wait, *renewed), now);
                }
                _ => self.next_or_end(now),
            },
        }
    }

    /// One of two attempts has failed before either led, or a challenged leader has: the other one goes on.
    fn on_rival_failed(&mut self, other: AttemptId, replace: bool, now: Instant) {
        let Some(runner) = self.runners.iter_mut().find(|r| r.id == other) else { return };
        if let Some(parked) = runner.parked.take() {
            if self.is_unwanted(&parked) {
                return self.on_failed(other, &empty(), now);
            }
            self.crown(other, now);
            return self.deliver(other, parked, now);
        }
        if let Some(seat) = self.next_seat().filter(|_| replace && self.turn.is_silent()) {
            self.open(seat, Cause::Fallback, now);
        }
    }

    /// Whether `told` ends an answer of nothing, or of reasoning only, and the level would rather ask somebody else.
    pub(super) fn is_unwanted(&self, told: &Step) -> bool {
        self.policy.level.empty == Empty::Next
            && self.policy.choices == 1
            && self.turn.is_blank()
            && says_nothing(told)
            && self.next_seat().is_some()
    }

    /// Nobody is open any more.
    fn recover(&mut self, seat: usize, failure: &Failure, now: Instant) {
        let silent = self.turn.is_silent();
        if self.journal.is_settled() {
            return self.give_up(now);
        }
        match failure.kind.disposition() {
            Disposition::Tell => self.give_up(now),
            // A continuation has a form of its own that a target may refuse; that says nothing of the request.
            Disposition::Opinion if silent => self.ask_another(seat, now),
            Disposition::Again if silent => {
                let pause = self.short_pause();
                if self.may_retry(failure) && pause < self.plan.seat(seat).patience(now) {
                    self.plan.take_retry(seat);
                    self.wait(seat, pause, now);
                    self.pay();
                } else {
                    self.go_on(seat, failure, now);
                }
            }
            Disposition::WaitOrSwitch if silent => self.wait_or_switch(seat, &Limit::told(failure), now),
            Disposition::Larger => {
                let window = self.plan.seat(seat).candidate.target.context_window;
                let larger = |w: Option<u64>| w.is_none() || window.is_none() || w > window;
                match self.plan.next_where(|t| larger(t.context_window) && self.serves(t)) {
                    Some(next) => self.open(next, self.cause(), now),
                    None => self.give_up(now),
                }
            }
            Disposition::Next
            | Disposition::Opinion
            | Disposition::Again
            | Disposition::WaitOrSwitch
            | Disposition::Nothing => {
                if self.policy.level.same_first && self.may_rescue(seat, failure) {
                    return self.rescue(seat, now);
                }
                self.go_on(seat, failure, now);
            }
        }
    }

    /// A second opinion on a request that `seat` says is wrong: of another vendor, if there is one.
    fn ask_another(&mut self, seat: usize, now: Instant) {
        let vendor = Arc::clone(&self.plan.seat(seat).candidate.target.issuer);
        let elsewhere = self.plan.next_where(|t| self.serves(t) && t.issuer != vendor);
        match elsewhere.or_else(|| self.next_seat()) {
            Some(next) => self.open(next, self.cause(), now),
            None => self.give_up(now),
        }
    }

    /// Nobody else can be asked: the client is told, unless waiting may heal what went wrong.
    pub(super) fn give_up(&mut self, now: Instant) {
        if self.journal.is_about_the_request() {
            self.fault(Ending::Told, now);
        } else if self.journal.is_settled() || !self.wait_for_healing(now) {
            self.fault(Ending::Exhausted, now);
        }
    }

    /// The next target, if there is one.
    pub(super) fn next_or_end(&mut self, now: Instant) {
        if !self.is_continuable() {
            return self.fault(Ending::NotContinuable, now);
        }
        match self.next_seat() {
            Some(next) => self.open(next, self.cause(), now),
            None => self.give_up(now),
        }
    }

    /// The next target; or, where nobody is left, the same one once more for the rest.
    fn go_on(&mut self, seat: usize, failure: &Failure, now: Instant) {
        if !self.is_continuable() {
            return self.fault(Ending::NotContinuable, now);
        }
        if let Some(next) = self.next_seat() {
            self.open(next, self.cause(), now);
        } else if failure.kind == Kind::SeamRejected && self.may_turn(seat) {
            let seat_mut = self.plan.seat_mut(seat);
            (seat_mut.turned, seat_mut.instead) = (true, seat_mut.candidate.other);
            self.open(seat, Cause::Continuation, now);
        } else if self.may_rescue(seat, failure) {
            self.rescue(seat, now);
        } else {
            self.give_up(now);
        }
    }

    fn cause(&self) -> Cause {
        if self.turn.is_silent() { Cause::Fallback } else { Cause::Continuation }
    }

    /// Why the same target is asked once more.
    pub(super) fn again(&self) -> Cause {
        if self.turn.is_silent() { Cause::Retry } else { Cause::Continuation }
    }

    /// Whether the target may be asked to continue in the other way, because what it said in the one fits nowhere.
    pub(super) fn may_turn(&self, seat: usize) -> bool {
        let seat = self.plan.seat(seat);
        let joins = self.turn.choices()[0].calls.is_empty() && !self.policy.structured;
        joins && !self.turn.is_blank() && !seat.turned && seat.candidate.other.is_some() && self.plan.may_open()
    }

    fn may_rescue(&self, seat: usize, failure: &Failure) -> bool {
        let broke = failure.kind.is_transport() && failure.kind != Kind::FirstTokenTimeout;
        let stalled_early = failure.kind == Kind::Stalled && self.turn.is_silent();
        let seat = self.plan.seat(seat);
        let may = self.may_retry(failure) || (!self.turn.is_silent() && self.plan.has_retry());
        broke && !stalled_early && may && !seat.rescued && self.goes_on(&seat.candidate.target)
    }

    /// Whether the target may be asked again on a schedule of our own.
    fn may_retry(&self, failure: &Failure) -> bool {
        self.plan.has_retry() && !failure.no_retry
    }

    fn rescue(&mut self, seat: usize, now: Instant) {
        self.plan.take_retry(seat);
        self.plan.seat_mut(seat).rescued = true;
        if self.turn.is_silent() {
            let pause = self.short_pause();
            self.wait(seat, pause, now);
            self.pay();
        } else {
            self.open(seat, Cause::Continuation, now);
        }
    }

    /// Does what the target's refusal suggests, once each. Whether the target may be asked again at once.
    fn apply_remedy(&mut self, seat: usize, failure: &Failure) -> bool {
        let Some(remedy) = &failure.remedy else { return false };
        let continuing = !self.turn.is_blank();
        let changed = match remedy {
            Remedy::Instruct => {
                let seat = self.plan.seat_mut(seat);
                let changes = continuing && seat.how() == How::Prefill && !seat.turned;
                if changes {
                    seat.instead = Some(How::Instruct);
                }
                changes
            }
            // What is asked cannot be left out of the question.
            Remedy::Lacks(modality) if self.policy.asked_in.has(*modality) => false,
            remedy => self.plan.seat_mut(seat).form.learn(remedy),
        };
        changed && self.plan.repair(seat)
    }

    /// Whether what was told can be gone on from.
    pub(super) fn is_continuable(&self) -> bool {
        if self.turn.is_blank() {
            return true;
        }
        let choice = &self.turn.choices()[0];
        let whole = self.policy.continuable && !self.turn.awaits_a_result();
        whole && choice.refusal.is_empty() && choice.calls.iter().all(|call| !call.closed)
    }

    /// Who can go on from what was told.
    pub(super) fn next_seat(&self) -> Option<usize> {
        self.plan.next_where(|target| self.serves(target))
    }

    /// Whether `target` can go on from what was told.
    pub(super) fn serves(&self, target: &Target) -> bool {
        let fits = if self.turn.is_bound() {
            self.journal.issuer().is_some_and(|issuer| *target.issuer == *issuer)
        } else {
            !self.policy.structured || self.turn.is_blank() || target.deterministic
        };
        fits && self.goes_on(target)
    }

    /// Whether `target` may be asked for more of this turn: one that only starts anew may not, once something visible
    /// was told.
    fn goes_on(&self, target: &Target) -> bool {
        self.turn.is_blank() || target.continuation != Continuation::Restart
    }

    // --- opening ---

    pub(super) fn open(&mut self, seat: usize, cause: Cause, now: Instant) {
        if self.nothing_is_left() {
            return self.finish_at_limit(now);
        }
        let id = AttemptId(self.next_id);
        self.next_id += 1;
        let patience = self.plan.patience(seat, now);
        let (carry, sieve) = self.carry(seat);
        self.plan.open(seat);
        let target = Arc::clone(&self.plan.seat(seat).candidate.target);
        self.journal.open(id, &target, cause, &carry, now);
        self.runners.push(Runner { id, seat, clocks: Clocks::default(), sieve, parked: None, ended: false });
        self.actions.push_back(Action::Open(Box::new(Open {
            id,
            seat,
            target,
            carry,
            cause,
            patience,
            delivered: !self.turn.is_silent(),
            others: self.next_seat().is_some(),
        })));
    }

    /// The client's limit is used up, so a further leg has nothing to say.
    fn nothing_is_left(&self) -> bool {
        !self.turn.is_blank() && self.policy.max_tokens.is_some_and(|max| self.journal.visible_tokens() >= max)
    }

    fn carry(&self, index: usize) -> (Carry, Sieve) {
        let seat = self.plan.seat(index);
        let level = &self.policy.level;
        let mut sieve = Sieve::fresh(level.tool_calls, self.policy.max_turn).muted(!self.turn.is_silent());
        let text = self.turn.text();
        let calls = &self.turn.choices()[0].calls;
        if !calls.is_empty() {
            sieve = sieve.replaying(Replay::of(calls));
        }
        let blank = text.trim_start().is_empty();
        let origin = match self.policy.structured {
            // An object cannot be joined: it is told again from the start and what is known of it is passed over.
            true if !text.is_empty() => {
                sieve = sieve.forwarding(text.to_owned());
                Origin::Fresh
            }
            _ if blank => {
                if !text.is_empty() {
                    sieve = sieve.with_seam(Seam::trimmed(text));
                }
                Origin::Fresh
            }
            _ => {
                let delivered: Arc<str> = text.into();
                let anchor = Anchor::of(&delivered);
                let how = seat.how();
                sieve = sieve.with_seam(match how {
                    // Nothing vouches that a target that was turned takes what stands last for its own beginning.
                    How::Prefill if seat.turned => Seam::anchored(Arc::clone(&delivered), &anchor, level.seam_window),
                    How::Instruct => Seam::anchored(Arc::clone(&delivered), &anchor, level.seam_window),
                    How::Prefill if seat.candidate.echoes => Seam::echo(Arc::clone(&delivered)),
                    How::Prefill => Seam::trimmed(&text[text.trim_end().len()..]),
                });
                Origin::Continue(Continue { delivered, anchor, how, tokens: self.journal.visible_tokens() })
            }
        };
        // Of several answers at once, no single one could be asked for again.
        let one = self.policy.choices == 1;
        if self.policy.structured && one && level.structured == Delivery::Hold && text.is_empty() {
            sieve = sieve.checking();
        }
        let carry = Carry {
            origin,
            form: seat.form.clone(),
            last_message_only: level.history == History::LastUserMessage && index > 0,
        };
        (carry, sieve)
    }
}

// === helpers ===

/// Whether an answer that ends with `step`, and of which nothing was told before, is none.
fn says_nothing(step: &Step) -> bool {
    let ends = |e: &Event| matches!(e, Event::Finish { reason, .. } if !matches!(reason, Finish::ContentFilter | Finish::Pause));
    let blank = |e: &Event| match e {
        Event::Text { text, .. } => text.trim().is_empty(),
        Event::Reasoning { .. } => true,
        other => ends(other) || !other.is_progress(),
    };
    step.events.iter().any(ends) && step.events.iter().all(blank)
}

/// An answer that the level does not want.
pub(super) fn empty() -> Failure {
    Failure::new(Kind::EmptyTurn, Stage::Streaming).saying("the answer is empty")
}
