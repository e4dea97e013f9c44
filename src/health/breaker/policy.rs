//! When a circuit opens, and for how long.

use super::Cause;
use std::time::Duration;

/// When a circuit opens, and for how long.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// So many failures in a row open it; 0: never.
    pub consecutive: u32,
    /// A larger share of failures in the window opens it; from 1.0 on: never.
    pub error_rate: f64,
    /// How far back shares and percentiles look.
    pub window: Duration,
    /// Fewer samples in the window say nothing about shares and percentiles; 0 is taken as 1.
    pub min_samples: u32,
    /// Slowness that opens it.
    pub latency: Latency,
    /// The first time for which it stays open.
    pub cooldown: Duration,
    /// The longest such time after failures in a row.
    pub max_cooldown: Duration,
    /// The longest such time after too high a rate of errors or too slow a window.
    pub max_cooldown_degraded: Duration,
}

/// Bounds on the 95th percentile of first-token times over the window; the lower one holds. Slowness opens a circuit
/// when it is *sustained*: the percentile lies past the bound over the window, and in half of its buckets too, so that
/// no short burst does.
#[derive(Clone, Debug, PartialEq)]
pub struct Latency {
    /// An absolute bound; `None`: none.
    pub p95: Option<Duration>,
    /// A bound as a multiple of the baseline; `None`: none.
    pub over_baseline: Option<f64>,
    /// What the target usually takes; `None`: it is learned.
    pub baseline: Option<Duration>,
}

// === impl Policy ===

impl Default for Policy {
    fn default() -> Self {
        Self {
            consecutive: 5,
            error_rate: 0.05,
            window: Duration::from_secs(60),
            min_samples: 100,
            latency: Latency::default(),
            cooldown: Duration::from_secs(5),
            max_cooldown: Duration::from_secs(20),
            max_cooldown_degraded: Duration::from_secs(300),
        }
    }
}

impl Policy {
    /// The longest cooldown for `cause`, never shorter than the first.
    pub(super) fn cap(&self, cause: Cause) -> Duration {
        match cause {
            Cause::ErrorRate | Cause::Latency => self.max_cooldown_degraded.max(self.cooldown),
            _ => self.max_cooldown.max(self.cooldown),
        }
    }

    /// Whether `counts` are enough to judge shares by.
    pub(super) fn suffices(&self, samples: u32) -> bool {
        self.min_samples.max(1) <= samples
    }
}

// === impl Latency ===

impl Default for Latency {
    fn default() -> Self {
        Self { p95: Some(Duration::from_secs(8)), over_baseline: Some(2.0), baseline: None }
    }
}
