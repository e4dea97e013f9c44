//! What is known of single vendors, as data: who continues a prefilled answer and how it is asked for, the words that
//! each uses for the same finish and the same error. Nothing in here is logic; a new vendor is a new row.

use crate::dialect::finishes;
use crate::event::Finish;
use crate::failure::{CallIds, Instructions, Kind};
use crate::turn::form::Form;
use crate::turn::resume::How;

/// The field by which a target is asked to go on with the last assistant message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prefill {
    /// None: a trailing assistant message is continued as it stands.
    Plain,
    /// `"prefix": true` in the message.
    Prefix,
    /// `"prefix": true`, and thinking, which is on by default, must be off.
    PrefixNoThinking,
    /// `"continue_final_message": true` at the top of the body.
    ContinueFinal,
    /// The same with `"add_generation_prompt": false`, without which it is refused.
    ContinueFinalNoPrompt,
}

/// How a prefill is asked for, by the vendor that a target names (its issuer), else by the model's own name.
pub(super) fn prefill(issuer: &str, model: &str) -> Prefill {
    let issuer = issuer.strip_prefix("vendor:").unwrap_or(issuer).to_ascii_lowercase();
    let vendor = VENDORS.iter().find(|(word, _)| issuer.contains(word)).map(|(_, prefill)| *prefill);
    vendor.unwrap_or_else(|| {
        let model = model.to_ascii_lowercase();
        if is_mistral(&model) {
            Prefill::Prefix
        } else if is_deepseek(&model) {
            Prefill::PrefixNoThinking
        } else {
            Prefill::Plain
        }
    })
}

/// How `model` goes on with a turn that another began. Denied by default: a model that silently starts anew instead
/// of continuing would garble the turn, and most new models refuse. What is refused is asked the other way.
pub(super) fn how(model: &str) -> How {
    let model = model.to_ascii_lowercase();
    if is_mistral(&model) || is_deepseek(&model) || is_old_claude(&model) { How::Prefill } else { How::Instruct }
}

/// Whether `model` repeats the prefilled text before it goes on: Mistral's own API does.
pub(super) fn echoes(model: &str) -> bool {
    is_mistral(&model.to_ascii_lowercase())
}

/// Whether `model` of OpenAI's takes only `max_completion_tokens`.
pub(super) fn wants_completion_tokens(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    ["o1", "o3", "o4", "gpt-5", "gpt-6"].iter().any(|family| name.starts_with(family))
}

/// A finish reason in any vendor's words.
///
/// # Errors
/// The kind of failure that the word stands for.
pub(super) fn finish(word: &str) -> Result<Finish, Kind> {
    match word {
        "stop" => return Ok(Finish::Stop),
        "length" => return Ok(Finish::Length),
        "tool_calls" | "function_call" => return Ok(Finish::ToolCalls),
        "content_filter" => return Ok(Finish::ContentFilter),
        _ => {}
    }
    match word.to_ascii_lowercase().as_str() {
        "stop" | "eos" | "eos_token" | "end_turn" | "stop_sequence" | "complete" => Ok(Finish::Stop),
        "length" | "max_tokens" | "model_length" | "max_output_tokens" => Ok(Finish::Length),
        "tool_calls" | "tool_call" | "tool_use" | "function_call" => Ok(Finish::ToolCalls),
        "content_filter" | "content_filtered" | "safety" | "sensitive" | "refusal" | "recitation" | "error_toxic"
        | "prohibited_content" | "blocklist" | "spii" => Ok(Finish::ContentFilter),
        other => finishes::failure(other).map_or_else(|| Ok(Finish::Other(word.to_owned())), Err),
    }
}

/// The form in which a vendor is known to take requests.
pub(super) fn form(issuer: &str, model: &str) -> Form {
    let issuer = issuer.to_ascii_lowercase();
    let mistral = issuer.contains("mistral") || is_mistral(&model.to_ascii_lowercase());
    let mut form = Form::default();
    if mistral {
        form.call_ids = CallIds::Nine;
    }
    if mistral || NO_DEVELOPER.iter().any(|word| issuer.contains(word)) {
        form.instructions = Instructions::System;
    }
    form
}

/// The name under which a vendor takes earlier reasoning back; `None`: as it is written.
pub(super) fn reasoning_name(issuer: &str) -> Option<&'static str> {
    let issuer = issuer.to_ascii_lowercase();
    REASONING_NAMES.iter().find(|(word, _)| issuer.contains(word)).map(|(_, name)| *name)
}

// === helpers ===

/// Models by the names of Mistral's own API. Names with a slash or a colon are other hosts' (vLLM, Ollama), which take
/// other fields and do not echo.
fn is_mistral(model: &str) -> bool {
    const FAMILIES: [&str; 9] = [
        "mistral-",
        "open-mistral-",
        "open-mixtral-",
        "magistral-",
        "codestral-",
        "ministral-",
        "devstral-",
        "pixtral-",
        "voxtral-",
    ];
    !model.contains(['/', ':']) && FAMILIES.iter().any(|family| model.starts_with(family))
}

/// Models by the names of DeepSeek's own API. Its other base URL refuses `prefix` with a 400, and is then asked anew.
fn is_deepseek(model: &str) -> bool {
    const NAMES: [&str; 5] = ["deepseek-chat", "deepseek-reasoner", "deepseek-flash", "deepseek-v3", "deepseek-v4"];
    !model.contains(['/', ':']) && NAMES.iter().any(|name| model.starts_with(name))
}

/// Claude up to 4.5, under the names of OpenRouter and other hosts; from 4.6 on prefills are refused.
fn is_old_claude(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let name = name.split([':', '@']).next().unwrap_or(name).replace('.', "-");
    let Some(rest) = name.strip_prefix("claude-") else { return false };
    if rest.starts_with("3-") || rest.starts_with("2") || rest.starts_with("instant") {
        return true;
    }
    // `opus-4`, `sonnet-4-5`, `opus-4-1-20250805`, `4-5-sonnet`: the family and the version in either order.
    let mut parts =
        rest.split('-').filter(|part| !matches!(*part, "opus" | "sonnet" | "haiku" | "thinking" | "latest"));
    let (major, minor) = (parts.next(), parts.next());
    // A minor version has one digit; anything longer is a date.
    major == Some("4") && minor.is_none_or(|m| m.len() > 2 || matches!(m, "0" | "1" | "5"))
}

/// Words in a target's issuer, and how that vendor is asked; the first that is met holds.
const VENDORS: [(&str, Prefill); 12] = [
    ("openrouter", Prefill::Plain),
    ("mistral", Prefill::Prefix),
    ("deepseek", Prefill::PrefixNoThinking),
    ("vllm", Prefill::ContinueFinalNoPrompt),
    ("sglang", Prefill::ContinueFinal),
    ("llama.cpp", Prefill::Plain),
    ("llamacpp", Prefill::Plain),
    ("ollama", Prefill::Plain),
    ("groq", Prefill::Plain),
    ("anthropic", Prefill::Plain),
    ("together", Prefill::Plain),
    ("fireworks", Prefill::Plain),
];

/// Vendors that do not know the role `developer`, by a word in the issuer.
const NO_DEVELOPER: [&str; 5] = ["deepseek", "moonshot", "zhipu", "qwen", "dashscope"];

/// Vendors, by a word in the issuer, and their name for reasoning.
const REASONING_NAMES: [(&str, &str); 5] = [
    ("cerebras", "reasoning"),
    ("groq", "reasoning"),
    ("openrouter", "reasoning"),
    ("deepseek", "reasoning_content"),
    ("moonshot", "reasoning_content"),
];

/// Event names that are signs of life.
pub(super) const PINGS: [&str; 4] = ["ping", "keepalive", "keep-alive", "heartbeat"];

/// Fields of a delta or of a chunk that hold content which only its issuer can go on from.
pub(super) const BOUND: [&str; 6] = ["annotations", "citations", "images", "audio", "search_results", "executed_tools"];

/// Fields of a message that carry earlier reasoning.
pub(super) const REASONING: [&str; 3] = ["reasoning", "reasoning_content", "reasoning_details"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefill_is_denied_by_default() {
        for model in [
            "mistral-large-latest",
            "codestral-2508",
            "magistral-medium-latest",
            "deepseek-chat",
            "deepseek-v4-pro",
            "anthropic/claude-3.5-sonnet",
            "anthropic/claude-sonnet-4",
            "anthropic/claude-sonnet-4.5",
            "claude-opus-4-1",
            "claude-opus-4-1-20250805",
            "claude-sonnet-4-20250514",
            "claude-3-5-haiku-20241022",
            "claude-haiku-4-5",
            "anthropic/claude-opus-4.5:thinking",
        ] {
            assert_eq!(how(model), How::Prefill, "{model}");
        }
        for model in [
            "gpt-4.1",
            "gpt-5",
            "o3",
            "",
            "claude-sonnet-4-6",
            "anthropic/claude-opus-4.7",
            "claude-opus-5",
            "claude-sonnet-5-5",
            "claude-haiku-5-5-20261001",
            "claude-4-6-sonnet",
            "claude-fable-5",
            "deepseek-r1:7b",
            "deepseek-ai/DeepSeek-V3",
            "mistral:7b",
            "mistralai/Mistral-7B-Instruct-v0.3",
            "llama-3.3-70b-versatile",
            "gemini-2.5-pro",
            "m-b",
        ] {
            assert_eq!(how(model), How::Instruct, "{model}");
        }
        assert!(echoes("mistral-large-latest") && !echoes("mistral:7b") && !echoes("gpt-4.1"));
    }

    #[test]
    fn each_vendor_has_its_field() {
        for (issuer, model, expected) in [
            ("vendor:mistral", "m", Prefill::Prefix),
            ("deepseek", "m", Prefill::PrefixNoThinking),
            ("my-vllm", "mistral-large", Prefill::ContinueFinalNoPrompt),
            ("SGLang", "m", Prefill::ContinueFinal),
            ("openrouter", "deepseek-chat", Prefill::Plain),
            ("a", "codestral-latest", Prefill::Prefix),
            ("a", "m-a", Prefill::Plain),
        ] {
            assert_eq!(prefill(issuer, model), expected, "{issuer} {model}");
        }
    }

    #[test]
    fn finish_words() {
        assert_eq!(finish("eos_token"), Ok(Finish::Stop));
        assert_eq!(finish("MAX_TOKENS"), Ok(Finish::Length));
        assert_eq!(finish("function_call"), Ok(Finish::ToolCalls));
        assert_eq!(finish("ERROR"), Err(Kind::ServerError));
        assert_eq!(finish("network_error"), Err(Kind::ServerError));
        assert_eq!(finish("insufficient_system_resource"), Err(Kind::Overloaded));
        assert_eq!(finish("function_call_filter: MALFORMED_FUNCTION_CALL"), Err(Kind::Malformed));
        assert_eq!(finish("novel"), Ok(Finish::Other("novel".to_owned())));
    }
}
