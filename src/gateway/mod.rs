//! The gateway as a value: what a server, a test or somebody else's program puts requests into.
//!
//! [`Gateway::begin`] resolves who asks for what, plans the turn, and gives a [`drive::Drive`], which is the turn
//! under way. It knows requests and bytes but no sockets: `server` puts it behind HTTP.

pub mod account;
mod affinity;
pub mod caller;
mod conversation;
pub mod drive;
mod place;
mod plan;
pub mod record;
mod refusal;
mod structured;

use crate::chat::{DialectId, Request};
use crate::config::Config;
use crate::dialect::{self, Reason, Refusal};
use crate::fleet::{self, Fleet};
use crate::health::budget::Budget;
use crate::relay::journal::Cause;
use crate::relay::{Relay, Why};
use crate::routing::Level;
use crate::store::memory::{self, Memory};
use crate::store::view::ConversationView;
use crate::store::{Key, Store, Unavailable};
use crate::upstream::Upstream;
use crate::upstream::http::Http;
use affinity::Troubles;
use caller::{Caller, Route, TenantView};
use conversation::Part;
use drive::Drive;
use place::Places;
pub(crate) use plan::NORMAL_GAP;
use record::TurnRecord;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio_util::sync::CancellationToken;

/// A gateway over one configuration. Cheap to clone; all clones are the same gateway.
#[derive(Clone)]
pub struct Gateway(Arc<Inner>);

struct Inner {
    config: Arc<Config>,
    fleet: Fleet,
    levels: HashMap<Arc<str>, Arc<Level>>,
    tenants: Option<Vec<Arc<TenantView>>>,
    budgets: Mutex<HashMap<Arc<str>, Budgets>>,
    recent: Mutex<VecDeque<TurnRecord>>,
    open_turns: AtomicUsize,
    store: Arc<dyn Store>,
    store_failures: AtomicU64,
    places: Arc<Places>,
    troubles: Troubles,
    draining: AtomicBool,
    /// Cancelled when open turns must end.
    hangup: CancellationToken,
}

/// What a level's challengers are paid from.
struct Budgets {
    hedge: Budget,
    suspicion: Budget,
}

/// A turn's place among the open ones; it is given back on drop.
pub(crate) struct LiveTurn {
    id: String,
    level: Arc<str>,
    tenant: Option<Arc<TenantView>>,
    started: SystemTime,
    /// An estimate of the prompt's tokens.
    estimate: u64,
    hangup: CancellationToken,
    gateway: Arc<Inner>,
}

// === impl Gateway ===

impl Gateway {
    /// A gateway that reaches its providers over HTTP.
    ///
    /// # Errors
    /// A sentence that names the connection which cannot be set up.
    pub fn new(config: Config) -> Result<Self, String> {
        let mut upstreams: HashMap<Arc<str>, Arc<dyn Upstream>> = HashMap::new();
        for connection in &config.connections {
            if dialect::of(connection.dialect).is_none() {
                continue;
            }
            let http = Http::new(plan::settings(connection))
                .map_err(|why| format!("connections.{}: {why}", connection.name))?;
            upstreams.insert(Arc::clone(&connection.name), Arc::new(http));
        }
        Ok(Self::with_upstreams(config, upstreams))
    }

    /// A gateway that reaches its providers as the caller says; connections without an upstream are never asked.
    pub fn with_upstreams(config: Config, upstreams: HashMap<Arc<str>, Arc<dyn Upstream>>) -> Self {
        let bounds = memory::Bounds { max_bytes: config.store.max_bytes, ttl: config.store.ttl };
        let store = Arc::new(Memory::new(bounds, Arc::new(drive::now)));
        Self::with_store(config, upstreams, store)
    }

    /// A gateway that keeps its conversations as the caller says.
    pub fn with_store(
        config: Config,
        mut upstreams: HashMap<Arc<str>, Arc<dyn Upstream>>,
        store: Arc<dyn Store>,
    ) -> Self {
        let connections = config
            .connections
            .iter()
            .filter_map(|c| {
                let upstream = upstreams.remove(&c.name)?;
                Some(fleet::Connection {
                    name: Arc::clone(&c.name),
                    upstream,
                    breaker: plan::breaker(&c.breaker),
                    limits: plan::limits(&c.limits, config.limits.retry_after_cap),
                })
            })
            .collect();
        let levels: HashMap<_, _> = config.levels.iter().map(|l| (Arc::clone(&l.name), Arc::clone(l))).collect();
        let budgets = levels.values().map(|l| (Arc::clone(&l.name), Budgets::of(l))).collect();
        let tenants = config.tenants.as_ref().map(|all| all.iter().map(|t| Arc::new(TenantView::of(t))).collect());
        Self(Arc::new(Inner {
            fleet: Fleet::new(connections, rand::random()),
            config: Arc::new(config),
            levels,
            tenants,
            budgets: Mutex::new(budgets),
            recent: Mutex::new(VecDeque::new()),
            open_turns: AtomicUsize::new(0),
            store,
            store_failures: AtomicU64::new(0),
            places: Arc::default(),
            troubles: Troubles::default(),
            draining: AtomicBool::new(false),
            hangup: CancellationToken::new(),
        }))
    }

    /// Who asks, by the key of the request: the value of `authorization: Bearer …` or `x-api-key`.
    ///
    /// # Errors
    /// 401 where keys are needed and this is none.
    pub fn authorize(&self, key: Option<&str>) -> Result<Caller, Refusal> {
        caller::authorize(self.0.tenants.as_deref(), key, SystemTime::now())
    }

    /// The names of models that `caller` may ask for: its levels, then its aliases, each with the level it means.
    pub fn models(&self, caller: &Caller) -> Vec<(Arc<str>, Arc<str>)> {
        caller::models(caller, &self.0.config)
    }

    /// Begins a turn. One that belongs to a conversation may have to wait for the turn before it.
    ///
    /// # Errors
    /// A refusal before anybody was asked: unknown model, not allowed, draining, full, conversation busy, no target that
    /// could serve.
    pub async fn begin(&self, caller: &Caller, mut request: Request) -> Result<Drive, Refusal> {
        let inner = &self.0;
        if inner.draining.load(Ordering::Relaxed) {
            let message = "the gateway is shutting down; ask again";
            return Err(Refusal::new(Reason::Unavailable, "draining", message));
        }
        if request.extensions.resumable {
            let message = "x-segue-resumable is not available yet; leave the header out";
            return Err(Refusal::new(Reason::Request, "resumable_unavailable", message).about("x-segue-resumable"));
        }
        let came = drive::now();
        let route = caller::route(caller, &request.model, &inner.levels, &inner.config)?;
        let mut live = LiveTurn::open(inner, caller, &route, &request)?;
        request.minted = plan::minted(live.started);
        let patience = plan::deadline(&route.level, &request);
        let mut part = conversation::join(inner, &live, &route.level, &mut request, patience).await?;
        if let Some(part) = &part {
            live.hangup = part.token().clone();
            live.estimate = request.estimated_prompt();
        }
        let served_by = part.as_ref().and_then(Part::served_by);
        let mut prepared = plan::prepare(inner, &route, &request, caller, served_by)?;
        if let Some(part) = &mut part {
            part.ask().await;
        }
        // Waiting for the conversation was the turn's own time.
        let now = drive::now();
        prepared.policy.deadline = patience.saturating_sub(now.saturating_duration_since(came));
        let dialect = dialect::of(request.origin)
            .ok_or_else(|| Refusal::new(Reason::Internal, "dialect", "this dialect is not built in"))?;
        let encoder = dialect.encoder(&request);
        inner.spend_turn(&route.level.name);
        let relay = Relay::new(prepared.policy, prepared.candidates.clone(), now);
        Ok(Drive::new(drive::Parts {
            gateway: Arc::clone(inner),
            live,
            request: Arc::new(request),
            candidates: prepared.candidates,
            relay,
            encoder,
            keep_alive: inner.config.server.keep_alive,
            announce: route.level.announce,
            last_resort: prepared.last_resort,
            part,
        }))
    }

    /// What is kept of a conversation; `None`: nothing.
    ///
    /// # Errors
    /// Where the store cannot be asked now.
    pub async fn conversation(&self, key: &Key) -> Result<Option<ConversationView>, Unavailable> {
        let kept = Inner::store_reply(self.0.store.load(key)).await?;
        Ok(kept.map(|conversation| ConversationView::of(key, &conversation)))
    }

    /// Forgets a conversation; gives whether there was one. A turn of it that is open goes on, and its answer is not kept.
    ///
    /// # Errors
    /// Where the store cannot be asked now.
    pub async fn forget(&self, key: &Key) -> Result<bool, Unavailable> {
        Inner::store_reply(self.0.store.forget(key)).await
    }

    /// How often the store failed or was too slow; those turns went on without it.
    pub fn store_failures(&self) -> u64 {
        self.0.store_failures.load(Ordering::Relaxed)
    }

    /// How long a stream may be without progress before its headers go out; `None`: for ever.
    pub fn headers_after(&self) -> Option<Duration> {
        self.0.config.server.headers_after
    }

    /// The configuration.
    pub fn config(&self) -> &Arc<Config> {
        &self.0.config
    }

    /// The targets and their health.
    pub fn fleet(&self) -> &Fleet {
        &self.0.fleet
    }

    /// The turns that ended last, newest first.
    pub fn recent(&self, limit: usize) -> Vec<TurnRecord> {
        lock(&self.0.recent).iter().rev().take(limit).cloned().collect()
    }

    /// How many turns are open.
    pub fn open_turns(&self) -> usize {
        self.0.open_turns.load(Ordering::Relaxed)
    }

    /// Takes no new turns; open ones go on.
    pub fn drain(&self) {
        self.0.draining.store(true, Ordering::Relaxed);
    }

    /// Whether new turns are taken.
    pub fn is_draining(&self) -> bool {
        self.0.draining.load(Ordering::Relaxed)
    }

    /// Ends every open turn with an error.
    pub fn hang_up(&self) {
        self.0.hangup.cancel();
    }
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("open_turns", &self.open_turns()).finish_non_exhaustive()
    }
}

// === impl Inner ===

impl Inner {
    fn record(&self, live: &LiveTurn, record: TurnRecord) {
        tracing::debug!(
            turn = live.id,
            level = &*live.level,
            outcome = record.outcome,
            splices = record.splices,
            attempts = record.attempts.len(),
            "turn ended"
        );
        let mut recent = lock(&self.recent);
        if recent.len() == RECENT {
            recent.pop_front();
        }
        recent.push_back(record);
    }

    /// Every turn pays its share into its level's budgets.
    fn spend_turn(&self, level: &Arc<str>) {
        if let Some(budgets) = lock(&self.budgets).get_mut(level) {
            budgets.hedge.deposit();
            budgets.suspicion.deposit();
        }
    }

    /// Whether the level's budget has room for another challenger; takes it.
    fn may_challenge(&self, level: &Arc<str>, cause: Cause) -> bool {
        let mut budgets = lock(&self.budgets);
        let Some(budgets) = budgets.get_mut(level) else { return false };
        match cause {
            Cause::Hedge => budgets.hedge.withdraw(),
            _ => budgets.suspicion.withdraw(),
        }
    }
}

// === impl Budgets ===

impl Budgets {
    fn of(level: &Level) -> Self {
        let hedge = level.hedge.map_or(level.budget, |h| h.budget);
        Self { hedge: Budget::new(hedge), suspicion: Budget::new(level.budget) }
    }
}

// === impl LiveTurn ===

impl LiveTurn {
    fn open(inner: &Arc<Inner>, caller: &Caller, route: &Route, request: &Request) -> Result<Self, Refusal> {
        let open = inner.open_turns.fetch_add(1, Ordering::Relaxed);
        let live = Self {
            id: format!("turn_{:032x}", rand::random::<u128>()),
            level: Arc::clone(&route.level.name),
            tenant: caller.tenant.clone(),
            started: SystemTime::now(),
            estimate: request.estimated_prompt(),
            hangup: inner.hangup.child_token(),
            gateway: Arc::clone(inner),
        };
        let max = inner.config.server.max_turns;
        if open >= max {
            let message = format!("this gateway serves at most {max} turns at once (server.max_turns); ask again");
            let mut refusal = Refusal::new(Reason::Unavailable, "full", message);
            refusal.retry_after = Some(Duration::from_secs(1));
            return Err(refusal);
        }
        Ok(live)
    }

    /// The tenant's own credential for a connection, if it has one.
    fn credential(&self, connection: &str) -> Option<Arc<str>> {
        self.tenant.as_ref()?.credential(connection)
    }

    /// Why the turn was hung up.
    fn why(&self) -> Why {
        if self.gateway.hangup.is_cancelled() { Why::Drain } else { Why::Superseded }
    }
}

impl Drop for LiveTurn {
    fn drop(&mut self) {
        self.gateway.open_turns.fetch_sub(1, Ordering::Relaxed);
    }
}

// === helpers ===

/// A poisoned lock only means that somebody panicked while counting; the counts are still the best there is.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The dialects that a client can speak to this gateway.
pub fn speaks(id: DialectId) -> bool {
    dialect::of(id).is_some()
}

/// How many ended turns are remembered.
const RECENT: usize = 1000;
