//! One turn as its client hears it, measured from outside: any gateway or provider that speaks Chat Completions.

use super::endpoint::{self, Endpoint};
use futures::StreamExt;
use http::{HeaderName, HeaderValue};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Whom to ask, and as whom.
#[derive(Clone, Debug)]
pub struct Place(Endpoint);

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
        Endpoint::new(url, model, key).map(Self)
    }

    /// The same, with a further header in each request.
    ///
    /// # Errors
    /// If it cannot stand in a request.
    pub fn with_header(mut self, name: &'static str, value: &str) -> Result<Self, String> {
        let value = HeaderValue::from_str(value).map_err(|_| format!("{name} cannot have this value"))?;
        self.0.add(HeaderName::from_static(name), value);
        Ok(self)
    }

    /// The endpoint that is asked.
    pub fn url(&self) -> &str {
        self.0.url()
    }

    /// Asks for an answer to `messages` and hears it to its end; `piece` gets each text as it comes. To drop the future
    /// is to hang up.
    pub async fn hear(&self, messages: Value, mut piece: impl FnMut(&str)) -> Heard {
        let start = now();
        let mut heard = Heard::default();
        let body = json!({"model": self.0.model(), "messages": messages, "stream": true});
        if let Err(why) = self.read(start, &body, &mut heard, &mut piece).await {
            heard.error = Some(why);
        }
        heard.lasted = now().saturating_duration_since(start);
        heard
    }

    async fn read(
        &self,
        start: Instant,
        body: &Value,
        heard: &mut Heard,
        piece: &mut impl FnMut(&str),
    ) -> Result<(), String> {
        let mut events = self.0.post(body, None).await?.events();
        let mut last: Option<Instant> = None;
        while let Some(event) = events.next().await {
            let event = event.map_err(|broken| broken.to_string())?;
            if event.data == "[DONE]" {
                break;
            }
            let chunk = endpoint::chunk(&event.data)?;
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

fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// How many words of `text` stand at once before themselves: "the the" has one. What a listener notices of a bad join.
pub fn doubled_words(text: &str) -> usize {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.windows(2).filter(|pair| pair[0] == pair[1]).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubled_words_are_counted() {
        assert_eq!(doubled_words("one two two three"), 1);
        assert_eq!(doubled_words("one two three two"), 0);
        assert_eq!(doubled_words(""), 0);
    }
}
