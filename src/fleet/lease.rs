//! What an admitted attempt holds, and what it has seen: slot, reservation and ticket, which go back on every path.

use super::gate::{Credential, Gate, Look, Report, Wish};
use crate::chat::tokens;
use crate::event::{Event, Signal, Step, Usage};
use crate::failure::{Failure, Kind, Stage, Verdict};
use crate::health::breaker::Ticket;
use crate::health::quota::Reservation;
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::OwnedSemaphorePermit;

/// The right to make one attempt. Dropped without a verdict it is abandoned.
pub(super) struct Lease {
    pub(super) gate: Arc<Gate>,
    model: Arc<str>,
    credential: Option<Credential>,
    slot: Option<OwnedSemaphorePermit>,
    reservation: Option<Reservation>,
    /// Tokens of the prompt, estimated.
    prompt: u64,
    /// From when it is admitted until it is judged.
    ticket: Option<Ticket>,
    /// It is counted among those in flight.
    flying: bool,
    seen: Seen,
}

/// What the attempt said.
#[derive(Default)]
struct Seen {
    sent: Option<Instant>,
    /// The provider did not take the request on, so it cost no tokens.
    refused: bool,
    progress: bool,
    /// It gave a finish reason.
    finished: bool,
    /// The model thinks, so that its silence says nothing.
    thinking: bool,
    /// Since when the present silence was listened to, and when last.
    silence: Option<(Instant, Instant)>,
    gaps: SmallVec<[Duration; GAPS]>,
    usage: Usage,
    /// Tokens that it said, estimated.
    said: u64,
}

// === impl Lease ===

impl Lease {
    /// A lease that is not admitted yet.
    pub(super) fn new(
        gate: Arc<Gate>,
        wish: &Wish,
        slot: Option<OwnedSemaphorePermit>,
        reservation: Reservation,
    ) -> Self {
        Self {
            gate,
            model: Arc::clone(&wish.model),
            credential: wish.credential,
            slot,
            reservation: Some(reservation),
            prompt: wish.prompt,
            ticket: None,
            flying: false,
            seen: Seen::default(),
        }
    }

    /// Takes the ticket; refused, everything goes back.
    pub(super) fn admit(mut self, wish: &Wish, now: Instant) -> Result<Self, Look> {
        self.ticket = Some(self.gate.admit(wish, now)?);
        self.flying = true;
        self.seen.sent = Some(now);
        Ok(self)
    }

    /// The attempt has nothing to say at this moment.
    pub(super) fn silent(&mut self, now: Instant) {
        if self.seen.progress {
            self.seen.silence.get_or_insert((now, now)).1 = now;
        }
    }

    /// The attempt said something.
    pub(super) fn note(&mut self, signal: &Signal, now: Instant) {
        match signal {
            Signal::Queued | Signal::Opened => {}
            Signal::Sent => self.seen.sent = Some(now),
            Signal::Step(step) => self.note_step(step, now),
            Signal::Ended | Signal::Declined(_) => self.land(now),
            Signal::Failed(failure) => {
                self.note_failure(failure, now);
                self.land(now);
            }
        }
    }

    /// Its stream is over: slot and place are free, while the verdict is still to come.
    pub(super) fn land(&mut self, now: Instant) {
        self.slot = None;
        if std::mem::take(&mut self.flying) {
            self.gate.landed(&self.model, now);
        }
    }

    /// It is judged. Only the first word counts.
    pub(super) fn settle(&mut self, verdict: Verdict, now: Instant) {
        self.land(now);
        let reservation = self.reservation.take();
        let Some(ticket) = self.ticket.take() else {
            if let Some(reservation) = reservation {
                self.gate.release(reservation);
            }
            return;
        };
        self.report_gaps(now);
        let waited = self.seen.sent.map(|sent| now.saturating_duration_since(sent));
        let report = Report {
            verdict,
            silent: waited.filter(|_| !self.seen.progress),
            stalled: self.seen.stalled(),
            tokens: self.seen.tokens(self.prompt),
        };
        self.gate.settle((&self.model, self.credential), ticket, reservation, &report, now);
    }

    fn note_step(&mut self, step: &Step, now: Instant) {
        for event in &step.events {
            match event {
                Event::Thinking(on) => {
                    self.seen.thinking = *on;
                    self.seen.silence = None;
                }
                Event::Finish { .. } => self.seen.finished = true,
                Event::Text { text, .. } | Event::Reasoning { text, .. } | Event::Refusal { text, .. } => {
                    self.seen.said += tokens(text);
                }
                Event::ToolArgs { args, .. } => self.seen.said += tokens(args),
                Event::Usage(usage) => self.seen.usage.update(Usage { native: None, ..usage.as_ref().clone() }),
                _ => {}
            }
        }
        if !step.is_progress() {
            return;
        }
        let silence = self.seen.silence.take();
        if !std::mem::replace(&mut self.seen.progress, true) {
            if let (Some(ticket), Some(sent)) = (&self.ticket, self.seen.sent) {
                self.gate.progress(&self.model, ticket, now.saturating_duration_since(sent), now);
            }
        } else if let Some((since, _)) = silence.filter(|_| !self.seen.thinking) {
            self.seen.gaps.push(now.saturating_duration_since(since));
            if GAPS <= self.seen.gaps.len() {
                self.report_gaps(now);
            }
        }
    }

    fn note_failure(&mut self, failure: &Failure, now: Instant) {
        self.seen.refused = matches!(failure.stage, Stage::Connecting | Stage::Refused);
        if let (Kind::RateLimited | Kind::Overloaded, Some(retry)) = (failure.kind, failure.retry_at) {
            self.gate.rest(&self.model, self.credential, retry.after(SystemTime::now()), now);
        }
    }

    fn report_gaps(&mut self, now: Instant) {
        if !self.seen.gaps.is_empty() {
            self.gate.gaps(&self.model, &self.seen.gaps, now);
            self.seen.gaps.clear();
        }
    }
}

// === impl Seen ===

impl Seen {
    /// What it used. One that did not end well may not have been told how much: then it is at least what was heard.
    fn tokens(&self, prompt: u64) -> u64 {
        let said = match self.usage.completion {
            _ if self.refused => return 0,
            Some(counted) if self.finished => counted,
            counted => counted.unwrap_or(0).max(self.said),
        };
        self.usage.prompt.unwrap_or(prompt) + said
    }

    /// The silence in which it ended, as long as somebody listened. After the last word there is nothing to wait for.
    fn stalled(&self) -> Option<Duration> {
        let (since, until) = self.silence.filter(|_| !self.thinking && !self.finished)?;
        Some(until.saturating_duration_since(since))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.settle(Verdict::Abandon, super::now());
    }
}

/// So many gaps are reported at once, to lock less often.
const GAPS: usize = 16;
