//! What of one attempt's events is news to the client.
//!
//! Between an attempt and the client stands, in this order: the seam (text that a continuation repeats), muted
//! reasoning, held tool calls, held structured output. Whatever is changed here loses its `raw` form.

use super::calls::{Differs, Replay};
use super::structure::Object;
use crate::event::{self, Event, Extra, Finish, Place, Step};
use crate::failure::{Failure, Kind, Stage};
use crate::routing::Delivery;
use crate::turn::is_whole;
use crate::turn::seam::{Join, Rejected, Seam};
use smallvec::SmallVec;

/// The filter of one attempt.
#[derive(Debug)]
pub(super) struct Sieve {
    seam: Option<Seam>,
    /// The client has heard reasoning, or text after which none may come.
    muted: bool,
    calls: Calls,
    replay: Option<Replay>,
    /// Tool calls that are not told yet, in the order in which they came.
    held: Vec<Held>,
    held_bytes: usize,
    /// Thinking that came behind a held call, and stays behind it.
    behind: Vec<Event>,
    pub(super) object: Object,
    /// Identity, extras and silent thinking that wait until the attempt leads.
    preamble: SmallVec<[Event; 2]>,
    preamble_bytes: usize,
    guessed: bool,
    limit: usize,
}

/// A tool call that is not told yet. Its fragments are put together as they come: told one by one they would cost far
/// more than their bytes, and nobody waits for them singly.
#[derive(Debug)]
struct Held {
    choice: u32,
    call: u32,
    /// Its id and name; `None` if it was opened before the holding began.
    opened: Option<(String, String)>,
    args: String,
    /// What it holds besides.
    besides: Vec<Event>,
    closed: bool,
}

/// When tool calls are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Calls {
    /// Not decided before the first one.
    Ask(Delivery),
    Hold,
    Stream,
}

// === impl Sieve ===

impl Sieve {
    /// For an attempt that answers from the start, of at most `limit` held bytes.
    pub(super) fn fresh(calls: Delivery, limit: usize) -> Self {
        Self {
            seam: None,
            muted: false,
            calls: Calls::Ask(calls),
            replay: None,
            held: Vec::new(),
            held_bytes: 0,
            behind: Vec::new(),
            object: Object::Plain,
            preamble: SmallVec::new(),
            preamble_bytes: 0,
            guessed: false,
            limit,
        }
    }

    pub(super) fn with_seam(mut self, seam: Seam) -> Self {
        self.seam = Some(seam);
        self
    }

    pub(super) fn muted(mut self, muted: bool) -> Self {
        self.muted = muted;
        self
    }

    pub(super) fn replaying(mut self, replay: Replay) -> Self {
        self.replay = Some(replay);
        self.calls = Calls::Stream;
        self
    }

    pub(super) fn checking(mut self) -> Self {
        self.object = Object::Ask;
        self
    }

    pub(super) fn forwarding(mut self, told: String) -> Self {
        self.object = Object::Forward { told, at: 0 };
        self
    }

    /// What of `step` the client does not know. `hold`: somebody else could make the answer again, so what cannot be
    /// spliced is held.
    pub(super) fn sift(&mut self, step: Step, hold: bool) -> Result<Step, Box<Failure>> {
        if self.is_open() && step.events.iter().all(|e| self.passes(e)) {
            self.watch(&step);
            return Ok(step);
        }
        let mut told = Step::default();
        // What is said beside a text (log-probabilities) goes where the text goes: not told if that is not told as it came.
        let undecided = self.seam.as_ref().is_some_and(Seam::is_undecided);
        let before = step.events.iter().map(text_of).sum::<usize>();
        for event in step.events {
            self.event(event, hold, &mut told)?;
        }
        if undecided && before > 0 && told.events.iter().map(text_of).sum::<usize>() != before {
            told.events.retain(|event| !is_beside(event));
        }
        Ok(told)
    }

    /// Whether nothing is held, awaited or matched.
    fn is_open(&self) -> bool {
        self.seam.is_none() && self.held.is_empty() && matches!(self.object, Object::Plain | Object::Watched(..))
    }

    /// Keeps what is told of an object that is checked at its end.
    fn watch(&mut self, step: &Step) {
        let Object::Watched(object) = &mut self.object else { return };
        for event in &step.events {
            if let Event::Text { text, .. } = event {
                object.push_str(text);
            }
        }
    }

    fn passes(&self, event: &Event) -> bool {
        match event {
            Event::Extra(extra) => !matches!(extra.place, Place::Call { .. }),
            Event::Text { .. } | Event::Refusal { .. } | Event::Identity(_) => true,
            Event::Reasoning { .. } | Event::Signature { .. } | Event::Thinking(_) => !self.muted,
            Event::ToolArgs { .. } => self.calls == Calls::Stream && self.replay.is_none(),
            Event::Alive
            | Event::ServerTool(_)
            | Event::ToolOpen { .. }
            | Event::ToolClose { .. }
            | Event::Usage(_)
            | Event::Finish { .. } => false,
        }
    }

    pub(super) fn event(&mut self, event: Event, hold: bool, told: &mut Step) -> Result<(), Box<Failure>> {
        if let Object::Asked { rest, .. } = &mut self.object {
            // A finish has been heard: hardly anything follows.
            if rest.len() < PREAMBLE && !matches!(event, Event::Alive | Event::Usage(_)) {
                rest.push(event);
            }
            return Ok(());
        }
        match event {
            Event::Alive | Event::Usage(_) => {}
            // What a call holds besides goes with the call.
            Event::Extra(ref extra) if matches!(extra.place, Place::Call { .. }) => {
                self.decide_on_calls(hold);
                self.call(event, told)?;
            }
            Event::Identity(_) | Event::Extra(_) | Event::ServerTool(_) => told.events.push(event),
            Event::Reasoning { .. } | Event::Signature { .. } | Event::Thinking(_) => {
                if self.muted {
                    return Ok(());
                }
                if self.held.is_empty() {
                    told.events.push(event);
                } else {
                    self.stay_behind(event)?;
                }
            }
            Event::Text { choice, text } => {
                if let Some(text) = self.join(text)? {
                    self.release(choice, told);
                    self.text(choice, text, hold, told)?;
                }
            }
            Event::Refusal { choice, .. } => {
                self.close_seam(choice, hold, told)?;
                self.release(choice, told);
                told.events.push(event);
            }
            Event::ToolOpen { choice, .. } => {
                self.close_seam(choice, hold, told)?;
                self.decide_on_calls(hold);
                self.call(event, told)?;
            }
            Event::ToolArgs { .. } | Event::ToolClose { .. } => self.call(event, told)?,
            Event::Finish { choice, reason, stop_sequence } => {
                self.close_seam(choice, hold, told)?;
                if self.finish_object(choice, &reason, hold, told)? {
                    return self.event(Event::Finish { choice, reason, stop_sequence }, hold, told);
                }
                let reason = self.finish_calls(choice, reason, hold)?;
                if let Some(replay) = &self.replay {
                    replay.finish().map_err(differs)?;
                }
                self.release(choice, told);
                told.events.push(Event::Finish { choice, reason, stop_sequence });
            }
        }
        Ok(())
    }

    // --- text ---

    fn join(&mut self, text: String) -> Result<Option<String>, Box<Failure>> {
        let Some(seam) = &mut self.seam else { return Ok(Some(text)) };
        let join = seam.push(&text).map_err(rejected)?;
        Ok(self.joined(join))
    }

    fn joined(&mut self, join: Join) -> Option<String> {
        match join {
            Join::Held => None,
            Join::Text(text) => Some(text),
            Join::Guess(text) => {
                self.guessed = true;
                Some(text)
            }
        }
        .filter(|text| !text.is_empty())
    }

    fn close_seam(&mut self, choice: u32, hold: bool, told: &mut Step) -> Result<(), Box<Failure>> {
        let Some(seam) = &mut self.seam else { return Ok(()) };
        let join = seam.close().map_err(rejected)?;
        match self.joined(join) {
            Some(text) => self.text(choice, text, hold, told),
            None => Ok(()),
        }
    }

    fn text(&mut self, choice: u32, text: String, hold: bool, told: &mut Step) -> Result<(), Box<Failure>> {
        self.object = match std::mem::replace(&mut self.object, Object::Plain) {
            Object::Ask if hold => {
                self.bound(text.len())?;
                Object::Held(text)
            }
            Object::Held(mut object) => {
                self.bound(object.len() + text.len())?;
                object.push_str(&text);
                Object::Held(object)
            }
            Object::Forward { told: known, at } => {
                let (rest, at) = forward(&known, at, &text)?;
                if !rest.is_empty() {
                    told.events.push(Event::Text { choice, text: rest.to_owned() });
                }
                Object::Forward { told: known, at }
            }
            Object::Ask => {
                told.events.push(Event::Text { choice, text: text.clone() });
                Object::Watched(text)
            }
            Object::Watched(mut object) => {
                object.push_str(&text);
                told.events.push(Event::Text { choice, text });
                Object::Watched(object)
            }
            // Nothing is pushed past a question.
            asked @ Object::Asked { .. } => asked,
            Object::Plain => {
                told.events.push(Event::Text { choice, text });
                Object::Plain
            }
        };
        Ok(())
    }

    // --- tool calls ---

    fn decide_on_calls(&mut self, hold: bool) {
        if let Calls::Ask(delivery) = self.calls {
            self.calls = if hold && delivery == Delivery::Hold { Calls::Hold } else { Calls::Stream };
        }
    }

    fn call(&mut self, event: Event, told: &mut Step) -> Result<(), Box<Failure>> {
        let event = match &mut self.replay {
            Some(replay) => replay.sift(event).map_err(differs)?,
            None => Some(event),
        };
        let Some(event) = event else { return Ok(()) };
        if self.calls == Calls::Hold {
            return self.hold(event);
        }
        told.events.push(event);
        Ok(())
    }

    fn hold(&mut self, event: Event) -> Result<(), Box<Failure>> {
        match event {
            Event::ToolOpen { choice, call, id, name } => {
                self.held_bytes += id.len() + name.len();
                self.held(choice, call).opened = Some((id, name));
            }
            Event::ToolArgs { choice, call, args } => {
                self.held_bytes += args.len();
                self.held(choice, call).args.push_str(&args);
            }
            Event::ToolClose { choice, call } => self.held(choice, call).closed = true,
            Event::Extra(extra) => {
                if let Place::Call { choice, call } = extra.place {
                    self.held_bytes +=
                        extra.fields.iter().map(|(name, field)| name.len() + event::weight_of(field)).sum::<usize>();
                    self.held_bytes += size_of::<Extra>();
                    self.held(choice, call).besides.push(Event::Extra(extra));
                }
            }
            _ => {}
        }
        self.bound(self.held_bytes)
    }

    /// The held call of that number. Decoders bound how many there are.
    fn held(&mut self, choice: u32, call: u32) -> &mut Held {
        let known = self.held.iter().rposition(|held| held.choice == choice && held.call == call);
        let at = known.unwrap_or_else(|| {
            self.held_bytes += size_of::<Held>();
            self.held.push(Held {
                choice,
                call,
                opened: None,
                args: String::new(),
                besides: Vec::new(),
                closed: false,
            });
            self.held.len() - 1
        });
        &mut self.held[at]
    }

    fn stay_behind(&mut self, event: Event) -> Result<(), Box<Failure>> {
        self.held_bytes += event.weight();
        self.bound(self.held_bytes)?;
        match (self.behind.last_mut(), event) {
            (Some(Event::Reasoning { choice, text }), Event::Reasoning { choice: same, text: more })
                if *choice == same =>
            {
                text.push_str(&more);
            }
            (_, event) => self.behind.push(event),
        }
        Ok(())
    }

    /// A call whose arguments are no JSON was cut, whatever the finish says. While somebody else could make it whole it is
    /// the attempt's failure; told to a client, it is an answer that met its limit.
    fn finish_calls(&self, choice: u32, reason: Finish, hold: bool) -> Result<Finish, Box<Failure>> {
        let mut of_choice = self.held.iter().filter(|held| held.choice == choice);
        if matches!(reason, Finish::Length | Finish::ContentFilter) || of_choice.all(|held| is_whole(&held.args)) {
            return Ok(reason);
        }
        if hold {
            let failure = Failure::new(Kind::Malformed, Stage::Streaming);
            return Err(Box::new(failure.saying("a tool call was cut: its arguments are no JSON")));
        }
        Ok(Finish::Length)
    }

    /// Tells the held calls of `choice`, each whole.
    fn release(&mut self, choice: u32, told: &mut Step) {
        for held in self.held.extract_if(.., |held| held.choice == choice) {
            let Held { choice, call, opened, args, besides, closed } = held;
            told.events.extend(besides);
            if let Some((id, name)) = opened {
                told.events.push(Event::ToolOpen { choice, call, id, name });
            }
            if !args.is_empty() {
                told.events.push(Event::ToolArgs { choice, call, args });
            }
            if closed {
                told.events.push(Event::ToolClose { choice, call });
            }
        }
        if self.held.is_empty() {
            told.events.extend(self.behind.drain(..));
        }
    }

    fn bound(&self, bytes: usize) -> Result<(), Box<Failure>> {
        if bytes <= self.limit {
            return Ok(());
        }
        let failure = Failure::new(Kind::Framing, Stage::Streaming);
        Err(Box::new(failure.saying(format!("more than limits.max_turn ({} bytes) was held back", self.limit))))
    }

    /// About how many bytes of heap are held back.
    pub(super) fn footprint(&self) -> usize {
        let object = match &self.object {
            Object::Held(text) | Object::Watched(text) => text.len(),
            Object::Asked { text, .. } => text.len(),
            Object::Forward { told, .. } => told.len(),
            Object::Plain | Object::Ask => 0,
        };
        object + self.held_bytes
    }

    // --- before it leads ---

    /// Keeps what a contender says of itself until it leads, within bounds.
    pub(super) fn keep(&mut self, told: Step) {
        // A thinking block of which nothing is shown is its signature, and the client must send that back.
        let kept = told.events.into_iter().filter(|e| {
            matches!(e, Event::Identity(_) | Event::Extra(_) | Event::Signature { .. } | Event::Thinking(_))
        });
        for event in kept {
            let size = event.weight();
            if self.preamble.len() < PREAMBLE && self.preamble_bytes + size <= PREAMBLE_BYTES {
                self.preamble_bytes += size;
                self.preamble.push(event);
            }
        }
    }

    /// What it said of itself before it led.
    pub(super) fn take_preamble(&mut self) -> Step {
        self.preamble_bytes = 0;
        Step { events: std::mem::take(&mut self.preamble), raw: None }
    }

    /// Whether the last text was joined on a guess; asking clears it.
    pub(super) fn guessed(&mut self) -> bool {
        std::mem::take(&mut self.guessed)
    }

    /// How its seam was decided; `None` for an attempt without one.
    pub(super) fn decided(&self) -> Option<&'static str> {
        self.seam.as_ref().map(Seam::decided)
    }
}

// === helpers ===

fn text_of(event: &Event) -> usize {
    if let Event::Text { text, .. } = event { text.len() } else { 0 }
}

/// It is about a piece of text and nothing by itself.
fn is_beside(event: &Event) -> bool {
    matches!(event, Event::Extra(extra) if !extra.bound && matches!(extra.place, Place::Delta(_) | Place::Choice(_)))
}

fn forward<'a>(known: &str, at: usize, text: &'a str) -> Result<(&'a str, usize), Box<Failure>> {
    let expected = &known.as_bytes()[at..];
    let shared = expected.len().min(text.len());
    if expected[..shared] != text.as_bytes()[..shared] {
        return Err(differs(Differs));
    }
    Ok((text.get(shared..).unwrap_or_default(), at + shared))
}

fn rejected(why: Rejected) -> Box<Failure> {
    let failure = Failure::new(Kind::SeamRejected, Stage::Joining);
    Box::new(failure.saying(match why {
        Rejected::Diverged => "the continuation began again and told something else",
        Rejected::Preamble => "the continuation talks about itself instead of going on",
        Rejected::Refused => "the target refuses to continue",
        Rejected::Unfit => "the continuation breaks the sentence that was told in part",
    }))
}

pub(super) fn differs(_: Differs) -> Box<Failure> {
    let failure = Failure::new(Kind::SeamRejected, Stage::Joining);
    Box::new(failure.saying("the new answer differs from what was told of a tool call or an object"))
}

/// The most events that a contender's preamble is kept of; more than any provider sends before its first word.
const PREAMBLE: usize = 32;

/// The most bytes of them. A signature that must be sent back may be long.
const PREAMBLE_BYTES: usize = 1 << 20;
