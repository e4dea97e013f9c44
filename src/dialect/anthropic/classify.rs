//! What an error of this API means: the common table, and the way out that a refusal names.

use crate::dialect::refusals;
use crate::dialect::repair::{self, Refused};
use crate::failure::{Failure, Remedy, Said};
use http::HeaderMap;
use serde_json::{Map, Value};

/// Request fields without which the request still means the same, so that a target that lacks one may do without, by
/// the word that names them in a message.
const OPTIONAL: [(&str, &str); 17] = [
    ("temperature", "temperature"),
    ("top_p", "top_p"),
    ("top_k", "top_k"),
    ("thinking", "thinking"),
    ("effort", "output_config.effort"),
    ("output_config.effort", "output_config.effort"),
    ("output_config.format", "output_config.format"),
    ("output_config", "output_config"),
    ("tool_choice", "tool_choice"),
    ("stop_sequences", "stop_sequences"),
    ("metadata", "metadata"),
    ("service_tier", "service_tier"),
    ("container", "container"),
    ("context_management", "context_management"),
    ("speed", "speed"),
    ("inference_geo", "inference_geo"),
    ("cache_control", "cache_control"),
];

/// A status that is no success, or the body of a success that is an error.
pub(super) fn response(status: u16, headers: &HeaderMap, body: &[u8]) -> Failure {
    refusals::response(status, headers, body, remedy)
}

/// An error inside a stream: the data of the event that tells it.
pub(super) fn event(data: &[u8]) -> Failure {
    refusals::in_band(data, remedy)
}

/// Whether an event or a body is an error, whatever else it says.
pub(super) fn is_error(value: &Map<String, Value>) -> bool {
    let told = value.get("error").is_some_and(|e| e.is_string() || e.as_object().is_some_and(|e| !e.is_empty()));
    told || matches!(value.get("type").and_then(Value::as_str), Some("error"))
        || matches!(value.get("object").and_then(Value::as_str), Some("error"))
}

const UNSUPPORTED: &[&str] = &[
    "extra inputs are not permitted",
    "not supported",
    "not support",
    "unsupported",
    "is deprecated",
    "not available",
    "not permitted",
];

fn remedy(said: &Said) -> Option<Remedy> {
    let message = said.message.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|w| message.contains(w));
    let drop = |field: &str| Remedy::Drop { fields: vec![field.to_owned()], lasting: true };
    if says(&["cannot both be specified"]) {
        return Some(drop("top_p"));
    }
    // A block of thinking without its signature, or one that is missed where a call begins.
    if says(&["signature", "redacted_thinking"]) && says(&["field required", "expected"]) {
        return Some(Remedy::StripReasoning);
    }
    let named = if said.param.is_empty() { field(&message) } else { field(&said.param.to_ascii_lowercase()) };
    if let Some(field) = named.filter(|_| says(UNSUPPORTED)) {
        return Some(drop(field));
    }
    // This API has no such forms.
    let foreign = |remedy: &Remedy| matches!(remedy, Remedy::Alternate | Remedy::Flat | Remedy::ToolText);
    let refused = Refused { message: &said.message, code: &said.code, param: &said.param };
    repair::remedy(&refused).filter(|remedy| !foreign(remedy))
}

/// The optional field that a message is about: the one that it names first, in quotes or before a colon.
fn field(message: &str) -> Option<&'static str> {
    // A path into the messages or tools is no top-level field, whatever its last name is.
    if message.starts_with("messages.") || message.starts_with("tools.") || message.starts_with("system.") {
        return None;
    }
    OPTIONAL
        .iter()
        .filter_map(|(word, field)| message.find(word).map(|at| (at, std::cmp::Reverse(word.len()), *field)))
        .min()
        .map(|(_, _, field)| field)
}

#[cfg(test)]
#[path = "tests/classify.rs"]
mod tests;
