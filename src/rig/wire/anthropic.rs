//! Anthropic Messages events: each has a name, blocks open and close, no `[DONE]`.

use super::{Frames, Names, Quoted};
use crate::rig::play::{Say, Tokens};
use crate::rig::script::{Finish, Wrong};
use std::fmt::{Arguments, Display};

/// The content blocks of one message: one open at a time, ascending indexes.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    next: u32,
    open: Option<Block>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Text,
    Thinking,
    Tool(u32),
}

// === impl Blocks ===

impl Blocks {
    /// Writes what is said as events.
    pub(super) fn say(&mut self, say: &Say<'_>, names: &Names, frames: &mut Frames<'_>) {
        match say {
            Say::Open(tokens) => {
                let usage = tokens.as_ref().map(|t| format!(",\"usage\":{}", usage(t, 1))).unwrap_or_default();
                frames.event(
                    Some("message_start"),
                    format_args!(
                        "{{\"type\":\"message_start\",\"message\":{{\"id\":{},\"type\":\"message\",\"role\":\"assistant\",\
                         \"model\":{},\"content\":[],\"stop_reason\":null,\"stop_sequence\":null{usage}}}}}",
                        Quoted(&names.id),
                        Quoted(&names.model)
                    ),
                );
                frames.event(Some("ping"), format_args!("{{\"type\":\"ping\"}}"));
            }
            Say::Thinking(true) => self.ensure(Block::Thinking, frames),
            Say::Thinking(false) => self.close(frames),
            Say::Reasoning(text) => {
                self.ensure(Block::Thinking, frames);
                self.delta(frames, format_args!("\"type\":\"thinking_delta\",\"thinking\":{}", Quoted(text)));
            }
            Say::Text { text, .. } | Say::Refusal(text) => {
                self.ensure(Block::Text, frames);
                self.delta(frames, format_args!("\"type\":\"text_delta\",\"text\":{}", Quoted(text)));
            }
            Say::ToolOpen { call, id, name } => {
                self.close(frames);
                self.start(
                    Block::Tool(*call),
                    frames,
                    format_args!(
                        "\"type\":\"tool_use\",\"id\":{},\"name\":{},\"input\":{{}}",
                        Quoted(id),
                        Quoted(name)
                    ),
                );
                let index = self.next;
                frames.trailer(
                    Some("content_block_delta"),
                    format_args!(
                        "{{\"type\":\"content_block_delta\",\"index\":{index},\
                         \"delta\":{{\"type\":\"input_json_delta\",\"partial_json\":\"\"}}}}"
                    ),
                );
            }
            Say::ToolArgs { args, .. } => {
                self.delta(frames, format_args!("\"type\":\"input_json_delta\",\"partial_json\":{}", Quoted(args)));
            }
            Say::ToolClose { .. } => self.close(frames),
            // One message has one answer.
            Say::Finish { choice: 1.., .. } | Say::Usage(_) => {}
            Say::Finish { reason, tokens, .. } => {
                self.close(frames);
                let usage = tokens.as_ref().map(|t| format!(",\"usage\":{}", usage(t, t.completion)));
                frames.event(
                    Some("message_delta"),
                    format_args!(
                        "{{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"{}\",\"stop_sequence\":null}}{}}}",
                        finish(*reason),
                        usage.unwrap_or_default()
                    ),
                );
            }
            Say::Done => {
                self.close(frames);
                frames.event(Some("message_stop"), format_args!("{{\"type\":\"message_stop\"}}"));
            }
            Say::Error { wrong, .. } => frames.event(Some("error"), format_args!("{}", error(*wrong, None))),
            Say::Ping => frames.event(Some("ping"), format_args!("{{\"type\":\"ping\"}}")),
        }
    }

    fn ensure(&mut self, block: Block, frames: &mut Frames<'_>) {
        if self.open == Some(block) {
            return;
        }
        self.close(frames);
        match block {
            Block::Text => self.start(block, frames, format_args!("\"type\":\"text\",\"text\":\"\"")),
            Block::Thinking => {
                self.start(block, frames, format_args!("\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\""));
            }
            // A tool block starts with its id and name, at `ToolOpen`.
            Block::Tool(_) => {}
        }
    }

    fn start(&mut self, block: Block, frames: &mut Frames<'_>, content: Arguments<'_>) {
        let index = self.next;
        self.open = Some(block);
        frames.event(
            Some("content_block_start"),
            format_args!("{{\"type\":\"content_block_start\",\"index\":{index},\"content_block\":{{{content}}}}}"),
        );
    }

    fn delta(&mut self, frames: &mut Frames<'_>, delta: Arguments<'_>) {
        let index = self.next;
        frames.event(
            Some("content_block_delta"),
            format_args!("{{\"type\":\"content_block_delta\",\"index\":{index},\"delta\":{{{delta}}}}}"),
        );
    }

    fn close(&mut self, frames: &mut Frames<'_>) {
        let Some(block) = self.open.take() else { return };
        if block == Block::Thinking {
            self.delta(frames, format_args!("\"type\":\"signature_delta\",\"signature\":\"{SIGNATURE}\""));
        }
        let index = self.next;
        frames.event(Some("content_block_stop"), format_args!("{{\"type\":\"content_block_stop\",\"index\":{index}}}"));
        self.next += 1;
    }
}

// === helpers ===

/// The API's word for a finish.
pub(super) fn finish(reason: Finish) -> &'static str {
    match reason {
        Finish::Auto | Finish::Stop => "end_turn",
        Finish::Length => "max_tokens",
        Finish::ToolCalls => "tool_use",
        Finish::ContentFilter => "refusal",
    }
}

/// The usage object with `output` tokens so far.
pub(super) fn usage(tokens: &Tokens, output: u64) -> impl Display + use<> {
    format!(
        "{{\"input_tokens\":{},\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":0,\
         \"output_tokens\":{output},\"service_tier\":\"standard\"}}",
        tokens.prompt
    )
}

/// The error body, which is also the error event's data, with `message` instead of the usual words.
pub(super) fn error(wrong: Wrong, message: Option<&str>) -> String {
    let (r#type, usual) = match wrong {
        Wrong::Overloaded => ("overloaded_error", "Overloaded"),
        Wrong::Server => ("api_error", "Internal server error"),
        Wrong::RateLimited => ("rate_limit_error", "This request would exceed your organization's rate limit."),
        Wrong::Quota => ("billing_error", "Your credit balance is too low to access the Anthropic API."),
        Wrong::Auth => ("authentication_error", "invalid x-api-key"),
        Wrong::Invalid => ("invalid_request_error", "The request is invalid."),
        Wrong::TooLong => ("invalid_request_error", "prompt is too long: 215000 tokens > 200000 maximum"),
        Wrong::Filtered => ("invalid_request_error", "Output blocked by content filtering policy"),
    };
    format!(
        "{{\"type\":\"error\",\"error\":{{\"type\":\"{type}\",\"message\":{}}},\"request_id\":\"req_rig\"}}",
        Quoted(message.unwrap_or(usual))
    )
}

/// A thinking block's signature; only its issuer can read one, and this issuer does not care.
pub(super) const SIGNATURE: &str = "cmlnLXNpZ25hdHVyZQ==";
