//! The gateway as a value: what a server, a test or somebody else's program puts requests into.
//!
//! [`Gateway::begin`] resolves who asks for what, plans the turn, and gives a [`drive::Drive`], which is the turn
//! under way. It knows requests and bytes but no sockets: `server` puts it behind HTTP.

mod admission;
mod affinity;
mod answers;
pub mod buffer;
pub mod caller;
mod clock;
mod connection;
mod conversation;
pub mod count;
pub mod drive;
mod habits;
mod open;
mod place;
mod plan;
mod pool;
mod reading;
mod refusal;
pub mod reload;
mod repair;
mod room;
mod setup;
mod structured;
pub mod watch;

use crate::chat::{DialectId, Request};
use crate::config::{Config, Connection};
use crate::dialect::{self, Reason, Refusal};
use crate::fleet::Fleet;
use crate::ledger::Ledger;
use crate::record::alerts::Alerts;
use crate::record::notice::Log;
use crate::record::recent::Recent;
use crate::record::turn::Whose;
use crate::record::{Ended, Sink, Sinks, TurnRecord};
use crate::relay::{Relay, Why};
use crate::store::memory::{self, Memory};
use crate::store::view::ConversationView;
use crate::store::{Key, Store, Unavailable};
use crate::telemetry::Metrics;
use crate::upstream::Upstream;
use crate::upstream::http::Http;
use admission::Permits;
use affinity::Troubles;
use buffer::{Buffer, Held};
use caller::{Caller, Route, TenantView};
use conversation::Part;
use drive::Drive;
use open::OpenTurns;
use place::Places;
pub(crate) use plan::NORMAL_GAP;
use pool::Pool;
use reload::Source;
use room::{Room, Seat};
use setup::{Dial, Setup};
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, SystemTime};
use tokio_util::sync::CancellationToken;
use watch::Watchdog;

/// A gateway over one configuration. Cheap to clone; all clones are the same gateway.
#[derive(Clone)]
pub struct Gateway(Arc<Inner>);

struct Inner {
    setup: RwLock<Arc<Setup>>,
    dial: Box<Dial>,
    source: OnceLock<Box<Source>>,
    /// Whoever is told what happens.
    sinks: Sinks,
    recent: Arc<Recent>,
    metrics: Arc<Metrics>,
    ledger: OnceLock<Arc<Ledger>>,
    open: OpenTurns,
    room: Arc<Room>,
    /// Whoever checks structured answers.
    checkers: Pool,
    /// Whoever reads large requests, and takes them apart.
    readers: Pool,
    buffer: Arc<Buffer>,
    store: Arc<dyn Store>,
    store_failures: AtomicU64,
    places: Arc<Places>,
    troubles: Troubles,
    draining: AtomicBool,
    leaving: AtomicBool,
    watchdog: Arc<Watchdog>,
    /// Cancelled when open turns must end.
    hangup: CancellationToken,
}

/// A turn among the open ones, and what it holds of them; all is given back on drop.
pub(crate) struct LiveTurn {
    id: String,
    level: Arc<str>,
    tenant: Option<Arc<TenantView>>,
    /// The first digits of its key's digest.
    key: Option<Arc<str>>,
    conversation: Option<Arc<str>>,
    started: SystemTime,
    /// An estimate of the prompt's tokens.
    estimate: u64,
    /// Tokens that are reserved for the answer.
    answer: u64,
    hangup: CancellationToken,
    gateway: Arc<Inner>,
    /// What was configured when it began.
    setup: Arc<Setup>,
    permits: Permits,
    /// Its place, until the turn is over.
    seat: Option<Seat>,
}

// === impl Gateway ===

impl Gateway {
    /// A gateway that reaches its providers over HTTP.
    ///
    /// # Errors
    /// A sentence that names the connection which cannot be set up.
    pub fn new(config: Config) -> Result<Self, String> {
        let bounds = memory::Bounds { max_bytes: config.store.max_bytes, ttl: config.store.ttl };
        let store = Arc::new(Memory::new(bounds, Arc::new(drive::now)));
        Self::build(config, Box::new(dial), store)
    }

    /// A gateway that reaches its providers over HTTP, each through what `around` makes of its upstream, also after a
    /// reload.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn decorated(
        config: Config,
        around: impl Fn(&Arc<str>, Arc<dyn Upstream>) -> Arc<dyn Upstream> + Send + Sync + 'static,
    ) -> Result<Self, String> {
        let bounds = memory::Bounds { max_bytes: config.store.max_bytes, ttl: config.store.ttl };
        let store = Arc::new(Memory::new(bounds, Arc::new(drive::now)));
        let dial = move |connection: &Connection| Ok(dial(connection)?.map(|plain| around(&connection.name, plain)));
        Self::build(config, Box::new(dial), store)
    }

    /// A gateway that reaches its providers as the caller says; connections without an upstream are never asked.
    pub fn with_upstreams(config: Config, upstreams: HashMap<Arc<str>, Arc<dyn Upstream>>) -> Self {
        let bounds = memory::Bounds { max_bytes: config.store.max_bytes, ttl: config.store.ttl };
        let store = Arc::new(Memory::new(bounds, Arc::new(drive::now)));
        Self::with_store(config, upstreams, store)
    }

    /// A gateway that keeps its conversations as the caller says.
    pub fn with_store(config: Config, upstreams: HashMap<Arc<str>, Arc<dyn Upstream>>, store: Arc<dyn Store>) -> Self {
        let given = move |c: &Connection| -> Result<_, Infallible> { Ok(upstreams.get(&c.name).cloned()) };
        let setup = Setup::new(config, &given).unwrap_or_else(|never| match never {});
        Self::assemble(setup, Box::new(move |c| given(c).map_err(|never| match never {})), store)
    }

    fn build(config: Config, dial: Box<Dial>, store: Arc<dyn Store>) -> Result<Self, String> {
        Ok(Self::assemble(Setup::new(config, &*dial)?, dial, store))
    }

    fn assemble(setup: Setup, dial: Box<Dial>, store: Arc<dyn Store>) -> Self {
        let webhook = setup.config.alerts.webhook.as_ref().map(|url| url.expose());
        let (sinks, recent, metrics) = (Sinks::default(), Arc::<Recent>::default(), Arc::<Metrics>::default());
        metrics.know(&setup.config);
        // Who looks for a turn in the log finds it among the last ones: those come first.
        let first: [Arc<dyn Sink>; 4] =
            [Arc::clone(&recent) as _, Arc::clone(&metrics) as _, Arc::new(Log), Arc::new(Alerts::new(webhook))];
        first.into_iter().for_each(|sink| sinks.add(sink));
        let circuits = sinks.clone();
        setup.fleet.observe(move |entry| circuits.circuit(entry));
        Self(Arc::new(Inner {
            sinks,
            recent,
            metrics,
            ledger: OnceLock::new(),
            open: OpenTurns::default(),
            setup: RwLock::new(Arc::new(setup)),
            dial,
            source: OnceLock::new(),
            room: Arc::default(),
            checkers: Pool::new("check"),
            readers: Pool::new("read"),
            buffer: Arc::default(),
            store,
            store_failures: AtomicU64::new(0),
            places: Arc::default(),
            troubles: Troubles::default(),
            draining: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
            watchdog: Arc::default(),
            hangup: CancellationToken::new(),
        }))
    }

    /// Who asks, by the key of the request: the value of `authorization: Bearer …` or `x-api-key`.
    ///
    /// # Errors
    /// 401 where keys are needed and this is none.
    pub fn authorize(&self, key: Option<&str>) -> Result<Caller, Refusal> {
        caller::authorize(self.0.setup().tenants.as_deref(), key, SystemTime::now())
    }

    /// The names of models that `caller` may ask for: its levels, then its aliases, each with the level it means.
    pub fn models(&self, caller: &Caller) -> Vec<(Arc<str>, Arc<str>)> {
        caller::models(caller, &self.0.setup().config)
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
        let setup = inner.setup();
        let route = caller::route(caller, &request.model, &setup.levels, &setup.config)?;
        if request.model.is_empty() {
            // Who names none is told the level where a provider names none either.
            request.model = route.level.name.to_string();
        }
        let patience = plan::deadline(&route.level, &request);
        let mut live = LiveTurn::open(inner, setup, caller, &route, &request, patience).await?;
        request.minted = plan::minted(live.started);
        let kept = answers::recall(inner, &live, &mut request).await?;
        let mut part = conversation::join(inner, &live, &route.level, &mut request, patience).await?;
        if let Some(part) = &part {
            live.hangup = part.token().clone();
        }
        if part.is_some() || request.extensions.previous.is_some() {
            live.estimate = request.estimated_prompt();
        }
        let served_by = part.as_ref().and_then(Part::served_by);
        let mut prepared = plan::prepare((&live.setup, &inner.troubles), &route, &request, caller, served_by)?;
        if let Some(part) = &mut part {
            part.ask().await;
        }
        // Waiting for the conversation was the turn's own time.
        let now = drive::now();
        prepared.policy.deadline = patience.saturating_sub(now.saturating_duration_since(came));
        let client = dialect::client(request.origin)
            .ok_or_else(|| Refusal::new(Reason::Internal, "dialect", "this dialect is not built in"))?;
        let encoder = client.encoder(&request);
        live.setup.spend_turn(&route.level.name);
        let relay = Relay::new(prepared.policy, prepared.candidates.clone(), now);
        Ok(Drive::new(drive::Parts {
            gateway: Arc::clone(inner),
            keep_alive: live.setup.config.server.keep_alive,
            live,
            request: Arc::new(request),
            candidates: prepared.candidates,
            relay,
            encoder,
            announce: route.level.announce,
            last_resort: prepared.last_resort,
            part,
            kept,
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
        self.0.setup().config.server.headers_after
    }

    /// The configuration.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.0.setup().config)
    }

    /// The targets and their health.
    pub fn fleet(&self) -> Fleet {
        self.0.setup().fleet.clone()
    }

    /// The turns that ended last, newest first.
    pub fn recent(&self, limit: usize) -> Vec<TurnRecord> {
        self.0.recent.last(limit)
    }

    /// The turns that are under way, newest first, as far as they have come. One that is being worked on in this very
    /// moment may be missing.
    pub fn live(&self, limit: usize) -> Vec<TurnRecord> {
        self.0.open.show(limit)
    }

    /// The turn with this id: one under way, or one of those that ended last.
    pub fn turn(&self, id: &str) -> Option<TurnRecord> {
        self.0.open.find(id).or_else(|| self.0.recent.find(id).map(|record| (*record).clone()))
    }

    /// What is counted.
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// Notes that a request was refused, before or without a turn.
    pub fn note_refusal(&self, refusal: &Refusal) {
        self.0.sinks.refused(&refusal.code);
    }

    /// Writes what happens into `ledger` from now on. Only the first one is taken.
    pub fn keep_ledger(&self, ledger: Arc<Ledger>) {
        if self.0.ledger.set(Arc::clone(&ledger)).is_ok() {
            self.tell(ledger);
        }
    }

    /// Where it is written what happens, if it is.
    pub fn ledger(&self) -> Option<&Arc<Ledger>> {
        self.0.ledger.get()
    }

    /// Tells `sink` of everything that happens from now on.
    pub fn tell(&self, sink: Arc<dyn Sink>) {
        self.0.sinks.add(sink);
    }

    /// Whoever is told what happens.
    pub fn sinks(&self) -> &Sinks {
        &self.0.sinks
    }

    /// What counts the bytes of a request for as long as it is held.
    pub fn hold(&self) -> Held {
        Held::of(&self.0.buffer)
    }

    /// How many turns are open.
    pub fn open_turns(&self) -> usize {
        self.0.room.open()
    }

    /// Says, by [`Self::is_leaving`], that new turns should go elsewhere; they are taken all the same.
    pub fn leave(&self) {
        self.0.leaving.store(true, Ordering::Relaxed);
    }

    /// Whether new turns should go elsewhere.
    pub fn is_leaving(&self) -> bool {
        self.0.leaving.load(Ordering::Relaxed) || self.is_draining()
    }

    /// Takes no new turns; open ones go on.
    pub fn drain(&self) {
        self.0.draining.store(true, Ordering::Relaxed);
    }

    /// Whether new turns are taken.
    pub fn is_draining(&self) -> bool {
        self.0.draining.load(Ordering::Relaxed)
    }

    /// Who watches the workers.
    pub fn watchdog(&self) -> Arc<Watchdog> {
        Arc::clone(&self.0.watchdog)
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
    fn setup(&self) -> Arc<Setup> {
        Arc::clone(&self.setup.read().unwrap_or_else(PoisonError::into_inner))
    }
}

// === impl LiveTurn ===

impl LiveTurn {
    /// Takes the turn's part of all limits, and a place among the open ones.
    async fn open(
        inner: &Arc<Inner>,
        setup: Arc<Setup>,
        caller: &Caller,
        route: &Route,
        request: &Request,
        patience: Duration,
    ) -> Result<Self, Refusal> {
        let estimate = request.estimated_prompt();
        let answer = request.max_tokens.unwrap_or(0).min(RESERVED);
        let permits = setup.admission.admit(caller, estimate.saturating_add(answer), drive::now())?;
        let seat = room::enter(&inner.room, &setup.config.server, &route.level, patience, &inner.hangup).await?;
        Ok(Self {
            id: format!("turn_{:032x}", rand::random::<u128>()),
            level: Arc::clone(&route.level.name),
            tenant: caller.tenant.clone(),
            key: caller.key.map(|key| caller::mark(&key)),
            conversation: request.extensions.conversation.as_deref().map(Arc::from),
            started: SystemTime::now(),
            estimate,
            answer,
            hangup: inner.hangup.child_token(),
            gateway: Arc::clone(inner),
            setup,
            permits,
            seat: Some(seat),
        })
    }

    /// The tenant's own credential for a connection, if it has one.
    fn credential(&self, connection: &str) -> Option<Arc<str>> {
        self.tenant.as_ref()?.credential(connection)
    }

    /// Whose turn it is, for its record.
    fn whose(&self) -> Whose {
        Whose {
            turn: self.id.clone(),
            tenant: self.tenant.as_ref().map(|tenant| Arc::clone(&tenant.name)),
            key: self.key.clone(),
            level: Arc::clone(&self.level),
            conversation: self.conversation.clone(),
            started: self.started,
            estimate: self.estimate,
        }
    }

    /// Why the turn was hung up.
    fn why(&self) -> Why {
        if self.gateway.hangup.is_cancelled() { Why::Drain } else { Why::Superseded }
    }
}

// === helpers ===

/// A poisoned lock only means that somebody panicked while counting; the counts are still the best there is.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection's upstream over HTTP; `None` for a dialect that is not built in.
pub(crate) fn dial(connection: &Connection) -> Result<Option<Arc<dyn Upstream>>, String> {
    if dialect::provider(connection.dialect).is_none() {
        return Ok(None);
    }
    let http =
        Http::new(connection::settings(connection)).map_err(|why| format!("connections.{}: {why}", connection.name))?;
    Ok(Some(Arc::new(http)))
}

/// The dialects that a client can speak to this gateway.
pub fn speaks(id: DialectId) -> bool {
    dialect::client(id).is_some()
}

/// The most tokens that are reserved for an answer, whatever was asked for: most answers are much shorter than they may be,
/// and what one really takes is settled at its end.
const RESERVED: u64 = 4096;
