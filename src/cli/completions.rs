//! `segue completions`: what a shell needs to complete this command line.

use super::{Arguments, Failed};
use clap::CommandFactory;
use clap_complete::Shell;
use std::io::Write;
use std::process::ExitCode;

/// Write completions for a shell to standard output.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The shell.
    shell: Shell,
}

/// Writes them.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Arguments::command(), "segue", &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

const EXAMPLES: &str = "\
Examples:
  segue completions bash > ~/.local/share/bash-completion/completions/segue
  segue completions zsh > \"${fpath[1]}/_segue\"
  segue completions fish > ~/.config/fish/completions/segue.fish

Exit codes:
  0  written
  2  the shell is not known";
