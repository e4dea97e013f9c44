//! Foreign words on their way out: a provider that repeats all it was sent, and names that would forge lines of the log.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

mod support;

use http::HeaderMap;
use segue::upstream::client::Client;
use serde_json::{Value, json};
use std::fmt::Write as _;
use support::program::{Running, SERVE, Stream, scratch};
use support::raw::{Conn, RawServer, Request};

/// Every secret holds this word, in which no escape changes anything, and something that escapes change.
const WORD: &str = "TOP7SECRET";

fn secret(name: &str) -> String {
    format!("{name}+/=&-{WORD}-0123456789-{name}")
}

/// All that a provider was sent, in several encodings.
fn echo(request: &Request) -> String {
    let mut sent = request.line.clone();
    for (name, value) in &request.headers {
        write!(sent, "\n{name}: {value}").unwrap();
    }
    let percent = |text: &str| -> String { text.bytes().map(|b| format!("%{b:02x}")).collect() };
    let units = |text: &str| -> String { text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect() };
    format!("{sent} | {} | {} | {}", json!(sent), percent(&sent), units(&sent))
}

/// Answers in the way that the request's last message names.
async fn answer(conn: &mut Conn, request: &Request) {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let way = body["messages"].as_array().and_then(|all| all.last()).and_then(|last| last["content"].as_str());
    let said = echo(request);
    let text = |text: &str| {
        let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]});
        format!("data: {chunk}\n\n")
    };
    let done = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let json = "application/json";
    match way.unwrap_or_default() {
        "message" => conn.whole("500 Oops", json, &json!({"error": {"message": said}}).to_string()).await,
        "fields" => {
            let error = json!({"error": {"message": "no", "type": said, "code": said, "param": said}});
            conn.whole("400 Bad", json, &error.to_string()).await;
        }
        "text" => conn.whole("503 Busy", "text/plain", &said).await,
        "html" => conn.whole("404 Gone", "text/html", &format!("<html><body>{said}</body></html>")).await,
        "key" => conn.whole("401 No", json, &json!({"error": {"message": said}}).to_string()).await,
        "cut" => {
            // The key begins before the cut, and ends behind it.
            let filler = "x".repeat(2048 - 30);
            let key = request.headers.iter().find(|(name, _)| name == "authorization").map(|(_, value)| value.clone());
            let message = format!("{filler}{}", key.unwrap_or_default());
            conn.whole("500 Oops", json, &json!({"error": {"message": message}}).to_string()).await;
        }
        "event" => {
            conn.events().await;
            conn.chunk(text("hello ")).await;
            conn.chunk(format!("data: {}\n\n", json!({"error": {"message": said, "code": said}}))).await;
            conn.end().await;
        }
        "names" => {
            conn.events().await;
            let key = said.replace(['\n', ' '], "");
            conn.chunk(
                text("hello").replace("\"c\"", &json!(key).to_string()).replace("\"m\"", &json!(key).to_string()),
            )
            .await;
            conn.chunk(done).await;
            conn.end().await;
        }
        "answer" => {
            conn.events().await;
            let echo = format!("{{\"debug\": [{}], ", json!(said));
            conn.chunk(text(&said).replacen('{', &echo, 1)).await;
            conn.chunk(done).await;
            conn.end().await;
        }
        _ => {
            conn.events().await;
            conn.chunk(text("hello")).await;
            conn.chunk(done).await;
            conn.end().await;
        }
    }
}

async fn provider() -> RawServer {
    RawServer::start(|mut conn| async move {
        while let Some(request) = conn.request().await {
            answer(&mut conn, &request).await;
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_repeats_all_it_was_sent_tells_nobody_a_secret() {
    let (provider, hook) = (provider().await, provider().await);
    let digest = "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683"; // of `key`
    let file = scratch(
        "echo",
        &format!(
            "[admin]\ntoken = {{ env = \"ADMIN\" }}\n[ledger]\npath = \"off\"\n\
             [connections.a]\ndialect = \"chat\"\nbase_url = \"{0}/v1\"\napi_key = {{ env = \"KEY\" }}\n\
             headers = {{ x-portkey-api-key = {{ env = \"PORT\" }}, cf-aig-authorization = {{ env = \"CF\" }} }}\n\
             query = {{ key = {{ env = \"QUERY\" }} }}\nbreaker = {{ consecutive = 2 }}\n\
             [levels.main]\nretries = 0\nchain = [{{ connection = \"a\", model = \"m\" }}]\n\
             [tenants.t]\nkeys = [{{ sha256 = \"{digest}\" }}]\ndirect = true\n\
             [tenants.u]\nkeys = [{{ sha256 = \"{digest2}\" }}]\ncredentials = {{ a = {{ env = \"TENANT\" }} }}\n\
             [alerts]\nwebhook = {{ env = \"HOOK\" }}\n",
            provider.url(),
            digest2 = "d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa",
        ),
    );
    let hook_url = format!("{}/{WORD}-of-the-hook-0123456789", hook.url());
    let secrets = ["ADMIN", "KEY", "PORT", "QUERY", "TENANT"].map(|name| (name, secret(name)));
    let cf = format!("Bearer {}", secret("CF"));
    let mut environment: Vec<(&str, &str)> = secrets.iter().map(|(name, value)| (*name, &**value)).collect();
    environment.extend([("CF", &*cf), ("HOOK", &*hook_url), ("SEGUE_LOG", "segue=debug")]);
    let arguments = [&SERVE[..], &["--config", file.to_str().unwrap()]].concat();
    let mut gateway = Running::start(&arguments, &environment, Stream::Err);
    let clients = gateway.find("clients", "/v1");
    let admin = gateway.find("admin", "/api");

    let client = Client::new().unwrap();
    let mut told = String::new();
    for way in ["plain", "message", "fields", "text", "html", "key", "cut", "event", "names", "answer"] {
        for stream in [true, false] {
            for (path, more) in [("/v1/chat/completions", json!({})), ("/v1/messages", json!({"max_tokens": 9}))] {
                let mut body =
                    json!({"model": "main", "stream": stream, "messages": [{"role": "user", "content": way}]});
                body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                // The circuit would keep the next from being asked.
                let close = format!("{admin}/api/circuits/a/close");
                client.post(&close, bearer(&secret("ADMIN")), "").await.unwrap();
                // The second has a credential of its own.
                for key in ["key", "other"] {
                    let url = format!("{clients}{path}");
                    let answer = client.post(&url, bearer(key), body.to_string()).await.unwrap();
                    write!(told, "\n{way} {} {:?} ", answer.status, answer.headers).unwrap();
                    told += &String::from_utf8_lossy(&answer.bytes(1 << 24).await.unwrap());
                }
            }
        }
    }
    assert!(told.contains("hello") && told.contains("[secret]"), "{told}");
    for path in ["/api/turns?limit=100", "/api/circuits", "/api/circuits/journal", "/api/config", "/api/workers"] {
        let answer = client.get(&format!("{admin}{path}"), bearer(&secret("ADMIN"))).await.unwrap();
        assert_eq!(answer.status, 200, "{path}");
        told += &String::from_utf8_lossy(&answer.bytes(1 << 24).await.unwrap());
    }
    gateway.stop();
    told += &gateway.seen.join("\n");
    assert!(told.contains("turn failed"), "the log tells of them");
    for alert in hook.requests() {
        told += &String::from_utf8_lossy(&alert.body);
    }
    let lower = told.to_lowercase();
    for trace in [WORD.to_lowercase(), "%54%4f%50%37".to_owned(), "\\u0054\\u004f\\u0050".to_owned()] {
        let at = lower.find(&trace);
        assert_eq!(
            at,
            None,
            "{}",
            at.map(|at| &lower[at.saturating_sub(300)..(at + 100).min(lower.len())]).unwrap_or("")
        );
    }
    // What is left of a key that was cut is no less one.
    assert!(!lower.contains("key+/=&-"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_name_forges_a_line_or_rules_a_terminal() {
    let provider = RawServer::start(|conn| async move { conn.reset() }).await;
    let file = scratch(
        "forged",
        &format!(
            "[ledger]\npath = \"off\"\n[connections.a]\ndialect = \"chat\"\nbase_url = \"{}/v1\"\n\
             [levels.main]\nretries = 0\nchain = [{{ connection = \"a\", model = \"m\" }}]\n",
            provider.url()
        ),
    );
    let forged = "a/m\u{1b}[2J\u{1b}]0;owned\u{7}\n2026-12-01T00:00:00Z  INFO segue: forged\u{202e}\u{2028}\u{9b}31m";
    for (format, line_of) in [("text", "turn failed"), ("json", "turn failed")] {
        let arguments = [&SERVE[..], &["--config", file.to_str().unwrap()]].concat();
        let mut gateway = Running::start(&arguments, &[("SEGUE_LOG_FORMAT", format)], Stream::Err);
        let clients = if format == "text" {
            gateway.find("clients", "/v1")
        } else {
            let line: Value = serde_json::from_str(&gateway.until("segue serves")).unwrap();
            format!("http://{}", line["listen"].as_str().unwrap())
        };
        let body = json!({"model": forged, "messages": [{"role": "user", "content": "x"}]}).to_string();
        let client = Client::new().unwrap();
        let answer = client.post(&format!("{clients}/v1/chat/completions"), HeaderMap::new(), body).await.unwrap();
        assert_eq!(answer.status, 502);
        let line = gateway.until(line_of);
        gateway.stop();
        assert!(line.contains("forged"), "the name is there, on the turn's own line: {line}");
        for line in &gateway.seen {
            assert!(!line.starts_with("2026-12-01T00:00:00Z"), "{line}");
            let hidden: String = line.chars().filter(|c| segue::words::escape::is_hidden(*c)).collect();
            assert_eq!(hidden, "", "{line:?}");
        }
        if format == "json" {
            let told: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(told["level"].as_str(), Some(forged), "whoever reads the JSON has the name as it was");
        }
    }
}

fn bearer(key: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("authorization", format!("Bearer {key}").parse().unwrap());
    headers
}
