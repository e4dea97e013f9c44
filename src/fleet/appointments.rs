//! When those who wait for the end of a rest go: one after the other.
//!
//! The provider is where it was when it began to refuse, and nobody has said how many it takes. So they are given
//! appointments, about a gap apart, and whoever comes while some are still to be kept is given the next.

use crate::health::jitter;
use std::time::{Duration, Instant};

/// The appointments at one key of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Appointments {
    /// The next that is free.
    next: Instant,
    /// About how far they lie apart.
    gap: Duration,
}

// === impl Appointments ===

impl Appointments {
    /// Those after a rest of `wait` that ends at `end`.
    pub(super) fn after(end: Instant, wait: Duration) -> Self {
        Self { next: end, gap: (wait / GAPS_OF_A_REST).clamp(GAP_LEAST, GAP_MOST) }
    }

    /// The next appointment, not before `released`; `None`: nobody is in front. One that is after the deadline is told and
    /// stays free: whoever asks will not come.
    pub(super) fn take(
        &mut self,
        released: Option<Instant>,
        (now, deadline): (Instant, Instant),
        seed: u64,
    ) -> Option<Instant> {
        let free = match released {
            None if self.next <= now => return None,
            None => self.next,
            Some(released) => self.next.max(released),
        };
        if free <= deadline {
            self.next = free + self.gap.mul_f64(0.5 + jitter::unit(seed));
        }
        Some(free)
    }

    /// The next that is free.
    pub(super) fn next(self) -> Instant {
        self.next
    }
}

/// Those who waited go so far apart: this part of the rest …
const GAPS_OF_A_REST: u32 = 20;
/// … but at least so much …
const GAP_LEAST: Duration = Duration::from_millis(50);
/// … and at most so much.
const GAP_MOST: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_who_waited_go_one_after_the_other_and_those_who_give_up_leave_no_hole() {
        let now = tokio::time::Instant::now().into_std();
        let second = Duration::from_secs(1);
        let mut queue = Appointments::after(now + 2 * second, 2 * second);
        let mut times = Vec::new();
        for seed in 0..100 {
            assert!(queue.take(Some(now + 2 * second), (now, now + second), seed) >= Some(now + 2 * second));
            times.extend(queue.take(Some(now + 2 * second), (now, now + 100 * second), seed));
        }
        assert_eq!(times.len(), 100);
        assert!(times.windows(2).all(|pair| (GAP_LEAST..=2 * GAP_MOST).contains(&(pair[1] - pair[0]))), "{times:?}");
        assert!(times[99] - times[0] < 15 * second, "a tenth of a second each, about");
        assert_eq!(queue.take(None, (now + 60 * second, now + 90 * second), 7), None, "the line has gone");
    }
}
