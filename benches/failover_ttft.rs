//! What a simulated failover turn costs, under each policy: the price of one sample of first-token time. The samples
//! themselves are told by `segue bench failover`.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use segue::bench::failover::{Experiment, Latency, Mode, Policy};
use std::hint::black_box;

/// Turns to a measurement, warm-up included.
const TURNS: usize = 200;

fn failover_ttft(c: &mut Criterion) {
    let mut group = c.benchmark_group("failover_ttft");
    group.throughput(Throughput::Elements(TURNS as u64)).sample_size(20);
    for mode in [Mode::Slow, Mode::Stall] {
        for policy in [Policy::Sequential, Policy::Hedged, Policy::Speculative] {
            // Every fourth turn is struck, so that failover is what is measured.
            let experiment = Experiment { turns: TURNS - 40, warm: 40, share: 0.25, ..Experiment::default() };
            let id = BenchmarkId::new(policy.name(), mode.name());
            group.bench_with_input(id, &experiment, |b, experiment| {
                b.iter(|| black_box(experiment.cell(Latency::LogNormal, mode, policy)));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, failover_ttft);
criterion_main!(benches);
