//! The check of a whole structured answer: it is JSON, and it meets its schema.

use crate::chat::Format;
use crate::relay::Check;
use serde_json::Value;
use std::sync::Arc;

/// The check that `format` asks for; `None` for free text. A schema that cannot be compiled is not held against the
/// model: the answer is then only checked to be JSON.
pub(super) fn check(format: &Format) -> Option<Check> {
    match format {
        Format::Text => None,
        Format::Json => Some(Check(Arc::new(|text| parse(text).is_some_and(|v| v.is_object())))),
        Format::Schema { schema, .. } => {
            let validator = jsonschema::validator_for(schema).ok();
            Some(Check(Arc::new(move |text| {
                parse(text).is_some_and(|value| validator.as_ref().is_none_or(|v| v.is_valid(&value)))
            })))
        }
    }
}

fn parse(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::expect_used, reason = "a test's panic is its report")]
    use super::*;
    use serde_json::json;

    #[test]
    fn an_answer_must_be_json_and_meet_the_schema() {
        let schema = json!({"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}});
        let check = check(&Format::Schema { name: "x".into(), schema, strict: None }).expect("a check");
        assert!((check.0)(r#"{"city":"Ulm"}"#));
        assert!(!(check.0)(r#"{"city":7}"#));
        assert!(!(check.0)(r#"{"city":"Ulm""#));
    }

    #[test]
    fn free_text_is_not_checked_and_json_mode_wants_an_object() {
        assert!(check(&Format::Text).is_none());
        let check = check(&Format::Json).expect("a check");
        assert!((check.0)("{}") && !(check.0)("[1]"));
    }
}
