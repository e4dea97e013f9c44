//! From a refusal's words to the form of the request that the target takes instead.
//!
//! Providers refuse the same things in many words, and none of them has a code for most of it. So what is looked for is
//! meaning: a row of [`FORMS`] names the thing and what is said of it, whoever says it. Fields and numbers are read out
//! of the sentence (`fields`, `ceiling`). What is found is a guess about the target and no more: it is tried once, and
//! believed when the target then answers.

use crate::chat::modality::Modality;
use crate::failure::{CallIds, Instructions, Remedy};
use fields::fields;

mod ceiling;
mod fields;

#[cfg(test)]
mod tests;

/// A refusal, as far as it was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refused<'a> {
    /// What it says for people.
    pub(super) message: &'a str,
    /// Its code.
    pub(super) code: &'a str,
    /// The parameter that it names.
    pub(super) param: &'a str,
}

/// A row: something of `any`, something of `and` (if there is anything), nothing of `not`.
struct Row {
    any: &'static [&'static str],
    and: &'static [&'static str],
    not: &'static [&'static str],
    then: Remedy,
}

/// The form that a refusal asks for; `None` where it names none.
pub(super) fn remedy(refused: &Refused<'_>) -> Option<Remedy> {
    let lower = refused.message.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let fits = |row: &&Row| says(row.any) && (row.and.is_empty() || says(row.and)) && !says(row.not);
    if let Some(row) = FORMS.iter().find(fits) {
        return Some(row.then.clone());
    }
    if let Some(remedy) = ceiling::cap(&lower) {
        return Some(remedy);
    }
    if !refused.code.ends_with("_parameter")
        && let Some(modality) = lacks(&lower)
    {
        return Some(Remedy::Lacks(modality));
    }
    fields(refused, &lower)
}

/// The kind of content that a target says it does not take; `lower` is its message in lower case.
pub(super) fn lacks(lower: &str) -> Option<Modality> {
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if !says(&LACKS) || says(&NO_LACK) {
        return None;
    }
    NOUNS.iter().find(|(nouns, _)| says(nouns)).map(|(_, modality)| *modality)
}

// === the tables; all words are lower case ===

const fn row(any: &'static [&'static str], and: &'static [&'static str], then: Remedy) -> Row {
    Row { any, and, not: &[], then }
}

/// Names of calls' ids.
const IDS: &[&str] =
    &["tool call id", "tool_call_id", "tool_use_id", "tool_use.id", "tooluseid", "tool_calls", "call_id", "`tool_use`"];

/// The first that fits holds.
const FORMS: &[Row] = &[
    row(
        &[
            "assistant message prefill",
            "assistant prefill",
            "prefill is not supported",
            "prefilling assistant messages",
            "pre-filling",
            "response prefill is incompatible",
            "must end with a user message",
            "cannot have 2 or more assistant messages at the end",
            "ending with a model turn",
            "incompatible with enable_thinking",
            "cannot end with trailing whitespace",
            "expected last role user or tool",
            "last message must be a user",
            "last message must have role `user`",
            "must be a user message, or an assistant message with prefix",
            "prefix is only available",
            "continue_final_message",
            "add_generation_prompt",
            "prefix is not supported",
            "final message does not appear in the chat",
        ],
        &[],
        Remedy::Instruct,
    ),
    row(
        &[
            "must be passed back",
            "is missing in assistant",
            "missing in the assistant",
            "field is required in assistant",
            "missing `reasoning_content`",
            "missing reasoning_content",
            "missing field `reasoning_content`",
            "`reasoning_content` is missing",
            "reasoning_content is missing",
        ],
        &["reasoning"],
        Remedy::NoThinking,
    ),
    row(&["missing a thought_signature", "missing a `thought_signature`", "missing thought_signature"], &[], {
        Remedy::MarkCalls
    }),
    row(
        &[
            "invalid signature",
            "invalid `signature`",
            "signature in thinking",
            "`signature` in `thinking`",
            "thought signature",
            "thought_signature",
            "signature verification",
            "invalid_encrypted_content",
            "encrypted content could not be",
        ],
        &[],
        Remedy::StripReasoning,
    ),
    row(
        &["redacted_thinking", "thinking block", "`thinking` block", "thinking blocks"],
        &["invalid", "cannot be modified", "expected", "must start with", "prefix"],
        Remedy::StripReasoning,
    ),
    row(&["length of 9"], &["tool call", "tool_call"], Remedy::CallIds(CallIds::Nine)),
    row(&["maximum length 40", "maximum length of 40", "at most 40 char"], IDS, Remedy::CallIds(CallIds::Short)),
    row(
        &[
            "match pattern",
            "must match",
            "regular expression pattern",
            "must be unique",
            "duplicate",
            "invalid characters",
            "string too long",
            "at most 64",
            "less than or equal to 64",
        ],
        IDS,
        Remedy::CallIds(CallIds::Word),
    ),
    row(
        &[
            "developer instruction is not enabled",
            "system role not supported",
            "system role is not supported",
            "system messages are not supported",
            "system message is not supported",
            "does not support 'system'",
            "does not support system",
        ],
        &[],
        Remedy::Instructions(Instructions::User),
    ),
    row(
        &[
            "system message must be at the beginning",
            "system messages must be at the beginning",
            "system message must be first",
        ],
        &[],
        Remedy::Instructions(Instructions::First),
    ),
    row(
        &["only one system message", "multiple system messages", "system messages must come first"],
        &[],
        Remedy::Instructions(Instructions::First),
    ),
    row(&["discriminator property 'role'"], &["invalid value"], Remedy::Instructions(Instructions::System)),
    row(
        &["`developer`", "'developer'", "\"developer\"", "developer role", "role developer", "role: developer"],
        &["unknown variant", "role", "input should be", "not one of", "not supported", "unsupported"],
        Remedy::Instructions(Instructions::System),
    ),
    row(
        &["roles must alternate", "must alternate", "should alternate", "consecutive messages"],
        &[],
        Remedy::Alternate,
    ),
    row(
        &["only allowed for messages with role 'user'", "only allowed in user", "only supported in user"],
        &["image", "media", "content"],
        Remedy::ToolText,
    ),
    row(
        &["tool message", "role 'tool'", "role: tool", "`tool` role", "tool_result"],
        &["must be a string", "only support text", "must be text", "only text", "image"],
        Remedy::ToolText,
    ),
    row(
        &["both be set", "both be specified", "both set", "at the same time", "mutually exclusive", "only one of"],
        &["max_completion_tokens", "max_output_tokens"],
        Remedy::OneLimit,
    ),
    Row {
        any: &[
            "must be a string",
            "should be a string",
            "expected a string",
            "should be a valid string",
            "str type expected",
        ],
        and: &["content"],
        not: &["arguments", "reasoning"],
        then: Remedy::Flat,
    },
];

/// Words for each kind of content.
const NOUNS: [(&[&str], Modality); 4] = [
    (&["input_audio", "audio"], Modality::Audio),
    (&["video"], Modality::Video),
    (&["image", "vision", "multimodal", "mmproj"], Modality::Image),
    (&["`file`", "'file'", "\"file\"", "file input", "input_file", "pdf", "document"], Modality::File),
];

/// What is said of a kind of content that is not taken.
const LACKS: [&str; 15] = [
    "not support",
    "unsupported",
    "unknown variant",
    "only supported by certain",
    "no endpoints found that support",
    "at most 0 ",
    "not a multimodal",
    "not multimodal",
    "text-only",
    "text only",
    "cannot process",
    "can't process",
    "mmproj",
    "not enabled",
    "invalid content type",
];

/// Words of a refusal that is about this one picture and not about pictures.
const NO_LACK: [&str; 13] = [
    "media type",
    "media_type",
    "mime",
    "format",
    "file type",
    "extension",
    "base64",
    "too large",
    "too big",
    "resolution",
    "parameter",
    "argument",
    "download",
];
