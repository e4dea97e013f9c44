//! The rules of one connection, in time that is moved by hand.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's panic is its report")]

use super::*;
use crate::event::{Event, Finish, Signal, Step, Usage};
use crate::failure::{Failure, Kind, RetryAt, Stage};
use crate::health::breaker::Policy;
use std::collections::BinaryHeap;

mod blame;
mod rest;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

fn start() -> Instant {
    tokio::time::Instant::now().into_std()
}

fn healthy(seed: u64) -> Connection {
    Connection::new(Policy::default(), Limits::default(), seed)
}

fn wish(by: Plaintiff, others: bool) -> Wish {
    Wish { model: "m".into(), by, may_try: others, last_resort: false, others, prompt: 100, estimate: 100 }
}

fn text() -> Signal {
    Signal::Step(Step::of(Event::Text { choice: 0, text: "Hello.".into() }))
}

fn limited(kind: Kind, wait: Option<Duration>) -> Failure {
    let mut failure = Failure::new(kind, Stage::Refused);
    failure.retry_at = wait.map(RetryAt::In);
    failure
}

fn failed(failure: &Failure) -> Signal {
    Signal::Failed(Box::new(failure.clone()))
}

/// Lets one attempt through that fails like this, and judges it.
fn fail(connection: &mut Connection, wish: &Wish, failure: &Failure, now: Instant) {
    let mut flight = connection.admit(wish, now).unwrap();
    if flight.note(&failed(failure), now) {
        connection.hear(&mut flight, now);
    }
    connection.settle(flight, None, failure.verdict(), now);
}

/// The same with one that serves.
fn serve(connection: &mut Connection, wish: &Wish, now: Instant) {
    let mut flight = connection.admit(wish, now).unwrap();
    for signal in [Signal::Opened, text(), Signal::Ended] {
        if flight.note(&signal, now) {
            connection.hear(&mut flight, now);
        }
    }
    connection.settle(flight, None, Verdict::Serve, now);
}

#[test]
fn a_report_far_from_what_was_sent_does_not_use_up_a_quota_for_hours() {
    let now = start();
    let limits = Limits { tpm: Some(60_000), ..Limits::default() };
    let mut connection = Connection::new(Policy::default(), limits, 1);
    let used = Usage { prompt: Some(99_999_999), completion: Some(99_999_999), ..Usage::default() };
    let reservation = connection.reserve(100, now).unwrap();
    let mut flight = connection.admit(&wish(Plaintiff::default(), false), now).unwrap();
    let finish = Event::Finish { choice: 0, reason: Finish::Stop, stop_sequence: None };
    for signal in [text(), Signal::Step(Step::of(Event::Usage(Box::new(used)))), Signal::Step(Step::of(finish))] {
        if flight.note(&signal, now) {
            connection.hear(&mut flight, now);
        }
    }
    connection.settle(flight, Some(reservation), Verdict::Serve, now);
    let wait = connection.expect(0, 100, now) - now;
    assert!(60 * SECOND < wait && wait < 300 * SECOND, "{wait:?}");
}

#[test]
fn honest_reports_are_believed_whatever_nobody_saw() {
    assert_eq!(super::super::quota::believed(700, 100, UNSEEN), 700);
    assert_eq!(super::super::quota::believed(20_000, 100, UNSEEN), 20_000, "pictures");
    assert_eq!(super::super::quota::believed(100_000, 50, HIDDEN), 100_000, "thoughts");
    assert_eq!(super::super::quota::believed(800_000, 100_000, UNSEEN), 800_000);
    assert_eq!(super::super::quota::believed(99_999_999, 100_000, UNSEEN), 800_000);
    assert_eq!(super::super::quota::believed(u64::MAX, u64::MAX, UNSEEN), u64::MAX);
}

#[test]
fn a_fault_of_our_own_is_nobodys_failure() {
    let (now, mut connection) = (start(), healthy(1));
    for _ in 0..100 {
        fail(
            &mut connection,
            &wish(Plaintiff::default(), true),
            &Failure::new(Kind::Connect, Stage::Connecting).ours(),
            now,
        );
    }
    let view = connection.views(now).pop().unwrap();
    assert_eq!((view.state, view.counts.failed), (State::Closed, 0));
}
