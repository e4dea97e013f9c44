//! The targets and their health: the one place with locks.
//!
//! Turns come and go in parallel; what they must know of each other is here. A [`Fleet`] decides whether a target may be
//! asked now (circuit, rest after a rate limit), lets attempts wait for the connection's quota, and learns from how they
//! end. Each connection has one mutex, held for a few hundred nanoseconds and never over an await.
//!
//! Everything that an attempt holds (its place in the queue, its slot, its reservation, its ticket) is held by values
//! that give it back when they are dropped. So an [`Attempt`] may be dropped at any moment, and nothing leaks.
//!
//! The rules themselves are a value, [`crate::health::connection`]; here are its lock and those who wait. `gate` is a
//! connection at work, `line` the queue before it, `room` where those wait who may not all come at once after a rest,
//! `lease` what an admitted attempt holds, `view` what is shown of it all.

use crate::failure::Declined;
use crate::health::blame::Plaintiff;
use crate::health::breaker::{Force, Policy};
pub use crate::health::connection::Availability;
use crate::health::connection::{self, Look};
use crate::health::jitter::Seeds;
use crate::routing::Target;
use crate::turn::form::Form;
use crate::upstream::{Call, Upstream};
use attempt::Lesson;
use forms::Forms;
use gate::{Gate, Wish};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use view::Journal;

pub mod attempt;
mod forms;
mod gate;
mod habits;
mod lease;
mod line;
mod room;
pub mod view;

pub use attempt::Attempt;
pub use view::{CircuitView, Entry};

/// All connections of a configuration. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Fleet {
    inner: Arc<Inner>,
}

/// A provider connection, as it is configured.
pub struct Connection {
    /// Its name.
    pub name: Arc<str>,
    /// Who makes its calls.
    pub upstream: Arc<dyn Upstream>,
    /// When the circuits of its models open.
    pub breaker: Policy,
    /// What may be sent to it.
    pub limits: ConnectionLimits,
}

/// What may be sent to a connection. More waits in line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Attempts open at once; 0 is taken as 1.
    pub in_flight: Option<usize>,
    /// Requests a minute.
    pub rpm: Option<u64>,
    /// Tokens a minute.
    pub tpm: Option<u64>,
    /// The longest time for which a target rests on its provider's word (`limits.retry_after_cap`): who names a day is
    /// asked again sooner.
    pub retry_after_cap: Duration,
}

/// What attempts hold. Each of these comes back, however an attempt ends; what does not is a leak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Places in line.
    pub places: usize,
    /// Slots of connections with a limit in flight.
    pub slots: usize,
    /// Shares of the connections' quotas that were neither settled nor released.
    pub reservations: usize,
    /// Circuits' tickets that were not settled.
    pub tickets: usize,
    /// Attempts on the wire.
    pub flights: usize,
}

/// What an attempt asks for.
pub struct Ask {
    /// Whom.
    pub target: Arc<Target>,
    /// What.
    pub call: Call,
    /// For which tenant; `None` where there are none.
    pub tenant: Option<Arc<str>>,
    /// The form in which it is asked, which is remembered if it is answered.
    pub form: Form,
    /// Something was told to the client: a target on trial is not for this turn.
    pub delivered: bool,
    /// Another candidate is behind it, so it may be the one that tries a half-open circuit.
    pub others: bool,
    /// No target of the chain is [`Availability::Ready`] for this turn: take the trial's place, even before the cooldown
    /// is over. One at a time; what an operator forced open stays so.
    pub last_resort: bool,
    /// How long it may wait in line.
    pub patience: Duration,
    /// Tokens of the prompt, as far as one can tell.
    pub estimate: u64,
    /// Tokens to reserve for the answer besides.
    pub answer: u64,
}

/// Who asks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Who<'a> {
    /// The tenant; `None` where there are none.
    pub tenant: Option<&'a str>,
    /// The tenant's own credential; `None`: the connection's own is used.
    pub credential: Option<&'a str>,
}

struct Inner {
    gates: BTreeMap<Arc<str>, Arc<Gate>>,
    journal: Arc<Mutex<Journal>>,
    forms: Arc<Mutex<Forms>>,
}

// === impl Fleet ===

impl Fleet {
    /// A fleet of healthy targets. `seed` determines all jitter; see [`seed`]. Of two connections with one name the
    /// later one counts.
    pub fn new(connections: Vec<Connection>, seed: u64) -> Self {
        let mut seeds = Seeds::new(seed);
        let journal = Arc::default();
        let gates = connections
            .into_iter()
            .map(|connection| {
                let gate = Gate::new(connection, Arc::clone(&journal), seeds.draw());
                (Arc::clone(&gate.name), Arc::new(gate))
            })
            .collect();
        Self { inner: Arc::new(Inner { gates, journal, forms: Arc::default() }) }
    }

    /// The fleet after a change of configuration: connections in `kept` go on with all that is known of them, but nobody
    /// there rests any more; those in `new` begin healthy, and any other is gone. The journal goes on. Attempts that are
    /// open are not touched.
    #[must_use]
    pub fn changed(&self, kept: &[Arc<str>], new: Vec<Connection>, seed: u64) -> Self {
        let mut seeds = Seeds::new(seed);
        let journal = Arc::clone(&self.inner.journal);
        let mut gates: BTreeMap<_, _> = kept
            .iter()
            .filter_map(|name| self.inner.gates.get(name).map(|gate| (Arc::clone(name), Arc::clone(gate))))
            .collect();
        gates.values().for_each(|gate| gate.wake());
        let forms = Arc::clone(&self.inner.forms);
        for connection in new {
            lock(&forms).forget(&connection.name);
            let gate = Gate::new(connection, Arc::clone(&journal), seeds.draw());
            gates.insert(Arc::clone(&gate.name), Arc::new(gate));
        }
        Self { inner: Arc::new(Inner { gates, journal, forms }) }
    }

    /// Tells `observer` too of every change of a circuit from now on, in order. It is called with a lock held: it must
    /// be quick and must not ask the fleet.
    pub fn observe(&self, observer: impl Fn(&Entry) + Send + Sync + 'static) {
        lock(&self.inner.journal).observe(Box::new(observer));
    }

    /// Opens an attempt. Where it cannot be made now (circuit open, resting, the line longer than `patience`), its only
    /// signal is [`Signal::Declined`](crate::event::Signal::Declined).
    pub fn open(&self, ask: Ask) -> Attempt {
        let Ask { target, call, form, tenant, delivered, others, last_resort, patience, estimate, answer } = ask;
        let Some(gate) = self.gate(&target) else { return Attempt::refused(unknown(&target)) };
        let of = connection::Wish {
            model: Arc::clone(&target.model),
            by: Plaintiff {
                request: gate.request(&call.wire.body),
                ..gate.plaintiff(tenant.as_deref(), call.credential.as_deref())
            },
            may_try: last_resort || (!delivered && others),
            last_resort,
            others,
            prompt: estimate,
            estimate: estimate.saturating_add(answer),
        };
        let wish = Wish { of, patience };
        let ahead = gate.room(&wish).map_or(0, |room| room.waiting());
        match gate.look(&wish, ahead, now()) {
            Look::No(declined) => Attempt::refused(declined),
            Look::Go | Look::Later(_) => {
                let lesson = form.lasting().map(|form| Lesson { forms: Arc::clone(&self.inner.forms), target, form });
                Attempt::queued(Arc::clone(gate), wish, call, lesson)
            }
        }
    }

    /// Whether `target` may be asked by `tenant` with `credential` (`None`: the connection's own), and when it may again.
    /// `until` is what a client is told; Segue itself asks a little later.
    pub fn availability(&self, target: &Target, who: Who<'_>, now: Instant) -> Availability {
        match self.gate(target) {
            Some(gate) => gate.availability(&target.model, gate.plaintiff(who.tenant, who.credential), now),
            None => Availability::Open { until: now + UNKNOWN_RETRY },
        }
    }

    /// Whether an attempt that tries `target` may be raced: after two trials that were abandoned the next must be
    /// judged.
    pub fn may_hedge(&self, target: &Target) -> bool {
        self.gate(target).is_none_or(|gate| gate.known(|known| known.may_hedge(&target.model)))
    }

    /// The target refused `what` (such as [`PREFILL`]) in a request whose body was `body`. It is remembered for a while,
    /// for everybody; where only the provider's words tell it, as far as they are borne out.
    pub fn learn_lack(&self, target: &Target, what: &str, who: Who<'_>, body: &[u8], by_words: bool) {
        let Some(gate) = self.gate(target) else { return };
        let by = Plaintiff { request: gate.request(body), ..gate.plaintiff(who.tenant, who.credential) };
        gate.known(|known| known.lacks(&target.model, gate.mark(what), by, by_words, now()));
    }

    /// An answer of `target` to a request that did not ask it to think: whether it thought.
    pub fn learn_thinking(&self, target: &Target, thought: bool) {
        if let Some(gate) = self.gate(target) {
            lock(&gate.habits).answered(&target.model, thought);
        }
    }

    /// Whether it was lately seen to think unasked.
    pub fn thinks(&self, target: &Target) -> bool {
        self.gate(target).is_some_and(|gate| lock(&gate.habits).thinks(&target.model))
    }

    /// Whether the target is known to refuse `what`, as far as `tenant` is concerned.
    pub fn is_lacking(&self, target: &Target, what: &str, tenant: Option<&str>) -> bool {
        let Some(gate) = self.gate(target) else { return false };
        let tenant = tenant.map(|tenant| gate.mark(tenant));
        gate.known(|known| known.is_lacking(&target.model, gate.mark(what), tenant, now()))
    }

    /// The form in which `target` takes requests, as far as earlier ones have shown.
    pub fn form(&self, target: &Target, now: Instant) -> Form {
        lock(&self.inner.forms).of(target, now)
    }

    /// The time within which `percent` (0 to 100) of recent attempts gave their first progress, counted from when they
    /// were sent; `None` where there were too few.
    pub fn first_token_percentile(&self, target: &Target, percent: f64) -> Option<Duration> {
        self.gate(target)?.known(|known| known.first_token(&target.model, percent, now()))
    }

    /// The silence that `percent` (0 to 100) of recent silences in mid-turn did not exceed; `None` where there were too
    /// few. What came without a wait counts for nothing.
    pub fn gap_percentile(&self, target: &Target, percent: f64) -> Option<Duration> {
        self.gate(target)?.known(|known| known.gap(&target.model, percent, now()))
    }

    /// All circuits that ever saw an attempt, by connection and model.
    pub fn circuits(&self, now: Instant) -> Vec<CircuitView> {
        self.inner.gates.values().flat_map(|gate| gate.views(now)).collect()
    }

    /// Follows an operator's word on one circuit, or on all of a connection, those to come included. Returns how many
    /// circuits there are that follow it.
    pub fn force(&self, connection: &str, model: Option<&str>, force: Force) -> usize {
        self.inner.gates.get(connection).map_or(0, |gate| gate.force(model, force, now()))
    }

    /// What attempts hold of all connections at this moment: nothing, when none is open.
    pub fn held(&self) -> Held {
        self.inner.gates.values().fold(Held::default(), |all, gate| all.and(gate.held()))
    }

    /// Whether there is such a connection.
    pub fn knows(&self, connection: &str) -> bool {
        self.inner.gates.contains_key(connection)
    }

    /// The changes of circuits after the entry with number `after` (0: from the first), oldest first; the last
    /// [`view::JOURNAL`] are kept.
    pub fn journal(&self, after: u64) -> Vec<Entry> {
        lock(&self.inner.journal).after(after)
    }

    /// How a connection is reached, for what is asked beside turns.
    pub fn upstream(&self, connection: &str) -> Option<Arc<dyn Upstream>> {
        self.inner.gates.get(connection).map(|gate| Arc::clone(&gate.upstream))
    }

    fn gate(&self, target: &Target) -> Option<&Arc<Gate>> {
        self.inner.gates.get(&target.connection)
    }
}

// === impl Held ===

impl Held {
    fn and(self, other: Self) -> Self {
        Self {
            places: self.places + other.places,
            slots: self.slots + other.slots,
            reservations: self.reservations + other.reservations,
            tickets: self.tickets + other.tickets,
            flights: self.flights + other.flights,
        }
    }
}

// === impl ConnectionLimits ===

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self { in_flight: None, rpm: None, tpm: None, retry_after_cap: Duration::from_secs(60) }
    }
}

/// A seed for [`Fleet::new`] that nobody can foresee.
pub fn seed() -> u64 {
    rand::random()
}

/// The time by tokio's clock, which tests can pause.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Locks. A turn that panicked while it held the lock must not take all others with it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unknown(target: &Target) -> Declined {
    let name = &target.connection;
    Declined::Unfit(format!("there is no connection `{name}`; its configuration was removed or renamed"))
}

/// What a target lacks that does not take an assistant message at the end; see [`Fleet::learn_lack`].
pub const PREFILL: &str = "prefill";

/// A connection that is not there may be after the next reload.
const UNKNOWN_RETRY: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;
