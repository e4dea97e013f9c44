//! When a provider's "not before" is over.
//!
//! A rate limit names a time. Whoever asks earlier is refused again, and whoever asks exactly then meets everybody else
//! who was told the same. So there are two times: the one that was named, which a client may be told, and a slightly
//! later one, from which Segue itself asks.

use super::jitter;
use std::time::{Duration, Instant};

/// The time before which one key must not be asked. Later words only ever extend it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    /// What was named, and when it is released; `named <= released`.
    times: Option<(Instant, Instant)>,
}

// === impl Rest ===

impl Rest {
    /// Rests until `not_before` and a little longer: `U(0, max(1 s, a tenth of the time from now))`. A time that ends
    /// sooner than the present one changes nothing.
    pub fn extend(&mut self, not_before: Instant, now: Instant, seed: u64) {
        let wait = not_before.saturating_duration_since(now);
        if wait.is_zero() || self.times.is_some_and(|(named, _)| not_before <= named) {
            return;
        }
        let width = (wait / JITTER_PART).max(JITTER_LEAST);
        let released = not_before + jitter::spread(seed, width);
        let earlier = self.times.map_or(released, |(_, released)| released);
        self.times = Some((not_before, released.max(earlier)));
    }

    /// The time that was named, while it lies ahead: what a client's `Retry-After` says.
    pub fn until(&self, now: Instant) -> Option<Instant> {
        self.times.map(|(named, _)| named).filter(|named| now < *named)
    }

    /// The time from which the key may be asked, while it lies ahead.
    pub fn released_at(&self, now: Instant) -> Option<Instant> {
        self.times.map(|(_, released)| released).filter(|released| now < *released)
    }
}

/// The jitter is at most this part of the wait …
const JITTER_PART: u32 = 10;
/// … or so much, if that is more.
const JITTER_LEAST: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;
    use crate::health::jitter::Seeds;

    const SECOND: Duration = Duration::from_secs(1);

    fn start() -> Instant {
        tokio::time::Instant::now().into_std()
    }

    #[test]
    fn the_named_time_is_told_and_a_later_one_is_kept() {
        let now = start();
        for seed in 0..1000 {
            let mut rest = Rest::default();
            rest.extend(now + 2 * SECOND, now, seed);
            assert_eq!(rest.until(now), Some(now + 2 * SECOND));
            let released = rest.released_at(now).unwrap();
            assert!(now + 2 * SECOND <= released && released < now + 3 * SECOND);
            let mut rest = Rest::default();
            rest.extend(now + 60 * SECOND, now, seed);
            assert!(rest.released_at(now).unwrap() < now + 66 * SECOND);
        }
    }

    #[test]
    fn a_shorter_word_never_cuts_a_longer_rest() {
        let now = start();
        let mut seeds = Seeds::new(1);
        for _ in 0..1000 {
            let mut rest = Rest::default();
            let mut longest = 0;
            let mut released = now;
            for _ in 0..8 {
                let wait = (seeds.draw() % 90) as u32;
                rest.extend(now + wait * SECOND, now, seeds.draw());
                longest = longest.max(wait);
                assert_eq!(rest.until(now), (0 < longest).then(|| now + longest * SECOND));
                let later = rest.released_at(now).unwrap_or(now);
                assert!(released <= later, "a release moved forward");
                released = later;
            }
        }
    }

    #[test]
    fn a_rest_ends() {
        let now = start();
        let mut rest = Rest::default();
        assert_eq!((rest.until(now), rest.released_at(now)), (None, None));
        rest.extend(now + SECOND, now, 9);
        assert_eq!(rest.until(now + SECOND), None);
        assert_eq!(rest.released_at(now + 2 * SECOND), None);
        rest.extend(now, now + 5 * SECOND, 9);
        assert_eq!(rest.released_at(now + 5 * SECOND), None);
    }
}
