//! The same timeline as the signals of an attempt, for simulations in virtual time: no bytes, no sockets.
//!
//! What a break means is written down here once more, apart from the decoders: a reset is [`Kind::Reset`], a body that
//! ends well without a finish [`Kind::Truncated`], an event that is no JSON [`Kind::Malformed`].

use super::play::{Act, Answer, Body, Say, Tokens, play};
use super::reading::Reading;
use super::script::{self, Close, Script, Wrong};
use crate::event::{Event, Finish, Identity, Signal, Step, Usage};
use crate::failure::{Failure, Kind, Remedy, RetryAt, Stage};
use crate::turn::resume::Carry;
use std::time::Duration;

/// What an attempt with `carry` comes to under `script`: signals with their times since the attempt was opened, the
/// first of them [`Signal::Sent`] at 0. Where the last one is neither [`Signal::Ended`] nor [`Signal::Failed`], the
/// attempt stays open and silent.
pub fn timeline(script: &Script, carry: &Carry, seed: u64) -> Vec<(Duration, Signal)> {
    of_reading(script, &Reading::of(carry), seed)
}

/// The same for a request that the provider reads so; for targets that are given another text than the delivered one.
pub fn of_reading(script: &Script, reading: &Reading, seed: u64) -> Vec<(Duration, Signal)> {
    let acts = play(script, reading, seed);
    let mut signals = Vec::with_capacity(acts.len() + 1);
    signals.push((Duration::ZERO, Signal::Sent));
    let mut attempt = Attempt { signals, seed, opened: false, said: false, progressed: false, calls: 0, finish: None };
    for (at, act) in acts {
        if attempt.act(at, act) {
            break;
        }
    }
    attempt.signals
}

struct Attempt {
    signals: Vec<(Duration, Signal)>,
    seed: u64,
    opened: bool,
    /// An event came.
    said: bool,
    progressed: bool,
    calls: u32,
    finish: Option<script::Finish>,
}

// === impl Attempt ===

impl Attempt {
    /// Takes one act; `true` if nothing follows.
    fn act(&mut self, at: Duration, act: Act<'_>) -> bool {
        match act {
            Act::Headers => {
                self.opened = true;
                self.signals.push((at, Signal::Opened));
                false
            }
            Act::Answer(answer) => self.fail(at, refusal(&answer)),
            Act::Say(Say::Error { wrong, .. }) => {
                self.fail(at, Failure::new(kind(wrong), Stage::Streaming).saying("an error event"))
            }
            Act::Say(Say::Done) => self.done(at),
            Act::Say(say) => {
                self.say(at, say);
                false
            }
            Act::Half(..) => {
                self.step(at, Event::Alive);
                false
            }
            Act::Garbage => self.fail(at, Failure::new(Kind::Malformed, Stage::Streaming)),
            Act::Pings(every) => {
                let count = (PINGING.as_nanos() / every.as_nanos().max(1)).clamp(1, MOST_PINGS);
                for ping in 1..=u32::try_from(count).unwrap_or(1) {
                    self.step(at + every * ping, Event::Alive);
                }
                true
            }
            Act::Close(Close::Hold) => true,
            Act::Close(Close::End) => match (self.finish.is_some(), self.said) {
                (true, _) => {
                    self.signals.push((at, Signal::Ended));
                    true
                }
                (false, true) => self.fail(at, Failure::new(Kind::Truncated, Stage::Streaming)),
                (false, false) => self.fail(at, Failure::new(Kind::EmptyTurn, Stage::Streaming)),
            },
            Act::Close(Close::Reset | Close::Fin) => {
                let stage = if self.opened { Stage::Streaming } else { Stage::Waiting };
                self.fail(at, Failure::new(Kind::Reset, stage))
            }
        }
    }

    fn say(&mut self, at: Duration, say: Say<'_>) {
        let event = match say {
            Say::Open(_) => {
                self.said = true;
                let id = format!("rig-{}", self.seed);
                Event::Identity(Box::new(Identity { id, model: MODEL.to_owned(), created: CREATED }))
            }
            Say::Thinking(begins) => Event::Thinking(begins),
            Say::Reasoning(text) => Event::Reasoning { choice: 0, text: text.into_owned() },
            Say::Text { choice, text } => Event::Text { choice, text: text.into_owned() },
            Say::Refusal(text) => Event::Refusal { choice: 0, text: text.into_owned() },
            Say::ToolOpen { call, id, name } => {
                self.calls += 1;
                Event::ToolOpen { choice: 0, call, id: id.to_owned(), name: name.to_owned() }
            }
            Say::ToolArgs { call, args } => Event::ToolArgs { choice: 0, call, args: args.into_owned() },
            Say::ToolClose { call } => Event::ToolClose { choice: 0, call },
            Say::Finish { choice, reason, .. } => {
                self.finish = Some(reason);
                Event::Finish { choice, reason: finish(reason), stop_sequence: None }
            }
            Say::Usage(tokens) => Event::Usage(Box::new(usage(&tokens))),
            Say::Done | Say::Error { .. } | Say::Ping => Event::Alive,
        };
        self.progressed |= event.is_progress();
        self.step(at, event);
    }

    /// The terminator: after content without a finish it stands for one.
    fn done(&mut self, at: Duration) -> bool {
        if !self.said {
            return self.fail(at, Failure::new(Kind::EmptyTurn, Stage::Streaming));
        }
        if self.finish.is_none() {
            if !self.progressed {
                return self.fail(at, Failure::new(Kind::EmptyTurn, Stage::Streaming));
            }
            let reason = if self.calls > 0 { Finish::ToolCalls } else { Finish::Stop };
            self.step(at, Event::Finish { choice: 0, reason, stop_sequence: None });
        }
        self.signals.push((at, Signal::Ended));
        true
    }

    fn step(&mut self, at: Duration, event: Event) {
        self.signals.push((at, Signal::Step(Step::of(event))));
    }

    fn fail(&mut self, at: Duration, failure: Failure) -> bool {
        self.signals.push((at, Signal::Failed(Box::new(failure))));
        true
    }
}

// === helpers ===

fn refusal(answer: &Answer<'_>) -> Failure {
    let (kind, remedy) = match answer.body {
        Body::Error(wrong) => (kind(wrong), None),
        Body::Invalid(super::play::NO_PREFILL) => (Kind::BadRequest, Some(Remedy::Instruct)),
        Body::Invalid(_) => (Kind::BadRequest, None),
        Body::Html if answer.status >= 500 => (kind(Wrong::of_status(answer.status)), None),
        Body::Html => (Kind::Framing, None),
    };
    let mut failure = Failure::new(kind, Stage::Refused);
    failure.status = Some(answer.status);
    failure.remedy = remedy;
    let seconds = answer.headers.and_then(|headers| headers.get("retry-after")).and_then(|value| value.parse().ok());
    failure.retry_at = seconds.map(|seconds| RetryAt::In(Duration::from_secs(seconds)));
    failure
}

fn kind(wrong: Wrong) -> Kind {
    match wrong {
        Wrong::Overloaded => Kind::Overloaded,
        Wrong::Server => Kind::ServerError,
        Wrong::RateLimited => Kind::RateLimited,
        Wrong::Quota => Kind::QuotaExhausted,
        Wrong::Auth => Kind::Auth,
        Wrong::Invalid => Kind::BadRequest,
        Wrong::TooLong => Kind::ContextTooLong,
        Wrong::Filtered => Kind::ContentFiltered,
    }
}

fn finish(reason: script::Finish) -> Finish {
    match reason {
        script::Finish::Auto | script::Finish::Stop => Finish::Stop,
        script::Finish::Length => Finish::Length,
        script::Finish::ToolCalls => Finish::ToolCalls,
        script::Finish::ContentFilter => Finish::ContentFilter,
    }
}

fn usage(tokens: &Tokens) -> Usage {
    Usage {
        prompt: Some(tokens.prompt),
        completion: Some(tokens.completion),
        reasoning: Some(tokens.reasoning),
        ..Usage::default()
    }
}

// === consts ===

/// The model's name for itself.
const MODEL: &str = "rig";

/// Its answers' time of creation.
const CREATED: u64 = 1_700_000_000;

/// A simulation is finite: after this time, or [`MOST_PINGS`], even a provider that only pings falls silent.
const PINGING: Duration = Duration::from_secs(120);

/// The most pings of a simulated break.
const MOST_PINGS: u128 = 256;
