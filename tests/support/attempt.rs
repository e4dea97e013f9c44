//! Attempts in tests: a call, what is told of it, and both in few words.

use super::lines::Lines;
use super::raw::{Conn, RawServer};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use segue::dialect::{Expect, WireRequest};
use segue::event::{Event, Signal};
use segue::failure::Failure;
use segue::upstream::http::{Http, Settings};
use segue::upstream::{Call, Upstream};
use std::time::Duration;
use tokio::time::timeout;

pub(crate) fn http(url: &str) -> Http {
    Http::new(Settings { base_url: Some(url.to_owned()), ..Settings::new("lines") }).unwrap()
}

pub(crate) fn call(body: &str) -> Call {
    Call {
        provider: &Lines,
        wire: WireRequest {
            path: "/lines?alt=sse".to_owned(),
            headers: Vec::new(),
            body: Bytes::copy_from_slice(body.as_bytes()),
            dropped: Vec::new(),
        },
        expect: Expect::of(1),
        connect: Duration::from_secs(5),
        error_body: Duration::from_millis(100),
        max_event: 16 << 20,
        credential: None,
        secrets: Default::default(),
    }
}

/// The next `count` signals.
pub(crate) async fn take(stream: &mut BoxStream<'static, Signal>, count: usize) -> Vec<Signal> {
    timeout(Duration::from_secs(20), stream.take(count).collect()).await.unwrap()
}

/// All signals that are left.
pub(crate) async fn rest(stream: &mut BoxStream<'static, Signal>) -> Vec<Signal> {
    take(stream, usize::MAX).await
}

pub(crate) fn failure(signals: &[Signal]) -> Failure {
    match signals.last() {
        Some(Signal::Failed(failure)) => (**failure).clone(),
        _ => panic!("no failure: {signals:?}"),
    }
}

pub(crate) fn text(signal: &Signal) -> Option<&str> {
    match signal {
        Signal::Step(step) => step.events.iter().find_map(|event| match event {
            Event::Text { text, .. } => Some(text.as_str()),
            _ => None,
        }),
        _ => None,
    }
}

/// Signals in short: texts as they are, failures with kind, stage and status.
pub(crate) fn tell(signals: &[Signal]) -> String {
    let word = |signal: &Signal| match signal {
        Signal::Step(step) => step.events.iter().map(event).collect::<Vec<_>>().join("+"),
        Signal::Failed(failure) => {
            let status = failure.status.map_or_else(|| "-".to_owned(), |status| status.to_string());
            format!("Failed({} {:?} {status})", failure.kind.name(), failure.stage)
        }
        other => format!("{other:?}"),
    };
    signals.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn event(event: &Event) -> String {
    match event {
        Event::Text { text, .. } => text.clone(),
        Event::Finish { .. } => "Finish".to_owned(),
        other => format!("{other:?}"),
    }
}

pub(crate) fn open(server: &RawServer) -> BoxStream<'static, Signal> {
    http(&server.url()).open(call(""))
}

pub(crate) async fn told(server: &RawServer) -> String {
    tell(&rest(&mut open(server)).await)
}

/// A whole turn.
pub(crate) async fn answer(conn: &mut Conn) {
    conn.events().await;
    conn.chunk("data: text a\n\ndata: finish\n\ndata: [DONE]\n\n").await;
    conn.end().await;
}
