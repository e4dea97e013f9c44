//! Fifteen hours of elevated errors in virtual time, as a provider's status page would tell of them: up to one request
//! in eight fails. What clients see of it, and what the circuit does all day.
//!
//! `cargo run --release --example incident` plays it in seconds.
//! `… -- --url http://127.0.0.1:8080 --model normal` listens to a running gateway instead, for as many turns as it is
//! told to, and says what was heard.
#![expect(clippy::print_stdout, reason = "this is what an example is for")]

mod stage;

use clap::Parser;
use segue::bench::failover::Experiment;
use segue::bench::failover_real;
use segue::bench::incident::{Day, Played};
use segue::bench::stats::Sample;
use segue::bench::table::{Table, millis, percent};
use stage::Options;
use std::error::Error;
use std::io::{IsTerminal, Write, stderr};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    if let Some(place) = options.place()? {
        let turns = options.turns.unwrap_or(100);
        let experiment = Experiment { turns, warm: 0, rate: 2.0, seed: options.seed, ..Experiment::default() };
        let heard = failover_real::run(&experiment, 0..turns, &place).await;
        let whole = heard.iter().filter(|(_, turn)| turn.is_whole()).count();
        let silences = Sample::new(heard.iter().map(|(_, turn)| turn.silence.as_secs_f64() * 1e3));
        println!(
            "{whole} of {turns} turns were whole; longest silence p99 {} ms",
            millis(silences.percentile(99.0).unwrap_or(0.0))
        );
        for error in heard.iter().filter_map(|(_, turn)| turn.error.as_ref()).take(5) {
            println!("  {error}");
        }
        return Ok(());
    }
    let day = Day { seed: options.seed, ..Day::default() };
    let shows = stderr().is_terminal();
    let played = day.play(|hour| {
        if shows {
            let _ = write!(stderr(), "\rhour {hour} ");
        }
    });
    if shows {
        let _ = write!(stderr(), "\r          \r");
    }
    println!("{}", hours(&played));
    summary(&played);
    Ok(())
}

fn hours(played: &Played) -> Table {
    let mut table = Table::new([
        "hour",
        "errors",
        "turns",
        "served by the fallback",
        "failed",
        "circuit opened",
        "first token p99 ms",
    ]);
    for (index, hour) in played.hours.iter().enumerate() {
        table.row([
            (index + 1).to_string(),
            percent(hour.errors),
            hour.turns.to_string(),
            percent(hour.by_fallback as f64 / hour.turns.max(1) as f64),
            hour.failed.to_string(),
            hour.opened.to_string(),
            millis(hour.first_token_p99_ms),
        ]);
    }
    table
}

fn summary(played: &Played) {
    let opened = played.circuit.iter().filter(|(_, state)| *state == "open").count();
    let overhead = played.account.incident_overhead_ms.unwrap_or_default();
    println!(
        "{} turns; {} would have met an error, {} did; {} were not told to the character\n\
         the circuit opened {opened} times; {} of prompts were sent twice; from a failure to the fallback's first token {} ms",
        played.turns,
        played.struck,
        played.failed,
        played.garbled,
        percent(played.account.duplicate_prompt_share),
        millis(overhead),
    );
}
