//! The command line: from arguments to a command, and from its end to an exit code.

mod bench;
mod bench_continuity;
mod check;
mod completions;
mod control;
mod demo;
mod descriptors;
pub mod environment;
mod eval;
mod failed;
mod key;
mod log;
mod memory;
mod mock;
mod outlet;
mod paint;
mod probe;
mod problems;
mod reload;
mod report;
mod results;
mod scores;
mod serve;
mod stop;

pub use failed::Failed;
pub use serve::serve;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Segue keeps a model's answer going when the provider behind it fails in mid-sentence.
///
/// A streaming gateway for language-model APIs: clients speak Chat Completions or Anthropic Messages to it, and it
/// continues a turn at the next provider when one stalls or dies, in the stream that is still open.
#[derive(Debug, Parser)]
#[command(name = "segue", version, max_term_width = 100, after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Args),
    Serve(serve::Args),
    Check(check::Args),
    Probe(probe::Args),
    Eval(eval::Args),
    Mock(mock::Args),
    Bench(bench::Args),
    Report(report::Args),
    Ledger(report::LedgerArgs),
    Key(key::Args),
    Completions(completions::Args),
}

/// Runs what the arguments of this process ask for.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    descriptors::raise();
    let done = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => {
            let done = runtime.block_on(run(arguments.command));
            // What still blocks a thread has nobody left to wait for it.
            runtime.shutdown_timeout(LAST_WORDS);
            done
        }
        Err(error) => Err(Failed::Setup(format!("no runtime: {error}"))),
    };
    outlet::last_words();
    done.unwrap_or_else(|failed| failed.tell())
}

async fn run(command: Command) -> Result<ExitCode, Failed> {
    match command {
        Command::Demo(args) => demo::run(&args).await,
        Command::Serve(args) => serve::run(&args).await,
        Command::Check(args) => check::run(&args),
        Command::Probe(args) => probe::run(&args).await,
        Command::Eval(args) => eval::run(&args).await,
        Command::Mock(args) => mock::run(&args).await,
        Command::Bench(args) => bench::run(&args).await,
        Command::Report(args) => report::run(&args),
        Command::Ledger(args) => report::ledger(&args),
        Command::Key(args) => key::run(&args),
        Command::Completions(args) => completions::run(&args),
    }
}

/// So long threads have to end what they are at.
const LAST_WORDS: std::time::Duration = std::time::Duration::from_millis(200);

const EXAMPLES: &str = "\
Examples:
  segue demo                        see it work, with nothing set up
  OPENAI_API_KEY=… segue serve      run it on the keys that you have
  segue check --config segue.toml   what is wrong with a configuration, or unwise
  segue probe                       how quick its targets are, and the clocks that follow
  segue eval                        how good the answers of each target are, fallbacks too
  segue COMMAND --help              options, examples and exit codes of a command";

#[cfg(test)]
mod tests {
    use super::Arguments;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_command_shows_examples_and_exit_codes() {
        for mut command in Arguments::command().get_subcommands().cloned() {
            let help = command.render_long_help().to_string();
            assert!(help.contains("Examples:\n  "), "{help}");
            assert!(help.contains("Exit codes:\n  0"), "{help}");
        }
    }
}
