//! The health of a target as plain values: may it be asked, how soon does it answer, how much may be sent.
//!
//! Nothing here waits, locks or reads a clock: `now` is an argument, and so is the seed of every random choice. What
//! is shared between turns, and the locks that this needs, is the fleet's business.

pub mod backoff;
pub mod blame;
pub mod breaker;
pub mod budget;
pub mod connection;
pub mod jitter;
pub mod latency;
pub mod lessons;
pub mod quota;
pub mod ramp;
pub mod rest;

/// How many random cases a test plays: `SEEDS` from the environment, else `quick`.
#[cfg(test)]
pub(crate) fn cases(quick: u64) -> u64 {
    std::env::var("SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(quick)
}
