//! Which keys of a connection are left alone, until when, and how they take their old rate back.

use crate::health::blame::Mark;
use crate::health::ramp::{Pass, Ramp};
use crate::health::rest::Rest;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// All rests of a connection, by model and by whom they are for.
#[derive(Debug, Default)]
pub(super) struct Rests(HashMap<Arc<str>, HashMap<Whose, Resting>>);

/// Whom a rest is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Whose {
    /// The credential that was used; `None`: the connection's own.
    pub(super) credential: Option<Mark>,
    /// The tenant, if it holds for nobody else.
    pub(super) tenant: Option<Mark>,
}

/// Why and until when a key is left alone.
#[derive(Clone, Debug, Default)]
pub(super) struct Resting {
    /// On the provider's word.
    pub(super) limited: Rest,
    /// Since the key was refused, or the account is used up.
    pub(super) out: Rest,
    /// How it takes its rate back.
    pub(super) ramp: Option<Ramp>,
    /// How often in a row whoever tried after the rest was refused.
    pub(super) renewed: u32,
}

// === impl Rests ===

impl Rests {
    pub(super) fn get(&self, model: &str, whose: Whose) -> Option<&Resting> {
        self.0.get(model)?.get(&whose)
    }

    /// The same, to change. What is over is forgotten here.
    pub(super) fn get_mut(&mut self, model: &str, whose: Whose, now: Instant) -> Option<&mut Resting> {
        let of_model = self.0.get_mut(model)?;
        if of_model.get(&whose).is_some_and(|resting| resting.is_over(now)) {
            of_model.remove(&whose);
            if of_model.is_empty() {
                self.0.remove(model);
            }
            return None;
        }
        self.0.get_mut(model)?.get_mut(&whose)
    }

    /// The provider named `until`. `pass`: that of the one who was refused, if it had one.
    pub(super) fn limit(
        &mut self,
        (model, whose): (&Arc<str>, Whose),
        until: Instant,
        pass: Option<Pass>,
        now: Instant,
        seed: u64,
    ) {
        let resting = self.entry(model, whose, now);
        let before = resting.limited;
        resting.limited.extend(until, now, seed);
        let Some(released) = resting.limited.released_at(now) else { return };
        let tried = pass.and_then(|pass| resting.ramp.as_mut().map(|ramp| ramp.leave(pass)));
        resting.ramp = Some(match &resting.ramp {
            Some(ramp) if tried == Some(true) => {
                resting.renewed += 1;
                Ramp::refused(released, ramp)
            }
            Some(ramp) if resting.limited == before => ramp.clone(),
            ramp => Ramp::after(released, ramp.as_ref()),
        });
    }

    /// A key was refused until then.
    pub(super) fn refuse(&mut self, (model, whose): (&Arc<str>, Whose), until: Instant, now: Instant, seed: u64) {
        self.entry(model, whose, now).out.extend(until, now, seed);
    }

    /// Nobody is left alone any more: those of `model`, or all.
    pub(super) fn clear(&mut self, model: Option<&str>) {
        match model {
            Some(model) => drop(self.0.remove(model)),
            None => self.0.clear(),
        }
    }

    /// How many keys of tenants rest at `model`.
    pub(super) fn of_tenants(&self, model: &str, now: Instant) -> usize {
        let of_model = self.0.get(model).into_iter().flatten();
        of_model.filter(|(whose, resting)| **whose != Whose::default() && resting.ends(now).is_some()).count()
    }

    fn entry(&mut self, model: &Arc<str>, whose: Whose, now: Instant) -> &mut Resting {
        let known = self.get(model, whose).is_some();
        if !known && RESTS <= self.0.values().map(HashMap::len).sum() {
            self.0.values_mut().for_each(|of_model| of_model.retain(|_, resting| !resting.is_over(now)));
            self.0.retain(|_, of_model| !of_model.is_empty());
        }
        if !known && RESTS <= self.0.values().map(HashMap::len).sum() {
            let all = self.0.iter().flat_map(|(model, of_model)| of_model.iter().map(move |rest| (model, rest)));
            let soonest =
                all.min_by_key(|(_, (_, rest))| rest.ends(now)).map(|(model, (whose, _))| (model.clone(), *whose));
            if let Some((model, whose)) = soonest
                && let Some(of_model) = self.0.get_mut(&model)
            {
                of_model.remove(&whose);
            }
        }
        self.0.entry(Arc::clone(model)).or_default().entry(whose).or_default()
    }
}

// === impl Resting ===

impl Resting {
    /// When the last of its rests is released.
    pub(super) fn ends(&self, now: Instant) -> Option<Instant> {
        self.limited.released_at(now).into_iter().chain(self.out.released_at(now)).max()
    }

    /// How long from now on `until` is the rest of somebody who was limited.
    pub(super) fn limited_for(&self, now: Instant) -> Option<Duration> {
        self.limited.until(now).map(|until| until - now)
    }

    fn is_over(&self, now: Instant) -> bool {
        self.ends(now).is_none() && self.ramp.as_ref().is_none_or(|ramp| ramp.is_over(now) || ramp.is_stale(now))
    }
}

/// The most keys of a connection that rest at once; past it the one that is over first is forgotten.
const RESTS: usize = 4096;
