//! What an error of this API means.
//!
//! One table for statuses, error events and errors in the body of a success: the error's type decides, then its
//! wording where the type is too wide, then the status. Types and statuses are of the vendor's page on errors; wordings
//! are those seen in the field, the clouds' included.

use crate::dialect::repair::{self, Refused};
use crate::failure::{Failure, Kind, Remedy, Said, Stage};
use crate::retry_after;
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
    let said = said(body);
    let told = || serde_json::from_slice(body).is_ok_and(|body| is_error(&body));
    let kind = match status {
        // A success or a redirection says what is wrong in its body, or it is no answer of this API.
        0..=399 if told() => kind(None, &said),
        0..=399 => Kind::Framing,
        400.. => kind(Some((status, headers)), &said),
    };
    let (kind, remedy) = repairable(kind, &said);
    let mut failure = Failure::new(kind, Stage::Refused);
    failure.status = Some(status);
    failure.remedy = remedy;
    failure.retry_at = match kind {
        Kind::RateLimited | Kind::Overloaded | Kind::ServerError | Kind::QuotaExhausted => {
            retry_after::from_headers(headers)
        }
        _ => None,
    };
    failure.said = said;
    failure
}

/// An error inside a stream: the data of the event that tells it.
pub(super) fn event(data: &[u8]) -> Failure {
    let said = said(data);
    let (kind, remedy) = repairable(kind(None, &said), &said);
    let mut failure = Failure::new(kind, Stage::Streaming);
    failure.remedy = remedy;
    failure.said = said;
    failure
}

/// Whether an event or a body is an error, whatever else it says.
pub(super) fn is_error(value: &Map<String, Value>) -> bool {
    let told = value.get("error").is_some_and(|e| e.is_string() || e.as_object().is_some_and(|e| !e.is_empty()));
    told || matches!(value.get("type").and_then(Value::as_str), Some("error"))
        || matches!(value.get("object").and_then(Value::as_str), Some("error"))
}

fn kind(http: Option<(u16, &HeaderMap)>, said: &Said) -> Kind {
    let status = http.map_or(0, |(status, _)| status);
    let message = said.message.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|w| message.contains(w));
    let coded = said.code == "context_length_exceeded" || said.r#type == "context_length_exceeded";
    if coded || (status < 500 && says(TOO_LONG)) {
        return Kind::ContextTooLong;
    }
    if said.code == "insufficient_quota" || (status < 500 && says(NO_CREDIT)) {
        return Kind::QuotaExhausted;
    }
    match said.r#type.as_str() {
        "overloaded_error" => return Kind::Overloaded,
        "rate_limit_error" => return Kind::RateLimited,
        "api_error" | "timeout_error" if http.is_none() => return Kind::ServerError,
        "authentication_error" => return Kind::Auth,
        "billing_error" => return Kind::QuotaExhausted,
        "request_too_large" => return Kind::ContextTooLong,
        "permission_error" if !waits(http) => return Kind::Auth,
        "invalid_request_error" if says(FILTERED) => return Kind::ContentFiltered,
        // The client named a level; that the model is not there is the configuration's mistake.
        "not_found_error" if says(&["model"]) => return Kind::Auth,
        "invalid_request_error" | "not_found_error" if status < 500 => return Kind::BadRequest,
        _ => {}
    }
    match status {
        401 => Kind::Auth,
        402 => Kind::QuotaExhausted,
        403 if waits(http) => Kind::RateLimited,
        403 => Kind::Auth,
        408 | 409 | 425 | 499 => Kind::ServerError,
        413 => Kind::ContextTooLong,
        429 => Kind::RateLimited,
        400..=499 if says(FILTERED) => Kind::ContentFiltered,
        400..=499 => Kind::BadRequest,
        503 | 529 => Kind::Overloaded,
        // Also an error event of a type that nobody knows.
        _ => Kind::ServerError,
    }
}

const TOO_LONG: &[&str] = &[
    "prompt is too long",
    "input is too long",
    "request is too long",
    "exceed context limit",
    "exceeds the context window",
    "exceeds the maximum context",
    "maximum context length",
    "context window limit",
    "context length exceeded",
    "too many input tokens",
    "request exceeds the maximum size",
    "exceeds the maximum number of tokens",
    "exceeds the model's maximum",
];
const NO_CREDIT: &[&str] =
    &["credit balance is too low", "reached your specified api usage limits", "exceeded your current quota"];
const FILTERED: &[&str] =
    &["blocked by content filtering", "content filtering policy", "violates our usage policy", "content policy"];
const UNSUPPORTED: &[&str] = &[
    "extra inputs are not permitted",
    "not supported",
    "not support",
    "unsupported",
    "is deprecated",
    "not available",
    "not permitted",
];

/// Makes a refusal of the request's form what it is: one that has a remedy.
fn repairable(kind: Kind, said: &Said) -> (Kind, Option<Remedy>) {
    if kind != Kind::BadRequest {
        return (kind, None);
    }
    match remedy(said) {
        Some(remedy) => (Kind::Repairable, Some(remedy)),
        None => (kind, None),
    }
}

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

/// What the provider said: the API's own form, the flat and string forms of servers that imitate it, or bare text.
fn said(body: &[u8]) -> Said {
    let Ok(value) = serde_json::from_slice::<Value>(body) else {
        let text = String::from_utf8_lossy(&body[..body.len().min(Said::HEARD)]);
        let text = text.trim();
        let message = if text.starts_with('<') { "the provider answered with an HTML page" } else { text };
        return Said { message: Said::clip(message.to_owned()), ..Said::default() };
    };
    let value = value.as_array().and_then(|a| a.first()).unwrap_or(&value);
    let error = match value.get("error") {
        Some(Value::String(text)) => return Said { message: Said::clip(text.clone()), ..Said::default() },
        Some(Value::Object(_)) => &value["error"],
        _ => value,
    };
    let text = |pointer: &str| match error.pointer(pointer) {
        Some(Value::String(text)) => Said::clip(text.clone()),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let or = |first: String, second: &str| if first.is_empty() { text(second) } else { first };
    Said {
        r#type: text("/type"),
        code: or(text("/details/error_code"), "/code"),
        message: or(or(text("/message"), "/Message"), "/detail"),
        param: text("/param"),
    }
}

/// Whether the provider says when to come back.
fn waits(http: Option<(u16, &HeaderMap)>) -> bool {
    http.is_some_and(|(_, headers)| headers.contains_key("retry-after") || headers.contains_key("retry-after-ms"))
}

#[cfg(test)]
#[path = "tests/classify.rs"]
mod tests;
