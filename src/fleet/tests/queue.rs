//! The line: order, quotas, patience, and leaving it.

use super::*;
use futures::future::join_all;

fn limits(in_flight: Option<usize>, rpm: Option<u64>, tpm: Option<u64>) -> ConnectionLimits {
    ConnectionLimits { in_flight, rpm, tpm, ..ConnectionLimits::default() }
}

/// When the calls came, from `start`.
fn calls(heard: &Heard, start: Instant) -> Vec<Duration> {
    lock(&heard.calls).iter().map(|at| *at - start).collect()
}

#[tokio::test(start_paused = true)]
async fn a_storm_onto_a_small_provider_is_spread_out() {
    let (fleet, heard) = one(strict(), limits(None, Some(15), None), |_| good());
    let start = now();
    let turns = (0..100).map(|_| finish(fleet.open(Ask { patience: 600 * SECOND, ..ask("m") })));
    join_all(turns).await;
    let calls = calls(&heard, start);
    assert_eq!(calls.len(), 100);
    assert_eq!(calls.iter().filter(|at| **at < SECOND).count(), 1, "the burst");
    let mut off = Vec::new();
    for (n, at) in calls.iter().enumerate().skip(1) {
        let tick = n as u32 * 4 * SECOND;
        assert!(tick <= *at && *at <= tick + SECOND, "call {n} at {at:?}");
        off.push(*at - tick);
    }
    assert!(off.iter().max().unwrap().abs_diff(*off.iter().min().unwrap()) > 300 * MS, "not on the tick: {off:?}");
    assert_at_rest(&fleet);
}

#[tokio::test(start_paused = true)]
async fn whoever_would_wait_too_long_is_told_at_once() {
    let (fleet, heard) = one(strict(), limits(None, Some(15), None), |_| good());
    let start = now();
    let turns = (0..10).map(|_| finish(fleet.open(ask("m"))));
    let ends = join_all(turns).await;
    let unavailable: Vec<_> = ends
        .iter()
        .filter_map(|signals| match signals.last() {
            Some(Signal::Declined(declined)) => Some(declined),
            _ => None,
        })
        .collect();
    assert_eq!(unavailable.len(), 7, "one at once, and two within 8 s");
    for declined in unavailable {
        let Declined::Queue { until: Some(until), .. } = **declined else { panic!("{declined:?}") };
        assert!(start + 8 * SECOND < until, "{declined:?}");
    }
    assert_eq!(calls(&heard, start).len(), 3);
    assert_at_rest(&fleet);
}

#[tokio::test(start_paused = true)]
async fn the_line_keeps_its_order_and_its_slots() {
    let (fleet, heard) = one(strict(), limits(Some(2), None, None), |_| good());
    let start = now();
    let order = Arc::new(Mutex::new(Vec::new()));
    let turns = (0..10).map(|n| {
        let (fleet, order) = (fleet.clone(), Arc::clone(&order));
        async move {
            let mut attempt = fleet.open(ask("m"));
            attempt.next().await;
            sleep(n * MS).await;
            attempt.next().await;
            lock(&order).push(n);
            finish(attempt).await;
        }
    });
    join_all(turns).await;
    assert_eq!(*lock(&order), (0..10).collect::<Vec<_>>());
    assert_eq!(heard.most.load(Ordering::SeqCst), 2);
    let last = *calls(&heard, start).last().unwrap();
    assert!(4 * 140 * MS <= last && last < 4 * 150 * MS, "two by two: {last:?}");
    assert_at_rest(&fleet);
}

#[tokio::test(start_paused = true)]
async fn who_leaves_the_line_leaves_no_gap() {
    let (fleet, heard) = one(strict(), limits(Some(1), Some(100), None), |_| good());
    let start = now();
    let patient = || Ask { patience: 600 * SECOND, ..ask("m") };
    let mut line: Vec<_> = (0..30).map(|_| fleet.open(patient())).collect();
    for attempt in &mut line {
        assert_eq!(attempt.next().await, Some(Signal::Queued));
        let _ = timeout(Duration::ZERO, attempt.next()).await;
    }
    assert!(0 < circuit(&fleet, "m").queued);
    let mut stay = Vec::new();
    for (n, attempt) in line.into_iter().enumerate() {
        if n % 3 == 0 {
            stay.push(finish(attempt));
        }
    }
    join_all(stay).await;
    let calls = calls(&heard, start);
    assert_eq!(calls.len(), 10);
    assert!(*calls.last().unwrap() < 2 * SECOND, "the burst of ten is for those who stayed: {calls:?}");
    assert_at_rest(&fleet);
}

#[tokio::test(start_paused = true)]
async fn a_circuit_that_opens_meanwhile_sends_the_line_away() {
    let (fleet, heard) = one(strict(), limits(Some(1), None, None), |_| refusal(Kind::Connect, None));
    let ends = join_all((0..20).map(|_| finish(fleet.open(ask("m"))))).await;
    assert_eq!(lock(&heard.calls).len(), 3);
    let away = ends.iter().filter(|signals| {
        matches!(&signals[..], [Signal::Queued, Signal::Declined(why)] if matches!(**why, Declined::CircuitOpen { .. }))
    });
    assert_eq!(away.count(), 17);
    assert_at_rest(&fleet);
}

#[tokio::test(start_paused = true)]
async fn who_is_sent_away_costs_nothing() {
    let script = |n| if n < 3 { refusal(Kind::Connect, None) } else { good() };
    let (fleet, heard) = one(strict(), limits(Some(1), Some(100), None), script);
    let ends = join_all((0..8).map(|_| finish(fleet.open(ask("m"))))).await;
    assert_eq!(ends.iter().filter(|signals| signals.len() == 2).count(), 5, "sent away after the line");
    fleet.force("a", Some("m"), Force::Close);
    let start = now();
    join_all((0..7).map(|_| finish(fleet.open(ask("m"))))).await;
    let last = calls(&heard, start)[9];
    assert!(last < SECOND, "three of the burst of ten were used, and seven are left: {last:?}");
    finish(fleet.open(ask("m"))).await;
    assert_at_rest(&fleet);
}

#[tokio::test(start_paused = true)]
async fn tokens_are_settled_by_usage() {
    let used = Usage { prompt: Some(300), completion: Some(100), ..Usage::default() };
    let (fleet, heard) = one(strict(), limits(None, None, Some(10_000)), move |n| match n {
        0 => vec![(MS, Signal::Step(Step::of(Event::Usage(Box::new(used.clone()))))), (MS, Signal::Ended)],
        1 => refusal(Kind::Overloaded, None),
        _ => good(),
    });
    let ask = |estimate| Ask { estimate, ..ask("m") };
    let start = now();
    // Of a thousand at once, 900 are reserved and 500 given back; what is refused costs nothing.
    finish(fleet.open(ask(900))).await;
    finish(fleet.open(ask(550))).await;
    finish(fleet.open(ask(590))).await;
    assert!(calls(&heard, start)[2] < SECOND, "{:?}", calls(&heard, start));
    finish(fleet.open(ask(500))).await;
    let wait = calls(&heard, start)[3];
    assert!(2 * SECOND < wait && wait < 4 * SECOND, "the estimate stands where no usage came: {wait:?}");
}

fn broken() -> Signal {
    Signal::Failed(Box::new(Failure::new(Kind::Reset, Stage::Streaming)))
}

#[tokio::test(start_paused = true)]
async fn the_answer_is_reserved_and_what_is_not_used_of_it_comes_back() {
    let used = Usage { prompt: Some(100), completion: Some(50), ..Usage::default() };
    let (fleet, heard) = one(strict(), limits(None, None, Some(10_000)), move |n| match n {
        0 => vec![
            (MS, Signal::Step(Step::of(Event::Usage(Box::new(used.clone()))))),
            (MS, Signal::Step(Step::of(Event::Finish { choice: 0, reason: Finish::Stop, stop_sequence: None }))),
            (SECOND, Signal::Ended),
        ],
        // Nobody tells the usage of one that breaks: it is what was asked and what was heard.
        1 => vec![(MS, text(&"word ".repeat(80))), (MS, broken())],
        _ => good(),
    });
    let ask = |answer| Ask { answer, ..ask("m") };
    let start = now();
    // Of a thousand at once, all are reserved, so the second waits; by settling it goes when the first is over.
    let (first, second) = (fleet.open(ask(5000)), fleet.open(ask(700)));
    join_all([finish(first), finish(second)]).await;
    let second = calls(&heard, start)[1];
    assert!(4 * SECOND < second && second < 6 * SECOND, "it waited for what was reserved: {second:?}");
    finish(fleet.open(ask(700))).await;
    let third = calls(&heard, start)[2] - second;
    assert!(third < 2 * SECOND, "a hundred and what was said, not eight hundred: {third:?}");
    assert_at_rest(&fleet);
}

#[tokio::test(start_paused = true)]
async fn a_line_for_slots_ends_with_ones_patience() {
    let (fleet, _) = one(strict(), limits(Some(1), None, None), |_| vec![(3600 * SECOND, Signal::Opened)]);
    let mut first = fleet.open(ask("m"));
    first.next().await;
    first.next().await;
    let start = now();
    let signals = finish(fleet.open(Ask { patience: 3 * SECOND, ..ask("m") })).await;
    assert!(matches!(&signals[..], [Signal::Queued, Signal::Declined(why)] if matches!(**why, Declined::Queue { .. })));
    assert!((3 * SECOND..3 * SECOND + 10 * MS).contains(&(now() - start)));
    drop(first);
    assert_at_rest(&fleet);
}
