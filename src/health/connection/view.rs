//! What a connection shows of its circuits.

use super::rests::Whose;
use super::{Connection, State};
use crate::health::breaker::{Counts, Force};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One circuit, as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// The model.
    pub model: Arc<str>,
    /// Closed, open or half-open.
    pub state: State,
    /// What the breaker's window holds.
    pub counts: Counts,
    /// Attempts open at this moment.
    pub in_flight: u32,
    /// The end of the cooldown.
    pub cooldown: Option<Instant>,
    /// The end of the provider's own "not before", for the connection's key.
    pub rest: Option<Instant>,
    /// How many may ask at once after a rest, until it has its old rate again; `None`: as many as come.
    pub window: Option<u32>,
    /// How many tenants or keys of tenants rest by themselves.
    pub tenants_resting: usize,
    /// What an operator said.
    pub forced: Option<Force>,
    /// The median of recent first-token times.
    pub first_token_p50: Option<Duration>,
    /// Their 95th percentile.
    pub first_token_p95: Option<Duration>,
    /// The 95th percentile of recent silences in mid-turn.
    pub gap_p95: Option<Duration>,
}

// === impl Connection ===

impl Connection {
    /// All circuits that ever saw an attempt, by model.
    pub fn views(&self, now: Instant) -> Vec<View> {
        let mut views: Vec<View> = self
            .circuits
            .iter()
            .map(|(model, circuit)| {
                let breaker = &circuit.breaker;
                let state = breaker.state(now);
                let resting = self.rests.get(model, Whose::default());
                let ramp = resting.and_then(|resting| resting.ramp.as_ref()).filter(|ramp| !ramp.is_over(now));
                View {
                    model: Arc::clone(model),
                    state,
                    counts: breaker.counts(now),
                    in_flight: circuit.in_flight,
                    cooldown: breaker.retry_at(now).filter(|_| state == State::Open),
                    rest: resting.and_then(|resting| resting.limited.until(now)),
                    window: ramp.map(|ramp| ramp.window()),
                    tenants_resting: self.rests.of_tenants(model, now),
                    forced: breaker.forced(),
                    first_token_p50: circuit.first_token.percentile(50.0, now),
                    first_token_p95: circuit.first_token.percentile(95.0, now),
                    gap_p95: circuit.gaps.percentile(95.0, now),
                }
            })
            .collect();
        views.sort_by(|a, b| a.model.cmp(&b.model));
        views
    }
}
