//! How long to pause before asking the same target again.

use super::jitter;
use std::time::Duration;

/// The pause before further try `attempt`, counted from 0: `min(cap, base·2^attempt + U(0, base))`.
///
/// The jitter is added before the cap, so no pause is ever longer than `cap`. With a base of 1 s and a cap of 30 s it is
/// the schedule `min(30 s, 2^a + U(0, 1))`.
pub fn pause(base: Duration, cap: Duration, attempt: u32, seed: u64) -> Duration {
    let doubled = 2_u32.checked_pow(attempt).and_then(|factor| base.checked_mul(factor)).unwrap_or(cap);
    doubled.saturating_add(jitter::spread(seed, base)).min(cap)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Duration = Duration::from_secs(1);
    const CAP: Duration = Duration::from_secs(30);

    #[test]
    fn pauses_double_up_to_the_cap() {
        for seed in 0..1000 {
            for attempt in 0..5 {
                let pause = pause(BASE, CAP, attempt, seed);
                let doubled = BASE * 2_u32.pow(attempt);
                assert!(doubled <= pause && pause < doubled + BASE, "{attempt}: {pause:?}");
            }
            assert_eq!(pause(BASE, CAP, 5, seed), CAP);
            assert_eq!(pause(BASE, CAP, 200, seed), CAP);
        }
    }

    #[test]
    fn the_first_pause_is_spread_over_a_whole_base() {
        let pauses: Vec<_> = (0..1000).map(|seed| pause(BASE, CAP, 0, seed)).collect();
        assert!(pauses.iter().min() < Some(&(BASE + BASE / 50)));
        assert!(pauses.iter().max() > Some(&(2 * BASE - BASE / 50)));
    }

    #[test]
    fn a_base_over_the_cap_is_the_cap() {
        assert_eq!(pause(Duration::from_secs(60), CAP, 0, 3), CAP);
    }
}
