//! What a script comes to for one request: a timeline of acts, the same for a simulation and for a socket.
//!
//! It is pure: script, reading and seed in, acts out, each with the time since the request was taken.

use super::reading::Reading;
use super::script::{Break, Close, Continuation, Ending, Finish, Form, Reject, Script, Wrong};
use super::seed::Dice;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

mod rest;

#[cfg(test)]
pub(super) use rest::PREAMBLE;

/// One thing that a provider does.
#[derive(Clone, Debug, PartialEq)]
pub enum Act<'a> {
    /// A whole answer instead of a stream.
    Answer(Answer<'a>),
    /// Status 200 and the headers of an event stream.
    Headers,
    /// Something said, in one write.
    Say(Say<'a>),
    /// The first half of what would say this.
    Half(Say<'a>, Half),
    /// An event that is no JSON.
    Garbage,
    /// Pings without end.
    Pings(Duration),
    /// What happens to the connection; always the last act.
    Close(Close),
}

/// A whole answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer<'a> {
    /// HTTP status.
    pub status: u16,
    /// Headers besides the content's own.
    pub headers: Option<&'a BTreeMap<String, String>>,
    /// The body.
    pub body: Body,
}

/// The body of a whole answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// The API's error body.
    Error(Wrong),
    /// The API's error body for a bad request, with this message.
    Invalid(&'static str),
    /// A page.
    Html,
}

/// Where half an event ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// In the middle.
    Middle,
    /// After the first byte of a character of several.
    Char,
}

/// Something that is said within a stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Say<'a> {
    /// The preamble: role or message start.
    Open(Option<Tokens>),
    /// Unseen thinking begins or ends.
    Thinking(bool),
    /// A piece of reasoning.
    Reasoning(Cow<'a, str>),
    /// A piece of text.
    Text {
        /// Of which choice.
        choice: u32,
        /// The piece.
        text: Cow<'a, str>,
    },
    /// A piece of a refusal.
    Refusal(Cow<'a, str>),
    /// A tool call begins.
    ToolOpen {
        /// Its number.
        call: u32,
        /// Its id.
        id: &'a str,
        /// The function.
        name: &'a str,
    },
    /// A fragment of its arguments.
    ToolArgs {
        /// Of which call.
        call: u32,
        /// The fragment.
        args: Cow<'a, str>,
    },
    /// It is complete.
    ToolClose {
        /// Which.
        call: u32,
    },
    /// A choice is finished.
    Finish {
        /// Which.
        choice: u32,
        /// Why; never `Auto`.
        reason: Finish,
        /// What was used, for APIs that say it here.
        tokens: Option<Tokens>,
    },
    /// What was used.
    Usage(Tokens),
    /// The terminator.
    Done,
    /// An error.
    Error {
        /// What is wrong.
        wrong: Wrong,
        /// How it is worded.
        form: Form,
    },
    /// A sign of life.
    Ping,
}

/// What an answer used; a piece is a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Tokens of the prompt.
    pub prompt: u64,
    /// Generated tokens, reasoning included.
    pub completion: u64,
    /// The part of them that was reasoning.
    pub reasoning: u64,
}

/// The acts of `script` for a request that reads as `reading`; the last one is always an [`Act::Close`], an
/// [`Act::Answer`] or [`Act::Pings`].
pub fn play<'a>(script: &'a Script, reading: &'a Reading, seed: u64) -> Vec<(Duration, Act<'a>)> {
    let mut dice = Dice::labelled(seed, 0);
    let mut stage = Stage { at: Duration::ZERO, acts: Vec::new(), keep_alive: script.pace.keep_alive };
    let first = script.pace.headers.draw(0, &mut dice);
    stage.at = first;
    if let Some(flaw) = reading.flaw {
        stage.act(Act::Answer(Answer { status: 400, headers: None, body: Body::Invalid(flaw) }));
        return stage.acts;
    }
    if let Some(reject) = &script.reject {
        stage.reject(reject);
        return stage.acts;
    }
    if script.continuation == Continuation::RefusesPrefill && rest::is_prefill(reading) {
        stage.act(Act::Answer(Answer { status: 400, headers: None, body: Body::Invalid(NO_PREFILL) }));
        return stage.acts;
    }
    stage.stream(script, reading, &mut dice);
    stage.acts
}

/// The acts so far, and the time of the next.
struct Stage<'a> {
    at: Duration,
    acts: Vec<(Duration, Act<'a>)>,
    keep_alive: Option<Duration>,
}

// === impl Stage ===

impl<'a> Stage<'a> {
    fn act(&mut self, act: Act<'a>) {
        self.acts.push((self.at, act));
    }

    fn say(&mut self, say: Say<'a>) {
        self.act(Act::Say(say));
    }

    fn wait(&mut self, wait: Duration) {
        let until = self.at.saturating_add(wait);
        if let Some(every) = self.keep_alive.filter(|every| !every.is_zero()) {
            let pings = (wait.as_nanos().saturating_sub(1) / every.as_nanos()).min(MOST_PINGS);
            for _ in 0..pings {
                self.at += every;
                self.say(Say::Ping);
            }
        }
        self.at = until;
    }

    fn reject(&mut self, reject: &'a Reject) {
        let answer = |status, headers, body| Act::Answer(Answer { status, headers, body });
        match reject {
            Reject::Error { status, headers, wrong } => {
                let wrong = wrong.unwrap_or_else(|| Wrong::of_status(*status));
                self.act(answer(*status, Some(headers), Body::Error(wrong)));
            }
            Reject::JsonError { wrong } => self.act(answer(200, None, Body::Error(*wrong))),
            Reject::Html { status } => self.act(answer(*status, None, Body::Html)),
            Reject::DoneOnly => {
                self.act(Act::Headers);
                self.say(Say::Done);
                self.act(Act::Close(Close::End));
            }
            Reject::HeadersOnly => {
                self.act(Act::Headers);
                self.act(Act::Close(Close::Hold));
            }
            Reject::NeverAnswers => self.act(Act::Close(Close::Hold)),
            Reject::ClosesAtOnce => self.act(Act::Close(Close::Fin)),
        }
    }

    fn stream(&mut self, script: &'a Script, reading: &'a Reading, dice: &mut Dice) {
        let told = rest::Told::of(script, reading, dice);
        let usage = script.content.usage;
        self.acts.reserve(told.says.len() + 8);
        self.act(Act::Headers);
        let prompt = Tokens { prompt: script.content.prompt_tokens, ..Tokens::default() };
        self.say(Say::Open(usage.then_some(prompt)));
        let mut first = script.pace.first.draw(0, dice);
        if let Some(thinks) = script.content.thinks {
            self.say(Say::Thinking(true));
            self.wait(thinks);
            self.say(Say::Thinking(false));
            first = first.saturating_sub(thinks);
        }
        let mut slow = None;
        let mut count = 0;
        for say in told.says {
            if !say.is_token() {
                self.say(say);
                continue;
            }
            let wait = match (slow, count) {
                (Some(gap), _) => gap,
                (None, 0) => first,
                (None, _) => script.pace.gap.draw(count - 1, dice),
            };
            match script.fault.as_ref().filter(|fault| fault.at == count).map(|fault| &fault.how) {
                Some(Break::Dribble { gap }) => {
                    slow = Some(*gap);
                    self.wait(if count == 0 { first } else { *gap });
                }
                Some(Break::Garbage) => {
                    self.wait(wait);
                    self.act(Act::Garbage);
                }
                Some(how) => {
                    self.wait(wait);
                    return self.break_off(how, say);
                }
                None => self.wait(wait),
            }
            self.say(say);
            count += 1;
        }
        if count == 0 {
            self.wait(first);
        }
        let fault = script.fault.as_ref().filter(|fault| fault.at >= count).map(|f| (f.at > count, &f.how));
        let fault = fault.filter(|(_, how)| !matches!(how, Break::Dribble { .. }));
        let tokens = usage.then_some(told.tokens);
        let mut finishes =
            (0..told.choices).map(|choice| Say::Finish { choice, reason: told.finish, tokens }).peekable();
        if let (Some((false, how)), Some(next)) = (fault, finishes.peek()) {
            self.wait(script.pace.gap.draw(count, dice));
            let next = next.clone();
            return self.break_off(how, next);
        }
        if script.ending != Ending::NoFinish {
            finishes.for_each(|say| self.say(say));
        }
        if let Some((true, how)) = fault {
            return self.break_off(how, Say::Done);
        }
        if let Some(tokens) = tokens {
            self.say(Say::Usage(tokens));
        }
        if script.ending != Ending::NoTerminator {
            self.say(Say::Done);
        }
        self.act(Act::Close(if script.ending == Ending::HeldOpen { Close::Hold } else { Close::End }));
    }

    /// Breaks in place of `next`.
    fn break_off(&mut self, how: &Break, next: Say<'a>) {
        let close = match how {
            Break::Reset => Close::Reset,
            Break::Fin => Close::Fin,
            Break::CleanEnd => Close::End,
            Break::Silence | Break::Dribble { .. } => Close::Hold,
            Break::HalfEvent { then } => {
                self.act(Act::Half(next, Half::Middle));
                *then
            }
            Break::HalfChar { then } => {
                self.act(Act::Half(next.with_wide_char(), Half::Char));
                *then
            }
            Break::ErrorEvent { wrong, form, done } => {
                self.say(Say::Error { wrong: *wrong, form: *form });
                if *done {
                    self.say(Say::Done);
                }
                Close::End
            }
            Break::PingsOnly { every } => return self.act(Act::Pings((*every).max(FASTEST_PING))),
            Break::Garbage => {
                self.act(Act::Garbage);
                Close::End
            }
        };
        self.act(Act::Close(close));
    }
}

// === impl Say ===

impl Say<'_> {
    /// Whether it is a token: what a fault counts and a pace separates.
    pub fn is_token(&self) -> bool {
        match self {
            Self::Reasoning(_)
            | Self::Text { .. }
            | Self::Refusal(_)
            | Self::ToolOpen { .. }
            | Self::ToolArgs { .. } => true,
            Self::Open(_)
            | Self::Thinking(_)
            | Self::ToolClose { .. }
            | Self::Finish { .. }
            | Self::Usage(_)
            | Self::Done
            | Self::Error { .. }
            | Self::Ping => false,
        }
    }

    /// The same with a character of several bytes in its text, so that it can be cut inside one. Nobody will read it:
    /// an event that is cut there is never whole.
    fn with_wide_char(mut self) -> Self {
        if let Self::Text { text, .. } | Self::Reasoning(text) | Self::Refusal(text) | Self::ToolArgs { args: text, .. } =
            &mut self
            && text.is_ascii()
        {
            text.to_mut().push('é');
        }
        self
    }
}

// === consts ===

/// What APIs without prefill say.
pub const NO_PREFILL: &str =
    "This model does not support assistant message prefill. The conversation must end with a user message.";

/// Pings are no more frequent than this, or a script could keep a core busy.
pub const FASTEST_PING: Duration = Duration::from_millis(1);

/// No single silence has more pings.
const MOST_PINGS: u128 = 10_000;
