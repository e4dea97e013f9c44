//! Errors in the words that OpenAI's APIs share.

use crate::dialect::{Reason, Refusal, Reply};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, header};
use serde_json::{Value, json};

/// A whole error response.
pub(super) fn reply(refusal: &Refusal) -> Reply {
    let mut headers = vec![(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    if let Some(wait) = refusal.retry_after {
        // Whole seconds, never fewer than were asked for, and never "at once".
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        headers.push((header::RETRY_AFTER, HeaderValue::from(seconds.max(1))));
    }
    if !refusal.attempts.is_empty() {
        // What was tried here need not be tried again by the client's library.
        headers.push((HeaderName::from_static("x-should-retry"), HeaderValue::from_static("false")));
    }
    Reply { status: refusal.reason.status(), headers, body: Bytes::from(body(refusal).to_string()) }
}

/// The error object, as it stands in a body and in a stream.
pub(super) fn body(refusal: &Refusal) -> Value {
    let mut error = json!({
        "message": refusal.message,
        "type": refusal.r#type.as_deref().filter(|t| !t.is_empty()).unwrap_or_else(|| kind(refusal.reason)),
        "param": refusal.param,
        "code": refusal.code,
    });
    if let Some(error) = error.as_object_mut().filter(|_| !refusal.attempts.is_empty()) {
        error.insert("attempts".to_owned(), refusal.attempts.clone().into());
    }
    json!({ "error": error })
}

/// A refusal of a request because of one of its fields; `what` goes on after the field's name.
pub(super) fn field(place: &str, what: &str) -> Refusal {
    Refusal::new(Reason::Request, "invalid_request", format!("`{place}` {what}.")).about(place)
}

fn kind(reason: Reason) -> &'static str {
    match reason {
        Reason::Request | Reason::TooLarge => "invalid_request_error",
        Reason::Key => "authentication_error",
        Reason::Forbidden => "permission_error",
        Reason::NotFound => "not_found_error",
        Reason::Busy => "conflict_error",
        Reason::Limited => "rate_limit_error",
        Reason::Unavailable => "overloaded_error",
        Reason::Timeout => "timeout_error",
        Reason::Internal | Reason::Upstream => "server_error",
    }
}
