//! The numbers behind the metrics, and their text.
//!
//! A registry of our own and not a library's: the ones there are create a series for whatever label they are given, and
//! here labels may come from a request.

use super::catalogue::{ALL, Kind, Metric};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

/// All series of all metrics.
#[derive(Debug, Default)]
pub struct Registry {
    families: HashMap<&'static str, BTreeMap<String, Value>>,
}

#[derive(Debug, Default)]
struct Value {
    /// The number; of a histogram the sum.
    sum: f64,
    /// Of a histogram: how many values there were up to each bound, and above the last.
    counts: Vec<u64>,
}

// === impl Registry ===

impl Registry {
    /// Adds `amount` to a counter.
    pub fn add(&mut self, metric: &'static Metric, labels: &[&str], amount: f64) {
        self.series(metric, labels).sum += amount;
    }

    /// Sets a gauge.
    pub fn set(&mut self, metric: &'static Metric, labels: &[&str], value: f64) {
        self.series(metric, labels).sum = value;
    }

    /// Counts a value of a histogram.
    pub fn observe(&mut self, metric: &'static Metric, labels: &[&str], value: f64) {
        let Kind::Histogram(bounds) = metric.kind else { return };
        let series = self.series(metric, labels);
        series.counts.resize(bounds.len() + 1, 0);
        series.counts[bounds.partition_point(|bound| *bound < value)] += 1;
        series.sum += value;
    }

    /// Forgets all gauges: what they told need not be there any more.
    pub fn clear_gauges(&mut self) {
        for metric in ALL.iter().filter(|metric| metric.kind == Kind::Gauge) {
            self.families.remove(metric.name);
        }
    }

    /// Everything in the text format of Prometheus, version 0.0.4.
    pub fn render(&self) -> String {
        let mut text = String::new();
        for metric in ALL {
            // Writing to a string does not fail.
            let _ = writeln!(text, "# HELP {} {}\n# TYPE {0} {}", metric.name, metric.help, metric.kind.name());
            for (labels, value) in self.families.get(metric.name).into_iter().flatten() {
                line(&mut text, metric, labels, value);
            }
        }
        text
    }

    fn series(&mut self, metric: &'static Metric, labels: &[&str]) -> &mut Value {
        let family = self.families.entry(metric.name).or_default();
        let mut key = key(metric, labels.iter().copied());
        if family.len() >= MOST_SERIES && !family.contains_key(&key) {
            key = self::key(metric, metric.labels.iter().map(|_| "other"));
        }
        family.entry(key).or_default()
    }
}

// === helpers ===

/// `a="x",b="y"`, escaped as the format wants it.
fn key<'a>(metric: &Metric, values: impl Iterator<Item = &'a str>) -> String {
    let mut key = String::new();
    for (name, value) in metric.labels.iter().zip(values) {
        let comma = if key.is_empty() { "" } else { "," };
        let _ = write!(key, "{comma}{name}=\"");
        for c in value.chars().take(LONGEST_VALUE) {
            match c {
                '\\' => key.push_str("\\\\"),
                '"' => key.push_str("\\\""),
                '\n' => key.push_str("\\n"),
                c => key.push(c),
            }
        }
        key.push('"');
    }
    key
}

fn line(text: &mut String, metric: &Metric, labels: &str, value: &Value) {
    let name = metric.name;
    let braces = |labels: &str| if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
    let Kind::Histogram(bounds) = metric.kind else {
        let _ = writeln!(text, "{name}{} {}", braces(labels), value.sum);
        return;
    };
    let comma = if labels.is_empty() { "" } else { "," };
    let mut all = 0;
    for (index, count) in value.counts.iter().enumerate() {
        all += count;
        let bound = bounds.get(index).map_or_else(|| "+Inf".to_owned(), ToString::to_string);
        let _ = writeln!(text, "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {all}");
    }
    let _ = writeln!(text, "{name}_sum{} {}\n{name}_count{0} {all}", braces(labels), value.sum);
}

/// The most series of one metric, the one for all others not counted.
pub const MOST_SERIES: usize = 2000;

/// The most characters of a label's value.
const LONGEST_VALUE: usize = 128;
