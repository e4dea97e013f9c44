//! Reads a Messages stream.
//!
//! The type in the data decides, not the `event:` line, which proxies lose or rename. Text, thinking and tool calls
//! have a common form; every other block and delta (server tools, citations, what is yet to come) travels as an
//! [`Extra`], so that a client of the same dialect gets it back. Deltas, nearly all of a stream, are read without an
//! intermediate value.

use super::classify;
use crate::bounds::Excess;
use crate::chat::DialectId;
use crate::dialect::surrogates::{self, Edges};
use crate::dialect::{Decode, Expect, Flow, finishes};
use crate::event::{Event, Extra, Finish, Identity, Place, Step, Usage};
use crate::failure::{Failure, Kind, Said, Stage};
use crate::sse;
use blocks::{Open, Piece};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::borrow::Cow;

mod blocks;

/// The state of one response.
#[derive(Debug)]
pub(super) struct Decoder {
    pub(super) expect: Expect,
    /// A frame of the message was read.
    pub(super) begun: bool,
    /// The model said something.
    pub(super) spoke: bool,
    /// Why it stopped was told.
    finished: bool,
    /// Usage so far, as the provider writes it.
    usage: Map<String, Value>,
    /// Blocks that were started and not stopped.
    open: Vec<Open>,
    /// The block before the next one was text.
    pub(super) after_text: bool,
    /// How many tool calls were opened.
    pub(super) calls: u32,
    /// Bytes of signatures and arguments that were kept until their block ended.
    pub(super) kept: usize,
    /// A high surrogate at the end of the last delta, and that delta's block.
    pub(super) high: Option<(u64, u16)>,
}

/// The deltas that make up nearly all of a stream; anything with further fields takes the general way.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hot<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    index: u64,
    #[serde(borrow)]
    delta: HotDelta<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HotDelta<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    text: Option<String>,
    thinking: Option<String>,
    partial_json: Option<String>,
}

// === impl Decoder ===

impl Decode for Decoder {
    fn event(&mut self, event: &sse::Event, step: &mut Step) -> Result<Flow, Failure> {
        let data: &[u8] = &event.data;
        self.expect.bounds.event(data).map_err(|excess| malformed(&format!("an event holds {excess}")))?;
        if event.name.as_ref() == b"error" {
            return Err(classify::event(data));
        }
        if let Ok(hot) = serde_json::from_slice::<Hot<'_>>(data)
            && hot.r#type == "content_block_delta"
            && !self.is_other(hot.index)
            && let Some((piece, text)) = hot.delta.piece()
        {
            let whole = self.piece(hot.index, piece, text, Edges::default(), step)?;
            if whole && piece != Piece::Args && event.single_line {
                step.raw = Some((DialectId::Anthropic, event.data.clone()));
            }
            return Ok(Flow::More);
        }
        if data.trim_ascii().is_empty() || event.name.as_ref() == b"ping" {
            step.events.push(Event::Alive);
            return Ok(Flow::More);
        }
        if data.trim_ascii() == b"[DONE]" {
            return self.stop(step);
        }
        let (mut value, repaired) = parse(data)?;
        if classify::is_error(&value) {
            return Err(classify::event(data));
        }
        if value.get("type").is_none() {
            value.insert("type".to_owned(), Value::String(String::from_utf8_lossy(&event.name).into_owned()));
        }
        // A delta with fields that nobody here knows says no more than its text to any other dialect.
        let whole = event.single_line && self.high.is_none() && repaired.is_none();
        let delta = value.get("type").and_then(Value::as_str) == Some("content_block_delta");
        let flow = self.general(value, repaired.unwrap_or_default(), step)?;
        if whole && delta && matches!(step.events.as_slice(), [Event::Text { .. } | Event::Reasoning { .. }]) {
            step.raw = Some((DialectId::Anthropic, event.data.clone()));
        }
        Ok(flow)
    }

    fn end(&mut self, rest: Option<&sse::Event>, step: &mut Step) -> Result<(), Failure> {
        if let Some(rest) = rest
            && !self.finished
            && self.expect.bounds.event(&rest.data).is_ok()
            && let Ok((value, _)) = parse(&rest.data)
        {
            if classify::is_error(&value) {
                return Err(classify::event(&rest.data));
            }
            let r#type = value.get("type").and_then(Value::as_str);
            let stops = value.get("delta").and_then(|d| d.get("stop_reason")).and_then(Value::as_str);
            let stops = stops.is_some_and(|word| !finishes::is_none(word));
            if r#type == Some("message_stop") || (r#type == Some("message_delta") && stops) {
                self.event(rest, step)?;
            }
        }
        if self.finished {
            Ok(())
        } else if self.begun {
            Err(Failure::new(Kind::Truncated, Stage::Streaming).saying("the stream ended without a stop reason"))
        } else {
            Err(empty())
        }
    }
}

impl Decoder {
    pub(super) fn new(expect: Expect) -> Self {
        Self {
            expect,
            begun: false,
            spoke: false,
            finished: false,
            usage: Map::new(),
            open: Vec::new(),
            after_text: false,
            calls: 0,
            kept: 0,
            high: None,
        }
    }

    /// The steps of a whole message: those of the stream that would have told it.
    pub(super) fn whole(&mut self, mut message: Map<String, Value>) -> Result<Vec<Step>, Failure> {
        let content = match message.shift_remove("content") {
            Some(Value::Array(blocks)) => blocks,
            _ => Vec::new(),
        };
        // Each costs a step of its own, however little it holds.
        let most = self.expect.bounds.parts;
        if content.len() > most {
            let excess = Excess { what: "content blocks", key: "max_parts", field: None, most };
            return Err(malformed(&format!("the answer holds {excess}")));
        }
        let mut last = Map::new();
        for field in ["stop_reason", "stop_sequence", "stop_details", "container"] {
            last.extend(message.shift_remove_entry(field));
        }
        let mut steps = Vec::new();
        let mut step = Step::default();
        self.start(message, true, &mut step);
        steps.push(std::mem::take(&mut step));
        for (index, block) in (0..).zip(content) {
            self.block_start(index, block, &mut step)?;
            self.block_stop(index, &mut step);
            steps.push(std::mem::take(&mut step));
        }
        self.finish(last, &mut step)?;
        if !self.finished {
            self.stop(&mut step)?;
        }
        steps.push(step);
        steps.retain(|step| !step.events.is_empty());
        Ok(steps)
    }

    fn general(&mut self, mut value: Map<String, Value>, edges: Edges, step: &mut Step) -> Result<Flow, Failure> {
        let index = value.get("index").and_then(Value::as_u64);
        let r#type = value.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        match (r#type.as_str(), index) {
            ("message_start", _) => {
                if let Some(Value::Object(message)) = value.shift_remove("message") {
                    self.start(message, false, step);
                }
            }
            ("content_block_start", Some(index)) => {
                let block = value.shift_remove("content_block").unwrap_or_default();
                self.block_start(index, block, step)?;
            }
            ("content_block_delta", Some(index)) => match value.shift_remove("delta") {
                Some(Value::Object(delta)) => self.delta(index, delta, edges, step)?,
                _ => return Err(malformed("a content_block_delta without a delta")),
            },
            ("content_block_stop", Some(index)) => self.block_stop(index, step),
            ("content_block_start" | "content_block_delta" | "content_block_stop", None) => {
                return Err(malformed("a content block without an index"));
            }
            ("message_delta", _) => {
                self.begun = true;
                if let Some(Value::Object(usage)) = value.shift_remove("usage") {
                    self.count(usage, true, step);
                }
                if let Some(Value::Object(delta)) = value.shift_remove("delta") {
                    self.finish(delta, step)?;
                }
                value.shift_remove("type");
                extra(Place::Top, value, false, step);
            }
            ("message_stop", _) => return self.stop(step),
            ("ping" | "", _) => {}
            // An event that is yet to be invented. One about a block cannot be passed on: indexes are the encoder's.
            (_, None) => extra(Place::Whole, value, false, step),
            (_, Some(_)) => {}
        }
        if step.events.is_empty() {
            step.events.push(Event::Alive);
        }
        Ok(Flow::More)
    }

    /// Takes the head of a message. The count of output tokens in a stream's is a placeholder (`exact` is false).
    fn start(&mut self, mut message: Map<String, Value>, exact: bool, step: &mut Step) {
        self.begun = true;
        let text = |field: Option<Value>| match field {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        let (id, model) = (text(message.shift_remove("id")), text(message.shift_remove("model")));
        let identity = Identity {
            id: Identity::bounded_id(&id).to_owned(),
            model: Identity::bounded_model(&model).to_owned(),
            created: 0,
        };
        step.events.push(Event::Identity(Box::new(identity)));
        if let Some(Value::Object(usage)) = message.shift_remove("usage") {
            self.count(usage, exact, step);
        }
        for known in ["type", "role", "content", "stop_reason", "stop_sequence"] {
            message.shift_remove(known);
        }
        message.retain(|_, field| !field.is_null());
        extra(Place::Top, message, false, step);
    }

    /// Takes usage over; the counts of output only if they are `exact`.
    fn count(&mut self, usage: Map<String, Value>, exact: bool, step: &mut Step) {
        let known = usage.into_iter().filter(|(_, count)| !count.is_null());
        Usage::keep(&mut self.usage, known.collect());
        let number = |field: &str| self.usage.get(field).and_then(Usage::count);
        let (read, write) = (number("cache_read_input_tokens"), number("cache_creation_input_tokens"));
        let reasoning = self.usage.get("output_tokens_details").and_then(|d| d.get("thinking_tokens"));
        step.events.push(Event::Usage(Box::new(Usage {
            prompt: number("input_tokens").map(|n| n + read.unwrap_or(0) + write.unwrap_or(0)),
            completion: number("output_tokens").filter(|_| exact),
            reasoning: reasoning.and_then(Usage::count).filter(|_| exact),
            cache_read: read,
            cache_write: write,
            native: Some((DialectId::Anthropic, self.usage.clone())),
        })));
    }

    /// Takes a stop reason, if there is one. It is not the end yet: of several the last holds.
    ///
    /// # Errors
    /// The failure that the word tells.
    fn finish(&mut self, mut delta: Map<String, Value>, step: &mut Step) -> Result<(), Failure> {
        let word = match delta.shift_remove("stop_reason") {
            Some(Value::String(word)) if !finishes::is_none(&word) => word,
            _ => return Ok(()),
        };
        if let Some(kind) = finishes::failure(&word) {
            let mut failure = Failure::new(kind, Stage::Streaming);
            failure = failure.saying(format!("the answer ended with the stop reason `{word}`"));
            failure.said.code = Said::clip(word);
            return Err(failure);
        }
        let stop_sequence = match delta.shift_remove("stop_sequence") {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        self.close_all(step);
        let reason = reason(&word);
        if matches!(reason, Finish::Other(_)) || word == "model_context_window_exceeded" {
            delta.insert("stop_reason".to_owned(), word.into());
        }
        delta.retain(|_, field| !field.is_null());
        extra(Place::Choice(0), delta, false, step);
        self.finished = true;
        step.events.push(Event::Finish { choice: 0, reason, stop_sequence });
        Ok(())
    }

    /// The terminator. Where it comes without a stop reason but after content, the turn is whole all the same.
    fn stop(&mut self, step: &mut Step) -> Result<Flow, Failure> {
        if !self.finished {
            if !self.spoke {
                return Err(empty());
            }
            self.close_all(step);
            self.finished = true;
            let reason = if self.calls > 0 { Finish::ToolCalls } else { Finish::Stop };
            step.events.push(Event::Finish { choice: 0, reason, stop_sequence: None });
        }
        if step.events.is_empty() {
            step.events.push(Event::Alive);
        }
        Ok(Flow::Done)
    }
}

// === impl HotDelta ===

impl HotDelta<'_> {
    fn piece(self) -> Option<(Piece, String)> {
        match (self.r#type.as_ref(), self.text, self.thinking, self.partial_json) {
            ("text_delta", Some(text), None, None) => Some((Piece::Text, text)),
            ("thinking_delta", None, Some(text), None) => Some((Piece::Thinking, text)),
            ("input_json_delta", None, None, Some(text)) => Some((Piece::Args, text)),
            _ => None,
        }
    }
}

// === helpers ===

/// What a stop reason means.
pub(super) fn reason(word: &str) -> Finish {
    match word {
        "end_turn" | "stop_sequence" => Finish::Stop,
        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
        "tool_use" => Finish::ToolCalls,
        "refusal" => Finish::ContentFilter,
        "pause_turn" => Finish::Pause,
        other => Finish::Other(other.to_owned()),
    }
}

/// The JSON object of an event; and where it was none before halves of characters were taken out of it, those at the
/// edges of its texts.
fn parse(data: &[u8]) -> Result<(Map<String, Value>, Option<Edges>), Failure> {
    let error = match serde_json::from_slice(data) {
        Ok(value) => return Ok((value, None)),
        Err(error) => error,
    };
    if let Some(repaired) = surrogates::repair(data)
        && let Ok(value) = serde_json::from_slice(&repaired.json)
    {
        return Ok((value, Some(repaired.edges)));
    }
    Err(malformed(&format!("an event that is no JSON object: {error}")))
}

pub(super) fn extra(place: Place, fields: Map<String, Value>, bound: bool, step: &mut Step) {
    if !fields.is_empty() {
        let extra = Extra { dialect: DialectId::Anthropic, place, fields, bound };
        step.events.push(Event::Extra(Box::new(extra)));
    }
}

pub(super) fn malformed(what: &str) -> Failure {
    Failure::new(Kind::Malformed, Stage::Streaming).saying(what)
}

fn empty() -> Failure {
    Failure::new(Kind::EmptyTurn, Stage::Streaming).saying("the stream ended before the model said anything")
}

#[cfg(test)]
#[path = "tests/decode.rs"]
mod tests;
