//! One connection at work: its health under a lock, its slots, and those who wait before it.

use super::habits::Habits;
use super::room::{Room, Rooms};
use super::view::{CircuitView, Journal};
use super::{Connection, ConnectionLimits, Held, lock};
use crate::failure::Verdict;
use crate::health::blame::{Mark, Plaintiff};
use crate::health::breaker::{Force, Transition};
use crate::health::connection::{self, Availability, Flight, Limits, Look};
use crate::health::quota::Reservation;
use crate::upstream::Upstream;
use smallvec::SmallVec;
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
    /// Where those wait whose key has just rested.
    pub(super) rooms: Rooms,
    /// What its models do unasked.
    pub(super) habits: Mutex<Habits>,
    limits: ConnectionLimits,
    hasher: RandomState,
    state: Mutex<connection::Connection>,
    journal: Arc<Mutex<Journal>>,
}

/// What an attempt wants of its connection.
pub(super) struct Wish {
    pub(super) of: connection::Wish,
    pub(super) patience: Duration,
}

// === impl Gate ===

impl Gate {
    pub(super) fn new(connection: Connection, journal: Arc<Mutex<Journal>>, seed: u64) -> Self {
        let Connection { name, upstream, breaker, limits } = connection;
        let ConnectionLimits { in_flight, rpm, tpm, retry_after_cap } = limits;
        Self {
            name,
            upstream,
            slots: in_flight.map(|n| Arc::new(Semaphore::new(n.clamp(1, Semaphore::MAX_PERMITS)))),
            head: Semaphore::new(1),
            waiting: AtomicUsize::new(0),
            rooms: Rooms::default(),
            habits: Mutex::default(),
            limits,
            hasher: RandomState::new(),
            state: Mutex::new(connection::Connection::new(breaker, Limits { rpm, tpm, retry_after_cap }, seed)),
            journal,
        }
    }

    /// Tells `what` apart from others without keeping it.
    pub(super) fn mark(&self, what: &(impl std::hash::Hash + ?Sized)) -> Mark {
        Mark(self.hasher.hash_one(what))
    }

    /// Tells a request from others by its length and its end, where its newest words stand: whole bodies may be long.
    pub(super) fn request(&self, body: &[u8]) -> u64 {
        self.mark(&(body.len(), &body[body.len().saturating_sub(TAIL)..])).0
    }

    /// A tenant and a credential, told from others.
    pub(super) fn plaintiff(&self, tenant: Option<&str>, credential: Option<&str>) -> Plaintiff {
        let mark = |what: Option<&str>| what.map(|what| self.mark(what));
        Plaintiff { tenant: mark(tenant), credential: mark(credential), request: 0 }
    }

    /// Whether the circuit and the provider's word allow it now; `ahead` wait already for the same key.
    pub(super) fn look(&self, wish: &Wish, ahead: usize, now: Instant) -> Look {
        lock(&self.state).look(&wish.of, ahead, now)
    }

    /// [`Self::look`], and lets the attempt through. The caller owns it from then on.
    pub(super) fn admit(&self, wish: &Wish, now: Instant) -> Result<Flight, Look> {
        self.with(&wish.of.model, now, |state| state.admit(&wish.of, now))
    }

    /// Takes from the quota, or tells when it may.
    pub(super) fn reserve(&self, estimate: u64, now: Instant) -> Result<Reservation, Instant> {
        lock(&self.state).reserve(estimate, now)
    }

    /// When the last of `ahead` others and this one would have their turn.
    pub(super) fn expect(&self, ahead: usize, estimate: u64, now: Instant) -> Instant {
        lock(&self.state).expect(ahead, estimate, now)
    }

    /// Nothing was sent.
    pub(super) fn release(&self, reservation: Reservation) {
        lock(&self.state).release(reservation);
    }

    /// How much later than the quota allows somebody who waited for it goes.
    pub(super) fn stagger(&self, most: Duration) -> Duration {
        lock(&self.state).stagger(most)
    }

    /// Takes in what an attempt has noted.
    pub(super) fn hear(&self, flight: &mut Flight, now: Instant) {
        let model = Arc::clone(flight.model());
        self.with(&model, now, |state| state.hear(flight, now));
        self.rooms.stir();
    }

    /// An attempt is over and judged.
    pub(super) fn settle(&self, flight: Flight, reservation: Option<Reservation>, verdict: Verdict, now: Instant) {
        let model = Arc::clone(flight.model());
        self.with(&model, now, |state| state.settle(flight, reservation, verdict, now));
        self.rooms.stir();
    }

    pub(super) fn availability(&self, model: &str, by: Plaintiff, now: Instant) -> Availability {
        lock(&self.state).availability(model, by, now)
    }

    pub(super) fn force(&self, model: Option<&str>, force: Force, now: Instant) -> usize {
        let models = lock(&self.state).force(model, force, now);
        models.iter().for_each(|model| self.with(model, now, |_| ()));
        self.rooms.stir();
        models.len()
    }

    /// Nobody rests any more.
    pub(super) fn wake(&self) {
        lock(&self.state).wake();
        self.rooms.stir();
    }

    /// Asks what is known, or teaches it.
    pub(super) fn known<T>(&self, ask: impl FnOnce(&mut connection::Connection) -> T) -> T {
        ask(&mut lock(&self.state))
    }

    pub(super) fn views(&self, now: Instant) -> Vec<CircuitView> {
        let queued = self.waiting.load(Ordering::Relaxed) + self.rooms.waiting();
        let prefill = self.mark(super::PREFILL);
        let state = lock(&self.state);
        let denied = |model: &str| state.is_lacking(model, prefill, None, now);
        let views = state.views(now).into_iter();
        views.map(|view| CircuitView::of(&self.name, view, queued, &denied, now)).collect()
    }

    pub(super) fn held(&self) -> Held {
        let slots = self.slots.as_ref().zip(self.limits.in_flight);
        let connection::Held { reservations, tickets, flights } = lock(&self.state).held();
        Held {
            places: self.waiting.load(Ordering::SeqCst) + self.rooms.waiting(),
            slots: slots.map_or(0, |(slots, limit)| limit.max(1).saturating_sub(slots.available_permits())),
            reservations,
            tickets,
            flights,
        }
    }

    /// The room of those who wait for the same rest as `wish`.
    pub(super) fn room(&self, wish: &Wish) -> Option<Arc<Room>> {
        self.rooms.get(&wish.of.model, wish.of.by.credential)
    }

    /// Works on the state, and enters what changed of `model`'s circuit in the journal.
    fn with<T>(&self, model: &Arc<str>, now: Instant, work: impl FnOnce(&mut connection::Connection) -> T) -> T {
        let mut state = lock(&self.state);
        let done = work(&mut state);
        let changes: SmallVec<[Transition; 2]> = state.transitions(model).collect();
        if !changes.is_empty() {
            // Under the lock still, so that the journal has them in the order in which they happened.
            let mut journal = lock(&self.journal);
            changes.iter().for_each(|change| journal.enter(&self.name, model, change, now));
        }
        done
    }
}

/// So many bytes of a request are looked at.
const TAIL: usize = 8 * 1024;

#[cfg(test)]
impl Gate {
    /// Panics unless everything that was ever taken is back.
    pub(super) fn assert_at_rest(&self) {
        assert_eq!(self.waiting.load(Ordering::SeqCst), 0, "in line");
        assert_eq!(self.rooms.waiting(), 0, "in a room");
        assert_eq!(self.head.available_permits(), 1, "the head of the line");
        if let (Some(slots), Some(limit)) = (&self.slots, self.limits.in_flight) {
            assert_eq!(slots.available_permits(), limit, "slots");
        }
        let state = lock(&self.state);
        assert_eq!(state.held(), connection::Held::default());
        assert!(!state.is_tried(), "a trial");
    }
}
