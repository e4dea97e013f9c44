//! Writes an answer as the frames of a stream.

use super::sink::{Delta, Opening, Sink, block};
use crate::dialect::json;
use bytes::{BufMut, BytesMut};
use serde_json::{Map, Value, json};

/// Frames of a stream.
#[derive(Debug, Default)]
pub(super) struct Stream;

// === impl Stream ===

impl Sink for Stream {
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
        json::string(text, out);
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

// === helpers ===

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
    json::value(data, out);
    out.put_slice(b"\n\n");
}
