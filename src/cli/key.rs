//! `segue key`: a key for a client, and what a configuration keeps of it.

use super::Failed;
use rand::RngExt as _;
use rand::distr::Alphanumeric;
use sha2::{Digest, Sha256};
use std::io::{self, Write};
use std::process::ExitCode;

/// Make a key for a client of the gateway.
///
/// The key goes to the client and is kept nowhere; its SHA-256, which is enough to know it by, goes into the
/// configuration.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The tenant that the key is for.
    #[arg(value_name = "TENANT", default_value = "mine", value_parser = name)]
    tenant: String,

    /// Write JSON.
    #[arg(long)]
    json: bool,
}

/// Makes a key, and tells it on standard output.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let secret: String = rand::rng().sample_iter(Alphanumeric).take(LENGTH).map(char::from).collect();
    let key = format!("segue-{secret}");
    let digest: String = Sha256::digest(key.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let tenant = &args.tenant;
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{:#}", serde_json::json!({"tenant": tenant, "key": key, "sha256": digest}))?;
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(out, "The key, for the client; it is not shown again:\n\n  {key}\n")?;
    writeln!(out, "Its hash, for segue.toml:\n\n  [tenants.{tenant}]\n  keys = [{{ sha256 = \"{digest}\" }}]\n")?;
    writeln!(out, "Or, without a segue.toml, for the file that SEGUE_KEYS_FILE names:\n\n  {tenant} {digest}")?;
    Ok(ExitCode::SUCCESS)
}

// === helpers ===

fn name(text: &str) -> Result<String, String> {
    let fits = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    fits.then(|| text.to_owned()).ok_or_else(|| "write letters, digits, `-` and `_`".to_owned())
}

/// Characters of 62 kinds: 190 bits.
const LENGTH: usize = 32;

const EXAMPLES: &str = "\
Examples:
  segue key
  segue key acme
  segue key acme --json

Exit codes:
  0  a key was made
  2  the arguments are wrong, or standard output is closed";
