//! A gateway on loopback before scripted providers, and a strict client.

use bytes::Bytes;
use futures::StreamExt;
use http::HeaderMap;
use segue::config::{self, Resolver};
use segue::gateway::Gateway;
use segue::rig::origin::{Origin, Scripts};
use segue::server;
use segue::server::listen::{self, Manners};
use segue::upstream::client::Client;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// A gateway that serves.
pub(crate) struct House {
    pub(crate) gateway: Gateway,
    pub(crate) origins: Vec<Origin>,
    pub(crate) addr: SocketAddr,
    stop: CancellationToken,
}

/// What a client heard, read by the letter of the protocol.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    pub(crate) calls: Vec<(String, String, String)>,
    pub(crate) roles: usize,
    pub(crate) ids: HashSet<String>,
    pub(crate) created: HashSet<u64>,
    pub(crate) models: HashSet<String>,
    pub(crate) finishes: Vec<String>,
    pub(crate) done: usize,
    pub(crate) errors: Vec<Value>,
    pub(crate) usage: Vec<Value>,
    /// The body of an answer that is no stream.
    pub(crate) body: Value,
    /// When each piece of text came.
    pub(crate) at: Vec<tokio::time::Instant>,
}

/// Nothing but what it was given.
pub(crate) struct Nowhere;

impl Resolver for Nowhere {
    fn env(&self, name: &str) -> Option<String> {
        name.starts_with("KEY").then(|| format!("secret-of-{name}"))
    }

    fn file(&self, path: &str) -> Result<String, String> {
        Err(format!("{path} is not there"))
    }
}

impl House {
    /// A gateway whose level `main` is the chain of `providers` (dialect, what it plays), with `settings` besides:
    /// whole TOML tables, and `level` lines for the level.
    pub(crate) async fn of(providers: Vec<(&str, Scripts)>, settings: &str, level: &str) -> Self {
        let mut origins = Vec::new();
        let (mut connections, mut chain) = (String::new(), String::new());
        for (index, (dialect, scripts)) in providers.into_iter().enumerate() {
            let origin = Origin::local(scripts).await.unwrap();
            let name = char::from(b'a' + index as u8);
            let base = origin.base_url();
            write!(
                connections,
                "[connections.{name}]\ndialect = \"{dialect}\"\nbase_url = \"{base}\"\napi_key = {{ env = \"KEY_{name}\" }}\n"
            )
            .unwrap();
            write!(chain, "{{ connection = \"{name}\", model = \"m-{name}\" }}, ").unwrap();
            origins.push(origin);
        }
        let text = format!("{settings}\n{connections}\n[levels.main]\nchain = [{chain}]\n{level}\n");
        Self::with(&text, origins).await
    }

    /// A gateway with this configuration.
    pub(crate) async fn with(text: &str, origins: Vec<Origin>) -> Self {
        let loaded = config::load(text, "test.toml", &Nowhere).unwrap_or_else(|problems| {
            panic!("{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
        });
        Self::before(Gateway::new(loaded.config).unwrap(), origins).await
    }

    /// This gateway, before these providers.
    pub(crate) async fn before(gateway: Gateway, origins: Vec<Origin>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let manners = Manners { client_write: Duration::from_secs(30), drain: Duration::from_secs(5) };
        tokio::spawn(listen::serve(listener, server::routes(gateway.clone()), manners, stop.clone()));
        Self { gateway, origins, addr, stop }
    }

    /// Asks for a chat completion; `more` is laid over the body.
    pub(crate) async fn chat(&self, more: &Value) -> Heard {
        let mut body = json!({"model": "main", "stream": true, "messages": [{"role": "user", "content": "tell me"}]});
        for (key, value) in more.as_object().into_iter().flatten() {
            body[key] = value.clone();
        }
        self.post("/v1/chat/completions", HeaderMap::new(), body.to_string().into()).await
    }

    pub(crate) async fn post(&self, path: &str, headers: HeaderMap, body: Bytes) -> Heard {
        let client = Client::new().unwrap();
        let answer = client.post(&format!("http://{}{path}", self.addr), headers, body).await.unwrap();
        let mut heard = Heard { status: answer.status, headers: answer.headers.clone(), ..Heard::default() };
        let kind = answer.headers.get("content-type").and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned();
        if !kind.starts_with("text/event-stream") {
            let bytes = answer.bytes(1 << 24).await.unwrap();
            heard.body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
            return heard;
        }
        let mut events = answer.events();
        while let Some(event) = events.next().await {
            heard.event(&event.unwrap().data);
        }
        heard
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Heard {
    fn event(&mut self, data: &str) {
        assert_eq!((self.done, self.errors.len()), (0, 0), "something follows the end: {data}");
        if data == "[DONE]" {
            self.done += 1;
            return;
        }
        let chunk: Value = serde_json::from_str(data).unwrap_or_else(|e| panic!("no JSON: {e}: {data}"));
        if let Some(error) = chunk.get("error") {
            self.errors.push(error.clone());
            return;
        }
        self.ids.insert(chunk["id"].as_str().unwrap().to_owned());
        self.created.insert(chunk["created"].as_u64().unwrap());
        self.models.insert(chunk["model"].as_str().unwrap().to_owned());
        if chunk["usage"].is_object() {
            self.usage.push(chunk["usage"].clone());
        }
        for choice in chunk["choices"].as_array().unwrap() {
            self.choice(choice);
        }
    }

    fn choice(&mut self, choice: &Value) {
        let delta = &choice["delta"];
        assert!(self.finishes.is_empty(), "something follows the finish: {choice}");
        self.roles += usize::from(delta["role"].is_string());
        if let Some(text) = delta["content"].as_str().filter(|t| !t.is_empty()) {
            self.text.push_str(text);
            self.at.push(tokio::time::Instant::now());
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            let index = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
            if index == self.calls.len() {
                self.calls.push(Default::default());
            }
            let slot = &mut self.calls[index];
            // As SDKs do: whatever is repeated is joined.
            slot.0.push_str(call["id"].as_str().unwrap_or_default());
            slot.1.push_str(call["function"]["name"].as_str().unwrap_or_default());
            slot.2.push_str(call["function"]["arguments"].as_str().unwrap_or_default());
        }
        if let Some(finish) = choice["finish_reason"].as_str() {
            self.finishes.push(finish.to_owned());
        }
    }

    /// A whole turn: one role, one id, one `created`, one model, one finish, one `[DONE]`, no error.
    pub(crate) fn assert_whole(&self, what: &str) {
        assert_eq!(self.status, 200, "{what}: {}", self.body);
        assert_eq!(self.errors, Vec::<Value>::new(), "{what}");
        let ones = [self.roles, self.ids.len(), self.created.len(), self.models.len(), self.finishes.len(), self.done];
        assert_eq!(ones, [1; 6], "{what}: roles, ids, created, models, finishes, [DONE]: {self:?}");
    }
}
