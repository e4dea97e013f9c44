//! What waiting may heal: when a target that asked to be left alone, or had a bad moment, is asked again.
//!
//! While somebody else could serve, a turn waits for at most one rest, and only if that ends within the first-token limit
//! of the turn's first request: nobody waits while another candidate is idle. With nobody left, what waiting heals is
//! waited for as the retries and the deadline allow, in mid-turn too.

use super::{Action, AttemptId, Phase, Relay};
use crate::failure::{Failure, Kind, RetryAt};
use crate::health::backoff;
use crate::routing::RateLimited;
use crate::routing::plan::Heal;
use std::time::{Duration, Instant};

/// A target that wants to be left alone.
pub(super) struct Limit {
    /// For so long, if a time was named.
    wait: Option<Duration>,
    /// A rest before this one was waited for already.
    renewed: bool,
    /// It does not want to be asked again at all.
    final_word: bool,
}

// === impl Limit ===

impl Limit {
    /// A target that was not even asked, since it rests.
    pub(super) fn resting(wait: Duration, renewed: bool) -> Self {
        Self { wait: Some(wait), renewed, final_word: false }
    }

    /// A target that refused a request.
    pub(super) fn told(failure: &Failure) -> Self {
        Self { wait: told(failure), renewed: false, final_word: failure.no_retry }
    }
}

// === impl Relay ===

impl Relay {
    /// Notes whether, and when, what `seat` failed of may have healed.
    pub(super) fn note_healing(&mut self, seat: usize, failure: &Failure, now: Instant) {
        let named = told(failure);
        let wait = match failure.kind {
            _ if failure.no_retry => None,
            Kind::RateLimited | Kind::Overloaded => Some(named.unwrap_or_else(|| self.backoff(seat))),
            Kind::ServerError => Some(named.unwrap_or_else(|| self.short_pause())),
            _ => None,
        };
        let wait = wait.filter(|wait| *wait <= self.policy.retry_after_cap);
        self.plan.seat_mut(seat).heals = wait.map(|wait| Heal { at: now + wait, named: named.is_some() });
    }

    /// A target rests, or was limited, before the client was told anything.
    pub(super) fn wait_or_switch(&mut self, seat: usize, limit: &Limit, now: Instant) {
        if self.next_seat().is_none() {
            return self.give_up(now);
        }
        let left = self.plan.left_for_rests(seat, now);
        let in_time = |wait: &Duration| *wait <= self.policy.retry_after_cap && now + *wait < self.deadline();
        let wait = match self.policy.level.rate_limited {
            _ if limit.final_word => None,
            RateLimited::Switch => None,
            RateLimited::Auto => limit.wait.filter(|wait| !limit.renewed && !self.plan.rested && *wait <= left),
            RateLimited::Wait => limit.wait.or_else(|| Some(self.backoff(seat)).filter(|wait| *wait <= left)),
        };
        match wait.filter(in_time) {
            Some(wait) if self.plan.take_wait(seat, now) => {
                self.wait(seat, wait, now);
                if limit.wait.is_none() {
                    self.pay();
                }
            }
            _ => self.next_or_end(now),
        }
    }

    /// Nobody is left: waits for the target that will have healed first, if one may.
    pub(super) fn wait_for_healing(&mut self, now: Instant) -> bool {
        if !self.is_continuable() {
            return false;
        }
        let soonest =
            self.plan.soonest_healed(|target| self.serves(target)).filter(|(_, heal)| heal.at < self.deadline());
        let Some((seat, heal)) = soonest else { return false };
        if !self.plan.take_wait(seat, now) {
            return false;
        }
        let state = self.plan.seat_mut(seat);
        // It is waited for as long as it needs, so its first token has its whole time again.
        (state.heals, state.first_sent) = (None, None);
        self.wait(seat, heal.at.saturating_duration_since(now), now);
        if self.turn.is_silent() && !heal.named {
            self.pay();
        }
        true
    }

    pub(super) fn wait(&mut self, seat: usize, wait: Duration, now: Instant) {
        self.phase = Phase::Waiting { seat, until: now + wait };
    }

    /// A try on a schedule of our own is extra load and so a matter of the budget. A wait that the provider names is
    /// none, and neither is the rest of a turn that has begun.
    pub(super) fn pay(&mut self) {
        self.actions.push_back(Action::Pay { id: AttemptId(self.next_id) });
    }

    /// 250 ms ± 50 %.
    pub(super) fn short_pause(&mut self) -> Duration {
        Duration::from_secs_f64(0.25 * (0.5 + self.race.jitter()))
    }

    /// `min(cap, base·2^a + U(0, base))` before try `a + 1`.
    fn backoff(&self, seat: usize) -> Duration {
        let (policy, tries) = (&self.policy.level.backoff, self.plan.seat(seat).tries);
        // The jitter must differ between turns, not within one: the seed is the turn's.
        backoff::pause(policy.base, policy.cap, tries.saturating_sub(1), self.policy.seed)
    }
}

// === helpers ===

/// The time for which the target wants to be left alone. Nothing, or a date in the past, is no time; and times of day mean
/// nothing here: the edge turns them into waits.
fn told(failure: &Failure) -> Option<Duration> {
    match failure.retry_at {
        Some(RetryAt::In(wait)) if !wait.is_zero() => Some(wait),
        _ => None,
    }
}
