//! The client's side over HTTP: routes, limits of a connection, and the way from a turn to a body. It moves bytes;
//! what they say is decided below.

mod answer;
mod body;
mod coding;
mod count;
pub mod door;
mod kept;
pub mod listen;
mod missing;
mod socket;

use crate::chat::DialectId;
use crate::dialect::{self, Reason, Refusal};
use crate::gateway::Gateway;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::json;
use std::sync::Arc;

/// The routes of the client's side.
pub fn routes(gateway: Gateway) -> Router {
    let gateway = Arc::new(gateway);
    Router::new()
        .route("/v1/chat/completions", post(chat))
        .route("/v1/messages", post(messages))
        .route("/v1/messages/count_tokens", post(count::tokens))
        .route("/v1/responses", post(responses))
        .route("/v1/responses/{id}", get(kept::answer).delete(kept::forget))
        .route("/v1/models", get(models))
        .route("/health", get(|| async { "ok\n" }))
        .fallback(nothing_here)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(Arc::clone(&gateway), door::door))
        .layer(middleware::from_fn(name_request))
        .with_state(gateway)
}

async fn chat(State(gateway): State<Arc<Gateway>>, request: Request) -> Response {
    answer::turn(&gateway, DialectId::Chat, request).await
}

async fn messages(State(gateway): State<Arc<Gateway>>, request: Request) -> Response {
    answer::turn(&gateway, DialectId::Anthropic, request).await
}

async fn responses(State(gateway): State<Arc<Gateway>>, request: Request) -> Response {
    answer::turn(&gateway, DialectId::Responses, request).await
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
    refusal(uri.path(), &missing::refusal(uri.path()))
}

async fn wrong_method(method: Method, uri: Uri) -> Response {
    let message = format!("{} does not take {method}", uri.path());
    let mut response = refusal(uri.path(), &Refusal::new(Reason::Request, "method_not_allowed", message));
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response
}

/// An answer bears the name that its client gave to the request, so that both find it in their logs; without one, the
/// turn's.
async fn name_request(request: Request, next: Next) -> Response {
    let given = request.headers().get(REQUEST_ID).filter(|id| id.len() <= LONGEST_ID).cloned();
    let mut response = next.run(request).await;
    let name = given.or_else(|| response.headers().get("x-segue-turn").cloned());
    if let Some(name) = name.filter(|name| name.to_str().is_ok()) {
        response.headers_mut().insert(REQUEST_ID, name);
    }
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
    let Some(dialect) = dialect::client(id) else { return StatusCode::NOT_FOUND.into_response() };
    let reply = dialect.refuse(refusal);
    let mut response = Response::new(Body::from(reply.body));
    *response.status_mut() = match &*refusal.code {
        coding::UNSUPPORTED => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        _ => StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
    };
    response.headers_mut().extend(reply.headers);
    response
}

/// An error as a whole response, in the dialect of the API that `path` belongs to.
fn refusal(path: &str, refusal: &Refusal) -> Response {
    let anthropic = path.split('/').any(|part| part == "messages");
    refuse(if anthropic { DialectId::Anthropic } else { DialectId::Chat }, refusal)
}

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// A longer name of a request is not repeated.
const LONGEST_ID: usize = 256;
