//! `segue mock`: the scripted provider, alone.

use super::environment::Environment;
use super::serve::address;
use super::stop::Signals;
use super::{Failed, log};
use crate::config::Resolver;
use crate::rig::{mock, names};
use clap::builder::StyledStr;
use std::io::Write;
use std::net::SocketAddr;
use std::process::ExitCode;

/// Run a scripted provider, whose faults are chosen by the model's name.
///
/// It speaks Chat Completions and Anthropic Messages, and tells a pleasant text at reading speed, without a key and
/// without cost. It breaks on request: ask for the model `fault-reset@20`, and the connection is reset in place of the
/// twentieth token. Every other name tells the whole text.
#[derive(Debug, clap::Args)]
#[command(after_help = help())]
pub(super) struct Args {
    /// Where to listen; port 0 takes any free one.
    #[arg(long, value_name = "ADDR", value_parser = address, default_value = "127.0.0.1:8081")]
    listen: SocketAddr,

    /// What it does, in TOML or JSON, instead of telling the text.
    #[arg(long, value_name = "FILE")]
    script: Option<String>,
}

/// Answers until it is told to stop.
pub(super) async fn run(args: &Args) -> Result<ExitCode, Failed> {
    log::start("warn")?;
    let file = match &args.script {
        None => mock::File::default(),
        Some(path) => read(path)?,
    };
    let mut signals = Signals::listen()?;
    let origin = mock::start(args.listen, file).await.map_err(|error| {
        Failed::Setup(format!("--listen: cannot listen on {}: {error}; choose another address", args.listen))
    })?;
    let url = origin.base_url();
    // Who started it without a terminal may have closed standard error; it answers all the same.
    let _ = writeln!(
        std::io::stderr(),
        "the scripted provider listens at {url} (Chat Completions, Anthropic Messages)\n\
         try it:\n  {}\nCtrl-C stops it; `segue mock --help` names all faults",
        super::serve::curl(&url, "fault-reset@20", None)
    );
    signals.told().await;
    origin.stop().await;
    Ok(ExitCode::SUCCESS)
}

// === helpers ===

fn read(path: &str) -> Result<mock::File, Failed> {
    let wrong = |why: &str| Failed::Setup(format!("--script: {path}: {}", why.trim_end()));
    let text = Environment.file(path).map_err(|why| wrong(&why))?;
    mock::File::read(&text).map_err(|why| wrong(&why))
}

fn help() -> StyledStr {
    format!("{EXAMPLES}\n\n{}\n{SCRIPTS}", names::HELP).into()
}

const EXAMPLES: &str = "\
Examples:
  segue mock
  segue mock --listen 127.0.0.1:0 --script provider.toml
  curl -N http://127.0.0.1:8081/v1/chat/completions \\
    -H 'content-type: application/json' \\
    -d '{\"model\": \"mock+fault-stall@20\", \"stream\": true,
         \"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}'
  curl -N http://127.0.0.1:8081/v1/messages \\
    -H 'content-type: application/json' \\
    -d '{\"model\": \"seam-preamble\", \"stream\": true, \"max_tokens\": 500,
         \"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}'

Exit codes:
  0  stopped by Ctrl-C or SIGTERM
  2  the script is wrong, or the address is taken";

const SCRIPTS: &str = "\
A script, for --script; the whole vocabulary is that of the names above:
  continuation = \"preamble\"
  fault = { at = 12, how = { pings_only = { every = \"1s\" } } }
  content = { text = \"Told word by word, until it breaks.\" }
  pace.first = \"200ms\"
  pace.gap = { log_normal = { median = \"30ms\", sigma = 0.6 } }
Several of them: under `models.NAME`, under `default`, or one after the other in `sequence`.";

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

    use super::{SCRIPTS, mock};

    #[test]
    fn the_script_in_the_help_is_one() {
        let script: String = SCRIPTS
            .lines()
            .filter_map(|line| line.strip_prefix("  "))
            .fold(String::new(), |all, line| format!("{all}{line}\n"));
        let script = mock::File::read(&script).unwrap().default.unwrap();
        assert_eq!(script.fault.unwrap().at, 12);
        assert_eq!(script.content.text.len(), 7);
    }
}
