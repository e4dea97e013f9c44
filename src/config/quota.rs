//! How much of something is allowed.

use super::document::Section;
use super::value::Zero;
use crate::bounds::Bounds;
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
    /// How many things a request or an answer may consist of.
    pub bounds: Bounds,
    /// How long the check of a structured answer may take; past it the answer is told unchecked.
    pub check: Duration,
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
            bounds: Bounds::default(),
            check: Duration::from_secs(1),
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
            bounds: bounds(section, default.bounds),
            check: section.duration("check", Zero::Allowed, default.check),
        }
    }
}

// === helpers ===

fn bounds(section: &Section<'_>, default: Bounds) -> Bounds {
    let count = |key, most: usize, default: usize| {
        usize::try_from(section.whole(key, 1..=most as u64, default as u64)).unwrap_or(default)
    };
    Bounds {
        depth: count("max_depth", Bounds::DEPTH, default.depth),
        values: count("max_values", MOST, default.values),
        messages: count("max_messages", MOST, default.messages),
        parts: count("max_parts", MOST, default.parts),
        tools: count("max_tools", MOST, default.tools),
        stops: count("max_stops", MOST, default.stops),
        choices: count("max_choices", Bounds::CHOICES, default.choices),
        calls: count("max_calls", MOST_CALLS, default.calls),
    }
}

/// No count is larger: what it bounds would not fit into memory.
const MOST: usize = 100_000_000;

/// The calls of an answer are looked through for each fragment, so there must be few.
const MOST_CALLS: usize = 10_000;
