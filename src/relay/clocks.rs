//! The clocks of one attempt: how long it has been silent, and when that is too long.
//!
//! Silence is measured twice. Progress is what the model says; bytes are anything, pings and comments included. A
//! provider that only pings is not idle but stalled; one whose connection died is both. While the model thinks, the
//! `thinking` limit stands for both `first_token` and `stall`.

use super::{AttemptId, Relay, Runner};
use crate::event::{Event, Step};
use crate::failure::Kind;
use std::time::{Duration, Instant};

/// What has been heard of an attempt, and when.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    /// When its target was first sent a request in this turn; `None` while it queues.
    first_sent: Option<Instant>,
    /// When this attempt was sent.
    pub(super) sent: Option<Instant>,
    /// The last byte, of whatever kind; `None` before the response.
    bytes: Option<Instant>,
    /// The last progress.
    pub(super) progress: Option<Instant>,
    /// The model thinks: in a silent block, or it is telling its reasoning.
    pub(super) thinking: bool,
    /// Tool arguments are under way, whose gaps are longer than those of text.
    pub(super) calling: bool,
}

// === impl Clocks ===

impl Clocks {
    pub(super) fn sent(&mut self, first: Instant, now: Instant) {
        self.first_sent = Some(first);
        self.sent = Some(now);
    }

    pub(super) fn bytes(&mut self, now: Instant) {
        self.bytes = Some(now);
    }

    pub(super) fn step(&mut self, step: &Step, progress: bool, now: Instant) {
        self.bytes = Some(now);
        if progress {
            self.progress = Some(now);
        }
        for event in &step.events {
            match event {
                Event::Thinking(open) => {
                    self.thinking = *open;
                    // The end of a silent phase starts the clock for what must come next.
                    if self.progress.is_some() {
                        self.progress = Some(now);
                    }
                }
                Event::Reasoning { .. } => self.thinking = true,
                Event::Text { .. } | Event::Refusal { .. } => (self.thinking, self.calling) = (false, false),
                Event::ToolOpen { .. } | Event::ToolArgs { .. } => (self.thinking, self.calling) = (false, true),
                Event::ToolClose { .. } => self.calling = false,
                Event::Alive
                | Event::Identity(_)
                | Event::Signature { .. }
                | Event::Usage(_)
                | Event::Finish { .. }
                | Event::Extra(_) => {}
            }
        }
    }

    /// Nothing was read for so long, so nothing could be heard.
    pub(super) fn pause(&mut self, pause: Duration) {
        for at in [&mut self.bytes, &mut self.progress].into_iter().flatten() {
            *at += pause;
        }
    }
}

// === impl Relay ===

impl Relay {
    /// When `runner` will have been silent for too long, and what that is called.
    pub(super) fn due(&self, runner: &Runner) -> Option<(Instant, Kind)> {
        if runner.parked.is_some() || runner.sieve.is_asking() {
            return None;
        }
        let clocks = &runner.clocks;
        let candidate = &self.plan.seat(runner.seat).candidate;
        let limits = &candidate.timeouts;
        let (first_sent, _) = (clocks.first_sent?, clocks.sent?);
        let (silence, kind) = match clocks.progress {
            None if clocks.thinking || candidate.reasons => (first_sent + limits.thinking, Kind::FirstTokenTimeout),
            None => (first_sent + limits.first_token, Kind::FirstTokenTimeout),
            Some(last) if clocks.thinking => (last + limits.thinking, Kind::Stalled),
            Some(last) => (last + limits.stall + lateness(limits.stall), Kind::Stalled),
        };
        // A model that thinks before its first word may say nothing at all, not even a ping.
        let expects_bytes = clocks.progress.is_some() || !(clocks.thinking || candidate.reasons);
        let idle = clocks.bytes.filter(|_| expects_bytes).map(|last| last + limits.idle);
        Some((idle.map_or(silence, |idle| idle.min(silence)), kind))
    }

    /// An attempt that has been silent for too long.
    pub(super) fn expired(&self, now: Instant) -> Option<(AttemptId, Kind)> {
        self.runners.iter().find_map(|r| self.due(r).filter(|(due, _)| now >= *due).map(|(_, kind)| (r.id, kind)))
    }

    /// Whether an attempt has been silent for at least half of its limit.
    pub(super) fn is_half_stalled(&self, runner: &Runner, now: Instant) -> Option<Kind> {
        let (due, kind) = self.due(runner)?;
        let last = runner.clocks.progress.or(runner.clocks.first_sent)?;
        let limit = due.saturating_duration_since(last);
        (now.saturating_duration_since(last) * 2 >= limit).then_some(kind)
    }
}

// === helpers ===

/// How late the next word may be. Providers and limits like round numbers: of a word that is sent each five seconds and
/// a limit of five seconds, the limit must not win by the tick of a timer.
fn lateness(limit: Duration) -> Duration {
    (limit / 50).min(LATEST)
}

/// The most that a word may be late.
const LATEST: Duration = Duration::from_millis(50);
