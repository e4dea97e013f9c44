//! What of a request a target lacks, in the words of whoever asked.
//!
//! A provider's side reports fields of the common form; the client's side of the request's own dialect has the words for
//! them, and knows which of its fields have no common form. So no dialect knows another's names.

use super::client;
use crate::chat::{DialectId, Request};

/// A field of the common form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The most tokens to generate.
    Limit,
    /// Where to stop.
    Stop,
    /// How much to think.
    Effort,
    /// The form of the answer.
    Format,
    /// The user's id.
    User,
}

/// The field as clients of `origin` know it.
pub(super) fn word(origin: DialectId, field: Field) -> &'static str {
    client(origin).map_or("field", |client| client.word(field))
}

/// The fields of a request that have no common form, as its client wrote them.
pub(super) fn uncommon(request: &Request) -> Vec<&str> {
    client(request.origin).map_or_else(Vec::new, |client| client.uncommon(request))
}
