//! Segue as a library: a gateway inside your own program, without a server. A turn is a value that is polled for bytes;
//! to drop it is to hang up.
//!
//! `cargo run --release --example embed` uses scripted providers inside the process, and no socket at all.
//! `… -- --url https://api.example.com/v1 --model m --key-env KEY` puts a real provider behind the embedded gateway.
#![expect(clippy::print_stdout, reason = "this is what an example is for")]

mod stage;

use clap::Parser;
use http::HeaderMap;
use segue::bench::failover_real::load;
use segue::chat::DialectId;
use segue::dialect;
use segue::gateway::Gateway;
use segue::gateway::caller::Caller;
use segue::gateway::drive::Start;
use segue::rig::inside::Inside;
use segue::rig::mock;
use segue::rig::origin::Scripts;
use segue::rig::script::Break;
use segue::upstream::Upstream;
use serde_json::json;
use stage::Options;
use std::collections::HashMap;
use std::error::Error;
use std::future::poll_fn;
use std::io::Write;
use std::sync::Arc;

pub(crate) const ABOUT: &str = "Segue as a library: a gateway inside your own program.";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let gateway = match (&options.url, &options.model) {
        (Some(url), Some(model)) => real(url, model, options.key_env.as_deref())?,
        _ => scripted()?,
    };

    // A request is what a client would have sent; here it is built on the spot.
    let chat = dialect::client(DialectId::Chat).ok_or("Chat Completions is not built in")?;
    let body = json!({"model": "main", "stream": true, "messages": [{"role": "user", "content": "What is a segue?"}]});
    let request = chat.parse(&HeaderMap::new(), body.to_string().as_bytes()).map_err(|r| r.message)?;

    let mut turn = gateway.begin(&Caller::default(), request).await.map_err(|refusal| refusal.message)?;
    if let Start::Refused(refusal) = turn.start(None).await {
        return Err(refusal.message.into());
    }
    // Each frame is one or more whole events of a Chat Completions stream.
    while let Some(frame) = poll_fn(|cx| turn.poll_frame(cx)).await {
        std::io::stdout().write_all(&frame)?;
    }
    drop(turn);

    for record in gateway.recent(1) {
        println!("outcome {}, {} characters, spliced {} times", record.outcome, record.delivered_chars, record.splices);
        for attempt in &record.attempts {
            let failure = attempt.failure.map_or("no failure", |kind| kind.name());
            println!(
                "  {}: opened as {}, {}, {failure}",
                attempt.connection,
                attempt.cause.name(),
                attempt.outcome.name()
            );
        }
    }
    Ok(())
}

/// Two providers inside the process; the first breaks off in mid-sentence.
fn scripted() -> Result<Gateway, Box<dyn Error>> {
    let config = load(
        "[connections.first]\ndialect = \"chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\n\
         [connections.second]\ndialect = \"anthropic\"\nbase_url = \"http://127.0.0.1:1\"\n\
         [levels.main]\nchain = [{ connection = \"first\", model = \"m\" }, { connection = \"second\", model = \"m\" }]\n",
    )?;
    let breaks = Inside::new(Scripts::fixed(mock::pleasant().breaking(30, Break::Reset)), 0);
    let goes_on = Inside::new(Scripts::fixed(mock::pleasant()), 0);
    let upstreams: HashMap<Arc<str>, Arc<dyn Upstream>> =
        HashMap::from([("first".into(), Arc::new(breaks) as _), ("second".into(), Arc::new(goes_on) as _)]);
    Ok(Gateway::with_upstreams(config, upstreams))
}

fn real(url: &str, model: &str, key_env: Option<&str>) -> Result<Gateway, Box<dyn Error>> {
    let key = match key_env {
        None => String::new(),
        Some(name) => {
            let key = std::env::var(name).map_err(|_| format!("the variable {name} is not set"))?;
            let header = serde_json::Value::String(format!("Bearer {key}"));
            format!("headers = {{ authorization = {header} }}\n")
        }
    };
    let quoted = |text: &str| serde_json::Value::String(text.to_owned()).to_string();
    let config = load(&format!(
        "[connections.real]\ndialect = \"chat\"\nbase_url = {}\n{key}[levels.main]\nchain = [{{ connection = \"real\", model = {} }}]\n",
        quoted(url),
        quoted(model),
    ))?;
    Ok(Gateway::new(config)?)
}
