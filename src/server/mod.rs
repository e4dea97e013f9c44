//! The client's side over HTTP: routes, limits of a connection, and the way from a turn to a body. It moves bytes;
//! what they say is decided below.

mod answer;
mod body;
pub mod listen;
mod socket;

use crate::chat::DialectId;
use crate::dialect::{self, Reason, Refusal};
use crate::gateway::Gateway;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::json;
use std::sync::Arc;

/// The routes of the client's side.
pub fn routes(gateway: Gateway) -> Router {
    Router::new()
        .route("/v1/chat/completions", post(chat))
        .route("/v1/messages", post(messages))
        .route("/v1/models", get(models))
        .fallback(nothing_here)
        .method_not_allowed_fallback(wrong_method)
        .with_state(Arc::new(gateway))
}

async fn chat(State(gateway): State<Arc<Gateway>>, request: Request) -> Response {
    answer::turn(&gateway, DialectId::Chat, request).await
}

async fn messages(State(gateway): State<Arc<Gateway>>, request: Request) -> Response {
    answer::turn(&gateway, DialectId::Anthropic, request).await
}

async fn models(State(gateway): State<Arc<Gateway>>, headers: HeaderMap) -> Response {
    let caller = match gateway.authorize(key(&headers)) {
        Ok(caller) => caller,
        Err(refusal) => return refuse(DialectId::Chat, &refusal),
    };
    let models: Vec<_> = gateway
        .models(&caller)
        .into_iter()
        .map(|(name, level)| json!({"id": name, "object": "model", "created": 0, "owned_by": "segue", "level": level}))
        .collect();
    axum::Json(json!({"object": "list", "data": models})).into_response()
}

async fn nothing_here(uri: Uri) -> Response {
    let message = format!(
        "there is nothing at {}; this gateway serves POST /v1/chat/completions, POST /v1/messages and GET /v1/models",
        uri.path()
    );
    refuse(DialectId::Chat, &Refusal::new(Reason::NotFound, "unknown_route", message))
}

async fn wrong_method(method: Method, uri: Uri) -> Response {
    let message = format!("{} does not take {method}", uri.path());
    let mut response = refuse(DialectId::Chat, &Refusal::new(Reason::Request, "method_not_allowed", message));
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response
}

// === helpers ===

/// The client's key, from whichever header its SDK uses.
fn key(headers: &HeaderMap) -> Option<&str> {
    let text = |name| headers.get(name).and_then(|v| v.to_str().ok());
    let bearer = text(header::AUTHORIZATION).and_then(|v| {
        let (scheme, key) = v.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
    });
    bearer.or_else(|| headers.get("x-api-key").and_then(|v| v.to_str().ok()))
}

/// An error as a whole response, in the client's dialect.
fn refuse(id: DialectId, refusal: &Refusal) -> Response {
    let Some(dialect) = dialect::of(id) else { return StatusCode::NOT_FOUND.into_response() };
    let reply = dialect.refuse(refusal);
    let mut response = Response::new(Body::from(reply.body));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().extend(reply.headers);
    response
}
