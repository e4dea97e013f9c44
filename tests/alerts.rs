//! The webhook: what it is told, once, and again where it was not there at first.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

mod support;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use segue::config;
use segue::gateway::Gateway;
use segue::health::breaker::Force;
use segue::rig::origin::{Origin, Scripts};
use segue::rig::script::{Reject, Script};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::house::{House, Nowhere};
use tokio::net::TcpListener;
use tokio::time::sleep;

/// What the webhook was told; its first `refusals` calls it does not take.
#[derive(Clone, Default)]
struct Hook {
    told: Arc<Mutex<Vec<Value>>>,
    refusals: Arc<Mutex<u32>>,
}

async fn take(State(hook): State<Hook>, body: String) -> StatusCode {
    let mut refusals = hook.refusals.lock().unwrap();
    if *refusals > 0 {
        *refusals -= 1;
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    hook.told.lock().unwrap().push(serde_json::from_str(&body).unwrap());
    StatusCode::NO_CONTENT
}

struct Env(String);

impl config::Resolver for Env {
    fn env(&self, name: &str) -> Option<String> {
        if name == "HOOK" { Some(self.0.clone()) } else { Nowhere.env(name) }
    }

    fn file(&self, path: &str) -> Result<String, String> {
        Nowhere.file(path)
    }
}

#[tokio::test]
async fn trouble_is_told_and_so_is_its_end() {
    let hook = Hook { refusals: Arc::new(Mutex::new(1)), ..Hook::default() };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let app = Router::new().route("/hook", post(take)).with_state(hook.clone());
    tokio::spawn(async move { axum_serve(listener, app).await });

    let first = Origin::local(Scripts::fixed(Script::default().rejecting(Reject::ClosesAtOnce))).await.unwrap();
    let second = Origin::local(Scripts::sequence(vec![
        Script::telling("Hello there"),
        Script::telling("Hello there"),
        Script::default().rejecting(Reject::ClosesAtOnce),
    ]))
    .await
    .unwrap();
    let text = format!(
        "[alerts]\nwebhook = {{ env = \"HOOK\" }}\n\
         [connections.a]\ndialect = \"chat\"\nbase_url = \"{}\"\napi_key = {{ env = \"KEY_a\" }}\n\
         breaker = {{ consecutive = 2 }}\n\
         [connections.b]\ndialect = \"chat\"\nbase_url = \"{}\"\napi_key = {{ env = \"KEY_b\" }}\n\
         [levels.main]\nretries = 0\n\
         chain = [{{ connection = \"a\", model = \"m\" }}, {{ connection = \"b\", model = \"m\", quality = 2 }}]\n",
        first.base_url(),
        second.base_url()
    );
    let loaded = config::load(&text, "t.toml", &Env(url)).unwrap();
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    let house = House::before(Gateway::new(loaded.config).unwrap(), vec![first, second]).await;
    for _ in 0..2 {
        assert_eq!(house.chat(&json!({})).await.text, "Hello there");
    }
    house.chat(&json!({})).await;
    house.gateway.fleet().force("a", Some("m"), Force::Close);
    let expected = ["below_quality", "chain_exhausted", "circuit_open", "recovered"];
    let mut events: Vec<String> = Vec::new();
    for _ in 0..200 {
        let told = hook.told.lock().unwrap().clone();
        events = told.iter().map(|t| t["event"].as_str().unwrap_or_default().to_owned()).collect();
        if expected.iter().all(|e| events.contains(&(*e).to_owned())) {
            break;
        }
        sleep(Duration::from_millis(25)).await;
    }
    events.sort();
    assert_eq!(events, expected, "each once, though two turns were below the best quality");
    let told = hook.told.lock().unwrap();
    let of = |event: &str| told.iter().find(|t| t["event"] == event).cloned().unwrap();
    assert_eq!(of("below_quality")["level"], "main");
    assert_eq!(of("below_quality")["connection"], "b");
    assert_eq!(of("circuit_open")["connection"], "a");
    assert!(of("circuit_open")["message"].as_str().unwrap().contains("consecutive"));
}

async fn axum_serve(listener: TcpListener, app: Router) {
    let manners = segue::server::listen::Manners { client_write: Duration::from_secs(5), drain: Duration::ZERO };
    segue::server::listen::serve(listener, app, manners, tokio_util::sync::CancellationToken::new()).await;
}
