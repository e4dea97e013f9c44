//! `segue demo`: the main job with nothing set up. Two providers and the gateway on loopback, four turns that are broken
//! in four ways, and a client that looks whether anything is missing.

mod account;
mod acts;
mod audience;
mod show;
mod stage;
mod tryout;

use super::paint::Paint;
use super::serve::address;
use super::stop::Signals;
use super::{Failed, log};
use crate::upstream::client::Client;
use account::{Account, Witnesses};
use acts::{ACTS, Act, Tempo};
use serde_json::json;
use show::Show;
use stage::Stage;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;

/// See it work, with nothing set up: no key, no configuration, no network.
///
/// Two built-in providers and a gateway start on this machine. The first provider is killed in the middle of a word,
/// falls silent, and is killed inside a tool call; the second one goes on, and the client's text is compared with what
/// both tell, to the character. It takes twenty seconds.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Without pauses, and not at reading speed.
    #[arg(long)]
    fast: bool,

    /// Write what was measured as JSON, and nothing else.
    #[arg(long)]
    json: bool,

    /// Stay up after the show, for curl and SDKs, until Ctrl-C.
    #[arg(long)]
    serve: bool,

    /// Where clients connect, on loopback; port 0 takes any free one.
    #[arg(long, value_name = "ADDR", value_parser = address, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

/// Plays all acts.
pub(super) async fn run(args: &Args) -> Result<ExitCode, Failed> {
    log::start("error")?;
    if !args.listen.ip().is_loopback() {
        return Err(Failed::Setup(format!("--listen: the demo serves this machine alone, not {}", args.listen)));
    }
    let tempo = if args.fast { Tempo::FAST } else { Tempo::READING };
    let stage = Stage::set(args.listen, tempo).await?;
    let client = Client::new().map_err(|broken| Failed::Setup(broken.to_string()))?;
    let (mut out, paint) = (io::stdout(), Paint::of_stdout());
    let accounts = if args.json {
        let mut accounts = Vec::with_capacity(ACTS.len());
        for act in &ACTS {
            accounts.push(play(&stage, &client, act, None).await?);
        }
        accounts
    } else {
        let mut show = Show::new(&mut out, paint);
        show.overture(&stage.base_url())?;
        let mut accounts = Vec::with_capacity(ACTS.len());
        for (number, act) in (1..).zip(&ACTS) {
            tokio::time::sleep(tempo.pause).await;
            show.open(number, act)?;
            accounts.push(play(&stage, &client, act, Some(&mut show)).await?);
        }
        show.finale(&accounts)?;
        accounts
    };
    let exact = accounts.iter().all(|account| account.exact);
    // Until here Ctrl-C ends the show at once, as it should.
    let mut signals = if args.serve { Some(Signals::listen()?) } else { None };
    if args.json {
        let version = env!("CARGO_PKG_VERSION");
        let urls = (stage.base_url(), format!("http://{}", stage.operators));
        let result =
            json!({"exact": exact, "version": version, "base_url": urls.0, "admin_url": urls.1, "acts": accounts});
        writeln!(out, "{result:#}")?;
    } else if args.serve {
        tryout::invite(&mut out, paint, &stage)?;
    } else {
        writeln!(out, "\n{}", tryout::NEXT)?;
    }
    out.flush()?;
    if let Some(signals) = &mut signals {
        tokio::select! {
            () = signals.told() => {}
            watched = tryout::watch(&mut out, &stage), if !args.json => watched?,
        }
    }
    stage.strike().await;
    Ok(if exact { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Plays one act.
async fn play(stage: &Stage, client: &Client, act: &Act, mut show: Option<&mut Show<'_>>) -> io::Result<Account> {
    let mark = stage.mark();
    let heard = audience::attend(client, &stage.base_url(), act, |beat| match &mut show {
        Some(show) => show.beat(beat, stage.handed_over(mark)),
        None => Ok(()),
    })
    .await?;
    let turn = stage.settled(mark, &heard.turn).await;
    let (primary, fallback) = (stage.primary_since(mark), stage.fallback_since(mark));
    let account =
        Account::of(Witnesses { act, heard: &heard, primary: primary.as_ref(), fallback: fallback.as_ref(), turn });
    if let Some(show) = show {
        show.close(act, &account)?;
    }
    Ok(account)
}

const EXAMPLES: &str = "\
Examples:
  segue demo
  segue demo --serve                        then try the faults by hand, with curl or an SDK
  segue demo --serve --listen 127.0.0.1:8080
  segue demo --fast --json | jq '.acts[] | {act, exact, gap_ms}'

Exit codes:
  0  every turn was exact
  1  one was not
  2  it could not be set up";
