//! The states of a circuit, and what leads from one to another.

use serde::Serialize;
use std::time::Instant;

/// What a circuit does with the next turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It lets every turn through.
    Closed,
    /// It lets none through.
    Open,
    /// It lets one through, to try.
    HalfOpen,
}

/// What an operator may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Force {
    /// Keep it open, without exception.
    Open,
    /// Keep it closed, whatever happens.
    Close,
    /// Leave it to the breaker.
    Auto,
}

/// Why a circuit changed its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Failures in a row.
    Consecutive,
    /// The share of failures.
    ErrorRate,
    /// The 95th percentile of first-token times.
    Latency,
    /// It cannot be used until someone acts.
    Out,
    /// The turn that tried failed.
    TrialFailed,
    /// The cooldown is over, and a turn tries.
    Cooled,
    /// The turn that tried made progress.
    Progress,
    /// An operator.
    Forced,
}

/// A change of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// When.
    pub at: Instant,
    /// From what.
    pub from: State,
    /// To what.
    pub to: State,
    /// Why.
    pub cause: Cause,
    /// When it opened: until when.
    pub until: Option<Instant>,
}

// === impl State ===

impl State {
    /// Its name in the admin interface, metrics and ledger.
    pub fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

// === impl Cause ===

impl Cause {
    /// Its name in the journal, alerts and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Consecutive => "consecutive",
            Self::ErrorRate => "error_rate",
            Self::Latency => "latency",
            Self::Out => "out",
            Self::TrialFailed => "trial_failed",
            Self::Cooled => "cooled",
            Self::Progress => "progress",
            Self::Forced => "forced",
        }
    }
}

// === impl State ===

impl From<Force> for State {
    /// The state of a circuit that never saw an attempt.
    fn from(force: Force) -> Self {
        if force == Force::Open { Self::Open } else { Self::Closed }
    }
}
