//! Answers of the Responses API that are asked for again by their ids.

use super::{key, refuse};
use crate::chat::DialectId;
use crate::dialect::{self, Reason, Refusal};
use crate::gateway::Gateway;
use axum::extract::{Path, RawQuery, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use std::sync::Arc;

/// Gives an answer.
pub(super) async fn answer(
    State(gateway): State<Arc<Gateway>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let given = async {
        let caller = gateway.authorize(key(&headers))?;
        if query.is_some_and(|query| query.split('&').any(|pair| pair == "stream=true")) {
            let message = "a stream cannot be taken up again; ask for the answer without `stream`";
            return Err(Refusal::new(Reason::Request, "not_streamed", message).about("stream"));
        }
        gateway.answer(&caller, &id).await
    };
    reply(given.await)
}

/// Forgets an answer.
pub(super) async fn forget(
    State(gateway): State<Arc<Gateway>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let forgotten = async {
        let caller = gateway.authorize(key(&headers))?;
        gateway.forget_answer(&caller, &id).await?;
        let answers = dialect::client(DialectId::Responses).and_then(dialect::Client::answers);
        Ok(answers.map(|answers| answers.forgotten(&id)).unwrap_or_default())
    };
    reply(forgotten.await)
}

// === helpers ===

fn reply(given: Result<Value, Refusal>) -> Response {
    match given {
        Ok(value) => axum::Json(value).into_response(),
        Err(refusal) => refuse(DialectId::Responses, &refusal),
    }
}
