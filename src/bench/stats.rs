//! Samples, their percentiles, and how sure one may be of a share.

use serde::Serialize;

/// Numbers in ascending order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample(Vec<f64>);

/// A sample in a few numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
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

// === impl Sample ===

impl Sample {
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

    /// The empirical distribution: at most `points` pairs of a value and the share that does not exceed it. The first
    /// and the last value are always among them.
    pub fn ecdf(&self, points: usize) -> Vec<(f64, f64)> {
        let count = self.0.len();
        let points = points.clamp(2, count.max(2)).min(count);
        let rank = |point: usize| if points < 2 { 0 } else { point * (count - 1) / (points - 1) };
        (0..points).map(rank).map(|rank| (self.0[rank], (rank + 1) as f64 / count as f64)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
