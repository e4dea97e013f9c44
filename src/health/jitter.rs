//! Random spread from a seed, so that what is random in production is exact in a test.
//!
//! The generator is splitmix64: one word of state, no dependency, and good enough to keep retries and releases from
//! falling together. It is not fit for secrets.

use std::time::Duration;

/// A sequence of seeds that a single one determines.
#[derive(Clone, Debug)]
pub struct Seeds(u64);

// === impl Seeds ===

impl Seeds {
    /// The sequence that starts from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next seed.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }
}

/// A number in `0.0..1.0`, evenly distributed over seeds.
pub fn unit(seed: u64) -> f64 {
    const BITS: u32 = f64::MANTISSA_DIGITS;
    (mix(seed) >> (u64::BITS - BITS)) as f64 / (1_u64 << BITS) as f64
}

/// A time in `0..width`, evenly distributed over seeds.
pub fn spread(seed: u64, width: Duration) -> Duration {
    width.mul_f64(unit(seed))
}

/// Spreads the bits of `word` (the output function of splitmix64).
fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// The increment of splitmix64: 2^64 divided by the golden ratio, made odd.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_fills_its_width_evenly() {
        let mut seeds = Seeds::new(7);
        let mut tenths = [0_u32; 10];
        for _ in 0..100_000 {
            let at = spread(seeds.draw(), Duration::from_secs(10));
            assert!(at < Duration::from_secs(10));
            tenths[at.as_secs() as usize] += 1;
        }
        assert!(tenths.iter().all(|n| (9_500..10_500).contains(n)), "{tenths:?}");
    }

    #[test]
    fn equal_seeds_give_equal_times() {
        let width = Duration::from_secs(3);
        assert_eq!(spread(11, width), spread(11, width));
        assert_ne!(spread(11, width), spread(12, width));
    }
}
