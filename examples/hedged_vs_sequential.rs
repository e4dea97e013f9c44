//! Sequential fallback and hedged requests, side by side over the same turns of an incident: one in twenty first tokens
//! of the first choice comes ten seconds late.
//!
//! `cargo run --release --example hedged_vs_sequential` simulates them in virtual time.
//! `… -- --url http://127.0.0.1:8080 --model voice` asks a running Segue, with hedges and, by a header, without.
#![expect(clippy::print_stdout, reason = "this is what an example is for")]

mod stage;

use clap::Parser;
use segue::bench::failover::{Experiment, Latency, Mode, Policy};
use segue::bench::listener::Place;
use segue::bench::stats::Sample;
use segue::bench::table::{Table, millis, or_none, percent};
use segue::bench::{failover_real, plot};
use stage::Options;
use std::error::Error;

pub(crate) const ABOUT: &str =
    "Sequential fallback and hedged requests, side by side over the same turns of an incident.";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let mut table = Table::new(["policy", "first token p50 ms", "p95", "p99", "duplicate requests"]);
    let mut lines: Vec<(&str, Sample)> = Vec::new();
    if let Some(place) = options.place()? {
        let turns = options.turns.unwrap_or(100);
        let without = place.clone().with_header("x-segue-hedge", "off")?;
        for (name, place) in [("sequential", without), ("hedged", place)] {
            let sample = asked(&place, turns, options.seed).await;
            table.row(row(name, &sample, None));
            lines.push((name, sample));
        }
    } else {
        let turns = options.turns.unwrap_or(5000);
        let experiment = Experiment { turns, seed: options.seed, ..Experiment::default() };
        println!(
            "{turns} turns in virtual time; the first choice's first token has its p99 at 800 ms, the fallback is 300 ms \
             slower,\n{} of turns meet a first token that is ten seconds late\n",
            percent(experiment.share)
        );
        for policy in [Policy::Sequential, Policy::Hedged] {
            let cell = experiment.cell(Latency::LogNormal, Mode::Slow, policy);
            table.row(row(policy.name(), &cell.first_tokens, Some(cell.account.duplicate_requests)));
            lines.push((policy.name(), cell.first_tokens));
        }
    }
    println!("{table}");
    let lines: Vec<(&str, &Sample)> = lines.iter().map(|(name, sample)| (*name, sample)).collect();
    let svg = plot::tails("Hedged and sequential", "time to the first token", &lines)?;
    let path = options.plot.unwrap_or_else(|| std::env::temp_dir().join("hedged_vs_sequential.svg"));
    std::fs::write(&path, svg)?;
    println!("plot: {}", path.display());
    Ok(())
}

async fn asked(place: &Place, turns: usize, seed: u64) -> Sample {
    let experiment = Experiment { turns, warm: 0, rate: 4.0, seed, ..Experiment::default() };
    let heard = failover_real::run(&experiment, 0..turns, place).await;
    Sample::new(heard.iter().filter_map(|(_, turn)| turn.first).map(|first| first.as_secs_f64() * 1e3))
}

fn row(name: &str, sample: &Sample, duplicates: Option<f64>) -> [String; 5] {
    let at = |percent| or_none(sample.percentile(percent), millis);
    [name.to_owned(), at(50.0), at(95.0), at(99.0), or_none(duplicates, percent)]
}
