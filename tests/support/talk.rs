//! A client that leads a conversation, and those who look at what is kept of it.

use super::house::{Heard, House};
use axum::body::Body;
use futures::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use segue::gateway::Gateway;
use segue::rig::origin::Origin;
use segue::rig::script::Script;
use segue::store::Key;
use segue::upstream::client::Client;
use serde_json::{Value, json};
use std::time::Duration;
use tower::ServiceExt;

/// What should be at once is there by then.
pub(crate) const SOON: Duration = Duration::from_secs(5);

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let pair =
        |(name, value): &(&'static str, &str)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
    pairs.iter().map(pair).collect()
}

pub(crate) fn append() -> HeaderMap {
    headers(&[("x-segue-history", "append")])
}

pub(crate) fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

pub(crate) fn body(conversation: &str, text: &str) -> Value {
    json!({"model": "main", "stream": true, "conversation_id": conversation, "messages": [user(text)]})
}

pub(crate) async fn ask(house: &House, conversation: &str, text: &str) -> Heard {
    house.post("/v1/chat/completions", append(), body(conversation, text).to_string().into()).await
}

/// Asks, hears so many events, and hangs up.
pub(crate) async fn ask_and_leave(house: &House, headers: HeaderMap, body: &Value, events: usize) {
    let url = format!("http://{}/v1/chat/completions", house.addr);
    let answer = Client::new().unwrap().post(&url, headers, body.to_string()).await.unwrap();
    assert_eq!(answer.status, 200);
    let heard = answer.events().take(events).collect::<Vec<_>>().await;
    assert_eq!(heard.len(), events);
}

/// The messages of the request number `number` that a provider got.
pub(crate) fn asked(origin: &Origin, number: u64) -> Vec<Value> {
    origin.records().get(number).unwrap().body["messages"].as_array().unwrap().clone()
}

pub(crate) fn roles(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|m| m["role"].as_str().unwrap()).collect()
}

/// `role:state:text` of what is kept.
pub(crate) async fn kept(gateway: &Gateway, tenant: Option<&str>, conversation: &str) -> Vec<String> {
    let view = gateway.conversation(&Key::new(tenant, conversation)).await.unwrap();
    let line = |turn: segue::store::view::TurnView| match turn.state {
        Some(state) => format!("{}:{state}:{}", turn.role, turn.text),
        None => format!("{}:{}", turn.role, turn.text),
    };
    view.map(|view| view.turns.into_iter().map(line).collect()).unwrap_or_default()
}

pub(crate) async fn admin(gateway: &Gateway, method: Method, path: &str) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
    let response = segue::admin::routes(gateway.clone(), None).oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap())
}

pub(crate) fn slow(text: &str) -> Script {
    Script::telling(text).paced(Duration::ZERO, ms(40))
}

pub(crate) fn words(count: usize) -> String {
    (0..count).map(|n| format!("w{n}")).collect::<Vec<_>>().join(" ")
}
