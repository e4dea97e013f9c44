//! The operator's side: health, circuits, turns, conversations. It has a listener of its own, so that what is said here is never
//! reachable where clients are.

mod metrics;
mod report;
mod turns;

use crate::gateway::Gateway;
use crate::record::account;
use crate::server::door;
use crate::store::Key;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// The state of the admin routes.
#[derive(Clone, Debug)]
struct Admin {
    gateway: Gateway,
    token: Option<Arc<str>>,
}

/// Query of `/api/turns`.
#[derive(Debug, Deserialize)]
struct Turns {
    #[serde(default = "default_limit")]
    limit: usize,
}

/// Query of `/api/conversations/{id}`.
#[derive(Debug, Deserialize)]
struct Owner {
    tenant: Option<String>,
}

/// Query of `/api/races`.
#[derive(Debug, Deserialize)]
struct Races {
    level: Option<String>,
}

/// Query of `/api/circuits/{connection}/{state}`.
#[derive(Debug, Deserialize)]
struct Circuit {
    model: Option<String>,
}

/// Query of `/api/circuits/journal`.
#[derive(Debug, Deserialize)]
struct Since {
    /// The number of the last entry that is known.
    #[serde(default)]
    after: u64,
}

/// The admin routes. All but `/healthz` and `/readyz` need `token`, if there is one.
pub fn routes(gateway: Gateway, token: Option<Arc<str>>) -> Router {
    let admin = Admin { gateway, token };
    let api = Router::new()
        .route("/api/circuits", get(circuits))
        .route("/api/circuits/{connection}/{state}", post(force))
        .route("/api/circuits/journal", get(journal))
        .route("/api/reload", post(reload))
        .route("/api/report", get(report::report))
        .route("/api/spend", get(report::spend))
        .route("/metrics", get(metrics::metrics))
        .route("/api/turns", get(turns))
        .route("/api/turns/live", get(turns::live))
        .route("/api/turns/{id}", get(turns::one))
        .route("/api/races", get(races))
        .route("/api/conversations/{id}", get(conversation).delete(forget))
        .route("/api/config", get(config))
        .route("/api/workers", get(workers))
        .route_layer(middleware::from_fn_with_state(admin.clone(), guard));
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .merge(api)
        .fallback(|| async {
            problem(
                StatusCode::NOT_FOUND,
                "this is the operators' side, clients ask at `server.listen`; here are /healthz, /readyz, /metrics, /api/circuits, /api/circuits/journal, /api/turns, /api/turns/live, /api/turns/{id}, /api/races, /api/report, /api/spend, /api/conversations/{id}, \
                 /api/config, /api/workers, POST /api/reload",
            )
        })
        .with_state(admin)
}

async fn guard(State(admin): State<Admin>, request: Request, next: Next) -> Response {
    match &admin.token {
        Some(token) if !bears(request.headers(), token) => {
            problem(StatusCode::UNAUTHORIZED, "send the admin token as `authorization: Bearer TOKEN`")
        }
        None if !door::is_direct(request.headers()) => problem(
            StatusCode::FORBIDDEN,
            "without an `admin.token` only who asks for the address itself is answered, and no web page; set one, or ask \
             at 127.0.0.1 or localhost",
        ),
        _ => next.run(request).await,
    }
}

async fn ready(State(admin): State<Admin>) -> Response {
    if admin.gateway.is_leaving() {
        return (StatusCode::SERVICE_UNAVAILABLE, "draining\n").into_response();
    }
    if let Some(silent) = admin.gateway.watchdog().silent() {
        let message = format!("the workers have not answered for {} ms; /api/workers tells more\n", silent.as_millis());
        return (StatusCode::SERVICE_UNAVAILABLE, message).into_response();
    }
    "ready\n".into_response()
}

async fn circuits(State(admin): State<Admin>) -> Response {
    Json(admin.gateway.fleet().circuits(tokio::time::Instant::now().into_std())).into_response()
}

/// Every change of a circuit, oldest first.
async fn journal(State(admin): State<Admin>, Query(query): Query<Since>) -> Response {
    Json(admin.gateway.fleet().journal(query.after)).into_response()
}

async fn reload(State(admin): State<Admin>) -> Response {
    // Files are read.
    let done = tokio::task::spawn_blocking(move || admin.gateway.reload()).await;
    match done {
        Ok(Ok(changes)) => Json(changes).into_response(),
        Ok(Err(why)) => {
            let problems = why.problems();
            let body = json!({"error": {"message": why.to_string(), "problems": problems}});
            (StatusCode::UNPROCESSABLE_ENTITY, Json(body)).into_response()
        }
        Err(error) => problem(StatusCode::INTERNAL_SERVER_ERROR, &format!("the reload broke off: {error}")),
    }
}

async fn force(
    State(admin): State<Admin>,
    Path((connection, state)): Path<(String, String)>,
    Query(query): Query<Circuit>,
) -> Response {
    use crate::health::breaker::Force;
    let force = match &*state {
        "open" => Force::Open,
        "close" => Force::Close,
        "auto" => Force::Auto,
        _ => return problem(StatusCode::NOT_FOUND, "a circuit is set to `open`, `close` or `auto`"),
    };
    match admin.gateway.fleet().force(&connection, query.model.as_deref(), force) {
        0 => problem(StatusCode::NOT_FOUND, "no such circuit; GET /api/circuits names those that were used"),
        changed => Json(json!({"changed": changed})).into_response(),
    }
}

async fn turns(State(admin): State<Admin>, Query(query): Query<Turns>) -> Response {
    Json(admin.gateway.recent(query.limit.min(MOST_TURNS))).into_response()
}

async fn conversation(State(admin): State<Admin>, Path(id): Path<String>, Query(query): Query<Owner>) -> Response {
    match admin.gateway.conversation(&query.key(&id)).await {
        Ok(Some(view)) => Json(view).into_response(),
        Ok(None) => query.unknown(),
        Err(why) => problem(StatusCode::SERVICE_UNAVAILABLE, &format!("the store cannot be asked now: {why}")),
    }
}

async fn forget(State(admin): State<Admin>, Path(id): Path<String>, Query(query): Query<Owner>) -> Response {
    match admin.gateway.forget(&query.key(&id)).await {
        Ok(true) => Json(json!({"deleted": true})).into_response(),
        Ok(false) => query.unknown(),
        Err(why) => problem(StatusCode::SERVICE_UNAVAILABLE, &format!("the store cannot be asked now: {why}")),
    }
}

/// What racing brought and cost, over the turns that ended last.
async fn races(State(admin): State<Admin>, Query(query): Query<Races>) -> Response {
    let recent = admin.gateway.recent(MOST_TURNS);
    let of_level = |level: &str| query.level.as_ref().is_none_or(|wanted| *wanted == *level);
    Json(account::of(recent.iter().filter(|turn| of_level(&turn.level)))).into_response()
}

async fn config(State(admin): State<Admin>) -> Response {
    Json(crate::config::redact::redact(&admin.gateway.config())).into_response()
}

/// Whether the workers answer, and what kept them busy for long.
async fn workers(State(admin): State<Admin>) -> Response {
    Json(admin.gateway.watchdog().report()).into_response()
}

// === impl Owner ===

impl Owner {
    fn key(&self, conversation: &str) -> Key {
        Key::new(self.tenant.as_deref(), conversation)
    }

    fn unknown(&self) -> Response {
        let message = match self.tenant {
            Some(_) => "this tenant has no such conversation, or it was let go (store.ttl, store.max_bytes)",
            None => "there is no such conversation, or it was let go; where there are tenants, name one: ?tenant=NAME",
        };
        problem(StatusCode::NOT_FOUND, message)
    }
}

// === helpers ===

fn bears(headers: &HeaderMap, token: &str) -> bool {
    let given =
        headers.get(header::AUTHORIZATION).and_then(|v| v.to_str().ok()).and_then(|v| v.strip_prefix("Bearer "));
    // The lengths may differ in time; the contents may not.
    given.is_some_and(|given| {
        given.len() == token.len() && given.bytes().zip(token.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0
    })
}

fn problem(status: StatusCode, message: &str) -> Response {
    (status, Json(json!({"error": {"message": message}}))).into_response()
}

fn default_limit() -> usize {
    20
}

/// The most turns that one call tells of.
const MOST_TURNS: usize = 1000;
