//! What a configuration comes to, and how one takes the place of another.
//!
//! A turn holds the setup that it began with until it ends, so a reload never changes the rules of an open turn. What is
//! known of a connection that did not change (circuits, latencies, rests, its line) goes on in the next setup, and so do
//! the limits that are used up and the budgets.

use super::admission::Admission;
use super::caller::TenantView;
use super::lock;
use crate::config::{Config, Connection};
use crate::fleet::{self, Fleet};
use crate::health::budget::Budget;
use crate::relay::journal::Cause;
use crate::routing::Level;
use crate::upstream::Upstream;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// A configuration at work.
pub(super) struct Setup {
    pub(super) config: Arc<Config>,
    pub(super) fleet: Fleet,
    pub(super) levels: HashMap<Arc<str>, Arc<Level>>,
    pub(super) tenants: Option<Vec<Arc<TenantView>>>,
    pub(super) admission: Admission,
    budgets: Mutex<HashMap<Arc<str>, Budgets>>,
}

/// What a level's challengers and retries are paid from.
#[derive(Clone)]
struct Budgets {
    hedge: Budget,
    suspicion: Budget,
    retry: Budget,
}

/// What a reload changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    /// Connections that are new, or begin anew because they changed.
    pub connections: Vec<Arc<str>>,
    /// Connections that are gone.
    pub removed: Vec<Arc<str>>,
    /// Keys of the configuration that changed and hold only after a restart.
    pub needs_restart: Vec<&'static str>,
}

/// Whoever makes the upstream of a connection; `None` for one that cannot be asked.
pub(super) type Dial<E = String> = dyn Fn(&Connection) -> Result<Option<Arc<dyn Upstream>>, E> + Send + Sync;

// === impl Setup ===

impl Setup {
    pub(super) fn new<E>(config: Config, dial: &Dial<E>) -> Result<Self, E> {
        let mut connections = Vec::new();
        for connection in &config.connections {
            connections.extend(connect(connection, &config, dial)?);
        }
        let fleet = Fleet::new(connections, rand::random());
        Ok(Self::assemble(config, fleet, None))
    }

    /// The setup that takes the place of this one.
    ///
    /// # Errors
    /// A sentence that names the connection which cannot be set up; nothing has changed then.
    pub(super) fn change(&self, config: Config, dial: &Dial) -> Result<(Self, Changes), String> {
        let before = &self.config;
        let same = |c: &Connection| {
            before.connections.contains(c) && before.limits.retry_after_cap == config.limits.retry_after_cap
        };
        let (mut kept, mut new) = (Vec::new(), Vec::new());
        for connection in &config.connections {
            if same(connection) {
                kept.push(Arc::clone(&connection.name));
            } else {
                new.extend(connect(connection, &config, dial)?);
            }
        }
        let named = |name: &Arc<str>| config.connections.iter().any(|c| c.name == *name);
        let changes = Changes {
            connections: new.iter().map(|c| Arc::clone(&c.name)).collect(),
            removed: before.connections.iter().map(|c| &c.name).filter(|n| !named(n)).cloned().collect(),
            needs_restart: needs_restart(before, &config),
        };
        let fleet = self.fleet.changed(&kept, new, rand::random());
        Ok((Self::assemble(config, fleet, Some(self)), changes))
    }

    /// Every turn pays its share into its level's budgets.
    pub(super) fn spend_turn(&self, level: &Arc<str>) {
        if let Some(Budgets { hedge, suspicion, retry }) = lock(&self.budgets).get_mut(level) {
            [hedge, suspicion, retry].into_iter().for_each(Budget::deposit);
        }
    }

    /// Whether the level's budget has room for another attempt that was opened because of `cause`; takes it. What a
    /// failure calls for (the next target, a continuation) is always paid: it is what the gateway is for.
    pub(super) fn pay(&self, level: &Arc<str>, cause: Cause) -> bool {
        if !cause.is_challenge() {
            return true;
        }
        let mut budgets = lock(&self.budgets);
        let Some(budgets) = budgets.get_mut(level) else { return false };
        match cause {
            Cause::Hedge => budgets.hedge.withdraw(),
            _ => budgets.suspicion.withdraw(),
        }
    }

    /// Whether the level may ask a target again that failed; takes it from the budget.
    pub(super) fn pay_retry(&self, level: &Arc<str>) -> bool {
        // A level of its own, `connection/model`, has no budget: it is one caller's.
        lock(&self.budgets).get_mut(level).is_none_or(|budgets| budgets.retry.withdraw())
    }

    fn assemble(config: Config, fleet: Fleet, before: Option<&Self>) -> Self {
        let levels: HashMap<_, _> = config.levels.iter().map(|l| (Arc::clone(&l.name), Arc::clone(l))).collect();
        let budgets = levels.values().map(|level| {
            let kept = before.filter(|b| b.levels.get(&level.name).is_some_and(|l| shares(l) == shares(level)));
            let kept = kept.and_then(|b| lock(&b.budgets).get(&level.name).cloned());
            (Arc::clone(&level.name), kept.unwrap_or_else(|| Budgets::of(level)))
        });
        let budgets = Mutex::new(budgets.collect());
        let tenants = config.tenants.as_ref().map(|all| all.iter().map(|t| Arc::new(TenantView::of(t))).collect());
        let admission = Admission::new(&config, before.map(|b| &b.admission));
        Self { config: Arc::new(config), fleet, levels, tenants, admission, budgets }
    }
}

// === impl Budgets ===

impl Budgets {
    fn of(level: &Level) -> Self {
        let (hedge, suspicion) = shares(level);
        Self { hedge: Budget::new(hedge), suspicion: Budget::new(suspicion), retry: Budget::new(RETRIES) }
    }
}

// === helpers ===

fn connect<E>(connection: &Connection, config: &Config, dial: &Dial<E>) -> Result<Option<fleet::Connection>, E> {
    let Some(upstream) = dial(connection)? else { return Ok(None) };
    Ok(Some(fleet::Connection {
        name: Arc::clone(&connection.name),
        upstream,
        breaker: super::connection::breaker(&connection.breaker),
        limits: super::connection::limits(&connection.limits, config.limits.retry_after_cap),
    }))
}

fn shares(level: &Level) -> (f64, f64) {
    (level.hedge.map_or(level.budget, |h| h.budget), level.budget)
}

/// What is set up once, when the process begins.
fn needs_restart(before: &Config, after: &Config) -> Vec<&'static str> {
    // Prices hold at once.
    let ledger = |config: &Config| (config.ledger.path.clone(), config.ledger.keep, config.ledger.bodies);
    let rows = [
        ("server.listen", before.server.listen != after.server.listen),
        ("server.tls", before.server.tls != after.server.tls),
        ("server.max_connections", before.server.max_connections != after.server.max_connections),
        ("server.drain", before.server.drain != after.server.drain),
        ("admin", before.admin != after.admin),
        ("store", before.store != after.store),
        ("ledger", ledger(before) != ledger(after)),
        ("alerts", before.alerts != after.alerts),
    ];
    rows.into_iter().filter(|(_, changed)| *changed).map(|(key, _)| key).collect()
}

/// Retries as a share of turns: where more than this fails in a way that waiting may heal, it does not heal, and asking
/// again only adds to what the provider has to bear.
const RETRIES: f64 = 0.2;
