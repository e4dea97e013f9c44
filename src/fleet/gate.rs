//! One connection: its circuits, rests and quota, under one lock.

use super::rests::{Resting, Rests};
use super::view::{CircuitView, Journal, wall};
use super::{Availability, Connection, ConnectionLimits, Held, lock};
use crate::failure::{Declined, Verdict};
use crate::health::breaker::{Breaker, Force, Policy, State, Ticket, Transition};
use crate::health::jitter::Seeds;
use crate::health::latency::Digest;
use crate::health::quota::{Quota, Reservation};
use crate::upstream::Upstream;
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// A connection at work.
pub(super) struct Gate {
    pub(super) name: Arc<str>,
    pub(super) upstream: Arc<dyn Upstream>,
    /// Slots for attempts; `None`: as many as come.
    pub(super) slots: Option<Arc<Semaphore>>,
    /// Whoever holds it stands at the head of the line.
    pub(super) head: Semaphore,
    /// How many stand in line.
    pub(super) waiting: AtomicUsize,
    policy: Policy,
    limits: ConnectionLimits,
    hasher: RandomState,
    state: Mutex<Inside>,
    journal: Arc<Mutex<Journal>>,
}

/// What an attempt wants of its connection.
pub(super) struct Wish {
    pub(super) model: Arc<str>,
    /// Which credential, if it is not the connection's own.
    pub(super) credential: Option<Credential>,
    /// It may be the one that tries a half-open circuit …
    pub(super) may_try: bool,
    /// … or an open one.
    pub(super) last_resort: bool,
    pub(super) patience: Duration,
    /// Tokens of the prompt.
    pub(super) prompt: u64,
    /// Tokens to reserve, those of the prompt included.
    pub(super) estimate: u64,
}

/// Whether a wish can be granted, the line aside.
pub(super) enum Look {
    Go,
    /// Only from then on: its rest is over, but not everybody may come at once.
    Later(Instant),
    No(Declined),
}

/// What an attempt has learned when it is over.
pub(super) struct Report {
    pub(super) verdict: Verdict,
    /// Its silence since it was sent, if it never made progress.
    pub(super) silent: Option<Duration>,
    /// The silence in the middle of its answer in which it ended.
    pub(super) stalled: Option<Duration>,
    /// Tokens, as the provider counted them or else as they are estimated.
    pub(super) tokens: u64,
}

/// A tenant's key, told from others without being kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Credential(u64);

struct Inside {
    circuits: HashMap<Arc<str>, Circuit>,
    rests: Rests,
    quota: Quota,
    /// Models that refused an assistant message at the end.
    denied: HashSet<Arc<str>>,
    /// What an operator said of the whole connection, for circuits to come.
    forced: Force,
    seeds: Seeds,
}

struct Circuit {
    breaker: Breaker,
    first_token: Digest,
    gaps: Digest,
    in_flight: u32,
    used: Instant,
}

/// Whether somebody must wait for the end of a rest.
pub(super) enum Rested {
    /// No, or no longer.
    Go,
    /// Until then; to be asked again at that time, with it.
    At(Instant),
    No(Declined),
}

// === impl Gate ===

impl Gate {
    pub(super) fn new(connection: Connection, journal: Arc<Mutex<Journal>>, seed: u64) -> Self {
        let Connection { name, upstream, breaker, limits } = connection;
        let inside = Inside {
            circuits: HashMap::new(),
            rests: Rests::default(),
            quota: Quota::counted_elsewhere(limits.rpm, limits.tpm, STAGGER + TRAVEL),
            denied: HashSet::new(),
            forced: Force::Auto,
            seeds: Seeds::new(seed),
        };
        Self {
            name,
            upstream,
            slots: limits.in_flight.map(|n| Arc::new(Semaphore::new(n.clamp(1, Semaphore::MAX_PERMITS)))),
            head: Semaphore::new(1),
            waiting: AtomicUsize::new(0),
            policy: breaker,
            limits,
            hasher: RandomState::new(),
            state: Mutex::new(inside),
            journal,
        }
    }

    pub(super) fn fingerprint(&self, credential: Option<&str>) -> Option<Credential> {
        credential.map(|key| Credential(self.hasher.hash_one(key)))
    }

    /// Whether the circuit and the provider's word allow it now.
    pub(super) fn look(&self, wish: &Wish, now: Instant) -> Look {
        let inside = lock(&self.state);
        self.look_inside(&inside, wish, now)
    }

    /// Whether the circuit and the provider's word allow it now; if only not yet, an appointment. `kept` is the one that
    /// was given before.
    pub(super) fn appoint(&self, wish: &Wish, kept: Option<Instant>, now: Instant, deadline: Instant) -> Rested {
        let mut inside = lock(&self.state);
        let released = match self.look_inside(&inside, wish, now) {
            Look::No(declined) => return Rested::No(declined),
            Look::Later(released) => Some(released),
            Look::Go => None,
        };
        let seed = inside.seeds.draw();
        let key = (Arc::clone(&wish.model), wish.credential);
        inside.rests.appoint(&key, released, kept, (now, deadline), seed).map_or(Rested::Go, Rested::At)
    }

    /// [`Self::look`], and takes the ticket. The caller owns it, and a place among those in flight, from then on.
    pub(super) fn admit(&self, wish: &Wish, now: Instant) -> Result<Ticket, Look> {
        self.with(&wish.model, now, |inside| {
            match self.look_inside(inside, wish, now) {
                Look::Go => {}
                other => return Err(other),
            }
            let circuit = self.circuit(inside, &wish.model, now);
            let breaker = &mut circuit.breaker;
            let ticket = if wish.last_resort { breaker.admit_anyway(now) } else { breaker.admit(now) };
            let Some(ticket) = ticket else { return Err(Look::No(Declined::CircuitOpen { until: None })) };
            circuit.in_flight += 1;
            Ok(ticket)
        })
    }

    /// Takes from the quota, or tells when it may.
    pub(super) fn reserve(&self, estimate: u64, now: Instant) -> Result<Reservation, Instant> {
        lock(&self.state).quota.reserve(estimate, now)
    }

    /// When the last of `ahead` others and this one would have their turn.
    pub(super) fn expect(&self, ahead: usize, estimate: u64, now: Instant) -> Instant {
        let inside = lock(&self.state);
        let ahead = u32::try_from(ahead).unwrap_or(u32::MAX);
        inside.quota.ready_at(estimate, now) + inside.quota.interval().saturating_mul(ahead)
    }

    /// Nothing was sent.
    pub(super) fn release(&self, reservation: Reservation) {
        lock(&self.state).quota.release(reservation);
    }

    /// How much later than the quota allows somebody who waited for it goes: not all replicas on the tick.
    pub(super) fn stagger(&self, most: Duration) -> Duration {
        let mut inside = lock(&self.state);
        let width = (inside.quota.interval() / 2).min(STAGGER).min(most);
        crate::health::jitter::spread(inside.seeds.draw(), width)
    }

    /// An attempt made its first progress.
    pub(super) fn progress(&self, model: &Arc<str>, ticket: &Ticket, first_token: Duration, now: Instant) {
        self.with(model, now, |inside| {
            let circuit = self.circuit(inside, model, now);
            circuit.first_token.record(first_token, now);
            circuit.breaker.progress(ticket, first_token, now);
        });
    }

    /// Silences in mid-turn that ended.
    pub(super) fn gaps(&self, model: &Arc<str>, gaps: &[Duration], now: Instant) {
        self.with(model, now, |inside| {
            let circuit = self.circuit(inside, model, now);
            gaps.iter().for_each(|gap| circuit.gaps.record(*gap, now));
        });
    }

    /// An attempt's stream is over; how it is judged may come later.
    pub(super) fn landed(&self, model: &Arc<str>, now: Instant) {
        self.with(model, now, |inside| {
            let circuit = self.circuit(inside, model, now);
            circuit.in_flight = circuit.in_flight.saturating_sub(1);
        });
    }

    /// An attempt is over and judged.
    pub(super) fn settle(
        &self,
        key: (&Arc<str>, Option<Credential>),
        ticket: Ticket,
        reservation: Option<Reservation>,
        report: &Report,
        now: Instant,
    ) {
        let (model, credential) = key;
        let mut verdict = report.verdict;
        self.with(model, now, |inside| {
            if let Some(reservation) = reservation {
                inside.quota.settle(reservation, report.tokens, now);
            }
            // A tenant's key that is refused is that tenant's affair.
            if verdict == Verdict::Out && credential.is_some() {
                verdict = Verdict::Abandon;
                let until = now + self.policy.max_cooldown.max(self.policy.cooldown);
                let seed = inside.seeds.draw();
                inside.rests.refuse((Arc::clone(model), credential), until, now, seed);
            }
            let circuit = self.circuit(inside, model, now);
            if let Some(silent) = report.silent {
                circuit.first_token.censor(silent, now);
                circuit.breaker.silent(&ticket, silent, now);
            }
            if let Some(silence) = report.stalled {
                circuit.breaker.stalled(&ticket, silence, now);
            }
            circuit.breaker.settle(ticket, verdict, now);
        });
    }

    /// The provider named a time before which it does not want to be asked.
    pub(super) fn rest(&self, model: &Arc<str>, credential: Option<Credential>, wait: Duration, now: Instant) {
        let wait = wait.min(self.limits.retry_after_cap);
        let Some(until) = now.checked_add(wait) else { return };
        let mut inside = lock(&self.state);
        let seed = inside.seeds.draw();
        inside.rests.limit((Arc::clone(model), credential), until, wait, now, seed);
    }

    pub(super) fn availability(&self, model: &str, credential: Option<Credential>, now: Instant) -> Availability {
        let inside = lock(&self.state);
        let Resting { limited, out, .. } = inside.rests.of(model, credential);
        let circuit = inside.circuits.get(model).map(|circuit| &circuit.breaker);
        let state = circuit.map_or_else(|| inside.forced.into(), |breaker| breaker.state(now));
        let blocked = match state {
            State::Closed => None,
            State::HalfOpen => circuit.and_then(|breaker| breaker.retry_at(now)),
            State::Open => circuit.and_then(|breaker| breaker.retry_at(now)).or(Some(now + FORCED_RETRY)),
        };
        let open = blocked.into_iter().chain(out.until(now)).max();
        match (limited.until(now), open) {
            (Some(until), open) if open.is_none_or(|open| open <= until) => Availability::Resting { until },
            (_, Some(until)) => Availability::Open { until },
            (_, None) if state == State::HalfOpen => Availability::Trial,
            (_, None) => Availability::Ready,
        }
    }

    pub(super) fn may_hedge(&self, model: &str) -> bool {
        let inside = lock(&self.state);
        inside.circuits.get(model).is_none_or(|circuit| !circuit.breaker.no_hedge_next())
    }

    pub(super) fn deny_prefill(&self, model: &Arc<str>) {
        let mut inside = lock(&self.state);
        if inside.denied.len() < CIRCUITS {
            inside.denied.insert(Arc::clone(model));
        }
    }

    pub(super) fn prefill_denied(&self, model: &str) -> bool {
        lock(&self.state).denied.contains(model)
    }

    pub(super) fn first_token(&self, model: &str, percent: f64, now: Instant) -> Option<Duration> {
        lock(&self.state).circuits.get(model)?.first_token.percentile(percent, now)
    }

    pub(super) fn gap(&self, model: &str, percent: f64, now: Instant) -> Option<Duration> {
        lock(&self.state).circuits.get(model)?.gaps.percentile(percent, now)
    }

    pub(super) fn force(&self, model: Option<&str>, force: Force, now: Instant) -> usize {
        let models: Vec<Arc<str>> = match model {
            Some(model) => vec![model.into()],
            None => {
                let mut inside = lock(&self.state);
                inside.forced = force;
                inside.circuits.keys().cloned().collect()
            }
        };
        for model in &models {
            self.with(model, now, |inside| self.circuit(inside, model, now).breaker.force(force, now));
        }
        models.len()
    }

    pub(super) fn views(&self, now: Instant) -> Vec<CircuitView> {
        let inside = lock(&self.state);
        let waiting = self.waiting.load(Ordering::Relaxed);
        let millis = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1e3);
        let mut views: Vec<_> = inside
            .circuits
            .iter()
            .map(|(model, Circuit { breaker, first_token, gaps, in_flight, .. })| {
                let counts = breaker.counts(now);
                let state = breaker.state(now);
                let cooldown = breaker.retry_at(now).filter(|_| state == State::Open);
                let rest = inside.rests.of(model, None).limited.until(now);
                CircuitView {
                    connection: Arc::clone(&self.name),
                    model: Arc::clone(model),
                    state,
                    failures: counts.failed,
                    successes: counts.served,
                    in_flight: *in_flight,
                    resting_until: cooldown.into_iter().chain(rest).max().map(|until| wall(until, now)),
                    forced: breaker.forced(),
                    queued: waiting,
                    first_token_p50_ms: millis(first_token.percentile(50.0, now)),
                    first_token_p95_ms: millis(first_token.percentile(95.0, now)),
                    gap_p95_ms: millis(gaps.percentile(95.0, now)),
                    prefill_denied: inside.denied.contains(model),
                }
            })
            .collect();
        views.sort_by(|a, b| a.model.cmp(&b.model));
        views
    }

    pub(super) fn held(&self) -> Held {
        let slots = self.slots.as_ref().zip(self.limits.in_flight);
        let inside = lock(&self.state);
        let (tickets, flights) = inside.circuits.values().fold((0, 0), |(tickets, flights), circuit| {
            (tickets + circuit.breaker.outstanding() as usize, flights + circuit.in_flight as usize)
        });
        Held {
            places: self.waiting.load(Ordering::SeqCst),
            slots: slots.map_or(0, |(slots, limit)| limit.max(1).saturating_sub(slots.available_permits())),
            reservations: inside.quota.outstanding(),
            tickets,
            flights,
        }
    }

    fn look_inside(&self, inside: &Inside, wish: &Wish, now: Instant) -> Look {
        let resting = inside.rests.of(&wish.model, wish.credential);
        let Resting { limited, out, .. } = resting;
        if let Some(until) = out.until(now) {
            return Look::No(Declined::KeyRefused { until });
        }
        // Who waited as long as the provider said may come a moment early by another clock: it waits in line.
        if let Some(until) = limited.until(now).filter(|until| SOON < *until - now) {
            return Look::No(Declined::Resting { until, renewed: false });
        }
        let (state, tried, retry) = match inside.circuits.get(&wish.model).map(|circuit| &circuit.breaker) {
            Some(breaker) => (breaker.state(now), breaker.is_tried(), breaker.retry_at(now)),
            None => (inside.forced.into(), false, None),
        };
        let forced =
            inside.circuits.get(&wish.model).map_or(inside.forced != Force::Auto, |c| c.breaker.forced().is_some());
        let allowed = match state {
            State::Closed => true,
            State::HalfOpen => wish.may_try && !tried,
            State::Open => wish.last_resort && !tried && !forced,
        };
        match resting.released_at(now) {
            _ if !allowed => Look::No(Declined::CircuitOpen { until: retry }),
            Some(released) => Look::Later(released),
            None => Look::Go,
        }
    }

    /// Works on the state, and enters what changed of `model`'s circuit in the journal.
    fn with<T>(&self, model: &Arc<str>, now: Instant, work: impl FnOnce(&mut Inside) -> T) -> T {
        let mut inside = lock(&self.state);
        let done = work(&mut inside);
        let changes: SmallVec<[Transition; 2]> =
            inside.circuits.get_mut(model).map(|circuit| circuit.breaker.transitions().collect()).unwrap_or_default();
        if !changes.is_empty() {
            // Under the lock still, so that the journal has them in the order in which they happened.
            let mut journal = lock(&self.journal);
            changes.iter().for_each(|change| journal.enter(&self.name, model, change, now));
        }
        done
    }

    /// The circuit of `model`, which is made on its first use. Whoever may name any model must not fill the memory: the
    /// one that was idle longest goes for it.
    fn circuit<'a>(&self, inside: &'a mut Inside, model: &Arc<str>, now: Instant) -> &'a mut Circuit {
        if CIRCUITS <= inside.circuits.len() && !inside.circuits.contains_key(model) {
            let idle = inside.circuits.iter().filter(|(_, circuit)| circuit.is_idle(now));
            if let Some(oldest) = idle.min_by_key(|(_, circuit)| circuit.used).map(|(model, _)| Arc::clone(model)) {
                inside.circuits.remove(&oldest);
            }
        }
        let Inside { circuits, seeds, forced, .. } = inside;
        let circuit = circuits.entry(Arc::clone(model)).or_insert_with(|| {
            let mut breaker = Breaker::new(self.policy.clone(), seeds.draw(), now);
            breaker.force(*forced, now);
            Circuit {
                breaker,
                first_token: Digest::new(PERIOD, FIRST_TOKENS),
                gaps: Digest::new(PERIOD, GAPS),
                in_flight: 0,
                used: now,
            }
        });
        circuit.used = now;
        circuit
    }
}

// === impl Circuit ===

impl Circuit {
    /// Whether it can be forgotten without loss.
    fn is_idle(&self, now: Instant) -> bool {
        let breaker = &self.breaker;
        breaker.outstanding() == 0 && breaker.forced().is_none() && breaker.state(now) == State::Closed
    }
}

/// The last moment of a rest is waited for.
const SOON: Duration = Duration::from_millis(100);
/// The most circuits of a connection while idle ones can be forgotten.
const CIRCUITS: usize = 1024;
/// Latencies are those of the last one to two periods.
pub(crate) const PERIOD: Duration = Duration::from_secs(300);
/// Fewer first tokens have no percentiles.
pub(crate) const FIRST_TOKENS: u64 = 20;
/// Fewer silences have none.
pub(crate) const GAPS: u64 = 100;
/// The most by which somebody who waited for the quota is put off further.
const STAGGER: Duration = Duration::from_millis(500);
/// One request may be under way for so much longer than the next.
const TRAVEL: Duration = Duration::from_millis(500);
/// What a client is told of a circuit that an operator holds open.
const FORCED_RETRY: Duration = Duration::from_secs(30);

#[cfg(test)]
impl Gate {
    /// Panics unless everything that was ever taken is back.
    pub(super) fn assert_at_rest(&self) {
        assert_eq!(self.waiting.load(Ordering::SeqCst), 0, "in line");
        assert_eq!(self.head.available_permits(), 1, "the head of the line");
        if let (Some(slots), Some(limit)) = (&self.slots, self.limits.in_flight) {
            assert_eq!(slots.available_permits(), limit, "slots");
        }
        let inside = lock(&self.state);
        assert_eq!(inside.quota.outstanding(), 0, "reservations");
        for (model, circuit) in &inside.circuits {
            assert_eq!(circuit.in_flight, 0, "{model}: in flight");
            assert_eq!(circuit.breaker.outstanding(), 0, "{model}: tickets");
            assert!(!circuit.breaker.is_tried(), "{model}: a trial");
        }
    }
}
