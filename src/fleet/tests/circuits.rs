//! Circuits, rests and what is learned.

use super::*;

#[tokio::test(start_paused = true)]
async fn an_attempt_says_what_its_upstream_says_after_the_line() {
    let (fleet, heard) = one(strict(), ConnectionLimits::default(), |_| good());
    let signals = finish(fleet.open(ask("m"))).await;
    assert!(matches!(signals[..3], [Signal::Queued, Signal::Sent, Signal::Opened]), "{signals:?}");
    assert_eq!((signals.len(), signals.last()), (7, Some(&Signal::Ended)));
    let view = circuit(&fleet, "m");
    assert_eq!((view.successes, view.failures, view.in_flight), (1, 0, 0));
    assert_eq!(heard.live.load(Ordering::SeqCst), 0);
    assert_at_rest(&fleet);
}

#[tokio::test(start_paused = true)]
async fn a_circuit_is_shown_in_the_agreed_shape() {
    let (fleet, _) = one(strict(), ConnectionLimits::default(), |_| refusal(Kind::Overloaded, None));
    for _ in 0..3 {
        finish(fleet.open(ask("m"))).await;
    }
    let json = serde_json::to_value(fleet.circuits(now())).unwrap();
    let circuit = &json[0];
    assert_eq!(circuit["connection"], "a");
    assert_eq!(circuit["model"], "m");
    assert_eq!(circuit["state"], "open");
    assert_eq!(circuit["failures"], 3);
    assert_eq!(circuit["successes"], 0);
    assert_eq!(circuit["in_flight"], 0);
    let until = circuit["resting_until"].as_str().unwrap();
    assert!(until.len() == 20 && until.starts_with("20") && until.ends_with('Z'), "{until}");
    advance(60 * SECOND).await;
    let json = serde_json::to_value(fleet.circuits(now())).unwrap();
    assert_eq!((&json[0]["state"], &json[0]["resting_until"]), (&"half_open".into(), &serde_json::Value::Null));
    let journal = serde_json::to_value(fleet.journal(0)).unwrap();
    assert_eq!((&journal[0]["to"], &journal[0]["cause"]), (&"open".into(), &"consecutive".into()));
}

#[tokio::test(start_paused = true)]
async fn dropped_at_any_moment_it_gives_everything_back() {
    for polls in 0..8 {
        let limits = ConnectionLimits { in_flight: Some(1), ..ConnectionLimits::default() };
        let (fleet, heard) = one(strict(), limits, |_| good());
        let mut attempt = fleet.open(ask("m"));
        for _ in 0..polls {
            attempt.next().await;
        }
        drop(attempt);
        assert_eq!(heard.live.load(Ordering::SeqCst), 0, "after {polls} signals");
        assert_at_rest(&fleet);
        if polls > 1 {
            assert_eq!((circuit(&fleet, "m").successes, circuit(&fleet, "m").failures), (0, 0));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_ends_frees_its_slot_before_it_is_judged() {
    let limits = ConnectionLimits { in_flight: Some(1), ..ConnectionLimits::default() };
    let (fleet, _) = one(strict(), limits, |_| good());
    let mut first = fleet.open(ask("m"));
    while first.next().await.is_some() {}
    assert_eq!(circuit(&fleet, "m").in_flight, 0);
    let second = timeout(SECOND, finish(fleet.open(ask("m")))).await.expect("the slot is free");
    assert_eq!(second.last(), Some(&Signal::Ended));
    first.settle(Verdict::Fail);
    assert_eq!((circuit(&fleet, "m").failures, circuit(&fleet, "m").successes), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn an_open_circuit_refuses_at_once_and_says_until_when() {
    let (fleet, heard) = one(strict(), ConnectionLimits::default(), |_| refusal(Kind::ServerError, None));
    for _ in 0..3 {
        finish(fleet.open(ask("m"))).await;
    }
    let declined = refused(fleet.open(ask("m"))).await;
    let Declined::CircuitOpen { until: Some(until) } = declined else { panic!("{declined:?}") };
    let wait = until - now();
    assert!(4 * SECOND < wait && wait <= 6 * SECOND, "{wait:?}");
    assert_eq!(fleet.availability(&target("m"), Who::default(), now()), Availability::Open { until });
    let other = fleet.availability(&target("other"), Who::default(), now());
    assert_eq!(other, Availability::Ready, "circuits are per model");
    assert_eq!(lock(&heard.calls).len(), 3);
}

/// A fleet whose one circuit is half-open; from then on all goes well.
async fn half_open() -> (Fleet, Arc<Heard>) {
    let script = |n| if n < 3 { refusal(Kind::Connect, None) } else { good() };
    let (fleet, heard) = one(strict(), ConnectionLimits::default(), script);
    for _ in 0..3 {
        finish(fleet.open(ask("m"))).await;
    }
    advance(7 * SECOND).await;
    assert_eq!(fleet.availability(&target("m"), Who::default(), now()), Availability::Trial);
    (fleet, heard)
}

#[tokio::test(start_paused = true)]
async fn only_a_new_turn_with_somebody_behind_it_tries() {
    let (fleet, _) = half_open().await;
    refused(fleet.open(Ask { delivered: true, ..ask("m") })).await;
    refused(fleet.open(Ask { others: false, ..ask("m") })).await;
    let mut trial = fleet.open(ask("m"));
    trial.next().await;
    trial.next().await;
    refused(fleet.open(ask("m"))).await;
    refused(fleet.open(Ask { last_resort: true, ..ask("m") })).await;
    assert!(matches!(fleet.availability(&target("m"), Who::default(), now()), Availability::Open { .. }));
    until_progress(&mut trial).await;
    assert_eq!(fleet.availability(&target("m"), Who::default(), now()), Availability::Ready);
    trial.settle(Verdict::Fail);
    assert_eq!(circuit(&fleet, "m").state, State::Open, "the same turn failed later");
}

#[tokio::test(start_paused = true)]
async fn a_trial_that_is_dropped_makes_room_and_two_must_not_be_raced_again() {
    let (fleet, _) = half_open().await;
    for _ in 0..2 {
        assert!(fleet.may_hedge(&target("m")));
        let mut trial = fleet.open(ask("m"));
        trial.next().await;
        trial.next().await;
        drop(trial);
    }
    assert!(!fleet.may_hedge(&target("m")));
    finish(fleet.open(ask("m"))).await;
    assert_eq!((circuit(&fleet, "m").state, fleet.may_hedge(&target("m"))), (State::Closed, true));
}

#[tokio::test(start_paused = true)]
async fn as_a_last_resort_one_at_a_time_passes_an_open_circuit() {
    let script = |n| if n < 4 { refusal(Kind::Connect, None) } else { good() };
    let (fleet, heard) = one(strict(), ConnectionLimits::default(), script);
    for _ in 0..3 {
        finish(fleet.open(ask("m"))).await;
    }
    let last = || Ask { last_resort: true, others: false, ..ask("m") };
    let mut first = fleet.open(last());
    first.next().await;
    first.next().await;
    refused(fleet.open(last())).await;
    finish(first).await;
    assert_eq!(circuit(&fleet, "m").state, State::Open);
    finish(fleet.open(last())).await;
    assert_eq!((circuit(&fleet, "m").state, lock(&heard.calls).len()), (State::Closed, 5));
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_rests_one_key_and_is_no_failure() {
    let script = |n| if n == 0 { refusal(Kind::RateLimited, Some(2 * SECOND)) } else { good() };
    let (fleet, heard) = one(Policy { consecutive: 1, ..Policy::default() }, ConnectionLimits::default(), script);
    let tenant = || {
        let mut ask = ask("m");
        ask.call.credential = Some("key-T1".into());
        ask
    };
    finish(fleet.open(tenant())).await;
    let Availability::Resting { until } = fleet.availability(&target("m"), owning("key-T1"), now()) else { panic!() };
    assert_eq!(until - now(), 2 * SECOND, "without the jitter: what a client is told");
    let Declined::Resting { until, .. } = refused(fleet.open(tenant())).await else { panic!("it does not rest") };
    assert_eq!(until, now() + 2 * SECOND);
    assert_eq!(fleet.availability(&target("m"), Who::default(), now()), Availability::Ready);
    assert_eq!(finish(fleet.open(ask("m"))).await.last(), Some(&Signal::Ended), "the platform's key is free");
    assert_eq!((circuit(&fleet, "m").state, circuit(&fleet, "m").failures), (State::Closed, 0));
    assert_eq!(circuit(&fleet, "m").resting_until, None);

    sleep(until - now()).await;
    let before = now();
    finish(fleet.open(tenant())).await;
    let sent = *lock(&heard.calls).last().unwrap();
    assert!(before <= sent && sent < before + SECOND, "it waits in line for the jitter: {:?}", sent - before);
}

#[tokio::test(start_paused = true)]
async fn a_day_of_rest_is_cut_to_the_cap() {
    let limits = ConnectionLimits { retry_after_cap: 60 * SECOND, ..ConnectionLimits::default() };
    let (fleet, _) = one(strict(), limits, |_| refusal(Kind::RateLimited, Some(86_400 * SECOND)));
    finish(fleet.open(ask("m"))).await;
    let Availability::Resting { until } = fleet.availability(&target("m"), Who::default(), now()) else { panic!() };
    assert_eq!(until - now(), 60 * SECOND);
    assert!(circuit(&fleet, "m").resting_until.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_tenants_refused_key_is_that_tenants_affair() {
    let (fleet, _) = one(strict(), ConnectionLimits::default(), |_| refusal(Kind::Auth, None));
    let mut own = ask("m");
    own.call.credential = Some("key-T1".into());
    finish(fleet.open(own)).await;
    assert!(matches!(fleet.availability(&target("m"), owning("key-T1"), now()), Availability::Open { .. }));
    assert_eq!(fleet.availability(&target("m"), owning("key-T2"), now()), Availability::Ready);
    finish(fleet.open(ask("m"))).await;
    assert!(
        matches!(fleet.availability(&target("m"), owning("key-T2"), now()), Availability::Open { .. }),
        "ours is all's"
    );
}

#[tokio::test(start_paused = true)]
async fn latencies_are_learned_with_those_who_gave_up() {
    let (fleet, _) = one(Policy::default(), ConnectionLimits::default(), |n| {
        if n % 5 == 4 { vec![(3600 * SECOND, Signal::Opened)] } else { good() }
    });
    let place = target("m");
    assert_eq!(fleet.first_token_percentile(&place, 90.0), None);
    for _ in 0..100 {
        let _ = timeout(400 * MS, finish(fleet.open(ask("m")))).await;
    }
    let near = |time: Option<Duration>, ms: u32| {
        time.is_some_and(|time| ms * MS <= time && time <= (ms + 1) * MS + ms * MS / 50)
    };
    assert!(near(fleet.first_token_percentile(&place, 50.0), 100), "{:?}", fleet.first_token_percentile(&place, 50.0));
    assert!(fleet.first_token_percentile(&place, 90.0) >= Some(400 * MS), "a fifth never answered in 400 ms");
    assert!(near(fleet.gap_percentile(&place, 95.0), 20), "{:?}", fleet.gap_percentile(&place, 95.0));
    assert_eq!(circuit(&fleet, "m").failures, 0);
}

#[tokio::test(start_paused = true)]
async fn races_that_a_slow_target_loses_open_its_circuit() {
    let latency = Latency { p95: Some(200 * MS), over_baseline: None, baseline: None };
    let policy = Policy { latency, ..Policy::default() };
    let (fleet, _) = one(policy, ConnectionLimits::default(), |_| vec![(SECOND, Signal::Opened)]);
    for _ in 0..150 {
        let _ = timeout(400 * MS, finish(fleet.open(ask("m")))).await;
    }
    assert_eq!(circuit(&fleet, "m").failures, 0);
    assert_eq!(fleet.journal(0).first().map(|entry| (entry.to, entry.cause)), Some((State::Open, Cause::Latency)));
}

#[tokio::test(start_paused = true)]
async fn races_that_a_target_loses_in_mid_turn_open_its_circuit_too() {
    let latency = Latency { p95: Some(800 * MS), over_baseline: None, baseline: None };
    // One in five falls silent after its first word, and is given up for another after a second, or after half of one.
    for (patience, opens) in [(SECOND, true), (500 * MS, false)] {
        let policy = Policy { latency: latency.clone(), ..Policy::default() };
        let (fleet, _) =
            one(
                policy,
                ConnectionLimits::default(),
                |n| {
                    if n % 5 == 4 { vec![(100 * MS, text("Hel"))] } else { good() }
                },
            );
        for _ in 0..250 {
            let mut attempt = fleet.open(ask("m"));
            let all = async { while attempt.next().await.is_some() {} };
            let overtaken = timeout(100 * MS + patience, all).await.is_err();
            // Whoever gives up has listened until then.
            let _ = timeout(Duration::ZERO, attempt.next()).await;
            attempt.settle(if overtaken { Verdict::Abandon } else { Verdict::Serve });
        }
        let cause = fleet.journal(0).first().map(|entry| entry.cause);
        assert_eq!(cause, opens.then_some(Cause::Latency), "given up after {patience:?}");
        assert_eq!(circuit(&fleet, "m").failures, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn an_operator_holds_a_whole_connection_open() {
    let (fleet, heard) = one(strict(), ConnectionLimits::default(), |_| good());
    finish(fleet.open(ask("m"))).await;
    assert_eq!(fleet.force("a", None, Force::Open), 1);
    assert_eq!(fleet.force("b", None, Force::Open), 0);
    for model in ["m", "one-that-comes-later"] {
        refused(fleet.open(Ask { last_resort: true, ..ask(model) })).await;
        assert!(matches!(fleet.availability(&target(model), Who::default(), now()), Availability::Open { .. }));
    }
    assert_eq!(fleet.force("a", Some("m"), Force::Auto), 1);
    finish(fleet.open(ask("m"))).await;
    refused(fleet.open(ask("another"))).await;
    fleet.force("a", None, Force::Auto);
    finish(fleet.open(ask("another"))).await;
    assert_eq!(lock(&heard.calls).len(), 3);
    let journal = fleet.journal(0);
    assert_eq!(
        journal.iter().map(|entry| (entry.number, entry.to)).collect::<Vec<_>>(),
        [(1, State::Open), (2, State::Closed)]
    );
    assert_eq!(fleet.journal(1).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn refused_prefills_are_remembered_by_model() {
    let (fleet, _) = one(strict(), ConnectionLimits::default(), |_| good());
    let lacks = |model: &str| fleet.is_lacking(&target(model), PREFILL, None);
    assert!(!lacks("m"));
    fleet.learn_lack(&target("m"), PREFILL, Who::default(), b"{}", false);
    assert!(lacks("m") && !lacks("n"));
    for body in [&b"a"[..], b"a", b"b"] {
        fleet.learn_lack(&target("n"), PREFILL, Who::default(), body, true);
        assert!(!lacks("n"), "its words alone, in two different requests");
    }
    fleet.learn_lack(&target("n"), PREFILL, Who::default(), b"c", true);
    assert!(lacks("n"));
    assert!(!fleet.is_lacking(&target("n"), "another", None));
}

#[tokio::test(start_paused = true)]
async fn whoever_names_any_model_does_not_fill_the_memory() {
    let (fleet, _) = one(strict(), ConnectionLimits::default(), |_| refusal(Kind::BadRequest, None));
    for n in 0..1500 {
        finish(fleet.open(ask(&format!("m{n}")))).await;
    }
    assert_eq!(fleet.circuits(now()).len(), 1024);
    assert!(fleet.circuits(now()).iter().any(|view| &*view.model == "m1499"));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_gone_is_unavailable() {
    let (fleet, _) = one(strict(), ConnectionLimits::default(), |_| good());
    let gone = Ask { target: Arc::new(Target::new("b", "m", DialectId::Chat)), ..ask("m") };
    assert!(matches!(fleet.availability(&gone.target, Who::default(), now()), Availability::Open { .. }));
    assert!(matches!(refused(fleet.open(gone)).await, Declined::Unfit(_)));
}
