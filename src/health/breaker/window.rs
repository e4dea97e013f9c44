//! What happened lately: exact counts in a rolling ring of buckets.
//!
//! Exact counts rather than a decaying average: an average can be moved by a short burst that the window as a whole does
//! not bear out, and no one can say how many samples it stands for.

use crate::health::latency::Histogram;
use std::time::{Duration, Instant};

/// Counts over the last [`BUCKETS`] buckets, the present one included.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// Where the numbering of buckets starts.
    origin: Instant,
    /// How long a bucket lasts.
    width: Duration,
    /// The bucket with number `n` is at `n % BUCKETS`.
    ring: [Bucket; BUCKETS],
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Attempts that served.
    pub served: u32,
    /// Attempts that failed.
    pub failed: u32,
    /// Attempts of which it is known whether their first token was slow.
    pub timed: u32,
    /// Those of which it was.
    pub slow: u32,
}

/// The stretch since the circuit closed or was last judged, of a window's length at least.
#[derive(Clone, Debug)]
pub(super) struct Calm {
    pub(super) since: Instant,
    pub(super) counts: Counts,
    pub(super) first_token: Histogram,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    number: u64,
    counts: Counts,
}

// === impl Window ===

impl Window {
    pub(super) fn new(length: Duration, now: Instant) -> Self {
        let width = (length / BUCKETS as u32).max(Duration::from_millis(1));
        Self { origin: now, width, ring: Default::default() }
    }

    /// The counts to add to now.
    pub(super) fn at(&mut self, now: Instant) -> &mut Counts {
        let number = self.number(now);
        let bucket = &mut self.ring[number as usize % BUCKETS];
        if bucket.number != number {
            *bucket = Bucket { number, counts: Counts::default() };
        }
        &mut bucket.counts
    }

    /// The sum of all that has not run out.
    pub(super) fn counts(&self, now: Instant) -> Counts {
        self.live(now).fold(Counts::default(), |sum, c| Counts {
            served: sum.served + c.served,
            failed: sum.failed + c.failed,
            timed: sum.timed + c.timed,
            slow: sum.slow + c.slow,
        })
    }

    /// In how many buckets more than a twentieth of the first tokens were slow.
    pub(super) fn slow_buckets(&self, now: Instant) -> usize {
        self.live(now).filter(Counts::is_slow).count()
    }

    pub(super) fn clear(&mut self) {
        self.ring = Default::default();
    }

    fn live(&self, now: Instant) -> impl Iterator<Item = Counts> {
        let last = self.number(now);
        self.ring.iter().filter(move |b| last < b.number + BUCKETS as u64).map(|b| b.counts)
    }

    fn number(&self, now: Instant) -> u64 {
        let age = now.saturating_duration_since(self.origin).as_nanos() / self.width.as_nanos();
        u64::try_from(age).unwrap_or(u64::MAX - BUCKETS as u64)
    }
}

// === impl Calm ===

impl Calm {
    pub(super) fn new(now: Instant) -> Self {
        Self { since: now, counts: Counts::default(), first_token: Histogram::default() }
    }
}

// === impl Counts ===

impl Counts {
    /// Whether the 95th percentile lies past the bound: exactly when more than a twentieth does.
    pub(super) fn is_slow(&self) -> bool {
        self.timed < self.slow.saturating_mul(20)
    }
}

/// Buckets in a window. The present one is partly filled, so a window covers nine to ten tenths of its length.
pub(super) const BUCKETS: usize = 10;
