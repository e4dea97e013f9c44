//! The content blocks of a Messages stream: what is open, and what its pieces say.

use super::{Decoder, extra, malformed};
use crate::bounds::Excess;
use crate::dialect::surrogates::{self, Edges};
use crate::event::{Event, Place, Step};
use crate::failure::{Failure, Kind, Stage};
use serde_json::{Map, Value};

/// A started block.
#[derive(Debug)]
pub(super) struct Open {
    /// Its index upstream.
    index: u64,
    /// What it is.
    block: Block,
}

#[derive(Debug)]
enum Block {
    Text,
    Thinking {
        /// The signature that came with the start, if none follows.
        signature: Option<String>,
    },
    Redacted,
    Tool {
        call: u32,
        /// Arguments were told.
        told: bool,
        /// The arguments that came with the start.
        input: Option<String>,
    },
    /// One without a common form.
    Other,
}

/// Which field a piece belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece {
    /// `text`.
    Text,
    /// `thinking`.
    Thinking,
    /// `partial_json`.
    Args,
}

// === impl Decoder ===

impl Decoder {
    /// Whether the block of that index has no common form.
    pub(super) fn is_other(&self, index: u64) -> bool {
        self.open.iter().any(|o| o.index == index && matches!(o.block, Block::Other))
    }

    /// A block begins; what it already holds is told.
    pub(super) fn block_start(&mut self, index: u64, block: Value, step: &mut Step) -> Result<(), Failure> {
        self.begun = true;
        self.block_stop(index, step);
        if self.open.len() >= OPEN_MAX {
            return Err(malformed("too many open content blocks"));
        }
        let Value::Object(mut block) = block else {
            return Err(malformed("a content_block_start without a content_block"));
        };
        let after_text = std::mem::take(&mut self.after_text);
        let r#type = block.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut take = |field: &str| match block.shift_remove(field) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        let kind = match r#type.as_str() {
            "text" => {
                let text = take("text");
                if after_text {
                    // The boundary between two text blocks matters to citations alone, and to no other dialect.
                    let mut fresh = Map::new();
                    fresh.insert("type".to_owned(), "text".into());
                    fresh.insert("text".to_owned(), "".into());
                    extra(Place::Whole, wrap("content_block", fresh), false, step);
                }
                self.after_text = true;
                self.say(Piece::Text, text, step);
                if let Some(Value::Array(citations)) = block.remove("citations") {
                    for citation in citations {
                        let mut fields = Map::new();
                        fields.insert("type".to_owned(), "citations_delta".into());
                        fields.insert("citation".to_owned(), citation);
                        extra(Place::Delta(0), fields, true, step);
                    }
                }
                Block::Text
            }
            "thinking" => {
                step.events.push(Event::Thinking(true));
                let (text, signature) = (take("thinking"), take("signature"));
                self.say(Piece::Thinking, text, step);
                self.keep(signature.len())?;
                Block::Thinking { signature: Some(signature).filter(|s| !s.is_empty()) }
            }
            "redacted_thinking" => {
                step.events.push(Event::Signature { choice: 0, data: take("data"), redacted: true });
                Block::Redacted
            }
            "tool_use" => {
                let call = self.calls;
                if usize::try_from(call).is_ok_and(|calls| calls >= self.expect.bounds.calls) {
                    let most = self.expect.bounds.calls;
                    let excess = Excess { what: "tool calls", key: "max_calls", field: None, most };
                    return Err(malformed(&format!("the answer makes {excess}")));
                }
                self.calls += 1;
                self.spoke = true;
                // An id that is too long is none, and the client is given one of ours.
                let (id, name) = (Some(take("id")).filter(|id| id.len() <= MAX_ID).unwrap_or_default(), take("name"));
                if name.len() > MAX_NAME {
                    return Err(malformed("the name of a tool call is longer than any function's"));
                }
                let input = block.shift_remove("input");
                block.shift_remove("type");
                block.retain(|_, field| !field.is_null());
                // What a call holds besides (`caller`) is told together with it.
                extra(Place::Call { choice: 0, call }, block, false, step);
                step.events.push(Event::ToolOpen { choice: 0, call, id, name });
                let input = match input {
                    Some(Value::Object(input)) if !input.is_empty() => Some(Value::Object(input).to_string()),
                    Some(Value::String(input)) if !input.is_empty() => Some(input),
                    _ => None,
                };
                self.keep(input.as_ref().map_or(0, String::len))?;
                Block::Tool { call, told: false, input }
            }
            _ => {
                self.spoke = true;
                extra(Place::Whole, wrap("content_block", block), true, step);
                // `server_tool_use`, `mcp_tool_use`; `web_search_tool_result` and its like.
                if r#type.ends_with("_tool_use") {
                    step.events.push(Event::ServerTool(true));
                } else if r#type.ends_with("_tool_result") {
                    step.events.push(Event::ServerTool(false));
                }
                Block::Other
            }
        };
        self.open.push(Open { index, block: kind });
        Ok(())
    }

    /// The general form of a delta.
    pub(super) fn delta(
        &mut self,
        index: u64,
        mut delta: Map<String, Value>,
        edges: Edges,
        step: &mut Step,
    ) -> Result<(), Failure> {
        let other = self.is_other(index);
        let r#type = delta.get("type").and_then(Value::as_str).unwrap_or_default();
        let (piece, field) = match r#type {
            "text_delta" if !other => (Piece::Text, "text"),
            "thinking_delta" if !other => (Piece::Thinking, "thinking"),
            "input_json_delta" if !other => (Piece::Args, "partial_json"),
            "signature_delta" if !other => {
                self.keep(delta.get("signature").and_then(Value::as_str).map_or(0, str::len))?;
                if let Some(open) = self.open.iter_mut().find(|o| o.index == index)
                    && let Block::Thinking { signature } = &mut open.block
                    && let Some(Value::String(data)) = delta.remove("signature")
                {
                    *signature = Some(data);
                }
                return Ok(());
            }
            _ if other => {
                let mut fields = Map::new();
                fields.insert("type".to_owned(), "content_block_delta".into());
                fields.insert("delta".to_owned(), Value::Object(delta));
                extra(Place::Whole, fields, true, step);
                return Ok(());
            }
            _ => {
                let bound = r#type == "citations_delta";
                extra(Place::Delta(0), delta, bound, step);
                return Ok(());
            }
        };
        let text = match delta.remove(field) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        self.piece(index, piece, text, edges, step).map(|_| ())
    }

    /// Counts what has to be kept until its block ends.
    fn keep(&mut self, bytes: usize) -> Result<(), Failure> {
        self.kept = self.kept.saturating_add(bytes);
        if self.kept <= self.expect.max_turn {
            return Ok(());
        }
        let most = self.expect.max_turn;
        let failure = Failure::new(Kind::Framing, Stage::Streaming);
        Err(failure.saying(format!("signatures and arguments of more than limits.max_turn ({most} bytes)")))
    }

    /// Takes a piece of text, thinking or arguments; whether it is told as it came.
    pub(super) fn piece(
        &mut self,
        index: u64,
        piece: Piece,
        text: String,
        edges: Edges,
        step: &mut Step,
    ) -> Result<bool, Failure> {
        self.begun = true;
        let untouched = self.high.is_none() && edges == Edges::default();
        let text = if untouched { text } else { self.mend(index, text, edges) };
        if piece == Piece::Args {
            let tool = self.open.iter_mut().find(|o| o.index == index).map(|o| &mut o.block);
            let Some(Block::Tool { call, told, .. }) = tool else {
                return Err(malformed("arguments outside a tool call"));
            };
            if !text.is_empty() {
                *told = true;
                step.events.push(Event::ToolArgs { choice: 0, call: *call, args: text });
            }
        } else {
            self.say(piece, text, step);
        }
        if step.events.is_empty() {
            step.events.push(Event::Alive);
            return Ok(false);
        }
        Ok(untouched)
    }

    /// Tells a piece, unless it is empty.
    fn say(&mut self, piece: Piece, text: String, step: &mut Step) {
        if text.is_empty() {
            return;
        }
        self.spoke = true;
        step.events.push(match piece {
            Piece::Thinking => Event::Reasoning { choice: 0, text },
            Piece::Text | Piece::Args => Event::Text { choice: 0, text },
        });
    }

    /// Joins the halves of a character that two deltas share.
    fn mend(&mut self, index: u64, text: String, edges: Edges) -> String {
        if text.is_empty() && edges == Edges::default() {
            return text;
        }
        let mut whole = String::with_capacity(text.len() + 4);
        match (self.high.take(), edges.low) {
            (Some((block, high)), Some(low)) if block == index => whole.push(surrogates::pair(high, low)),
            (None, None) => {}
            _ => whole.push(char::REPLACEMENT_CHARACTER),
        }
        whole.push_str(&text);
        self.high = edges.high.map(|high| (index, high));
        whole
    }

    /// A block ends, if it was open: what is owed of it is told.
    pub(super) fn block_stop(&mut self, index: u64, step: &mut Step) {
        let Some(at) = self.open.iter().position(|o| o.index == index) else { return };
        let Open { block, .. } = self.open.remove(at);
        let half = self.high.take_if(|(of, _)| *of == index).map(|_| char::REPLACEMENT_CHARACTER.to_string());
        match block {
            Block::Text => self.say(Piece::Text, half.unwrap_or_default(), step),
            Block::Redacted => {}
            Block::Thinking { signature } => {
                self.say(Piece::Thinking, half.unwrap_or_default(), step);
                if let Some(data) = signature {
                    step.events.push(Event::Signature { choice: 0, data, redacted: false });
                }
                step.events.push(Event::Thinking(false));
            }
            Block::Tool { call, told, input } => {
                let rest = match (told, half) {
                    (_, Some(half)) => Some(half),
                    (true, None) => None,
                    // A call without arguments is an empty object, and never an empty text.
                    (false, None) => Some(input.unwrap_or_else(|| "{}".to_owned())),
                };
                if let Some(args) = rest {
                    step.events.push(Event::ToolArgs { choice: 0, call, args });
                }
                step.events.push(Event::ToolClose { choice: 0, call });
            }
            Block::Other => {
                let mut fields = Map::new();
                fields.insert("type".to_owned(), "content_block_stop".into());
                extra(Place::Whole, fields, true, step);
            }
        }
    }

    /// All blocks end: the message does.
    pub(super) fn close_all(&mut self, step: &mut Step) {
        while let Some(open) = self.open.first() {
            let index = open.index;
            self.block_stop(index, step);
        }
    }
}

// === helpers ===

/// The most blocks that may be open at once; the API opens one.
const OPEN_MAX: usize = 256;

/// The longest id of a call. Some gateways put a model's signature into it, so it is no short one.
const MAX_ID: usize = 64 << 10;

/// The longest name of a function.
const MAX_NAME: usize = 1024;

/// The start of a content block, without its index.
fn wrap(field: &str, block: Map<String, Value>) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("type".to_owned(), format!("{field}_start").into());
    fields.insert(field.to_owned(), Value::Object(block));
    fields
}
