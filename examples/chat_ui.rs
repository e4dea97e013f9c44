//! A chat in the terminal that survives its provider: every answer of the first choice breaks off, each in another way,
//! and the text just goes on.
//!
//! `cargo run --release --example chat_ui`, or against a gateway: `… -- --url http://127.0.0.1:8080 --model normal`.
//! Questions are lines of standard input; its end ends the chat.
#![expect(clippy::print_stdout, reason = "this is what an example is for")]

mod stage;

use clap::Parser;
use segue::record::TurnRecord;
use segue::rig::mock;
use segue::rig::origin::Scripts;
use segue::rig::script::{Break, Script, Wrong};
use serde_json::{Value, json};
use stage::{Options, Stage};
use std::error::Error;
use std::io::{BufRead, IsTerminal, Write, stdin, stdout};
use std::time::Duration;

pub(crate) const ABOUT: &str = "A chat in the terminal that survives its provider.";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let stage = match options.url {
        Some(_) => None,
        None => Some(set().await?),
    };
    let place = match &stage {
        Some(stage) => stage.place()?,
        None => options.place()?.ok_or("--url")?,
    };
    let asks = stdin().is_terminal();
    let mut messages: Vec<Value> = Vec::new();
    if asks {
        println!("Ask anything; an empty line, or Ctrl-D, ends the chat.");
    }
    loop {
        if asks {
            print!("\nyou: ");
            stdout().flush()?;
        }
        let Some(line) = question().await? else { break };
        if !asks {
            println!("\nyou: {line}");
        }
        messages.push(json!({"role": "user", "content": line}));
        print!("it:  ");
        let heard = place
            .hear(json!(messages), |text| {
                print!("{text}");
                // A terminal that is gone will be seen at the next line.
                let _ = stdout().flush();
            })
            .await;
        println!();
        if let Some(error) = &heard.error {
            println!("(it broke off: {error})");
        }
        if let Some(record) = stage.as_ref().and_then(|stage| stage.gateway.recent(1).into_iter().next()) {
            println!("{}", told(&record));
        }
        messages.push(json!({"role": "assistant", "content": heard.text}));
    }
    Ok(())
}

/// What the gateway says of the turn.
fn told(record: &TurnRecord) -> String {
    let attempts: Vec<String> = record
        .attempts
        .iter()
        .map(|a| {
            format!(
                "{} {}{}",
                a.connection,
                a.outcome.name(),
                a.failure.map(|f| format!(" ({})", f.name())).unwrap_or_default()
            )
        })
        .collect();
    format!(
        "     [{}; first word after {:.0} ms, longest pause {:.0} ms, spliced {} times]",
        attempts.join(", then "),
        record.first_told_ms.unwrap_or_default(),
        record.longest_silence_ms,
        record.splices
    )
}

async fn question() -> Result<Option<String>, Box<dyn Error>> {
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        stdin().lock().read_line(&mut line).map(|count| (count > 0).then_some(line))
    });
    Ok(line.await??.map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()))
}

async fn set() -> Result<Stage, Box<dyn Error>> {
    let tells = || {
        let mut script = mock::pleasant();
        script.pace.gap = segue::rig::delay::Delay::Fixed(Duration::from_millis(25));
        script
    };
    let broken = |at, how| -> Script { tells().breaking(at, how) };
    let primary = Scripts::sequence(vec![
        broken(40, Break::Reset),
        broken(25, Break::Silence),
        broken(70, Break::ErrorEvent { wrong: Wrong::Overloaded, form: Default::default(), done: false }),
        broken(55, Break::Fin),
    ]);
    let level = "timeouts = { suspect = \"600ms\", stall = \"2s\" }\nbudget = 1.0";
    Stage::set(primary, Scripts::fixed(tells()), level).await
}
