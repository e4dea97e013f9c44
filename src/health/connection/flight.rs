//! One attempt under way, as far as it matters for its target's health: what it holds of the connection, and what it has
//! said so far.

use super::Wish;
use crate::chat::tokens;
use crate::event::{Event, Signal, Step, Usage};
use crate::failure::{Failure, Kind, RetryAt, Stage};
use crate::health::blame::Plaintiff;
use crate::health::breaker::Ticket;
use crate::health::quota::believed;
use crate::health::ramp::Pass;
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An attempt that was let through. To be settled, however it ends; see [`super::Connection::settle`].
#[derive(Debug)]
#[must_use = "a flight that is not settled keeps its ticket for ever"]
pub struct Flight {
    pub(super) model: Arc<str>,
    pub(super) by: Plaintiff,
    pub(super) ticket: Ticket,
    /// Until it is known whether the provider takes it: one of the window after a rest.
    pub(super) pass: Option<Pass>,
    /// It is counted among those in flight.
    pub(super) flying: bool,
    /// Tokens of the prompt, estimated.
    prompt: u64,
    sent: Instant,
    /// The provider did not take the request on, so it cost no tokens.
    refused: bool,
    progress: bool,
    /// It gave a finish reason.
    finished: bool,
    /// The model thinks, a call is open or a tool of its provider runs, so that its silence says nothing.
    thinking: bool,
    /// Since when the present silence was listened to, and when last.
    silence: Option<(Instant, Instant)>,
    usage: Usage,
    /// Tokens that it said, estimated.
    said: u64,
    /// Its failure is known by words alone.
    pub(super) by_words: bool,
    pub(super) news: News,
}

/// What the connection has not heard yet.
#[derive(Debug, Default)]
pub(super) struct News {
    /// The provider took the request on.
    pub(super) taken: bool,
    /// The provider takes so many more.
    pub(super) left: Option<u64>,
    /// The time to its first progress.
    pub(super) first_token: Option<Duration>,
    /// Silences in mid-turn that ended.
    pub(super) gaps: SmallVec<[Duration; GAPS]>,
    /// The provider limits it, and does not want to be asked for so long; `None`: it did not say how long.
    pub(super) limited: Option<Option<Duration>>,
    /// Its stream is over.
    pub(super) landed: bool,
}

// === impl Flight ===

impl Flight {
    pub(super) fn new(wish: &Wish, ticket: Ticket, pass: Option<Pass>, now: Instant) -> Self {
        Self {
            model: Arc::clone(&wish.model),
            by: wish.by,
            ticket,
            pass,
            flying: true,
            prompt: wish.prompt,
            sent: now,
            refused: false,
            progress: false,
            finished: false,
            thinking: false,
            silence: None,
            usage: Usage::default(),
            said: 0,
            by_words: false,
            news: News::default(),
        }
    }

    /// Whose model it asks.
    pub fn model(&self) -> &Arc<str> {
        &self.model
    }

    /// Somebody listens, and the attempt has nothing to say at this moment.
    pub fn silent(&mut self, now: Instant) {
        if self.progress {
            self.silence.get_or_insert((now, now)).1 = now;
        }
    }

    /// The attempt said something. `true`: there is something for [`super::Connection::hear`]. Times of day in a failure
    /// must have been made waits before.
    #[must_use]
    pub fn note(&mut self, signal: &Signal, now: Instant) -> bool {
        match signal {
            Signal::Queued => {}
            Signal::Sent => self.sent = now,
            Signal::Opened => self.news.taken = true,
            Signal::Left(requests) => self.news.left = Some(*requests),
            Signal::Step(step) => self.note_step(step, now),
            Signal::Ended | Signal::Declined(_) => self.news.landed = true,
            Signal::Failed(failure) => {
                self.note_failure(failure);
                self.news.landed = true;
            }
        }
        self.has_news()
    }

    /// The attempt was let go.
    pub fn land(&mut self) {
        self.news.landed = true;
    }

    fn has_news(&self) -> bool {
        let News { taken, left: _, first_token, gaps, limited, landed } = &self.news;
        (self.pass.is_some() && *taken) || first_token.is_some() || gaps.len() == GAPS || limited.is_some() || *landed
    }

    fn note_step(&mut self, step: &Step, now: Instant) {
        for event in &step.events {
            match event {
                Event::Thinking(on) | Event::ServerTool(on) => {
                    self.thinking = *on;
                    self.silence = None;
                }
                Event::ToolOpen { .. } => self.thinking = true,
                Event::ToolClose { .. } => self.thinking = false,
                Event::Finish { .. } => self.finished = true,
                Event::Text { text, .. } | Event::Reasoning { text, .. } | Event::Refusal { text, .. } => {
                    self.said += tokens(text);
                }
                Event::ToolArgs { args, .. } => self.said += tokens(args),
                Event::Usage(usage) => self.usage.update(Usage { native: None, ..usage.as_ref().clone() }),
                _ => {}
            }
        }
        if !step.is_progress() {
            return;
        }
        let silence = self.silence.take();
        if !std::mem::replace(&mut self.progress, true) {
            self.news.first_token = Some(now.saturating_duration_since(self.sent));
        } else if let Some((since, _)) = silence.filter(|_| !self.thinking) {
            self.news.gaps.push(now.saturating_duration_since(since));
        }
    }

    fn note_failure(&mut self, failure: &Failure) {
        self.refused = matches!(failure.stage, Stage::Connecting | Stage::Refused);
        // Who refuses with one of these has not looked at what the request says, and so repeats nothing of it.
        let unread = matches!(failure.status, Some(401 | 402 | 429));
        self.by_words = failure.by_words && !unread;
        let told = match failure.retry_at {
            Some(RetryAt::In(wait)) => Some(wait).filter(|wait| !wait.is_zero()),
            Some(RetryAt::At(_)) | None => None,
        };
        self.news.limited = match failure.kind {
            Kind::RateLimited => Some(told),
            Kind::Overloaded => told.map(Some),
            _ => None,
        };
    }

    /// What it used. One that did not end well may not have been told how much: then it is at least what was heard.
    pub(super) fn tokens(&self) -> u64 {
        let counted = |said: u64| believed(said, self.said, HIDDEN);
        let said = match self.usage.completion {
            _ if self.refused => return 0,
            Some(completion) if self.finished => counted(completion),
            completion => completion.map_or(0, counted).max(self.said),
        };
        self.usage.prompt.map_or(self.prompt, |prompt| believed(prompt, self.prompt, UNSEEN)) + said
    }

    /// Its silence since it was sent, if it never made progress.
    pub(super) fn mute_for(&self, now: Instant) -> Option<Duration> {
        (!self.progress).then(|| now.saturating_duration_since(self.sent))
    }

    /// The silence in which it ended, as long as somebody listened. After the last word there is nothing to wait for.
    pub(super) fn stalled(&self) -> Option<Duration> {
        let (since, until) = self.silence.filter(|_| !self.thinking && !self.finished)?;
        Some(until.saturating_duration_since(since))
    }
}

/// So many gaps are told at once, to lock less often.
const GAPS: usize = 16;
/// Tokens of an answer that nobody sees: more than any model thinks for one.
pub const HIDDEN: u64 = 131_072;
/// Tokens of a prompt that an estimate by its texts misses: pictures, sound, what the provider adds itself.
pub const UNSEEN: u64 = 32_768;
