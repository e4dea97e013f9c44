//! The account of a turn: every attempt, why it was opened, what it said and cost, and how it ended.
//!
//! With the fleet's journal of circuits it is the only account there is: metrics, ledger, admin interface and
//! benchmarks read it, and nothing else counts.

use super::{AttemptId, Outcome, Policy};
use crate::event::{Event, Step, Usage};
use crate::failure::{Declined, Failure, Kind, Verdict};
use crate::routing::Target;
use crate::turn::Turn;
use crate::turn::resume::{Carry, Origin};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The account of one turn.
#[derive(Clone, Debug)]
pub struct Journal {
    /// When it began.
    pub started: Instant,
    /// Its attempts, in the order in which they were opened.
    pub attempts: Vec<Attempt>,
    /// How often another attempt took the lead after something was told.
    pub splices: u32,
    /// When the client was first told something.
    pub first_told: Option<Instant>,
    /// When it was last told something.
    pub last_told: Option<Instant>,
    /// The longest time between two things told.
    pub longest_silence: Duration,
    /// How it ended; `None` while it runs.
    pub outcome: Option<Outcome>,
    /// When it ended.
    pub ended: Option<Instant>,
}

/// The account of one attempt.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Which.
    pub id: AttemptId,
    /// Who was asked.
    pub target: Arc<Target>,
    /// Why.
    pub cause: Cause,
    /// When it was opened.
    pub opened: Instant,
    /// When its request was sent; `None` if it never was.
    pub sent: Option<Instant>,
    /// When the model first said something.
    pub first_progress: Option<Instant>,
    /// When it ended.
    pub ended: Option<Instant>,
    /// How it ended.
    pub end: Option<End>,
    /// What went wrong.
    pub failure: Option<Failure>,
    /// Why it was not made; `failure` says the same in words then.
    pub declined: Option<Declined>,
    /// The failure was put right at the same target and is nobody's fault.
    pub forgiven: bool,
    /// What the provider said of its tokens.
    pub usage: Usage,
    /// An estimate of the tokens that were carried over to it besides the prompt.
    pub carried: u64,
    /// What it generated and we received.
    pub generated: Tokens,
    /// What of it was told to the client.
    pub told: Tokens,
    /// When the client was first told something of it.
    pub told_from: Option<Instant>,
    /// When the client was last told something of it.
    pub told_to: Option<Instant>,
    /// It led in mid-turn, and another attempt took the lead from it: after so long a silence.
    pub overtaken: Option<Duration>,
    /// The model was seen to think.
    pub thought: bool,
    /// How its seam was decided.
    pub seam: Option<&'static str>,
    /// It was joined without proof that it fits.
    pub guessed: bool,
    /// Why its structured answer was told without proof that it is what was asked for.
    pub unsure: Option<&'static str>,
}

/// Why an attempt was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// It is the first.
    First,
    /// The one before it failed, and nothing was told.
    Fallback,
    /// The same target again.
    Retry,
    /// The one before it was slow to begin.
    Hedge,
    /// The leader failed in mid-turn.
    Continuation,
    /// The leader fell silent in mid-turn.
    Suspect,
    /// The leader became slow in mid-turn.
    Pace,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It finished the turn.
    Ok,
    /// It failed.
    Failed(Kind),
    /// It was closed because the turn ended without it.
    Cancelled,
    /// Another attempt won.
    Superseded,
}

/// A count of characters from which tokens are estimated: ASCII characters / 4, all others 1 each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    ascii: u64,
    wide: u64,
    /// The part of them that is reasoning.
    thought: (u64, u64),
    /// In how many pieces the rest came.
    pieces: u64,
}

// === impl Journal ===

impl Journal {
    pub(super) fn new(started: Instant) -> Self {
        Self {
            started,
            attempts: Vec::with_capacity(2),
            splices: 0,
            first_told: None,
            last_told: None,
            longest_silence: Duration::ZERO,
            outcome: None,
            ended: None,
        }
    }

    pub(super) fn open(&mut self, id: AttemptId, target: &Arc<Target>, cause: Cause, carry: &Carry, now: Instant) {
        let carried = match &carry.origin {
            Origin::Fresh => 0,
            Origin::Continue(on) => on.tokens,
        };
        self.attempts.push(Attempt {
            id,
            target: Arc::clone(target),
            cause,
            opened: now,
            sent: None,
            first_progress: None,
            ended: None,
            end: None,
            failure: None,
            declined: None,
            forgiven: false,
            usage: Usage::default(),
            carried,
            generated: Tokens::default(),
            told: Tokens::default(),
            told_from: None,
            told_to: None,
            overtaken: None,
            thought: false,
            seam: None,
            guessed: false,
            unsure: None,
        });
    }

    fn attempt(&mut self, id: AttemptId) -> Option<&mut Attempt> {
        self.attempts.get_mut(id.0 as usize)
    }

    pub(super) fn sent(&mut self, id: AttemptId, now: Instant) {
        if let Some(attempt) = self.attempt(id) {
            attempt.sent.get_or_insert(now);
        }
    }

    pub(super) fn step(&mut self, id: AttemptId, step: &Step, progress: bool, now: Instant) {
        let Some(attempt) = self.attempt(id) else { return };
        if progress {
            attempt.first_progress.get_or_insert(now);
        }
        for event in &step.events {
            attempt.generated.count(event);
            attempt.thought |= match event {
                Event::Thinking(on) => *on,
                Event::Reasoning { .. } | Event::Signature { .. } => true,
                Event::Usage(usage) => usage.reasoning.is_some_and(|tokens| tokens > 0),
                _ => false,
            };
            if let Event::Usage(usage) = event {
                attempt.usage.update((**usage).clone());
            }
        }
    }

    pub(super) fn told(&mut self, id: AttemptId, step: &Step, now: Instant) {
        if let Some(attempt) = self.attempt(id) {
            for event in &step.events {
                attempt.told.count(event);
            }
            if step.is_progress() {
                attempt.told_to = Some(now);
                attempt.told_from.get_or_insert(now);
            }
        }
        if !step.is_progress() {
            return;
        }
        self.first_told.get_or_insert(now);
        if let Some(last) = self.last_told.replace(now) {
            self.longest_silence = self.longest_silence.max(now.saturating_duration_since(last));
        }
    }

    pub(super) fn unsure(&mut self, id: AttemptId, why: &'static str) {
        if let Some(attempt) = self.attempts.get_mut(id.0 as usize) {
            attempt.unsure = Some(why);
        }
    }

    pub(super) fn guessed(&mut self, id: AttemptId) {
        if let Some(attempt) = self.attempt(id) {
            attempt.guessed = true;
        }
    }

    pub(super) fn spliced(&mut self) {
        self.splices += 1;
    }

    pub(super) fn failed(&mut self, id: AttemptId, failure: &Failure) {
        if let Some(attempt) = self.attempt(id) {
            attempt.failure = Some(failure.clone());
        }
    }

    pub(super) fn declined(&mut self, id: AttemptId, declined: &Declined, now: Instant) {
        if let Some(attempt) = self.attempt(id) {
            let target = format!("{}/{}", attempt.target.connection, attempt.target.model);
            attempt.failure = Some(declined.failure(&target, now));
            attempt.declined = Some(declined.clone());
        }
    }

    pub(super) fn forgive(&mut self, id: AttemptId) {
        if let Some(attempt) = self.attempt(id) {
            attempt.forgiven = true;
        }
    }

    pub(super) fn overtaken(&mut self, id: AttemptId, silence: Duration) {
        if let Some(attempt) = self.attempt(id) {
            attempt.overtaken = Some(silence);
        }
    }

    pub(super) fn ended(&mut self, id: AttemptId, end: End, now: Instant) {
        if let Some(attempt) = self.attempt(id) {
            attempt.ended = Some(now);
            attempt.end = Some(end);
        }
    }

    pub(super) fn seam(&mut self, id: AttemptId, seam: Option<&'static str>) {
        if let Some(attempt) = self.attempt(id) {
            attempt.seam = seam;
        }
    }

    pub(super) fn close(&mut self, outcome: &Outcome, now: Instant) {
        self.outcome = Some(outcome.clone());
        self.ended = Some(now);
    }

    // --- what was learned ---

    /// The first failure of a provider; without one, the first reason why none could be asked.
    pub fn first_cause(&self) -> Option<&Failure> {
        self.first_trouble()?.failure.as_ref()
    }

    fn first_trouble(&self) -> Option<&Attempt> {
        let failed = || self.attempts.iter().filter(|a| a.is_trouble());
        let real = |a: &&Attempt| !a.is_of(&[Kind::Unavailable, Kind::SeamRejected, Kind::Cancelled]);
        failed().find(real).or_else(|| failed().next())
    }

    /// The first real failure says that the request itself is at fault: no target but the client can mend it.
    pub(super) fn is_about_the_request(&self) -> bool {
        let about = [Kind::BadRequest, Kind::ContextTooLong, Kind::ContentFiltered, Kind::Repairable];
        self.first_trouble().is_some_and(|a| a.is_fresh() && a.is_of(&about))
    }

    /// A policy has stopped the request, or two targets agree that it is wrong: nobody else is asked.
    pub(super) fn is_settled(&self) -> bool {
        let fresh = || self.attempts.iter().filter(|a| a.is_trouble() && a.is_fresh());
        let opinions = fresh().filter(|a| a.is_of(&[Kind::BadRequest])).count();
        opinions >= OPINIONS || fresh().any(|a| a.is_of(&[Kind::ContentFiltered]))
    }

    /// The attempt of which the client was told something last.
    pub fn speaker(&self) -> Option<&Attempt> {
        self.attempts.iter().rev().find(|a| a.told != Tokens::default())
    }

    /// Tokens of what the client sees, over all attempts, as far as they are known.
    pub fn visible_tokens(&self) -> u64 {
        self.attempts.iter().map(Attempt::visible_tokens).sum()
    }

    /// Who signed what was told last.
    pub(super) fn issuer(&self) -> Option<&str> {
        self.speaker().map(|a| &*a.target.issuer)
    }

    /// The usage of the turn as one: the prompt as the first leg counted it, and the tokens of what was told. With one
    /// leg it is the provider's own.
    pub(super) fn usage(&self, policy: &Policy, turn: &Turn) -> Usage {
        let legs: Vec<&Attempt> =
            self.attempts.iter().filter(|a| a.told != Tokens::default() || a.end == Some(End::Ok)).collect();
        if let [only] = legs.as_slice()
            && only.usage.prompt.is_some()
            && only.usage.completion.is_some()
        {
            return only.usage.clone();
        }
        let first = legs.first().and_then(|a| a.usage.prompt);
        let last = || legs.iter().rev().find_map(|a| a.usage.prompt.map(|p| p.saturating_sub(a.carried).max(1)));
        let completion = legs.iter().map(|a| a.delivered_tokens()).sum::<u64>();
        Usage {
            prompt: Some(first.or_else(last).unwrap_or(policy.prompt_estimate)),
            completion: Some(completion.max(u64::from(turn.chars() > 0))),
            ..Usage::default()
        }
    }
}

// === impl Attempt ===

impl Attempt {
    /// It failed, and neither was that put right nor was it only a challenger that nobody paid for.
    pub fn is_trouble(&self) -> bool {
        !self.forgiven && self.failure.is_some() && self.declined != Some(Declined::Budget)
    }

    /// The client was told something of it.
    pub fn has_told(&self) -> bool {
        self.told != Tokens::default()
    }

    /// Whether what went wrong is one of `kinds`.
    pub fn is_of(&self, kinds: &[Kind]) -> bool {
        self.failure.as_ref().is_some_and(|failure| kinds.contains(&failure.kind))
    }

    /// It was asked what the client asked, and not to go on from anything.
    fn is_fresh(&self) -> bool {
        self.carried == 0
    }

    /// Tokens of what the client was told of it: what the provider counted, in proportion to what was delivered; where
    /// it never said, an estimate.
    pub fn delivered_tokens(&self) -> u64 {
        let (told, generated) = (self.told.estimate(), self.generated.estimate());
        match self.usage.completion {
            Some(counted) if generated > 0 && told >= generated => counted,
            Some(counted) if generated > 0 => (counted * told).div_ceil(generated),
            _ => told,
        }
    }

    /// Tokens of what the client sees of it, reasoning aside, by what is known: what the provider counted, else the
    /// pieces in which it came (most providers send a token at a time), else the characters.
    fn visible_tokens(&self) -> u64 {
        let (told, generated) = (self.told.visible(), self.generated.visible());
        let reasoning = self.usage.reasoning.unwrap_or_else(|| self.generated.thoughts());
        let counted = self.usage.completion.map(|all| all.saturating_sub(reasoning));
        // A count from the beginning of the stream is none of the whole.
        if let Some(counted) = counted.filter(|counted| generated > 0 && counted * 2 >= generated) {
            return if told >= generated { counted } else { (counted * told).div_ceil(generated) };
        }
        let pieces = self.told.pieces;
        if pieces >= PIECES && pieces * 2 >= told && pieces <= told * 2 { pieces } else { told }
    }

    /// What the attempt cost: prompt and completion tokens, and whether that is an estimate because the provider never
    /// said. An attempt that was never sent costs nothing.
    pub fn cost(&self, prompt_estimate: u64) -> (u64, u64, bool) {
        if self.sent.is_none() {
            return (0, 0, false);
        }
        let refused = self.failure.as_ref().is_some_and(|f| f.stage != crate::failure::Stage::Streaming);
        let nothing = self.first_progress.is_none() && self.usage == Usage::default() && refused;
        if nothing {
            return (0, 0, true);
        }
        let prompt = self.usage.prompt.unwrap_or(prompt_estimate + self.carried);
        let completion = self.usage.completion.unwrap_or_else(|| self.generated.estimate());
        (prompt, completion, self.usage.prompt.is_none() || self.usage.completion.is_none())
    }
}

// === impl Tokens ===

impl Tokens {
    fn count(&mut self, event: &Event) {
        let text = match event {
            Event::Text { text, .. } | Event::Reasoning { text, .. } | Event::Refusal { text, .. } => text,
            Event::ToolArgs { args, .. } => args,
            Event::ToolOpen { name, .. } => name,
            _ => return,
        };
        let ascii = text.bytes().filter(u8::is_ascii).count();
        let all = if ascii == text.len() { ascii } else { text.chars().count() };
        self.ascii += ascii as u64;
        self.wide += (all - ascii) as u64;
        if matches!(event, Event::Reasoning { .. }) {
            self.thought.0 += ascii as u64;
            self.thought.1 += (all - ascii) as u64;
        } else {
            self.pieces += 1;
        }
    }

    /// About how many tokens.
    pub fn estimate(self) -> u64 {
        self.ascii.div_ceil(4) + self.wide
    }

    /// About how many without reasoning.
    fn visible(self) -> u64 {
        (self.ascii - self.thought.0).div_ceil(4) + (self.wide - self.thought.1)
    }

    /// About how many of reasoning.
    fn thoughts(self) -> u64 {
        self.thought.0.div_ceil(4) + self.thought.1
    }
}

// === impl Cause ===

impl Cause {
    /// Its name in the admin interface and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Fallback => "fallback",
            Self::Retry => "retry",
            Self::Hedge => "hedge",
            Self::Continuation => "continuation",
            Self::Suspect => "suspect",
            Self::Pace => "pace",
        }
    }

    /// Whether it was opened on suspicion, and so is paid from the level's budget.
    pub fn is_challenge(self) -> bool {
        matches!(self, Self::Hedge | Self::Suspect | Self::Pace)
    }
}

// === impl End ===

impl End {
    /// What it says about the target's health. `counts`: the turn has not counted against the target before, and the
    /// failure is not the gateway's own.
    pub fn verdict(self, counts: bool) -> Verdict {
        match self {
            Self::Ok => Verdict::Serve,
            Self::Failed(kind) if counts => kind.verdict(),
            Self::Failed(_) | Self::Cancelled | Self::Superseded => Verdict::Abandon,
        }
    }

    /// Its name in the admin interface and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed(_) => "failed",
            Self::Cancelled => "cancelled",
            Self::Superseded => "superseded",
        }
    }
}

/// So many targets that say that the request is wrong are believed.
const OPINIONS: usize = 2;

/// So many pieces tell how a provider cuts its text.
const PIECES: u64 = 8;
