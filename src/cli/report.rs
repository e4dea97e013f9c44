//! `segue report` and `segue ledger export`: what a ledger tells.

use super::Failed;
use super::environment::Environment;
use crate::config::lookup::{self, Location};
use crate::config::{Config, Loaded};
use crate::ledger::export::{Format, What};
use crate::ledger::reader::Reader;
use crate::ledger::report::Ask;
use crate::ledger::when;
use clap::{Subcommand, ValueEnum};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

/// Tell what happened in a span of time: who was served by what, what failed, what it cost.
#[derive(Debug, clap::Args)]
#[command(after_help = REPORT_EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    file: File,

    #[command(flatten)]
    span: Span,

    /// One tenant only.
    #[arg(long)]
    tenant: Option<String>,

    /// One level only.
    #[arg(long)]
    level: Option<String>,

    /// How it is written.
    #[arg(long, value_enum, default_value_t = Style::Text)]
    format: Style,
}

/// Work with the ledger.
#[derive(Debug, clap::Args)]
#[command(after_help = LEDGER_EXAMPLES)]
pub(super) struct LedgerArgs {
    #[command(subcommand)]
    command: LedgerCommand,
}

#[derive(Debug, Subcommand)]
enum LedgerCommand {
    /// Write its rows to standard output.
    #[command(after_help = LEDGER_EXAMPLES)]
    Export(Export),
}

#[derive(Debug, clap::Args)]
struct Export {
    #[command(flatten)]
    file: File,

    #[command(flatten)]
    span: Span,

    /// Which rows.
    #[arg(long, value_enum, default_value_t = Rows::Turns)]
    what: Rows,

    /// How they are written.
    #[arg(long, value_enum, default_value_t = Shape::Csv)]
    format: Shape,
}

#[derive(Debug, clap::Args)]
struct File {
    /// The ledger; otherwise that of the configuration.
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,

    /// The configuration; otherwise it is looked for as `segue serve` does.
    #[arg(long, value_name = "FILE")]
    config: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Span {
    /// From when: 24h (ago), 2026-01-02, 2026-01-02T03:04:05Z, or seconds of Unix time.
    #[arg(long, default_value = "24h")]
    from: String,

    /// Until when.
    #[arg(long, default_value = "now")]
    to: String,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Style {
    Text,
    Markdown,
    Json,
    Html,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Rows {
    Turns,
    Attempts,
    Circuits,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shape {
    Csv,
    Jsonl,
}

/// Writes a report.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let (from, to) = args.span.read()?;
    let ask = Ask { from, to, tenant: args.tenant.clone(), level: args.level.clone() };
    let report = args.file.open()?.report(&ask).map_err(Failed::Setup)?;
    let text = match args.format {
        Style::Text => report.text(),
        Style::Markdown => report.markdown(),
        Style::Html => report.html(),
        Style::Json => serde_json::to_string_pretty(&report).map_err(io::Error::other)? + "\n",
    };
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Does what is asked of the ledger.
pub(super) fn ledger(args: &LedgerArgs) -> Result<ExitCode, Failed> {
    let LedgerCommand::Export(export) = &args.command;
    let span = export.span.read()?;
    let what = match export.what {
        Rows::Turns => What::Turns,
        Rows::Attempts => What::Attempts,
        Rows::Circuits => What::Circuits,
    };
    let format = match export.format {
        Shape::Csv => Format::Csv,
        Shape::Jsonl => Format::JsonLines,
    };
    let mut out = BufWriter::new(io::stdout().lock());
    export.file.open()?.export(what, format, span, &mut out).map_err(Failed::Setup)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Where the ledger of a configuration is: what the file names is found from the folder that the file is in. Without a file
/// there is none, so that whoever just tries the program finds nothing left behind.
pub(super) fn path(config: &Config, location: &Location) -> Option<PathBuf> {
    let (Location::File(file), Some(path)) = (location, &config.ledger.path) else { return None };
    let folder = Path::new(file).parent().unwrap_or_else(|| Path::new(""));
    Some(folder.join(path))
}

// === impl File ===

impl File {
    fn open(&self) -> Result<Reader, Failed> {
        let path = match &self.ledger {
            Some(path) => path.clone(),
            None => {
                let given = self.config.as_deref();
                let Loaded { config, .. } = lookup::open(given, &Environment).map_err(Failed::Config)?;
                path(&config, &lookup::locate(given, &Environment)).ok_or_else(|| {
                    Failed::Setup("there is no ledger without a configuration file, or with `ledger.path = \"off\"`; name one with --ledger".to_owned())
                })?
            }
        };
        Reader::open(&path).map_err(Failed::Setup)
    }
}

// === impl Span ===

impl Span {
    fn read(&self) -> Result<(f64, f64), Failed> {
        let now = SystemTime::now();
        let moment =
            |key: &str, text: &str| when::moment(text, now).map_err(|why| Failed::Setup(format!("--{key}: {why}")));
        let (from, to) = (moment("from", &self.from)?, moment("to", &self.to)?);
        if from < to { Ok((from, to)) } else { Err(Failed::Setup("--from: must be before --to".to_owned())) }
    }
}

const REPORT_EXAMPLES: &str = "\
Examples:
  segue report
  segue report --from 2026-01-02T06:40 --to 2026-01-02T22:10 --tenant acme
  segue report --from 7d --format html > report.html
  segue report --ledger /var/lib/segue/segue.db --format json

Exit codes:
  0  written
  2  there is no such ledger, or the span of time is none";

const LEDGER_EXAMPLES: &str = "\
Examples:
  segue ledger export --from 7d > turns.csv
  segue ledger export --what attempts --format jsonl --from 2026-01-01 --to 2026-02-01

Exit codes:
  0  written
  2  there is no such ledger, or the span of time is none";
