//! What is left out of a body, and its names.

use crate::chat::DialectId;
use crate::dialect::field::word;
use crate::dialect::{Field, note};
use serde_json::{Map, Value};

/// What was asked for and left out, in the client's words, each once.
#[derive(Debug)]
pub(super) struct Dropped {
    origin: DialectId,
    names: Vec<String>,
}

// === impl Dropped ===

impl Dropped {
    /// Nothing yet, for clients of `origin`.
    pub(super) fn new(origin: DialectId) -> Self {
        Self { origin, names: Vec::new() }
    }

    /// A field of this dialect is left out.
    pub(super) fn field(&mut self, ours: &str) {
        let field = match ours {
            "thinking" | "output_config.effort" => Some(Field::Effort),
            "output_config.format" | "output_config" => Some(Field::Format),
            "stop_sequences" => Some(Field::Stop),
            "metadata" => Some(Field::User),
            _ => None,
        };
        let theirs = match field {
            Some(field) if self.origin != DialectId::Anthropic => word(self.origin, field),
            _ => ours,
        };
        self.name(theirs);
    }

    /// Something that the client asked for under that name is left out.
    pub(super) fn name(&mut self, theirs: &str) {
        note(&mut self.names, theirs);
    }

    /// The names, for people.
    pub(super) fn into_names(self) -> Vec<String> {
        self.names
    }
}

// === helpers ===

/// Removes a field, or a field of an object of the body (`output_config.effort`), whether it was there. An object
/// that becomes empty goes with it.
pub(super) fn remove(body: &mut Map<String, Value>, field: &str) -> bool {
    let Some((outer, inner)) = field.split_once('.') else {
        return body.shift_remove(field).is_some();
    };
    let Some(Value::Object(object)) = body.get_mut(outer) else { return false };
    let found = object.shift_remove(inner).is_some();
    if object.is_empty() {
        body.shift_remove(outer);
    }
    found
}
