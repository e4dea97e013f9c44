//! Reading the configuration anew: on SIGHUP, and when an operator asks for it.

use super::Failed;
use super::descriptors;
use super::environment::Environment;
use crate::config::lookup;
use crate::config::{Config, Loaded, Place, Problem};
use crate::gateway::Gateway;
use std::net::SocketAddr;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What the command line or the system decided, and a file does not change.
#[derive(Clone, Debug)]
pub(super) struct Settled {
    /// The file that was given.
    pub(super) given: Option<String>,
    /// Where clients connect: as it was configured, and as it is.
    pub(super) clients: (SocketAddr, SocketAddr),
    /// Where operators connect, likewise.
    pub(super) operators: (SocketAddr, SocketAddr),
    /// Addresses of the command line.
    pub(super) asked: (Option<SocketAddr>, Option<SocketAddr>),
}

/// Begins to listen for SIGHUP; from then on it no longer ends the process.
pub(super) fn listen() -> Result<Signal, Failed> {
    signal(SignalKind::hangup()).map_err(|error| Failed::Setup(format!("signals cannot be had: {error}")))
}

/// Lets `gateway` be reloaded, by SIGHUP too.
pub(super) fn serve(gateway: &Gateway, settled: Settled, mut hangup: Signal) {
    gateway.reload_from(Box::new(move |present| read(&settled, present)));
    let gateway = gateway.clone();
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            let reloaded = tokio::task::spawn_blocking({
                let gateway = gateway.clone();
                move || gateway.reload()
            });
            match reloaded.await {
                Ok(Ok(_)) => {}
                Ok(Err(why)) => {
                    tracing::error!("the configuration is not reloaded, the old one holds");
                    why.problems().iter().for_each(|problem| tracing::error!("{}", one_line(problem)));
                }
                Err(error) => tracing::error!(%error, "the reload broke off"),
            }
        }
    });
}

// === helpers ===

/// A problem as a line of the log.
pub(super) fn one_line(problem: &str) -> String {
    problem.replace("\n  help: ", "; ").replace('\n', "; ")
}

fn read(settled: &Settled, present: &Config) -> Result<Config, Vec<Problem>> {
    let Loaded { mut config, warnings } = lookup::open(settled.given.as_deref(), &Environment)?;
    warnings.iter().for_each(|warning| tracing::warn!("{}", one_line(&warning.to_string())));
    let as_it_is = |told: &mut SocketAddr, asked: Option<SocketAddr>, (configured, is): (SocketAddr, SocketAddr)| {
        if asked.is_some() || *told == configured {
            *told = is;
        }
    };
    as_it_is(&mut config.server.listen, settled.asked.0, settled.clients);
    as_it_is(&mut config.admin.listen, settled.asked.1, settled.operators);
    descriptors::bound(&mut config.server);
    let mut problems = Vec::new();
    for connection in config.connections.iter_mut().filter(|c| c.mock && c.base_url.is_none()) {
        let before = present.connections.iter().find(|c| c.mock && c.name == connection.name);
        connection.base_url = before.and_then(|c| c.base_url.clone());
        if connection.base_url.is_none() {
            let path = settled.given.as_deref().unwrap_or("segue.toml").into();
            problems.push(Problem {
                place: Place { path, line: 1, column: 1 },
                key: format!("connections.{}", connection.name),
                message: "a built-in provider cannot be added while the gateway runs".to_owned(),
                remedy: "restart it, or give the connection a `base_url`".to_owned(),
            });
        }
    }
    // Who may not come in from outside at the start may not later either.
    if config.tenants.is_none() && !config.server.listen.ip().is_loopback() && !config.server.allow_anonymous {
        problems.push(Problem {
            place: Place { path: settled.given.as_deref().unwrap_or("segue.toml").into(), line: 1, column: 1 },
            key: "tenants".to_owned(),
            message: format!("without tenants everyone who reaches {} could spend your credit", config.server.listen),
            remedy: "keep `[tenants.NAME]`, or set `server.allow_anonymous = true`".to_owned(),
        });
    }
    if problems.is_empty() { Ok(config) } else { Err(problems) }
}
