//! The origin as a server: recorder, cancels, kept connections, choice of scripts.

#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use super::client::{Client, End, ask, ask_endless, question};
use super::heard;
use crate::rig::mock;
use crate::rig::origin::{Fate, Origin, Scripts};
use crate::rig::script::{Break, Delay, Ending, Reject, Script};
use crate::rig::wire::Api;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(10);

fn slow() -> Script {
    Script::telling("a b c d e f g h").paced(Duration::ZERO, Duration::from_secs(1))
}

#[tokio::test]
async fn a_client_that_leaves_is_seen_at_once() {
    let origin = Origin::local(Scripts::fixed(slow())).await.unwrap();
    let mut client = Client::to(origin.addr).await;
    client.send(Api::Chat, &question()).await;
    client.read_some(300).await;
    let left = tokio::time::Instant::now();
    drop(client);
    assert!(origin.records().until(SOON, |all| all[0].fate == Fate::Cancelled).await);
    let record = origin.records().get(0).unwrap();
    assert!(record.ended.unwrap() - left < Duration::from_millis(700), "before the next token is due");
    assert!(record.sent > 300 && record.tokens >= 1 && record.tokens < 8);
    assert_eq!(origin.records().open_now(), 0);
}

#[tokio::test]
async fn a_client_that_leaves_before_the_headers_is_seen() {
    for reject in [None, Some(Reject::NeverAnswers)] {
        let mut script = slow();
        script.pace.headers = Delay::Fixed(Duration::from_secs(60));
        script.reject = reject;
        let origin = Origin::local(Scripts::fixed(script)).await.unwrap();
        let mut client = Client::to(origin.addr).await;
        client.send(Api::Chat, &question()).await;
        assert!(origin.records().until(SOON, |all| all.len() == 1).await);
        drop(client);
        assert!(origin.records().until(SOON, |all| all[0].fate == Fate::Cancelled).await);
        assert_eq!(origin.records().get(0).unwrap().sent, 0);
    }
}

#[tokio::test]
async fn a_client_that_leaves_after_the_terminator_cancels_nothing() {
    let mut script = Script::telling("a b");
    script.ending = Ending::HeldOpen;
    let origin = Origin::local(Scripts::fixed(script)).await.unwrap();
    let got = ask_endless(origin.addr, Api::Chat, &question()).await;
    assert_eq!(got.end, End::Open);
    assert!(heard::read(Api::Chat, &got.body).done);
    assert!(origin.records().until(SOON, |all| all[0].fate == Fate::Told).await);
}

#[tokio::test]
async fn a_request_is_recorded_as_it_came() {
    let origin = Origin::local(Scripts::fixed(Script::telling("a"))).await.unwrap();
    ask(origin.addr, Api::Anthropic, &question()).await;
    let record = origin.records().get(0).unwrap();
    assert_eq!((record.path.as_str(), record.header("x-test")), ("/v1/messages", Some("yes")));
    assert_eq!(record.body, question());
    assert_eq!((origin.records().total(), origin.records().peak()), (1, 1));
}

#[tokio::test]
async fn a_connection_is_used_again_after_a_good_end_and_requests_may_come_chunked() {
    let scripts =
        vec![Script::telling("first"), Script::telling("second"), Script::telling("x").breaking(0, Break::CleanEnd)];
    let origin = Origin::local(Scripts::sequence(scripts)).await.unwrap();
    let mut client = Client::to(origin.addr).await;
    client.send(Api::Chat, &question()).await;
    assert_eq!(heard::read(Api::Chat, &client.answer().await.body).texts[&0], "first");
    let body = question().to_string();
    let (one, two) = body.split_at(17);
    let chunks = format!("{:x}\r\n{one}\r\n{:X};x=y\r\n{two}\r\n0\r\n\r\n", one.len(), two.len());
    let head =
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\nexpect: 100-continue\r\n\r\n";
    client.raw(head.as_bytes()).await;
    let go_ahead = client.answer_head().await;
    assert!(go_ahead.starts_with("http/1.1 100"), "{go_ahead}");
    client.raw(chunks.as_bytes()).await;
    assert_eq!(heard::read(Api::Chat, &client.answer().await.body).texts[&0], "second");
    for _ in 0..2 {
        client.send(Api::Chat, &question()).await;
        assert_eq!(client.answer().await.end, End::Whole, "the last one repeats");
    }
    assert_eq!(origin.records().total(), 4);
}

#[tokio::test]
async fn scripts_by_model_and_by_closure() {
    let models = BTreeMap::from([("m".to_owned(), Script::telling("mine"))]);
    let origin = Origin::local(Scripts::by_model(models, None)).await.unwrap();
    assert_eq!(heard::read(Api::Chat, &ask(origin.addr, Api::Chat, &question()).await.body).texts[&0], "mine");
    for api in Api::ALL {
        let got = ask(origin.addr, api, &json!({"model": "other", "stream": true, "messages": []})).await;
        assert_eq!(got.status, 404);
        assert!(String::from_utf8_lossy(&got.body).contains("there are: m"));
    }
    let scripts = Scripts::with(|inquiry| {
        let last = inquiry.body["messages"][0]["content"].as_str().unwrap_or_default();
        Ok(Script::telling(&format!("{last} {:?} {}", inquiry.api, inquiry.number)).into())
    });
    let origin = Origin::local(scripts).await.unwrap();
    for (number, api) in Api::ALL.into_iter().enumerate() {
        let got = ask(origin.addr, api, &question()).await;
        assert_eq!(heard::read(api, &got.body).texts[&0], format!("go {api:?} {number}"));
    }
}

#[tokio::test]
async fn what_is_no_request_is_refused() {
    let origin = Origin::local(Scripts::fixed(Script::telling("a"))).await.unwrap();
    let answers: [(&[u8], u16); 6] = [
        (b"GET /v1/models HTTP/1.1\r\n\r\n", 200),
        (b"GET /health HTTP/1.1\r\n\r\n", 200),
        (b"GET /nothing HTTP/1.1\r\n\r\n", 404),
        (b"POST /v1/messages HTTP/1.1\r\ncontent-length: 1\r\n\r\n{", 400),
        (b"POST /v1/messages HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n", 413),
        (b"nonsense\r\n\r\n", 400),
    ];
    for (bytes, status) in answers {
        let mut client = Client::to(origin.addr).await;
        client.raw(bytes).await;
        let got = client.answer().await;
        assert_eq!(got.status, status, "{}", String::from_utf8_lossy(bytes));
        assert!(!got.body.is_empty());
    }
    assert_eq!(origin.records().total(), 0);
}

#[tokio::test]
async fn stopping_breaks_connections_and_so_does_dropping() {
    for stop in [true, false] {
        let origin = Origin::local(Scripts::fixed(Script::telling("a b").breaking(1, Break::Silence))).await.unwrap();
        let addr = origin.addr;
        let mut client = Client::to(addr).await;
        client.send(Api::Chat, &question()).await;
        client.read_some(300).await;
        if stop {
            origin.stop().await;
        } else {
            drop(origin);
        }
        assert!(client.is_closed().await);
        let refused = tokio::net::TcpStream::connect(addr).await;
        assert!(refused.is_err() || !stop, "nobody listens after stop()");
    }
}

#[tokio::test]
async fn many_at_once_are_told_apart() {
    let scripts = Scripts::with(|inquiry| Ok(Script::telling(&format!("text for {}", inquiry.model)).into()));
    let origin = Origin::local(scripts).await.unwrap();
    let addr = origin.addr;
    let asks = (0..100).map(|n| async move {
        let mut body = question();
        body["model"] = json!(format!("m{n}"));
        let got = ask(addr, Api::Chat, &body).await;
        assert_eq!(heard::read(Api::Chat, &got.body).texts[&0], format!("text for m{n}"));
    });
    futures::future::join_all(asks).await;
    assert_eq!(origin.records().total(), 100);
}

#[tokio::test]
async fn the_mock_answers_whole_and_streamed_and_takes_faults_by_name() {
    let addr = SocketAddr::from(([127, 0, 0, 1], 0));
    let file = mock::File { default: Some(Script::telling("one two three")), ..mock::File::default() };
    let origin = mock::start(addr, file).await.unwrap();
    let ask_for = |model: &str, stream: bool| {
        let mut body = question();
        (body["model"], body["stream"]) = (json!(model), json!(stream));
        body
    };
    let got = ask(origin.addr, Api::Chat, &ask_for("mock", false)).await;
    let json: Value = serde_json::from_slice(&got.body).unwrap();
    assert_eq!(json["choices"][0]["message"]["content"], "one two three");
    let got = ask(origin.addr, Api::Chat, &ask_for("fault-reset@2", true)).await;
    assert_eq!((got.end, heard::read(Api::Chat, &got.body).texts[&0].as_str()), (End::Reset, "one two"));
    let got = ask(origin.addr, Api::Anthropic, &ask_for("fault-529", true)).await;
    assert_eq!(got.status, 529);
    let got = ask(origin.addr, Api::Chat, &ask_for("fault-nonsense", true)).await;
    assert_eq!(got.status, 404);
    assert!(String::from_utf8_lossy(&got.body).contains("stall"));
}
