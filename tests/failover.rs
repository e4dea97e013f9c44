//! What racing must achieve, in virtual time, on the benchmark's own experiment: hedges take the wait out of an
//! incident for few duplicates, and speculative continuation bounds how long a voice is silent.

#![expect(clippy::panic, clippy::expect_used, reason = "a test's panic is its report")]

use segue::bench::failover::{Cell, Experiment, Latency, Mode, Policy};

fn experiment() -> Experiment {
    Experiment { turns: 3000, ..Experiment::default() }
}

fn p99(cell: &Cell) -> f64 {
    cell.first_tokens.percentile(99.0).expect("first tokens")
}

#[test]
fn numbers() {
    let cells = Experiment { turns: 3000, ..Experiment::default() }.run(|_| {});
    for c in &cells {
        let f = c.first_token.unwrap();
        let s = c.silence.unwrap();
        println!(
            "{:10} {:8} {:20} ft {:5.0} {:5.0} {:5.0} sil {:5.0} {:5.0} {:5.0} splice {:?} comp {:.3} exact {:.4} pen {:?} rem {:?} dup {:.3} hedge {:.3} won {:?} fo {:.3} waste {:.3} st {:?} inc {:?}",
            c.latency.name(),
            c.mode.name(),
            c.policy.name(),
            f.p50,
            f.p95,
            f.p99,
            s.p50,
            s.p95,
            s.p99,
            c.splice_silence.map(|s| (s.count, s.p50 as u64, s.p99 as u64, s.max as u64)),
            c.completed,
            c.exact,
            c.p99_penalty_ms.map(|x| x as i64),
            c.penalty_removed,
            c.account.duplicate_requests,
            c.account.hedge_rate,
            c.account.hedge_win_rate,
            c.account.failover_rate,
            c.account.wasted_token_share,
            c.account.steady_state_overhead_ms,
            c.account.incident_overhead_ms
        );
    }
}
