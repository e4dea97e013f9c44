//! What was played, gathered for the report.

use crate::bench::continuity::manifest::Shape;
use crate::bench::continuity::record::{End, Record};
use crate::bench::continuity::report::Report;
use crate::bench::continuity::systems::System;
use std::collections::BTreeMap;

/// One system under one manifest; `shape`: `None` where nothing failed.
pub(super) struct Played {
    pub(super) shape: Option<Shape>,
    pub(super) records: Vec<Record>,
}

/// The records of all systems under one shape.
pub(super) fn of(all: &[Played], shape: Option<Shape>) -> Vec<Record> {
    all.iter().filter(|played| played.shape == shape).flat_map(|played| played.records.iter().cloned()).collect()
}

/// What went wrong with answers, in the systems' own words, most frequent first; and failures that did not strike.
pub(super) fn notes(records: &[Record]) -> Vec<String> {
    let mut errors: BTreeMap<(&str, String), usize> = BTreeMap::new();
    let mut missed: BTreeMap<&str, usize> = BTreeMap::new();
    for record in records {
        for heard in &record.turns {
            let why = match &heard.end {
                End::Finished => None,
                End::Error(why) => Some(why.clone()),
                End::Cut => Some("the stream ended without finish and terminator".to_owned()),
            };
            if let Some(why) = why {
                *errors.entry((&record.system, why)).or_default() += 1;
            }
            *missed.entry(&record.system).or_default() += usize::from(heard.planned.is_some() && !heard.struck);
        }
    }
    let mut errors: Vec<((&str, String), usize)> = errors.into_iter().collect();
    errors.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut notes: Vec<String> = missed
        .into_iter()
        .filter(|(_, count)| 0 < *count)
        .map(|(system, count)| {
            format!("{system}: {count} planned failures did not strike: the provider that was to fail was not asked")
        })
        .collect();
    let more = errors.len().saturating_sub(MOST);
    notes.extend(errors.into_iter().take(MOST).map(|((system, why), count)| format!("{system}: {count} × {why}")));
    if 0 < more {
        notes.push(format!("and {more} other kinds of error"));
    }
    notes
}

/// What splice promises and did not keep.
pub(super) fn broken_promises(report: &Report) -> Vec<String> {
    let name = System::Splice.name();
    let mut broken = Vec::new();
    for trial in &report.trials {
        for system in trial.score.systems.iter().filter(|system| system.name == name) {
            let kept = &system.kept;
            let short = |share: &Option<_>| share.as_ref().is_some_and(|s: &crate::bench::stats::Share| s.hits < s.of);
            if short(&kept.cpr) || short(&kept.sir) || 0 < kept.garbled {
                broken.push(format!("splice was not whole under {} failures", trial.shape.name()));
            }
        }
    }
    broken
}

/// Every record, one a line.
pub(super) fn lines(all: &[Played]) -> String {
    let mut text = String::new();
    for played in all {
        for record in &played.records {
            let shape = played.shape.map_or("none", Shape::name);
            text += &serde_json::json!({"shape": shape, "record": record}).to_string();
            text.push('\n');
        }
    }
    text
}

/// The most kinds of error that are told.
const MOST: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::continuity::manifest::Mode;
    use crate::bench::continuity::record::Heard;

    #[test]
    fn errors_are_told_by_how_often_they_came() {
        let heard = |end: End| Heard { planned: Some(Mode::Reset), struck: end != End::Cut, end, ..Heard::default() };
        let mut record = Record {
            system: "other".to_owned(),
            run: 0,
            conversation: "c".to_owned(),
            length: 7,
            fact_type: "date".to_owned(),
            turns: vec![heard(End::Cut), heard(End::Finished)],
        };
        record.turns.extend((0..3).map(|_| heard(End::Error("busy".to_owned()))));
        assert_eq!(
            notes(&[record]),
            [
                "other: 1 planned failures did not strike: the provider that was to fail was not asked",
                "other: 3 × busy",
                "other: 1 × the stream ended without finish and terminator",
            ]
        );
        assert!(notes(&[]).is_empty());
    }
}
