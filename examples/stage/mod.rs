//! What the examples play on: a gateway between two scripted providers, or the one that is given with `--url`.
#![expect(dead_code, reason = "every example takes what it needs of it")]

use clap::Parser;
use segue::bench::failover_real::load;
use segue::bench::listener::Place;
use segue::gateway::Gateway;
use segue::rig::origin::{Origin, Scripts};
use segue::server;
use segue::server::listen::{self, Manners};
use std::error::Error;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Options that all examples have.
#[derive(Debug, Parser)]
#[command(about = crate::ABOUT)]
pub(crate) struct Options {
    /// A gateway (or provider) that speaks Chat Completions, to be used instead of one with scripted providers.
    #[arg(long, value_name = "URL", requires = "model")]
    pub(crate) url: Option<String>,
    /// The model to ask it for.
    #[arg(long, value_name = "MODEL", requires = "url")]
    pub(crate) model: Option<String>,
    /// The environment variable that holds its key.
    #[arg(long, value_name = "NAME", requires = "url")]
    pub(crate) key_env: Option<String>,
    /// How many turns, where there are many.
    #[arg(long, value_name = "N")]
    pub(crate) turns: Option<usize>,
    /// Determines every latency and fault.
    #[arg(long, value_name = "S", default_value_t = 42)]
    pub(crate) seed: u64,
    /// Where to write the plot, if there is one.
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<std::path::PathBuf>,
}

/// A gateway that serves, and its providers.
pub(crate) struct Stage {
    pub(crate) gateway: Gateway,
    pub(crate) primary: Origin,
    pub(crate) fallback: Origin,
    pub(crate) url: String,
    _stop: DropGuard,
}

impl Options {
    /// The place at `--url`; `None` without one.
    pub(crate) fn place(&self) -> Result<Option<Place>, Box<dyn Error>> {
        let (Some(url), Some(model)) = (&self.url, &self.model) else { return Ok(None) };
        let key = match &self.key_env {
            Some(name) => Some(std::env::var(name).map_err(|_| format!("the variable {name} is not set"))?),
            None => None,
        };
        Ok(Some(Place::new(url, model, key.as_deref())?))
    }
}

impl Stage {
    /// A gateway whose level `main` asks a provider that plays `primary`, then one that plays `fallback`; `level` is
    /// what else the configuration says of the level.
    pub(crate) async fn set(primary: Scripts, fallback: Scripts, level: &str) -> Result<Self, Box<dyn Error>> {
        let (primary, fallback) = (Origin::local(primary).await?, Origin::local(fallback).await?);
        let connection = |name: &str, origin: &Origin| {
            format!("[connections.{name}]\ndialect = \"chat\"\nbase_url = \"{}\"\n\n", origin.base_url())
        };
        let config = format!(
            "{}{}[levels.main]\nchain = [{{ connection = \"primary\", model = \"rig\" }}, {{ connection = \"fallback\", \
             model = \"rig\" }}]\n{level}\n",
            connection("primary", &primary),
            connection("fallback", &fallback),
        );
        let gateway = Gateway::new(load(&config)?)?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let stop = CancellationToken::new();
        let manners = Manners { client_write: Duration::from_secs(30), drain: Duration::ZERO };
        tokio::spawn(listen::serve(listener, server::routes(gateway.clone()), manners, stop.clone()));
        Ok(Self { gateway, primary, fallback, url, _stop: stop.drop_guard() })
    }

    pub(crate) fn place(&self) -> Result<Place, Box<dyn Error>> {
        Ok(Place::new(&self.url, "main", None)?)
    }
}
