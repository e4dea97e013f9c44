//! `POST /v1/messages/count_tokens`: a request without what only an answer needs, and a number for an answer.

use super::client::wrong;
use crate::dialect::{Refusal, WireRequest};
use bytes::Bytes;
use serde_json::{Map, Value};

/// Makes a whole request of one whose tokens are to be counted, which need not say how long an answer may be.
///
/// # Errors
/// Where it is no object.
pub fn whole(body: &[u8]) -> Result<Bytes, Refusal> {
    let mut fields: Map<String, Value> =
        serde_json::from_slice(body).map_err(|error| wrong("body", &format!("must be a JSON object: {error}")))?;
    fields.insert("max_tokens".to_owned(), ROOM.into());
    fields.insert("stream".to_owned(), false.into());
    serde_json::to_vec(&fields).map(Bytes::from).map_err(|error| wrong("body", &error.to_string()))
}

/// What a target that has the route is asked, made of what it would be asked for an answer. `None`: it is no JSON.
pub fn question(wire: WireRequest) -> Option<WireRequest> {
    let mut fields: Map<String, Value> = serde_json::from_slice(&wire.body).ok()?;
    fields.retain(|field, _| COUNTED.contains(&field.as_str()));
    let body = serde_json::to_vec(&fields).ok()?;
    Some(WireRequest { path: "/messages/count_tokens".to_owned(), body: body.into(), ..wire })
}

/// The number that a target gave.
pub fn tokens(body: &[u8]) -> Option<u64> {
    serde_json::from_slice::<Value>(body).ok()?.get("input_tokens")?.as_u64()
}

/// Fields that the route takes; it refuses others.
const COUNTED: [&str; 10] = [
    "model",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
    "output_format",
    "context_management",
    "mcp_servers",
];
/// A limit under which no field has to give way.
const ROOM: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;
    use serde_json::json;

    #[test]
    fn a_question_holds_what_is_counted_and_nothing_else() {
        let body = whole(br#"{"model": "m", "messages": [], "system": "s"}"#).unwrap();
        let fields: Value = serde_json::from_slice(&body).unwrap();
        assert!(fields["max_tokens"].is_u64());
        let wire = WireRequest { path: "/messages".into(), headers: Vec::new(), body, dropped: Vec::new() };
        let asked = question(wire).unwrap();
        assert_eq!(asked.path, "/messages/count_tokens");
        let sent: Value = serde_json::from_slice(&asked.body).unwrap();
        assert_eq!(sent, json!({"model": "m", "messages": [], "system": "s"}));
        assert_eq!((tokens(br#"{"input_tokens": 7}"#), tokens(b"{}"), tokens(b"no")), (Some(7), None, None));
        assert!(whole(b"[]").is_err());
    }
}
