//! When a challenger is started on suspicion, and how a leader answers it.
//!
//! Three suspicions: no first progress for `hedge_after` (hedged request), silence for `suspect` in mid-turn
//! (speculative continuation), text slower than `pace` (slow-stream rescue). None while the model thinks. Budgets are
//! shared between turns and so not known here: the answer to an ask may be that there is none.

use super::journal::Cause;
use super::{AttemptId, Phase, Relay};
use crate::event::{Event, Step};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// What one turn has suspected so far.
#[derive(Debug)]
pub(super) struct Race {
    /// A hedge was started; there is one a turn.
    hedged: bool,
    /// How often a leader woke up by itself after it was suspected; each doubles `suspect`.
    alarms: u32,
    /// A challenger was started in this silence.
    suspected: bool,
    /// No challenger may start any more: the budget is spent.
    denied: bool,
    /// When the leader began to lead.
    led: Option<Instant>,
    /// What was told of late, for the pace: characters in slices of a sixteenth of the window.
    told: VecDeque<(Instant, usize)>,
    /// The leader is too slow, and its text is held until the race is decided.
    stash: Option<Stash>,
    seed: u64,
}

/// What a slow leader says while a challenger tries to overtake it. Pieces of the same thing are put together.
#[derive(Debug, Default)]
struct Stash {
    step: Step,
    bytes: usize,
}

// === impl Race ===

impl Race {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            hedged: false,
            alarms: 0,
            suspected: false,
            denied: false,
            led: None,
            told: VecDeque::new(),
            stash: None,
            seed,
        }
    }

    /// A new leader: whatever was suspected was of another.
    pub(super) fn led(&mut self, now: Instant) {
        self.led = Some(now);
        self.suspected = false;
        self.told.clear();
        self.stash = None;
    }

    /// The client was told `step`.
    pub(super) fn told(&mut self, step: &Step, now: Instant) {
        self.suspected = false;
        self.count(step, now);
    }

    fn count(&mut self, step: &Step, now: Instant) {
        let chars: usize = step.events.iter().map(spoken).sum();
        if chars == 0 {
            return;
        }
        match self.told.back_mut() {
            Some((at, sum)) if now.saturating_duration_since(*at) < SLICE => *sum += chars,
            _ => {
                if self.told.len() == SLICES {
                    self.told.pop_front();
                }
                self.told.push_back((now, chars));
            }
        }
    }

    pub(super) fn pause(&mut self, pause: Duration) {
        if let Some(led) = &mut self.led {
            *led += pause;
        }
        for (at, _) in &mut self.told {
            *at += pause;
        }
    }

    /// When fewer than `needed` characters will have been told within `window`.
    fn slow_at(&self, needed: usize, window: Duration) -> Option<Instant> {
        let mut sum = 0;
        for (at, chars) in self.told.iter().rev() {
            sum += chars;
            if sum >= needed {
                return Some(*at + window);
            }
        }
        self.led.map(|led| led + window)
    }

    /// No further challengers in this turn.
    pub(super) fn deny(&mut self) {
        self.denied = true;
    }

    /// How many bytes are kept of a slow leader.
    pub(super) fn stashed(&self) -> usize {
        self.stash.as_ref().map_or(0, |stash| stash.bytes)
    }

    /// A number from 0 to 1 for jitter, another one at each call.
    pub(super) fn jitter(&mut self) -> f64 {
        self.seed = self.seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

// === impl Relay ===

impl Relay {
    /// When a challenger will be due, if nothing changes.
    pub(super) fn challenge_due(&self) -> Option<Instant> {
        self.challenge().map(|(due, _)| due)
    }

    fn challenge(&self) -> Option<(Instant, Cause)> {
        let [runner] = self.runners.as_slice() else { return None };
        if !self.policy.races
            || self.race.denied
            || self.phase != Phase::Running
            || runner.parked.is_some()
            || runner.sieve.is_asking()
        {
            return None;
        }
        let clocks = &runner.clocks;
        let candidate = &self.plan.seat(runner.seat).candidate;
        if clocks.thinking {
            return None;
        }
        let due = if self.leader.is_none() {
            if !self.turn.is_silent() || self.race.hedged || clocks.progress.is_some() || candidate.reasons {
                return None;
            }
            (clocks.sent? + candidate.hedge_after?, Cause::Hedge)
        } else {
            if self.turn.is_silent() || self.race.suspected || clocks.calling {
                return None;
            }
            let limits = &candidate.timeouts;
            let suspect = limits.suspect.and_then(|suspect| {
                let patience = suspect.saturating_mul(1 << self.race.alarms.min(16)).max(candidate.normal_gap);
                Some((clocks.progress? + patience, Cause::Suspect))
            });
            let pace = limits.pace.and_then(|pace| {
                let needed = (pace.chars * pace.window.as_secs_f64()).ceil() as usize;
                Some((self.race.slow_at(needed, pace.window)?, Cause::Pace))
            });
            suspect.into_iter().chain(pace).min_by_key(|(due, _)| *due)?
        };
        // Suspicion must leave an attempt for everybody who may be needed when the leader really fails.
        let can_go_on = self.is_continuable() && self.next_seat().is_some() && self.plan.has_spare();
        can_go_on.then_some(due)
    }

    pub(super) fn start_challengers(&mut self, now: Instant) {
        let Some((due, cause)) = self.challenge() else { return };
        if now < due {
            return;
        }
        let Some(seat) = self.next_seat() else { return };
        match cause {
            Cause::Hedge => self.race.hedged = true,
            Cause::Pace => {
                self.race.suspected = true;
                self.race.stash = Some(Stash::default());
            }
            _ => self.race.suspected = true,
        }
        self.open(seat, cause, now);
    }

    /// While a slow leader is challenged its text is kept; gives `true` if `told` was taken care of.
    pub(super) fn stash(&mut self, leader: AttemptId, told: &Step, now: Instant) -> bool {
        let Some(stash) = &mut self.race.stash else { return false };
        stash.take(told);
        // Who says that much is not slow, and if it is more than a turn may hold, that is found when it is told.
        let full = stash.bytes > self.policy.max_turn;
        self.race.count(told, now);
        let finished = told.events.iter().any(|e| matches!(e, Event::Finish { .. }));
        if finished || full || self.is_fast_again(leader, now) {
            let others: Vec<AttemptId> = self.runners.iter().map(|r| r.id).filter(|id| *id != leader).collect();
            for other in others {
                self.supersede(other, now);
            }
            self.race.alarms += 1;
            self.unstash(leader, now);
        }
        true
    }

    fn is_fast_again(&self, leader: AttemptId, now: Instant) -> bool {
        let Some(runner) = self.runners.iter().find(|r| r.id == leader) else { return false };
        let Some(pace) = self.plan.seat(runner.seat).candidate.timeouts.pace else { return true };
        let needed = (pace.chars * pace.window.as_secs_f64()).ceil() as usize;
        let recent = self.race.told.iter().filter(|(at, _)| now.saturating_duration_since(*at) < pace.window);
        recent.map(|(_, chars)| chars).sum::<usize>() >= needed
    }

    /// Tells what was kept of the leader.
    pub(super) fn unstash(&mut self, leader: AttemptId, now: Instant) {
        let Some(stash) = self.race.stash.take() else { return };
        self.deliver(leader, stash.step, now);
        self.race.led(now);
    }

    /// The leader speaks although it was suspected: it stays, and is suspected later next time.
    pub(super) fn false_alarm(&mut self, leader: AttemptId, now: Instant) {
        let others: Vec<AttemptId> = self.runners.iter().map(|r| r.id).filter(|id| *id != leader).collect();
        for other in others {
            self.supersede(other, now);
        }
        self.race.alarms += 1;
    }

    /// A challenger has failed while the leader is there.
    pub(super) fn challenger_failed(&mut self, leader: AttemptId, now: Instant) {
        self.unstash(leader, now);
        self.race.suspected = false;
    }
}

// === impl Stash ===

impl Stash {
    fn take(&mut self, told: &Step) {
        for event in &told.events {
            let before = self.step.events.len();
            let weight = event.weight();
            self.step.push(event.clone());
            let joined = self.step.events.len() == before;
            self.bytes += if joined { weight - size_of::<Event>() } else { weight };
        }
    }
}

// === helpers ===

fn spoken(event: &Event) -> usize {
    match event {
        Event::Text { text, .. } | Event::Refusal { text, .. } => text.chars().count(),
        _ => 0,
    }
}

/// The pace is measured in slices: text that comes in the same slice counts as one piece.
const SLICE: Duration = Duration::from_millis(100);

/// How many slices are kept: 25 s of them, more than any sensible window.
const SLICES: usize = 256;
