//! Any bytes, from clients and from providers: nothing panics, nothing costs more than its bytes justify, what is written
//! is well-formed, and how a stream is cut changes nothing.
//!
//! Inputs are made from real-shaped ones (the transcripts of `tests/golden`, and the bodies in `corpus`) by a seeded
//! mutator, so that a finding can be played again: `SEGUE_FUZZ_SEED=n`. `SEGUE_FUZZ_SECONDS=3600` runs for as long; without
//! it, a few thousand inputs are tried. `fuzz/` has targets for libFuzzer, where there is a compiler for it.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test's panic is its report; it reads its own settings"
)]

mod corpus;
mod mutate;
mod targets;

use mutate::Mutator;
use rustix::time::{ClockId, clock_gettime};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use targets::Target;

#[test]
fn requests() {
    run("requests", &corpus::requests(), &targets::REQUESTS);
}

#[test]
fn answers() {
    run("answers", &corpus::transcripts(), &targets::STREAMS);
}

#[test]
fn bodies() {
    run("bodies", &corpus::bodies(), &targets::BODIES);
}

/// Tries inputs until the time is up, or a few thousand of them. Each target is given each input.
fn run(name: &str, corpus: &[Vec<u8>], targets: &[Target]) {
    let setting = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    assert!(corpus.len() > 5, "{name}: there is nothing to start from");
    let until = setting("SEGUE_FUZZ_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let from = setting("SEGUE_FUZZ_SEED");
    let start = Instant::now();
    let (mut tried, mut bytes, mut slowest) = (0_u64, 0, Duration::ZERO);
    // Each run with a time of its own tries other inputs.
    let first = from.unwrap_or_else(|| until.map_or(0, |_| u64::from(std::process::id()) << 40));
    for seed in first.. {
        let enough = match (from, until) {
            (Some(_), _) => seed > first,
            (None, Some(until)) => Instant::now() >= until,
            (None, None) => seed >= INPUTS,
        };
        if enough {
            break;
        }
        let input = Mutator::new(seed).input(corpus);
        for target in targets {
            slowest = slowest.max(try_one(name, seed, &input, target));
        }
        tried += 1;
        bytes += input.len();
    }
    let seconds = start.elapsed().as_secs_f64();
    let each = f64::from(u32::try_from(tried).unwrap_or(u32::MAX)) / seconds;
    println!("{name}: {tried} inputs of {bytes} bytes in {seconds:.0} s ({each:.0} a second), the slowest {slowest:?}");
}

/// One input at one target, within its budget. The time of the thread.
fn try_one(name: &str, seed: u64, input: &[u8], target: &Target) -> Duration {
    let mut least = Duration::MAX;
    for _ in 0..ROUNDS {
        let before = now();
        let mut outcome = Ok(());
        let heap = allocation_counter::measure(|| outcome = catch_unwind(AssertUnwindSafe(|| (target.play)(input))));
        least = least.min(now().saturating_sub(before));
        let place =
            || format!("{name}, {}, SEGUE_FUZZ_SEED={seed}, input {:?}", target.name, String::from_utf8_lossy(input));
        if outcome.is_err() {
            panic!("it panicked: {}", place());
        }
        let most = HEAP + HEAP_PER_BYTE * input.len() as u64;
        assert!(heap.bytes_max <= most, "{} bytes of heap at once: {}", heap.bytes_max, place());
        if least <= TIME + TIME_PER_BYTE * u32::try_from(input.len()).unwrap_or(u32::MAX) {
            return least;
        }
    }
    panic!(
        "it took {least:?}: {name}, {}, SEGUE_FUZZ_SEED={seed}, input {:?}",
        target.name,
        String::from_utf8_lossy(input)
    );
}

fn now() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// How many inputs are tried where no time is given.
const INPUTS: u64 = 1500;

/// The budget of one input: CPU time and heap, and more of both for each of its bytes. The time is for a build without
/// optimisation; what is not linear is over it by far.
const TIME: Duration = Duration::from_millis(30);
const TIME_PER_BYTE: Duration = Duration::from_micros(30);
const HEAP: u64 = 1 << 20;
const HEAP_PER_BYTE: u64 = 1000;

/// How often an input that takes too long is tried again.
const ROUNDS: u32 = 4;
