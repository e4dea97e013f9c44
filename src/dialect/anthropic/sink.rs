//! Where an answer is written: as the frames of a stream (`stream`), or into one message (`whole`).

use bytes::BytesMut;
use serde_json::{Map, Value, json};

/// A block that begins.
pub(super) enum Opening<'a> {
    Text,
    Thinking,
    Redacted(&'a str),
    Tool { id: &'a str, name: &'a str, rest: &'a Map<String, Value> },
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

// === helpers ===

/// A block as it begins.
pub(super) fn block(opening: &Opening<'_>) -> Value {
    match opening {
        Opening::Text => json!({"type": "text", "text": ""}),
        Opening::Thinking => json!({"type": "thinking", "thinking": "", "signature": ""}),
        Opening::Redacted(data) => json!({"type": "redacted_thinking", "data": data}),
        Opening::Tool { id, name, rest } => {
            let mut block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
            if let Value::Object(block) = &mut block {
                for (field, value) in *rest {
                    block.entry(field).or_insert_with(|| value.clone());
                }
            }
            block
        }
        Opening::Other(block) => json!(block),
    }
}
