//! A provider inside the process: plays scripts as an [`Upstream`], without sockets, on tokio's clock.
//!
//! Where that clock is paused a gateway can be tried through thousands of turns in seconds; and whoever embeds Segue
//! can see it work before there is a provider. What is open at it is counted, so that leaks are seen.

use super::origin::{Inquiry, Scripts};
use super::reading::Reading;
use super::script::Script;
use super::signals;
use super::wire::Api;
use crate::event::Signal;
use crate::failure::{Failure, Kind, Stage};
use crate::upstream::{Call, Upstream};
use futures::stream::{BoxStream, StreamExt};
use http::HeaderValue;
use serde_json::Value;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// A scripted provider. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Inside {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    scripts: Scripts,
    seed: u64,
    asked: AtomicU64,
    open: AtomicU64,
    peak: AtomicU64,
}

/// An answer under way.
struct Playing {
    /// Signals to come, and when, since the call.
    signals: VecDeque<(Duration, Signal)>,
    start: Instant,
    sleep: Pin<Box<Sleep>>,
    _open: Open,
}

/// Counts an open attempt, until it is dropped.
struct Open(Arc<Shared>);

// === impl Inside ===

impl Inside {
    /// A provider that plays `scripts`; request number `n` is played with `seed + n`.
    pub fn new(scripts: Scripts, seed: u64) -> Self {
        let counts = || AtomicU64::new(0);
        Self { shared: Arc::new(Shared { scripts, seed, asked: counts(), open: counts(), peak: counts() }) }
    }

    /// How often it was asked.
    pub fn asked(&self) -> u64 {
        self.shared.asked.load(Ordering::SeqCst)
    }

    /// How many attempts are open at it.
    pub fn open_now(&self) -> u64 {
        self.shared.open.load(Ordering::SeqCst)
    }

    /// How many were open at the same time, at most.
    pub fn peak(&self) -> u64 {
        self.shared.peak.load(Ordering::SeqCst)
    }
}

impl Upstream for Inside {
    fn open(&self, call: Call) -> BoxStream<'static, Signal> {
        let shared = Arc::clone(&self.shared);
        futures::stream::once(async move { Playing::new(shared, &call) }).flatten().boxed()
    }
}

// === impl Playing ===

impl Playing {
    fn new(shared: Arc<Shared>, call: &Call) -> Self {
        let number = shared.asked.fetch_add(1, Ordering::SeqCst);
        let signals = answer(&shared, number, call).into();
        let start = Instant::now();
        Self { signals, start, sleep: Box::pin(tokio::time::sleep_until(start)), _open: Open::new(shared) }
    }
}

impl futures::Stream for Playing {
    type Item = Signal;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Signal>> {
        let this = self.get_mut();
        let Some((at, signal)) = this.signals.front() else {
            // Where a script ends in silence the connection stays open.
            return Poll::Pending;
        };
        let due = this.start + *at;
        if Instant::now() < due {
            if this.sleep.deadline() != due {
                this.sleep.as_mut().reset(due);
            }
            if this.sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
        let last = matches!(signal, Signal::Ended | Signal::Failed(_) | Signal::Declined(_));
        let signal = this.signals.pop_front().map(|(_, signal)| signal);
        if last {
            this.signals.clear();
        }
        Poll::Ready(signal)
    }
}

// === impl Open ===

impl Open {
    fn new(shared: Arc<Shared>) -> Self {
        let open = shared.open.fetch_add(1, Ordering::SeqCst) + 1;
        shared.peak.fetch_max(open, Ordering::SeqCst);
        Self(shared)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

// === helpers ===

fn answer(shared: &Shared, number: u64, call: &Call) -> Vec<(Duration, Signal)> {
    let refused = |why: &str| {
        let failure = Failure::new(Kind::BadRequest, Stage::Refused).saying(why.to_owned());
        vec![(Duration::ZERO, Signal::Sent), (Duration::ZERO, Signal::Failed(Box::new(failure)))]
    };
    let path = &*call.wire.path;
    let (Some(api), Ok(body)) = (Api::of_path(path), serde_json::from_slice::<Value>(&call.wire.body)) else {
        return refused("this provider speaks Chat Completions and Messages, in JSON");
    };
    let model = body["model"].as_str().unwrap_or_default();
    let word = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers: Vec<_> = call.wire.headers.iter().map(|(name, value)| (name.to_string(), word(value))).collect();
    let inquiry = Inquiry { number, path, api, model, headers: &headers, body: &body };
    let script: Arc<Script> = match shared.scripts.choose(&inquiry) {
        Ok(script) => script,
        Err(super::origin::NoModel(why)) => return refused(&why),
    };
    let text = script.text();
    let reading = match api {
        Api::Chat => Reading::of_chat(&body, &text),
        Api::Anthropic => Reading::of_anthropic(&body, &text),
        Api::Responses => Reading::of_responses(&body, &text),
    };
    signals::of_reading(&script, &reading, shared.seed.wrapping_add(number))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::expect_used, reason = "a test's panic is its report")]
    use super::*;
    use crate::dialect::{self, Expect, WireRequest};

    fn call() -> Call {
        Call {
            provider: dialect::provider(crate::chat::DialectId::Chat).expect("a dialect"),
            wire: WireRequest {
                path: "/chat/completions".to_owned(),
                headers: Vec::new(),
                body: r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"go"}]}"#.into(),
                dropped: Vec::new(),
            },
            expect: Expect::of(1),
            connect: Duration::from_secs(1),
            error_body: Duration::from_secs(1),
            max_event: 1 << 20,
            credential: None,
            secrets: Default::default(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_takes_its_time_and_counts_what_is_open() {
        let script = Script::telling("One two three").paced(Duration::from_secs(2), Duration::from_secs(1));
        let provider = Inside::new(Scripts::fixed(script), 0);
        let start = Instant::now();
        let mut attempt = provider.open(call());
        assert_eq!((provider.asked(), provider.open_now()), (0, 0), "nothing happens before it is polled");
        let mut signals = Vec::new();
        while let Some(signal) = attempt.next().await {
            let last = matches!(signal, Signal::Ended);
            signals.push(signal);
            if last {
                break;
            }
        }
        assert_eq!(start.elapsed(), Duration::from_secs(4));
        assert!(matches!(signals[..], [Signal::Sent, Signal::Opened, .., Signal::Ended]));
        assert_eq!((provider.asked(), provider.open_now(), provider.peak()), (1, 1, 1));
        drop(attempt);
        assert_eq!(provider.open_now(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn to_drop_an_attempt_is_to_end_it() {
        let provider = Inside::new(Scripts::fixed(Script::telling("One two")), 0);
        let mut attempt = provider.open(call());
        assert!(matches!(attempt.next().await, Some(Signal::Sent)));
        assert_eq!(provider.open_now(), 1);
        drop(attempt);
        assert_eq!(provider.open_now(), 0);
    }
}
