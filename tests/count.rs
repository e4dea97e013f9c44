//! Counting tokens beside turns, and bodies as clients pack them.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

mod support;

use http::{HeaderMap, HeaderValue};
use segue::rig::origin::{Origin, Scripts};
use segue::rig::script::Script;
use serde_json::{Value, json};
use std::io::Write as _;
use support::house::{Heard, House};
use support::raw::RawServer;

/// An Anthropic provider that counts, with this status.
async fn counter(status: &'static str) -> RawServer {
    RawServer::start(move |mut conn| async move {
        while conn.request().await.is_some() {
            conn.whole(status, "application/json", r#"{"input_tokens": 42}"#).await;
        }
    })
    .await
}

/// A gateway before a Chat provider and this one.
async fn house(counter: &RawServer) -> House {
    let origin = Origin::local(Scripts::fixed(Script::telling("hello"))).await.unwrap();
    let text = format!(
        "[connections.a]\ndialect = \"chat\"\nbase_url = \"{}\"\n\
         [connections.b]\ndialect = \"anthropic\"\nbase_url = \"{}\"\napi_key = {{ env = \"KEY\" }}\n\
         [levels.chat]\nchain = [{{ connection = \"a\", model = \"m\" }}]\n\
         [levels.main]\nchain = [{{ connection = \"a\", model = \"m\" }}, {{ connection = \"b\", model = \"m-b\" }}]\n",
        origin.base_url(),
        counter.url()
    );
    House::with(&text, vec![origin]).await
}

async fn count(house: &House, more: &Value) -> Heard {
    let mut body = json!({"model": "main", "messages": [{"role": "user", "content": "how many are these?"}]});
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    house.post("/v1/messages/count_tokens", HeaderMap::new(), body.to_string().into()).await
}

#[tokio::test]
async fn the_first_target_that_can_count_is_asked() {
    let counter = counter("200 OK").await;
    let house = house(&counter).await;
    let heard = count(&house, &json!({"system": "be brief"})).await;
    assert_eq!((heard.status, &heard.body), (200, &json!({"input_tokens": 42})));
    assert!(!heard.headers.contains_key("x-segue-estimated"));
    let asked = &counter.requests()[0];
    assert!(asked.line.starts_with("POST /v1/messages/count_tokens "), "{}", asked.line);
    let sent: Value = serde_json::from_slice(&asked.body).unwrap();
    let fields: Vec<&String> = sent.as_object().unwrap().keys().collect();
    assert_eq!((&sent["model"], fields.len()), (&json!("m-b"), 3), "{sent}");
}

#[tokio::test]
async fn where_nobody_can_count_it_is_estimated_and_said() {
    let counter = counter("404 Not Found").await;
    let house = house(&counter).await;
    for model in ["main", "chat"] {
        let heard = count(&house, &json!({"model": model})).await;
        assert_eq!((heard.status, &heard.headers["x-segue-estimated"]), (200, &HeaderValue::from_static("true")));
        let tokens = heard.body["input_tokens"].as_u64().unwrap();
        assert!((5..20).contains(&tokens), "{tokens}");
    }
    let circuits = house.gateway.fleet().circuits(tokio::time::Instant::now().into_std());
    let circuits = serde_json::to_value(&circuits).unwrap();
    assert!(
        circuits.as_array().unwrap().iter().all(|circuit| circuit["failures"] == 0),
        "nobody's failure: {circuits}"
    );
    let heard = count(&house, &json!({"model": "nothing"})).await;
    assert_eq!((heard.status, &heard.body["error"]["type"]), (404, &json!("not_found_error")));
    let heard = count(&house, &json!({"messages": "no"})).await;
    assert_eq!((heard.status, &heard.body["error"]["type"]), (400, &json!("invalid_request_error")));
}

#[tokio::test]
async fn bodies_are_unpacked_and_strange_ones_refused_in_words() {
    let counter = counter("200 OK").await;
    let house = house(&counter).await;
    let body = json!({"model": "chat", "messages": [{"role": "user", "content": "x"}]}).to_string();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(body.as_bytes()).unwrap();
    let zstd = ruzstd::encoding::compress_to_vec(body.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest);
    let marked = [b"\xef\xbb\xbf", body.as_bytes()].concat();
    for (coding, body, status) in [
        (Some("gzip"), gzip.finish().unwrap(), 200),
        (Some("zstd"), zstd, 200),
        (None, marked, 200),
        (Some("br"), body.clone().into_bytes(), 415),
        (Some("gzip"), body.into_bytes(), 400),
    ] {
        let headers = coding.map(|coding| (http::header::CONTENT_ENCODING, HeaderValue::from_static(coding)));
        let heard = house.post("/v1/chat/completions", headers.into_iter().collect(), body.into()).await;
        assert_eq!(heard.status, status, "{coding:?}: {}", heard.body);
    }
}
