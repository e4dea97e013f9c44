//! Writes a whole answer: gathers what a stream would have told and writes it as one body.

use super::stream::{call_id, finish_word, is_old};
use super::{refuse, usage};
use crate::chat::{DialectId, Minted, Request};
use crate::dialect::{Encode, End};
use crate::event::{Event, Extra, Finish, Identity, Place, Step};
use bytes::{BufMut, BytesMut};
use serde_json::{Map, Value, json};

/// Gathers one answer.
#[derive(Debug)]
pub(super) struct Whole {
    identity: Identity,
    /// Something was told, so the identity holds.
    told: bool,
    model: String,
    minted: Minted,
    answers: Vec<Answer>,
    tops: Map<String, Value>,
    /// What the provider calls reasoning.
    reasoning: String,
    /// Fields of calls that are to be opened.
    calls: Vec<(u32, u32, Map<String, Value>)>,
    /// The client speaks of functions, not of tools.
    old: bool,
    closed: bool,
}

/// One choice of it.
#[derive(Debug, Default)]
struct Answer {
    text: String,
    reasoning: String,
    refusal: String,
    calls: Vec<Call>,
    /// Fields of the message that have no common form.
    message: Map<String, Value>,
    /// Fields beside the message.
    beside: Map<String, Value>,
    finish: Option<Finish>,
}

#[derive(Debug)]
struct Call {
    number: u32,
    id: String,
    name: String,
    args: String,
    rest: Map<String, Value>,
}

// === impl Whole ===

impl Whole {
    pub(super) fn new(request: &Request) -> Self {
        Self {
            identity: Identity::default(),
            told: false,
            model: request.model.clone(),
            minted: request.minted,
            answers: (0..request.choices.max(1)).map(|_| Answer::default()).collect(),
            tops: Map::new(),
            reasoning: "reasoning_content".to_owned(),
            calls: Vec::new(),
            old: is_old(request),
            closed: false,
        }
    }

    fn answer(&mut self, choice: u32) -> Option<&mut Answer> {
        let at = usize::try_from(choice).ok()?;
        self.answers.get_mut(at).filter(|answer| answer.finish.is_none())
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::Identity(identity) if !self.told => self.identity = (**identity).clone(),
            Event::Text { choice, text } => {
                if let Some(answer) = self.answer(*choice) {
                    answer.text.push_str(text);
                }
            }
            Event::Reasoning { choice, text } => {
                if let Some(answer) = self.answer(*choice) {
                    answer.reasoning.push_str(text);
                }
            }
            Event::Refusal { choice, text } => {
                if let Some(answer) = self.answer(*choice) {
                    answer.refusal.push_str(text);
                }
            }
            Event::ToolOpen { choice, call, id, name } => {
                let minted = self.minted;
                let rest = self.calls.iter().position(|(c, n, _)| c == choice && n == call);
                let rest = rest.map(|at| self.calls.swap_remove(at).2).unwrap_or_default();
                if let Some(answer) = self.answer(*choice) {
                    if let Some(told) = answer.calls.iter_mut().rfind(|told| told.number == *call) {
                        told.name.clone_from(name);
                        return;
                    }
                    let id = if id.is_empty() { call_id(minted, *choice, answer.calls.len()) } else { id.clone() };
                    answer.calls.push(Call { number: *call, id, name: name.clone(), args: String::new(), rest });
                }
            }
            Event::ToolArgs { choice, call, args } => {
                let calls = self.answer(*choice).map(|answer| &mut answer.calls);
                if let Some(open) = calls.and_then(|calls| calls.iter_mut().rfind(|c| c.number == *call)) {
                    open.args.push_str(args);
                }
            }
            Event::Finish { choice, reason, .. } => {
                if let Some(answer) = self.answer(*choice) {
                    answer.finish = Some(reason.clone());
                }
            }
            Event::Extra(extra) if extra.dialect == DialectId::Chat => self.extra(extra),
            Event::Alive
            | Event::Identity(_)
            | Event::Thinking(_)
            | Event::ServerTool(_)
            | Event::Signature { .. }
            | Event::ToolClose { .. }
            | Event::Usage(_)
            | Event::Extra(_) => {}
        }
        self.told |= event.is_progress();
    }

    fn extra(&mut self, extra: &Extra) {
        match extra.place {
            Place::Call { choice, call } => return self.call_extra(choice, call, &extra.fields),
            Place::Names => {
                let untold = self.answers.iter().all(|answer| answer.reasoning.is_empty());
                if let Some(Value::String(name)) = extra.fields.get("reasoning").filter(|_| untold) {
                    self.reasoning.clone_from(name);
                }
                return;
            }
            _ => {}
        }
        let fields = match extra.place {
            Place::Top => Some(&mut self.tops),
            Place::Delta(choice) => self.answer(choice).map(|answer| &mut answer.message),
            Place::Choice(choice) => self.answer(choice).map(|answer| &mut answer.beside),
            Place::Whole | Place::Call { .. } | Place::Names => None,
        };
        if let Some(fields) = fields {
            for (name, value) in &extra.fields {
                match fields.get_mut(name) {
                    // A list in a delta is a piece of one; a field at the top is said anew.
                    Some(old) if extra.place != Place::Top => join(old, value),
                    Some(old) => *old = value.clone(),
                    None => {
                        fields.insert(name.clone(), value.clone());
                    }
                }
            }
        }
    }
}

impl Whole {
    fn call_extra(&mut self, choice: u32, call: u32, fields: &Map<String, Value>) {
        let answer = self.answer(choice);
        if let Some(open) = answer.and_then(|answer| answer.calls.iter_mut().rfind(|c| c.number == call)) {
            open.rest.extend(fields.clone());
        } else if self.calls.len() < STASHED {
            self.calls.push((choice, call, fields.clone()));
        }
    }
}

impl Encode for Whole {
    fn step(&mut self, step: &Step, _out: &mut BytesMut) {
        step.events.iter().for_each(|event| self.event(event));
    }

    fn close(&mut self, end: End<'_>, out: &mut BytesMut) {
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        let body = match end {
            End::Failed(refusal) => refuse::body(refusal),
            End::Complete(usage) => {
                let Identity { id, model, created } = std::mem::take(&mut self.identity);
                let answers = std::mem::take(&mut self.answers);
                let mut body = json!({
                    "id": if id.is_empty() { format!("chatcmpl-{:032x}", self.minted.id) } else { id },
                    "object": "chat.completion",
                    "created": if created > 0 { created } else { self.minted.unix },
                    "model": if model.is_empty() { self.model.clone() } else { model },
                    "choices": answers.into_iter().zip(0_u32..).map(|(a, index)| a.body(index, self.old, &self.reasoning)).collect::<Value>(),
                    "usage": usage::write(usage),
                });
                fill(&mut body, std::mem::take(&mut self.tops));
                body
            }
        };
        // Writing to a buffer in memory does not fail.
        let _ = serde_json::to_writer(out.writer(), &body);
    }

    fn keep_alive(&mut self, _out: &mut BytesMut) {}

    fn comment(&mut self, _text: &str, _out: &mut BytesMut) {}
}

// === impl Answer ===

impl Answer {
    fn body(self, index: u32, old: bool, reasoning: &str) -> Value {
        let others = usize::from(self.message.contains_key("tool_calls"));
        let finish = self.finish.as_ref().map(|reason| finish_word(reason, self.calls.len() + others, old));
        let silent = self.text.is_empty() && (!self.calls.is_empty() || others > 0 || !self.refusal.is_empty());
        let text = if silent { Value::Null } else { Value::String(self.text) };
        let refusal = if self.refusal.is_empty() { Value::Null } else { Value::String(self.refusal) };
        let mut message = json!({ "role": "assistant", "content": text, "refusal": refusal });
        if !self.reasoning.is_empty() {
            message[reasoning] = Value::String(self.reasoning);
        }
        if old {
            if let Some(call) = self.calls.into_iter().next() {
                message["function_call"] = json!({ "name": call.name, "arguments": call.args });
            }
        } else if !self.calls.is_empty() {
            let call = |call: Call| {
                let mut rest = call.rest;
                let mut function = json!({ "name": call.name, "arguments": call.args });
                if let Some(Value::Object(besides)) = rest.shift_remove("function") {
                    fill(&mut function, besides);
                }
                let mut call = json!({ "id": call.id, "type": "function", "function": function });
                fill(&mut call, rest);
                call
            };
            message["tool_calls"] = self.calls.into_iter().map(call).collect();
        }
        fill(&mut message, self.message);
        let mut choice = json!({ "index": index, "message": message, "logprobs": null, "finish_reason": finish });
        if let Some(logprobs) = self.beside.get("logprobs") {
            choice["logprobs"] = logprobs.clone();
        }
        fill(&mut choice, self.beside);
        choice
    }
}

// === helpers ===

/// The most calls whose fields are kept until they open.
const STASHED: usize = 256;

/// Adds fields that are not there.
fn fill(object: &mut Value, fields: Map<String, Value>) {
    if let Some(object) = object.as_object_mut() {
        for (name, value) in fields {
            object.entry(name).or_insert(value);
        }
    }
}

/// Appends what a later delta says to what earlier ones said.
fn join(old: &mut Value, new: &Value) {
    match (old, new) {
        (Value::Array(old), Value::Array(new)) => old.extend(new.iter().cloned()),
        (Value::Object(old), Value::Object(new)) => {
            for (name, value) in new {
                match old.get_mut(name) {
                    Some(Value::String(_)) | None => {
                        old.insert(name.clone(), value.clone());
                    }
                    Some(slot) => join(slot, value),
                }
            }
        }
        (Value::String(old), Value::String(new)) => old.push_str(new),
        (old, new) => *old = new.clone(),
    }
}
