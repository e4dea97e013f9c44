//! What the state machine adds to each event of a turn: one step, what is kept of it, and a whole turn of 200 events.

#![expect(clippy::disallowed_methods, reason = "a start for a clock that is moved by hand")]

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use segue::chat::DialectId;
use segue::chat::modality::Modalities;
use segue::event::{Event, Finish, Signal, Step};
use segue::failure::{Failure, Kind, Stage};
use segue::relay::{Action, AttemptId, Policy, Relay};
use segue::routing::plan::Candidate;
use segue::routing::{Level, Target, Timeouts};
use segue::turn::Turn;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Events of a whole turn.
const EVENTS: u32 = 200;

fn text() -> Step {
    Step::of(Event::Text { choice: 0, text: " quick brown".to_owned() })
}

fn begin(now: Instant) -> Relay {
    let timeouts = Timeouts { suspect: Some(Duration::from_millis(400)), ..Timeouts::default() };
    let candidates = ["a", "b"].map(|name| {
        let mut candidate = Candidate::new(Arc::new(Target::new(name, "m", DialectId::Chat)), timeouts);
        candidate.hedge_after = Some(Duration::from_millis(200));
        candidate
    });
    let policy = Policy {
        level: Arc::new(Level::new("bench", Vec::new())),
        choices: 1,
        max_tokens: None,
        prompt_estimate: 100,
        asked_in: Modalities::NONE,
        continuable: true,
        structured: false,
        races: true,
        max_turn: 1 << 25,
        whole: false,
        retry_after_cap: Duration::from_secs(60),
        deadline: Duration::from_secs(300),
        seed: 1,
    };
    Relay::new(policy, candidates.to_vec(), now)
}

/// Takes everything that the relay wants done, as a driver does.
fn act(relay: &mut Relay) -> usize {
    let mut count = 0;
    while let Some(action) = relay.poll_action() {
        if let Action::Emit(step) = action {
            black_box(step);
        }
        count += 1;
    }
    black_box(relay.poll_timeout());
    count
}

/// A relay in the middle of a turn.
fn running(now: Instant) -> Relay {
    let mut relay = begin(now);
    relay.handle_signal(AttemptId(0), Signal::Sent, now);
    relay.handle_signal(AttemptId(0), Signal::Opened, now);
    relay.handle_signal(AttemptId(0), Signal::Step(text()), now);
    act(&mut relay);
    relay
}

fn whole(now: Instant, breaks: bool) -> usize {
    let mut relay = begin(now);
    let mut id = AttemptId(0);
    let mut actions = act(&mut relay);
    relay.handle_signal(id, Signal::Sent, now);
    relay.handle_signal(id, Signal::Opened, now);
    for event in 0..EVENTS {
        let at = now + Duration::from_millis(u64::from(event) * 20);
        if breaks && event == EVENTS / 2 {
            let failure = Failure::new(Kind::Reset, Stage::Streaming);
            relay.handle_signal(id, Signal::Failed(Box::new(failure)), at);
            actions += act(&mut relay);
            id = AttemptId(1);
            relay.handle_signal(id, Signal::Sent, at);
        }
        relay.handle_signal(id, Signal::Step(text()), at);
        actions += act(&mut relay);
    }
    let end = now + Duration::from_secs(10);
    let finish = Event::Finish { choice: 0, reason: Finish::Stop, stop_sequence: None };
    relay.handle_signal(id, Signal::Step(Step::of(finish)), end);
    relay.handle_signal(id, Signal::Ended, end);
    actions + act(&mut relay)
}

fn steps(c: &mut Criterion) {
    let now = Instant::now();
    let mut group = c.benchmark_group("relay");
    group.throughput(Throughput::Elements(u64::from(EVENTS)));
    group.bench_function("step", |b| {
        b.iter_batched_ref(
            || running(now),
            |relay| {
                for event in 0..EVENTS {
                    let at = now + Duration::from_millis(u64::from(event) * 20);
                    relay.handle_signal(AttemptId(0), Signal::Step(text()), at);
                    act(relay);
                }
            },
            BatchSize::SmallInput,
        );
    });
    group.bench_function("turn of 200 events", |b| b.iter(|| black_box(whole(now, false))));
    group.bench_function("turn of 200 events, spliced", |b| b.iter(|| black_box(whole(now, true))));
    group.finish();
}

fn absorb(c: &mut Criterion) {
    let mut group = c.benchmark_group("turn");
    group.throughput(Throughput::Elements(u64::from(EVENTS)));
    let step = text();
    group.bench_function("absorb", |b| {
        b.iter_batched_ref(
            || Turn::new(1 << 25, false),
            |turn| {
                for _ in 0..EVENTS {
                    let _ = black_box(turn.absorb(black_box(&step)));
                }
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

criterion_group!(benches, steps, absorb);
criterion_main!(benches);
