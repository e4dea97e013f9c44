//! One turn as its client hears it, measured from outside: any gateway or provider that speaks Chat Completions.

use crate::upstream::client::{Broken, Client};
use futures::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Whom to ask, and as whom.
#[derive(Clone, Debug)]
pub struct Place {
    client: Client,
    url: String,
    model: String,
    headers: HeaderMap,
}

/// What was heard of a turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heard {
    /// The text.
    pub text: String,
    /// From the request to the first text.
    pub first: Option<Duration>,
    /// The longest time between two pieces of text, or the last one and the end.
    pub silence: Duration,
    /// From the request to the end.
    pub lasted: Duration,
    /// Why the model stopped; `None` if the turn was not finished.
    pub finish: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
}

// === impl Place ===

impl Place {
    /// `url` is that of the API, with its version (`http://127.0.0.1:8080/v1`), or without, or the whole endpoint.
    ///
    /// # Errors
    /// If the key cannot stand in a header, or the system lets no client be built.
    pub fn new(url: &str, model: &str, key: Option<&str>) -> Result<Self, String> {
        let mut headers = HeaderMap::new();
        if let Some(key) = key {
            let mut value = HeaderValue::from_str(&format!("Bearer {key}"))
                .map_err(|_| "the key has characters that no header may have".to_owned())?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        let client = Client::new().map_err(|broken| broken.to_string())?;
        Ok(Self { client, url: endpoint(url), model: model.to_owned(), headers })
    }

    /// The same, with a further header in each request.
    ///
    /// # Errors
    /// If it cannot stand in a request.
    pub fn with_header(mut self, name: &'static str, value: &str) -> Result<Self, String> {
        let value = HeaderValue::from_str(value).map_err(|_| format!("{name} cannot have this value"))?;
        self.headers.insert(HeaderName::from_static(name), value);
        Ok(self)
    }

    /// The endpoint that is asked.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Asks for an answer to `messages` and hears it to its end; `piece` gets each text as it comes. To drop the future
    /// is to hang up.
    pub async fn hear(&self, messages: Value, mut piece: impl FnMut(&str)) -> Heard {
        let start = now();
        let mut heard = Heard::default();
        let body = json!({"model": self.model, "messages": messages, "stream": true}).to_string();
        if let Err(why) = self.read(start, body, &mut heard, &mut piece).await {
            heard.error = Some(why);
        }
        heard.lasted = now().saturating_duration_since(start);
        heard
    }

    async fn read(
        &self,
        start: Instant,
        body: String,
        heard: &mut Heard,
        piece: &mut impl FnMut(&str),
    ) -> Result<(), String> {
        let words = |broken: Broken| broken.to_string();
        let answer = self.client.post(&self.url, self.headers.clone(), body).await.map_err(words)?;
        if answer.status != 200 {
            let status = answer.status;
            let said = answer.bytes(MOST_ERROR).await.unwrap_or_default();
            return Err(format!("status {status}: {}", message(&said)));
        }
        let mut events = answer.events();
        let mut last: Option<Instant> = None;
        while let Some(event) = events.next().await {
            let event = event.map_err(words)?;
            if event.data == "[DONE]" {
                break;
            }
            let Ok(chunk) = serde_json::from_str::<Value>(&event.data) else {
                return Err(format!("an event that is no JSON: {}", cut(&event.data)));
            };
            if chunk.get("error").is_some_and(|e| !e.is_null()) {
                return Err(message(event.data.as_bytes()));
            }
            let Some(choice) = chunk["choices"].get(0) else { continue };
            if let Some(text) = choice["delta"]["content"].as_str().filter(|text| !text.is_empty()) {
                heard.first.get_or_insert_with(|| event.at.saturating_duration_since(start));
                let since = last.replace(event.at).unwrap_or(event.at);
                heard.silence = heard.silence.max(event.at.saturating_duration_since(since));
                heard.text.push_str(text);
                piece(text);
            }
            if let Some(reason) = choice["finish_reason"].as_str() {
                heard.finish = Some(reason.to_owned());
                let since = last.unwrap_or(event.at);
                heard.silence = heard.silence.max(event.at.saturating_duration_since(since));
            }
        }
        if heard.finish.is_some() { Ok(()) } else { Err("the stream ended without a finish".to_owned()) }
    }
}

// === impl Heard ===

impl Heard {
    /// Whether the turn was finished without an error.
    pub fn is_whole(&self) -> bool {
        self.finish.is_some() && self.error.is_none()
    }
}

// === helpers ===

/// The endpoint of Chat Completions, whichever part of its URL is given.
pub(super) fn endpoint(url: &str) -> String {
    let url = url.trim_end_matches('/');
    match url {
        _ if url.ends_with("/chat/completions") => url.to_owned(),
        _ if url.ends_with("/v1") => format!("{url}/chat/completions"),
        _ => format!("{url}/v1/chat/completions"),
    }
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

fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// How many words of `text` stand at once before themselves: "the the" has one. What a listener notices of a bad join.
pub fn doubled_words(text: &str) -> usize {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.windows(2).filter(|pair| pair[0] == pair[1]).count()
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
            assert_eq!(endpoint(url), "http://h:1/v1/chat/completions", "{url}");
        }
    }

    #[test]
    fn errors_are_told_in_their_own_words() {
        assert_eq!(message(br#"{"error":{"message":"no such model"}}"#), "no such model");
        assert_eq!(message(br#"{"error":"busy"}"#), "busy");
        assert_eq!(message(b"<html>"), "<html>");
    }

    #[test]
    fn doubled_words_are_counted() {
        assert_eq!(doubled_words("one two two three"), 1);
        assert_eq!(doubled_words("one two three two"), 0);
        assert_eq!(doubled_words(""), 0);
    }
}
