//! The clocks of one attempt: how long it has been silent, and when that is too long.
//!
//! Silence is measured twice. Progress is what the model says; bytes are anything, pings and comments included. A
//! provider that only pings is not idle but stalled; one whose connection died is both.
//!
//! Some silences are work: a block of thinking that is not shown, a call whose arguments the provider tells only when
//! they are whole, a tool that the provider runs itself. Meanwhile the `thinking` limit stands for `first_token` and
//! `stall`, and when such a phase ends the clock starts anew, for what the model says next has only now become due.

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
    /// When the last phase of silent work ended before any progress.
    rested: Option<Instant>,
    /// The model thinks: in a silent block, or it is telling its reasoning.
    thinking: bool,
    /// Tool calls that were begun and not closed.
    calls: u32,
    /// Tools of the provider that run.
    tools: u32,
    /// Signs of life since it began to work, or since it last spoke.
    pings: u32,
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
        let worked = self.is_at_work();
        for event in &step.events {
            self.note(event);
        }
        if progress {
            self.progress = Some(now);
        }
        if worked && !self.is_at_work() {
            match &mut self.progress {
                Some(last) => *last = now,
                None => self.rested = Some(now),
            }
        }
        self.pings = if progress || worked != self.is_at_work() { 0 } else { self.pings.saturating_add(1) };
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::Thinking(open) => self.thinking = *open,
            Event::Reasoning { .. } => self.thinking = true,
            Event::Text { .. } | Event::Refusal { .. } => self.thinking = false,
            Event::ToolOpen { .. } => {
                self.thinking = false;
                self.calls = self.calls.saturating_add(1);
            }
            Event::ToolArgs { .. } => self.thinking = false,
            Event::ToolClose { .. } => self.calls = self.calls.saturating_sub(1),
            Event::ServerTool(true) => self.tools = self.tools.saturating_add(1),
            Event::ServerTool(false) => self.tools = self.tools.saturating_sub(1),
            Event::Alive
            | Event::Identity(_)
            | Event::Signature { .. }
            | Event::Usage(_)
            | Event::Finish { .. }
            | Event::Extra(_) => {}
        }
    }

    /// Its silence is no sign that it has stalled: it thinks, makes a call, or waits for a tool of its provider.
    pub(super) fn is_at_work(&self) -> bool {
        self.thinking || self.calls > 0 || self.tools > 0
    }

    /// Nothing was read for so long, so nothing could be heard.
    pub(super) fn pause(&mut self, pause: Duration) {
        for at in [&mut self.bytes, &mut self.progress, &mut self.rested].into_iter().flatten() {
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
        let works = clocks.is_at_work();
        let thinks = works || candidate.reasons && clocks.progress.is_none();
        let (silence, kind) = match clocks.progress {
            None => {
                let limit = if thinks { limits.thinking } else { limits.first_token };
                (clocks.rested.unwrap_or(first_sent) + limit, Kind::FirstTokenTimeout)
            }
            Some(last) if works => (last + limits.thinking, Kind::Stalled),
            Some(last) => (last + limits.stall + lateness(limits.stall), Kind::Stalled),
        };
        // Who is at work may send nothing at all, not even a ping; but of one that has pinged so far, pings are expected.
        let expects_bytes = !thinks || clocks.pings >= PINGS;
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
        let clocks = &runner.clocks;
        let last = clocks.progress.or(clocks.rested).or(clocks.first_sent)?;
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

/// So many signs of life while it works make a provider one that sends them.
const PINGS: u32 = 3;
