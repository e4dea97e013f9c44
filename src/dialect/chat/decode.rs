//! Reads the chunks of an upstream's answer.
//!
//! An error is looked for before anything else, in each of the places where providers put one; a delta is a set of
//! independent fields; and state is kept for each choice. An ordinary delta costs one pass over its bytes and one
//! allocation, its text.

use super::calls::Events;
use super::choice::{Choice, is_reasoning, malformed};
use super::surrogates;
use super::wire::{self, Chunk, Content, Rest, is_void, value};
use super::{classify, quirks, usage};
use crate::chat::DialectId;
use crate::dialect::{Decode, Expect, Flow, finishes};
use crate::event::{Event, Extra, Identity, Place, Step};
use crate::failure::{Failure, Kind, Stage};
use crate::sse;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Reads one answer.
#[derive(Debug)]
pub(super) struct Decoder {
    expect: Expect,
    /// The last identity that was told.
    identity: Identity,
    /// The fields at the top of chunks that were told last, as digests of their names and values: providers repeat them
    /// in every chunk, and they may be long.
    tops: Vec<(u64, u64)>,
    choices: SmallVec<[Choice; 1]>,
    done: bool,
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
            expect: Expect { choices: expect.choices.max(1), ..expect },
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
        let id = Identity::bounded_id(chunk.id.as_str());
        let model = Identity::bounded_model(chunk.model.as_str());
        let created = chunk.created.0.unwrap_or(0);
        let cut = id.len() < chunk.id.as_str().len() || model.len() < chunk.model.as_str().len();
        let known = &mut self.identity;
        let whole = !cut && !id.is_empty() && !model.is_empty() && created > 0;
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
            Ok(index) if index < self.expect.choices => index,
            // Nobody asked for it.
            _ => return Ok(false),
        };
        let at = match self.choices.iter().position(|c| c.index == index) {
            Some(at) => at,
            None => {
                self.choices.push(Choice::new(index, self.expect));
                self.choices.len() - 1
            }
        };
        self.choices[at].read(wire, marked, out)
    }

    /// Tells of the fields at the top of a chunk that are new or have changed.
    fn top(&mut self, rest: &Rest<'_>, marked: bool, out: &mut Events) {
        let (mut news, mut bound) = (Map::new(), false);
        for (key, raw) in rest {
            if SILENT.contains(&&**key) || is_void(raw) {
                continue;
            }
            let (name, said) = (digest(key), digest(raw.get()));
            match self.tops.iter().position(|(known, _)| *known == name) {
                Some(at) if self.tops[at].1 == said => continue,
                Some(at) => self.tops[at].1 = said,
                None if self.tops.len() < MAX_TOPS => self.tops.push((name, said)),
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
        if !self.choices.iter().any(|c| c.said || c.finished.is_some()) {
            return Err(truncated("the stream ended before the model had said anything"));
        }
        for choice in &mut self.choices {
            choice.settle(out)?;
        }
        Ok(())
    }

    fn is_finished(&self) -> bool {
        let finished = self.choices.iter().filter(|c| c.finished.is_some()).count();
        u32::try_from(finished).is_ok_and(|n| n >= self.expect.choices)
    }
}

impl Decode for Decoder {
    fn event(&mut self, event: &sse::Event, step: &mut Step) -> Result<Flow, Failure> {
        if self.done {
            return Ok(Flow::Done);
        }
        self.expect.bounds.event(&event.data).map_err(|excess| malformed(&format!("an event holds {excess}")))?;
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
        if let Some(event) = rest.filter(|event| !self.done && self.expect.bounds.event(&event.data).is_ok()) {
            let data = Data::new(&event.data);
            let terminal = data.json.trim_ascii() == DONE
                || serde_json::from_str::<Chunk<'_>>(&data.json).is_ok_and(|chunk| {
                    let finish = |c: &wire::Choice<'_>| !finishes::is_none(c.finish.as_str());
                    failure(&chunk, &data.json).is_some() || chunk.choices.iter().flatten().any(finish)
                });
            if terminal {
                self.event(event, step)?;
            }
        }
        if self.done {
            Ok(())
        } else if self.is_finished() {
            self.choices.iter_mut().try_for_each(|choice| choice.settle(&mut step.events))
        } else if self.choices.is_empty() {
            Err(Failure::new(Kind::EmptyTurn, Stage::Streaming).saying("the body ended without one chunk"))
        } else {
            Err(truncated("the body ended without a finish reason"))
        }
    }
}

// === impl Data ===

impl<'a> Data<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let valid = matches!(text, Cow::Borrowed(_));
        match surrogates::repair(&text) {
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
    // MiniMax's numbers stand beside an answer too: 0 is success.
    let numbered = |raw: &RawValue| serde_json::from_str::<Value>(raw.get()).ok()?.get("status_code")?.as_i64();
    let base = chunk.rest.iter().find(|(key, _)| key == "base_resp").and_then(|(_, raw)| numbered(raw));
    if base.is_some_and(|number| number != 0) && choices.is_empty() {
        return Some(classify::in_band(json));
    }
    // An error without a wrapper, as web frameworks write it.
    let has = |name: &str| chunk.rest.iter().any(|(key, raw)| key == name && !is_void(raw));
    let coded = ["code", "status", "status_code", "error_code"].iter().any(|name| has(name));
    let worded = (has("message") || has("msg")) && coded;
    let bare = chunk.choices.is_none() && (has("detail") || has("errors") || has("error_msg") || worded);
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
            || !delta.reasoning_content.as_str().is_empty()
            || delta.rest.iter().any(|(key, raw)| is_reasoning(key, raw)))
}

/// Tells texts apart. Whoever makes two texts of one digest hides a field of their own answer.
fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Words that some servers send as data to keep a line open.
fn is_ping(data: &[u8]) -> bool {
    quirks::PINGS.iter().any(|ping| data.trim_ascii().eq_ignore_ascii_case(ping.as_bytes()))
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
