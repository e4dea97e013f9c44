//! Fifteen hours of elevated errors in virtual time, as a provider's status page would tell of them: up to one request
//! in eight fails. What clients see of it, and what the circuit does all day.
//!
//! `cargo run --release --example incident` plays it in seconds. `… -- --shape flat` plays the day on which 8 % of requests
//! fail for fifteen and a half hours without a pause, first tokens take twice as long, and ten turns a second come: 630,000
//! turns in a minute or two; `--hours 2` cuts it short.
//! `… -- --url http://127.0.0.1:8080 --model normal` listens to a running gateway instead, for as many turns as it is
//! told to, and says what was heard.
#![expect(clippy::print_stdout, reason = "this is what an example is for")]

mod stage;

use clap::{Parser, ValueEnum};
use segue::bench::failover::Experiment;
use segue::bench::failover_real;
use segue::bench::incident::{Day, Played};
use segue::bench::stats::Sample;
use segue::bench::table::{Table, millis, or_none, percent};
use stage::Options;
use std::error::Error;
use std::io::{IsTerminal, Write, stderr};
use std::time::Duration;

/// The options of all examples, and how the day goes.
#[derive(Debug, Parser)]
#[command(about = ABOUT)]
struct Wishes {
    #[command(flatten)]
    options: Options,
    /// How the incident goes on.
    #[arg(long, value_enum, default_value = "swells")]
    shape: Shape,
    /// How long it lasts; an hour before and after it all is well.
    #[arg(long, value_name = "H")]
    hours: Option<f64>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shape {
    /// Up to 12 % of requests fail, at three turns a second.
    Swells,
    /// 8 % of them fail all the time and first tokens take twice as long, at ten turns a second.
    Flat,
}

pub(crate) const ABOUT: &str =
    "Fifteen hours of elevated errors in virtual time: what clients see, and what the circuit does.";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let Wishes { options, shape, hours } = Wishes::parse();
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
    let mut day = match shape {
        Shape::Swells => Day::default(),
        Shape::Flat => Day::flat(),
    };
    day.seed = options.seed;
    if let Some(hours) = hours {
        day.lasts = Duration::try_from_secs_f64(hours * 3600.0)?;
    }
    let shows = stderr().is_terminal();
    let played = day.play(|hour| {
        if shows {
            let _ = write!(stderr(), "\rhour {hour} ");
        }
    });
    if shows {
        let _ = write!(stderr(), "\r          \r");
    }
    println!("{}", table(&played));
    summary(&played);
    Ok(())
}

fn table(played: &Played) -> Table {
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
    let seconds = |at: Option<f64>| or_none(at, |at| format!("{at:.0} s"));
    let overhead = played.account.incident_overhead_ms.unwrap_or_default();
    println!(
        "{} turns; {} would have met an error, {} did; {} were not told to the character\n\
         of {} turns during the incident the fallback served {}, in part or whole\n\
         the closed circuit opened {} times, first {} after the incident began, and closed for good {} after its end\n\
         {} of prompts were sent twice; from a failure to the fallback's first token {} ms",
        played.turns,
        played.struck,
        played.failed,
        played.garbled,
        played.during,
        percent(played.by_fallback as f64 / played.during.max(1) as f64),
        played.trips,
        seconds(played.noticed),
        seconds(played.recovered),
        percent(played.account.duplicate_prompt_share),
        millis(overhead),
    );
}
