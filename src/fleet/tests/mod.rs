//! The fleet over scripted upstreams, on paused time.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's panic is its report")]

use super::*;
use crate::chat::DialectId;
use crate::dialect::{self, Expect, WireRequest};
use crate::event::{Event, Finish, Signal, Step, Usage};
use crate::failure::{Failure, Kind, RetryAt, Stage, Verdict};
use crate::health::breaker::{Cause, Latency, State};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::time::{advance, sleep, timeout};

mod circuits;
mod queue;
mod random;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// What an upstream does at its n-th call: signals, each after a pause. Then silence.
type Script = dyn Fn(usize) -> Vec<(Duration, Signal)> + Send + Sync;

/// An upstream that plays a script, and knows how many of its streams live.
struct Scripted {
    script: Box<Script>,
    heard: Arc<Heard>,
}

#[derive(Default)]
struct Heard {
    /// When it was called, in order.
    calls: Mutex<Vec<Instant>>,
    live: AtomicUsize,
    most: AtomicUsize,
}

/// Counts a stream for as long as it lives.
struct Life(Arc<Heard>);

impl Upstream for Scripted {
    fn open(&self, _: Call) -> BoxStream<'static, Signal> {
        let mut calls = lock(&self.heard.calls);
        let script = (self.script)(calls.len());
        calls.push(now());
        let life = Life::new(Arc::clone(&self.heard));
        Box::pin(async_stream::stream! {
            let _life = life;
            yield Signal::Sent;
            for (pause, signal) in script {
                sleep(pause).await;
                yield signal;
            }
            std::future::pending::<()>().await;
        })
    }
}

impl Life {
    fn new(heard: Arc<Heard>) -> Self {
        heard.most.fetch_max(heard.live.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        Self(heard)
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.0.live.fetch_sub(1, Ordering::SeqCst);
    }
}

fn text(text: &str) -> Signal {
    Signal::Step(Step::of(Event::Text { choice: 0, text: text.into() }))
}

/// A turn that takes 100 ms to its first word and 20 ms to each further one.
fn good() -> Vec<(Duration, Signal)> {
    let finish = Event::Finish { choice: 0, reason: Finish::Stop, stop_sequence: None };
    vec![
        (50 * MS, Signal::Opened),
        (50 * MS, text("Hel")),
        (20 * MS, text("lo")),
        (20 * MS, Signal::Step(Step::of(finish))),
        (Duration::ZERO, Signal::Ended),
    ]
}

fn refusal(kind: Kind, retry_at: Option<Duration>) -> Vec<(Duration, Signal)> {
    let mut failure = Failure::new(kind, Stage::Refused);
    failure.retry_at = retry_at.map(RetryAt::In);
    vec![(10 * MS, Signal::Failed(Box::new(failure)))]
}

/// A fleet with one connection, `a`.
fn one(
    breaker: Policy,
    limits: ConnectionLimits,
    script: impl Fn(usize) -> Vec<(Duration, Signal)> + Send + Sync + 'static,
) -> (Fleet, Arc<Heard>) {
    let heard = Arc::new(Heard::default());
    let upstream = Scripted { script: Box::new(script), heard: Arc::clone(&heard) };
    let connection = Connection { name: "a".into(), upstream: Arc::new(upstream), breaker, limits };
    (Fleet::new(vec![connection], 7), heard)
}

/// Three failures in a row open it.
fn strict() -> Policy {
    Policy { consecutive: 3, ..Policy::default() }
}

fn target(model: &str) -> Arc<Target> {
    Arc::new(Target::new("a", model, DialectId::Chat))
}

fn ask(model: &str) -> Ask {
    let wire = WireRequest { path: "/x".into(), headers: Vec::new(), body: Bytes::new(), dropped: Vec::new() };
    let call = Call {
        provider: dialect::provider(DialectId::Chat).unwrap(),
        wire,
        expect: Expect::of(1),
        connect: SECOND,
        error_body: SECOND,
        max_event: 1 << 20,
        credential: None,
        secrets: Default::default(),
    };
    Ask {
        target: target(model),
        call,
        tenant: None,
        form: Form::default(),
        delivered: false,
        others: true,
        last_resort: false,
        patience: 8 * SECOND,
        estimate: 100,
        answer: 0,
    }
}

/// A tenant with its own credential.
fn owning(credential: &str) -> Who<'_> {
    Who { credential: Some(credential), ..Who::default() }
}

/// Reads an attempt to its end and settles it as its failure says.
async fn finish(mut attempt: Attempt) -> Vec<Signal> {
    let mut heard = Vec::new();
    while let Some(signal) = attempt.next().await {
        heard.push(signal);
    }
    attempt.settle(match heard.last() {
        Some(Signal::Failed(failure)) => failure.kind.verdict(),
        Some(Signal::Ended) => Verdict::Serve,
        _ => Verdict::Abandon,
    });
    heard
}

/// Reads until the first progress.
async fn until_progress(attempt: &mut Attempt) {
    while let Some(signal) = attempt.next().await {
        if matches!(&signal, Signal::Step(step) if step.is_progress()) {
            return;
        }
    }
    panic!("it made no progress");
}

/// Why an attempt is not made; it says nothing else.
async fn refused(attempt: Attempt) -> Declined {
    match &finish(attempt).await[..] {
        [Signal::Declined(declined)] => declined.as_ref().clone(),
        other => panic!("not refused at once: {other:?}"),
    }
}

fn circuit(fleet: &Fleet, model: &str) -> CircuitView {
    fleet.circuits(now()).into_iter().find(|view| &*view.model == model).expect("a circuit")
}

/// Everything came back.
fn assert_at_rest(fleet: &Fleet) {
    for view in fleet.circuits(now()) {
        assert_eq!((view.in_flight, view.queued), (0, 0), "{view:?}");
    }
    for gate in fleet.inner.gates.values() {
        gate.assert_at_rest();
    }
}
