//! Words an error as this API does.

use crate::dialect::{Reason, Refusal, Reply};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value, json};

/// The API's own error types. A provider's type that is one of them goes to the client as it is.
const TYPES: [&str; 11] = [
    "invalid_request_error",
    "authentication_error",
    "billing_error",
    "permission_error",
    "not_found_error",
    "conflict_error",
    "request_too_large",
    "rate_limit_error",
    "api_error",
    "timeout_error",
    "overloaded_error",
];

/// A whole response.
pub(super) fn reply(refusal: &Refusal) -> Reply {
    let mut headers = vec![(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    if let Some(wait) = refusal.retry_after {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        headers.push((RETRY_AFTER, HeaderValue::from(seconds.max(1))));
    }
    if !refusal.attempts.is_empty() {
        // What the gateway tried again, the SDKs need not.
        headers.push((HeaderName::from_static("x-should-retry"), HeaderValue::from_static("false")));
    }
    Reply { status: refusal.reason.status(), headers, body: Bytes::from(body(refusal).to_string()) }
}

/// The body, which is also the data of an error event.
pub(super) fn body(refusal: &Refusal) -> Value {
    let own = refusal.r#type.as_deref().filter(|t| TYPES.contains(t));
    let mut details = Map::new();
    if !refusal.code.is_empty() {
        details.insert("error_code".to_owned(), refusal.code.as_str().into());
    }
    if let Some(param) = &refusal.param {
        details.insert("param".to_owned(), param.as_str().into());
    }
    if !refusal.attempts.is_empty() {
        details.insert("attempts".to_owned(), json!(refusal.attempts));
    }
    let mut error = Map::new();
    error.insert("type".to_owned(), own.unwrap_or_else(|| kind(refusal.reason)).into());
    error.insert("message".to_owned(), refusal.message.as_str().into());
    if !details.is_empty() {
        error.insert("details".to_owned(), Value::Object(details));
    }
    json!({"type": "error", "error": error})
}

fn kind(reason: Reason) -> &'static str {
    match reason {
        Reason::Request => "invalid_request_error",
        Reason::Key => "authentication_error",
        Reason::Forbidden => "permission_error",
        Reason::NotFound => "not_found_error",
        Reason::Busy => "conflict_error",
        Reason::TooLarge => "request_too_large",
        Reason::Limited => "rate_limit_error",
        Reason::Internal | Reason::Upstream => "api_error",
        Reason::Unavailable => "overloaded_error",
        Reason::Timeout => "timeout_error",
    }
}

#[cfg(test)]
#[path = "tests/refuse.rs"]
mod tests;
