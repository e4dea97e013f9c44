//! Chat Completions chunks: `data:` lines only, `[DONE]` at the end.

use super::{Frames, Names, Quoted};
use crate::rig::play::{Say, Tokens};
use crate::rig::script::{Finish, Form, Odd, Wrong};
use std::fmt::{Arguments, Display};

/// Writes what is said as chunks.
pub(super) fn say(say: &Say<'_>, names: &Names, include_usage: bool, frames: &mut Frames<'_>) {
    let mut chunks = Chunks { names, include_usage, frames };
    match say {
        Say::Open(_) => {
            if chunks.is(Odd::FilterPreamble) {
                chunks.frames.trailer(None, format_args!("{FILTER_PREAMBLE}"));
            }
            chunks.delta(0, format_args!("\"role\":\"assistant\",\"content\":\"\",\"refusal\":null"));
        }
        // The API does not show it.
        Say::Thinking(_) | Say::ToolClose { .. } => {}
        Say::Reasoning(text) => {
            let field = if chunks.frames.quirks.short_reasoning { "reasoning" } else { "reasoning_content" };
            chunks.delta(0, format_args!("\"{field}\":{}", Quoted(text)));
        }
        Say::Text { choice, text } => chunks.delta(*choice, format_args!("\"content\":{}", Quoted(text))),
        Say::Refusal(text) => chunks.delta(0, format_args!("\"refusal\":{}", Quoted(text))),
        Say::ToolOpen { call, id, name } => chunks.delta(
            0,
            format_args!(
                "\"tool_calls\":[{{{}\"id\":{},\"type\":\"function\",\"function\":{{\"name\":{},\
                 \"arguments\":\"\"}}}}]",
                chunks.index(*call),
                Quoted(id),
                Quoted(name)
            ),
        ),
        Say::ToolArgs { call, args } => chunks.delta(
            0,
            format_args!("\"tool_calls\":[{{{}\"function\":{{\"arguments\":{}}}}}]", chunks.index(*call), Quoted(args)),
        ),
        Say::Finish { choice, reason, .. } => {
            if chunks.is(Odd::UnknownEvent) {
                chunks.frames.trailer(Some("rig_news"), format_args!("{{\"object\":\"rig.news\",\"ids\":[1,2]}}"));
            }
            chunks.choice(*choice, format_args!(""), format_args!("\"{}\"", finish(*reason)), "");
        }
        Say::Usage(tokens) if include_usage => chunks.usage(tokens),
        Say::Usage(_) => {}
        Say::Done => {
            chunks.frames.event(None, format_args!("[DONE]"));
            if chunks.is(Odd::DoneTwice) {
                chunks.frames.trailer(None, format_args!("[DONE]"));
            }
        }
        Say::Error { wrong, form: Form::Object } => {
            chunks.frames.event(None, format_args!("{{\"error\":{}}}", error(*wrong, None)));
        }
        Say::Error { wrong, form: Form::Text } => {
            chunks.frames.event(None, format_args!("{{\"error\":{}}}", Quoted(words(*wrong).message)));
        }
        Say::Error { wrong, form: Form::Finish } => {
            let said = words(*wrong);
            let sibling = format!(
                ",\"error\":{{\"code\":{},\"message\":{},\"metadata\":{{\"error_type\":\"{}\",\"provider_name\":\"rig\"}}}}",
                said.status,
                Quoted(said.message),
                said.aggregated
            );
            chunks.choice(0, format_args!("\"content\":\"\""), format_args!("\"error\""), &sibling);
        }
        Say::Ping => chunks.frames.comment("keep-alive"),
    }
}

struct Chunks<'a, 'b> {
    names: &'a Names,
    include_usage: bool,
    frames: &'a mut Frames<'b>,
}

// === impl Chunks ===

impl Chunks<'_, '_> {
    fn is(&self, odd: Odd) -> bool {
        self.frames.quirks.odd.contains(&odd)
    }

    /// The index of a tool call, as a field.
    fn index(&self, call: u32) -> String {
        if self.is(Odd::NoToolIndex) {
            String::new()
        } else {
            format!("\"index\":{},", if self.is(Odd::ZeroToolIndex) { 0 } else { call })
        }
    }

    fn delta(&mut self, choice: u32, delta: Arguments<'_>) {
        if self.is(Odd::RepeatedRole) {
            let delta = delta.to_string();
            let role = if delta.starts_with("\"role\"") { "" } else { "\"role\":\"assistant\"," };
            return self.choice(choice, format_args!("{role}{delta}"), format_args!("null"), "");
        }
        self.choice(choice, delta, format_args!("null"), "");
    }

    fn choice(&mut self, choice: u32, delta: Arguments<'_>, finish: Arguments<'_>, sibling: &str) {
        let usage = if self.include_usage { ",\"usage\":null" } else { "" };
        self.chunk(
            format_args!("{{\"index\":{choice},\"delta\":{{{delta}}},\"logprobs\":null,\"finish_reason\":{finish}}}"),
            format_args!("{usage}{sibling}"),
        );
    }

    fn usage(&mut self, tokens: &Tokens) {
        self.chunk(format_args!(""), format_args!(",\"usage\":{}", usage(tokens)));
    }

    fn chunk(&mut self, choices: Arguments<'_>, more: Arguments<'_>) {
        let Names { id, model, created } = self.names;
        let changing = self.is(Odd::ChangingId).then(|| format!("{id}-{}", self.frames.number));
        let id = changing.as_ref().unwrap_or(id);
        self.frames.event(
            None,
            format_args!(
                "{{\"id\":{},\"object\":\"chat.completion.chunk\",\"created\":{created},\"model\":{},\
                 \"service_tier\":\"default\",\"system_fingerprint\":\"fp_rig\",\"choices\":[{choices}]{more}}}",
                Quoted(id),
                Quoted(model)
            ),
        );
    }
}

// === helpers ===

/// The API's word for a finish.
pub(super) fn finish(reason: Finish) -> &'static str {
    match reason {
        Finish::Auto | Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::ToolCalls => "tool_calls",
        Finish::ContentFilter => "content_filter",
    }
}

/// The usage object.
pub(super) fn usage(tokens: &Tokens) -> impl Display {
    let Tokens { prompt, completion, reasoning } = tokens;
    format!(
        "{{\"prompt_tokens\":{prompt},\"completion_tokens\":{completion},\"total_tokens\":{},\
         \"prompt_tokens_details\":{{\"cached_tokens\":0,\"audio_tokens\":0}},\
         \"completion_tokens_details\":{{\"reasoning_tokens\":{reasoning},\"audio_tokens\":0,\
         \"accepted_prediction_tokens\":0,\"rejected_prediction_tokens\":0}}}}",
        prompt + completion
    )
}

/// The error object, with `message` instead of the usual words.
pub(super) fn error(wrong: Wrong, message: Option<&str>) -> String {
    let said = words(wrong);
    format!(
        "{{\"message\":{},\"type\":\"{}\",\"param\":null,\"code\":{}}}",
        Quoted(message.unwrap_or(said.message)),
        said.r#type,
        said.code.filter(|_| message.is_none()).map_or_else(|| "null".to_owned(), |code| format!("\"{code}\""))
    )
}

/// As Azure's content filter announces itself.
const FILTER_PREAMBLE: &str = "{\"id\":\"\",\"object\":\"\",\"created\":0,\"model\":\"\",\"choices\":[],\
                               \"prompt_filter_results\":[{\"prompt_index\":0,\"content_filter_results\":{}}]}";

struct Words {
    message: &'static str,
    r#type: &'static str,
    code: Option<&'static str>,
    /// As an aggregator classifies it.
    aggregated: &'static str,
    /// As an aggregator codes it.
    status: u16,
}

fn words(wrong: Wrong) -> Words {
    let words = |message, r#type, code, aggregated, status| Words { message, r#type, code, aggregated, status };
    match wrong {
        Wrong::Overloaded => words(
            "The server is currently overloaded with other requests. Please try again later.",
            "server_error",
            Some("overloaded"),
            "provider_overloaded",
            503,
        ),
        Wrong::Server => words(
            "The server had an error while processing your request. Sorry about that!",
            "server_error",
            None,
            "server",
            502,
        ),
        Wrong::RateLimited => words(
            "Rate limit reached for requests.",
            "requests",
            Some("rate_limit_exceeded"),
            "rate_limit_exceeded",
            429,
        ),
        Wrong::Quota => words(
            "You exceeded your current quota, please check your plan and billing details.",
            "insufficient_quota",
            Some("insufficient_quota"),
            "payment_required",
            402,
        ),
        Wrong::Auth => words(
            "Incorrect API key provided.",
            "invalid_request_error",
            Some("invalid_api_key"),
            "authentication",
            401,
        ),
        Wrong::Invalid => words("The request is invalid.", "invalid_request_error", None, "invalid_request", 400),
        Wrong::TooLong => words(
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
            "invalid_request_error",
            Some("context_length_exceeded"),
            "context_length_exceeded",
            400,
        ),
        Wrong::Filtered => words(
            "The response was filtered due to the prompt triggering a content management policy.",
            "invalid_request_error",
            Some("content_filter"),
            "content_policy_violation",
            403,
        ),
    }
}
