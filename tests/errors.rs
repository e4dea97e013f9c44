//! What a client or an operator did wrong: each gets an error that names the place and the remedy, and loses nothing.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

mod support;

use axum::body::Body;
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use segue::config;
use segue::rig::origin::Scripts;
use segue::rig::script::{Reject, Script};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use support::house::{Heard, House, Nowhere};
use tower::ServiceExt;

async fn house(settings: &str) -> House {
    House::of(vec![("chat", Scripts::fixed(Script::telling("All is well.")))], settings, "").await
}

async fn post(house: &House, path: &str, body: &str) -> Heard {
    house.post(path, HeaderMap::new(), body.to_owned().into()).await
}

async fn with_header(house: &House, name: &'static str, value: &'static str) -> Heard {
    let mut headers = HeaderMap::new();
    headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    let body = json!({"model": "main", "messages": [{"role": "user", "content": "go"}]});
    house.post("/v1/chat/completions", headers, body.to_string().into()).await
}

/// The message must hold every one of `words`.
fn says(heard: &Heard, status: u16, words: &[&str]) {
    assert_eq!(heard.status, status, "{}", heard.body);
    let message = heard.body["error"]["message"].as_str().unwrap_or_default();
    for word in words {
        assert!(message.contains(word), "`{word}` is not in: {message}");
    }
}

#[tokio::test]
async fn a_malformed_body_is_answered_with_its_place() {
    let house = house("").await;
    says(&post(&house, "/v1/chat/completions", "{\"model\": ").await, 400, &["JSON", "line 1"]);
    says(&post(&house, "/v1/chat/completions", "{}").await, 400, &["messages"]);
    says(&post(&house, "/v1/chat/completions", r#"{"model":"main"}"#).await, 400, &["messages"]);
    let odd = r#"{"model":"main","messages":[{"role":"user","content":"a"},{"role":"wizard","content":"b"}]}"#;
    says(&post(&house, "/v1/chat/completions", odd).await, 400, &["messages[1].role", "assistant"]);
    let no_limit = r#"{"model":"main","messages":[{"role":"user","content":"a"}]}"#;
    let heard = post(&house, "/v1/messages", no_limit).await;
    says(&heard, 400, &["max_tokens"]);
    assert_eq!(heard.body["type"], "error", "the Messages API has its own form: {}", heard.body);
    assert_eq!(house.origins[0].records().total(), 0, "nobody was asked");
    house.chat(&json!({})).await.assert_whole("after all that");
}

#[tokio::test]
async fn an_unknown_model_is_answered_with_those_that_exist() {
    let house = house("").await;
    let heard = house.chat(&json!({"model": "mian"})).await;
    says(&heard, 404, &["mian", "main"]);
    assert_eq!(heard.body["error"]["code"], "model_not_found");
    house.chat(&json!({"model": "a/other"})).await.assert_whole("a connection and a model");
    let long = format!("a/{}", "x".repeat(100_000));
    says(&house.chat(&json!({"model": long})).await, 400, &["256 bytes"]);
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_and_the_limit_is_named() {
    let house = house("[server]\nmax_body = \"64KiB\"\n").await;
    let heard = house.chat(&json!({"messages": [{"role": "user", "content": "q".repeat(70_000)}]})).await;
    says(&heard, 413, &["65536", "server.max_body"]);
    let close = house.chat(&json!({"messages": [{"role": "user", "content": "q".repeat(60_000)}]})).await;
    close.assert_whole("just below the limit");
}

#[tokio::test]
async fn segues_own_fields_never_go_upstream_and_wrong_ones_are_refused() {
    let house = house("").await;
    let heard = house.chat(&json!({"conversation_id": "c1", "turn_index": 0})).await;
    heard.assert_whole("with a conversation");
    let body: Value = house.origins[0].records().all()[0].body.clone();
    assert!(body.get("conversation_id").is_none() && body.get("turn_index").is_none(), "{body}");
    says(&with_header(&house, "x-segue-hedge", "maybe").await, 400, &["x-segue-hedge"]);
    says(&with_header(&house, "x-segue-hegde", "off").await, 400, &["x-segue-hegde"]);
    says(&with_header(&house, "x-segue-order", "z").await, 400, &["x-segue-order", "z"]);
    assert_eq!(house.origins[0].records().total(), 1);
}

#[tokio::test]
async fn a_route_that_is_none_says_which_there_are() {
    let house = house("").await;
    says(&post(&house, "/v1/completions", "{}").await, 404, &["/v1/completions", "/v1/chat/completions"]);
}

#[tokio::test]
async fn where_there_are_tenants_a_key_is_needed() {
    let digest = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"; // sha256 of "secret"
    let house =
        house(&format!("[tenants.t]\nkeys = [{{ sha256 = \"{digest}\" }}]\nlevels = {{ main = \"main\" }}\n")).await;
    says(&with_header(&house, "accept", "*/*").await, 401, &["API key"]);
    says(&with_header(&house, "authorization", "Bearer wrong").await, 401, &["not known"]);
    assert_eq!(with_header(&house, "authorization", "Bearer secret").await.status, 200);
    assert_eq!(with_header(&house, "x-api-key", "secret").await.status, 200);
}

#[test]
fn configuration_errors_name_line_key_and_remedy() {
    let told = |text: &str| -> String {
        let problems = config::load(text, "segue.toml", &Nowhere).err().unwrap();
        problems.iter().map(|p| format!("{p}\n")).collect()
    };
    let base = "[connections.a]\ndialect = \"chat\"\nbase_url = \"https://api.example.com/v1\"\n";
    let typo = told(&format!(
        "[timeouts]\nfirst_tokn = \"1s\"\n{base}api_key = {{ env = \"KEY\" }}\n[levels.main]\nchain = [{{ connection = \"a\", model = \"m\" }}]\n"
    ));
    for word in ["segue.toml:2:", "first_tokn", "first_token"] {
        assert!(typo.contains(word), "`{word}` is not in: {typo}");
    }
    let missing = told(&format!(
        "{base}api_key = {{ env = \"NOT_SET\" }}\n[levels.main]\nchain = [{{ connection = \"a\", model = \"m\" }}]\n"
    ));
    for word in ["segue.toml:4:", "NOT_SET", "`a`"] {
        assert!(missing.contains(word), "`{word}` is not in: {missing}");
    }
}

#[tokio::test]
async fn whose_retries_are_used_up_hears_of_the_limit_and_not_of_the_retries() {
    let reject = Reject::Error { status: 429, headers: BTreeMap::new(), wrong: None };
    let limited = Scripts::fixed(Script::default().rejecting(reject));
    let level = "retries = 1\nbackoff = { base = \"1ms\", cap = \"1ms\" }";
    let house = House::of(vec![("chat", limited)], "", level).await;
    for number in 0..30 {
        let heard = house.chat(&json!({})).await;
        assert_eq!((heard.status, &heard.body["error"]["code"]), (429, &json!("rate_limit_provider")), "{number}");
    }
    assert!(house.origins[0].records().total() < 60, "some had no retry left");
}

#[tokio::test]
async fn without_a_token_no_web_page_reaches_the_operators_side() {
    let house = house("").await;
    let ask = async |host: &str, origin: Option<&str>| {
        let mut request = Request::post("/api/circuits/a/auto").header("host", host);
        request = origin.into_iter().fold(request, |request, origin| request.header("origin", origin));
        let routes = segue::admin::routes(house.gateway.clone(), None);
        routes.oneshot(request.body(Body::empty()).unwrap()).await.unwrap().status().as_u16()
    };
    for (host, origin) in [
        ("127.0.0.1:9090", None),
        ("localhost:9090", None),
        ("[::1]:9090", None),
        ("[::1]", None),
        ("127.0.0.1:9090", Some("http://127.0.0.1:9090")),
    ] {
        assert_eq!(ask(host, origin).await, 404, "{host} {origin:?}: there is no such circuit yet");
    }
    for (host, origin) in [
        ("evil.example:9090", None),
        ("127.0.0.1:9090", Some("https://evil.example")),
        ("127.0.0.1:9090", Some("null")),
        ("evil.example", Some("http://evil.example")),
    ] {
        assert_eq!(ask(host, origin).await, 403, "{host} {origin:?}");
    }
}
