//! The item that is being told, and the events that tell it.

use super::custom;
use super::frames::Frames;
use bytes::BytesMut;
use serde_json::{Value, json};

/// An item that has begun.
pub(super) struct Open {
    pub(super) kind: Kind,
    pub(super) id: String,
    /// Its number in the answer.
    index: u32,
    /// The text of its last part, the arguments, or the reasoning.
    text: String,
    /// Parts of a message that are complete.
    parts: Vec<Value>,
    /// The call's own id and its function.
    call: (String, String),
    /// What only its issuer can read.
    pub(super) sealed: Option<String>,
}

/// What kind of item, and of a message which part is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Refusal,
    Reasoning,
    Function(u32),
    Custom(u32),
}

// === impl Open ===

impl Open {
    /// Begins an item; `call` is empty unless it is one.
    pub(super) fn begin(
        kind: Kind,
        id: String,
        index: u32,
        call: (String, String),
        frames: &mut Frames,
        out: &mut BytesMut,
    ) -> Self {
        let mut open = Self { kind, id, index, text: String::new(), parts: Vec::new(), call, sealed: None };
        if frames.stream() {
            let item = open.item("in_progress");
            frames.event("response.output_item.added", &[("output_index", &json!(index)), ("item", &item)], out);
        }
        if kind.is_message() {
            open.begin_part(kind, frames, out);
        }
        open
    }

    /// The item goes on.
    pub(super) fn more(&mut self, more: &str, frames: &mut Frames, out: &mut BytesMut) {
        if self.kind == Kind::Reasoning && self.text.is_empty() {
            self.part_event("response.reasoning_summary_part.added", &[("part", &self.part())], frames, out);
        }
        self.text.push_str(more);
        let (kind, part) = match self.kind {
            Kind::Text => ("response.output_text.delta", Some(("content_index", self.parts.len()))),
            Kind::Refusal => ("response.refusal.delta", Some(("content_index", self.parts.len()))),
            Kind::Reasoning => ("response.reasoning_summary_text.delta", Some(("summary_index", 0))),
            Kind::Function(_) => ("response.function_call_arguments.delta", None),
            // Its text stands inside of its arguments, and is known with them.
            Kind::Custom(_) => return,
        };
        frames.delta(kind, (&self.id, self.index), part, more, out);
    }

    /// Goes on with another part of a message.
    pub(super) fn turn_to(&mut self, kind: Kind, frames: &mut Frames, out: &mut BytesMut) {
        self.end_part(frames, out);
        self.begin_part(kind, frames, out);
    }

    /// Ends the item, and gives it whole.
    pub(super) fn end(mut self, status: &str, frames: &mut Frames, out: &mut BytesMut) -> Value {
        self.end_part(frames, out);
        let item = self.item(status);
        if frames.stream() {
            frames.event("response.output_item.done", &[("output_index", &json!(self.index)), ("item", &item)], out);
        }
        item
    }

    /// The item as far as it got.
    pub(super) fn cut(mut self) -> Value {
        self.keep_part();
        self.item("incomplete")
    }

    fn begin_part(&mut self, kind: Kind, frames: &mut Frames, out: &mut BytesMut) {
        self.kind = kind;
        self.part_event("response.content_part.added", &[("part", &self.part())], frames, out);
    }

    fn end_part(&mut self, frames: &mut Frames, out: &mut BytesMut) {
        if frames.stream() {
            let (text, none) = (json!(self.text), json!([]));
            let part = self.part();
            match self.kind {
                Kind::Text => {
                    let fields = [("text", &text), ("logprobs", &none)];
                    self.part_event("response.output_text.done", &fields, frames, out);
                    self.part_event("response.content_part.done", &[("part", &part)], frames, out);
                }
                Kind::Refusal => {
                    self.part_event("response.refusal.done", &[("refusal", &text)], frames, out);
                    self.part_event("response.content_part.done", &[("part", &part)], frames, out);
                }
                Kind::Reasoning if self.text.is_empty() => {}
                Kind::Reasoning => {
                    self.part_event("response.reasoning_summary_text.done", &[("text", &text)], frames, out);
                    self.part_event("response.reasoning_summary_part.done", &[("part", &part)], frames, out);
                }
                Kind::Function(_) => {
                    let fields = [("name", &json!(self.call.1)), ("arguments", &text)];
                    self.part_event("response.function_call_arguments.done", &fields, frames, out);
                }
                Kind::Custom(_) => {
                    let input = custom::input(&self.text);
                    frames.delta("response.custom_tool_call_input.delta", (&self.id, self.index), None, &input, out);
                    let input = json!(input);
                    self.part_event("response.custom_tool_call_input.done", &[("input", &input)], frames, out);
                }
            }
        }
        self.keep_part();
    }

    fn keep_part(&mut self) {
        if self.kind.is_message() {
            self.parts.push(self.part());
            self.text.clear();
        }
    }

    /// The part of a message, or of reasoning, as far as it is told.
    fn part(&self) -> Value {
        match self.kind {
            Kind::Refusal => json!({"type": "refusal", "refusal": self.text}),
            Kind::Reasoning => json!({"type": "summary_text", "text": self.text}),
            _ => json!({"type": "output_text", "text": self.text, "annotations": [], "logprobs": []}),
        }
    }

    /// The item, with the parts that are complete.
    fn item(&self, status: &str) -> Value {
        let (id, (call, name)) = (&self.id, &self.call);
        match self.kind {
            Kind::Text | Kind::Refusal => json!({
                "id": id, "type": "message", "status": status, "role": "assistant", "content": self.parts,
            }),
            Kind::Reasoning => {
                let told = if self.text.is_empty() { json!([]) } else { json!([self.part()]) };
                let mut item = json!({"id": id, "type": "reasoning", "summary": told});
                if let Some(sealed) = &self.sealed {
                    item["encrypted_content"] = sealed.as_str().into();
                }
                item
            }
            Kind::Function(_) => json!({
                "id": id, "type": "function_call", "status": status, "call_id": call, "name": name,
                "arguments": self.text,
            }),
            Kind::Custom(_) => json!({
                "id": id, "type": "custom_tool_call", "status": status, "call_id": call, "name": name,
                "input": custom::input(&self.text),
            }),
        }
    }

    /// An event about the item's part.
    fn part_event(&self, kind: &str, fields: &[(&str, &Value)], frames: &mut Frames, out: &mut BytesMut) {
        if !frames.stream() {
            return;
        }
        let (id, index, at) = (json!(self.id), json!(self.index), json!(self.parts.len()));
        let mut all = vec![("item_id", &id), ("output_index", &index)];
        match self.kind {
            Kind::Text | Kind::Refusal => all.push(("content_index", &at)),
            Kind::Reasoning => all.push(("summary_index", &at)),
            Kind::Function(_) | Kind::Custom(_) => {}
        }
        all.extend_from_slice(fields);
        frames.event(kind, &all, out);
    }
}

// === impl Kind ===

impl Kind {
    /// What the ids of such items begin with.
    pub(super) fn prefix(self) -> &'static str {
        match self {
            Self::Text | Self::Refusal => "msg",
            Self::Reasoning => "rs",
            Self::Function(_) => "fc",
            Self::Custom(_) => "ctc",
        }
    }

    /// Whether it is a part of a message.
    pub(super) fn is_message(self) -> bool {
        matches!(self, Self::Text | Self::Refusal)
    }

    /// The call that it is.
    pub(super) fn call(self) -> Option<u32> {
        match self {
            Self::Function(call) | Self::Custom(call) => Some(call),
            Self::Text | Self::Refusal | Self::Reasoning => None,
        }
    }
}
