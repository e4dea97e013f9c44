//! The client: it asks for a turn as any application would, and writes down what came and when.

use super::acts::Act;
use crate::upstream::client::{Arrival, Client};
use futures::StreamExt;
use http::HeaderMap;
use serde::Deserialize;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::{Duration, Instant, SystemTime};

/// What a client was given of one turn.
#[derive(Debug)]
pub(super) struct Heard {
    /// When it asked.
    pub(super) asked: Instant,
    /// The same on the clock on the wall, by which the gateway dates its own account.
    pub(super) asked_at: SystemTime,
    /// HTTP status; 0: there was no answer.
    pub(super) status: u16,
    /// The gateway's name for the turn.
    pub(super) turn: String,
    /// Pieces of text.
    pub(super) pieces: Vec<(Instant, String)>,
    /// Tool calls by their index.
    pub(super) calls: BTreeMap<u64, HeardCall>,
    /// Ids of the chunks.
    pub(super) ids: BTreeSet<String>,
    /// Names of the model in the chunks.
    pub(super) models: BTreeSet<String>,
    /// Finish reasons.
    pub(super) finishes: Vec<String>,
    /// How often `[DONE]` came.
    pub(super) terminators: usize,
    /// What should not have come: errors, what is no chunk, what came after `[DONE]`.
    pub(super) stray: Vec<String>,
    /// When it was over.
    pub(super) ended: Instant,
}

/// A tool call as it was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HeardCall {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) args: String,
    /// When its first and its last part came.
    pub(super) at: Option<(Instant, Instant)>,
}

/// What happens while a client listens.
#[derive(Clone, Copy, Debug)]
pub(super) enum Beat<'a> {
    /// A piece of text.
    Piece(&'a str),
    /// Nothing, for so long.
    Silence(Duration),
}

/// A chunk of Chat Completions, as far as a client looks at it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Chunk {
    id: String,
    model: String,
    choices: Vec<Choice>,
    error: Option<serde_json::Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Choice {
    delta: Delta,
    finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Delta {
    content: Option<String>,
    tool_calls: Vec<CallDelta>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CallDelta {
    index: u64,
    id: Option<String>,
    function: Function,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Function {
    name: Option<String>,
    arguments: Option<String>,
}

/// Asks for the turn of `act` at `base_url` and listens to its end; `each` is told of every piece as it comes, and of
/// silence as it lasts.
///
/// # Errors
/// Those of `each`.
pub(super) async fn attend(
    client: &Client,
    base_url: &str,
    act: &Act,
    mut each: impl FnMut(Beat<'_>) -> io::Result<()>,
) -> io::Result<Heard> {
    let mut heard = Heard::new();
    let url = format!("{base_url}/chat/completions");
    let request = client.post(&url, HeaderMap::new(), request(act));
    let answer = match tokio::time::timeout(PATIENCE, request).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(broken)) => return Ok(heard.over(Some(broken.to_string()))),
        Err(_) => return Ok(heard.over(Some(format!("no answer within {PATIENCE:?}")))),
    };
    heard.status = answer.status;
    heard.turn = answer.headers.get("x-segue-turn").and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned();
    let mut events = answer.events();
    let deadline = tokio::time::Instant::from_std(heard.asked) + PATIENCE;
    let mut last = now();
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            () = tokio::time::sleep(TICK) => {
                each(Beat::Silence(now().saturating_duration_since(last)))?;
                continue;
            }
            () = tokio::time::sleep_until(deadline) => return Ok(heard.over(Some(format!("no end within {PATIENCE:?}")))),
        };
        last = now();
        match event {
            None => return Ok(heard.over(None)),
            Some(Err(broken)) => return Ok(heard.over(Some(broken.to_string()))),
            Some(Ok(arrival)) => {
                let before = heard.pieces.len();
                heard.take(&arrival);
                for (_, piece) in heard.pieces.iter().skip(before) {
                    each(Beat::Piece(piece))?;
                }
            }
        }
    }
}

// === impl Heard ===

impl Heard {
    /// Of a client that asks now.
    pub(super) fn new() -> Self {
        let asked = now();
        Self {
            asked,
            asked_at: SystemTime::now(),
            status: 0,
            turn: String::new(),
            pieces: Vec::new(),
            calls: BTreeMap::new(),
            ids: BTreeSet::new(),
            models: BTreeSet::new(),
            finishes: Vec::new(),
            terminators: 0,
            stray: Vec::new(),
            ended: asked,
        }
    }

    /// The whole text.
    pub(super) fn text(&self) -> String {
        self.pieces.iter().map(|(_, piece)| piece.as_str()).collect()
    }

    /// Takes one event.
    pub(super) fn take(&mut self, arrival: &Arrival) {
        if self.terminators > 0 {
            self.stray.push(format!("after [DONE]: {}", arrival.data));
        }
        if arrival.data == "[DONE]" {
            self.terminators += 1;
            return;
        }
        let chunk: Chunk = match serde_json::from_str(&arrival.data) {
            Ok(chunk) => chunk,
            Err(_) => return self.stray.push(format!("no chunk: {}", arrival.data)),
        };
        if let Some(error) = chunk.error {
            return self.stray.push(format!("an error: {error}"));
        }
        self.ids.insert(chunk.id);
        self.models.insert(chunk.model);
        for choice in chunk.choices {
            self.pieces.extend(choice.delta.content.filter(|text| !text.is_empty()).map(|text| (arrival.at, text)));
            for delta in choice.delta.tool_calls {
                let call = self.calls.entry(delta.index).or_default();
                call.id.push_str(&delta.id.unwrap_or_default());
                call.name.push_str(&delta.function.name.unwrap_or_default());
                call.args.push_str(&delta.function.arguments.unwrap_or_default());
                call.at = Some((call.at.map_or(arrival.at, |(first, _)| first), arrival.at));
            }
            self.finishes.extend(choice.finish_reason);
        }
    }

    fn over(mut self, broken: Option<String>) -> Self {
        self.ended = now();
        self.stray.extend(broken);
        self
    }
}

// === helpers ===

fn request(act: &Act) -> String {
    let mut body = json!({
        "model": act.name,
        "stream": true,
        "messages": [{"role": "user", "content": act.question}],
    });
    if let Some(call) = &act.call {
        body["tools"] = json!([{"type": "function", "function": {
            "name": call.name,
            "description": "Books a table.",
            "parameters": {
                "type": "object",
                "properties": {
                    "guests": {"type": "integer"},
                    "date": {"type": "string"},
                    "time": {"type": "string"},
                    "wish": {"type": "string"},
                },
                "required": ["guests", "date", "time"],
            },
        }}]);
    }
    body.to_string()
}

fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// How often silence is told of.
const TICK: Duration = Duration::from_millis(100);

/// No turn of the program takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::{Arrival, Heard, now};

    fn arrival(data: &str) -> Arrival {
        Arrival { name: "message".to_owned(), data: data.to_owned(), id: String::new(), at: now() }
    }

    #[test]
    fn chunks_are_taken_apart() {
        let mut heard = Heard::new();
        for data in [
            r#"{"id":"a","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
            r#"{"id":"a","model":"m","choices":[{"index":0,"delta":{"content":"Hel"}}]}"#,
            r#"{"id":"a","model":"m","choices":[{"index":0,"delta":{"content":"lo"}}]}"#,
            r#"{"id":"a","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{"}}]}}]}"#,
            r#"{"id":"a","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}}]}"#,
            r#"{"id":"a","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
            "[DONE]",
        ] {
            heard.take(&arrival(data));
        }
        assert_eq!((heard.text().as_str(), heard.pieces.len(), heard.terminators), ("Hello", 2, 1));
        assert_eq!(heard.calls[&0].args, "{}");
        assert_eq!((heard.ids.len(), heard.finishes.as_slice()), (1, ["tool_calls".to_owned()].as_slice()));
        assert_eq!(heard.stray, Vec::<String>::new());
        heard.take(&arrival(r#"{"error":{"message":"boom"}}"#));
        assert_eq!(heard.stray.len(), 2);
    }
}
