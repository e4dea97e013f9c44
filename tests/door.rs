//! The clients' door: who may come in, and what is said to those who ask at the wrong place.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

mod support;

use http::HeaderMap;
use segue::rig::origin::Scripts;
use segue::rig::script::Script;
use serde_json::{Value, json};
use support::house::House;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PAGE: &str = "https://app.example.com";
const EVIL: &str = "https://evil.example";
const BODY: &str = r#"{"model": "main", "messages": [{"role": "user", "content": "x"}]}"#;

async fn house(settings: &str) -> House {
    House::of(vec![("chat", Scripts::fixed(Script::telling("hello")))], settings, "").await
}

/// Sends a request as it is written and gives the status, the headers and the body.
async fn raw(
    house: &House,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (u16, HeaderMap, String) {
    let mut request = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    if !headers.iter().any(|(name, _)| *name == "host") {
        request += &format!("host: {}\r\n", house.addr);
    }
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    let mut stream = TcpStream::connect(house.addr).await.unwrap();
    stream.write_all(format!("{request}\r\n{body}").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers
        .map(|(name, value)| (http::HeaderName::try_from(name).unwrap(), http::HeaderValue::from_str(value).unwrap()))
        .collect();
    (status, headers, body.to_owned())
}

#[tokio::test]
async fn a_page_spends_no_credit_and_a_rebound_name_reads_nothing() {
    let house = house("").await;
    for (headers, code) in [
        (&[("origin", EVIL), ("content-type", "text/plain")][..], "foreign_origin"),
        (&[("sec-fetch-site", "cross-site"), ("content-type", "text/plain")][..], "foreign_origin"),
        (&[("origin", "null")][..], "foreign_origin"),
        (&[("host", "evil.example:80"), ("origin", "http://evil.example:80")][..], "foreign_host"),
    ] {
        for path in ["/v1/chat/completions", "/v1/messages", "/v1/models", "/v1/nothing"] {
            let (status, answered, body) = raw(&house, "POST", path, headers, BODY).await;
            assert_eq!(status, 403, "{path} {headers:?}: {body}");
            assert!(body.contains(code), "{path} {headers:?}: {body}");
            assert!(!answered.contains_key("access-control-allow-origin"));
        }
    }
    assert_eq!(house.origins[0].records().total(), 0, "nobody was asked");
    let (status, ..) = raw(&house, "POST", "/v1/chat/completions", &[("host", "localhost")], BODY).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn a_page_that_may_ask_reads_answers_and_errors() {
    let house = house(&format!("[server]\ncors = [\"{PAGE}\"]")).await;
    let asks =
        [("access-control-request-method", "POST"), ("access-control-request-headers", "authorization,x-stainless-os")];
    let (status, headers, _) =
        raw(&house, "OPTIONS", "/v1/chat/completions", &[&[("origin", PAGE)], &asks[..]].concat(), "").await;
    assert_eq!(status, 204);
    assert_eq!(headers["access-control-allow-origin"], PAGE);
    assert_eq!(headers["access-control-allow-headers"], "authorization,x-stainless-os");
    assert_eq!(headers["access-control-allow-methods"], "GET, POST");
    let (status, headers, _) =
        raw(&house, "OPTIONS", "/v1/chat/completions", &[&[("origin", EVIL)], &asks[..]].concat(), "").await;
    assert_eq!((status, headers.get("access-control-allow-origin")), (403, None));

    for (path, expected) in [("/v1/chat/completions", 200), ("/v1/nothing", 404), ("/v1/messages", 400)] {
        let body = if expected == 400 { "{" } else { BODY };
        let (status, headers, body) = raw(&house, "POST", path, &[("origin", PAGE)], body).await;
        assert_eq!(status, expected, "{body}");
        assert_eq!(
            (headers["access-control-allow-origin"].to_str().unwrap(), headers["vary"].to_str().unwrap()),
            (PAGE, "origin")
        );
        assert!(headers["access-control-expose-headers"].to_str().unwrap().contains("x-segue-turn"));
    }
}

#[tokio::test]
async fn with_tenants_the_key_decides_and_pages_still_need_leave_to_read() {
    let digest = "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683"; // of `key`
    let house = house(&format!("[server]\ncors = [\"*\"]\n[tenants.t]\nkeys = [{{ sha256 = \"{digest}\" }}]")).await;
    let key = ("authorization", "Bearer key");
    let (status, headers, body) =
        raw(&house, "POST", "/v1/chat/completions", &[key, ("origin", EVIL), ("host", "llm.example.com")], BODY).await;
    assert_eq!((status, headers["access-control-allow-origin"].to_str().unwrap()), (200, EVIL), "{body}");
    let (status, ..) = raw(&house, "POST", "/v1/chat/completions", &[("origin", EVIL)], BODY).await;
    assert_eq!(status, 401);
}

#[tokio::test]
async fn what_is_not_there_is_said_in_the_dialect_of_its_place() {
    let house = house("").await;
    let told = async |method: &str, path: &str| {
        let (status, _, body) = raw(&house, method, path, &[], "").await;
        (status, serde_json::from_str::<Value>(&body).unwrap())
    };
    let (status, body) = told("GET", "/v1/messages").await;
    assert_eq!(
        (status, &body["type"], &body["error"]["type"]),
        (405, &json!("error"), &json!("invalid_request_error"))
    );
    let (status, body) = told("POST", "/v1/messages/batches").await;
    assert_eq!((status, &body["error"]["type"]), (404, &json!("not_found_error")));
    let (status, body) = told("POST", "/v1/completions").await;
    assert_eq!((status, &body["error"]["code"]), (404, &json!("unknown_route")));
    assert!(body["error"]["message"].as_str().unwrap().contains("/v1/chat/completions"), "{body}");
    let (status, _, body) = raw(&house, "GET", "/health", &[], "").await;
    assert_eq!((status, body.as_str()), (200, "ok\n"));
}

#[tokio::test]
async fn other_names_and_no_name_are_served_and_a_request_keeps_its_own() {
    let house = house("[aliases]\n\"gpt-4o*\" = \"main\"").await;
    let ask = async |model: Value, id: &[(&str, &str)]| {
        let body = json!({"model": model, "messages": [{"role": "user", "content": "x"}]}).to_string();
        raw(&house, "POST", "/v1/chat/completions", id, &body).await
    };
    for model in [json!("gpt-4o-mini"), json!("main"), Value::Null, json!("")] {
        let (status, headers, body) = ask(model.clone(), &[]).await;
        assert_eq!(
            (status, &headers["x-segue-level"]),
            (200, &http::HeaderValue::from_static("main")),
            "{model}: {body}"
        );
        assert_eq!(headers["x-request-id"], headers["x-segue-turn"]);
    }
    let (status, headers, body) = ask(json!("claude"), &[("x-request-id", "mine-1")]).await;
    assert_eq!((status, &headers["x-request-id"]), (404, &http::HeaderValue::from_static("mine-1")), "{body}");
    let level = "[levels.second]\nchain = [{ connection = \"a\", model = \"m\" }]";
    let two = self::house(level).await;
    let (status, _, body) =
        raw(&two, "POST", "/v1/chat/completions", &[], &BODY.replace("\"model\": \"main\", ", "")).await;
    assert!(status == 400 && body.contains("model_missing"), "{body}");
    let two = self::house(&format!("[server]\ndefault_level = \"second\"\n{level}")).await;
    let (_, headers, _) =
        raw(&two, "POST", "/v1/chat/completions", &[], &BODY.replace("\"model\": \"main\", ", "")).await;
    assert_eq!(headers["x-segue-level"], "second");
}
