//! `segue bench`: what failover costs and keeps, as tables, JSON and plots.

use super::results::{progress, say, write};
use super::{Failed, bench_continuity, log};
use crate::bench::failover::{self, CELLS, Cell, Experiment, Latency, Mode, Policy};
use crate::bench::failover_real::{self, Providers};
use crate::bench::listener::Place;
use crate::bench::machine::Machine;
use crate::bench::plot;
use crate::bench::stats::Summary;
use crate::bench::table::{Table, millis, or_none, percent};
use crate::gateway::Gateway;
use crate::server;
use crate::server::listen::{self, Manners};
use clap::Subcommand;
use serde_json::json;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Measure what failover costs.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

/// What can be measured.
#[derive(Debug, Subcommand)]
enum What {
    /// First-token time and longest silence during an incident, under each policy.
    ///
    /// In virtual time every turn is simulated on the gateway's own state machine, budgets and percentiles: the same
    /// seed gives the same numbers on every machine.
    #[command(after_help = EXAMPLES)]
    Failover(Box<FailoverArguments>),
    /// What of a conversation is left after its provider failed, and whether the text is one text.
    ///
    /// A fact is told, other things are talked of, a provider fails as a manifest says, and the fact is asked for. Three
    /// ways to fail over are measured in this process, or any other gateway at --url.
    #[command(after_help = bench_continuity::EXAMPLES)]
    Continuity(Box<bench_continuity::Arguments>),
}

/// How to measure failover.
#[derive(Debug, clap::Args)]
struct FailoverArguments {
    /// Turns for each policy, distribution and fault [default: 10000; over sockets 200].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    turns: Option<u32>,
    /// Determines every latency and every fault.
    #[arg(long, value_name = "S", default_value_t = 42)]
    seed: u64,
    /// Share of turns that a fault strikes.
    #[arg(long, value_name = "SHARE", default_value_t = 0.05, value_parser = share)]
    share: f64,
    /// Let circuits open, as they do in service; without it every turn meets the fault.
    #[arg(long)]
    circuits: bool,
    /// Write everything to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw distributions into this directory, as SVG.
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
    /// Over loopback sockets and in real time, instead of virtual time.
    #[arg(long)]
    real: bool,
    /// Measure this gateway (Chat Completions) instead of Segue's own.
    #[arg(long, value_name = "URL", requires = "model")]
    url: Option<String>,
    /// The model to ask it for.
    #[arg(long, value_name = "MODEL", requires = "url")]
    model: Option<String>,
    /// The environment variable that holds its key.
    #[arg(long, value_name = "NAME", requires = "url")]
    key_env: Option<String>,
    /// Run the scripted providers of the incident at these two addresses, for the gateway at `--url` to be configured
    /// with: first choice and fallback.
    #[arg(long, value_name = "ADDR,ADDR", value_parser = pair, requires = "url")]
    providers: Option<[SocketAddr; 2]>,
}

/// Runs the benchmark.
pub(super) async fn run(args: &Args) -> Result<ExitCode, Failed> {
    log::start("warn")?;
    let arguments = match &args.what {
        What::Continuity(arguments) => return bench_continuity::run(arguments).await,
        What::Failover(arguments) => arguments,
    };
    let real = arguments.real || arguments.url.is_some();
    let turns = arguments.turns.unwrap_or(if real { REAL_TURNS } else { TURNS });
    let experiment = Experiment {
        seed: arguments.seed,
        turns: turns as usize,
        warm: if real { REAL_WARM } else { Experiment::default().warm },
        share: arguments.share,
        circuits: arguments.circuits,
        ..Experiment::default()
    };
    say(&heading(&experiment, arguments, real))?;
    let cells = match &arguments.url {
        Some(url) => elsewhere(&experiment, url, arguments).await?,
        None if real => sockets(&experiment).await?,
        None => {
            let bar = progress(CELLS);
            let cells = tokio::task::block_in_place(|| experiment.run(|done| bar.set_position(done as u64)));
            bar.finish_and_clear();
            cells
        }
    };
    say(&tables(&cells, arguments.url.is_none()))?;
    if let Some(path) = &arguments.json {
        let report = json!({
            "benchmark": "failover", "virtual_time": !real, "machine": Machine::this(), "seed": experiment.seed,
            "turns": experiment.turns, "share": experiment.share, "circuits": experiment.circuits, "cells": cells,
        });
        write(path, &(format!("{report:#}\n")))?;
        say(&format!("written: {}", path.display()))?;
    }
    if let Some(directory) = &arguments.plots {
        let count = draw(&cells, directory)?;
        say(&format!("drawn: {count} plots in {}", directory.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Serves `gateway` on a free port until the token is cancelled; gives its address.
async fn front(gateway: Gateway, stop: CancellationToken) -> Result<String, Failed> {
    let setup = |error: std::io::Error| Failed::Setup(format!("no loopback port to listen on: {error}"));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(setup)?;
    let address = listener.local_addr().map_err(setup)?;
    let manners = Manners { client_write: Duration::from_secs(30), drain: Duration::ZERO };
    tokio::spawn(async move { listen::serve(listener, server::routes(gateway), manners, stop).await });
    Ok(format!("http://{address}"))
}

/// The incident over sockets. One distribution: the other differs in its tail, which a few turns do not show.
async fn sockets(experiment: &Experiment) -> Result<Vec<Cell>, Failed> {
    let providers = start(experiment, [LOOPBACK; 2]).await?;
    let policies = [Policy::Sequential, Policy::Hedged, Policy::Speculative];
    let bar = progress(Mode::ALL.len() * policies.len());
    let mut cells = Vec::new();
    for mode in Mode::ALL {
        for policy in policies {
            let gateway = failover_real::gateway(experiment, policy, &providers).map_err(Failed::Setup)?;
            let stop = CancellationToken::new();
            let url = front(gateway.clone(), stop.clone()).await?;
            let place = Place::new(&url, "bench", None).map_err(Failed::Setup)?;
            let key = (Latency::LogNormal, mode, policy);
            cells.push(failover_real::cell(experiment, key, &providers, &place, Some(&gateway)).await);
            stop.cancel();
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    failover::relate(&mut cells);
    Ok(cells)
}

/// Another gateway: as it is, or with the scripted providers behind it.
async fn elsewhere(experiment: &Experiment, url: &str, arguments: &FailoverArguments) -> Result<Vec<Cell>, Failed> {
    let key = match &arguments.key_env {
        None => None,
        Some(name) => {
            Some(std::env::var(name).map_err(|_| Failed::Setup(format!("--key-env: the variable {name} is not set")))?)
        }
    };
    let model = arguments.model.as_deref().unwrap_or_default();
    let place = Place::new(url, model, key.as_deref()).map_err(Failed::Setup)?;
    let bar = progress(1);
    let policy = Policy::Sequential;
    let mut cells = Vec::new();
    if let Some(addresses) = arguments.providers {
        let providers = start(experiment, addresses).await?;
        say(&format!(
            "first choice  {}\nfallback      {}\nboth speak Chat Completions and Messages, any model, any key\n",
            providers.primary.base_url(),
            providers.secondary.base_url()
        ))?;
        bar.set_length(Mode::ALL.len() as u64);
        for mode in Mode::ALL {
            let key = (Latency::LogNormal, mode, policy);
            cells.push(failover_real::cell(experiment, key, &providers, &place, None).await);
            bar.inc(1);
        }
        failover::relate(&mut cells);
        // There is one policy, and so nothing that it could be held against.
        cells.iter_mut().for_each(|cell| cell.penalty_removed = None);
    } else {
        let turns = failover_real::run(experiment, 0..experiment.turns, &place).await;
        if let Some(error) = turns.iter().find_map(|(_, heard)| heard.error.as_ref()) {
            say(&format!("the first error: {error}"))?;
        }
        cells.push(failover_real::as_it_is(&turns));
    }
    bar.finish_and_clear();
    Ok(cells)
}

async fn start(experiment: &Experiment, at: [SocketAddr; 2]) -> Result<Providers, Failed> {
    Providers::start(experiment, at).await.map_err(|error| {
        Failed::Setup(format!(
            "the providers cannot listen on {} and {}: {error}; choose other addresses",
            at[0], at[1]
        ))
    })
}

// === telling ===

fn heading(experiment: &Experiment, arguments: &FailoverArguments, real: bool) -> String {
    let time = if real { "real time, loopback sockets" } else { "virtual time" };
    let circuits = if experiment.circuits { "circuits open and close" } else { "circuits never open" };
    let subject = match &arguments.url {
        Some(url) => format!("the gateway at {url}"),
        None => format!(
            "first target's first token p99 800 ms, second 300 ms slower; {} of turns struck; first_token {} ms, stall \
             {} ms, suspect {} ms; {circuits}",
            percent(experiment.share),
            experiment.timeouts.first_token.as_millis(),
            experiment.timeouts.stall.as_millis(),
            experiment.suspect.as_millis(),
        ),
    };
    format!(
        "segue bench failover: {} turns a row, seed {}, {time}\n{subject}\n{}\n",
        experiment.turns,
        experiment.seed,
        Machine::this()
    )
}

fn tables(cells: &[Cell], ours: bool) -> String {
    let mut text = String::new();
    let mut latencies: Vec<Latency> = cells.iter().map(|c| c.latency).collect();
    latencies.dedup();
    for latency in latencies {
        let of: Vec<&Cell> = cells.iter().filter(|c| c.latency == latency).collect();
        text += &format!("{}, milliseconds\n{}\n", latency.name(), waits(&of, ours));
        if ours {
            text += &format!("{}, what it costs\n{}\n", latency.name(), costs(&of));
        }
    }
    text
}

fn waits(cells: &[&Cell], ours: bool) -> Table {
    let mut table = Table::new([
        "fault",
        "policy",
        "first p50",
        "p95",
        "p99",
        "p99 penalty",
        "removed",
        "silence p50",
        "p95",
        "p99",
        "whole",
        "exact",
    ]);
    let mut before = None;
    for cell in cells {
        if before.replace(cell.mode).is_some_and(|mode| mode != cell.mode) {
            table.rule();
        }
        let of = |summary: Option<Summary>, what: fn(&Summary) -> f64| or_none(summary.as_ref().map(what), millis);
        table.row([
            cell.mode.name().to_owned(),
            if ours { cell.policy.name().to_owned() } else { "its own".to_owned() },
            of(cell.first_token, |s| s.p50),
            of(cell.first_token, |s| s.p95),
            of(cell.first_token, |s| s.p99),
            or_none(cell.p99_penalty_ms, millis),
            or_none(cell.penalty_removed, percent),
            of(cell.silence, |s| s.p50),
            of(cell.silence, |s| s.p95),
            of(cell.silence, |s| s.p99),
            percent(cell.completed),
            or_none(cell.exact, percent),
        ]);
    }
    table
}

fn costs(cells: &[&Cell]) -> Table {
    let mut table = Table::new([
        "fault",
        "policy",
        "failover",
        "hedged",
        "hedges won",
        "duplicate requests",
        "duplicate prompt tokens",
        "wasted tokens",
        "steady-state overhead",
        "incident overhead",
    ]);
    let mut before = None;
    for cell in cells {
        if before.replace(cell.mode).is_some_and(|mode| mode != cell.mode) {
            table.rule();
        }
        let account = &cell.account;
        let some = |ms: Option<f64>| or_none(ms, |ms| format!("{} ms", millis(ms)));
        table.row([
            cell.mode.name().to_owned(),
            cell.policy.name().to_owned(),
            percent(account.failover_rate),
            percent(account.hedge_rate),
            or_none(account.hedge_win_rate, percent),
            percent(account.duplicate_requests),
            percent(account.duplicate_prompt_share),
            percent(account.wasted_token_share),
            some(account.steady_state_overhead_ms),
            some(account.incident_overhead_ms),
        ]);
    }
    table
}

/// Draws first tokens and silences of each distribution and fault.
fn draw(cells: &[Cell], directory: &Path) -> Result<usize, Failed> {
    std::fs::create_dir_all(directory)
        .map_err(|error| Failed::Setup(format!("--plots {}: {error}", directory.display())))?;
    let mut count = 0;
    for latency in Latency::ALL {
        for mode in Mode::ALL {
            let of: Vec<&Cell> = cells.iter().filter(|c| (c.latency, c.mode) == (latency, mode)).collect();
            if of.is_empty() {
                continue;
            }
            let title = format!("{}, {} latency", mode.name(), latency.name());
            let first: Vec<plot::Line<'_>> = of.iter().map(|c| (c.policy.name(), &c.first_tokens)).collect();
            let silence: Vec<plot::Line<'_>> = of.iter().map(|c| (c.policy.name(), &c.silences)).collect();
            let kinds = [
                ("first-token", "time to the first token", first),
                ("silence", "longest silence in mid-turn", silence),
            ];
            for (file, axis, lines) in kinds {
                let svg = plot::tails(&title, axis, &lines).map_err(|why| Failed::Setup(why.to_string()))?;
                let name = format!("{file}-{}-{}.svg", latency.name(), mode.name().replace(' ', "-"));
                write(&directory.join(name), &svg)?;
                count += 1;
            }
        }
    }
    Ok(count)
}

fn pair(text: &str) -> Result<[SocketAddr; 2], String> {
    let wrong = || "two addresses are needed, such as 127.0.0.1:9101,127.0.0.1:9102".to_owned();
    let (first, second) = text.split_once(',').ok_or_else(wrong)?;
    let address = |text: &str| text.trim().parse().map_err(|_| wrong());
    Ok([address(first)?, address(second)?])
}

fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| "a share is a number from 0 to 1".to_owned())?;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err("a share is a number from 0 to 1".to_owned()) }
}

const EXAMPLES: &str = "\
Examples:
  segue bench failover
  segue bench failover --json failover.json --plots plots/
  segue bench failover --real --turns 100
  segue bench failover --url http://127.0.0.1:4000 --model gpt-4.1 --key-env GATEWAY_KEY --turns 50
  segue bench continuity

Exit codes:
  0  measured
  1  the reader of the output left
  2  the arguments are wrong, or something could not be set up";

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// Turns a row in virtual time.
const TURNS: u32 = 10_000;
/// Turns a row over sockets.
const REAL_TURNS: u32 = 200;
/// Healthy turns before them: as many as percentiles need, and some.
const REAL_WARM: usize = 60;

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;

    #[test]
    fn every_cell_stands_in_the_tables_and_is_drawn() {
        let experiment = Experiment { turns: 60, warm: 30, ..Experiment::default() };
        let cells = experiment.run(|_| {});
        assert_eq!(cells.len(), CELLS);
        let text = tables(&cells, true);
        for word in ["log-normal", "heavy-tailed", "slow first token", "speculative, prefill", "steady-state"] {
            assert!(text.contains(word), "{word}");
        }
        let directory = std::env::temp_dir().join(format!("segue-plots-{}", std::process::id()));
        assert_eq!(draw(&cells, &directory).unwrap(), 2 * Latency::ALL.len() * Mode::ALL.len());
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn providers_are_two_addresses() {
        assert_eq!(pair("127.0.0.1:1, 127.0.0.1:2").map(|pair| pair.map(|a| a.port())), Ok([1, 2]));
        assert!(pair("127.0.0.1:1").is_err() && pair("a,b").is_err());
    }

    #[test]
    fn a_share_lies_between_nothing_and_all() {
        assert_eq!(share("0.05"), Ok(0.05));
        assert!(share("1.5").is_err() && share("x").is_err() && share("NaN").is_err());
    }
}
