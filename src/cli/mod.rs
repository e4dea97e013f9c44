//! The command line: from arguments to a command, and from its end to an exit code.

mod bench;
pub mod environment;
mod serve;

use crate::config::Problem;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Segue keeps a model's answer going when the provider behind it fails in mid-sentence.
#[derive(Debug, Parser)]
#[command(name = "segue", version, about, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the gateway.
    Serve {
        /// The configuration; otherwise ./segue.toml, the user's, or the keys in the environment.
        #[arg(long, value_name = "FILE")]
        config: Option<String>,
    },
    /// Measure what failover costs: tables, JSON, plots.
    Bench {
        #[command(subcommand)]
        what: bench::What,
    },
}

/// Why a command could not do its work.
#[derive(Debug)]
pub enum Failed {
    /// The configuration is wrong.
    Config(Vec<Problem>),
    /// Something could not be set up.
    Setup(String),
}

/// Runs what the arguments of this process ask for.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&Failed::Setup(format!("no runtime: {error}"))),
    };
    log();
    let done = match arguments.command {
        Command::Serve { config } => runtime.block_on(serve::run(config.as_deref())),
        Command::Bench { what } => bench::run(&what, &runtime),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => fail(&failed),
    }
}

fn log() {
    use std::io::IsTerminal as _;
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_env("SEGUE_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
}

#[expect(clippy::print_stderr, reason = "this is where errors are told")]
fn fail(failed: &Failed) -> ExitCode {
    match failed {
        Failed::Config(problems) => {
            for problem in problems {
                eprintln!("error: {problem}");
            }
            ExitCode::from(2)
        }
        Failed::Setup(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}
