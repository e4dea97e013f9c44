//! What it costs to find the join of a continuation, and to pass text through once it is found.
#![expect(clippy::expect_used, reason = "a benchmark stops where it fails")]

use criterion::{Criterion, Throughput};
use segue::turn::resume::Anchor;
use segue::turn::seam::Seam;
use std::hint::black_box;
use std::sync::Arc;

const WINDOW: usize = 240;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    anchored(&mut criterion);
    trusted(&mut criterion);
    criterion.final_summary();
}

fn answer(sentences: usize) -> String {
    (0..sentences).map(|number| format!("This is sentence {number} of an answer of some length. ")).collect()
}

/// About what one token is.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let at = rest.char_indices().nth(4).map_or(rest.len(), |(at, _)| at);
        let (token, next) = rest.split_at(at);
        tokens.push(token);
        rest = next;
    }
    tokens
}

fn run(mut seam: Seam, pieces: &[&str]) -> Seam {
    for piece in pieces {
        black_box(seam.push(piece).expect("it fits"));
    }
    black_box(seam.close().expect("it fits"));
    seam
}

/// Whole continuations of an answer of some 10,000 characters.
fn anchored(criterion: &mut Criterion) {
    let delivered: Arc<str> = answer(200).into();
    let anchor = Anchor::of(&delivered);
    let rest = "And this is what the next provider adds to it.";
    let ways = [
        ("anchor", format!("{} {rest}", anchor.text)),
        ("overlap", format!("{} {rest}", &delivered[delivered.len() - 150..])),
        ("preamble", format!("Sure, continuing from where I left off:\n\n{} {rest}", anchor.text)),
        ("restart", format!("{delivered}{rest}")),
        ("verbatim", rest.to_owned()),
    ];
    let mut group = criterion.benchmark_group("seam/anchored");
    for (how, text) in &ways {
        let pieces = tokens(text);
        let seam = || Seam::anchored(Arc::clone(&delivered), &anchor, WINDOW);
        assert_eq!(run(seam(), &pieces).decided(), *how);
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(*how, |bencher| bencher.iter(|| run(seam(), black_box(&pieces))));
    }
    group.finish();
}

/// One piece where nothing is searched for.
fn trusted(criterion: &mut Criterion) {
    let text = answer(20);
    let pieces = tokens(&text);
    let mut group = criterion.benchmark_group("seam/trusted");
    group.throughput(Throughput::Elements(pieces.len() as u64));
    group.bench_function("exact", |bencher| bencher.iter(|| run(Seam::exact(), black_box(&pieces))));
    group.bench_function("trimmed", |bencher| bencher.iter(|| run(Seam::trimmed("\n\n"), black_box(&pieces))));
    group.finish();
}
