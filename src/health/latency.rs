//! How long a target takes: percentiles of the recent past in bounded memory.
//!
//! An attempt that was cancelled while it was silent took *at least* so long. To drop such samples would make a target
//! look the faster the more often it was given up; to take them for answers would make it look exactly as slow as our
//! patience. They are counted as what they are, censored, and weighed as in the product-limit estimate (Kaplan and
//! Meier, 1958): a censored sample leaves the population at its time without having answered.

use std::time::{Duration, Instant};

/// Counts of times in bins of 1.6 % width, from 0.1 ms to 14 minutes; longer ones count as the longest.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// Answers and censored samples by bin; empty until the first sample.
    bins: Vec<Bin>,
    /// How many answered.
    answered: u64,
}

/// The samples of the present period and of the one before it.
#[derive(Clone, Debug)]
pub struct Digest {
    /// How long a period lasts.
    period: Duration,
    /// Fewer answers than this give no percentile.
    min_samples: u64,
    /// When the present period began; `None` before the first sample.
    began: Option<Instant>,
    current: Histogram,
    previous: Histogram,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    answered: u32,
    censored: u32,
}

// === impl Histogram ===

impl Histogram {
    /// An answer after `time`.
    pub fn record(&mut self, time: Duration) {
        let bin = self.bin(time);
        bin.answered = bin.answered.saturating_add(1);
        self.answered += 1;
    }

    /// Given up after `time`, without an answer.
    pub fn censor(&mut self, time: Duration) {
        let bin = self.bin(time);
        bin.censored = bin.censored.saturating_add(1);
    }

    /// How many answered.
    pub fn answered(&self) -> u64 {
        self.answered
    }

    /// Forgets everything, but keeps the memory.
    pub fn clear(&mut self) {
        self.bins.fill(Bin::default());
        self.answered = 0;
    }

    /// The time within which `percent` (0 to 100) of attempts answer: the upper edge of its bin. Where so many
    /// were given up that the percentile lies beyond the longest sample, the longest, as the least that it can be.
    /// `None` without an answer.
    pub fn percentile(&self, percent: f64) -> Option<Duration> {
        percentile(&[self], percent)
    }

    fn bin(&mut self, time: Duration) -> &mut Bin {
        if self.bins.is_empty() {
            self.bins = vec![Bin::default(); BINS];
        }
        &mut self.bins[index(time)]
    }

    fn at(&self, index: usize) -> Bin {
        self.bins.get(index).copied().unwrap_or_default()
    }
}

// === impl Digest ===

impl Digest {
    /// An empty digest over one to two `period`s, that answers from `min_samples` answers on.
    pub fn new(period: Duration, min_samples: u64) -> Self {
        Self { period, min_samples, began: None, current: Histogram::default(), previous: Histogram::default() }
    }

    /// An answer after `time`.
    pub fn record(&mut self, time: Duration, now: Instant) {
        self.turn_over(now);
        self.current.record(time);
    }

    /// Given up after `time`, without an answer.
    pub fn censor(&mut self, time: Duration, now: Instant) {
        self.turn_over(now);
        self.current.censor(time);
    }

    /// As [`Histogram::percentile`], over this period and the one before it; `None` under `min_samples` answers.
    pub fn percentile(&self, percent: f64, now: Instant) -> Option<Duration> {
        let both = [&self.current, &self.previous];
        let kept = match self.age(now) {
            0 => &both[..],
            1 => &both[..1],
            _ => &both[..0],
        };
        let answered: u64 = kept.iter().map(|h| h.answered).sum();
        if answered < self.min_samples { None } else { percentile(kept, percent) }
    }

    /// Whole periods since the present one began.
    fn age(&self, now: Instant) -> u128 {
        let age = self.began.map_or(Duration::ZERO, |began| now.saturating_duration_since(began));
        age.as_nanos() / self.period.as_nanos().max(1)
    }

    fn turn_over(&mut self, now: Instant) {
        match self.age(now) {
            0 => {
                self.began.get_or_insert(now);
                return;
            }
            1 => std::mem::swap(&mut self.current, &mut self.previous),
            _ => self.previous.clear(),
        }
        self.current.clear();
        self.began = Some(now);
    }
}

// === helpers ===

/// The product-limit percentile of several histograms taken together.
fn percentile(histograms: &[&Histogram], percent: f64) -> Option<Duration> {
    let total = |bin: usize| {
        histograms.iter().map(|h| h.at(bin)).fold((0, 0), |(answered, censored), bin| {
            (answered + u64::from(bin.answered), censored + u64::from(bin.censored))
        })
    };
    let mut open: u64 = (0..BINS).map(total).map(|(answered, censored)| answered + censored).sum();
    let mut silent = 1.0;
    let mut longest = None;
    for bin in 0..BINS {
        let (answered, censored) = total(bin);
        if answered + censored == 0 {
            continue;
        }
        longest = Some(bin);
        silent *= 1.0 - answered as f64 / open as f64;
        if answered != 0 && silent <= 1.0 - percent / 100.0 + ROUNDING {
            return Some(upper(bin));
        }
        open -= answered + censored;
    }
    if histograms.iter().all(|h| h.answered == 0) { None } else { longest.map(upper) }
}

/// The bin of `time`: exact units up to [`STEPS`], then so many bins to an octave.
fn index(time: Duration) -> usize {
    let units = u64::try_from(time.as_micros() / UNIT_MICROS).unwrap_or(u64::MAX).min(LONGEST);
    let octave = units.checked_ilog2().unwrap_or(0).saturating_sub(STEPS.ilog2());
    octave as usize * STEPS as usize + (units >> octave) as usize
}

/// The end of a bin.
fn upper(bin: usize) -> Duration {
    let octave = (bin / STEPS as usize).saturating_sub(1);
    let step = bin - octave * STEPS as usize + 1;
    Duration::from_micros(((step as u64) << octave) * UNIT_MICROS as u64)
}

/// The smallest difference that is told apart.
const UNIT_MICROS: u128 = 100;
/// Bins to an octave: each is a 64th wide, at most.
const STEPS: u64 = 64;
/// Octaves above the first [`STEPS`] units.
const OCTAVES: u64 = 17;
/// The longest time, in units.
const LONGEST: u64 = (STEPS << OCTAVES) - 1;
/// All bins: 9 KiB a histogram.
const BINS: usize = ((OCTAVES + 1) * STEPS) as usize;
/// What the product of many factors may be off by.
const ROUNDING: f64 = 1e-9;

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;
    use crate::health::jitter::{Seeds, unit};

    const MS: Duration = Duration::from_millis(1);

    fn start() -> Instant {
        tokio::time::Instant::now().into_std()
    }

    #[test]
    fn bins_are_in_order_without_gaps_and_narrow() {
        let mut last = 0;
        for units in 0..1_000_000_u64 {
            let time = Duration::from_micros(units * UNIT_MICROS as u64);
            let bin = index(time);
            assert!(bin == last || bin == last + 1, "{time:?}");
            assert!(time < upper(bin), "{time:?} in a bin up to {:?}", upper(bin));
            assert!(upper(bin) <= time.mul_f64(1.0 + 1.0 / 64.0) + Duration::from_micros(100), "{time:?}");
            last = bin;
        }
        assert_eq!(index(Duration::MAX), BINS - 1);
        assert!(upper(BINS - 1) > Duration::from_secs(800));
    }

    #[test]
    fn percentiles_agree_with_sorting() {
        let mut seeds = Seeds::new(3);
        for _ in 0..500 {
            let mut histogram = Histogram::default();
            let mut times: Vec<_> =
                (0..1 + seeds.draw() % 200).map(|_| MS.mul_f64((unit(seeds.draw()) * 9.0).exp())).collect();
            times.iter().for_each(|time| histogram.record(*time));
            times.sort();
            for percent in [0.0, 1.0, 50.0, 90.0, 95.0, 99.0, 100.0] {
                let rank = (percent / 100.0 * times.len() as f64 - 1e-6).ceil().max(1.0) as usize;
                let exact = times[rank - 1];
                let told = histogram.percentile(percent).unwrap();
                assert!(exact < told && told <= exact.mul_f64(1.016) + MS / 10, "p{percent}: {told:?} for {exact:?}");
            }
        }
    }

    #[test]
    fn giving_up_does_not_make_a_target_fast() {
        // Nine of ten answers take 100 ms, each tenth 2 s; who waits is cut off after 400 ms.
        let (mut patient, mut cut, mut blind) = (Histogram::default(), Histogram::default(), Histogram::default());
        for i in 0..1000 {
            let time = if i % 10 == 0 { 2000 * MS } else { 100 * MS };
            patient.record(time);
            if time <= 400 * MS {
                cut.record(time);
                blind.record(time);
            } else {
                cut.censor(400 * MS);
            }
        }
        assert!(patient.percentile(95.0).unwrap() > 1900 * MS);
        assert!(cut.percentile(95.0).unwrap() >= 400 * MS, "the least that it can be");
        assert!(blind.percentile(95.0).unwrap() < 110 * MS, "what dropping the samples would say");
    }

    #[test]
    fn early_cancellation_leaves_the_percentiles_alone() {
        // Clients hang up at random moments, whatever the target does; its percentiles must not move.
        let mut seeds = Seeds::new(5);
        let (mut whole, mut censored) = (Histogram::default(), Histogram::default());
        for _ in 0..50_000 {
            let time = MS.mul_f64(100.0 + 900.0 * unit(seeds.draw()));
            let hangup = MS.mul_f64(3000.0 * unit(seeds.draw()));
            whole.record(time);
            if time <= hangup { censored.record(time) } else { censored.censor(hangup) }
        }
        for percent in [10.0, 50.0, 90.0, 95.0] {
            let (a, b) = (whole.percentile(percent).unwrap(), censored.percentile(percent).unwrap());
            assert!(a.abs_diff(b) < 25 * MS, "p{percent}: {a:?} and {b:?}");
        }
    }

    #[test]
    fn a_digest_forgets_after_two_periods() {
        let now = start();
        let period = Duration::from_secs(60);
        let mut digest = Digest::new(period, 10);
        for _ in 0..9 {
            digest.record(10 * MS, now);
        }
        assert_eq!(digest.percentile(50.0, now), None, "too few");
        digest.record(10 * MS, now);
        assert!(digest.percentile(50.0, now).is_some());
        assert!(digest.percentile(50.0, now + period).is_some(), "the period before still counts");
        digest.record(10 * MS, now + period);
        assert!(digest.percentile(50.0, now + period).is_some());
        assert_eq!(digest.percentile(50.0, now + 2 * period), None, "one sample is left of eleven");
        for _ in 0..10 {
            digest.record(500 * MS, now + 5 * period);
        }
        assert!(digest.percentile(1.0, now + 5 * period).unwrap() >= 500 * MS, "old samples are gone");
    }

    #[test]
    fn only_silence_is_no_percentile() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(50.0), None);
        histogram.censor(100 * MS);
        assert_eq!(histogram.percentile(50.0), None);
    }
}
