//! Random numbers from a seed: small, fast, and the same on every machine.
//!
//! A run that fails is repeated by its seed, so nothing here may depend on a library's choice of algorithm.

/// A stream of random numbers (SplitMix64: one addition and one mix a number, any seed is good).
#[derive(Clone, Debug)]
pub struct Dice {
    state: u64,
}

// === impl Dice ===

impl Dice {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Another stream, which shares nothing with the one of `seed` alone; `label` tells several such apart.
    pub fn labelled(seed: u64, label: u64) -> Self {
        Self::new(mix(seed ^ mix(label.wrapping_add(GOLDEN))))
    }

    /// The next 64 bits.
    pub fn roll(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// A number below `bound`; 0 if that is 0. The bias is below `bound` / 2^64.
    pub fn below(&mut self, bound: usize) -> usize {
        let wide = u128::from(self.roll()) * bound as u128;
        usize::try_from(wide >> 64).unwrap_or_default()
    }

    /// A number from `low` to `high`, both included; `low` if `high` is less.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// A number in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.roll() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// `true` once in `n`.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// A number of the standard normal distribution (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// One of `items`; `None` if there is none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }
}

// === helpers ===

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::Dice;

    #[test]
    fn known_numbers_of_splitmix() {
        // The reference implementation's first numbers for seed 1234567.
        let mut dice = Dice::new(1_234_567);
        let got: Vec<u64> = (0..3).map(|_| dice.roll()).collect();
        assert_eq!(got, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn numbers_stay_in_their_bounds_and_reach_them() {
        let mut dice = Dice::new(7);
        let mut seen = [false; 5];
        for _ in 0..500 {
            seen[dice.between(2, 6) - 2] = true;
            assert!((0.0..1.0).contains(&dice.unit()));
        }
        assert_eq!(seen, [true; 5]);
        assert_eq!((dice.below(0), dice.between(3, 1)), (0, 3));
        assert_eq!(dice.pick::<u8>(&[]), None);
    }

    #[test]
    fn normal_numbers_have_mean_zero_and_deviation_one() {
        let mut dice = Dice::new(11);
        let drawn: Vec<f64> = (0..20_000).map(|_| dice.normal()).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let variance = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / drawn.len() as f64;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    }

    #[test]
    fn labels_give_other_streams() {
        assert_ne!(Dice::labelled(1, 1).roll(), Dice::labelled(1, 2).roll());
        assert_eq!(Dice::labelled(1, 1).roll(), Dice::labelled(1, 1).roll());
    }
}
