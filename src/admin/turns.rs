//! Turns that are under way, and one turn by its id.

use super::{Admin, MOST_TURNS, Turns, problem};
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

/// The turns that are under way, newest first, as far as they have come.
pub(super) async fn live(State(admin): State<Admin>, Query(query): Query<Turns>) -> Response {
    Json(admin.gateway.live(query.limit.min(MOST_TURNS))).into_response()
}

/// One turn: under way, or among those that ended last.
pub(super) async fn one(State(admin): State<Admin>, Path(id): Path<String>) -> Response {
    match admin.gateway.turn(&id) {
        Some(turn) => Json(turn).into_response(),
        None => problem(
            StatusCode::NOT_FOUND,
            "no such turn among those under way and the last 1000; an answer's header x-segue-turn tells its id",
        ),
    }
}
