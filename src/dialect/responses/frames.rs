//! The events of a stream, numbered.

use crate::dialect::json;
use bytes::{BufMut, BytesMut};
use serde_json::Value;

/// Writes events; a whole answer has none.
#[derive(Debug)]
pub(super) struct Frames {
    stream: bool,
    next: u64,
}

// === impl Frames ===

impl Frames {
    pub(super) fn new(stream: bool) -> Self {
        Self { stream, next: 0 }
    }

    /// Whether there are events at all.
    pub(super) fn stream(&self) -> bool {
        self.stream
    }

    /// An event of that type: its fields in order.
    pub(super) fn event(&mut self, kind: &str, fields: &[(&str, &Value)], out: &mut BytesMut) {
        self.begin(kind, out);
        for (name, value) in fields {
            out.put_u8(b',');
            json::member(name, value, out);
        }
        end(out);
    }

    /// A piece of an item's text, by far the most frequent event. `part`: the name and number of its part within the item.
    pub(super) fn delta(
        &mut self,
        kind: &str,
        item: (&str, u32),
        part: Option<(&str, usize)>,
        delta: &str,
        out: &mut BytesMut,
    ) {
        if !self.stream {
            return;
        }
        out.reserve(delta.len() + 240);
        self.begin(kind, out);
        out.put_slice(b",\"item_id\":");
        json::string(item.0, out);
        out.put_slice(b",\"output_index\":");
        out.put_slice(item.1.to_string().as_bytes());
        if let Some((name, number)) = part {
            out.put_slice(format!(",\"{name}\":{number}").as_bytes());
        }
        out.put_slice(b",\"delta\":");
        json::string(delta, out);
        if kind == "response.output_text.delta" {
            out.put_slice(b",\"logprobs\":[]");
        }
        end(out);
    }

    fn begin(&mut self, kind: &str, out: &mut BytesMut) {
        out.put_slice(b"event: ");
        out.put_slice(kind.as_bytes());
        out.put_slice(b"\ndata: {\"type\":\"");
        out.put_slice(kind.as_bytes());
        out.put_slice(b"\",\"sequence_number\":");
        out.put_slice(self.next.to_string().as_bytes());
        self.next += 1;
    }
}

// === helpers ===

fn end(out: &mut BytesMut) {
    out.put_slice(b"}\n\n");
}
