//! Writes one client's answer.
//!
//! One state machine decides which block is open and what goes into it; a sink writes that down, as frames of a stream
//! or as the content of one message. Indexes are the machine's own: ascending without gaps, one block open at a time,
//! whatever the upstreams counted. The text block stays open across a splice.

use super::decode::reason;
use super::refuse;
use super::sink::{Delta, Opening, Sink};
use super::stream::Stream;
use super::whole::Whole;
use crate::chat::{DialectId, Request};
use crate::dialect::{Encode, End, reconcile};
use crate::event::{self, Event, Extra, Finish, Identity, Place, Step, Usage};
use bytes::BytesMut;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;

/// An encoder for the answer to that request, streamed or whole.
pub(super) fn encoder(request: &Request) -> Box<dyn Encode> {
    if request.stream {
        Box::new(Encoder::new(request, Stream))
    } else {
        Box::new(Encoder::new(request, Whole::default()))
    }
}

/// The state of one answer.
struct Encoder<S> {
    sink: S,
    head: Head,
    /// The head was written.
    begun: bool,
    /// The open block, which is the last one.
    open: Option<Kind>,
    /// The index of the next block.
    next: u32,
    /// Calls that began while another was open; they wait for it to close.
    waiting: VecDeque<Call>,
    /// Fields of calls that are to be opened.
    besides: Vec<(u32, Map<String, Value>)>,
    /// How many calls the client was given.
    calls: usize,
    /// The stop sequences that the client asked for.
    stops: Vec<String>,
    /// The model refused in words.
    refused: bool,
    finish: Option<(Finish, Option<String>)>,
    /// Fields of the last delta that have no common form, and those beside it.
    last: Map<String, Value>,
    beside: Map<String, Value>,
}

/// What stands at the top of the message.
struct Head {
    id: String,
    model: String,
    minted: u128,
    usage: Usage,
    /// Fields without a common form.
    extra: Map<String, Value>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    Tool(u32),
    Other,
}

/// A call that waits.
struct Call {
    call: u32,
    id: String,
    name: String,
    args: String,
    closed: bool,
}

// === impl Encoder ===

impl<S: Sink> Encode for Encoder<S> {
    fn step(&mut self, step: &Step, out: &mut BytesMut) {
        if let (Some((DialectId::Anthropic, data)), [event]) = (&step.raw, step.events.as_slice()) {
            let kind = match event {
                Event::Text { choice: 0, .. } => Some(Kind::Text),
                Event::Reasoning { choice: 0, .. } => Some(Kind::Thinking),
                _ => None,
            };
            if let Some(kind) = kind {
                self.ensure(kind, out);
                if self.sink.verbatim(self.next - 1, kind == Kind::Text, data, out) {
                    return;
                }
            }
        }
        for event in &step.events {
            self.event(event, out);
        }
    }

    fn close(&mut self, end: End<'_>, out: &mut BytesMut) {
        let usage = match end {
            End::Complete(usage) => usage,
            End::Failed(refusal) => {
                self.sink.fail(&refuse::body(refusal), out);
                return;
            }
        };
        self.begin(out);
        self.settle_calls(out);
        self.shut(out);
        let (reason, sequence) = self.finish.take().unwrap_or((Finish::Stop, None));
        let mut delta = Map::new();
        delta.insert("stop_reason".to_owned(), self.word(reason, sequence.is_some()).into());
        delta.insert("stop_sequence".to_owned(), sequence.into());
        delta.extend(std::mem::take(&mut self.last));
        self.sink.end(delta, tally(usage), std::mem::take(&mut self.beside), out);
    }

    fn keep_alive(&mut self, out: &mut BytesMut) {
        self.sink.ping(out);
    }

    fn comment(&mut self, text: &str, out: &mut BytesMut) {
        self.sink.comment(text, out);
    }
}

impl<S: Sink> Encoder<S> {
    fn new(request: &Request, sink: S) -> Self {
        Self {
            sink,
            head: Head {
                id: String::new(),
                model: request.model.clone(),
                minted: request.minted.id,
                usage: Usage::default(),
                extra: Map::new(),
            },
            begun: false,
            open: None,
            next: 0,
            waiting: VecDeque::new(),
            besides: Vec::new(),
            calls: 0,
            stops: request.stop.clone(),
            refused: false,
            finish: None,
            last: Map::new(),
            beside: Map::new(),
        }
    }

    fn event(&mut self, event: &Event, out: &mut BytesMut) {
        match event {
            Event::Identity(identity) => self.head.take(identity, self.begun),
            Event::Usage(usage) if !self.begun => self.head.usage.update((**usage).clone()),
            Event::Thinking(false) if self.open == Some(Kind::Thinking) => self.shut(out),
            Event::Alive | Event::Thinking(_) | Event::ServerTool(_) | Event::Usage(_) => {}
            Event::Text { choice: 0, text } => self.tell(Kind::Text, Delta::Text(text), out),
            Event::Reasoning { choice: 0, text } => self.tell(Kind::Thinking, Delta::Thinking(text), out),
            Event::Refusal { choice: 0, text } => {
                self.refused = true;
                self.tell(Kind::Text, Delta::Text(text), out);
            }
            Event::Signature { choice: 0, data, redacted: true } => {
                self.settle_calls(out);
                self.start(Kind::Other, &Opening::Redacted(data), out);
                self.shut(out);
            }
            Event::Signature { choice: 0, data, redacted: false } => {
                self.tell(Kind::Thinking, Delta::Signature(data), out);
                self.shut(out);
            }
            Event::ToolOpen { choice: 0, call, id, name } => self.call(*call, id, name, out),
            Event::ToolArgs { choice: 0, call, args } => {
                if self.open == Some(Kind::Tool(*call)) {
                    self.sink.delta(self.next - 1, Delta::Args(args), out);
                } else if let Some(waiting) = self.waiting.iter_mut().find(|w| w.call == *call) {
                    waiting.args.push_str(args);
                }
            }
            Event::ToolClose { choice: 0, call } => {
                if self.open == Some(Kind::Tool(*call)) {
                    self.shut(out);
                    self.next_calls(out);
                } else if let Some(waiting) = self.waiting.iter_mut().find(|w| w.call == *call) {
                    waiting.closed = true;
                }
            }
            Event::Finish { choice: 0, reason, stop_sequence } => {
                // Servers of other APIs put words of their own in its place.
                let met = stop_sequence.as_ref().filter(|met| self.stops.contains(met));
                self.finish = Some((reason.clone(), met.cloned()));
            }
            Event::Extra(extra) if extra.dialect == DialectId::Anthropic => self.extra(extra, out),
            // This API has one answer, and knows no other dialect's fields.
            Event::Extra(_)
            | Event::Text { .. }
            | Event::Reasoning { .. }
            | Event::Refusal { .. }
            | Event::Signature { .. }
            | Event::ToolOpen { .. }
            | Event::ToolArgs { .. }
            | Event::ToolClose { .. }
            | Event::Finish { .. } => {}
        }
    }

    fn extra(&mut self, extra: &Extra, out: &mut BytesMut) {
        let fields = &extra.fields;
        match extra.place {
            Place::Top if self.begun => event::keep(&mut self.beside, fields.clone(), FIELD),
            Place::Top => event::keep(&mut self.head.extra, fields.clone(), FIELD),
            Place::Choice(_) => event::keep(&mut self.last, fields.clone(), FIELD),
            Place::Call { call, .. } => {
                let at = self.besides.iter().position(|(of, _)| *of == call);
                match at {
                    Some(at) => event::keep(&mut self.besides[at].1, fields.clone(), FIELD),
                    None if self.besides.len() < STASHED => {
                        let mut kept = Map::new();
                        event::keep(&mut kept, fields.clone(), FIELD);
                        self.besides.push((call, kept));
                    }
                    None => {}
                }
            }
            Place::Names => {}
            Place::Delta(_) => {
                if matches!(self.open, Some(Kind::Text | Kind::Thinking | Kind::Other)) {
                    self.sink.delta(self.next - 1, Delta::Other(fields), out);
                }
            }
            Place::Whole => match fields.get("type").and_then(Value::as_str) {
                Some("content_block_start") => {
                    let Some(Value::Object(block)) = fields.get("content_block") else { return };
                    self.settle_calls(out);
                    if block.get("type").and_then(Value::as_str) == Some("text") {
                        self.start(Kind::Text, &Opening::Text, out);
                    } else {
                        self.start(Kind::Other, &Opening::Other(block), out);
                    }
                }
                Some("content_block_delta") => {
                    if let (Some(Kind::Other), Some(Value::Object(delta))) = (self.open, fields.get("delta")) {
                        self.sink.delta(self.next - 1, Delta::Other(delta), out);
                    }
                }
                Some("content_block_stop") if self.open == Some(Kind::Other) => self.shut(out),
                Some("content_block_stop") | None => {}
                Some(_) => {
                    self.begin(out);
                    self.sink.event(fields, out);
                }
            },
        }
    }

    /// Puts a piece into a block of that kind, which is opened if another or none is open.
    fn tell(&mut self, kind: Kind, delta: Delta<'_>, out: &mut BytesMut) {
        self.ensure(kind, out);
        self.sink.delta(self.next - 1, delta, out);
    }

    fn ensure(&mut self, kind: Kind, out: &mut BytesMut) {
        if self.open == Some(kind) {
            return;
        }
        self.settle_calls(out);
        let opening = if kind == Kind::Thinking { Opening::Thinking } else { Opening::Text };
        self.start(kind, &opening, out);
    }

    fn start(&mut self, kind: Kind, opening: &Opening<'_>, out: &mut BytesMut) {
        self.begin(out);
        self.shut(out);
        self.sink.open(self.next, opening, out);
        self.next += 1;
        self.open = Some(kind);
    }

    fn shut(&mut self, out: &mut BytesMut) {
        if self.open.take().is_some() {
            self.sink.close(self.next - 1, out);
        }
    }

    fn begin(&mut self, out: &mut BytesMut) {
        if !std::mem::replace(&mut self.begun, true) {
            self.sink.begin(self.head.message(), out);
        }
    }

    fn call(&mut self, call: u32, id: &str, name: &str, out: &mut BytesMut) {
        // More of its name, which a client knows as it began.
        if self.open == Some(Kind::Tool(call)) {
            return;
        }
        if let Some(waiting) = self.waiting.iter_mut().find(|waiting| waiting.call == call) {
            return name.clone_into(&mut waiting.name);
        }
        let id = if id.is_empty() { call_id(self.head.minted, call) } else { id.to_owned() };
        if matches!(self.open, Some(Kind::Tool(_))) {
            self.waiting.push_back(Call { call, id, name: name.to_owned(), args: String::new(), closed: false });
        } else {
            self.calls += 1;
            let rest = self.besides_of(call);
            self.start(Kind::Tool(call), &Opening::Tool { id: &id, name, rest: &rest }, out);
        }
    }

    fn besides_of(&mut self, call: u32) -> Map<String, Value> {
        let at = self.besides.iter().position(|(of, _)| *of == call);
        at.map(|at| self.besides.swap_remove(at).1).unwrap_or_default()
    }

    /// Writes waiting calls until one is open that is not complete.
    fn next_calls(&mut self, out: &mut BytesMut) {
        while let Some(waiting) = self.waiting.pop_front() {
            let Call { call, id, name, args, closed } = waiting;
            self.calls += 1;
            let rest = self.besides_of(call);
            self.start(Kind::Tool(call), &Opening::Tool { id: &id, name: &name, rest: &rest }, out);
            if !args.is_empty() {
                self.sink.delta(self.next - 1, Delta::Args(&args), out);
            }
            if !closed {
                return;
            }
            self.shut(out);
        }
    }

    /// Writes all calls, complete or not: something else follows.
    fn settle_calls(&mut self, out: &mut BytesMut) {
        while matches!(self.open, Some(Kind::Tool(_))) {
            self.shut(out);
            self.next_calls(out);
        }
    }

    /// The stop reason that the client is told.
    fn word(&mut self, finish: Finish, met: bool) -> String {
        let finish = reconcile(finish, self.calls);
        // The provider's own word, if it means what the turn came to.
        if let Some(Value::String(word)) = self.last.shift_remove("stop_reason")
            && reason(&word) == finish
        {
            return word;
        }
        match finish {
            Finish::Length => "max_tokens",
            Finish::ToolCalls => "tool_use",
            Finish::ContentFilter => "refusal",
            Finish::Pause => "pause_turn",
            Finish::Stop | Finish::Other(_) if self.refused => "refusal",
            Finish::Stop if met => "stop_sequence",
            Finish::Stop | Finish::Other(_) => "end_turn",
        }
        .to_owned()
    }
}

// === impl Head ===

impl Head {
    /// The first name holds; what it leaves out, a later one may fill in until the head is written.
    fn take(&mut self, identity: &Identity, begun: bool) {
        if begun || !self.id.is_empty() {
            return;
        }
        self.id.clone_from(&identity.id);
        if !identity.model.is_empty() {
            self.model.clone_from(&identity.model);
        }
    }

    /// The message as it begins.
    fn message(&mut self) -> Map<String, Value> {
        let mut usage = tally(&self.usage);
        usage.entry("input_tokens").or_insert(json!(0));
        if self.id.is_empty() {
            self.id = format!("msg_{:032x}", self.minted);
        }
        let mut message = Map::new();
        message.insert("id".to_owned(), self.id.as_str().into());
        message.insert("type".to_owned(), "message".into());
        message.insert("role".to_owned(), "assistant".into());
        message.insert("model".to_owned(), self.model.as_str().into());
        message.insert("content".to_owned(), json!([]));
        message.insert("stop_reason".to_owned(), Value::Null);
        message.insert("stop_sequence".to_owned(), Value::Null);
        message.insert("usage".to_owned(), Value::Object(usage));
        message.extend(std::mem::take(&mut self.extra));
        message
    }
}

// === helpers ===

/// The most bytes of a field that waits for the head or the end of the message.
const FIELD: usize = 256 << 10;
/// The most calls whose fields are kept until they open.
const STASHED: usize = 256;

/// The id of a call whose provider gave it none.
pub(super) fn call_id(minted: u128, call: u32) -> String {
    format!("toolu_{minted:024x}{call:02x}")
}

/// Usage as this API writes it: the provider's own object where it is one of these, with the counts of the turn. The
/// SDKs fail without `output_tokens`.
fn tally(usage: &Usage) -> Map<String, Value> {
    let mut out = match &usage.native {
        Some((DialectId::Anthropic, native)) => native.clone(),
        _ => Map::new(),
    };
    if let Some(prompt) = usage.prompt {
        let cached = usage.cache_read.unwrap_or(0) + usage.cache_write.unwrap_or(0);
        out.insert("input_tokens".to_owned(), prompt.saturating_sub(cached).into());
    }
    for (field, count) in [
        ("cache_creation_input_tokens", usage.cache_write),
        ("cache_read_input_tokens", usage.cache_read),
        ("output_tokens", usage.completion),
    ] {
        if let Some(count) = count {
            out.insert(field.to_owned(), count.into());
        }
    }
    out.entry("output_tokens").or_insert(json!(0));
    out
}

#[cfg(test)]
#[path = "tests/encoder.rs"]
mod tests;
