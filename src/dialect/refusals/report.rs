//! What an error says, in whatever envelope it came.

use super::words::plain;
use crate::failure::{RetryAt, Said};
use crate::retry_after;
use serde_json::{Map, Value};

/// What was said about an error, before anything is made of it.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// The HTTP status; in a body's own words, the one that a code names.
    pub(super) status: Option<u16>,
    pub(super) said: Said,
    /// Codes and types, each in lower case and without anything but letters and digits.
    pub(super) codes: Vec<String>,
    /// The messages, as words are looked for in them.
    pub(super) words: String,
    /// When to ask again, if the body says so.
    pub(super) retry_at: Option<RetryAt>,
    pub(super) shape: Shape,
    /// The body says that it is an error.
    pub(super) error: bool,
}

/// What a body is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Shape {
    /// Nothing.
    #[default]
    Empty,
    /// A page for people.
    Markup,
    /// Words.
    Text,
    /// JSON that says something.
    Json,
}

// === impl Report ===

impl Report {
    pub(super) fn of(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let text = text.trim();
        let json = serde_json::from_str::<Value>(text).ok().filter(|v| v.is_object() || v.is_array() || v.is_string());
        let mut report = Self::default();
        let mut message = String::new();
        match &json {
            Some(json) => {
                report.error = is_error(json);
                report.retry_at = retry_after::from_body(json);
                message = report.read(json, 0);
                let told = !message.is_empty() || !report.codes.is_empty();
                report.shape = if told { Shape::Json } else { Shape::Empty };
            }
            None if text.starts_with('<') => {
                message =
                    title(text).map_or_else(|| "an HTML page".to_owned(), |title| format!("an HTML page: {title}"));
                report.shape = Shape::Markup;
            }
            None if text.is_empty() => {}
            None => {
                text.clone_into(&mut message);
                report.shape = Shape::Text;
            }
        }
        let inner = report.inside(&message);
        report.words = plain(&message);
        if let Some(inner) = inner {
            report.words.push(' ');
            report.words.push_str(&inner);
        }
        report.said.message = Said::clip(message);
        report
    }

    /// Adds a type that came beside the body.
    pub(super) fn note_type(&mut self, kind: &str) {
        self.code(kind);
        if self.said.r#type.is_empty() {
            self.said.r#type = Said::clip(kind.to_owned());
        }
    }

    fn code(&mut self, word: &str) {
        let word: String =
            word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).take(CODE).collect();
        if !word.is_empty() && self.codes.len() < CODES && !self.codes.contains(&word) {
            self.codes.push(word);
        }
    }

    /// Reads an error or what holds one; gives its message.
    fn read(&mut self, value: &Value, depth: usize) -> String {
        if depth > DEPTH {
            return String::new();
        }
        match value {
            Value::String(text) => text.clone(),
            Value::Array(list) => self.list(list, depth),
            Value::Object(object) => self.object(object, depth),
            _ => String::new(),
        }
    }

    /// A provider's list of errors: all of them, one after another.
    fn list(&mut self, list: &[Value], depth: usize) -> String {
        let told: Vec<_> = list.iter().take(ENTRIES).map(|entry| self.read(entry, depth + 1)).collect();
        told.iter().map(String::as_str).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ")
    }

    fn object(&mut self, object: &Map<String, Value>, depth: usize) -> String {
        // The innermost error is named first: it knows most.
        let mut message = String::new();
        for key in ["error", "errors", "detail"] {
            let inner = object.get(key).filter(|v| !v.is_null() && **v != Value::Bool(false));
            if let Some(inner) = inner.filter(|_| message.is_empty()) {
                message = self.read(inner, depth + 1);
            }
        }
        for key in ["code", "error_code", "err_code", "errorCode", "status_code", "http_code"] {
            let word = word(object.get(key));
            if self.said.code.is_empty() {
                self.said.code = Said::clip(word.clone());
            }
            self.status(&word);
            self.code(&word);
        }
        for key in ["type", "error_type", "__type", "status"] {
            let word = word(object.get(key));
            let bare = matches!(&*word, "" | "error") || word.bytes().all(|b| b.is_ascii_digit());
            if self.said.r#type.is_empty() && !bare {
                self.said.r#type = Said::clip(word.clone());
            }
            self.status(&word);
            self.code(&word);
        }
        if self.said.param.is_empty() {
            self.said.param = Said::clip(word(object.get("param")));
        }
        self.inner_codes(object);
        if let Some(Value::Object(base)) = object.get("base_resp") {
            message = self.base_resp(base).unwrap_or(message);
        }
        // Validation errors of FastAPI: a place and a message.
        if let Some(Value::Array(place)) = object.get("loc") {
            let place: Vec<_> = place.iter().map(|p| p.as_str().map_or_else(|| p.to_string(), str::to_owned)).collect();
            if self.said.param.is_empty() {
                let inside: Vec<_> = place.iter().map(String::as_str).skip_while(|p| *p == "body").collect();
                self.said.param = Said::clip(inside.join("."));
            }
            return format!("{}: {}", place.join("."), word(object.get("msg")));
        }
        for key in MESSAGES {
            if !message.is_empty() {
                break;
            }
            message = match object.get(key) {
                Some(Value::String(text)) => text.clone(),
                Some(inner @ (Value::Object(_) | Value::Array(_))) => self.read(inner, depth + 1),
                _ => String::new(),
            };
        }
        self.wrapped(object, message, depth)
    }

    /// Codes in the places where clouds and gateways put their own.
    fn inner_codes(&mut self, object: &Map<String, Value>) {
        for (outer, key) in [("innererror", "code"), ("metadata", "error_type"), ("details", "error_code")] {
            let inner = word(object.get(outer).and_then(|inner| inner.get(key)));
            if self.said.r#type.is_empty() && outer == "metadata" {
                self.said.r#type = Said::clip(inner.clone());
            }
            if self.said.code.is_empty() && outer == "details" {
                self.said.code = Said::clip(inner.clone());
            }
            self.code(&inner);
        }
        if let Some(Value::Array(details)) = object.get("details") {
            for detail in details.iter().take(ENTRIES) {
                self.code(&word(detail.get("reason")));
            }
        }
        if object.get("metadata").is_some_and(|m| m.get("flagged_input").is_some()) {
            self.code("content_policy_violation");
        }
    }

    /// MiniMax says everything with 200 and a number.
    fn base_resp(&mut self, base: &Map<String, Value>) -> Option<String> {
        let number = base.get("status_code").and_then(Value::as_i64).filter(|number| *number != 0)?;
        if self.said.code.is_empty() {
            self.said.code = number.to_string();
        }
        let meaning = BASE_RESP.iter().find(|(known, _)| *known == number);
        self.code(meaning.map_or("", |(_, meaning)| meaning));
        Some(word(base.get("status_msg"))).filter(|text| !text.is_empty())
    }

    /// The provider's own body that a gateway passes on (`metadata.raw`).
    fn wrapped(&mut self, object: &Map<String, Value>, message: String, depth: usize) -> String {
        let raw = object.get("metadata").and_then(|metadata| metadata.get("raw")).filter(|raw| !raw.is_null());
        let Some(raw) = raw else { return message };
        let text = raw.as_str().map_or_else(|| raw.to_string(), str::to_owned);
        match serde_json::from_str::<Value>(&text) {
            Ok(inner) if inner.is_object() => {
                let inner = self.read(&inner, depth + 1);
                format!("{message}: {}", if inner.is_empty() { &text } else { &inner })
            }
            _ => format!("{message}: {text}"),
        }
    }

    /// The first status that a code names.
    fn status(&mut self, word: &str) {
        let named = word.parse::<u16>().ok().filter(|code| (400..600).contains(code));
        self.status = self.status.or(named);
    }

    /// The error that a message holds as JSON, in words: a gateway's message about its provider's answer. What it says
    /// is no more than words, for a message may hold anything.
    fn inside(&self, message: &str) -> Option<String> {
        let from = message.find('{')?;
        let text = message.get(from..)?;
        let parse = |text: &str| serde_json::Deserializer::from_str(text).into_iter::<Value>().next()?.ok();
        // Python writes its own notation.
        let value = parse(text).or_else(|| {
            let text = text.get(..text.floor_char_boundary(Said::MAX)).unwrap_or_default();
            parse(&text.replace('\'', "\"").replace(": None", ": null"))
        })?;
        let mut inner = Self::default();
        let told = inner.read(&value, 0);
        let words = [inner.said.r#type.as_str(), inner.said.code.as_str(), told.as_str()];
        Some(plain(&words.join(" "))).filter(|_| !told.is_empty())
    }
}

// === helpers ===

/// Whether a body with a success status reports an error.
pub(in crate::dialect) fn is_error(body: &Value) -> bool {
    let body = body.get(0).unwrap_or(body);
    let said = |key: &str| {
        let void = |v: &Value| match v {
            Value::Null | Value::Bool(false) => true,
            Value::String(text) => text.is_empty(),
            Value::Array(list) => list.is_empty(),
            Value::Object(object) => object.is_empty(),
            Value::Bool(true) | Value::Number(_) => false,
        };
        body.get(key).is_some_and(|value| !void(value))
    };
    let flat = |key: &str| body.get(key).and_then(Value::as_str) == Some("error");
    let number = body.get("base_resp").and_then(|base| base.get("status_code")).and_then(Value::as_i64);
    let content = said("choices") || said("content");
    let worded = body.get("message").and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    let bare = !content && body.get("choices").is_none_or(Value::is_null) && (said("detail") || worded);
    said("error")
        || (said("errors") && !content)
        || flat("object")
        || flat("type")
        || number.is_some_and(|number| number != 0)
        || (bare && body.get("content").is_none())
}

fn title(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let (from, to) = (lower.find("<title>")? + "<title>".len(), lower.find("</title>")?);
    text.get(from..to).map(|title| title.trim().to_owned())
}

fn word(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

/// Under what names a message stands.
const MESSAGES: [&str; 11] = [
    "message",
    "Message",
    "msg",
    "error_msg",
    "error_message",
    "errorMessage",
    "error_description",
    "status_msg",
    "reason",
    "title",
    "description",
];

/// MiniMax's numbers, as codes that others write.
const BASE_RESP: [(i64, &str); 11] = [
    (1002, "rate_limit_exceeded"),
    (1004, "invalid_api_key"),
    (1008, "insufficient_balance"),
    (1026, "content_filter"),
    (1027, "content_filter"),
    (1039, "rate_limit_exceeded"),
    (1041, "rate_limit_exceeded"),
    (2045, "rate_limit_exceeded"),
    (2049, "invalid_api_key"),
    (2056, "rate_limit_exceeded"),
    (2061, "model_not_available"),
];

/// How many errors of a list are told.
const ENTRIES: usize = 16;
/// How deep an error is looked for.
const DEPTH: usize = 6;
/// The most codes of a refusal.
const CODES: usize = 16;
/// The most characters of a code.
const CODE: usize = 128;
