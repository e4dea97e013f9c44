//! Waiting times of a script: fixed, listed, or drawn from a seeded distribution.

use super::seed::Dice;
use super::span;
use serde::{Deserialize, Deserializer, Serialize, de};
use std::time::Duration;

/// A waiting time, or how to draw one. In a file: `"20ms"`, `["20ms", "2s"]` or
/// `{ log_normal = { median = "20ms", sigma = 0.6 } }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a duration such as \"20ms\", a list of durations, or one of { uniform = { min, max } }, \
                 { log_normal = { median, sigma } }, { pareto = { min, alpha } }"
)]
pub enum Delay {
    /// Always the same.
    Fixed(#[serde(with = "span")] Duration),
    /// One after the other; the last one repeats.
    List(#[serde(with = "span::list")] Vec<Duration>),
    /// Drawn.
    Drawn(Draw),
}

/// A distribution of waiting times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Draw {
    /// All times from `min` to `max` alike.
    Uniform {
        /// The shortest.
        #[serde(with = "span")]
        min: Duration,
        /// The longest.
        #[serde(with = "span")]
        max: Duration,
    },
    /// Its logarithm is normal: what latencies look like.
    LogNormal {
        /// Half are shorter.
        #[serde(with = "span")]
        median: Duration,
        /// The deviation of the logarithm; 0.5 is calm, 1.5 wild.
        #[serde(deserialize_with = "number")]
        sigma: f64,
    },
    /// A heavy tail.
    Pareto {
        /// The shortest.
        #[serde(with = "span")]
        min: Duration,
        /// The less, the heavier; below 1 there is no mean.
        #[serde(deserialize_with = "number")]
        alpha: f64,
    },
}

/// A number that was read ahead, as those of an untagged value are: then JSON's comes as its digits.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let number = serde_json::Number::deserialize(from)?;
    number.as_f64().ok_or_else(|| de::Error::custom("expected a number"))
}

// === impl Delay ===

impl Delay {
    /// No single wait is longer, however heavy the tail: ten minutes.
    pub const MAX: Duration = Duration::from_secs(600);

    /// The wait number `index`.
    pub fn draw(&self, index: usize, dice: &mut Dice) -> Duration {
        match self {
            Self::Fixed(wait) => *wait,
            Self::List(waits) => waits.get(index).or_else(|| waits.last()).copied().unwrap_or_default(),
            Self::Drawn(draw) => draw.draw(dice).min(Self::MAX),
        }
    }
}

impl Default for Delay {
    fn default() -> Self {
        Self::Fixed(Duration::ZERO)
    }
}

// === impl Draw ===

impl Draw {
    fn draw(&self, dice: &mut Dice) -> Duration {
        let seconds = match self {
            Self::Uniform { min, max } => min.as_secs_f64() + dice.unit() * max.saturating_sub(*min).as_secs_f64(),
            Self::LogNormal { median, sigma } => median.as_secs_f64() * (sigma * dice.normal()).exp(),
            Self::Pareto { min, alpha } => min.as_secs_f64() * (1.0 - dice.unit()).powf(-1.0 / alpha),
        };
        // A tail that overflows, or an alpha of 0, is the longest wait.
        Duration::try_from_secs_f64(seconds).unwrap_or(Delay::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::{Delay, Dice, Draw, Duration};

    fn drawn(draw: Draw, count: usize) -> Vec<f64> {
        let mut dice = Dice::new(3);
        let delay = Delay::Drawn(draw);
        let mut all: Vec<f64> = (0..count).map(|i| delay.draw(i, &mut dice).as_secs_f64()).collect();
        all.sort_by(f64::total_cmp);
        all
    }

    #[test]
    fn a_list_ends_in_its_last_wait() {
        let list = Delay::List(vec![Duration::from_millis(1), Duration::from_millis(9)]);
        let mut dice = Dice::new(0);
        let got: Vec<u128> = (0..4).map(|i| list.draw(i, &mut dice).as_millis()).collect();
        assert_eq!(got, [1, 9, 9, 9]);
        assert_eq!(Delay::List(Vec::new()).draw(0, &mut dice), Duration::ZERO);
    }

    #[test]
    fn distributions_have_their_shape() {
        let (min, max) = (Duration::from_millis(10), Duration::from_millis(30));
        let uniform = drawn(Draw::Uniform { min, max }, 4000);
        assert!(uniform[0] >= 0.010 && uniform[3999] <= 0.030 && (uniform[2000] - 0.020).abs() < 0.001);
        let log = drawn(Draw::LogNormal { median: Duration::from_millis(20), sigma: 1.0 }, 4000);
        assert!((log[2000] - 0.020).abs() < 0.002, "{}", log[2000]);
        assert!(log[3364] / log[2000] > 2.3 && log[3364] / log[2000] < 3.2, "one deviation is a factor of e");
        let pareto = drawn(Draw::Pareto { min, alpha: 1.5 }, 4000);
        assert!(pareto[0] >= 0.010 && (pareto[2000] / 0.010 - 1.587).abs() < 0.1, "the median is 2^(1/alpha)");
        assert!(pareto[3999] > 0.5, "the tail is heavy");
    }

    #[test]
    fn no_wait_is_over_the_maximum() {
        let min = Duration::from_secs(1);
        assert!(drawn(Draw::Pareto { min, alpha: 0.0 }, 50).iter().all(|s| *s <= Delay::MAX.as_secs_f64()));
        assert!(drawn(Draw::LogNormal { median: min, sigma: 1e9 }, 50).iter().all(|s| *s <= Delay::MAX.as_secs_f64()));
    }
}
