//! No stream at all, in every way.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's panic is its report")]

use super::client::{End, ask, ask_endless, question};
use super::heard;
use crate::event::Signal;
use crate::failure::{Failure, Kind, RetryAt, Stage};
use crate::rig::origin::{Origin, Scripts};
use crate::rig::script::{Reject, Script, Wrong};
use crate::rig::signals;
use crate::rig::wire::Api;
use crate::turn::resume::Carry;
use std::collections::BTreeMap;
use std::time::Duration;

fn script(reject: Reject) -> Script {
    Script::telling("never told").rejecting(reject)
}

fn error(status: u16) -> Reject {
    let headers = BTreeMap::from([("retry-after".to_owned(), "7".to_owned())]);
    Reject::Error { status, headers, wrong: None }
}

fn failure(script: &Script) -> Option<Failure> {
    signals::timeline(script, &Carry::fresh(), 1).into_iter().find_map(|(_, signal)| match signal {
        Signal::Failed(failure) => Some(*failure),
        _ => None,
    })
}

async fn got(script: &Script, api: Api) -> super::client::Got {
    let origin = Origin::local(Scripts::fixed(script.clone())).await.unwrap();
    match script.reject {
        Some(Reject::NeverAnswers | Reject::HeadersOnly) => ask_endless(origin.addr, api, &question()).await,
        _ => ask(origin.addr, api, &question()).await,
    }
}

#[tokio::test]
async fn statuses_have_headers_and_the_apis_error_body() {
    for (status, kind, chat, anthropic) in [
        (429, Kind::RateLimited, "requests", "rate_limit_error"),
        (500, Kind::ServerError, "server_error", "api_error"),
        (503, Kind::Overloaded, "server_error", "overloaded_error"),
        (529, Kind::Overloaded, "server_error", "overloaded_error"),
        (401, Kind::Auth, "invalid_request_error", "authentication_error"),
        (402, Kind::QuotaExhausted, "insufficient_quota", "billing_error"),
        (400, Kind::BadRequest, "invalid_request_error", "invalid_request_error"),
    ] {
        let script = script(error(status));
        let failure = failure(&script).unwrap();
        assert_eq!((failure.kind, failure.stage, failure.status), (kind, Stage::Refused, Some(status)));
        assert_eq!(failure.retry_at, Some(RetryAt::In(Duration::from_secs(7))));
        for (api, r#type) in [(Api::Chat, chat), (Api::Anthropic, anthropic)] {
            let got = got(&script, api).await;
            assert_eq!((got.status, got.end), (status, End::Whole));
            assert!(got.head.contains("retry-after: 7\r\n") && got.head.contains("application/json"), "{}", got.head);
            let json: serde_json::Value = serde_json::from_slice(&got.body).unwrap();
            assert_eq!(json["error"]["type"], r#type, "{status} {api:?}");
            assert!(json["error"]["message"].is_string());
        }
    }
}

#[tokio::test]
async fn bodies_that_are_no_stream() {
    for api in Api::ALL {
        let json_error = script(Reject::JsonError { wrong: Wrong::Server });
        let got_ = got(&json_error, api).await;
        assert_eq!(got_.status, 200);
        assert!(got_.head.contains("content-type: application/json"));
        assert!(serde_json::from_slice::<serde_json::Value>(&got_.body).unwrap()["error"].is_object());
        assert_eq!(failure(&json_error).unwrap().kind, Kind::ServerError);

        for (status, kind) in [(200, Kind::Framing), (502, Kind::ServerError)] {
            let html = script(Reject::Html { status });
            let got_ = got(&html, api).await;
            assert!(got_.status == status && got_.head.contains("text/html") && got_.body.starts_with(b"<!DOCTYPE"));
            assert_eq!(failure(&html).unwrap().kind, kind);
        }

        let done = script(Reject::DoneOnly);
        let got_ = got(&done, api).await;
        let (events, _) = heard::events(&got_.body);
        assert_eq!((events.len(), got_.status, got_.end), (1, 200, End::Whole));
        assert_eq!(failure(&done).unwrap().kind, Kind::EmptyTurn);
    }
}

#[tokio::test]
async fn no_answer() {
    for api in Api::ALL {
        let got_ = got(&script(Reject::NeverAnswers), api).await;
        assert_eq!((got_.status, got_.end), (0, End::Open));
        let got_ = got(&script(Reject::ClosesAtOnce), api).await;
        assert_eq!((got_.status, got_.end), (0, End::Fin));
        let got_ = got(&script(Reject::HeadersOnly), api).await;
        assert_eq!((got_.status, got_.end, got_.body.len()), (200, End::Open, 0));
    }
    assert_eq!(failure(&script(Reject::NeverAnswers)), None);
    assert_eq!(failure(&script(Reject::HeadersOnly)), None);
    let closes = failure(&script(Reject::ClosesAtOnce)).unwrap();
    assert_eq!((closes.kind, closes.stage), (Kind::Reset, Stage::Waiting));
    let opened = signals::timeline(&script(Reject::HeadersOnly), &Carry::fresh(), 1);
    let [(_, Signal::Sent), (_, Signal::Opened)] = opened.as_slice() else { panic!("{opened:?}") };
}
