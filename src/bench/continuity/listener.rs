//! One try of a client to get an answer, heard from outside through any gateway that speaks Chat Completions.
//!
//! An answer is finished only with a finish reason of the model's and the stream's terminator. Whatever else ends it is
//! told as what it was.

use super::record::End;
use crate::upstream::client::{Broken, Client};
use futures::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Whom to ask, and as whom. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Place {
    client: Client,
    url: String,
    model: String,
    headers: HeaderMap,
    /// A try is given up after so long without a word.
    patience: Duration,
}

/// What was heard in one try.
#[derive(Clone, Debug, Default)]
pub struct Try {
    /// The text.
    pub text: String,
    /// When each piece of it came, and where it ends.
    pub pieces: Vec<(Instant, usize)>,
    /// How it ended.
    pub end: End,
    /// When.
    pub over: Option<Instant>,
    /// The connection that the gateway says it was served by, if it says so.
    pub served_by: Option<String>,
    /// A finish reason came, whatever else did not.
    pub finish: bool,
}

// === impl Place ===

impl Place {
    /// `url` is that of the API, with its version (`http://127.0.0.1:8080/v1`) or without.
    ///
    /// # Errors
    /// If the key cannot stand in a header, or the system lets no client be built.
    pub fn new(url: &str, model: &str, key: Option<&str>, patience: Duration) -> Result<Self, String> {
        let mut headers = HeaderMap::new();
        if let Some(key) = key {
            let mut value = HeaderValue::from_str(&format!("Bearer {key}"))
                .map_err(|_| "the key has characters that no header may have".to_owned())?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        let client = Client::new().map_err(|broken| broken.to_string())?;
        let url = url.trim_end_matches('/');
        let version = if url.ends_with("/v1") { "" } else { "/v1" };
        let url = format!("{url}{version}/chat/completions");
        Ok(Self { client, url, model: model.to_owned(), headers, patience })
    }

    /// Asks for an answer to `messages` and hears it to its end; `order`: the connections in the order in which a
    /// gateway of Segue is to ask them.
    pub async fn hear(&self, messages: &[Value], order: &[String]) -> Try {
        let mut heard = Try::default();
        let body = json!({"model": self.model, "messages": messages, "stream": true, "temperature": 0}).to_string();
        heard.end = match self.read(body, order, &mut heard).await {
            Ok(end) => end,
            Err(why) => End::Error(why),
        };
        heard.over = Some(now());
        heard
    }

    async fn read(&self, body: String, order: &[String], heard: &mut Try) -> Result<End, String> {
        let mut headers = self.headers.clone();
        if !order.is_empty()
            && let Ok(value) = HeaderValue::from_str(&order.join(","))
        {
            headers.insert(HeaderName::from_static("x-segue-order"), value);
        }
        let silent = || format!("the client gave up after {} s without a word", self.patience.as_secs_f64());
        let asked = tokio::time::timeout(self.patience, self.client.post(&self.url, headers, body));
        let answer = asked.await.map_err(|_| silent())?.map_err(|broken| broken.to_string())?;
        let served = answer.headers.get("x-segue-served-by").and_then(|value| value.to_str().ok());
        heard.served_by = served.map(|target| target.split('/').next().unwrap_or(target).to_owned());
        if answer.status != 200 {
            let status = answer.status;
            let said = tokio::time::timeout(self.patience, answer.bytes(MOST_ERROR)).await;
            let said = said.ok().and_then(Result::ok).unwrap_or_default();
            return Err(format!("status {status}: {}", message(&said)));
        }
        let mut events = answer.events();
        let mut deadline = now() + self.patience;
        loop {
            let next = tokio::time::timeout_at(deadline.into(), events.next()).await.map_err(|_| silent())?;
            let event = match next {
                None | Some(Err(Broken::Reset(_))) => return Ok(End::Cut),
                Some(event) => event.map_err(|broken| broken.to_string())?,
            };
            if event.data == "[DONE]" {
                return Ok(if heard.finish { End::Finished } else { End::Cut });
            }
            let Ok(chunk) = serde_json::from_str::<Value>(&event.data) else {
                return Err(format!("an event that is no JSON: {}", cut(&event.data)));
            };
            let choice = &chunk["choices"][0];
            if chunk.get("error").is_some_and(|error| !error.is_null()) || choice["finish_reason"] == "error" {
                return Err(message(event.data.as_bytes()));
            }
            if let Some(text) = choice["delta"]["content"].as_str().filter(|text| !text.is_empty()) {
                if heard.text.len() + text.len() > MOST_TEXT {
                    return Err(format!("the answer is over {MOST_TEXT} bytes"));
                }
                heard.text.push_str(text);
                heard.pieces.push((event.at, heard.text.len()));
                deadline = event.at + self.patience;
            }
            heard.finish |= choice["finish_reason"].is_string();
        }
    }
}

// === helpers ===

/// The words of an error body, or its beginning.
fn message(body: &[u8]) -> String {
    let json: Option<Value> = serde_json::from_slice(body).ok();
    let words = json.as_ref().and_then(|json| json["error"]["message"].as_str().or_else(|| json["error"].as_str()));
    words.map_or_else(|| cut(&String::from_utf8_lossy(body)), cut)
}

fn cut(text: &str) -> String {
    text.chars().take(MOST_WORDS).collect()
}

/// The time.
pub(super) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// The most bytes of an error body that are read.
const MOST_ERROR: usize = 64 * 1024;
/// The most characters of it that are kept.
const MOST_WORDS: usize = 300;
/// The most bytes of an answer.
const MOST_TEXT: usize = 1 << 20;
