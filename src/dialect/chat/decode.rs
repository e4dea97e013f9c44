//! Reads the chunks of an upstream's answer.
//!
//! An error is looked for before anything else, in each of the places where providers put one; a delta is a set of
//! independent fields; and state is kept for each choice. An ordinary delta costs one pass over its bytes and one
//! allocation, its text.

use super::calls::{Calls, Events};
use super::halves::{self, Halves};
use super::wire::{self, Chunk, Content, Entry, Function, Rest, Whole};
use super::{classify, quirks, usage};
use crate::chat::DialectId;
use crate::dialect::{Decode, Expect, Flow};
use crate::event::{Event, Extra, Finish, Identity, Place, Step};
use crate::failure::{Failure, Kind, Said, Stage};
use crate::sse;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use smallvec::SmallVec;
use std::borrow::Cow;

/// Reads one answer.
#[derive(Debug)]
pub(super) struct Decoder {
    /// How many choices must finish.
    expect: u32,
    /// The last identity that was told.
    identity: Identity,
    /// The fields at the top of chunks that were told last, as they stood.
    tops: Vec<(String, String)>,
    choices: SmallVec<[Choice; 1]>,
    done: bool,
}

/// One choice of it.
#[derive(Debug, Default)]
struct Choice {
    index: u32,
    content: Halves,
    reasoning: Halves,
    refusal: Halves,
    calls: Calls,
    /// The model has said something in it.
    said: bool,
    finished: bool,
}

/// An event's data, fit to be read.
struct Data<'a> {
    json: Cow<'a, str>,
    /// Halves of characters were marked in it.
    marked: bool,
    /// It is as it came: valid UTF-8 and nothing marked.
    intact: bool,
}

// === impl Decoder ===

impl Decoder {
    pub(super) fn new(expect: Expect) -> Self {
        Self {
            expect: expect.choices.max(1),
            identity: Identity::default(),
            tops: Vec::new(),
            choices: SmallVec::new(),
            done: false,
        }
    }

    fn chunk(&mut self, event: &sse::Event, data: &Data<'_>, step: &mut Step) -> Result<(), Failure> {
        let named = !matches!(&event.name[..], b"" | b"message");
        let chunk: Chunk<'_> = match serde_json::from_str(&data.json) {
            Ok(chunk) => chunk,
            Err(_) if named || is_ping(data.json.as_bytes()) => return Ok(()),
            Err(error) => return Err(malformed(&format!("an event is no chunk of an answer: {error}"))),
        };
        if let Some(failure) = failure(&chunk, &data.json) {
            return Err(failure);
        }
        if named && chunk.choices.is_none() {
            return Ok(());
        }
        let same = self.identify(&chunk, step);
        let plain = same && !named && event.single_line && data.intact && is_plain(&chunk);
        let groq = chunk.x_groq.and_then(|x| serde_json::from_str::<Value>(x.get()).ok());
        let groq = groq.as_ref().and_then(|x| x.get("usage")).and_then(Value::as_object).cloned();
        let native = chunk.usage.and_then(|u| serde_json::from_str::<Map<String, Value>>(u.get()).ok()).or(groq);
        if let Some(native) = native.filter(|n| !n.is_empty()) {
            step.events.push(Event::Usage(Box::new(usage::read(native))));
        }
        if chunk.choices.is_some() {
            self.top(&chunk.rest, data.marked, &mut step.events);
        }
        let mut verbatim = false;
        for choice in chunk.choices.as_deref().unwrap_or_default() {
            verbatim = self.choice(choice, data.marked, &mut step.events)? && plain;
        }
        if verbatim {
            step.raw = Some((DialectId::Chat, event.data.clone()));
        }
        Ok(())
    }

    /// Notes who speaks. Whether the chunk says so in full and nothing else than before.
    fn identify(&mut self, chunk: &Chunk<'_>, step: &mut Step) -> bool {
        let (id, model, created) = (chunk.id.as_str(), chunk.model.as_str(), chunk.created.0.unwrap_or(0));
        let known = &mut self.identity;
        let whole = !id.is_empty() && !model.is_empty() && created > 0;
        let news = (!id.is_empty() && id != known.id)
            || (!model.is_empty() && model != known.model)
            || (created > 0 && created != known.created);
        if news {
            if !id.is_empty() {
                id.clone_into(&mut known.id);
            }
            if !model.is_empty() {
                model.clone_into(&mut known.model);
            }
            if created > 0 {
                known.created = created;
            }
            step.events.push(Event::Identity(Box::new(known.clone())));
        }
        whole
    }

    /// Reads a choice. Whether what it said stands in the events as it stood in the chunk.
    fn choice(&mut self, wire: &wire::Choice<'_>, marked: bool, out: &mut Events) -> Result<bool, Failure> {
        let index = match u32::try_from(wire.index.0.unwrap_or(0)) {
            Ok(index) if index < self.expect => index,
            // Nobody asked for it.
            _ => return Ok(false),
        };
        let at = match self.choices.iter().position(|c| c.index == index) {
            Some(at) => at,
            None => {
                self.choices.push(Choice { index, ..Choice::default() });
                self.choices.len() - 1
            }
        };
        let choice = &mut self.choices[at];
        if choice.finished {
            return Ok(false);
        }
        let before = out.len();
        let whole = choice.halves_are_empty();
        if let Some(delta) = &wire.delta {
            choice.delta(delta, marked, out)?;
        }
        let verbatim = whole && choice.halves_are_empty() && out.len() > before;
        if let Some(logprobs) = wire.logprobs {
            extra(Place::Choice(index), &[(Cow::Borrowed("logprobs"), logprobs)], marked, out);
        }
        extra(Place::Choice(index), &wire.rest, marked, out);
        let word = wire.finish.as_str();
        if !word.is_empty() {
            let reason = quirks::finish(word).map_err(|kind| {
                let mut failure = Failure::new(kind, Stage::Streaming)
                    .saying(format!("the answer ended with the finish reason `{word}`"));
                failure.said.code = Said::clip(word.to_owned());
                failure
            })?;
            choice.finish(reason, out)?;
        }
        Ok(verbatim)
    }

    /// Tells of the fields at the top of a chunk that are new or have changed.
    fn top(&mut self, rest: &Rest<'_>, marked: bool, out: &mut Events) {
        let (mut news, mut bound) = (Map::new(), false);
        for (key, raw) in rest {
            if SILENT.contains(&&**key) || is_void(raw) {
                continue;
            }
            match self.tops.iter().position(|(name, _)| name == key) {
                Some(at) if self.tops[at].1 == raw.get() => continue,
                Some(at) => raw.get().clone_into(&mut self.tops[at].1),
                None if self.tops.len() < MAX_TOPS => self.tops.push((key.to_string(), raw.get().to_owned())),
                None => continue,
            }
            bound |= quirks::BOUND.contains(&&**key);
            news.insert(key.to_string(), value(raw, marked));
        }
        if !news.is_empty() {
            let extra = Extra { dialect: DialectId::Chat, place: Place::Top, fields: news, bound };
            out.push(Event::Extra(Box::new(extra)));
        }
    }

    /// The provider's own terminator: what was not finished is, if the model has spoken.
    fn terminate(&mut self, out: &mut Events) -> Result<(), Failure> {
        self.done = true;
        if self.choices.is_empty() {
            return Err(Failure::new(Kind::EmptyTurn, Stage::Streaming).saying("the stream ended without one chunk"));
        }
        if !self.choices.iter().any(|c| c.said || c.finished) {
            return Err(truncated("the stream ended before the model had said anything"));
        }
        for choice in self.choices.iter_mut().filter(|c| !c.finished) {
            let reason = if choice.calls.any() { Finish::ToolCalls } else { Finish::Stop };
            choice.finish(reason, out)?;
        }
        Ok(())
    }

    fn is_finished(&self) -> bool {
        let finished = self.choices.iter().filter(|c| c.finished).count();
        u32::try_from(finished).is_ok_and(|n| n >= self.expect)
    }
}

impl Decode for Decoder {
    fn event(&mut self, event: &sse::Event, step: &mut Step) -> Result<Flow, Failure> {
        if self.done {
            return Ok(Flow::Done);
        }
        let data = Data::new(&event.data);
        let text = data.json.trim_ascii();
        if &event.name[..] == b"error" {
            return Err(classify::in_band(text));
        }
        if text.starts_with(DONE) {
            self.terminate(&mut step.events)?;
            return Ok(Flow::Done);
        }
        let ping = quirks::PINGS.iter().any(|ping| event.name == ping.as_bytes());
        if !text.is_empty() && !text.starts_with(':') && !ping {
            self.chunk(event, &data, step)?;
        }
        if step.events.is_empty() {
            step.events.push(Event::Alive);
        }
        Ok(Flow::More)
    }

    fn end(&mut self, rest: Option<&sse::Event>, step: &mut Step) -> Result<(), Failure> {
        if let Some(event) = rest.filter(|_| !self.done) {
            let data = Data::new(&event.data);
            let terminal = data.json.trim_ascii() == DONE
                || serde_json::from_str::<Chunk<'_>>(&data.json).is_ok_and(|chunk| {
                    let finish = |c: &wire::Choice<'_>| !c.finish.as_str().is_empty();
                    failure(&chunk, &data.json).is_some() || chunk.choices.iter().flatten().any(finish)
                });
            if terminal {
                self.event(event, step)?;
            }
        }
        if self.done || self.is_finished() {
            Ok(())
        } else if self.choices.is_empty() {
            Err(Failure::new(Kind::EmptyTurn, Stage::Streaming).saying("the body ended without one chunk"))
        } else {
            Err(truncated("the body ended without a finish reason"))
        }
    }
}

// === impl Choice ===

impl Choice {
    fn halves_are_empty(&self) -> bool {
        self.content.is_empty() && self.reasoning.is_empty() && self.refusal.is_empty()
    }

    fn delta(&mut self, delta: &wire::Delta<'_>, marked: bool, out: &mut Events) -> Result<(), Failure> {
        // Two names for the same thing, which some providers fill both.
        let (reasoning, again) = (delta.reasoning_content.as_str(), delta.reasoning.as_str());
        self.reasoning(reasoning, marked, out);
        if again != reasoning {
            self.reasoning(again, marked, out);
        }
        if let Some(details) = delta.reasoning_details {
            let shown = !reasoning.is_empty() || !again.is_empty();
            self.details(details, shown, marked, out);
        }
        match &delta.content {
            Content::None => {}
            Content::Text(text) => self.text(text, marked, out),
            Content::Parts(parts) => self.parts(parts, marked, out),
        }
        let refusal = delta.refusal.as_str();
        if !refusal.is_empty() {
            let text = joined(&mut self.refusal, refusal, marked);
            self.said |= !text.is_empty();
            push(out, text, |text| Event::Refusal { choice: self.index, text });
        }
        if let Some(raw) = delta.tool_calls {
            self.tool_calls(raw, marked, out)?;
        }
        if let Some(function) = delta.function_call.and_then(|r| serde_json::from_str::<Function<'_>>(r.get()).ok()) {
            let entry = Entry { index: Whole(Some(0)), function: Some(function), ..Entry::default() };
            self.calls.entry(self.index, &entry, marked, out)?;
            self.said = true;
        }
        extra(Place::Delta(self.index), &delta.rest, marked, out);
        Ok(())
    }

    fn text(&mut self, text: &str, marked: bool, out: &mut Events) {
        if text.is_empty() {
            return;
        }
        let text = joined(&mut self.content, text, marked);
        if !text.is_empty() {
            self.said = true;
            if self.calls.any() {
                self.calls.close_whole(self.index, out);
            }
            out.push(Event::Text { choice: self.index, text });
        }
    }

    fn reasoning(&mut self, text: &str, marked: bool, out: &mut Events) {
        if text.is_empty() {
            return;
        }
        let text = joined(&mut self.reasoning, text, marked);
        self.said |= !text.is_empty();
        push(out, text, |text| Event::Reasoning { choice: self.index, text });
    }

    /// Mistral's list of parts. References to sources have no place in a text and are left out.
    fn parts(&mut self, parts: &[Value], marked: bool, out: &mut Events) {
        for part in parts {
            let text = |key: &str| part.get(key).and_then(Value::as_str).unwrap_or_default();
            match text("type") {
                "thinking" => match part.get("thinking") {
                    Some(Value::String(thinking)) => self.reasoning(thinking, marked, out),
                    Some(Value::Array(pieces)) => {
                        for piece in pieces {
                            let piece = piece.get("text").and_then(Value::as_str).unwrap_or_default();
                            self.reasoning(piece, marked, out);
                        }
                    }
                    _ => {}
                },
                _ => self.text(text("text"), marked, out),
            }
        }
    }

    /// OpenRouter's `reasoning_details`: kept whole for clients that send them back, with the index that list elements
    /// of a delta must have; their text is told unless `reasoning` has told it.
    fn details(&mut self, raw: &RawValue, shown: bool, marked: bool, out: &mut Events) {
        let Value::Array(mut details) = value(raw, false) else { return };
        for (at, detail) in details.iter_mut().enumerate() {
            let Some(detail) = detail.as_object_mut() else { continue };
            let text = match detail.get("type").and_then(Value::as_str) {
                Some("reasoning.text") => detail.get("text"),
                Some("reasoning.summary") => detail.get("summary"),
                _ => None,
            };
            if let Some(text) = text.and_then(Value::as_str).filter(|_| !shown) {
                self.reasoning(text, marked, out);
            }
            detail.entry("index").or_insert_with(|| at.into());
        }
        if !details.is_empty() {
            let mut details = Value::Array(details);
            if marked {
                clean(&mut details);
            }
            let fields = Map::from_iter([("reasoning_details".to_owned(), details)]);
            let place = Place::Delta(self.index);
            out.push(Event::Extra(Box::new(Extra { dialect: DialectId::Chat, place, fields, bound: false })));
        }
    }

    fn tool_calls(&mut self, raw: &RawValue, marked: bool, out: &mut Events) -> Result<(), Failure> {
        let entries: Vec<Entry<'_>> = serde_json::from_str(raw.get())
            .map_err(|error| malformed(&format!("`tool_calls` is no list of calls: {error}")))?;
        self.said |= !entries.is_empty();
        for entry in &entries {
            if entry.kind.as_str() == "custom" || (entry.function.is_none() && is_custom(raw)) {
                // Free-form tools have no JSON arguments and so no common form.
                let fields = Map::from_iter([("tool_calls".to_owned(), value(raw, marked))]);
                let place = Place::Delta(self.index);
                out.push(Event::Extra(Box::new(Extra { dialect: DialectId::Chat, place, fields, bound: true })));
                return Ok(());
            }
            self.calls.entry(self.index, entry, marked, out)?;
        }
        Ok(())
    }

    fn finish(&mut self, reason: Finish, out: &mut Events) -> Result<(), Failure> {
        let choice = self.index;
        for (halves, reasoning) in [(&mut self.reasoning, true), (&mut self.content, false)] {
            if let Some(half) = halves.take() {
                let text = half.to_string();
                out.push(if reasoning { Event::Reasoning { choice, text } } else { Event::Text { choice, text } });
            }
        }
        if let Some(half) = self.refusal.take() {
            out.push(Event::Refusal { choice, text: half.to_string() });
        }
        self.calls.finish(choice, out)?;
        self.finished = true;
        out.push(Event::Finish { choice, reason, stop_sequence: None });
        Ok(())
    }
}

// === impl Data ===

impl<'a> Data<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let valid = matches!(text, Cow::Borrowed(_));
        match halves::repair(&text) {
            Some(json) => Self { json: Cow::Owned(json), marked: true, intact: false },
            None => Self { json: text, marked: false, intact: valid },
        }
    }
}

// === helpers ===

/// The failure that a chunk reports, in any of the places where providers put it.
fn failure(chunk: &Chunk<'_>, json: &str) -> Option<Failure> {
    let reported =
        |raw: Option<&RawValue>| raw.filter(|r| !is_void(r) && !matches!(r.get(), "\"\"" | "false")).is_some();
    let choices = chunk.choices.as_deref().unwrap_or_default();
    if reported(chunk.error) || chunk.object.as_str() == "error" {
        return Some(classify::in_band(json));
    }
    if let Some(error) = choices.iter().filter(|c| reported(c.error)).find_map(|c| c.error) {
        return Some(classify::in_band(&format!("{{\"error\":{}}}", error.get())));
    }
    if let Some(groq) = chunk.x_groq.filter(|x| x.get().contains("\"error\"")) {
        let error = serde_json::from_str::<Value>(groq.get()).ok()?.get("error").filter(|e| !e.is_null()).cloned()?;
        return Some(classify::in_band(&serde_json::json!({ "error": error }).to_string()));
    }
    // An error without a wrapper, as web frameworks write it.
    let has = |name: &str| chunk.rest.iter().any(|(key, raw)| key == name && !is_void(raw));
    let bare = chunk.choices.is_none()
        && (has("detail") || (has("message") && ["code", "status", "status_code"].iter().any(|name| has(name))));
    bare.then(|| classify::in_band(json))
}

/// Whether a chunk says nothing but text or reasoning of one choice, in a form that any client can be given.
fn is_plain(chunk: &Chunk<'_>) -> bool {
    let Some([choice]) = chunk.choices.as_deref() else { return false };
    let Some(delta) = &choice.delta else { return false };
    chunk.object.as_str() == "chat.completion.chunk"
        && chunk.usage.is_none()
        && chunk.x_groq.is_none()
        && choice.index.0.is_some()
        && choice.finish.0.is_none()
        && !delta.role
        && !matches!(delta.content, Content::Parts(_))
        && delta.refusal.as_str().is_empty()
        && delta.reasoning.0.is_none()
        && delta.reasoning_details.is_none()
        && delta.tool_calls.is_none()
        && delta.function_call.is_none()
        && (matches!(&delta.content, Content::Text(text) if !text.is_empty())
            || !delta.reasoning_content.as_str().is_empty())
}

fn joined(halves: &mut Halves, text: &str, marked: bool) -> String {
    if marked || !halves.is_empty() { halves.join(text) } else { text.to_owned() }
}

fn push(out: &mut Events, text: String, event: impl FnOnce(String) -> Event) {
    if !text.is_empty() {
        out.push(event(text));
    }
}

/// Tells of fields without a common form, those that hold something.
fn extra(place: Place, rest: &[(Cow<'_, str>, &RawValue)], marked: bool, out: &mut Events) {
    let mut fields = Map::new();
    for (key, raw) in rest.iter().filter(|(_, raw)| !is_void(raw)) {
        fields.insert(key.to_string(), value(raw, marked));
    }
    if !fields.is_empty() {
        let bound = fields.keys().any(|key| quirks::BOUND.contains(&key.as_str()));
        out.push(Event::Extra(Box::new(Extra { dialect: DialectId::Chat, place, fields, bound })));
    }
}

fn value(raw: &RawValue, marked: bool) -> Value {
    let mut value = serde_json::from_str(raw.get()).unwrap_or_default();
    if marked {
        clean(&mut value);
    }
    value
}

fn clean(value: &mut Value) {
    match value {
        Value::String(text) => *text = halves::clean(text),
        Value::Array(items) => items.iter_mut().for_each(clean),
        Value::Object(fields) => fields.values_mut().for_each(clean),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether a value says nothing.
fn is_void(raw: &RawValue) -> bool {
    matches!(raw.get(), "null" | "{}" | "[]")
}

fn is_custom(raw: &RawValue) -> bool {
    raw.get().contains("\"custom\"")
}

/// Words that some servers send as data to keep a line open.
fn is_ping(data: &[u8]) -> bool {
    quirks::PINGS.iter().any(|ping| data.trim_ascii().eq_ignore_ascii_case(ping.as_bytes()))
}

fn malformed(what: &str) -> Failure {
    Failure::new(Kind::Malformed, Stage::Streaming).saying(what)
}

fn truncated(what: &str) -> Failure {
    Failure::new(Kind::Truncated, Stage::Streaming).saying(what)
}

/// The terminator.
const DONE: &str = "[DONE]";

/// Fields at the top of chunks that are of no use to anybody: padding.
const SILENT: [&str; 2] = ["obfuscation", "nonce"];

/// How many different fields at the top of chunks are followed.
const MAX_TOPS: usize = 32;
