//! Samples, their percentiles, and how sure one may be of a share.

use serde::{Deserialize, Serialize};

/// Numbers in ascending order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample(Vec<f64>);

/// A sample in a few numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How many there were.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// Half are at most this.
    pub p50: f64,
    /// 95 of 100 are at most this.
    pub p95: f64,
    /// 99 of 100 are at most this.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

/// Differences in a few numbers; some of them may be negative.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// How many there were.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// A quarter is at most this.
    pub p25: f64,
    /// Half are at most this.
    pub median: f64,
    /// Three quarters are at most this.
    pub p75: f64,
    /// 95 of 100 are at most this.
    pub p95: f64,
}

/// How many of how many, and between what the true share lies with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// So many.
    pub hits: usize,
    /// Of so many; at least one.
    pub of: usize,
    /// The share, from 0 to 1.
    pub share: f64,
    /// The lower end of its 95 % interval (Wilson).
    pub low: f64,
    /// The upper end of its 95 % interval (Wilson).
    pub high: f64,
}

// === impl Share ===

impl Share {
    /// `hits` of `of`; `None` of none. The interval is Wilson's score interval: it is honest at 0 and at 1, too, where the
    /// usual one has no width.
    pub fn new(hits: usize, of: usize) -> Option<Self> {
        if of == 0 {
            return None;
        }
        let hits = hits.min(of);
        let (count, share) = (of as f64, hits as f64 / of as f64);
        let square = Z95 * Z95;
        let middle = share + square / (2.0 * count);
        let half = Z95 * (share * (1.0 - share) / count + square / (4.0 * count * count)).sqrt();
        let scale = 1.0 + square / count;
        // At the ends the bound is the share itself; rounding must not push it out of [0, 1].
        let low = if hits == 0 { 0.0 } else { ((middle - half) / scale).max(0.0) };
        let high = if hits == of { 1.0 } else { ((middle + half) / scale).min(1.0) };
        Some(Self { hits, of, share, low, high })
    }

    /// How many of `all` are so; `None` of none.
    pub fn count(all: impl IntoIterator<Item = bool>) -> Option<Self> {
        let (hits, of) = all.into_iter().fold((0, 0), |(hits, of), hit| (hits + usize::from(hit), of + 1));
        Self::new(hits, of)
    }

    /// Whether the intervals have a value in common. Where they have none, the difference is no accident.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

// === impl Sample ===

impl Sample {
    /// The differences of pairs: second less first.
    pub fn paired(pairs: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::new(pairs.into_iter().map(|(before, after)| after - before))
    }

    /// A sample; what is no finite number is left out.
    pub fn new(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// In ascending order.
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    /// The smallest value that `percent` (0 to 100) of the sample do not exceed (nearest rank); `None` without one.
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        // 0.99 · 100 is a little more than 99 in floating point; the rank must not be.
        let rank = (percent / 100.0 * self.0.len() as f64 - 1e-9).ceil().max(1.0) as usize;
        self.0.get(rank - 1).or_else(|| self.0.last()).copied()
    }

    /// The mean; `None` without a value.
    pub fn mean(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.iter().sum::<f64>() / self.0.len() as f64)
    }

    /// In a few numbers; `None` without a value.
    pub fn summary(&self) -> Option<Summary> {
        Some(Summary {
            count: self.0.len(),
            mean: self.mean()?,
            p50: self.percentile(50.0)?,
            p95: self.percentile(95.0)?,
            p99: self.percentile(99.0)?,
            max: self.percentile(100.0)?,
        })
    }

    /// As differences in a few numbers; `None` without a value.
    pub fn spread(&self) -> Option<Spread> {
        Some(Spread {
            count: self.0.len(),
            mean: self.mean()?,
            p25: self.percentile(25.0)?,
            median: self.percentile(50.0)?,
            p75: self.percentile(75.0)?,
            p95: self.percentile(95.0)?,
        })
    }

    /// The empirical distribution: at most `points` pairs of a value and the share that does not exceed it. The first
    /// and the last value are always among them.
    pub fn ecdf(&self, points: usize) -> Vec<(f64, f64)> {
        let count = self.0.len();
        let points = points.clamp(2, count.max(2)).min(count);
        let rank = |point: usize| if points < 2 { 0 } else { point * (count - 1) / (points - 1) };
        (0..points).map(rank).map(|rank| (self.0[rank], (rank + 1) as f64 / count as f64)).collect()
    }
}

// === consts ===

/// The standard normal distribution holds 95 % between minus this and this.
const Z95: f64 = 1.959_963_984_540_054;

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;

    #[test]
    fn shares_have_known_intervals() {
        // Per cent, to two places.
        let known = [
            (744, 750, 98.27, 99.63),
            (0, 750, 0.0, 0.51),
            (750, 750, 99.49, 100.0),
            (15, 20, 53.13, 88.81),
            (1, 1, 20.65, 100.0),
        ];
        for (hits, of, low, high) in known {
            let share = Share::new(hits, of).unwrap();
            let round = |x: f64| (x * 10_000.0).round() / 100.0;
            assert_eq!((round(share.low), round(share.high)), (low, high), "{hits} of {of}");
            assert!(share.low <= share.share && share.share <= share.high);
        }
        assert_eq!(Share::new(0, 0), None);
        assert_eq!(Share::count([true, false, true]), Share::new(2, 3));
        let (all, few) = (Share::new(750, 750).unwrap(), Share::new(730, 750).unwrap());
        assert!(!all.overlaps(&few) && all.overlaps(&Share::new(748, 750).unwrap()));
    }

    #[test]
    fn pairs_are_compared_one_by_one() {
        let sample = Sample::paired([(100.0, 130.0), (200.0, 190.0), (50.0, 50.0), (10.0, 110.0), (0.0, f64::NAN)]);
        assert_eq!(sample.values(), [-10.0, 0.0, 30.0, 100.0]);
        let want = Spread { count: 4, mean: 30.0, p25: -10.0, median: 0.0, p75: 30.0, p95: 100.0 };
        assert_eq!(sample.spread(), Some(want));
        assert_eq!(Sample::default().spread(), None);
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        let sample = Sample::new((1..=100).rev().map(f64::from));
        for (percent, value) in [(0.0, 1.0), (1.0, 1.0), (50.0, 50.0), (95.0, 95.0), (99.0, 99.0), (100.0, 100.0)] {
            assert_eq!(sample.percentile(percent), Some(value), "p{percent}");
        }
        assert_eq!(Sample::new([7.0]).percentile(99.0), Some(7.0));
        assert_eq!(Sample::new([]).percentile(50.0), None);
    }

    #[test]
    fn what_is_no_number_is_left_out() {
        let sample = Sample::new([3.0, f64::NAN, 1.0, f64::INFINITY]);
        assert_eq!(sample.values(), [1.0, 3.0]);
        assert_eq!(sample.mean(), Some(2.0));
    }

    #[test]
    fn the_distribution_goes_from_the_first_to_the_last() {
        let sample = Sample::new((0..1000).map(f64::from));
        let ecdf = sample.ecdf(50);
        assert_eq!(ecdf.len(), 50);
        assert_eq!((ecdf[0], ecdf[49]), ((0.0, 0.001), (999.0, 1.0)));
        assert!(ecdf.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 < w[1].1));
        assert_eq!(Sample::new([5.0]).ecdf(10), [(5.0, 1.0)]);
        assert!(Sample::default().ecdf(10).is_empty());
    }
}
