//! Writes an answer: its items one after another, and the whole of it at the end.
//!
//! The official accumulators want each item to be opened and closed under one id and number, in a stream that begins
//! with `response.created` and ends with the whole answer. So one item is open at a time: a call that begins while
//! another is open waits until that is complete. The answer is gathered as it is told, for its end and for whoever asks
//! for it again.

use super::frames::Frames;
use super::open::{Kind, Open};
use super::{client, custom, ids, signed};
use crate::chat::{DialectId, Request};
use crate::dialect::{Encode, End, Refusal, json as text, openai};
use crate::event::{self, Event, Extra, Finish, Identity, Place, Step, Usage};
use bytes::{BufMut, BytesMut};
use serde_json::{Map, Value, json};
use std::collections::{HashSet, VecDeque};

/// Writes one answer.
pub(super) struct Encoder {
    frames: Frames,
    head: Head,
    begun: bool,
    /// Items that are complete.
    output: Vec<Value>,
    open: Option<Open>,
    /// Calls that began while another was open.
    waiting: VecDeque<Call>,
    /// The client's tools that take a text.
    custom: HashSet<String>,
    /// Who speaks.
    speaker: DialectId,
    finish: Option<Finish>,
    /// The whole answer, once it has ended.
    ended: Option<Value>,
    /// It may be asked for again.
    keep: bool,
}

/// What stands at the top of the answer.
struct Head {
    id: String,
    minted: u128,
    created: u64,
    model: String,
    named: bool,
    /// What it repeats of the request.
    echo: Map<String, Value>,
    /// Fields of the provider's own that have no common form.
    extra: Map<String, Value>,
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

impl Encode for Encoder {
    fn step(&mut self, step: &Step, out: &mut BytesMut) {
        for event in &step.events {
            self.event(event, out);
        }
    }

    fn close(&mut self, end: End<'_>, out: &mut BytesMut) {
        let usage = match end {
            End::Complete(usage) => usage,
            End::Failed(refusal) => return self.fail(refusal, out),
        };
        self.begin(out);
        let (status, why) = match self.finish.take() {
            Some(Finish::Length | Finish::Pause) => ("incomplete", Some("max_output_tokens")),
            Some(Finish::ContentFilter) => ("incomplete", Some("content_filter")),
            Some(Finish::Stop | Finish::ToolCalls | Finish::Other(_)) | None => ("completed", None),
        };
        // What is open was cut off, if anything was.
        if why.is_some() {
            self.shut(status, out);
            self.next_calls(out);
        }
        self.settle_calls(out);
        self.shut(status, out);
        let mut answer = self.answer(status);
        answer.insert("incomplete_details".to_owned(), why.map_or(Value::Null, |why| json!({"reason": why})));
        answer.insert("usage".to_owned(), tally(usage));
        let answer = Value::Object(answer);
        if self.frames.stream() {
            let kind = if why.is_some() { "response.incomplete" } else { "response.completed" };
            self.frames.event(kind, &[("response", &answer)], out);
        } else {
            text::value(&answer, out);
        }
        self.ended = self.keep.then_some(answer);
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

    fn speaker(&mut self, dialect: DialectId) {
        self.speaker = dialect;
    }

    fn record(&mut self) -> Option<Value> {
        if !self.keep || !self.begun {
            return None;
        }
        Some(self.ended.take().unwrap_or_else(|| Value::Object(self.cut("cancelled"))))
    }
}

impl Encoder {
    /// For the answer to `request`.
    pub(super) fn new(request: &Request) -> Self {
        let head = Head {
            id: client::answer_id(request),
            minted: request.minted.id,
            created: request.minted.unix,
            model: request.model.clone(),
            named: false,
            echo: client::echo(request),
            extra: Map::new(),
        };
        Self {
            frames: Frames::new(request.stream),
            head,
            begun: false,
            output: Vec::new(),
            open: None,
            waiting: VecDeque::new(),
            custom: custom::names(request),
            speaker: DialectId::Responses,
            finish: None,
            ended: None,
            keep: request.extensions.keep,
        }
    }

    fn event(&mut self, event: &Event, out: &mut BytesMut) {
        match event {
            Event::Identity(identity) => self.head.take(identity, self.begun),
            Event::Text { choice: 0, text } => self.tell(Kind::Text, text, out),
            Event::Refusal { choice: 0, text } => self.tell(Kind::Refusal, text, out),
            Event::Reasoning { choice: 0, text } => self.tell(Kind::Reasoning, text, out),
            Event::Thinking(false) if self.kind() == Some(Kind::Reasoning) => self.shut("completed", out),
            Event::Signature { choice: 0, data, redacted } => {
                // A thought that is not shown is an item all the same.
                self.ensure(Kind::Reasoning, out);
                if let Some(open) = &mut self.open {
                    open.sealed = Some(signed::seal(data, self.speaker, *redacted));
                }
                self.shut("completed", out);
            }
            Event::ToolOpen { choice: 0, call, id, name } => self.call(*call, id, name, out),
            Event::ToolArgs { choice: 0, call, args } => {
                if self.is_open(*call) {
                    self.more(args, out);
                } else if let Some(waiting) = self.waiting.iter_mut().find(|w| w.call == *call) {
                    waiting.args.push_str(args);
                }
            }
            Event::ToolClose { choice: 0, call } => {
                if self.is_open(*call) {
                    self.shut("completed", out);
                    self.next_calls(out);
                } else if let Some(waiting) = self.waiting.iter_mut().find(|w| w.call == *call) {
                    waiting.closed = true;
                }
            }
            Event::Finish { choice: 0, reason, .. } => self.finish = Some(reason.clone()),
            Event::Extra(extra) if extra.dialect == DialectId::Responses => self.extra(extra, out),
            // This API has one answer, and knows no other dialect's fields.
            Event::Alive
            | Event::Thinking(_)
            | Event::ServerTool(_)
            | Event::Usage(_)
            | Event::Extra(_)
            | Event::Text { .. }
            | Event::Refusal { .. }
            | Event::Reasoning { .. }
            | Event::Signature { .. }
            | Event::ToolOpen { .. }
            | Event::ToolArgs { .. }
            | Event::ToolClose { .. }
            | Event::Finish { .. } => {}
        }
    }

    /// What a provider of this API said and no other could: an item of its own kind, or fields of the answer.
    fn extra(&mut self, extra: &Extra, out: &mut BytesMut) {
        match extra.place {
            Place::Top => event::keep(&mut self.head.extra, extra.fields.clone(), FIELD),
            Place::Whole => {
                self.settle_calls(out);
                self.begin(out);
                self.shut("completed", out);
                let index = self.index();
                let mut item = extra.fields.clone();
                item.insert("id".to_owned(), ids::item("it", self.head.minted, index).into());
                let item = Value::Object(item);
                if self.frames.stream() {
                    for kind in ["response.output_item.added", "response.output_item.done"] {
                        self.frames.event(kind, &[("output_index", &json!(index)), ("item", &item)], out);
                    }
                }
                self.output.push(item);
            }
            Place::Delta(_) | Place::Choice(_) | Place::Call { .. } | Place::Names => {}
        }
    }

    fn kind(&self) -> Option<Kind> {
        self.open.as_ref().map(|open| open.kind)
    }

    fn is_open(&self, call: u32) -> bool {
        self.kind().is_some_and(|kind| kind.call() == Some(call))
    }

    /// The number of the item that is open, or comes next.
    fn index(&self) -> u32 {
        u32::try_from(self.output.len()).unwrap_or(u32::MAX)
    }

    fn tell(&mut self, kind: Kind, text: &str, out: &mut BytesMut) {
        self.ensure(kind, out);
        self.more(text, out);
    }

    fn more(&mut self, text: &str, out: &mut BytesMut) {
        if let Some(open) = &mut self.open {
            open.more(text, &mut self.frames, out);
        }
    }

    /// Sees to it that an item of that kind is open.
    fn ensure(&mut self, kind: Kind, out: &mut BytesMut) {
        if let Some(open) = &mut self.open {
            if open.kind == kind {
                return;
            }
            if open.kind.is_message() && kind.is_message() {
                return open.turn_to(kind, &mut self.frames, out);
            }
        }
        self.settle_calls(out);
        self.start(kind, (String::new(), String::new()), out);
    }

    fn start(&mut self, kind: Kind, call: (String, String), out: &mut BytesMut) {
        self.begin(out);
        self.shut("completed", out);
        let index = self.index();
        let id = ids::item(kind.prefix(), self.head.minted, index);
        self.open = Some(Open::begin(kind, id, index, call, &mut self.frames, out));
    }

    fn shut(&mut self, status: &str, out: &mut BytesMut) {
        if let Some(open) = self.open.take() {
            let item = open.end(status, &mut self.frames, out);
            self.output.push(item);
        }
    }

    fn begin(&mut self, out: &mut BytesMut) {
        if std::mem::replace(&mut self.begun, true) || !self.frames.stream() {
            return;
        }
        let answer = Value::Object(self.head.answer("in_progress", Vec::new()));
        for kind in ["response.created", "response.in_progress"] {
            self.frames.event(kind, &[("response", &answer)], out);
        }
    }

    fn call(&mut self, call: u32, id: &str, name: &str, out: &mut BytesMut) {
        // More of its name, which a client knows as it began.
        if self.is_open(call) {
            return;
        }
        if let Some(waiting) = self.waiting.iter_mut().find(|waiting| waiting.call == call) {
            return name.clone_into(&mut waiting.name);
        }
        let id = if id.is_empty() { ids::call(self.head.minted, call) } else { id.to_owned() };
        if self.kind().is_some_and(|kind| kind.call().is_some()) {
            self.waiting.push_back(Call { call, id, name: name.to_owned(), args: String::new(), closed: false });
        } else {
            self.start_call(call, id, name.to_owned(), out);
        }
    }

    fn start_call(&mut self, call: u32, id: String, name: String, out: &mut BytesMut) {
        let kind = if self.custom.contains(&name) { Kind::Custom(call) } else { Kind::Function(call) };
        self.start(kind, (id, name), out);
    }

    /// Writes waiting calls until one is open that is not complete.
    fn next_calls(&mut self, out: &mut BytesMut) {
        while let Some(waiting) = self.waiting.pop_front() {
            let Call { call, id, name, args, closed } = waiting;
            self.start_call(call, id, name, out);
            if !args.is_empty() {
                self.more(&args, out);
            }
            if !closed {
                return;
            }
            self.shut("completed", out);
        }
    }

    /// Writes all calls, complete or not: something else follows.
    fn settle_calls(&mut self, out: &mut BytesMut) {
        while self.kind().is_some_and(|kind| kind.call().is_some()) {
            self.shut("completed", out);
            self.next_calls(out);
        }
    }

    /// The answer with the items that are complete.
    fn answer(&mut self, status: &str) -> Map<String, Value> {
        let mut answer = self.head.answer(status, std::mem::take(&mut self.output));
        answer.extend(std::mem::take(&mut self.head.extra));
        answer
    }

    /// The answer as far as it got. Of a call that was cut off nobody can make anything.
    fn cut(&mut self, status: &str) -> Map<String, Value> {
        if let Some(open) = self.open.take().filter(|open| open.kind.call().is_none()) {
            self.output.push(open.cut());
        }
        self.answer(status)
    }

    /// The end with an error: the event that the official libraries raise their own error for, then the answer.
    fn fail(&mut self, refusal: &Refusal, out: &mut BytesMut) {
        if !self.frames.stream() {
            text::value(&openai::body(refusal), out);
            return;
        }
        self.begin(out);
        let body = openai::body(refusal);
        let error = body.get("error").cloned().unwrap_or_default();
        let (code, message) = (error["code"].clone(), error["message"].clone());
        let param = error["param"].clone();
        let fields = [("code", &code), ("message", &message), ("param", &param), ("error", &error)];
        self.frames.event("error", &fields, out);
        let mut answer = self.cut("failed");
        answer.insert("error".to_owned(), json!({"code": code, "message": message}));
        let answer = Value::Object(answer);
        self.frames.event("response.failed", &[("response", &answer)], out);
        self.ended = self.keep.then_some(answer);
    }
}

// === impl Head ===

impl Head {
    /// The first name holds; what it leaves out, a later one may fill in until the head is written. The id is ours.
    fn take(&mut self, identity: &Identity, begun: bool) {
        if begun || std::mem::replace(&mut self.named, true) {
            return;
        }
        if !identity.model.is_empty() {
            self.model.clone_from(&identity.model);
        }
        if identity.created > 0 {
            self.created = identity.created;
        }
    }

    fn answer(&self, status: &str, output: Vec<Value>) -> Map<String, Value> {
        let mut answer = Map::new();
        answer.insert("id".to_owned(), self.id.as_str().into());
        answer.insert("object".to_owned(), "response".into());
        answer.insert("created_at".to_owned(), self.created.into());
        answer.insert("status".to_owned(), status.into());
        answer.insert("error".to_owned(), Value::Null);
        answer.insert("incomplete_details".to_owned(), Value::Null);
        answer.insert("model".to_owned(), self.model.as_str().into());
        answer.insert("output".to_owned(), Value::Array(output));
        answer.extend(self.echo.iter().map(|(name, value)| (name.clone(), value.clone())));
        answer.insert("usage".to_owned(), Value::Null);
        answer
    }
}

// === helpers ===

/// Usage as this API writes it: the provider's own object where it is one of these, with the counts of the turn.
fn tally(usage: &Usage) -> Value {
    let mut out = match &usage.native {
        Some((DialectId::Responses, native)) => native.clone(),
        _ => Map::new(),
    };
    let (input, output) = (usage.prompt.unwrap_or(0), usage.completion.unwrap_or(0));
    let mut details = |name: &str, field: &str, count: Option<u64>| {
        let details = out.entry(name).or_insert_with(|| json!({}));
        if let Value::Object(details) = details
            && (count.is_some() || !details.contains_key(field))
        {
            details.insert(field.to_owned(), count.unwrap_or(0).into());
        }
    };
    details("input_tokens_details", "cached_tokens", usage.cache_read);
    details("output_tokens_details", "reasoning_tokens", usage.reasoning);
    for (name, count) in [("input_tokens", input), ("output_tokens", output), ("total_tokens", input + output)] {
        out.insert(name.to_owned(), count.into());
    }
    Value::Object(out)
}

/// The most bytes of a field that waits for the end of the answer.
const FIELD: usize = 256 << 10;

#[cfg(test)]
#[path = "tests/encoder.rs"]
mod tests;
