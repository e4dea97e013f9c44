//! One try of a client to get an answer, heard from outside through any gateway that speaks Chat Completions.
//!
//! An answer is finished only with a finish reason of the model's and the stream's terminator. Whatever else ends it is
//! told as what it was.

use super::record::End;
use crate::bench::endpoint::{self, Endpoint};
use crate::upstream::client::Broken;
use futures::StreamExt;
use http::{HeaderName, HeaderValue};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Whom to ask, and as whom. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Place {
    endpoint: Endpoint,
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
        Ok(Self { endpoint: Endpoint::new(url, model, key)?, patience })
    }

    /// Asks for an answer to `messages` and hears it to its end; `order`: the connections in the order in which a
    /// gateway of Segue is to ask them.
    pub async fn hear(&self, messages: &[Value], order: &[String]) -> Try {
        let mut heard = Try::default();
        let model = self.endpoint.model();
        let body = json!({"model": model, "messages": messages, "stream": true, "temperature": 0});
        heard.end = match self.read(&body, order, &mut heard).await {
            Ok(end) => end,
            Err(why) => End::Error(why),
        };
        heard.over = Some(now());
        heard
    }

    async fn read(&self, body: &Value, order: &[String], heard: &mut Try) -> Result<End, String> {
        let order = (!order.is_empty()).then(|| HeaderValue::from_str(&order.join(",")).ok()).flatten();
        let order = order.map(|value| (HeaderName::from_static("x-segue-order"), value));
        let silent = || format!("the client gave up after {} s without a word", self.patience.as_secs_f64());
        let asked = tokio::time::timeout(self.patience, self.endpoint.post(body, order));
        let answer = asked.await.map_err(|_| silent())??;
        let served = answer.headers.get("x-segue-served-by").and_then(|value| value.to_str().ok());
        heard.served_by = served.map(|target| target.split('/').next().unwrap_or(target).to_owned());
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
            let chunk = endpoint::chunk(&event.data)?;
            let choice = &chunk["choices"][0];
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

/// The time.
pub(super) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// The most bytes of an answer.
const MOST_TEXT: usize = 1 << 20;
