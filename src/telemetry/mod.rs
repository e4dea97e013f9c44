//! Metrics: what happened, counted, in the text format of Prometheus.
//!
//! [`catalogue`] is the list of all metrics and [`registry`] the numbers; `docs/metrics.md` says what they mean, and a
//! test holds the two to each other. [`Metrics`] is a sink: it counts each turn once, when it ends, so a turn under way
//! pays nothing. What is true at the moment of asking (open turns, circuits) is set when somebody asks.
//!
//! Label values are bounded whoever asks for what: levels and models come from the configuration, and what a client can
//! name freely (`connection/model`) is counted as `direct` or `other`. Each metric has at most
//! [`registry::MOST_SERIES`] series; what comes after them is counted in one whose labels are all `other`.

pub mod catalogue;
pub mod registry;

use crate::config::Config;
use crate::health::breaker::State;
use crate::record::account;
use crate::record::{AttemptRecord, Ended, Entry, Outcome, Sink, TurnRecord};
use catalogue as c;
use registry::Registry;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// The metrics of one gateway.
#[derive(Debug, Default)]
pub struct Metrics(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    registry: Registry,
    levels: HashSet<Arc<str>>,
    targets: HashSet<(Arc<str>, Arc<str>)>,
    circuits: HashMap<(Arc<str>, Arc<str>), (State, SystemTime)>,
}

// === impl Metrics ===

impl Metrics {
    /// The levels and targets that are counted by name: those of `config`. Those of an earlier one stay.
    pub fn know(&self, config: &Config) {
        let mut kept = self.lock();
        for level in &config.levels {
            kept.levels.insert(Arc::clone(&level.name));
            for entry in &level.chain {
                kept.targets.insert((Arc::clone(&entry.target.connection), Arc::clone(&entry.target.model)));
            }
        }
    }

    /// All metrics as text; `now` sets those that are true at this moment, which were cleared before.
    pub fn render(&self, now: SystemTime, set: impl FnOnce(&mut Registry)) -> String {
        let mut kept = self.lock();
        let Kept { registry, circuits, .. } = &mut *kept;
        for ((connection, model), (state, since)) in circuits.iter_mut() {
            let passed = now.duration_since(*since).unwrap_or_default();
            *since = now;
            registry.add(&c::CIRCUIT_STATE_SECONDS, &[connection, model, state.name()], passed.as_secs_f64());
        }
        registry.clear_gauges();
        registry.set(&c::BUILD_INFO, &[env!("CARGO_PKG_VERSION")], 1.0);
        set(registry);
        registry.render()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Metrics {
    fn name(&self) -> &'static str {
        "metrics"
    }

    fn turn(&self, ended: &Ended<'_>) {
        self.lock().turn(ended.record);
    }

    fn circuit(&self, entry: &Entry) {
        let mut kept = self.lock();
        let model = kept.model(&entry.connection, &entry.model);
        let (connection, to) = (&*entry.connection, entry.to.name());
        kept.registry.add(&c::CIRCUIT_TRANSITIONS, &[connection, &model, to, entry.cause.name()], 1.0);
        if &*model == OTHER {
            return;
        }
        let target = (Arc::clone(&entry.connection), Arc::clone(&entry.model));
        if let Some((state, since)) = kept.circuits.insert(target, (entry.to, entry.at)) {
            let passed = entry.at.duration_since(since).unwrap_or_default();
            kept.registry.add(&c::CIRCUIT_STATE_SECONDS, &[connection, &model, state.name()], passed.as_secs_f64());
        }
    }

    fn refused(&self, code: &str) {
        self.lock().registry.add(&c::REFUSALS, &[code], 1.0);
    }
}

// === impl Kept ===

impl Kept {
    fn turn(&mut self, turn: &TurnRecord) {
        let level = if self.levels.contains(&turn.level) { &*turn.level } else { DIRECT };
        let tenant = turn.tenant.as_deref().unwrap_or_default();
        let registry = &mut self.registry;
        registry.add(&c::TURNS, &[level, tenant, turn.outcome.name()], 1.0);
        registry.add(&c::SPLICES, &[level], f64::from(turn.splices));
        registry.add(&c::FAILOVERS, &[level], f64::from(u8::from(account::is_failover(turn))));
        for (metric, ms) in [
            (&c::TURN_SECONDS, turn.duration_ms),
            (&c::FIRST_TOLD_SECONDS, turn.first_told_ms),
            (&c::LONGEST_SILENCE_SECONDS, turn.first_told_ms.map(|_| turn.longest_silence_ms)),
            (&c::STEADY_STATE_OVERHEAD, account::steady(turn)),
            (&c::INCIDENT_OVERHEAD, account::incident(turn)),
        ] {
            if let Some(ms) = ms {
                registry.observe(metric, &[level], ms / 1e3);
            }
        }
        if turn.outcome != Outcome::Open && turn.splices > 0 {
            for (gap, _) in turn.splice_gaps() {
                registry.observe(&c::SPLICE_GAP_SECONDS, &[level], gap / 1e3);
            }
        }
        for attempt in &turn.attempts {
            self.attempt(attempt, turn);
        }
    }

    fn attempt(&mut self, attempt: &AttemptRecord, turn: &TurnRecord) {
        let model = self.model(&attempt.connection, &attempt.model);
        let level = if self.levels.contains(&turn.level) { &*turn.level } else { DIRECT };
        let (connection, model) = (&*attempt.connection, &*model);
        let registry = &mut self.registry;
        registry.add(&c::ATTEMPTS, &[connection, model, attempt.cause.name(), attempt.outcome.name()], 1.0);
        if let Some(failure) = attempt.failure {
            registry.add(&c::FAILED_ATTEMPTS, &[connection, model, failure.name()], 1.0);
        }
        if let Some(seam) = attempt.seam {
            registry.add(&c::SEAMS, &[connection, model, seam], 1.0);
        }
        if attempt.cause.is_challenge() && attempt.was_sent() {
            let won = if attempt.has_told() { "true" } else { "false" };
            registry.add(&c::CHALLENGERS, &[level, attempt.cause.name(), won], 1.0);
        }
        if let Some(sent) = attempt.sent_ms {
            registry.observe(&c::QUEUE_WAIT_SECONDS, &[connection], (sent - attempt.opened_ms).max(0.0) / 1e3);
        }
        if let Some(first) = attempt.first_token_ms {
            registry.observe(&c::FIRST_TOKEN_SECONDS, &[connection, model], first / 1e3);
        }
        let tenant = turn.tenant.as_deref().unwrap_or_default();
        for (kind, tokens) in [("prompt", attempt.prompt_tokens), ("completion", attempt.completion_tokens)] {
            // A count of tokens is far below what a float holds exactly.
            registry.add(&c::TOKENS, &[connection, model, kind, attempt.spent_as()], tokens as f64);
            registry.add(&c::TENANT_TOKENS, &[tenant, kind], tokens as f64);
        }
    }

    /// The model as it is counted: one that only a client has named is not named here.
    fn model(&self, connection: &Arc<str>, model: &Arc<str>) -> Arc<str> {
        let target = (Arc::clone(connection), Arc::clone(model));
        if self.targets.contains(&target) { target.1 } else { OTHER.into() }
    }
}

/// A target that a client has named as its model.
const DIRECT: &str = "direct";
/// Whatever has no series of its own.
const OTHER: &str = "other";

#[cfg(test)]
mod tests;
