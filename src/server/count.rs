//! How many tokens a Messages request has, before it is asked.

use super::answer;
use super::refuse;
use crate::chat::DialectId;
use crate::gateway::Gateway;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use std::sync::Arc;

/// Counts the tokens of a request; where nobody can, they are estimated, and the answer says so in a header.
pub(super) async fn tokens(State(gateway): State<Arc<Gateway>>, request: Request) -> Response {
    let counted = async {
        let answer::Received { caller, parts, body, held: _held } = answer::receive(&gateway, request).await?;
        gateway.count_tokens(&caller, &parts.headers, &body).await
    };
    match counted.await {
        Ok(count) => {
            let mut response = axum::Json(json!({"input_tokens": count.tokens})).into_response();
            if count.estimated {
                response.headers_mut().insert(ESTIMATED, HeaderValue::from_static("true"));
            }
            response
        }
        Err(refusal) => refuse(DialectId::Anthropic, &refusal),
    }
}

const ESTIMATED: HeaderName = HeaderName::from_static("x-segue-estimated");
