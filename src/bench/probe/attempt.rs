//! One request to one target: the call that a turn's first attempt makes, and when what came back came.

use super::Subject;
use super::way::Way;
use crate::chat::Request;
use crate::dialect::{self, Expect, Provider};
use crate::event::{Event, Signal, Step};
use crate::failure::{Failure, Kind, Stage};
use crate::routing::Target;
use crate::turn::resume::Carry;
use crate::upstream::{Call, Upstream};
use crate::words::redact::Redactor;
use futures::{FutureExt, StreamExt};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Asks one target.
pub(in crate::bench) struct Asker {
    target: Arc<Target>,
    upstream: Arc<dyn Upstream>,
    provider: &'static dyn Provider,
    /// What the target was found not to take.
    carry: Carry,
    /// How often it was asked again in another form.
    repairs: u32,
    patience: Patience,
    connect: Duration,
    error_body: Duration,
    max_event: usize,
    secrets: Redactor,
}

/// How long an answer is waited for.
#[derive(Clone, Copy, Debug)]
struct Patience {
    /// Before the first progress, and while the model thinks.
    first: Duration,
    /// After it.
    silence: Duration,
    /// All in all.
    turn: Duration,
}

/// How a request ended.
pub(in crate::bench) enum Ended {
    /// With a whole answer.
    Whole(Times),
    /// Without one.
    Failed(Failure),
    /// It is to be made again in another way, at once: the target lacks a field.
    Again,
}

/// A whole answer, and when it came.
#[derive(Debug, Default)]
pub(in crate::bench) struct Times {
    /// From the request to the first progress.
    pub(in crate::bench) first: Duration,
    /// Silences between progress and progress.
    pub(in crate::bench) gaps: Vec<Duration>,
    /// From the request to the end.
    pub(in crate::bench) total: Duration,
    /// Tokens, as the provider said.
    pub(in crate::bench) generated: u64,
    /// What was said; of a long text the beginning.
    pub(in crate::bench) text: String,
    /// The name that the model gave itself; empty where it gave none.
    pub(in crate::bench) model: String,
}

/// An answer as it comes in.
struct Hearing {
    sent: Instant,
    first: Option<Duration>,
    /// Since when nothing came that would have been read at once.
    silent_since: Option<Instant>,
    thinking: bool,
    times: Times,
}

// === impl Asker ===

impl Asker {
    /// # Errors
    /// A sentence on why the target cannot be asked at all.
    pub(in crate::bench) fn new(subject: &Subject, way: &Way, max_event: usize) -> Result<Self, String> {
        let Subject { target, clocks, .. } = subject;
        let provider = dialect::provider(target.dialect)
            .ok_or_else(|| format!("the dialect `{}` is not built in", target.dialect.name()))?;
        let first = if target.reasons { clocks.thinking } else { clocks.first_token };
        let patience = Patience {
            first: first.max(clocks.idle),
            silence: clocks.stall.max(clocks.idle),
            turn: clocks.turn.max(first),
        };
        Ok(Self {
            target: Arc::clone(target),
            upstream: Arc::clone(&way.upstream),
            secrets: way.secrets.clone(),
            provider,
            carry: Carry::fresh(),
            repairs: 0,
            patience,
            connect: clocks.connect,
            error_body: clocks.error_body,
            max_event,
        })
    }

    /// Asks once, and hears the answer to its end. To drop the future is to hang up.
    pub(in crate::bench) async fn ask(&mut self, request: &Request) -> Ended {
        match self.hear(request).await {
            Ok(times) => Ended::Whole(times),
            Err(failure) => match &failure.remedy {
                Some(remedy) if self.repairs < MOST_REPAIRS && self.carry.form.learn(remedy) => {
                    self.repairs += 1;
                    Ended::Again
                }
                _ => Ended::Failed(failure),
            },
        }
    }

    async fn hear(&self, request: &Request) -> Result<Times, Failure> {
        let wire = self.provider.encode(request, &self.target, &self.carry)?;
        let mut signals = self.upstream.open(Call {
            provider: self.provider,
            wire,
            expect: Expect::of(1),
            connect: self.connect,
            error_body: self.error_body,
            max_event: self.max_event,
            credential: None,
            secrets: self.secrets.clone(),
        });
        let mut hearing = Hearing::new(Instant::now());
        let end = hearing.sent + self.patience.turn;
        let mut until = end.min(hearing.sent + self.patience.first);
        loop {
            let signal = match signals.next().now_or_never() {
                Some(signal) => signal,
                None => {
                    hearing.silent_since.get_or_insert_with(Instant::now);
                    timeout_at(until, signals.next()).await.map_err(|_| hearing.too_late())?
                }
            };
            let now = Instant::now();
            match signal {
                Some(Signal::Sent) => {
                    hearing = Hearing::new(now);
                    until = end.min(now + self.patience.first);
                }
                Some(Signal::Queued | Signal::Left(_) | Signal::Opened | Signal::Declined(_)) => {}
                Some(Signal::Step(step)) => {
                    if hearing.step(&step, now) {
                        let waits = if hearing.thinking { self.patience.first } else { self.patience.silence };
                        until = end.min(now + waits);
                    }
                }
                Some(Signal::Ended) => return hearing.whole(now),
                Some(Signal::Failed(failure)) => return Err(*failure),
                None => {
                    let failure = Failure::new(Kind::Truncated, Stage::Streaming);
                    return Err(failure.saying("the attempt ended without a word"));
                }
            }
        }
    }
}

// === impl Hearing ===

impl Hearing {
    fn new(sent: Instant) -> Self {
        Self { sent, first: None, silent_since: None, thinking: false, times: Times::default() }
    }

    /// Takes a step; whether it moves the clock for silence.
    fn step(&mut self, step: &Step, now: Instant) -> bool {
        let before = self.thinking;
        for event in &step.events {
            match event {
                Event::Thinking(on) => {
                    self.thinking = *on;
                    self.silent_since = None;
                }
                Event::Text { text, .. } | Event::Refusal { text, .. } if self.times.text.len() < MOST_TEXT => {
                    self.times.text.push_str(text);
                }
                Event::Identity(identity) if !identity.model.is_empty() => {
                    self.times.model.clone_from(&identity.model);
                }
                Event::Usage(usage) => self.times.generated = usage.completion.unwrap_or(self.times.generated),
                _ => {}
            }
        }
        if !step.is_progress() {
            return before != self.thinking;
        }
        let silence = self.silent_since.take();
        if self.first.is_none() {
            self.first = Some(now.duration_since(self.sent));
        } else if let Some(since) = silence.filter(|_| !self.thinking) {
            self.times.gaps.push(now.duration_since(since));
        }
        true
    }

    fn whole(self, now: Instant) -> Result<Times, Failure> {
        let total = now.duration_since(self.sent);
        let Some(first) = self.first else { return Err(Failure::new(Kind::EmptyTurn, Stage::Streaming)) };
        Ok(Times { first, total, ..self.times })
    }

    fn too_late(&self) -> Failure {
        let kind = if self.first.is_some() { Kind::Stalled } else { Kind::FirstTokenTimeout };
        let waited = Instant::now().duration_since(self.sent).as_secs_f64();
        Failure::new(kind, Stage::Streaming).saying(format!("given up {waited:.1} s after the request"))
    }
}

/// The most request fields that are left out for one target.
const MOST_REPAIRS: u32 = 4;

/// Bytes of an answer's text past which no more of it is kept.
const MOST_TEXT: usize = 1 << 16;
