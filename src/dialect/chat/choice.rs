//! Reads one choice of an answer: its deltas, in the many forms of the same things, and its end.

use super::calls::{Calls, Events};
use super::quirks;
use super::surrogates::Halves;
use super::wire::{self, Content, Entry, Function, Whole, clean, is_void, value};
use crate::bounds::Excess;
use crate::chat::DialectId;
use crate::dialect::{Expect, finishes};
use crate::event::{self, Event, Extra, Finish, Place};
use crate::failure::{Failure, Kind, Said, Stage};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// One choice of it.
#[derive(Debug, Default)]
pub(super) struct Choice {
    pub(super) index: u32,
    content: Halves,
    reasoning: Halves,
    refusal: Halves,
    pub(super) calls: Calls,
    /// The most entries of `tool_calls` in one chunk.
    entries: usize,
    /// What its reasoning is called was told, or is the usual.
    named: bool,
    /// The model has said something in it.
    pub(super) said: bool,
    /// Why it has finished, as far as is known.
    pub(super) finished: Option<Finish>,
}

// === impl Choice ===

impl Choice {
    pub(super) fn new(index: u32, expect: Expect) -> Self {
        Self { index, calls: Calls::new(expect), entries: expect.bounds.calls, ..Self::default() }
    }

    /// Reads its part of a chunk. Whether what it said stands in the events as it stood in the chunk.
    pub(super) fn read(&mut self, wire: &wire::Choice<'_>, marked: bool, out: &mut Events) -> Result<bool, Failure> {
        let before = out.len();
        let whole = self.halves_are_empty();
        if let Some(delta) = &wire.delta {
            self.delta(delta, marked, out)?;
        }
        let verbatim = whole && self.halves_are_empty() && out.len() > before;
        let place = Place::Choice(self.index);
        if let Some(logprobs) = wire.logprobs {
            extra(place, [(Cow::Borrowed("logprobs"), logprobs)].iter(), marked, out);
        }
        extra(place, wire.rest.iter(), marked, out);
        let word = wire.finish.as_str();
        if !finishes::is_none(word) {
            let reason = quirks::finish(word).map_err(|kind| {
                let mut failure = Failure::new(kind, Stage::Streaming)
                    .saying(format!("the answer ended with the finish reason `{word}`"));
                failure.said.code = Said::clip(word.to_owned());
                failure
            })?;
            // Where calls come with it, what they still lack may follow.
            let calls = wire.delta.as_ref().is_some_and(|delta| delta.tool_calls.is_some());
            let whole = !calls || reason == Finish::ToolCalls;
            self.finish(reason, whole, out)?;
            if let Some(Event::Finish { stop_sequence, .. }) = out.last_mut() {
                *stop_sequence = matched_stop(&wire.rest);
            }
        }
        Ok(verbatim)
    }

    fn halves_are_empty(&self) -> bool {
        self.content.is_empty() && self.reasoning.is_empty() && self.refusal.is_empty()
    }

    fn delta(&mut self, delta: &wire::Delta<'_>, marked: bool, out: &mut Events) -> Result<(), Failure> {
        // Two names for the same thing, which some providers fill both.
        let (reasoning, again) = (delta.reasoning_content.as_str(), delta.reasoning.as_str());
        let other = delta.rest.iter().find(|(key, raw)| is_reasoning(key, raw));
        let other = other.and_then(|(key, raw)| Some((&**key, serde_json::from_str::<String>(raw.get()).ok()?)));
        match &other {
            _ if !reasoning.is_empty() => self.name_reasoning("reasoning_content", out),
            _ if !again.is_empty() => self.name_reasoning("reasoning", out),
            Some((name, text)) => {
                self.name_reasoning(name, out);
                self.reasoning(text, marked, out);
            }
            None => {}
        }
        self.reasoning(reasoning, marked, out);
        if again != reasoning {
            self.reasoning(again, marked, out);
        }
        if let Some(details) = delta.reasoning_details {
            let shown = other.is_some() || !reasoning.is_empty() || !again.is_empty();
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
            if !text.is_empty() {
                out.push(Event::Refusal { choice: self.index, text });
            }
        }
        if let Some(raw) = delta.tool_calls {
            self.tool_calls(raw, marked, out)?;
        }
        if let Some(function) = delta.function_call.and_then(|r| serde_json::from_str::<Function<'_>>(r.get()).ok()) {
            let entry = Entry { index: Whole(Some(0)), function: Some(function), ..Entry::default() };
            self.calls.entry(self.index, &entry, marked, out)?;
            self.said = true;
        }
        let rest = delta.rest.iter().filter(|(key, raw)| other.is_none() || !is_reasoning(key, raw));
        extra(Place::Delta(self.index), rest, marked, out);
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
            event::push(out, Event::Text { choice: self.index, text });
        }
    }

    fn reasoning(&mut self, text: &str, marked: bool, out: &mut Events) {
        if text.is_empty() {
            return;
        }
        let text = joined(&mut self.reasoning, text, marked);
        self.said |= !text.is_empty();
        if !text.is_empty() {
            event::push(out, Event::Reasoning { choice: self.index, text });
        }
    }

    /// Tells once what the provider calls its reasoning, if not by the usual name: it may refuse any other in the history.
    fn name_reasoning(&mut self, name: &str, out: &mut Events) {
        if !std::mem::replace(&mut self.named, true) && name != "reasoning_content" {
            let fields = Map::from_iter([("reasoning".to_owned(), Value::from(name))]);
            let extra = Extra { dialect: DialectId::Chat, place: Place::Names, fields, bound: false };
            out.push(Event::Extra(Box::new(extra)));
        }
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
        if entries.len() > self.entries {
            let excess = Excess { what: "entries of `tool_calls`", key: "max_calls", field: None, most: self.entries };
            return Err(malformed(&format!("an event holds {excess}")));
        }
        self.said |= !entries.is_empty();
        // Looked for once: the list may be long.
        let custom = entries.iter().any(|entry| entry.function.is_none()) && is_custom(raw);
        for entry in &entries {
            if entry.kind.as_str() == "custom" || (entry.function.is_none() && custom) {
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

    /// The answer is over: ends what a finish has left open.
    pub(super) fn settle(&mut self, out: &mut Events) -> Result<(), Failure> {
        match &self.finished {
            Some(_) if !self.calls.is_open() => Ok(()),
            Some(reason) => self.finish(reason.clone(), true, out),
            None if self.calls.any() => self.finish(Finish::ToolCalls, true, out),
            None => self.finish(Finish::Stop, true, out),
        }
    }

    /// It has ended: tells what is still held, and why. `whole`: so have its calls; else those whose arguments are whole.
    fn finish(&mut self, reason: Finish, whole: bool, out: &mut Events) -> Result<(), Failure> {
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
        if whole {
            self.calls.finish(choice, out)?;
        } else {
            self.calls.close_whole(choice, out);
        }
        self.finished = Some(reason.clone());
        out.push(Event::Finish { choice, reason, stop_sequence: None });
        Ok(())
    }
}

// === helpers ===

fn joined(halves: &mut Halves, text: &str, marked: bool) -> String {
    if marked || !halves.is_empty() { halves.join(text) } else { text.to_owned() }
}

/// The stop sequence that was met, where the server names it: vLLM as `stop_reason`, SGLang as `matched_stop`. Both give a
/// number for a token that ends the answer, and others words of their own: whether it is one is for the client's side to see.
fn matched_stop(rest: &[(Cow<'_, str>, &RawValue)]) -> Option<String> {
    let (_, raw) = rest.iter().find(|(key, _)| STOP_FIELDS.contains(&&**key))?;
    let text: String = serde_json::from_str(raw.get()).ok()?;
    (!text.is_empty()).then_some(text)
}

const STOP_FIELDS: [&str; 2] = ["stop_reason", "matched_stop"];

/// Tells of fields without a common form, those that hold something.
fn extra<'r, 'a: 'r>(
    place: Place,
    rest: impl Iterator<Item = &'r (Cow<'a, str>, &'a RawValue)>,
    marked: bool,
    out: &mut Events,
) {
    let mut fields = Map::new();
    for (key, raw) in rest.filter(|(_, raw)| !is_void(raw)) {
        fields.insert(key.to_string(), value(raw, marked));
    }
    if !fields.is_empty() {
        let bound = fields.keys().any(|key| quirks::BOUND.contains(&key.as_str()));
        out.push(Event::Extra(Box::new(Extra { dialect: DialectId::Chat, place, fields, bound })));
    }
}

/// Whether a field of a delta holds reasoning under a name of its provider's own: a text, and a name that says so.
pub(super) fn is_reasoning(key: &str, raw: &RawValue) -> bool {
    raw.get().len() > "\"\"".len()
        && raw.get().starts_with('"')
        && ["reason", "think", "thought"].iter().any(|part| key.contains(part))
        && !["signature", "id", "type", "effort", "format"].iter().any(|part| key.ends_with(part))
}

fn is_custom(raw: &RawValue) -> bool {
    raw.get().contains("\"custom\"")
}

pub(super) fn malformed(what: &str) -> Failure {
    Failure::new(Kind::Malformed, Stage::Streaming).saying(what)
}
