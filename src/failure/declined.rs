//! Why an attempt was not made: the answer to an ask, as facts.
//!
//! It is a type of its own so that nothing that a provider says can look like it.

use super::{Failure, Kind, RetryAt, Stage};
use std::time::{Duration, Instant};

/// Why an attempt that was asked for is not made. Nothing was sent: it is no try, and says nothing about its target's
/// health.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Declined {
    /// The level's budget for challengers, or for retries, is spent.
    Budget,
    /// The provider asked to be left alone.
    Resting {
        /// Until then, as the provider said it.
        until: Instant,
        /// The rest before it was waited for, and the provider asked again to be left alone.
        renewed: bool,
    },
    /// It has rested, and as many as may try it already do; another candidate is free.
    Crowded {
        /// When there is room again at the latest.
        until: Instant,
    },
    /// The circuit is open, or another turn tries it.
    CircuitOpen {
        /// Until then, as far as it is known.
        until: Option<Instant>,
    },
    /// The line before the connection is longer than the attempt may wait.
    Queue {
        /// So long it may wait.
        patience: Duration,
        /// When its turn would come, as far as it is known.
        until: Option<Instant>,
    },
    /// The tenant's own key, or the tenant, was refused a short while ago.
    KeyRefused {
        /// When it is tried again.
        until: Instant,
    },
    /// This target cannot be asked for this turn at all; in words of our own.
    Unfit(String),
}

// === impl Declined ===

impl Declined {
    /// When the target may be asked again, as far as it is known.
    pub fn until(&self) -> Option<Instant> {
        match self {
            Self::Resting { until, .. } | Self::Crowded { until } | Self::KeyRefused { until } => Some(*until),
            Self::CircuitOpen { until } | Self::Queue { until, .. } => *until,
            Self::Budget | Self::Unfit(_) => None,
        }
    }

    /// Its name in logs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::Resting { .. } => "resting",
            Self::Crowded { .. } => "crowded",
            Self::CircuitOpen { .. } => "circuit_open",
            Self::Queue { .. } => "queue",
            Self::KeyRefused { .. } => "key_refused",
            Self::Unfit(_) => "unfit",
        }
    }

    /// The same as a failure of `target`, `connection/model`, for accounts that list both.
    pub fn failure(&self, target: &str, now: Instant) -> Failure {
        let message = match self {
            Self::Budget => "the level's budget for challengers and retries is spent".to_owned(),
            Self::Resting { .. } => format!("{target} asked to be left alone for a while"),
            Self::Crowded { .. } => format!("{target} has just rested, and others try it first"),
            Self::CircuitOpen { .. } => format!("the circuit of {target} is open"),
            Self::Queue { patience, .. } => format!(
                "the line of {target} is longer than {} ms; raise the connection's limits or add a target",
                patience.as_millis()
            ),
            Self::KeyRefused { .. } => format!("{target} refused this tenant or its key"),
            Self::Unfit(why) => why.clone(),
        };
        let mut failure = Failure::new(Kind::Unavailable, Stage::Connecting).ours().saying(message);
        let wait = self.until().map(|until| until.saturating_duration_since(now));
        failure.retry_at = wait.filter(|wait| !wait.is_zero()).map(RetryAt::In);
        self.name().clone_into(&mut failure.said.code);
        failure
    }
}
