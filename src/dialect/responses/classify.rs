//! What an error of this API means: the common table, and the way out that a refusal names.

use crate::dialect::refusals;
use crate::dialect::repair::{self, Refused};
use crate::failure::{Failure, Kind, Remedy, Said, Stage};
use http::HeaderMap;
use serde_json::{Map, Value};

/// The failure of a response that is not a success, or of a success that is no stream.
pub(super) fn response(status: u16, headers: &HeaderMap, body: &[u8]) -> Failure {
    refusals::response(status, headers, body, remedy)
}

/// The failure that an event tells.
pub(super) fn event(data: &[u8]) -> Failure {
    refusals::in_band(data, remedy)
}

/// Whether an event or a body is an error, whatever else it says.
pub(super) fn is_error(value: &Map<String, Value>) -> bool {
    let told = value.get("error").is_some_and(|e| e.is_string() || e.as_object().is_some_and(|e| !e.is_empty()));
    told || ["type", "object"].iter().any(|field| value.get(*field).is_some_and(|kind| kind == "error"))
}

/// A whole answer that is not over.
pub(super) fn unfinished() -> Failure {
    Failure::new(Kind::Truncated, Stage::Streaming).saying("the provider gave an answer that was not over")
}

/// The form in which the same target may be asked again at once.
fn remedy(said: &Said) -> Option<Remedy> {
    // This API has no such forms.
    let foreign = |remedy: &Remedy| matches!(remedy, Remedy::Alternate | Remedy::Flat | Remedy::OneLimit);
    repair::remedy(&Refused { message: &said.message, code: &said.code, param: &said.param })
        .filter(|remedy| !foreign(remedy))
}
