//! Quotas against a bucket that is filled drop by drop.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use super::*;
use crate::health::cases;
use crate::health::jitter::Seeds;

const SECOND: Duration = Duration::from_secs(1);

fn start() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// A bucket that is filled drop by drop: what the algorithm must amount to. In units of a 60,000th, so that one
/// millisecond adds `per_minute` of them.
struct Bucket {
    per_minute: i128,
    size: i128,
    level: i128,
}

impl Bucket {
    const UNIT: i128 = 60_000;

    fn new(per_minute: u64, burst: u64) -> Self {
        let size = i128::from(burst) * Self::UNIT;
        Self { per_minute: per_minute.into(), size, level: size }
    }

    fn wait(&mut self, millis: u64) {
        for _ in 0..millis {
            self.level = (self.level + self.per_minute).min(self.size);
        }
    }

    fn has(&self, units: u64) -> bool {
        (i128::from(units) * Self::UNIT).min(self.size) <= self.level
    }

    fn add(&mut self, units: i128) {
        self.level = (self.level + units * Self::UNIT).min(self.size);
    }
}

#[test]
fn it_agrees_with_a_bucket_filled_drop_by_drop() {
    let start = start();
    // Rates whose unit costs a whole number of nanoseconds, so that the two can agree exactly.
    let rates = [1_u64, 15, 60, 600, 1000, 6000];
    for seed in 0..cases(30_000) {
        let mut seeds = Seeds::new(seed);
        let mut pick = |below: u64| seeds.draw() % below;
        let (rpm, tpm) = (rates[pick(6) as usize], rates[pick(6) as usize]);
        let (requests, tokens) = (1 + pick(8), 1 + pick(200));
        let mut quota = Quota::new(Some(Rate::new(rpm, requests)), Some(Rate::new(tpm, tokens)));
        let (mut plain_requests, mut plain_tokens) = (Bucket::new(rpm, requests), Bucket::new(tpm, tokens));
        let mut held = Vec::new();
        let mut now = start;
        for _ in 0..40 {
            match pick(10) {
                0..3 => {
                    let millis = pick(400);
                    now += Duration::from_millis(millis);
                    plain_requests.wait(millis);
                    plain_tokens.wait(millis);
                }
                3..7 => {
                    let estimate = pick(250);
                    let allowed = plain_requests.has(1) && plain_tokens.has(estimate);
                    match quota.reserve(estimate, now) {
                        Ok(reservation) => {
                            assert!(allowed, "seed {seed}: too early");
                            plain_requests.add(-1);
                            plain_tokens.add(-i128::from(reservation.tokens));
                            held.push(reservation);
                        }
                        Err(at) => {
                            assert!(!allowed, "seed {seed}: too late");
                            assert!(now < at);
                            assert_eq!(
                                quota.ready_at(estimate, at),
                                at,
                                "seed {seed}: the time it names is not enough"
                            );
                            assert!(
                                quota.ready_at(estimate, at - Duration::from_nanos(1)) == at,
                                "seed {seed}: it is too much"
                            );
                        }
                    }
                }
                7..9 if !held.is_empty() => {
                    let reservation = held.swap_remove(pick(held.len() as u64) as usize);
                    let used = pick(300);
                    plain_tokens.add(i128::from(reservation.tokens) - i128::from(used));
                    quota.settle(reservation, used, now);
                }
                _ => {
                    if let Some(reservation) = held.pop() {
                        plain_requests.add(1);
                        plain_tokens.add(reservation.tokens.into());
                        quota.release(reservation);
                    }
                }
            }
            assert_eq!(quota.outstanding(), held.len(), "seed {seed}: reservations");
        }
    }
}

#[test]
fn no_stretch_of_time_gets_more_than_the_burst_and_the_rate() {
    let start = start();
    for seed in 0..200 {
        let mut seeds = Seeds::new(seed);
        let rpm = 1 + seeds.draw() % 300;
        let mut quota = Quota::per_minute(Some(rpm), None);
        let burst = (rpm / 10).max(1);
        let mut granted = Vec::new();
        let mut now = start;
        for _ in 0..300 {
            now += Duration::from_millis(seeds.draw() % 500);
            if let Ok(reservation) = quota.reserve(0, now) {
                granted.push(now);
                quota.settle(reservation, 0, now);
            }
        }
        for (i, from) in granted.iter().enumerate() {
            for (n, to) in granted[i..].iter().enumerate() {
                let most = burst as f64 + (*to - *from).as_secs_f64() * rpm as f64 / 60.0 + 1e-6;
                assert!(n as f64 + 1.0 <= most.floor().max(1.0), "{} in {:?} at {rpm} rpm", n + 1, *to - *from);
            }
        }
    }
}

#[test]
fn what_arrives_late_is_never_a_tenth_over_in_any_minute() {
    let start = start();
    let late = Duration::from_millis(600);
    for rpm in (1..40).chain([60, 99, 600]) {
        for seed in 0..20 {
            let mut seeds = Seeds::new(seed);
            let mut quota = Quota::counted_elsewhere(Some(rpm), None, late);
            let (mut arrived, mut now) = (Vec::new(), start);
            while arrived.len() < 4 * rpm as usize {
                match quota.reserve(0, now) {
                    Ok(reservation) => {
                        quota.settle(reservation, 0, now);
                        // By half an interval at most, as the fleet's jitter is.
                        let width = late.min(quota.interval() / 2);
                        arrived.push(now + width.mul_f64((seeds.draw() % 1000) as f64 / 1000.0));
                    }
                    Err(ready) => now = ready,
                }
            }
            arrived.sort();
            let within = |n: usize| arrived[n..].iter().take_while(|at| **at - arrived[n] < 60 * SECOND).count();
            let most = (0..arrived.len()).map(within).max().unwrap();
            assert!(10 * most <= 11 * rpm as usize, "{most} arrived in a minute, at {rpm} rpm");
        }
    }
}

#[test]
fn a_hundred_at_once_are_spread_over_minutes() {
    let now = start();
    let mut quota = Quota::per_minute(Some(15), None);
    let mut at = now;
    let mut sent = Vec::new();
    for _ in 0..100 {
        loop {
            match quota.reserve(0, at) {
                Ok(reservation) => break quota.settle(reservation, 0, at),
                Err(later) => at = later,
            }
        }
        sent.push(at - now);
    }
    assert_eq!(sent.iter().filter(|at| **at < SECOND).count(), 1, "the burst");
    assert_eq!(sent.iter().filter(|at| **at < 60 * SECOND).count(), 15);
    assert_eq!(sent[99], 99 * 4 * SECOND);
}

#[test]
fn who_underestimates_pays_later() {
    let now = start();
    let mut quota = Quota::per_minute(None, Some(600));
    let reservation = quota.reserve(10, now).unwrap();
    quota.settle(reservation, 400, now);
    assert_eq!(quota.ready_at(100, now), now + 40 * SECOND);
    assert_eq!(quota.reserve(10, now).unwrap_err(), now + 35 * SECOND);
}

#[test]
fn more_than_a_burst_waits_for_a_whole_one_but_not_for_ever() {
    let now = start();
    let mut quota = Quota::per_minute(None, Some(600));
    let first = quota.reserve(5000, now).unwrap();
    assert_eq!(quota.ready_at(5000, now), now + 6 * SECOND);
    quota.release(first);
    assert_eq!(quota.ready_at(5000, now), now);
}

#[test]
fn no_limit_is_no_wait() {
    let now = start();
    let mut quota = Quota::default();
    for _ in 0..10_000 {
        let reservation = quota.reserve(u64::MAX, now).unwrap();
        quota.settle(reservation, u64::MAX, now);
    }
}
