//! Two reports side by side.

use super::words::{interval, setup, share, title};
use super::{Data, read};
use crate::bench::continuity::manifest::Shape;
use crate::bench::continuity::score::{Kept, Timed};
use crate::bench::stats::Share;
use crate::bench::table::{NONE, Table, millis, or_none};
use std::fmt::Write as _;

/// What `b` has more or less than `a`; both are JSON reports. A difference counts as one where the intervals do not
/// overlap.
///
/// # Errors
/// Words that say which of the two is no report.
pub fn compare(a: &str, b: &str) -> Result<String, String> {
    let a = read(a).map_err(|why| format!("the first report: {why}"))?;
    let b = read(b).map_err(|why| format!("the second report: {why}"))?;
    let mut text = String::new();
    let (one, other) = (&a.deterministic.setup, &b.deterministic.setup);
    if one != other {
        let _ = writeln!(text, "They are of different setups:\n  A  {}\n  B  {}", setup(one), setup(other));
    }
    let mut shapes: Vec<Shape> = a.deterministic.trials.iter().map(|trial| trial.shape).collect();
    shapes.extend(b.deterministic.trials.iter().map(|trial| trial.shape));
    for shape in Shape::ALL.into_iter().filter(|shape| shapes.contains(shape)) {
        let _ = write!(text, "\n{}\n\n{}", title(shape), table(&a, &b, shape));
    }
    Ok(text)
}

type Rate = fn(&Kept) -> Option<Share>;
type Time = fn(&Timed) -> Option<f64>;

// === helpers ===

fn table(a: &Data, b: &Data, shape: Shape) -> Table {
    let mut table = Table::new(["system", "measure", "A", "A 95 %", "B", "B 95 %", "B − A", "intervals"]);
    let mut names = names(a, shape);
    names.extend(self::names(b, shape));
    let mut seen: Vec<&str> = Vec::new();
    for name in names {
        if seen.contains(&name) {
            continue;
        }
        seen.push(name);
        let (one, other) = (kept(a, shape, name), kept(b, shape, name));
        let rates: [(&str, Rate); 2] = [("CPR", |kept| kept.cpr), ("SIR", |kept| kept.sir)];
        for (measure, pick) in rates {
            let (a, b) = (one.and_then(pick), other.and_then(pick));
            if a.or(b).is_some() {
                table.row(rate(name, measure, a, b));
            }
        }
        let times: [(&str, Time); 3] = [
            ("CLO mean, ms", |timed| timed.clo.map(|clo| clo.mean)),
            ("gap p95, ms", |timed| timed.gap.map(|gap| gap.p95)),
            ("requests/answer", |timed| Some(timed.requests_per_answer)),
        ];
        let (one, other) = (timed(a, shape, name), timed(b, shape, name));
        for (measure, pick) in times {
            let (a, b) = (one.and_then(pick), other.and_then(pick));
            if a.or(b).is_some() {
                table.row(time(name, measure, a, b));
            }
        }
    }
    table
}

fn rate(name: &str, measure: &str, a: Option<Share>, b: Option<Share>) -> [String; 8] {
    let pair = a.zip(b);
    [
        name.to_owned(),
        measure.to_owned(),
        share(a),
        interval(a),
        share(b),
        interval(b),
        or_none(pair.map(|(a, b)| b.share - a.share), |points| format!("{:+.2} points", points * 100.0)),
        match pair.map(|(a, b)| a.overlaps(&b)) {
            Some(true) => "overlap".to_owned(),
            Some(false) => "apart".to_owned(),
            None => NONE.to_owned(),
        },
    ]
}

fn time(name: &str, measure: &str, a: Option<f64>, b: Option<f64>) -> [String; 8] {
    let words = |number: f64| if measure.ends_with("ms") { millis(number) } else { format!("{number:.2}") };
    let more = a.zip(b).map(|(a, b)| b - a);
    let more = or_none(more, |more| format!("{}{}", if more < 0.0 { "" } else { "+" }, words(more)));
    let blank = || NONE.to_owned();
    [name.to_owned(), measure.to_owned(), or_none(a, words), blank(), or_none(b, words), blank(), more, blank()]
}

fn names(data: &Data, shape: Shape) -> Vec<&str> {
    let trials = data.deterministic.trials.iter().filter(|trial| trial.shape == shape);
    trials.flat_map(|trial| trial.systems.iter().map(|system| system.name.as_str())).collect()
}

fn kept<'a>(data: &'a Data, shape: Shape, name: &str) -> Option<&'a Kept> {
    let trial = data.deterministic.trials.iter().find(|trial| trial.shape == shape)?;
    trial.systems.iter().find(|system| system.name == name).map(|system| &system.of)
}

fn timed<'a>(data: &'a Data, shape: Shape, name: &str) -> Option<&'a Timed> {
    let trial = data.measured.trials.iter().find(|trial| trial.shape == shape)?;
    trial.systems.iter().find(|system| system.name == name).map(|system| &system.of)
}
