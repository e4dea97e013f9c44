//! Where an answer is written: as the frames of a stream, or into one message.

use super::encoder::quote;
use super::history::input;
use bytes::{BufMut, BytesMut};
use serde_json::{Map, Value, json};

/// A block that begins.
pub(super) enum Opening<'a> {
    Text,
    Thinking,
    Redacted(&'a str),
    Tool { id: &'a str, name: &'a str },
    Other(&'a Map<String, Value>),
}

/// A piece of the open block.
#[derive(Clone, Copy)]
pub(super) enum Delta<'a> {
    Text(&'a str),
    Thinking(&'a str),
    Signature(&'a str),
    Args(&'a str),
    Other(&'a Map<String, Value>),
}

/// Takes what an encoder decides. Calls come in the order of the protocol: `begin`, blocks one after another, `end`.
pub(super) trait Sink: Send {
    /// The head of the message.
    fn begin(&mut self, message: Map<String, Value>, out: &mut BytesMut);
    /// A block begins.
    fn open(&mut self, index: u32, opening: &Opening<'_>, out: &mut BytesMut);
    /// The open block goes on.
    fn delta(&mut self, index: u32, delta: Delta<'_>, out: &mut BytesMut);
    /// The open block goes on with the upstream's own delta of text or thinking; false if it does not fit here.
    fn verbatim(&mut self, index: u32, text: bool, data: &[u8], out: &mut BytesMut) -> bool;
    /// The open block ends.
    fn close(&mut self, index: u32, out: &mut BytesMut);
    /// An event that this version does not know.
    fn event(&mut self, fields: &Map<String, Value>, out: &mut BytesMut);
    /// The end: the last delta, the usage, and fields beside them.
    fn end(
        &mut self,
        delta: Map<String, Value>,
        usage: Map<String, Value>,
        rest: Map<String, Value>,
        out: &mut BytesMut,
    );
    /// The end, with an error.
    fn fail(&mut self, error: &Value, out: &mut BytesMut);
    /// A sign of life.
    fn ping(&mut self, out: &mut BytesMut);
    /// A comment of one line.
    fn comment(&mut self, text: &str, out: &mut BytesMut);
}

/// Frames of a stream.
#[derive(Debug, Default)]
pub(super) struct Frames;

/// One message.
#[derive(Debug, Default)]
pub(super) struct Collected {
    message: Map<String, Value>,
    content: Vec<Value>,
    /// JSON text of the open block's input.
    input: String,
}

// === impl Frames ===

impl Sink for Frames {
    fn begin(&mut self, message: Map<String, Value>, out: &mut BytesMut) {
        frame("message_start", &json!({"type": "message_start", "message": message}), out);
    }

    fn open(&mut self, index: u32, opening: &Opening<'_>, out: &mut BytesMut) {
        let block = block(opening);
        let data = json!({"type": "content_block_start", "index": index, "content_block": block});
        frame("content_block_start", &data, out);
    }

    fn delta(&mut self, index: u32, delta: Delta<'_>, out: &mut BytesMut) {
        let (kind, field, text) = match delta {
            Delta::Text(text) => ("text_delta", "text", text),
            Delta::Thinking(text) => ("thinking_delta", "thinking", text),
            Delta::Signature(text) => ("signature_delta", "signature", text),
            Delta::Args(text) => ("input_json_delta", "partial_json", text),
            Delta::Other(fields) => {
                let data = json!({"type": "content_block_delta", "index": index, "delta": fields});
                return frame("content_block_delta", &data, out);
            }
        };
        out.reserve(text.len() + 160);
        out.put_slice(b"event: content_block_delta\ndata: ");
        head(index, kind, out);
        out.put_slice(b"\"");
        out.put_slice(field.as_bytes());
        out.put_slice(b"\":");
        quote(text, out);
        out.put_slice(b"}}\n\n");
    }

    fn verbatim(&mut self, index: u32, text: bool, data: &[u8], out: &mut BytesMut) -> bool {
        let start = out.len();
        out.reserve(data.len() + 160);
        out.put_slice(b"event: content_block_delta\ndata: ");
        let from = out.len();
        head(index, if text { "text_delta" } else { "thinking_delta" }, out);
        let fits = data.starts_with(&out[from..]);
        out.truncate(if fits { from } else { start });
        if fits {
            out.put_slice(data);
            out.put_slice(b"\n\n");
        }
        fits
    }

    fn close(&mut self, index: u32, out: &mut BytesMut) {
        frame("content_block_stop", &json!({"type": "content_block_stop", "index": index}), out);
    }

    fn event(&mut self, fields: &Map<String, Value>, out: &mut BytesMut) {
        let name = fields.get("type").and_then(Value::as_str).unwrap_or_default();
        if !name.contains(['\n', '\r']) {
            frame(name, &json!(fields), out);
        }
    }

    fn end(
        &mut self,
        delta: Map<String, Value>,
        usage: Map<String, Value>,
        rest: Map<String, Value>,
        out: &mut BytesMut,
    ) {
        let mut data = Map::new();
        data.insert("type".to_owned(), "message_delta".into());
        data.insert("delta".to_owned(), Value::Object(delta));
        data.insert("usage".to_owned(), Value::Object(usage));
        data.extend(rest);
        frame("message_delta", &Value::Object(data), out);
        frame("message_stop", &json!({"type": "message_stop"}), out);
    }

    fn fail(&mut self, error: &Value, out: &mut BytesMut) {
        frame("error", error, out);
    }

    fn ping(&mut self, out: &mut BytesMut) {
        out.put_slice(b"event: ping\ndata: {\"type\":\"ping\"}\n\n");
    }

    fn comment(&mut self, text: &str, out: &mut BytesMut) {
        out.put_slice(b": ");
        out.put_slice(text.as_bytes());
        out.put_slice(b"\n\n");
    }
}

// === impl Collected ===

impl Sink for Collected {
    fn begin(&mut self, message: Map<String, Value>, _: &mut BytesMut) {
        self.message = message;
    }

    fn open(&mut self, _: u32, opening: &Opening<'_>, _: &mut BytesMut) {
        self.input.clear();
        self.content.push(block(opening));
    }

    fn delta(&mut self, _: u32, delta: Delta<'_>, _: &mut BytesMut) {
        let Some(Value::Object(block)) = self.content.last_mut() else { return };
        match delta {
            Delta::Text(text) => append(block, "text", text),
            Delta::Thinking(text) => append(block, "thinking", text),
            Delta::Signature(text) => {
                block.insert("signature".to_owned(), text.into());
            }
            Delta::Args(text) => self.input.push_str(text),
            Delta::Other(fields) => match fields.get("type").and_then(Value::as_str) {
                Some("citations_delta") => {
                    let citations = block.entry("citations").or_insert_with(|| json!([]));
                    if !citations.is_array() {
                        *citations = json!([]);
                    }
                    if let (Value::Array(citations), Some(citation)) = (citations, fields.get("citation")) {
                        citations.push(citation.clone());
                    }
                }
                Some("input_json_delta") => {
                    self.input.push_str(fields.get("partial_json").and_then(Value::as_str).unwrap_or_default());
                }
                _ => {
                    for (field, value) in fields.iter().filter(|(field, _)| *field != "type") {
                        match value {
                            Value::String(text) => append(block, field, text),
                            other => {
                                block.insert(field.clone(), other.clone());
                            }
                        }
                    }
                }
            },
        }
    }

    fn verbatim(&mut self, _: u32, _: bool, _: &[u8], _: &mut BytesMut) -> bool {
        false
    }

    fn close(&mut self, _: u32, _: &mut BytesMut) {
        if let (Some(Value::Object(block)), false) = (self.content.last_mut(), self.input.is_empty()) {
            block.insert("input".to_owned(), input(&self.input));
        }
        self.input.clear();
    }

    fn event(&mut self, _: &Map<String, Value>, _: &mut BytesMut) {}

    fn end(
        &mut self,
        delta: Map<String, Value>,
        usage: Map<String, Value>,
        rest: Map<String, Value>,
        out: &mut BytesMut,
    ) {
        let mut message = std::mem::take(&mut self.message);
        message.insert("content".to_owned(), Value::Array(std::mem::take(&mut self.content)));
        message.extend(delta);
        if let Some(Value::Object(told)) = message.get_mut("usage") {
            told.extend(usage);
        }
        message.extend(rest);
        write(&Value::Object(message), out);
    }

    fn fail(&mut self, error: &Value, out: &mut BytesMut) {
        write(error, out);
    }

    fn ping(&mut self, _: &mut BytesMut) {}

    fn comment(&mut self, _: &str, _: &mut BytesMut) {}
}

// === helpers ===

/// A block as it begins.
fn block(opening: &Opening<'_>) -> Value {
    match opening {
        Opening::Text => json!({"type": "text", "text": ""}),
        Opening::Thinking => json!({"type": "thinking", "thinking": "", "signature": ""}),
        Opening::Redacted(data) => json!({"type": "redacted_thinking", "data": data}),
        Opening::Tool { id, name } => json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
        Opening::Other(block) => json!(block),
    }
}

/// The start of a delta's data, as the API itself writes it.
fn head(index: u32, kind: &str, out: &mut BytesMut) {
    out.put_slice(b"{\"type\":\"content_block_delta\",\"index\":");
    let mut digits = [0_u8; 10];
    let (mut at, mut rest) = (digits.len(), index);
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.put_slice(&digits[at..]);
    out.put_slice(b",\"delta\":{\"type\":\"");
    out.put_slice(kind.as_bytes());
    out.put_slice(b"\",");
}

fn frame(name: &str, data: &Value, out: &mut BytesMut) {
    out.put_slice(b"event: ");
    out.put_slice(name.as_bytes());
    out.put_slice(b"\ndata: ");
    write(data, out);
    out.put_slice(b"\n\n");
}

fn write(value: &Value, out: &mut BytesMut) {
    // Writing to memory cannot fail.
    let _ = serde_json::to_writer((&mut *out).writer(), value);
}

fn append(block: &mut Map<String, Value>, field: &str, text: &str) {
    match block.get_mut(field) {
        Some(Value::String(old)) => old.push_str(text),
        _ => {
            block.insert(field.to_owned(), text.into());
        }
    }
}
