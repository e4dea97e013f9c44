//! `segue serve`: the gateway, until it is told to stop.

use super::Failed;
use super::environment::Environment;
use crate::config::lookup::{self, Location};
use crate::config::{Config, Loaded};
use crate::gateway::Gateway;
use crate::server::listen::{self, Manners};
use crate::{admin, server};
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Runs the gateway with the configuration at `given`, or the one that is found.
///
/// # Errors
/// What is wrong with the configuration, or why a listener could not be opened.
pub async fn run(given: Option<&str>) -> Result<(), Failed> {
    let environment = Environment;
    let location = lookup::locate(given, &environment);
    let Loaded { config, warnings } = lookup::open(given, &environment).map_err(Failed::Config)?;
    for warning in &warnings {
        tracing::warn!("{warning}");
    }
    announce(&location, &config);
    let clients = bind(config.server.listen, "server.listen").await?;
    let operators = bind(config.admin.listen, "admin.listen").await?;
    let gateway = Gateway::new(config).map_err(Failed::Setup)?;
    let stop = CancellationToken::new();
    tokio::spawn(stop_on_signal(stop.clone()));
    serve(gateway, clients, operators, stop).await;
    tracing::info!("stopped");
    Ok(())
}

/// Serves `gateway` until `stop` is cancelled, and then lets its turns finish for `server.drain`.
pub async fn serve(gateway: Gateway, clients: TcpListener, operators: TcpListener, stop: CancellationToken) {
    let config = gateway.config();
    // A socket does not know the level of its next request: the most patient one holds.
    let client_write = config.levels.iter().map(|l| l.timeouts.client_write).max().unwrap_or(CLIENT_WRITE);
    let manners = Manners { client_write, drain: config.server.drain };
    let token = config.admin.token.as_ref().map(|t| t.expose().into());
    // Operators can look in until the last turn is over.
    let closed = CancellationToken::new();
    let admin = tokio::spawn(listen::serve(
        operators,
        admin::routes(gateway.clone(), token),
        Manners { drain: std::time::Duration::ZERO, ..manners },
        closed.clone(),
    ));
    let drain = manners.drain;
    let draining = tokio::spawn({
        let (gateway, stop) = (gateway.clone(), stop.clone());
        async move {
            stop.cancelled().await;
            gateway.drain();
            tracing::info!(open = gateway.open_turns(), "draining");
            tokio::time::sleep(drain).await;
            gateway.hang_up();
        }
    });
    listen::serve(clients, server::routes(gateway), manners, stop).await;
    draining.abort();
    closed.cancel();
    if let Err(error) = admin.await {
        tracing::debug!(%error, "admin listener");
    }
}

fn announce(location: &Location, config: &Config) {
    tracing::info!(
        config = match location {
            Location::File(path) => path,
            Location::Environment => "the keys in the environment",
        },
        listen = %config.server.listen,
        admin = %config.admin.listen,
        levels = %config.levels.iter().map(|l| &*l.name).collect::<Vec<_>>().join(", "),
        "segue serves"
    );
}

/// Without a level there is nothing to write.
const CLIENT_WRITE: std::time::Duration = std::time::Duration::from_secs(30);

async fn bind(address: SocketAddr, key: &str) -> Result<TcpListener, Failed> {
    TcpListener::bind(address).await.map_err(|error| {
        Failed::Setup(format!("{key}: cannot listen on {address}: {error}; choose another address or stop who has it"))
    })
}

async fn stop_on_signal(stop: CancellationToken) {
    use tokio::signal::unix::{SignalKind, signal};
    let interrupted = tokio::signal::ctrl_c();
    match signal(SignalKind::terminate()) {
        Ok(mut terminated) => {
            tokio::select! {
                _ = terminated.recv() => {}
                _ = interrupted => {}
            }
        }
        Err(_) => drop(interrupted.await),
    }
    stop.cancel();
}
