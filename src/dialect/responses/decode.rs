//! Reads a Responses stream.
//!
//! The type in the data decides, not the `event:` line. Servers of this API differ in what they tell: some send no
//! events of items or parts, some no deltas, some nothing but the whole answer. So each item is followed by its number,
//! and what no delta told is taken from the item when it is complete, or from the answer at the end.

use super::custom;
use super::items::kind as kind_of;
use crate::bounds::Excess;
use crate::chat::DialectId;
use crate::dialect::surrogates::{self, Edges};
use crate::dialect::{Decode, Expect, Flow};
use crate::event::{Event, Extra, Identity, Place, Step};
use crate::failure::{Failure, Kind, Stage};
use crate::sse;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

mod ending;

/// The state of one response.
#[derive(Debug)]
pub(super) struct Decoder {
    expect: Expect,
    /// The answer has begun.
    begun: bool,
    /// The model said something.
    spoke: bool,
    finished: bool,
    /// Items by their numbers.
    items: BTreeMap<u64, Item>,
    /// How many calls were opened.
    calls: u32,
    named: bool,
    /// A high surrogate at the end of the last delta, and that delta's item.
    high: Option<(u64, u16)>,
}

/// An item that has begun.
#[derive(Debug)]
struct Item {
    kind: Piece,
    /// A piece of it was told.
    told: bool,
    done: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    Message,
    /// `raw`: its text itself is told, and not a summary.
    Reasoning {
        raw: bool,
    },
    Function(u32),
    Custom(u32),
    /// A tool that the provider runs itself, or what is yet to be invented.
    Other,
}

// === impl Decoder ===

impl Decode for Decoder {
    fn event(&mut self, event: &sse::Event, step: &mut Step) -> Result<Flow, Failure> {
        let data: &[u8] = &event.data;
        self.expect.bounds.event(data).map_err(|excess| malformed(&format!("an event holds {excess}")))?;
        if data.trim_ascii().is_empty() {
            step.push(Event::Alive);
            return Ok(Flow::More);
        }
        if data.trim_ascii() == b"[DONE]" {
            return self.stop(step);
        }
        if event.name.as_ref() == b"error" {
            return Err(super::classify::event(data));
        }
        let (mut value, edges) = parse(data)?;
        if !value.contains_key("type") {
            value.insert("type".to_owned(), String::from_utf8_lossy(&event.name).into_owned().into());
        }
        let flow = self.read(&value, edges, data, step)?;
        if step.events.is_empty() {
            step.push(Event::Alive);
        }
        Ok(flow)
    }

    fn end(&mut self, rest: Option<&sse::Event>, step: &mut Step) -> Result<(), Failure> {
        if let Some(rest) = rest
            && !self.finished
            && self.expect.bounds.event(&rest.data).is_ok()
            && let Ok((value, _)) = parse(&rest.data)
        {
            let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
            if ENDS.contains(&kind) || super::classify::is_error(&value) {
                self.event(rest, step)?;
            }
        }
        if self.finished {
            Ok(())
        } else if self.begun {
            Err(Failure::new(Kind::Truncated, Stage::Streaming).saying("the stream ended before the answer was whole"))
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
            items: BTreeMap::new(),
            calls: 0,
            named: false,
            high: None,
        }
    }

    /// The steps of a whole answer: those of the stream that would have told it.
    pub(super) fn whole(&mut self, mut answer: Map<String, Value>) -> Result<Vec<Step>, Failure> {
        let output = match answer.get_mut("output").map(Value::take) {
            Some(Value::Array(output)) => output,
            _ => Vec::new(),
        };
        let mut steps = Vec::with_capacity(output.len() + 2);
        let mut step = Step::default();
        self.name(&answer, &mut step);
        for (index, item) in (0..).zip(output) {
            self.complete(index, &item, &mut step)?;
            steps.push(std::mem::take(&mut step));
        }
        self.conclude(&answer, &mut step)?;
        steps.push(step);
        steps.retain(|step| !step.events.is_empty());
        Ok(steps)
    }

    fn read(
        &mut self,
        value: &Map<String, Value>,
        edges: Edges,
        data: &[u8],
        step: &mut Step,
    ) -> Result<Flow, Failure> {
        let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
        let index = value.get("output_index").and_then(Value::as_u64).unwrap_or(0);
        let answer = value.get("response").and_then(Value::as_object);
        let kind = text("type");
        match kind {
            "response.created" | "response.in_progress" | "response.queued" => {
                if let Some(answer) = answer {
                    self.name(answer, step);
                }
            }
            "response.output_item.added" => self.open(index, value.get("item").unwrap_or(&Value::Null), step)?,
            "response.output_item.done" => self.complete(index, value.get("item").unwrap_or(&Value::Null), step)?,
            "response.output_text.delta" => self.say(index, Said::Text, text("delta"), edges, step)?,
            "response.refusal.delta" => self.say(index, Said::Refusal, text("delta"), edges, step)?,
            "response.reasoning_text.delta" => self.say(index, Said::Reasoning, text("delta"), edges, step)?,
            "response.reasoning_summary_text.delta" => self.say(index, Said::Summary, text("delta"), edges, step)?,
            "response.reasoning_summary_part.added" => {
                let first = value.get("summary_index").and_then(Value::as_u64).unwrap_or(0) == 0;
                if !first && self.items.get(&index).is_some_and(|item| item.told) {
                    self.say(index, Said::Summary, "\n\n", Edges::default(), step)?;
                }
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                self.say(index, Said::Args, text("delta"), edges, step)?;
            }
            "response.completed"
            | "response.incomplete"
            | "response.done"
            | "response.failed"
            | "response.cancelled" => {
                let Some(answer) = answer else {
                    return Err(malformed("the end of an answer without the answer"));
                };
                self.name(answer, step);
                let output = answer.get("output").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                for (index, item) in (0..).zip(output) {
                    if !self.items.get(&index).is_some_and(|item| item.done) {
                        self.complete(index, item, step)?;
                    }
                }
                self.conclude(answer, step)?;
                return Ok(Flow::Done);
            }
            "error" => return Err(super::classify::event(data)),
            // What is told again whole, signs of life, and what is yet to be invented.
            _ if super::classify::is_error(value) => return Err(super::classify::event(data)),
            _ => {}
        }
        Ok(Flow::More)
    }

    /// Takes the head of an answer, once.
    fn name(&mut self, answer: &Map<String, Value>, step: &mut Step) {
        self.begun = true;
        if std::mem::replace(&mut self.named, true) {
            return;
        }
        let text = |field: &str| answer.get(field).and_then(Value::as_str).unwrap_or_default();
        let created = answer.get("created_at").and_then(|at| at.as_u64().or_else(|| at.as_f64().map(|at| at as u64)));
        step.push(Event::Identity(Box::new(Identity {
            id: Identity::bounded_id(text("id")).to_owned(),
            model: Identity::bounded_model(text("model")).to_owned(),
            created: created.unwrap_or(0),
        })));
    }

    /// An item begins.
    fn open(&mut self, index: u64, item: &Value, step: &mut Step) -> Result<(), Failure> {
        self.begun = true;
        if self.items.get(&index).is_some_and(|item| !item.done) {
            self.close(index, step);
        }
        if self.items.len() >= self.expect.bounds.parts {
            let most = self.expect.bounds.parts;
            let excess = Excess { what: "items", key: "max_parts", field: None, most };
            return Err(malformed(&format!("the answer holds {excess}")));
        }
        let kind = match kind_of(item) {
            "message" => Piece::Message,
            "reasoning" => {
                step.push(Event::Thinking(true));
                Piece::Reasoning { raw: false }
            }
            kind @ ("function_call" | "custom_tool_call") => {
                let call = self.call(item, step)?;
                if kind == "function_call" {
                    Piece::Function(call)
                } else {
                    step.push(Event::ToolArgs { choice: 0, call, args: format!("{{\"{}\":\"", custom::INPUT) });
                    Piece::Custom(call)
                }
            }
            kind => {
                self.spoke = true;
                if kind.ends_with("_call") {
                    step.push(Event::ServerTool(true));
                }
                Piece::Other
            }
        };
        self.items.insert(index, Item { kind, told: false, done: false });
        Ok(())
    }

    fn call(&mut self, item: &Value, step: &mut Step) -> Result<u32, Failure> {
        let text = |field: &str| item.get(field).and_then(Value::as_str).unwrap_or_default();
        let call = self.calls;
        if usize::try_from(call).is_ok_and(|calls| calls >= self.expect.bounds.calls) {
            let most = self.expect.bounds.calls;
            let excess = Excess { what: "tool calls", key: "max_calls", field: None, most };
            return Err(malformed(&format!("the answer makes {excess}")));
        }
        let (id, name) = (text("call_id"), text("name"));
        if name.len() > MAX_NAME {
            return Err(malformed("the name of a tool call is longer than any function's"));
        }
        self.calls += 1;
        self.spoke = true;
        // An id that is too long is none, and the client is given one of ours.
        let id = if id.len() <= MAX_ID { id.to_owned() } else { String::new() };
        step.push(Event::ToolOpen { choice: 0, call, id, name: name.to_owned() });
        Ok(call)
    }

    /// Takes a piece of an item. One that nobody announced begins with it.
    fn say(&mut self, index: u64, what: Said, text: &str, edges: Edges, step: &mut Step) -> Result<(), Failure> {
        self.begun = true;
        let text = self.mend(index, text, edges);
        if text.is_empty() {
            return Ok(());
        }
        if !self.items.contains_key(&index) {
            match what {
                Said::Args => return Err(malformed("arguments outside a tool call")),
                Said::Text | Said::Refusal => self.open(index, &json!({"type": "message"}), step)?,
                Said::Reasoning | Said::Summary => self.open(index, &json!({"type": "reasoning"}), step)?,
            }
        }
        let Some(item) = self.items.get_mut(&index) else { return Ok(()) };
        let event = match (what, &mut item.kind) {
            (Said::Args, Piece::Function(call)) => Event::ToolArgs { choice: 0, call: *call, args: text },
            (Said::Args, Piece::Custom(call)) => Event::ToolArgs { choice: 0, call: *call, args: escaped(&text) },
            // What a provider's own tool is given.
            (Said::Args, _) => return Ok(()),
            (Said::Text, _) => Event::Text { choice: 0, text },
            (Said::Refusal, _) => Event::Refusal { choice: 0, text },
            (Said::Summary, Piece::Reasoning { raw: true }) => return Ok(()),
            (Said::Reasoning, Piece::Reasoning { raw: false }) if item.told => return Ok(()),
            (Said::Reasoning, kind) => {
                if let Piece::Reasoning { raw } = kind {
                    *raw = true;
                }
                Event::Reasoning { choice: 0, text }
            }
            (Said::Summary, _) => Event::Reasoning { choice: 0, text },
        };
        item.told = true;
        self.spoke = true;
        step.push(event);
        Ok(())
    }

    /// Joins the halves of a character that two deltas share.
    fn mend(&mut self, index: u64, text: &str, edges: Edges) -> String {
        let mut whole = String::with_capacity(text.len() + 4);
        match (self.high.take(), edges.low) {
            (Some((item, high)), Some(low)) if item == index => whole.push(surrogates::pair(high, low)),
            (None, None) => {}
            _ => whole.push(char::REPLACEMENT_CHARACTER),
        }
        whole.push_str(text);
        self.high = edges.high.map(|high| (index, high));
        whole
    }

    /// An item is complete: what was not told of it is told.
    fn complete(&mut self, index: u64, item: &Value, step: &mut Step) -> Result<(), Failure> {
        if self.items.get(&index).is_none_or(|item| item.done) {
            self.open(index, item, step)?;
        }
        let Some(state) = self.items.get(&index) else { return Ok(()) };
        let (kind, told) = (state.kind, state.told);
        let text = |field: &str| item.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let none = Edges::default();
        match kind {
            Piece::Message if !told => {
                for part in item.get("content").and_then(Value::as_array).into_iter().flatten() {
                    let said = |field: &str| part.get(field).and_then(Value::as_str);
                    if let Some(refusal) = said("refusal") {
                        self.say(index, Said::Refusal, refusal, none, step)?;
                    } else if let Some(text) = said("text") {
                        self.say(index, Said::Text, text, none, step)?;
                    }
                }
            }
            Piece::Reasoning { .. } => {
                let mut texts = |field: &str, what: Said| {
                    let parts = item.get(field).and_then(Value::as_array).into_iter().flatten();
                    let parts: Vec<&str> = parts.filter_map(|part| part.get("text")?.as_str()).collect();
                    self.say(index, what, &parts.join("\n\n"), none, step)
                };
                if !told {
                    texts("summary", Said::Summary)?;
                }
                if !told && self.items.get(&index).is_some_and(|item| !item.told) {
                    let parts = item.get("content").and_then(Value::as_array).into_iter().flatten();
                    let parts: Vec<&str> = parts.filter_map(|part| part.get("text")?.as_str()).collect();
                    self.say(index, Said::Reasoning, &parts.join("\n\n"), none, step)?;
                }
                let sealed = text("encrypted_content");
                if !sealed.is_empty() {
                    step.push(Event::Signature { choice: 0, data: sealed, redacted: false });
                }
            }
            Piece::Function(_) if !told => {
                let args = match item.get("arguments") {
                    Some(Value::String(args)) if !args.trim().is_empty() => args.clone(),
                    Some(args @ Value::Object(_)) => args.to_string(),
                    _ => "{}".to_owned(),
                };
                self.say(index, Said::Args, &args, none, step)?;
            }
            Piece::Custom(_) if !told => self.say(index, Said::Args, &text("input"), none, step)?,
            Piece::Other => {
                if let Value::Object(fields) = item {
                    let extra = Extra {
                        dialect: DialectId::Responses,
                        place: Place::Whole,
                        fields: fields.clone(),
                        bound: true,
                    };
                    step.push(Event::Extra(Box::new(extra)));
                }
            }
            Piece::Message | Piece::Function(_) | Piece::Custom(_) => {}
        }
        self.close(index, step);
        Ok(())
    }

    /// An item ends.
    fn close(&mut self, index: u64, step: &mut Step) {
        if self.high.take_if(|(item, _)| *item == index).is_some() {
            // Half a character that nothing completes.
            let _ = self.say(index, Said::Text, "\u{fffd}", Edges::default(), step);
        }
        let Some(item) = self.items.get_mut(&index) else { return };
        if std::mem::replace(&mut item.done, true) {
            return;
        }
        match item.kind {
            Piece::Message => {}
            Piece::Reasoning { .. } => step.push(Event::Thinking(false)),
            Piece::Function(call) => step.push(Event::ToolClose { choice: 0, call }),
            Piece::Custom(call) => {
                step.push(Event::ToolArgs { choice: 0, call, args: "\"}".to_owned() });
                step.push(Event::ToolClose { choice: 0, call });
            }
            Piece::Other => step.push(Event::ServerTool(false)),
        }
    }
}

/// What a piece belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Text,
    Refusal,
    Reasoning,
    Summary,
    Args,
}

// === helpers ===

/// A piece of a JSON text's inside.
fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// The JSON object of an event, and the halves of characters at the edges of its texts.
fn parse(data: &[u8]) -> Result<(Map<String, Value>, Edges), Failure> {
    let error = match serde_json::from_slice(data) {
        Ok(value) => return Ok((value, Edges::default())),
        Err(error) => error,
    };
    if let Some(repaired) = surrogates::repair(data)
        && let Ok(value) = serde_json::from_slice(&repaired.json)
    {
        return Ok((value, repaired.edges));
    }
    Err(malformed(&format!("an event that is no JSON object: {error}")))
}

pub(super) fn malformed(what: &str) -> Failure {
    Failure::new(Kind::Malformed, Stage::Streaming).saying(what)
}

fn empty() -> Failure {
    Failure::new(Kind::EmptyTurn, Stage::Streaming).saying("the stream ended before the model said anything")
}

/// The events that end an answer.
const ENDS: [&str; 5] =
    ["response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done"];

/// The longest id of a call.
const MAX_ID: usize = 64 << 10;

/// The longest name of a function.
const MAX_NAME: usize = 1024;

#[cfg(test)]
#[path = "tests/decode.rs"]
mod tests;
