//! What Anthropic's errors come to.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use super::{event, response};
use crate::failure::{Disposition, Kind, Remedy, RetryAt, Stage};
use http::{HeaderMap, HeaderName};
use std::time::{Duration, SystemTime};

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in pairs {
        map.insert(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
    }
    map
}

fn error(kind: &str, message: &str) -> String {
    serde_json::json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}).to_string()
}

#[test]
fn statuses_and_types_are_told_apart() {
    for (status, kind, message, expected) in [
        (400, "invalid_request_error", "max_tokens: Field required", Kind::BadRequest),
        (401, "authentication_error", "invalid x-api-key", Kind::Auth),
        (402, "billing_error", "pay", Kind::QuotaExhausted),
        (403, "permission_error", "no", Kind::Auth),
        (404, "not_found_error", "model: claude-x", Kind::NotForUs),
        (404, "not_found_error", "File not found: file_1", Kind::Repairable),
        (408, "", "", Kind::ServerError),
        (409, "", "", Kind::ServerError),
        (413, "request_too_large", "Request exceeds the maximum size", Kind::ContextTooLong),
        (425, "", "", Kind::ServerError),
        (429, "rate_limit_error", "slow down", Kind::RateLimited),
        (499, "", "", Kind::ServerError),
        (500, "api_error", "Internal server error", Kind::ServerError),
        (502, "", "", Kind::ServerError),
        (503, "", "", Kind::Overloaded),
        (504, "timeout_error", "too slow", Kind::ServerError),
        (522, "", "", Kind::ServerError),
        (529, "overloaded_error", "Overloaded", Kind::Overloaded),
        (529, "", "", Kind::Overloaded),
        (500, "overloaded_error", "Overloaded", Kind::Overloaded),
        (503, "api_error", "down", Kind::Overloaded),
        (200, "overloaded_error", "Overloaded", Kind::Overloaded),
        (200, "api_error", "oops", Kind::ServerError),
    ] {
        let failure = response(status, &HeaderMap::new(), error(kind, message).as_bytes());
        assert_eq!(failure.kind, expected, "{status} {kind}");
        assert_eq!((failure.status, failure.stage), (Some(status), Stage::Refused));
        assert!(failure.said.message.contains(message));
    }
}

#[test]
fn wordings_decide_where_the_type_is_too_wide() {
    for (message, expected) in [
        ("prompt is too long: 215000 tokens > 200000 maximum", Kind::ContextTooLong),
        // The answer that was asked for is what does not fit: a shorter one may.
        ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", Kind::Repairable),
        ("input length and `max_tokens` exceed context limit: 210000 + 20000 > 200000", Kind::ContextTooLong),
        ("Input is too long for requested model.", Kind::ContextTooLong),
        ("Your credit balance is too low to access the Anthropic API.", Kind::QuotaExhausted),
        ("You have reached your specified API usage limits.", Kind::QuotaExhausted),
        ("Output blocked by content filtering policy", Kind::ContentFiltered),
        ("messages: roles must alternate", Kind::BadRequest),
    ] {
        let failure = response(400, &HeaderMap::new(), error("invalid_request_error", message).as_bytes());
        assert_eq!(failure.kind, expected, "{message}");
    }
}

#[test]
fn a_refusal_that_names_its_own_way_out_is_remedied() {
    let drop = |field: &str| Some(Remedy::Drop { fields: vec![field.to_owned()], lasting: true });
    let inside = |field: &str| Some(Remedy::DropInside(vec![field.to_owned()]));
    for (message, expected) in [
        (
            "This model does not support assistant message prefill. The conversation must end with a user message.",
            Some(Remedy::Instruct),
        ),
        ("messages: final assistant content cannot end with trailing whitespace", Some(Remedy::Instruct)),
        (
            "The model returned the following errors: This model does not support assistant message prefill.",
            Some(Remedy::Instruct),
        ),
        ("messages.1.content.0: Invalid `signature` in `thinking` block", Some(Remedy::StripReasoning)),
        ("messages.1.content.0.thinking.signature: Field required", Some(Remedy::StripReasoning)),
        (
            "messages.3.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
            Some(Remedy::StripReasoning),
        ),
        (
            "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be \
             modified.",
            Some(Remedy::StripReasoning),
        ),
        ("temperature: Extra inputs are not permitted", drop("temperature")),
        ("`temperature` is deprecated for this model.", drop("temperature")),
        ("`temperature` and `top_p` cannot both be specified for this model. Please use only one.", drop("top_p")),
        ("`top_k` is not supported for this model", drop("top_k")),
        (
            "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" and \
             \"output_config.effort\" to control thinking behavior.",
            drop("thinking"),
        ),
        ("This model does not support the effort parameter.", drop("output_config.effort")),
        ("tool_choice: type \"tool\" and \"any\" are not supported for this model.", drop("tool_choice")),
        (
            "output_config.format.schema: For 'integer' type, property 'minimum' is not supported",
            drop("output_config.format"),
        ),
        ("output_config: Extra inputs are not permitted", drop("output_config")),
        ("messages.0.content.0.text.cache_control: Extra inputs are not permitted", inside("cache_control")),
        ("tools.0.custom.strict: Extra inputs are not permitted", inside("strict")),
        // Other APIs allow more: a request that came for one of them is served without it.
        ("temperature: range: 0..1", Some(Remedy::Drop { fields: vec!["temperature".to_owned()], lasting: false })),
        ("messages: at least one message is required", None),
    ] {
        let failure = response(400, &HeaderMap::new(), error("invalid_request_error", message).as_bytes());
        let kinds: &[Kind] =
            if expected.is_some() { &[Kind::Repairable] } else { &[Kind::BadRequest, Kind::Repairable] };
        assert!(kinds.contains(&failure.kind), "{message}: {:?}", failure.kind);
        assert_eq!(failure.remedy, expected, "{message}");
    }
}

#[test]
fn the_time_to_come_back_is_read() {
    let body = error("rate_limit_error", "slow down");
    let at = |pairs: &[(&str, &str)]| response(429, &headers(pairs), body.as_bytes()).retry_at;
    assert_eq!(at(&[("retry-after", "7")]), Some(RetryAt::In(Duration::from_secs(7))));
    assert_eq!(
        at(&[
            ("anthropic-ratelimit-requests-remaining", "10"),
            ("anthropic-ratelimit-requests-reset", "2030-01-01T00:00:00Z"),
            ("anthropic-ratelimit-input-tokens-remaining", "0"),
            ("anthropic-ratelimit-input-tokens-reset", "1970-01-01T00:01:00Z"),
        ]),
        Some(RetryAt::At(SystemTime::UNIX_EPOCH + Duration::from_secs(60)))
    );
    assert_eq!(at(&[]), None);
    let forbidden = response(403, &headers(&[("retry-after", "3")]), error("permission_error", "later").as_bytes());
    assert_eq!((forbidden.kind, forbidden.retry_at), (Kind::RateLimited, Some(RetryAt::In(Duration::from_secs(3)))));
}

#[test]
fn bodies_of_other_shapes_are_read() {
    for (status, body, kind, message) in [
        (500, "<html><h1>502</h1></html>", Kind::ServerError, "an HTML page"),
        (500, "", Kind::ServerError, "HTTP status 500 without a message"),
        (400, r#"{"error":"no such thing"}"#, Kind::BadRequest, "no such thing"),
        (
            400,
            r#"{"message":"Input is too long for requested model."}"#,
            Kind::ContextTooLong,
            "Input is too long for requested model.",
        ),
        (429, r#"[{"error":{"code":429,"message":"busy"}}]"#, Kind::RateLimited, "busy"),
        (403, r#"{"Message":"explicit deny"}"#, Kind::Auth, "explicit deny"),
        (302, "", Kind::Framing, "HTTP status 302 without a message"),
        (200, "<html></html>", Kind::Framing, "an HTML page"),
        (200, r#"{"error":"broken"}"#, Kind::ServerError, "broken"),
        (200, r#"{"choices":[]}"#, Kind::Framing, "HTTP status 200 without a message"),
        (400, "\u{fffd}\u{fffd}", Kind::NotForUs, "\u{fffd}\u{fffd}"),
    ] {
        let failure = response(status, &HeaderMap::new(), body.as_bytes());
        assert_eq!((failure.kind, failure.said.message.as_str()), (kind, message), "{body}");
    }
    let long = format!("{{\"error\":\"{}\"}}", "ä".repeat(9000));
    assert!(
        response(400, &HeaderMap::new(), long.as_bytes()).said.message.len() <= 16 * 1024,
        "it is cut once secrets are out"
    );
}

#[test]
fn error_events_have_the_meaning_of_their_types() {
    for (kind, expected, disposition) in [
        ("overloaded_error", Kind::Overloaded, Disposition::Next),
        ("api_error", Kind::ServerError, Disposition::Again),
        ("timeout_error", Kind::ServerError, Disposition::Again),
        ("rate_limit_error", Kind::RateLimited, Disposition::WaitOrSwitch),
        ("authentication_error", Kind::Auth, Disposition::Next),
        ("permission_error", Kind::Auth, Disposition::Next),
        ("billing_error", Kind::QuotaExhausted, Disposition::Next),
        ("invalid_request_error", Kind::BadRequest, Disposition::Opinion),
        ("brand_new_error", Kind::ServerError, Disposition::Again),
    ] {
        let failure = event(error(kind, "x").as_bytes());
        assert_eq!((failure.kind, failure.kind.disposition()), (expected, disposition), "{kind}");
        assert_eq!((failure.stage, failure.status), (Stage::Streaming, None));
        assert_eq!(failure.said.r#type, kind);
    }
    assert_eq!(event(b"plain words").said.message, "plain words");
    assert_eq!(event(b"plain words").kind, Kind::ServerError);
}
