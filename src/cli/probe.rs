//! `segue probe`: what the targets of a configuration do, and the clocks that follow from it.

use super::environment::Environment;
use super::paint::{Ink, Paint};
use super::stop::Signals;
use super::{Failed, log, problems, results, serve};
use crate::bench::probe::proposal::{self, Proposal};
use crate::bench::probe::{self, Measured, PROMPT_TOKENS, Probe, Subject, THINKING};
use crate::bench::stats::Sample;
use crate::bench::table::{NONE, Table, millis, or_none, percent};
use crate::config::lookup;
use crate::config::{Config, Loaded};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::process::ExitCode;
use tokio_util::sync::CancellationToken;

/// Measure every target of a configuration and propose its clocks.
///
/// Every connection and model of every chain is asked the same short question again and again, as a turn would ask it.
/// First tokens, gaps, whole answers and errors are shown, and what follows from them as TOML: clocks of each target,
/// when to hedge, when slow is down, and the order of each chain. It costs what the requests cost; how many there will be
/// is said first. Ctrl-C shows what there is by then.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The configuration; otherwise $SEGUE_CONFIG, ./segue.toml, the user's, /etc/segue/segue.toml, or the keys in the
    /// environment.
    #[arg(short, long, value_name = "FILE")]
    config: Option<String>,

    /// Answers of each target; one more warms its connection and does not count.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    requests: u32,

    /// Targets that are asked at a time. The requests of one target always follow each other.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    concurrency: u16,

    /// The most tokens of an answer.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    max_tokens: u32,

    /// Only targets of these connections.
    #[arg(long, value_name = "NAME", num_args = 1..)]
    connection: Vec<String>,

    /// Write JSON.
    #[arg(long)]
    json: bool,
}

/// Measures, and says what it found on standard output.
pub(super) async fn run(args: &Args) -> Result<ExitCode, Failed> {
    log::start("warn")?;
    let given = args.config.as_deref();
    let location = lookup::locate(given, &Environment);
    let Loaded { mut config, warnings } = lookup::open(given, &Environment).map_err(Failed::Config)?;
    problems::write(&mut io::stderr(), Paint::of_stderr(), problems::WARNING, &warnings, &Environment)?;
    let _built_in = serve::built_in(&mut config).await?;
    let probe = Probe {
        requests: args.requests as usize,
        concurrency: args.concurrency.into(),
        max_tokens: args.max_tokens.into(),
    };
    let subjects = chosen(&config, &args.connection)?;
    let place = location.to_string();
    let signals = Signals::listen()?;
    writeln!(io::stderr(), "segue probe: {place}\n{}", cost(&probe, &subjects))?;
    let measured = measure(&probe, &config, &subjects, signals).await?;
    let report = Report { place, probe, proposal: proposal::propose(&config, &measured), measured };
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{:#}", report.json())?;
    } else {
        report.write(&mut out, Paint::of_stdout())?;
    }
    out.flush()?;
    Ok(ExitCode::from(report.code()))
}

// === measuring ===

pub(super) fn chosen(config: &Config, only: &[String]) -> Result<Vec<Subject>, Failed> {
    if let Some(unknown) = only.iter().find(|name| !config.connections.iter().any(|c| *c.name == ***name)) {
        let known = config.connections.iter().map(|c| &*c.name).collect::<Vec<_>>().join(", ");
        return Err(Failed::Setup(format!("--connection: there is no connection `{unknown}`; there are {known}")));
    }
    let subjects = probe::subjects(config, only);
    if subjects.is_empty() {
        let all = only.join(", ");
        return Err(Failed::Setup(format!("--connection: no chain uses {all}; add it to a chain, or name another")));
    }
    Ok(subjects)
}

async fn measure(
    probe: &Probe,
    config: &Config,
    subjects: &[Subject],
    mut signals: Signals,
) -> Result<Vec<Measured>, Failed> {
    let stop = CancellationToken::new();
    let bar = results::progress(probe.requests(subjects.len()));
    let tick = |count: usize| bar.inc(count as u64);
    let measuring = probe::run(probe, config, subjects, &stop, &tick);
    tokio::pin!(measuring);
    let measured = tokio::select! {
        measured = &mut measuring => measured,
        () = signals.told() => {
            stop.cancel();
            measuring.await
        }
    };
    bar.finish_and_clear();
    measured.map_err(Failed::Setup)
}

/// What it will cost, said before it does.
fn cost(probe: &Probe, subjects: &[Subject]) -> String {
    let requests = probe.requests(subjects.len());
    let thinking = if subjects.iter().any(|s| s.target.reasons) {
        format!(" ({THINKING} more for each answer of a target that reasons)")
    } else {
        String::new()
    };
    format!(
        "cost: {} target{}, {requests} requests: about {} tokens of prompts, at most {} of answers{thinking}",
        subjects.len(),
        if subjects.len() == 1 { "" } else { "s" },
        requests as u64 * PROMPT_TOKENS,
        probe.generated(subjects),
    )
}

// === telling ===

/// All that there is to say.
struct Report {
    place: String,
    probe: Probe,
    measured: Vec<Measured>,
    proposal: Proposal,
}

impl Report {
    fn code(&self) -> u8 {
        u8::from(self.measured.iter().any(Measured::is_unreachable))
    }

    fn write(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        let Probe { requests, max_tokens, .. } = self.probe;
        writeln!(out, "{requests} answers of each target, at most {max_tokens} tokens; milliseconds\n")?;
        writeln!(out, "{}", self.table())?;
        for one in &self.measured {
            let lines = remarks(one);
            for line in &lines {
                writeln!(out, "{}: {line}", paint.ink(Ink::Doubt, &one.name()))?;
            }
            if !lines.is_empty() {
                writeln!(out)?;
            }
        }
        let toml = self.proposal.toml(&self.measured);
        if toml.is_empty() {
            writeln!(out, "{}", paint.ink(Ink::Bold, "nothing is proposed"))?;
        } else {
            let heading = "proposed, to stand in the place of the tables of the same names:";
            writeln!(out, "{}\n", paint.ink(Ink::Bold, heading))?;
            write!(out, "{toml}")?;
        }
        for remark in &self.proposal.remarks {
            writeln!(out, "# {remark}")?;
        }
        Ok(())
    }

    fn table(&self) -> Table {
        let mut table = Table::new([
            "target",
            "answers",
            "errors",
            "429",
            "first token p50",
            "p95",
            "p99",
            "gap p50",
            "p95",
            "p99",
            "whole p50",
            "p95",
            "p99",
        ]);
        for one in &self.measured {
            let mut row = vec![
                one.name(),
                one.succeeded().to_string(),
                one.error_rate().map_or_else(|| NONE.to_owned(), percent),
                one.rate_limited.to_string(),
            ];
            for sample in [&one.first_token, &one.gap, &one.total] {
                row.extend([50.0, 95.0, 99.0].map(|p| or_none(Sample::percentile(sample, p), millis)));
            }
            table.row(row);
        }
        table
    }

    fn json(&self) -> Value {
        let levels = self.proposal.config.levels.iter().filter(|level| self.proposal.levels.contains(&level.name));
        let chain = |level: &crate::routing::Level| -> Vec<String> {
            level.chain.iter().map(|row| format!("{}/{}", row.target.connection, row.target.model)).collect()
        };
        json!({
            "config": self.place,
            "requests": self.probe.requests,
            "concurrency": self.probe.concurrency,
            "max_tokens": self.probe.max_tokens,
            "exit": self.code(),
            "targets": self.measured,
            "proposal": {
                "toml": self.proposal.toml(&self.measured),
                "chains": levels.map(|l| (l.name.to_string(), chain(l).into())).collect::<serde_json::Map<_, _>>(),
                "remarks": self.proposal.remarks,
            },
        })
    }
}

/// What the table does not say of a target.
fn remarks(one: &Measured) -> Vec<String> {
    let mut lines = Vec::new();
    if one.failed() > 0 || one.rate_limited > 0 {
        let mut kinds: Vec<String> = one.failures.iter().map(|(kind, n)| format!("{n} × {}", kind.name())).collect();
        if one.rate_limited > 0 {
            kinds.push(format!("{} rate limits, waited for", one.rate_limited));
        }
        let said = one.said.as_deref().map(|words| format!(" (last: {words})")).unwrap_or_default();
        lines.push(format!("{}{said}", kinds.join(", ")));
    }
    if let Some(why) = &one.stopped {
        lines.push(format!("stopped early: {why}"));
    }
    if one.beyond_limits > 0 {
        lines.push(format!("the present clocks would have given up {} answers", one.beyond_limits));
    }
    lines
}

const EXAMPLES: &str = "\
Examples:
  segue probe
  segue probe --config segue.toml -n 20 --connection openai anthropic
  segue probe --json > baseline.json
  segue probe --json | jq -r .proposal.toml

Exit codes:
  0  measured
  1  a target could not be reached, or more than half of its answers failed
  2  the configuration or an argument is wrong";
