//! Writes an answer into one message.

use super::history::input;
use super::sink::{Delta, Opening, Sink, block};
use crate::dialect::json;
use bytes::BytesMut;
use serde_json::{Map, Value, json};

/// One message.
#[derive(Debug, Default)]
pub(super) struct Whole {
    message: Map<String, Value>,
    content: Vec<Value>,
    /// JSON text of the open block's input.
    input: String,
}

// === impl Whole ===

impl Sink for Whole {
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
        json::value(&Value::Object(message), out);
    }

    fn fail(&mut self, error: &Value, out: &mut BytesMut) {
        json::value(error, out);
    }

    fn ping(&mut self, _: &mut BytesMut) {}

    fn comment(&mut self, _: &str, _: &mut BytesMut) {}
}

// === helpers ===

fn append(block: &mut Map<String, Value>, field: &str, text: &str) {
    match block.get_mut(field) {
        Some(Value::String(old)) => old.push_str(text),
        _ => {
            block.insert(field.to_owned(), text.into());
        }
    }
}
