//! A model behind an endpoint of Chat Completions, asked from outside: a gateway that is measured, or a judge.

use crate::upstream::client::{Answer, Client};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use serde_json::Value;

/// Whom to ask, and as whom. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    client: Client,
    url: String,
    model: String,
    headers: HeaderMap,
}

// === impl Endpoint ===

impl Endpoint {
    /// `url` is that of the API, with its version (`http://127.0.0.1:8080/v1`), or without, or the whole endpoint.
    ///
    /// # Errors
    /// If the key cannot stand in a header, or the system lets no client be built.
    pub(super) fn new(url: &str, model: &str, key: Option<&str>) -> Result<Self, String> {
        let mut headers = HeaderMap::new();
        if let Some(key) = key {
            let mut value = HeaderValue::from_str(&format!("Bearer {key}"))
                .map_err(|_| "the key has characters that no header may have".to_owned())?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        let client = Client::new().map_err(|broken| broken.to_string())?;
        Ok(Self { client, url: whole(url), model: model.to_owned(), headers })
    }

    /// Sends this header with each request.
    pub(super) fn add(&mut self, name: HeaderName, value: HeaderValue) {
        self.headers.insert(name, value);
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn model(&self) -> &str {
        &self.model
    }

    /// Posts `body` with this header besides; an answer that is no success is an error in its own words.
    pub(super) async fn post(&self, body: &Value, with: Option<(HeaderName, HeaderValue)>) -> Result<Answer, String> {
        let mut headers = self.headers.clone();
        headers.extend(with.map(|(name, value)| (Some(name), value)));
        let answer = self.client.post(&self.url, headers, body.to_string()).await;
        let answer = answer.map_err(|broken| broken.to_string())?;
        if answer.status != 200 {
            let status = answer.status;
            let said = answer.bytes(MOST_ERROR).await.unwrap_or_default();
            return Err(format!("status {status}: {}", message(&said)));
        }
        Ok(answer)
    }
}

// === helpers ===

/// The endpoint of Chat Completions, whichever part of its URL is given.
fn whole(url: &str) -> String {
    let url = url.trim_end_matches('/');
    match url {
        _ if url.ends_with("/chat/completions") => url.to_owned(),
        _ if url.ends_with("/v1") => format!("{url}/chat/completions"),
        _ => format!("{url}/v1/chat/completions"),
    }
}

/// An event of a stream: a chunk, or an error in its own words.
pub(super) fn chunk(data: &str) -> Result<Value, String> {
    let Ok(chunk) = serde_json::from_str::<Value>(data) else {
        return Err(format!("an event that is no JSON: {}", cut(data)));
    };
    let failed = chunk["choices"][0]["finish_reason"] == "error";
    if failed || chunk.get("error").is_some_and(|error| !error.is_null()) {
        return Err(message(data.as_bytes()));
    }
    Ok(chunk)
}

/// The words of an error body, or its beginning.
fn message(body: &[u8]) -> String {
    let json: Option<Value> = serde_json::from_slice(body).ok();
    let words = json.as_ref().and_then(|json| json["error"]["message"].as_str().or_else(|| json["error"].as_str()));
    words.map_or_else(|| cut(&String::from_utf8_lossy(body)), cut)
}

fn cut(text: &str) -> String {
    text.chars().take(MOST_WORDS).collect()
}

/// The most bytes of an error body that are read.
const MOST_ERROR: usize = 64 * 1024;
/// The most characters of it that are shown.
const MOST_WORDS: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_be_given_in_any_usual_form() {
        for url in ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/", "http://h:1/v1/chat/completions"] {
            assert_eq!(whole(url), "http://h:1/v1/chat/completions", "{url}");
        }
    }

    #[test]
    fn errors_are_told_in_their_own_words() {
        assert_eq!(message(br#"{"error":{"message":"no such model"}}"#), "no such model");
        assert_eq!(message(br#"{"error":"busy"}"#), "busy");
        assert_eq!(message(b"<html>"), "<html>");
        assert_eq!(chunk(r#"{"error":"busy"}"#), Err("busy".to_owned()));
        assert_eq!(chunk("{]"), Err("an event that is no JSON: {]".to_owned()));
        assert!(chunk(r#"{"choices":[{"finish_reason":"error"}]}"#).is_err());
        assert!(chunk(r#"{"choices":[],"error":null}"#).is_ok());
    }
}
