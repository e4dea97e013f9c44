//! Random lives of many attempts at once: whatever happens to them, everything comes back.

use super::*;
use crate::health::cases;
use futures::FutureExt;
use std::collections::BTreeMap;

/// The limits of each connection, and what it heard.
type Listeners = BTreeMap<Arc<str>, (ConnectionLimits, Arc<Heard>)>;

/// A script with random pauses and a random end.
fn random_script(seed: u64, n: usize) -> Vec<(Duration, Signal)> {
    let mut seeds = Seeds::new(seed ^ n as u64);
    let mut pause = || Duration::from_millis(seeds.draw() % 400);
    let mut script = vec![(pause(), Signal::Opened)];
    script.extend((0..n % 4).map(|_| (pause(), text("word "))));
    match seeds.draw() % 6 {
        0 => script.push((MS, Signal::Failed(Box::new(Failure::new(Kind::Reset, Stage::Streaming))))),
        1 => script = refusal(Kind::ServerError, None),
        2 => script = refusal(Kind::RateLimited, Some(Duration::from_millis(seeds.draw() % 3000))),
        3 => script = refusal(Kind::Auth, None),
        4 => {}
        _ => script.push((MS, Signal::Ended)),
    }
    script
}

fn fleet(seed: u64) -> (Fleet, Listeners) {
    let mut seeds = Seeds::new(seed);
    let mut some = |least: u64, below: u64| {
        let (whether, number) = (!seeds.draw().is_multiple_of(3), least + seeds.draw() % below);
        whether.then_some(number)
    };
    let mut heard = BTreeMap::new();
    let connections = ["a", "b"].map(|name| {
        let limits = ConnectionLimits {
            in_flight: some(1, 6).map(|n| n as usize),
            rpm: some(30, 600),
            tpm: some(3000, 60_000),
            ..ConnectionLimits::default()
        };
        let listener = Arc::new(Heard::default());
        heard.insert(name.into(), (limits.clone(), Arc::clone(&listener)));
        let upstream = Scripted { script: Box::new(move |n| random_script(seed, n)), heard: listener };
        let breaker = Policy { consecutive: 3, min_samples: 5, cooldown: 500 * MS, ..Policy::default() };
        Connection { name: name.into(), upstream: Arc::new(upstream), breaker, limits }
    });
    (Fleet::new(connections.into(), seed), heard)
}

/// One attempt that is read for a while and then settled or dropped.
async fn live(fleet: Fleet, seed: u64) {
    let mut seeds = Seeds::new(seed);
    let mut pick = move |below: u64| seeds.draw() % below;
    sleep(Duration::from_millis(pick(3000))).await;
    let mut ask = ask(["m", "n"][pick(2) as usize]);
    ask.target = Arc::new(Target::new(["a", "b"][pick(2) as usize], &*ask.target.model, DialectId::Chat));
    ask.call.credential = (pick(4) == 0).then(|| "key-T".into());
    (ask.delivered, ask.others, ask.last_resort) = (pick(3) == 0, pick(3) != 0, pick(4) == 0);
    ask.patience = Duration::from_millis(pick(6000));
    (ask.estimate, ask.answer) = (pick(2000), pick(2000));
    let mut attempt = fleet.open(ask);
    let mut verdict = Verdict::Abandon;
    let (steps, bound) = (pick(12), Duration::from_millis(pick(5000)));
    let read = async {
        for _ in 0..steps {
            match attempt.next().await {
                Some(Signal::Failed(failure)) => verdict = failure.kind.verdict(),
                Some(Signal::Ended) => verdict = Verdict::Serve,
                Some(_) => {}
                None => break,
            }
        }
    };
    let _ = timeout(bound, read).await;
    if pick(2) == 0 {
        sleep(Duration::from_millis(pick(100))).await;
        attempt.settle(verdict);
    }
}

/// What holds at every moment between two steps of a single-threaded runtime.
fn check(fleet: &Fleet, heard: &Listeners) {
    for (name, (limits, heard)) in heard {
        let views = fleet.circuits(now());
        let flying: u32 = views.iter().filter(|view| view.connection == *name).map(|view| view.in_flight).sum();
        assert_eq!(flying as usize, heard.live.load(Ordering::SeqCst), "in flight is not what lives");
        let most = limits.in_flight.unwrap_or(usize::MAX);
        assert!(heard.most.load(Ordering::SeqCst) <= most, "more than {most} at once");
    }
    // Who flies has a ticket, who has a ticket has a reservation, and where slots are limited, who flies has one.
    let held = fleet.held();
    let limited = heard.values().filter(|(limits, _)| limits.in_flight.is_some());
    let limited: usize = limited.map(|(_, heard)| heard.live.load(Ordering::SeqCst)).sum();
    assert!(held.flights <= held.tickets && held.tickets <= held.reservations, "{held:?}");
    assert!(limited <= held.slots, "{limited} fly where slots are limited: {held:?}");
}

#[test]
fn whatever_happens_everything_comes_back() {
    let (mut opened, mut made) = (0, 0);
    for seed in 0..cases(400) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let (fleet, heard) = fleet(seed);
            let mut lives: Vec<_> =
                (0..40).map(|n| tokio::spawn(live(fleet.clone(), seed.wrapping_mul(1000) + n))).collect();
            // Some are torn out of the middle of whatever they do.
            while lives.iter().any(|life| !life.is_finished()) {
                sleep(97 * MS).await;
                check(&fleet, &heard);
                if let Some(life) = lives.iter().find(|life| !life.is_finished()).filter(|_| seed % 5 == 0) {
                    life.abort();
                }
            }
            for life in lives.drain(..) {
                if let Err(error) = life.await {
                    assert!(error.is_cancelled(), "seed {seed}: {error}");
                }
            }
            check(&fleet, &heard);
            assert_at_rest(&fleet);
            assert_eq!(fleet.held(), Held::default(), "seed {seed}");
            for (limits, heard) in heard.values() {
                assert_eq!(heard.live.load(Ordering::SeqCst), 0, "seed {seed}");
                let calls = lock(&heard.calls).clone();
                (opened, made) = (opened + 40, made + calls.len());
                // A call may be put off by the jitter, so a stretch may hold what was allowed a little before it.
                let Some(rpm) = limits.rpm else { continue };
                for (n, from) in calls.iter().enumerate() {
                    for (m, to) in calls[n..].iter().enumerate() {
                        let time = (*to - *from + 501 * MS).as_secs_f64();
                        let most = (rpm / 6).max(1) as f64 + time * rpm as f64 / 60.0;
                        assert!((m + 1) as f64 <= most + 1e-6, "seed {seed}: {} calls in {time} s at {rpm} rpm", m + 1);
                    }
                }
            }
        });
    }
    assert!(opened / 10 < made, "hardly any attempt was made: {made}");
}

#[test]
fn many_threads_leave_it_at_rest() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
    runtime.block_on(async {
        let limits = ConnectionLimits { in_flight: Some(8), ..ConnectionLimits::default() };
        let (fleet, heard) = one(Policy { consecutive: 0, ..Policy::default() }, limits, |n| {
            let pause = Duration::from_micros(n as u64 % 300);
            vec![(pause, Signal::Opened), (pause, text("x")), (Duration::ZERO, Signal::Ended)]
        });
        let lives: Vec<_> = (0..2000_u64)
            .map(|n| {
                let fleet = fleet.clone();
                tokio::spawn(async move {
                    let mut attempt = fleet.open(Ask { patience: 60 * SECOND, ..ask(["m", "n"][n as usize % 2]) });
                    for _ in 0..n % 7 {
                        attempt.next().await;
                    }
                    if n % 3 != 0 { attempt.settle(Verdict::Serve) } else { drop(attempt) }
                })
            })
            .collect();
        let all = futures::future::join_all(lives);
        for life in timeout(60 * SECOND, all).await.expect("nobody waits for ever") {
            life.unwrap();
        }
        assert!(heard.most.load(Ordering::SeqCst) <= 8);
        assert_at_rest(&fleet);
        assert!(fleet.open(ask("m")).next().now_or_never().is_some());
    });
}
