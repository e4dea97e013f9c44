//! Writes a streamed answer.
//!
//! The client's library builds one message from the chunks, and each library has its own ways to break: a second role
//! is appended to the first, so is a tool's id; an index with a gap is out of bounds; a choice that does not begin
//! with 0 as well. So this is the one place that decides on id, role, indexes and terminator, whoever speaks behind
//! it. An event whose own bytes are right for this client goes on as it came.

use super::refuse;
use crate::chat::{DialectId, Minted, Request};
use crate::dialect::{Encode, End, json, reconcile};
use crate::event::{self, Event, Extra, Finish, Identity, Place, Step};
use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Map, Value};
use std::fmt::Write;

mod calls;

/// Writes one answer.
#[derive(Debug)]
pub(super) struct Stream {
    /// Who speaks.
    speaker: Identity,
    /// The start of every chunk, up to its choices; empty until the first is written, from when on the turn's identity
    /// is fixed.
    head: Vec<u8>,
    /// The speaker calls itself what the turn is called.
    same: bool,
    /// The model's name for want of another.
    model: String,
    minted: Minted,
    /// The client wants to see usage.
    usage: bool,
    /// The client speaks of functions, not of tools.
    old: bool,
    choices: Vec<Choice>,
    /// What the client knows reasoning by; fixed once some was told.
    reasoning: String,
    reasoned: bool,
    /// Fields of calls that are to be opened: choice, ordinal and what they hold.
    calls: Vec<(u32, u32, Map<String, Value>)>,
    /// Fields that go to the top of the next chunk.
    tops: Map<String, Value>,
    /// Among them is content.
    tops_bound: bool,
    /// The chunk that is being written.
    open: Option<Open>,
    closed: bool,
}

/// What the client was told of one choice.
#[derive(Debug, Default)]
struct Choice {
    role: bool,
    finished: bool,
    /// Each call that was told; the place here is the client's index.
    calls: Vec<Told>,
    /// Calls without a common form.
    others: usize,
}

/// A call that was told.
#[derive(Clone, Copy, Debug)]
struct Told {
    /// The attempt's number of it.
    call: u32,
    /// How many bytes of its name.
    name: usize,
}

/// A chunk of which `…"delta":{` is written.
#[derive(Debug)]
struct Open {
    choice: u32,
    /// Which of the delta's fields are there, by their bit.
    has: u8,
    /// The delta is written, and fields beside it may follow.
    beside: bool,
    /// A comma is due before the next field of the delta.
    comma: bool,
    finish: Option<&'static str>,
}

/// Fields of a delta that can stand there once.
const CONTENT: u8 = 1;
const REASONING: u8 = 2;
const REFUSAL: u8 = 4;
const CALLS: u8 = 8;
const OTHERS: u8 = 16;

// === impl Stream ===

impl Stream {
    pub(super) fn new(request: &Request) -> Self {
        Self {
            speaker: Identity::default(),
            head: Vec::new(),
            same: false,
            model: request.model.clone(),
            minted: request.minted,
            usage: request.include_usage,
            old: is_old(request),
            choices: (0..request.choices.max(1)).map(|_| Choice::default()).collect(),
            reasoning: "reasoning_content".to_owned(),
            reasoned: false,
            calls: Vec::new(),
            tops: Map::new(),
            tops_bound: false,
            open: None,
            closed: false,
        }
    }

    /// The bytes of the step that may go on as they came.
    fn verbatim<'a>(&self, step: &'a Step) -> Option<&'a Bytes> {
        let (DialectId::Chat, raw) = step.raw.as_ref()? else { return None };
        let known = |choice: u32| self.choice(choice).is_some_and(|c| c.role && !c.finished);
        let plain = step.events.iter().all(|event| match event {
            Event::Text { choice, .. } | Event::Reasoning { choice, .. } => known(*choice),
            Event::Extra(extra) => extra.dialect == DialectId::Chat,
            _ => false,
        });
        (self.same && plain && self.tops.is_empty() && !step.events.is_empty()).then_some(raw)
    }

    fn choice(&self, index: u32) -> Option<&Choice> {
        self.choices.get(usize::try_from(index).ok()?)
    }

    fn event(&mut self, event: &Event, next: Option<&Event>, out: &mut BytesMut) -> bool {
        match event {
            Event::Identity(identity) => self.identity(identity),
            Event::Text { choice, text } => {
                if self.field(*choice, CONTENT, out) {
                    out.put_slice(b"\"content\":");
                    json::string(text, out);
                }
            }
            Event::Reasoning { choice, text } => {
                if self.field(*choice, REASONING, out) {
                    self.reasoned = true;
                    json::string(&self.reasoning, out);
                    out.put_u8(b':');
                    json::string(text, out);
                }
            }
            Event::Refusal { choice, text } => {
                if self.field(*choice, REFUSAL, out) {
                    out.put_slice(b"\"refusal\":");
                    json::string(text, out);
                }
            }
            Event::ToolOpen { choice, call, id, name } => {
                // Arguments that come with the call go with it.
                let args = match next {
                    Some(Event::ToolArgs { choice: c, call: n, args }) if c == choice && n == call => Some(&**args),
                    _ => None,
                };
                self.tool_open(*choice, *call, (id, name), args.unwrap_or_default(), out);
                return args.is_some();
            }
            Event::ToolArgs { choice, call, args } => self.tool_args(*choice, *call, args, out),
            Event::Finish { choice, reason, .. } => self.finish(*choice, reason, out),
            Event::Extra(extra) => self.extra(extra, out),
            Event::Alive
            | Event::Thinking(_)
            | Event::ServerTool(_)
            | Event::Signature { .. }
            | Event::ToolClose { .. }
            | Event::Usage(_) => {}
        }
        false
    }

    fn identity(&mut self, identity: &Identity) {
        let fixed = !self.head.is_empty();
        if !fixed {
            self.speaker = identity.clone();
            return;
        }
        self.same = self.speaker == *identity;
    }

    /// Fixes the turn's identity.
    fn fix(&mut self) {
        let Identity { id, model, created } = &self.speaker;
        self.same = !id.is_empty() && !model.is_empty() && *created > 0;
        let mut head = BytesMut::with_capacity(160);
        head.put_slice(b"data: {\"id\":");
        if id.is_empty() {
            json::string(&format!("chatcmpl-{:032x}", self.minted.id), &mut head);
        } else {
            json::string(id, &mut head);
        }
        let created = if *created > 0 { *created } else { self.minted.unix };
        let _ = write!(head, ",\"object\":\"chat.completion.chunk\",\"created\":{created},\"model\":");
        json::string(if model.is_empty() { &self.model } else { model }, &mut head);
        head.put_slice(b",\"choices\":[");
        self.head = head.to_vec();
    }

    /// Makes the chunk ready for a field of a choice's delta: opens one if need be. `false`: nothing may be said there.
    fn field(&mut self, index: u32, bit: u8, out: &mut BytesMut) -> bool {
        if self.choice(index).is_none_or(|c| c.finished) {
            return false;
        }
        let fits = self.open.as_ref().is_some_and(|o| o.choice == index && !o.beside && o.has & bit == 0);
        if !fits {
            self.begin(index, out);
        }
        let Some(open) = &mut self.open else { return false };
        open.has |= bit;
        if open.comma {
            out.put_u8(b',');
        }
        open.comma = true;
        true
    }

    /// Begins a chunk of a choice, with its role if that was not told. Libraries expect the first choice first.
    fn begin(&mut self, index: u32, out: &mut BytesMut) {
        self.seal(out);
        if self.head.is_empty() {
            self.fix();
        }
        for before in 0..index {
            if self.choice(before).is_some_and(|c| !c.role) {
                self.begin(before, out);
                out.put_slice(b",\"content\":\"\"");
                self.seal(out);
            }
        }
        out.put_slice(&self.head);
        let _ = write!(out, "{{\"index\":{index},\"delta\":{{");
        let choice = usize::try_from(index).ok().and_then(|at| self.choices.get_mut(at));
        let first = choice.is_some_and(|c| !std::mem::replace(&mut c.role, true));
        if first {
            out.put_slice(b"\"role\":\"assistant\"");
        }
        self.open = Some(Open { choice: index, has: 0, beside: false, comma: first, finish: None });
    }

    /// Ends the chunk that is being written.
    fn seal(&mut self, out: &mut BytesMut) {
        let Some(open) = self.open.take() else { return };
        if !open.beside {
            out.put_u8(b'}');
        }
        out.put_slice(b",\"finish_reason\":");
        match open.finish {
            Some(word) => json::string(word, out),
            None => out.put_slice(b"null"),
        }
        out.put_slice(b"}]");
        self.put_tops(out);
        out.put_slice(b"}\n\n");
    }

    fn put_tops(&mut self, out: &mut BytesMut) {
        for (name, value) in std::mem::take(&mut self.tops) {
            out.put_u8(b',');
            json::member(&name, &value, out);
        }
        self.tops_bound = false;
    }

    fn finish(&mut self, index: u32, reason: &Finish, out: &mut BytesMut) {
        let Some(choice) = self.choice(index).filter(|c| !c.finished) else { return };
        let word = finish_word(reason, choice.calls.len() + choice.others, self.old);
        if self.open.as_ref().is_none_or(|o| o.choice != index) {
            let untold = !choice.role;
            self.begin(index, out);
            if untold {
                out.put_slice(b",\"content\":\"\"");
            }
        }
        if let Some(open) = &mut self.open {
            open.finish = Some(word);
        }
        self.seal(out);
        if let Some(choice) = usize::try_from(index).ok().and_then(|at| self.choices.get_mut(at)) {
            choice.finished = true;
        }
    }

    fn extra(&mut self, extra: &Extra, out: &mut BytesMut) {
        if extra.dialect != DialectId::Chat {
            return;
        }
        match extra.place {
            Place::Top => {
                event::keep(&mut self.tops, extra.fields.clone(), TOP);
                self.tops_bound |= extra.bound;
            }
            Place::Delta(index) => {
                for (name, value) in &extra.fields {
                    let calls = name == "tool_calls";
                    if self.field(index, if calls { CALLS } else { 0 }, out) {
                        json::member(name, value, out);
                        let choice = usize::try_from(index).ok().and_then(|at| self.choices.get_mut(at));
                        if let Some(choice) = choice.filter(|_| calls) {
                            choice.others += 1;
                        }
                    }
                }
            }
            Place::Choice(index) => {
                if self.choice(index).is_none_or(|c| c.finished) {
                    return;
                }
                // The same field twice is two chunks.
                if self.open.as_ref().is_none_or(|o| o.choice != index || o.has & OTHERS != 0) {
                    self.begin(index, out);
                }
                if let Some(open) = &mut self.open {
                    if !open.beside {
                        out.put_u8(b'}');
                    }
                    open.beside = true;
                    open.has |= OTHERS;
                }
                for (name, value) in &extra.fields {
                    out.put_u8(b',');
                    json::member(name, value, out);
                }
            }
            Place::Call { choice, call } => self.call_extra(choice, call, &extra.fields, out),
            Place::Names => {
                if let Some(Value::String(name)) = extra.fields.get("reasoning").filter(|_| !self.reasoned) {
                    self.reasoning.clone_from(name);
                }
            }
            Place::Whole => {}
        }
    }
}

impl Encode for Stream {
    fn step(&mut self, step: &Step, out: &mut BytesMut) {
        if self.closed {
            return;
        }
        if let Some(raw) = self.verbatim(step) {
            out.reserve(raw.len() + 8);
            out.put_slice(b"data: ");
            out.put_slice(raw);
            out.put_slice(b"\n\n");
            return;
        }
        let mut events = step.events.iter().peekable();
        while let Some(event) = events.next() {
            if self.event(event, events.peek().copied(), out) {
                events.next();
            }
        }
        self.seal(out);
    }

    fn close(&mut self, end: End<'_>, out: &mut BytesMut) {
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        match end {
            End::Complete(usage) => {
                if self.usage || self.tops_bound {
                    if self.head.is_empty() {
                        self.fix();
                    }
                    out.put_slice(&self.head);
                    out.put_u8(b']');
                    if self.usage {
                        out.put_u8(b',');
                        json::member("usage", &super::usage::write(usage), out);
                    }
                    self.put_tops(out);
                    out.put_slice(b"}\n\n");
                }
                out.put_slice(b"data: [DONE]\n\n");
            }
            End::Failed(refusal) => {
                out.put_slice(b"data: ");
                json::value(&refuse::body(refusal), out);
                out.put_slice(b"\n\n");
            }
        }
    }

    fn keep_alive(&mut self, out: &mut BytesMut) {
        // One line: a blank line after it is an empty event to some libraries.
        out.put_slice(b": keep-alive\n");
    }

    fn comment(&mut self, text: &str, out: &mut BytesMut) {
        out.put_slice(b": ");
        for piece in text.split(['\r', '\n']).filter(|piece| !piece.is_empty()) {
            out.put_slice(piece.as_bytes());
        }
        out.put_u8(b'\n');
    }
}

// === helpers ===

/// The most bytes of a field that waits for the next chunk.
const TOP: usize = 1 << 20;

/// Whether a client asks with `functions`, the form before there were tools, and so knows no other in the answer.
pub(super) fn is_old(request: &Request) -> bool {
    request.raw.contains_key("functions") && !request.raw.contains_key("tools")
}

/// The finish reason in this API's words, agreeing with what was told.
pub(super) fn finish_word(reason: &Finish, calls: usize, old: bool) -> &'static str {
    match reconcile(reason.clone(), calls) {
        Finish::Length | Finish::Pause => "length",
        Finish::ToolCalls if old => "function_call",
        Finish::ToolCalls => "tool_calls",
        Finish::ContentFilter => "content_filter",
        Finish::Stop | Finish::Other(_) => "stop",
    }
}

/// An id for a call whose provider gave it none: a turn's own and a different one for each.
pub(super) fn call_id(minted: Minted, choice: u32, at: usize) -> String {
    format!("call_{:020x}{choice:02x}{at:02x}", minted.id & ((1 << 80) - 1))
}
