//! What an error of this API's many providers means.
//!
//! Providers agree on the envelope (`{"error": {message, type, param, code}}`) and on little else: a code is a word, a
//! number or a number in quotes; the type of one is the code of another; a gateway in between wraps it all once more.
//! So every word is looked at, the status last. Errors inside a stream go the same way as those with a status of
//! their own.

use super::quirks;
use crate::dialect::repair::{self, Refused};
use crate::failure::{Failure, Kind, Remedy, RetryAt, Said, Stage};
use crate::retry_after;
use http::HeaderMap;
use serde_json::Value;

/// What was said about an error, before anything is made of it.
#[derive(Debug, Default)]
struct Report {
    /// The HTTP status, or the one that a code names.
    status: Option<u16>,
    said: Said,
    /// All other words that may tell the kind: inner codes, another provider's own body.
    more: String,
}

/// The failure of a response that is not a success, or of a success that is no stream.
pub(super) fn response(status: u16, headers: &HeaderMap, body: &[u8]) -> Failure {
    let text = String::from_utf8_lossy(body);
    let json = serde_json::from_str::<Value>(text.trim()).ok();
    let mut report = json.as_ref().map_or_else(|| Report::of_text(&text), Report::of);
    let is_error = status >= 400 || json.as_ref().is_some_and(is_error);
    if status >= 400 {
        report.status = Some(status);
    }
    if report.said.message.is_empty() {
        report.said.message = format!("HTTP status {status} without a message");
    }
    let no_retry = headers.get("x-should-retry").is_some_and(|v| v.as_bytes().eq_ignore_ascii_case(b"false"));
    let retry_at = retry_after::from_headers(headers).or_else(|| json.as_ref().and_then(retry_after::from_body));
    let mut failure = if is_error {
        report.judge(Stage::Refused, headers.contains_key("retry-after"), retry_at)
    } else {
        // A redirect, which is not followed, or a body of another kind.
        let mut failure = Failure::new(Kind::Framing, Stage::Refused);
        failure.said = report.said;
        failure
    };
    failure.status = Some(status);
    if status < 400 {
        failure.status = report_status(&failure).or(Some(status));
    }
    // The provider forbids to ask again: a time that it gives besides is not to be waited for here.
    if no_retry && failure.status.is_some_and(|s| s >= 500 || s == 429) {
        failure.retry_at = None;
    }
    failure
}

/// The failure that an event inside a stream reports; `data` is JSON, or whatever else came with `event: error`.
pub(super) fn in_band(data: &str) -> Failure {
    let json = serde_json::from_str::<Value>(data).ok();
    let mut report = json.as_ref().map_or_else(|| Report::of_text(data), Report::of);
    if report.said.message.is_empty() {
        report.said.message = "an error event without a message".to_owned();
    }
    let status = report.status;
    let mut failure = report.judge(Stage::Streaming, false, json.as_ref().and_then(retry_after::from_body));
    failure.status = status;
    failure
}

// === impl Report ===

impl Report {
    fn of_text(text: &str) -> Self {
        let text = text.trim();
        let html = text.starts_with('<');
        let title = || {
            let lower = text.to_ascii_lowercase();
            let (from, to) = (lower.find("<title>")? + "<title>".len(), lower.find("</title>")?);
            text.get(from..to).map(|title| format!("an HTML page: {}", title.trim()))
        };
        let message = if html { title().unwrap_or_else(|| "an HTML page".to_owned()) } else { text.to_owned() };
        Self { said: Said { message: Said::clip(message), ..Said::default() }, ..Self::default() }
    }

    fn of(body: &Value) -> Self {
        let body = body.get(0).unwrap_or(body);
        // The error, or the body itself; what an error in words alone does not say stands beside it.
        let error = body.get("error").filter(|e| e.is_object() || e.is_string()).unwrap_or(body);
        let mut report = Self::default();
        let at = |value: &Value, key: &str| match value.get(key) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        };
        let first = |keys: &[&str]| {
            let values = [error, body].into_iter().flat_map(|v| keys.iter().map(move |key| at(v, key)));
            values.into_iter().find(|v| !v.is_empty()).unwrap_or_default()
        };
        let mut said = Said { code: first(&["code", "status_code"]), param: first(&["param"]), ..Said::default() };
        match error {
            Value::String(text) => said.message.clone_from(text),
            _ => said.message = first(&["message", "detail", "error_description", "msg"]),
        }
        let metadata = error.get("metadata").unwrap_or(&Value::Null);
        said.r#type = [first(&["type"]), at(metadata, "error_type"), first(&["status"])]
            .into_iter()
            .find(|word| !word.is_empty() && word != "error" && word.parse::<u16>().is_err())
            .unwrap_or_default();
        // Validation errors of FastAPI: a list of places and messages.
        if let Some(details) = [error, body].iter().find_map(|v| v.get("detail")?.as_array()) {
            let lines = details.iter().take(MAX_DETAILS).map(|detail| {
                let place = detail.get("loc").and_then(Value::as_array).into_iter().flatten();
                let place: Vec<_> = place.map(|p| p.as_str().map_or_else(|| p.to_string(), str::to_owned)).collect();
                if said.param.is_empty() {
                    said.param = place.iter().skip_while(|p| *p == "body").cloned().collect::<Vec<_>>().join(".");
                }
                format!("{}: {}", place.join("."), at(detail, "msg"))
            });
            said.message = lines.collect::<Vec<_>>().join("; ");
        }
        // What a gateway wraps: Azure's inner error, the provider's own body at OpenRouter.
        let inner = error.get("innererror").map(|inner| at(inner, "code")).unwrap_or_default();
        let raw = match metadata.get("raw") {
            Some(Value::String(raw)) => raw.clone(),
            Some(raw) if !raw.is_null() => raw.to_string(),
            _ => String::new(),
        };
        let flagged = if metadata.get("flagged_input").is_some() { "content_policy_violation" } else { "" };
        report.more = format!("{inner} {} {flagged} {raw}", at(metadata, "error_type"));
        if !raw.is_empty() {
            said.message = format!("{}: {raw}", said.message);
        }
        let codes = [&said.code, &at(error, "status"), &at(error, "http_code"), &at(error, "status_code")];
        report.status = codes.iter().find_map(|code| code.parse::<u16>().ok().filter(|c| (400..600).contains(c)));
        report.said = Said {
            r#type: Said::clip(said.r#type),
            code: Said::clip(said.code),
            message: Said::clip(said.message),
            param: Said::clip(said.param),
        };
        report
    }

    fn judge(self, stage: Stage, has_retry_after: bool, retry_at: Option<RetryAt>) -> Failure {
        let (kind, remedy) = self.kind(has_retry_after);
        let mut failure = Failure::new(kind, stage);
        failure.remedy = remedy;
        failure.retry_at = retry_at.filter(|_| may_heal(kind));
        failure.said = self.said;
        failure
    }

    fn kind(&self, has_retry_after: bool) -> (Kind, Option<Remedy>) {
        let words = format!("{} {} {}", self.said.r#type, self.said.code, self.more).to_ascii_lowercase();
        let message = format!("{} {}", self.said.message, self.more).to_ascii_lowercase();
        let word = |list: &[&str]| words.split_ascii_whitespace().any(|w| list.contains(&w));
        let part = |list: &[&str]| list.iter().any(|p| words.contains(p));
        let says = |list: &[&str]| list.iter().any(|p| message.contains(p));
        // 0 where the error names none.
        let status = self.status.unwrap_or(0);
        let refused = matches!(status, 0 | 400..=499) && !matches!(status, 401 | 402 | 429);
        if word(&quirks::NO_CREDIT_CODES) || status == 402 || (status != 429 && says(&quirks::NO_CREDIT)) {
            return (Kind::QuotaExhausted, None);
        }
        if refused && (word(&quirks::POLICY_CODES) || says(&quirks::POLICY)) {
            return (Kind::ContentFiltered, None);
        }
        let limited = status == 429 || part(&quirks::LIMITED);
        if word(&quirks::TOO_LONG_CODES) || status == 413 || (!limited && says(&quirks::TOO_LONG)) {
            return (Kind::ContextTooLong, None);
        }
        let message = format!("{} {}", self.said.message, self.more);
        let refusal = Refused { message: &message, code: &self.said.code, param: &self.said.param };
        let lower = message.to_ascii_lowercase();
        let remedy = match status {
            0 | 400 | 415 | 422 => repair::remedy(&refusal),
            // Where no provider of a router, or no projector of a local server, takes pictures.
            404 => repair::lacks(&lower).map(Remedy::Lacks),
            500 if lower.contains("mmproj") => repair::lacks(&lower).map(Remedy::Lacks),
            _ => None,
        };
        if remedy.is_some() {
            return (Kind::Repairable, remedy);
        }
        let message = lower;
        let kind = match status {
            401 => Kind::Auth,
            403 if has_retry_after => Kind::RateLimited,
            403 => Kind::Auth,
            404 | 410 if message.contains("no endpoints found") => Kind::Unavailable,
            404 | 410 if says(&["model", "deployment", "engine"]) => Kind::Auth,
            408 | 409 | 425 | 499 => Kind::ServerError,
            429 => Kind::RateLimited,
            503 | 529 => Kind::Overloaded,
            500.. if part(&quirks::OVERLOADED) => Kind::Overloaded,
            500.. => Kind::ServerError,
            400..=499 => Kind::BadRequest,
            _ => self.by_words(&words, &message),
        };
        (kind, None)
    }

    /// The kind of an error without a status.
    fn by_words(&self, words: &str, message: &str) -> Kind {
        let part = |list: &[&str]| list.iter().any(|p| words.contains(p));
        if part(&quirks::OVERLOADED) {
            Kind::Overloaded
        } else if part(&quirks::LIMITED) {
            Kind::RateLimited
        } else if part(&["authentication", "invalid_api_key", "permission", "unauthorized", "unauthenticated"]) {
            Kind::Auth
        } else if part(&["invalid_request", "badrequest", "bad_request", "invalid_argument", "validation"]) {
            Kind::BadRequest
        } else if part(&["model_not_found"]) {
            Kind::Auth
        } else if message.contains("rate limit") || message.contains("too many requests") {
            Kind::RateLimited
        } else if message.contains("overloaded") || message.contains("at capacity") {
            Kind::Overloaded
        } else {
            Kind::ServerError
        }
    }
}

// === helpers ===

/// Whether a body with a success status reports an error.
fn is_error(body: &Value) -> bool {
    let body = body.get(0).unwrap_or(body);
    let reported = body.get("error").is_some_and(|e| !matches!(e, Value::Null | Value::Bool(false)) && *e != "");
    let flat = body.get("object").and_then(Value::as_str) == Some("error")
        || body.get("type").and_then(Value::as_str) == Some("error");
    let bare = body.get("choices").is_none() && (body.get("detail").is_some() || body.get("message").is_some());
    reported || flat || bare
}

/// The status that a failure's code names.
fn report_status(failure: &Failure) -> Option<u16> {
    failure.said.code.parse::<u16>().ok().filter(|code| (400..600).contains(code))
}

/// Whether a time to ask again means anything for a failure of this kind.
fn may_heal(kind: Kind) -> bool {
    matches!(kind, Kind::RateLimited | Kind::Overloaded | Kind::ServerError | Kind::QuotaExhausted | Kind::Unavailable)
}

/// How many entries of a validation error are told.
const MAX_DETAILS: usize = 16;
