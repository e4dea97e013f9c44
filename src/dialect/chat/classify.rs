//! What an error of this API's many providers means: the common table, and the way out that a refusal names.

use crate::dialect::refusals;
use crate::dialect::repair::{self, Refused};
use crate::failure::{Failure, Remedy, Said};
use http::HeaderMap;

/// The failure of a response that is not a success, or of a success that is no stream.
pub(super) fn response(status: u16, headers: &HeaderMap, body: &[u8]) -> Failure {
    refusals::response(status, headers, body, remedy)
}

/// The failure that an event inside a stream reports; `data` is JSON, or whatever else came with `event: error`.
pub(super) fn in_band(data: &str) -> Failure {
    refusals::in_band(data.as_bytes(), remedy)
}

/// The form in which the same target may be asked again at once.
fn remedy(said: &Said) -> Option<Remedy> {
    repair::remedy(&Refused { message: &said.message, code: &said.code, param: &said.param })
}
