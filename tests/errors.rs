//! What a client or an operator did wrong: each gets an error that names the place and the remedy, and loses nothing.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

mod support;

use http::{HeaderMap, HeaderName, HeaderValue};
use segue::config;
use segue::rig::origin::Scripts;
use segue::rig::script::Script;
use serde_json::{Value, json};
use support::house::{Heard, House, Nowhere};

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
    says(&post(&house, "/v1/chat/completions", "{}").await, 400, &["model"]);
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
