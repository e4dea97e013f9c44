//! Which keys of a connection are left alone, until when, and who goes first afterwards.

use super::appointments::Appointments;
use super::gate::Credential;
use crate::health::rest::Rest;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// All rests of a connection, by model and credential.
#[derive(Default)]
pub(super) struct Rests(HashMap<(Arc<str>, Option<Credential>), Resting>);

/// Why and until when a key is left alone.
#[derive(Clone, Copy, Default)]
pub(super) struct Resting {
    /// On the provider's word.
    pub(super) limited: Rest,
    /// Since a tenant's key was refused.
    pub(super) out: Rest,
    /// The appointments of those who wait for its end.
    queue: Option<Appointments>,
}

// === impl Rests ===

impl Rests {
    pub(super) fn of(&self, model: &str, credential: Option<Credential>) -> Resting {
        if self.0.is_empty() {
            return Resting::default();
        }
        self.0.get(&(Arc::from(model), credential)).copied().unwrap_or_default()
    }

    /// The provider named `until`, `wait` from now.
    pub(super) fn limit(
        &mut self,
        key: (Arc<str>, Option<Credential>),
        until: Instant,
        wait: Duration,
        now: Instant,
        seed: u64,
    ) {
        let rest = self.entry(key, now);
        let before = rest.limited;
        rest.limited.extend(until, now, seed);
        if rest.limited != before {
            // Appointments for the end of a shorter rest are void.
            rest.queue = Some(Appointments::after(until, wait));
        }
    }

    /// A key was refused.
    pub(super) fn refuse(&mut self, key: (Arc<str>, Option<Credential>), until: Instant, now: Instant, seed: u64) {
        self.entry(key, now).out.extend(until, now, seed);
    }

    /// When somebody who was `kept` an appointment before may go, if not now. `released`: when the rest itself ends.
    pub(super) fn appoint(
        &mut self,
        key: &(Arc<str>, Option<Credential>),
        released: Option<Instant>,
        kept: Option<Instant>,
        (now, deadline): (Instant, Instant),
        seed: u64,
    ) -> Option<Instant> {
        // An appointment that was kept holds, unless the rest has become longer meanwhile.
        if released.is_none() && kept.is_some() {
            return None;
        }
        match self.0.get_mut(key).and_then(|resting| resting.queue.as_mut()) {
            Some(queue) => queue.take(released, (now, deadline), seed),
            None => released,
        }
    }

    fn entry(&mut self, key: (Arc<str>, Option<Credential>), now: Instant) -> &mut Resting {
        if RESTS <= self.0.len() {
            self.0.retain(|_, rest| rest.ends(now).is_some());
        }
        if RESTS <= self.0.len() && !self.0.contains_key(&key) {
            let soonest = self.0.iter().min_by_key(|(_, rest)| rest.ends(now)).map(|(key, _)| key.clone());
            soonest.map(|key| self.0.remove(&key));
        }
        self.0.entry(key).or_default()
    }
}

// === impl Resting ===

impl Resting {
    /// When the last of its rests is released.
    pub(super) fn released_at(&self, now: Instant) -> Option<Instant> {
        self.limited.released_at(now).into_iter().chain(self.out.released_at(now)).max()
    }

    fn ends(&self, now: Instant) -> Option<Instant> {
        let queue = self.queue.map(Appointments::next).filter(|next| now < *next);
        self.released_at(now).into_iter().chain(queue).max()
    }
}

/// The most keys of a connection that rest at once; past it the one that is over first is forgotten.
const RESTS: usize = 4096;
