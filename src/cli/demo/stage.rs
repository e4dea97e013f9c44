//! What the turns are played on: two providers and a gateway between them, each on a port of the loopback interface.

use super::acts::{ACTS, Side, Tempo};
use crate::cli::environment::Environment;
use crate::cli::{Failed, serve};
use crate::config;
use crate::gateway::Gateway;
use crate::record::TurnRecord;
use crate::rig::origin::{NoModel, Origin, Record, Scripts};
use crate::rig::script::Script;
use crate::rig::{mock, names};
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Two providers and a gateway, running.
pub(super) struct Stage {
    pub(super) gateway: Gateway,
    pub(super) primary: Origin,
    pub(super) fallback: Origin,
    /// Where clients connect.
    pub(super) clients: SocketAddr,
    /// Where operators connect.
    pub(super) operators: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

/// A level for people who want to try a fault by hand.
pub(super) struct Fault {
    /// What a client asks for.
    pub(super) level: &'static str,
    /// What the primary is asked for, which says how it breaks.
    primary: &'static str,
    /// What the fallback is asked for.
    fallback: &'static str,
    /// What happens then.
    pub(super) what: &'static str,
}

/// How many requests the providers had been asked at some time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    primary: u64,
    fallback: u64,
}

// === impl Stage ===

impl Stage {
    /// Starts everything; clients connect at `listen`.
    ///
    /// # Errors
    /// Where a port could not be had.
    pub(super) async fn set(listen: SocketAddr, tempo: Tempo) -> Result<Self, Failed> {
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let bind = |address: SocketAddr| async move {
            TcpListener::bind(address).await.map_err(|error| {
                Failed::Setup(format!("--listen: cannot listen on {address}: {error}; choose another"))
            })
        };
        let provider = |side| async move {
            Origin::start(anywhere, scripts(side, tempo))
                .await
                .map_err(|error| Failed::Setup(format!("the {} cannot listen on loopback: {error}", side.name())))
        };
        let (primary, fallback) = (provider(Side::Primary).await?, provider(Side::Fallback).await?);
        let (clients, operators) = (bind(listen).await?, bind(anywhere).await?);
        let (at, admin) = (clients.local_addr()?, operators.local_addr()?);
        let text = configuration(at, admin, &primary.base_url(), &fallback.base_url());
        let loaded = config::load(&text, "(demo)", &Environment).map_err(Failed::Config)?;
        let gateway = Gateway::new(loaded.config).map_err(Failed::Setup)?;
        let stop = CancellationToken::new();
        let serving = tokio::spawn(serve(gateway.clone(), clients, operators, stop.clone()));
        Ok(Self { gateway, primary, fallback, clients: at, operators: admin, stop, serving })
    }

    /// What clients are configured with.
    pub(super) fn base_url(&self) -> String {
        format!("http://{}/v1", self.clients)
    }

    /// Before a turn: what is asked from here on belongs to it.
    pub(super) fn mark(&self) -> Mark {
        Mark { primary: self.primary.records().total(), fallback: self.fallback.records().total() }
    }

    /// What the primary was asked first since `mark`.
    pub(super) fn primary_since(&self, mark: Mark) -> Option<Record> {
        self.primary.records().get(mark.primary)
    }

    /// What the fallback was asked first since `mark`.
    pub(super) fn fallback_since(&self, mark: Mark) -> Option<Record> {
        self.fallback.records().get(mark.fallback)
    }

    /// How much of a turn had been told, in bytes, when the fallback was asked to go on; `None`: it was not.
    pub(super) fn handed_over(&self, mark: Mark) -> Option<usize> {
        self.fallback_since(mark)?.reading.ask.told().map(str::len)
    }

    /// Waits until both providers and the gateway have written down how a turn ended; gives the gateway's account of it.
    pub(super) async fn settled(&self, mark: Mark, turn: &str) -> Option<TurnRecord> {
        let ended = |number: u64| move |all: &[Record]| all.iter().all(|r| r.number != number || r.ended.is_some());
        self.primary.records().until(SETTLING, ended(mark.primary)).await;
        self.fallback.records().until(SETTLING, ended(mark.fallback)).await;
        let find = || self.gateway.recent(RECENT).into_iter().find(|record| record.turn == turn);
        let wait = async {
            loop {
                match find() {
                    Some(record) => return record,
                    None => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        };
        tokio::time::timeout(SETTLING, wait).await.ok()
    }

    /// Stops everything.
    pub(super) async fn strike(self) {
        self.stop.cancel();
        // Nobody waits for turns of a demonstration that somebody has left open.
        self.gateway.hang_up();
        let _ = tokio::time::timeout(SETTLING, self.serving).await;
        self.primary.stop().await;
        self.fallback.stop().await;
    }
}

// === helpers ===

/// Models of the acts by the name before the first `+`, and for all others a longer text; then what the name says.
fn scripts(side: Side, tempo: Tempo) -> Scripts {
    let acts: Vec<_> = ACTS.iter().map(|act| (act.model, act.script(side, tempo))).collect();
    let other = Script { pace: side.pace(tempo), ..mock::pleasant() };
    let choose = move |model: &str| {
        let own = model.split('+').next().unwrap_or_default();
        let base = acts.iter().find(|(name, _)| *name == own).map_or(&other, |(_, script)| script);
        names::script(model, base).map(Arc::new).map_err(NoModel)
    };
    Scripts::with(move |inquiry| choose(inquiry.model))
}

/// The configuration, as one would write it.
fn configuration(clients: SocketAddr, operators: SocketAddr, primary: &str, fallback: &str) -> String {
    let mut text = format!(
        "[server]\nlisten = \"{clients}\"\ndrain = \"1s\"\n\n[admin]\nlisten = \"{operators}\"\n\n\
         [connections.primary]\ndialect = \"chat\"\nbase_url = \"{primary}\"\ndomains = [\"vendor:primary\"]\n\
         # It is meant to fail again and again; anywhere else this would keep a dead provider in the way.\n\
         breaker = {{ consecutive = 1000, min_samples = 10000 }}\n\n\
         [connections.fallback]\ndialect = \"anthropic\"\nbase_url = \"{fallback}\"\ndomains = [\"vendor:fallback\"]\n"
    );
    let mut level = |name: &str, primary: &str, fallback: &str, clocks: &str| {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "\n[levels.\"{name}\"]\nchain = [\n  {{ connection = \"primary\", model = \"{primary}\" }},\n  \
             {{ connection = \"fallback\", model = \"{fallback}\" }},\n]\ntimeouts = {clocks}\nannounce = \"comment\"\n"
        );
    };
    for act in &ACTS {
        level(act.name, &act.broken(), act.model, act.clocks);
    }
    for fault in &FAULTS {
        level(fault.level, fault.primary, fault.fallback, PATIENCE);
    }
    text
}

/// The levels to try by hand, whose names are those of the faults.
pub(super) const FAULTS: [Fault; 11] = [
    Fault { level: "demo", primary: "mock", fallback: "mock", what: "nothing happens" },
    Fault {
        level: "fault-reset@20",
        primary: "fault-reset@20",
        fallback: "mock",
        what: "TCP reset in place of token 20",
    },
    Fault { level: "fault-half@20", primary: "fault-half@20", fallback: "mock", what: "reset inside an event" },
    Fault { level: "fault-end@20", primary: "fault-end@20", fallback: "mock", what: "the body ends without a finish" },
    Fault { level: "fault-stall@20", primary: "fault-stall@20", fallback: "mock", what: "silence" },
    Fault { level: "fault-pings@20", primary: "fault-pings@20", fallback: "mock", what: "nothing but pings" },
    Fault { level: "fault-error@20", primary: "fault-error@20", fallback: "mock", what: "an error event: overloaded" },
    Fault { level: "fault-503", primary: "fault-503", fallback: "mock", what: "503 instead of a stream" },
    Fault { level: "fault-429", primary: "fault-429", fallback: "mock", what: "429 instead of a stream" },
    Fault { level: "fault-hang", primary: "fault-hang", fallback: "mock", what: "never an answer" },
    Fault {
        level: "seam-preamble",
        primary: "fault-reset@20",
        fallback: "seam-preamble",
        what: "reset, and the fallback says `Sure, …` first",
    },
];

/// The clocks of the levels to try by hand: nobody wants to watch a silence for long.
const PATIENCE: &str = "{ connect = \"500ms\", first_token = \"1500ms\", stall = \"700ms\" }";

/// How long ends may take to be written down.
const SETTLING: Duration = Duration::from_secs(2);

/// Among so many turns the last one is found.
const RECENT: usize = 8;

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

    use super::{ACTS, Environment, FAULTS, config, configuration};

    #[test]
    fn the_configuration_is_one_without_a_doubt() {
        let (clients, operators) = ("127.0.0.1:8080".parse().unwrap(), "127.0.0.1:9090".parse().unwrap());
        let text = configuration(clients, operators, "http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1");
        let loaded = config::load(&text, "demo.toml", &Environment).unwrap();
        assert_eq!(loaded.warnings, []);
        assert_eq!(loaded.config.levels.len(), ACTS.len() + FAULTS.len());
        let mut findings = config::check::findings(&loaded.config);
        findings.retain(|finding| finding.severity == config::check::Severity::Warning);
        assert_eq!(findings, [], "{text}");
    }
}
