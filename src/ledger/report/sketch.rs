//! Percentiles of any number of values in little memory.

use super::Percentiles;
use std::collections::BTreeMap;

/// Counts by size: each slot is 1 % wider than the one before it.
#[derive(Clone, Debug, Default)]
pub(super) struct Sketch {
    slots: BTreeMap<i32, u64>,
    count: u64,
}

// === impl Sketch ===

impl Sketch {
    pub(super) fn add(&mut self, value: f64) {
        // What is less than a microsecond is none.
        let slot = (value.max(LEAST) / LEAST).ln() / WIDTH.ln();
        *self.slots.entry(slot.round() as i32).or_default() += 1;
        self.count += 1;
    }

    /// The value that `percent` (0 to 100) of all do not exceed, within 1 %.
    pub(super) fn percentile(&self, percent: f64) -> Option<f64> {
        let rank = ((percent / 100.0 * self.count as f64).ceil() as u64).max(1);
        let mut so_far = 0;
        let slot = self.slots.iter().find(|(_, count)| {
            so_far += **count;
            rank <= so_far
        });
        slot.map(|(slot, _)| LEAST * WIDTH.powi(*slot))
    }

    pub(super) fn percentiles(&self) -> Percentiles {
        Percentiles {
            count: self.count,
            p50: self.percentile(50.0),
            p95: self.percentile(95.0),
            p99: self.percentile(99.0),
        }
    }
}

const WIDTH: f64 = 1.01;
/// A microsecond, in milliseconds.
const LEAST: f64 = 0.001;

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn percentiles_are_within_a_hundredth(values in proptest::collection::vec(0.01_f64..1e7, 1..300), percent in 1.0..100.0_f64) {
            let mut sketch = Sketch::default();
            values.iter().for_each(|value| sketch.add(*value));
            let mut sorted = values;
            sorted.sort_by(f64::total_cmp);
            let rank = ((percent / 100.0 * sorted.len() as f64).ceil() as usize).max(1);
            let (exact, told) = (sorted[rank - 1], sketch.percentile(percent).unwrap());
            prop_assert!((told / exact - 1.0).abs() < 0.01, "{told} is not {exact}");
        }
    }

    #[test]
    fn nothing_has_no_percentiles() {
        assert_eq!(Sketch::default().percentiles(), Percentiles::default());
    }
}
