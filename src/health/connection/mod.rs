//! One provider connection as a value: the circuits of its models, who rests, what may be sent, and what was learned.
//!
//! Everything that decides whether an attempt may be made now, and all that follows from how it ends, is here; `now` is an
//! argument, and what is random comes from a seed. The fleet puts a lock around it and lets attempts wait; the benchmarks
//! play whole days of turns on it in virtual time. So both play by the same rules.

use super::blame::{Blame, Charge, Mark, Plaintiff, Scope};
use super::breaker::{self, Breaker, Force, State, Transition};
use super::jitter::{self, Seeds};
use super::latency::Digest;
use super::lessons::Lessons;
use super::quota::{Quota, Reservation};
use crate::failure::{Declined, Verdict};
use rests::{Resting, Rests, Whose};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

mod ask;
mod flight;
mod rests;
mod view;

pub use ask::{Availability, Limits, Look, Wish};
pub use flight::{Flight, HIDDEN, UNSEEN};
pub use view::View;

/// A connection's health, and what may be sent to it.
#[derive(Debug)]
pub struct Connection {
    policy: breaker::Policy,
    retry_after_cap: Duration,
    circuits: HashMap<Arc<str>, Circuit>,
    rests: Rests,
    quota: Quota,
    lessons: Lessons,
    /// What an operator said of the whole connection, for circuits to come.
    forced: Force,
    seeds: Seeds,
}

/// What attempts hold of a connection. Each of these comes back, however an attempt ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Shares of the quota that were neither settled nor released.
    pub reservations: usize,
    /// Tickets that were not settled.
    pub tickets: usize,
    /// Attempts under way.
    pub flights: usize,
}

#[derive(Debug)]
struct Circuit {
    breaker: Breaker,
    first_token: Digest,
    gaps: Digest,
    blame: Blame,
    in_flight: u32,
    used: Instant,
}

/// A wait for the end of a rest, or for a place in the window after it.
struct Wait {
    /// Until then at most; a time that has come: not any more.
    until: Instant,
    /// So many may wait although somebody else is free.
    places: usize,
}

// === impl Connection ===

impl Connection {
    /// A healthy connection. `seed` determines all jitter.
    pub fn new(policy: breaker::Policy, limits: Limits, seed: u64) -> Self {
        Self {
            policy,
            retry_after_cap: limits.retry_after_cap,
            circuits: HashMap::new(),
            rests: Rests::default(),
            quota: Quota::counted_elsewhere(limits.rpm, limits.tpm, STAGGER + TRAVEL),
            lessons: Lessons::default(),
            forced: Force::Auto,
            seeds: Seeds::new(seed),
        }
    }

    // --- before an attempt ---

    /// Whether circuit and rests allow it now. `ahead`: so many wait already for the same key.
    pub fn look(&mut self, wish: &Wish, ahead: usize, now: Instant) -> Look {
        let out = whose(wish.by).filter_map(|whose| self.rests.get(&wish.model, whose)?.out.until(now)).max();
        if let Some(until) = out {
            return Look::No(Declined::KeyRefused { until });
        }
        let limited = whose(wish.by).filter_map(|whose| {
            let resting = self.rests.get(&wish.model, whose)?;
            Some((resting.limited_for(now)?, resting.renewed))
        });
        // Who waited as long as the provider said may come a moment early by another clock: it waits in line.
        if let Some((wait, renewed)) = limited.max().filter(|(wait, _)| SOON < *wait) {
            return Look::No(Declined::Resting { until: now + wait, renewed: 0 < renewed });
        }
        let (state, tried, retry, forced) = match self.circuits.get(&wish.model).map(|circuit| &circuit.breaker) {
            Some(breaker) => {
                (breaker.state(now), breaker.is_tried(), breaker.retry_at(now), breaker.forced().is_some())
            }
            None => (self.forced.into(), false, None, self.forced != Force::Auto),
        };
        let allowed = match state {
            State::Closed => true,
            State::HalfOpen => wish.may_try && !tried,
            State::Open => wish.last_resort && !tried && !forced,
        };
        if !allowed {
            return Look::No(Declined::CircuitOpen { until: retry });
        }
        let waits: SmallVec<[Wait; 2]> = whose(wish.by).filter_map(|whose| self.wait_of(wish, whose, now)).collect();
        match waits.into_iter().max_by_key(|wait| wait.until) {
            None => Look::Go,
            Some(Wait { until, places }) if wish.others && places <= ahead => Look::No(Declined::Crowded { until }),
            Some(Wait { until, .. }) if now < until => Look::Later(until),
            Some(_) => Look::Go,
        }
    }

    /// [`Self::look`], and lets the attempt through. It is under way from then on, and must be settled.
    ///
    /// # Errors
    /// Why not, or when.
    pub fn admit(&mut self, wish: &Wish, now: Instant) -> Result<Flight, Look> {
        match self.look(wish, 0, now) {
            Look::Go => {}
            other => return Err(other),
        }
        let circuit = self.circuit(&wish.model, now);
        let breaker = &mut circuit.breaker;
        let ticket = if wish.last_resort { breaker.admit_anyway(now) } else { breaker.admit(now) };
        let Some(ticket) = ticket else { return Err(Look::No(Declined::CircuitOpen { until: None })) };
        circuit.in_flight += 1;
        let shared = Whose { credential: wish.by.credential, tenant: None };
        let resting = self.rests.get_mut(&wish.model, shared, now);
        let pass = resting.and_then(|resting| resting.ramp.as_mut()?.ask(now).ok());
        Ok(Flight::new(wish, ticket, pass, now))
    }

    /// Takes from the quota.
    ///
    /// # Errors
    /// When it may be taken, if not now; then nothing was.
    pub fn reserve(&mut self, estimate: u64, now: Instant) -> Result<Reservation, Instant> {
        self.quota.reserve(estimate, now)
    }

    /// Nothing was sent.
    pub fn release(&mut self, reservation: Reservation) {
        self.quota.release(reservation);
    }

    /// When the last of `ahead` others and this one would have their turn by the quota.
    pub fn expect(&self, ahead: usize, estimate: u64, now: Instant) -> Instant {
        let ahead = u32::try_from(ahead).unwrap_or(u32::MAX);
        self.quota.ready_at(estimate, now) + self.quota.interval().saturating_mul(ahead)
    }

    /// How much later than the quota allows somebody who waited for it goes: not all replicas on the tick.
    pub fn stagger(&mut self, most: Duration) -> Duration {
        let width = (self.quota.interval() / 2).min(STAGGER).min(most);
        jitter::spread(self.seeds.draw(), width)
    }

    /// Whether `model` may be asked by `by`, and when it may again.
    pub fn availability(&self, model: &str, by: Plaintiff, now: Instant) -> Availability {
        let rests = || whose(by).filter_map(|whose| self.rests.get(model, whose));
        let limited = rests().filter_map(|resting| resting.limited.until(now)).max();
        let out = rests().filter_map(|resting| resting.out.until(now)).max();
        let circuit = self.circuits.get(model).map(|circuit| &circuit.breaker);
        let state = circuit.map_or_else(|| self.forced.into(), |breaker| breaker.state(now));
        let blocked = match state {
            State::Closed => None,
            State::HalfOpen => circuit.and_then(|breaker| breaker.retry_at(now)),
            State::Open => circuit.and_then(|breaker| breaker.retry_at(now)).or(Some(now + FORCED_RETRY)),
        };
        let open = blocked.into_iter().chain(out).max();
        match (limited, open) {
            (Some(until), open) if open.is_none_or(|open| open <= until) => Availability::Resting { until },
            (_, Some(until)) => Availability::Open { until },
            (_, None) if state == State::HalfOpen => Availability::Trial,
            (_, None) => Availability::Ready,
        }
    }

    // --- an attempt under way ---

    /// Takes in what a flight has noted.
    pub fn hear(&mut self, flight: &mut Flight, now: Instant) {
        let news = std::mem::take(&mut flight.news);
        let model = Arc::clone(&flight.model);
        let shared = Whose { credential: flight.by.credential, tenant: None };
        if let Some(told) = news.limited {
            self.limited(flight, told, now);
        }
        if let Some(pass) = flight.pass.take_if(|_| news.taken || news.first_token.is_some() || news.landed)
            && let Some(resting) = self.rests.get_mut(&model, shared, now)
            && let Some(ramp) = &mut resting.ramp
        {
            if news.taken || news.first_token.is_some() {
                ramp.taken(pass, news.left);
                resting.renewed = 0;
            } else {
                ramp.leave(pass);
            }
        }
        let circuit = self.circuit(&model, now);
        if let Some(first_token) = news.first_token {
            circuit.first_token.record(first_token, now);
            circuit.breaker.progress(&flight.ticket, first_token, now);
        }
        news.gaps.iter().for_each(|gap| circuit.gaps.record(*gap, now));
        if news.landed && std::mem::take(&mut flight.flying) {
            circuit.in_flight = circuit.in_flight.saturating_sub(1);
        }
    }

    /// The attempt is over and judged: everything it held goes back. `reservation`: what it took of the quota.
    pub fn settle(&mut self, mut flight: Flight, reservation: Option<Reservation>, verdict: Verdict, now: Instant) {
        flight.land();
        self.hear(&mut flight, now);
        if let Some(reservation) = reservation {
            self.quota.settle(reservation, flight.tokens(), now);
        }
        let verdict = self.judge(&flight, verdict, now);
        let (mute, stalled) = (flight.mute_for(now), flight.stalled());
        let Flight { model, ticket, .. } = flight;
        let circuit = self.circuit(&model, now);
        if let Some(silent) = mute {
            circuit.first_token.censor(silent, now);
            circuit.breaker.silent(&ticket, silent, now);
        }
        if let Some(silence) = stalled {
            circuit.breaker.stalled(&ticket, silence, now);
        }
        circuit.breaker.settle(ticket, verdict, now);
    }

    /// What a verdict comes to for everybody: words count only as far as they are borne out, and a tenant's key that is
    /// refused is that tenant's affair.
    fn judge(&mut self, flight: &Flight, verdict: Verdict, now: Instant) -> Verdict {
        let by = flight.by;
        let scope = match verdict {
            Verdict::Serve => {
                self.circuit(&flight.model, now).blame.clear(by.credential);
                return verdict;
            }
            Verdict::Abandon => return verdict,
            Verdict::Fail | Verdict::Out if !flight.by_words => Scope::Everybody,
            Verdict::Fail => self.circuit(&flight.model, now).blame.hear(Charge::Failed, by, now),
            Verdict::Out => self.circuit(&flight.model, now).blame.hear(Charge::Out, by, now),
        };
        let whose = match (scope, verdict, by.credential) {
            (Scope::Nobody, ..) => return Verdict::Abandon,
            (Scope::Everybody, Verdict::Out, Some(_)) => Whose { credential: by.credential, tenant: None },
            (Scope::Everybody, ..) => return verdict,
            (Scope::Tenant, Verdict::Out, _) => Whose { credential: by.credential, tenant: by.tenant },
            (Scope::Tenant, ..) => return Verdict::Abandon,
        };
        let until = now + self.policy.max_cooldown.max(self.policy.cooldown);
        let seed = self.seed(whose.tenant);
        self.rests.refuse((&flight.model, whose), until, now, seed);
        Verdict::Abandon
    }

    /// The provider does not want to be asked for a while; `told`: for how long.
    fn limited(&mut self, flight: &mut Flight, told: Option<Duration>, now: Instant) {
        let pass = flight.pass.take();
        // Who says no time is left alone only if it was asked after a rest: then it is as it was before that.
        let Some(wait) = told.or_else(|| pass.map(|_| UNTOLD)) else { return };
        let credential = flight.by.credential;
        let tenant = match flight.by_words {
            false => None,
            true => match self.circuit(&flight.model, now).blame.hear(Charge::Limited, flight.by, now) {
                Scope::Nobody if flight.by.tenant.is_none() => {
                    flight.pass = pass;
                    return;
                }
                Scope::Nobody | Scope::Tenant => flight.by.tenant,
                Scope::Everybody => None,
            },
        };
        let Some(until) = now.checked_add(wait.min(self.retry_after_cap)) else { return };
        let seed = self.seed(tenant);
        let given_back = if tenant.is_some() {
            flight.pass = pass;
            None
        } else {
            pass
        };
        self.rests.limit((&flight.model, Whose { credential, tenant }), until, given_back, now, seed);
    }

    // --- what was learned ---

    /// `model` was seen to lack something, as `by` has found; `by_words`: the provider's words alone say so.
    pub fn lacks(&mut self, model: &Arc<str>, what: Mark, by: Plaintiff, by_words: bool, now: Instant) {
        let scope = if by_words {
            self.circuit(model, now).blame.hear(Charge::Lacks(what.0), by, now)
        } else {
            Scope::Everybody
        };
        let tenant = match scope {
            Scope::Nobody => return,
            Scope::Tenant => by.tenant,
            Scope::Everybody => None,
        };
        self.lessons.learn(model, what, tenant, now);
    }

    /// Whether `model` is known to lack that, as far as `tenant` is concerned.
    pub fn is_lacking(&self, model: &str, what: Mark, tenant: Option<Mark>, now: Instant) -> bool {
        self.lessons.knows(model, what, tenant, now)
    }

    /// Whether an attempt that tries `model` may be raced: after two trials that were abandoned the next must be judged.
    pub fn may_hedge(&self, model: &str) -> bool {
        self.circuits.get(model).is_none_or(|circuit| !circuit.breaker.no_hedge_next())
    }

    /// The time within which `percent` (0 to 100) of recent attempts gave their first progress, counted from when they
    /// were sent; `None` where there were too few.
    pub fn first_token(&self, model: &str, percent: f64, now: Instant) -> Option<Duration> {
        self.circuits.get(model)?.first_token.percentile(percent, now)
    }

    /// The silence that `percent` (0 to 100) of recent silences in mid-turn did not exceed; `None` where there were too
    /// few.
    pub fn gap(&self, model: &str, percent: f64, now: Instant) -> Option<Duration> {
        self.circuits.get(model)?.gaps.percentile(percent, now)
    }

    // --- operators ---

    /// Follows an operator's word on one circuit, or on all, those to come included. Returns how many there are that
    /// follow it. Whoever is to be asked again (`close`, `auto`) does not rest any more.
    pub fn force(&mut self, model: Option<&str>, force: Force, now: Instant) -> Vec<Arc<str>> {
        let models: Vec<Arc<str>> = match model {
            Some(model) => vec![model.into()],
            None => {
                self.forced = force;
                self.circuits.keys().cloned().collect()
            }
        };
        if force != Force::Open {
            self.rests.clear(model);
            self.lessons.clear(model);
        }
        for model in &models {
            let circuit = self.circuit(model, now);
            circuit.blame = Blame::default();
            circuit.breaker.force(force, now);
        }
        models
    }

    /// Nobody rests any more.
    pub fn wake(&mut self) {
        self.rests.clear(None);
    }

    /// The changes of the circuit of `model` since the last call, oldest first.
    pub fn transitions(&mut self, model: &str) -> impl Iterator<Item = Transition> + use<'_> {
        self.circuits.get_mut(model).into_iter().flat_map(|circuit| circuit.breaker.transitions())
    }

    /// What attempts hold at this moment.
    pub fn held(&self) -> Held {
        let (tickets, flights) = self.circuits.values().fold((0, 0), |(tickets, flights), circuit| {
            (tickets + circuit.breaker.outstanding() as usize, flights + circuit.in_flight as usize)
        });
        Held { reservations: self.quota.outstanding(), tickets, flights }
    }

    /// Whether some turn tries some circuit at this moment.
    pub fn is_tried(&self) -> bool {
        self.circuits.values().any(|circuit| circuit.breaker.is_tried())
    }

    // --- inside ---

    /// A seed for jitter. What holds for one tenant alone draws none, so that it changes nothing for others.
    fn seed(&mut self, tenant: Option<Mark>) -> u64 {
        tenant.map_or_else(|| self.seeds.draw(), |tenant| tenant.0)
    }

    /// Whether and until when a wish waits for the rest of `whose`.
    fn wait_of(&mut self, wish: &Wish, whose: Whose, now: Instant) -> Option<Wait> {
        let resting: &mut Resting = self.rests.get_mut(&wish.model, whose, now)?;
        if let Some(until) = resting.ends(now) {
            return Some(Wait { until, places: 1 });
        }
        // A tenant's rest of its own is for few requests: there is no window for it.
        whose.tenant.is_none().then_some(())?;
        let ramp = resting.ramp.as_mut().filter(|ramp| !ramp.is_over(now))?;
        Some(match ramp.full_until(now) {
            Some(until) => Wait { until, places: 0 },
            None => Wait { until: now, places: 1 },
        })
    }

    /// The circuit of `model`, which is made on its first use. Whoever may name any model must not fill the memory: the
    /// one that was idle longest goes for it.
    fn circuit(&mut self, model: &Arc<str>, now: Instant) -> &mut Circuit {
        if CIRCUITS <= self.circuits.len() && !self.circuits.contains_key(model) {
            let idle = self.circuits.iter().filter(|(_, circuit)| circuit.is_idle(now));
            if let Some(oldest) = idle.min_by_key(|(_, circuit)| circuit.used).map(|(model, _)| Arc::clone(model)) {
                self.circuits.remove(&oldest);
            }
        }
        let Self { circuits, seeds, forced, policy, .. } = self;
        let circuit = circuits.entry(Arc::clone(model)).or_insert_with(|| {
            let mut breaker = Breaker::new(policy.clone(), seeds.draw(), now);
            breaker.force(*forced, now);
            Circuit {
                breaker,
                first_token: Digest::new(PERIOD, FIRST_TOKENS),
                gaps: Digest::new(PERIOD, GAPS),
                blame: Blame::default(),
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

// === helpers ===

/// Whose rests hold for `by`: those of all who use its credential, and its tenant's own.
fn whose(by: Plaintiff) -> impl Iterator<Item = Whose> {
    let all = Whose { credential: by.credential, tenant: None };
    let own = by.tenant.map(|tenant| Whose { tenant: Some(tenant), ..all });
    std::iter::once(all).chain(own)
}

/// The last moment of a rest is waited for.
const SOON: Duration = Duration::from_millis(100);
/// A provider that refuses whoever tries after a rest, and does not say for how long, rests so long.
const UNTOLD: Duration = Duration::from_secs(1);
/// The most circuits of a connection while idle ones can be forgotten.
const CIRCUITS: usize = 1024;
/// Latencies are those of the last one to two periods.
const PERIOD: Duration = Duration::from_secs(300);
/// Fewer first tokens have no percentiles.
const FIRST_TOKENS: u64 = 20;
/// Fewer silences have none.
const GAPS: u64 = 100;
/// The most by which somebody who waited for the quota is put off further.
const STAGGER: Duration = Duration::from_millis(500);
/// One request may be under way for so much longer than the next.
const TRAVEL: Duration = Duration::from_millis(500);
/// What a client is told of a circuit that an operator holds open.
const FORCED_RETRY: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;
