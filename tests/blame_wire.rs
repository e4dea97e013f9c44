//! Providers that repeat in their refusals what they were asked: whatever one tenant writes, nobody else's circuits and
//! turns change. Over loopback sockets.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

mod support;

use http::HeaderMap;
use segue::health::breaker::State;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use support::house::House;
use support::raw::{Conn, RawServer};

/// Words by which providers tell that they are to be left alone, for a while or until somebody acts.
const WORDS: [&str; 12] = [
    "insufficient balance",
    "your credit balance is too low",
    "you exceeded your current quota",
    "billing hard limit has been reached",
    "invalid api key",
    "api key expired",
    "account suspended",
    "the model does not exist",
    "model is overloaded",
    "rate limit reached, please try again in 59s",
    "region is not supported",
    "assistant message prefill is not supported",
];

async fn answer(conn: &mut Conn) {
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let chunk =
            json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]});
        format!("data: {chunk}\n\n")
    };
    conn.events().await;
    conn.chunk(chunk(json!({"content": "fine"}), Value::Null)).await;
    conn.chunk(chunk(json!({}), json!("stop")) + "data: [DONE]\n\n").await;
    conn.end().await;
}

/// A provider that refuses a field it does not know, in its name, and answers everything else.
async fn echoing() -> RawServer {
    RawServer::start(|mut conn| async move {
        while let Some(request) = conn.request().await {
            let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            let known = ["model", "messages", "stream", "stream_options", "max_tokens", "temperature"];
            let unknown = body.as_object().into_iter().flatten().find(|(name, _)| !known.contains(&name.as_str()));
            match unknown {
                Some((name, _)) => {
                    let message = format!("Unrecognized request argument supplied: {name}");
                    let error = json!({"error": {"message": message, "type": "invalid_request_error"}});
                    conn.whole("400 Bad Request", "application/json", &error.to_string()).await;
                }
                None => answer(&mut conn).await,
            }
        }
    })
    .await
}

/// A key that a tenant is known by.
fn hash(key: &str) -> String {
    Sha256::digest(key.as_bytes()).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

async fn ask(house: &House, key: &str, more: &Value) -> (u16, Option<String>) {
    let mut body = json!({"model": "main", "stream": true, "messages": [{"role": "user", "content": "tell me"}]});
    for (name, value) in more.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    let headers = HeaderMap::from_iter([(http::header::AUTHORIZATION, format!("Bearer {key}").parse().unwrap())]);
    let heard = house.post("/v1/chat/completions", headers, body.to_string().into()).await;
    let by = heard.headers.get("x-segue-served-by").map(|by| by.to_str().unwrap().to_owned());
    (heard.status, by)
}

#[tokio::test]
async fn whatever_one_tenant_writes_nobody_elses_turns_change() {
    let (first, second) = (echoing().await, echoing().await);
    let text = format!(
        "[connections.a]\ndialect = \"chat\"\nbase_url = \"{}\"\n[connections.b]\ndialect = \"chat\"\nbase_url = \"{}\"\n\
         [levels.main]\nchain = [{{ connection = \"a\", model = \"m\" }}, {{ connection = \"b\", model = \"m\" }}]\nretries = 0\n\
         [tenants.alice]\nkeys = [{{ sha256 = \"{}\" }}]\n[tenants.bob]\nkeys = [{{ sha256 = \"{}\" }}]\n",
        first.url(),
        second.url(),
        hash("alice"),
        hash("bob")
    );
    let house = House::with(&text, Vec::new()).await;
    for words in WORDS {
        for turn in 0..4 {
            ask(&house, "bob", &json!({(words): turn})).await;
        }
        let (status, by) = ask(&house, "alice", &json!({})).await;
        assert_eq!((status, by.as_deref()), (200, Some("a/m")), "after {words:?}");
        for circuit in house.gateway.fleet().circuits(tokio::time::Instant::now().into_std()) {
            assert_eq!(
                (circuit.state, circuit.resting_until, circuit.prefill_denied),
                (State::Closed, None, false),
                "{words:?}"
            );
        }
    }
}

#[tokio::test]
async fn one_request_changes_nothing_where_there_are_no_tenants() {
    let (first, second) = (echoing().await, echoing().await);
    let text = format!(
        "[connections.a]\ndialect = \"chat\"\nbase_url = \"{}\"\n[connections.b]\ndialect = \"chat\"\nbase_url = \"{}\"\n\
         [levels.main]\nchain = [{{ connection = \"a\", model = \"m\" }}, {{ connection = \"b\", model = \"m\" }}]\nretries = 0\n",
        first.url(),
        second.url()
    );
    let house = House::with(&text, Vec::new()).await;
    for words in WORDS {
        for _ in 0..5 {
            house.chat(&json!({(words): true})).await;
        }
        let heard = house.chat(&json!({})).await;
        let by = heard.headers.get("x-segue-served-by").and_then(|by| by.to_str().ok());
        assert_eq!((heard.status, by), (200, Some("a/m")), "after {words:?}, five times the same");
    }
}
