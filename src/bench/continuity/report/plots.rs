//! Plots of a report.

use super::words::title;
use super::{Report, Trial};
use crate::bench::continuity::score::System;
use crate::bench::plot::{self, Bars, NoPlot};
use crate::bench::stats::{Sample, Share};

/// SVG documents, each with the name of its file: the rate of kept facts by system, the same by the length of the
/// conversation, and distributions of times and of the gap at the seam.
///
/// # Errors
/// Where the drawing library fails.
pub fn plots(report: &Report) -> Result<Vec<(String, String)>, NoPlot> {
    let mut names: Vec<&str> = Vec::new();
    for system in report.trials.iter().flat_map(|trial| &trial.score.systems) {
        if !names.contains(&system.name.as_str()) {
            names.push(&system.name);
        }
    }
    let find = |trial: &Trial, name: &str| trial.score.systems.iter().find(|s| s.name == name).and_then(|s| s.kept.cpr);
    let groups: Vec<&str> = report.trials.iter().map(|trial| trial.shape.name()).collect();
    let bars: Vec<Bars<'_>> = names
        .iter()
        .map(|name| Bars { name, shares: report.trials.iter().map(|trial| find(trial, name)).collect() })
        .collect();
    let mut plots = vec![("cpr.svg".to_owned(), plot::bars("Facts kept, by kind of failure", &groups, &bars)?)];
    for trial in &report.trials {
        let (title, shape) = (title(trial.shape), trial.shape.name());
        plots.push((format!("cpr-by-length-{shape}.svg"), by_length(title, &trial.score.systems)?));
        for (file, axis, pick) in SAMPLES {
            let samples = trial.score.systems.iter().map(|system| (system.name.as_str(), pick(system)));
            let samples: Vec<plot::Line<'_>> = samples.filter(|(_, sample)| !sample.is_empty()).collect();
            if !samples.is_empty() {
                plots.push((format!("{file}-{shape}.svg"), plot::tails(title, axis, &samples)?));
            }
        }
    }
    Ok(plots)
}

// === helpers ===

fn by_length(title: &str, systems: &[System]) -> Result<String, NoPlot> {
    let mut lengths: Vec<&str> = Vec::new();
    for slice in systems.iter().flat_map(|system| &system.kept.by_length) {
        if !lengths.contains(&slice.of.as_str()) {
            lengths.push(&slice.of);
        }
    }
    let find = |system: &System, length: &str| -> Option<Share> {
        system.kept.by_length.iter().find(|slice| slice.of == length).map(|slice| slice.rate)
    };
    let bars: Vec<Bars<'_>> = systems
        .iter()
        .map(|system| Bars { name: &system.name, shares: lengths.iter().map(|length| find(system, length)).collect() })
        .collect();
    let groups: Vec<String> = lengths.iter().map(|length| format!("{length} messages")).collect();
    let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    plot::bars(&format!("{title}: facts kept, by length"), &groups, &bars)
}

type Pick = fn(&System) -> &Sample;

/// The beginning of a file's name, what is measured, and where it is.
const SAMPLES: [(&str, &str, Pick); 3] = [
    ("latency", "time of an answer", |system| &system.timed.totals),
    ("overhead", "continuity latency overhead", |system| &system.timed.overheads),
    ("gap", "silence at the seam", |system| &system.timed.gaps),
];
