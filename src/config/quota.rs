//! How much of something is allowed.

use super::document::Section;
use super::value::Zero;
use std::time::Duration;

/// Limits of one connection, tenant or key; `None`: none of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// Turns at once.
    pub in_flight: Option<u64>,
    /// Requests a minute.
    pub rpm: Option<u64>,
    /// Tokens a minute.
    pub tpm: Option<u64>,
}

/// The gateway's own limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests a minute.
    pub rpm: u64,
    /// Tokens a minute.
    pub tpm: u64,
    /// Turns at once.
    pub in_flight: u64,
    /// A longer `Retry-After` is not waited for, but passed on.
    pub retry_after_cap: Duration,
    /// One upstream event, in bytes.
    pub max_event: usize,
    /// One turn's text, in bytes.
    pub max_turn: usize,
}

// === impl Quota ===

impl Quota {
    pub(super) fn read(section: &Section<'_>) -> Self {
        let limit = |key| section.get(key).and_then(|v| v.whole(1..=u64::MAX));
        Self { in_flight: limit("in_flight"), rpm: limit("rpm"), tpm: limit("tpm") }
    }

    /// The quota under `limits`, or none.
    pub(super) fn of(owner: &Section<'_>) -> Self {
        owner.section("limits").map(|s| Self::read(&s)).unwrap_or_default()
    }
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self {
            rpm: 100_000,
            tpm: 100_000_000,
            in_flight: 20_000,
            retry_after_cap: Duration::from_secs(60),
            max_event: 16 << 20,
            max_turn: 32 << 20,
        }
    }
}

impl Limits {
    pub(super) fn read(section: &Section<'_>) -> Self {
        let default = Self::default();
        Self {
            rpm: section.whole("rpm", 1..=u64::MAX, default.rpm),
            tpm: section.whole("tpm", 1..=u64::MAX, default.tpm),
            in_flight: section.whole("in_flight", 1..=u64::MAX, default.in_flight),
            retry_after_cap: section.duration("retry_after_cap", Zero::Allowed, default.retry_after_cap),
            max_event: section.size("max_event", default.max_event),
            max_turn: section.size("max_turn", default.max_turn),
        }
    }
}
