//! How errors are worded.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use super::body;
use crate::dialect::{Reason, Refusal};
use serde_json::{Value, json};
use std::time::Duration;

#[test]
fn each_reason_has_its_status_and_type() {
    for (reason, status, kind) in [
        (Reason::Request, 400, "invalid_request_error"),
        (Reason::Key, 401, "authentication_error"),
        (Reason::Forbidden, 403, "permission_error"),
        (Reason::NotFound, 404, "not_found_error"),
        (Reason::Busy, 409, "conflict_error"),
        (Reason::TooLarge, 413, "request_too_large"),
        (Reason::Limited, 429, "rate_limit_error"),
        (Reason::Internal, 500, "api_error"),
        (Reason::Upstream, 502, "api_error"),
        (Reason::Unavailable, 503, "overloaded_error"),
        (Reason::Timeout, 504, "timeout_error"),
    ] {
        let reply = super::reply(&Refusal::new(reason, "c", "m"));
        let told: Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(reply.status, status);
        assert_eq!(
            told,
            json!({"type": "error", "error": {"type": kind, "message": "m", "details": {"error_code": "c"}}})
        );
    }
}

#[test]
fn the_providers_own_type_goes_first_if_it_is_of_this_api() {
    let mut refusal = Refusal::new(Reason::Upstream, "", "Overloaded");
    refusal.r#type = Some("overloaded_error".to_owned());
    assert_eq!(body(&refusal)["error"]["type"], "overloaded_error");
    assert_eq!(body(&refusal)["error"].get("details"), None);
    refusal.r#type = Some("server_error".to_owned());
    assert_eq!(body(&refusal)["error"]["type"], "api_error");
}

#[test]
fn headers_say_when_to_come_back_and_that_the_gateway_has_tried() {
    let mut refusal = Refusal::new(Reason::Limited, "rate_limit_key", "slow").about("model");
    refusal.retry_after = Some(Duration::from_millis(1200));
    refusal.attempts = vec!["a/m: RateLimited".to_owned()];
    let reply = super::reply(&refusal);
    let header =
        |name: &str| reply.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.to_str().unwrap().to_owned());
    assert_eq!(header("retry-after").as_deref(), Some("2"));
    assert_eq!(header("x-should-retry").as_deref(), Some("false"));
    assert_eq!(header("content-type").as_deref(), Some("application/json"));
    let told: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(told["error"]["details"]["attempts"], json!(["a/m: RateLimited"]));
    assert_eq!(told["error"]["details"]["param"], "model");
    assert!(super::reply(&Refusal::new(Reason::Key, "k", "m")).headers.iter().all(|(n, _)| n != "x-should-retry"));
}
