//! What it costs to read server-sent events, and that a long line costs what its bytes cost.
#![expect(
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a benchmark stops where it fails and reads the clock"
)]

use bytes::Bytes;
use criterion::{BatchSize, Criterion, Throughput};
use segue::sse::Decoder;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// What fits into one TCP segment on an Ethernet.
const PACKET: usize = 1460;

const MIB: usize = 1 << 20;

fn main() {
    cost_is_linear();
    let mut criterion = Criterion::default().configure_from_args();
    deltas(&mut criterion);
    lines(&mut criterion);
    criterion.final_summary();
}

/// Reads all of `pieces`; gives the number of items.
fn read(pieces: &[Bytes]) -> usize {
    let mut decoder = Decoder::new(64 * MIB);
    let mut items = 0;
    for piece in pieces {
        decoder.push(piece.clone());
        while let Some(item) = decoder.next().expect("within the limit") {
            black_box(item);
            items += 1;
        }
    }
    items
}

fn packets(text: &[u8]) -> Vec<Bytes> {
    text.chunks(PACKET).map(Bytes::copy_from_slice).collect()
}

fn line(bytes: usize) -> Vec<Bytes> {
    packets(&[&b"data: "[..], &b"x".repeat(bytes), b"\n\n"].concat())
}

fn delta(number: usize) -> String {
    format!("data: {{\"id\":\"c-1\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\" word{number}\"}}}}]}}\n\n")
}

/// Small events as models send them: each in a piece of its own, or many in one.
fn deltas(criterion: &mut Criterion) {
    const COUNT: usize = 1024;
    let mut group = criterion.benchmark_group("sse/delta");
    group.throughput(Throughput::Elements(COUNT as u64));
    let single: Vec<Bytes> = (0..COUNT).map(|number| Bytes::from(delta(number))).collect();
    let joined = vec![Bytes::from(single.concat())];
    let cut = packets(&joined[0]);
    for (name, pieces) in [("one a piece", &single), ("all in one piece", &joined), ("in packets", &cut)] {
        assert_eq!(read(pieces), COUNT);
        group.bench_function(name, |bencher| bencher.iter(|| read(black_box(pieces))));
    }
    group.finish();
}

/// One long line in packets.
fn lines(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sse/line");
    group.sample_size(20);
    for mib in [1, 4] {
        let pieces = line(mib * MIB);
        group.throughput(Throughput::Bytes((mib * MIB) as u64));
        group.bench_function(format!("{mib} MiB"), |bencher| {
            bencher.iter_batched_ref(|| pieces.clone(), |pieces| read(pieces), BatchSize::LargeInput);
        });
    }
    group.finish();
}

/// Four times the bytes cost at most five times the time: the best of several, compared within this run, so that the
/// machine and what else it does do not matter.
fn cost_is_linear() {
    const ROUNDS: usize = 15;
    const MOST: f64 = 5.0;
    let (short, long) = (line(MIB), line(4 * MIB));
    let time = |pieces: &[Bytes]| {
        let start = Instant::now();
        assert_eq!(read(black_box(pieces)), 1);
        start.elapsed()
    };
    let mut best = [Duration::MAX; 2];
    for _ in 0..ROUNDS {
        best = [best[0].min(time(&short)), best[1].min(time(&long))];
    }
    let ratio = best[1].as_secs_f64() / best[0].as_secs_f64();
    assert!(ratio <= MOST, "4 MiB cost {ratio:.1} times what 1 MiB cost: {:?} and {:?}", best[1], best[0]);
}
