//! What is known of how well fallbacks stand in for what they replace.

use super::super::Config;
use super::super::scores::{Score, Scores};
use super::{About, Finding, Findings, list, name};
use crate::routing::{Entry, Level};
use std::time::{Duration, SystemTime};

/// What there is to say about the evaluation of every fallback; `command` is what evaluates them.
pub fn evaluations(config: &Config, scores: &Scores, command: &str, now: SystemTime) -> Vec<Finding> {
    let mut out = Findings(Vec::new());
    for level in &config.levels {
        let mut of = out.about(format!("levels.{}", level.name));
        judge(config, level, scores, command, now, &mut of);
    }
    out.0
}

fn judge(config: &Config, level: &Level, scores: &Scores, command: &str, now: SystemTime, out: &mut About<'_>) {
    let Some((primary, fallbacks)) = level.chain.split_first() else { return };
    let (mut never, mut mute, mut old) = (Vec::new(), Vec::new(), Vec::new());
    for row in fallbacks {
        let mut own = of(scores, row);
        let Some(last) = own.next() else {
            match replaced(config, scores, row) {
                Some(before) => out.warn(
                    format!(
                        "{} was never evaluated: on {} the model of this connection was `{}`",
                        name(row),
                        before.day(),
                        before.model
                    ),
                    &format!("evaluate the new one: {command}"),
                ),
                None => never.push(name(row)),
            }
            continue;
        };
        if last.answers == 0 {
            mute.push(format!("{} ({})", name(row), last.day()));
            continue;
        }
        if now.duration_since(last.time()).is_ok_and(|age| age > LONGEST) {
            old.push(format!("{} ({})", name(row), last.day()));
        }
        let before = own.find_map(|score| Some((score.day(), score.said_model.as_deref()?)));
        if let Some((said, (day, former))) = last.said_model.as_deref().zip(before)
            && said != former
        {
            out.warn(
                format!(
                    "the model behind {} changed: it called itself `{former}` on {day}, and `{said}` on {}",
                    name(row),
                    last.day()
                ),
                &format!("compare its scores; the next evaluation settles it: {command}"),
            );
        }
        worse(scores, primary, row, last, out);
    }
    let days = LONGEST.as_secs() / 86_400;
    for (rows, what, remedy) in [
        (never, format!("never evaluated as fallbacks of {}", name(primary)), "find out how well they do"),
        (mute, "no answer came when last evaluated".to_owned(), "see that they answer, then"),
        (old, format!("last evaluated more than {days} days ago"), "find out how well they do now"),
    ] {
        if !rows.is_empty() {
            out.warn(format!("{what}: {}", list(&rows)), &format!("{remedy}: {command}"));
        }
    }
}

/// Notes a fallback that does worse than what it stands in for, and not by accident.
fn worse(scores: &Scores, primary: &Entry, row: &Entry, last: &Score, out: &mut About<'_>) {
    let Some(first) = of(scores, primary).find(|score| score.hash == last.hash && score.answers > 0) else { return };
    if let (Some([low, _]), Some([_, high]), Some(better), Some(worse)) =
        (first.interval, last.interval, first.score, last.score)
        && high < low
    {
        out.note(
            format!(
                "{} kept {:.0} % in the suite {}, {} {:.0} %: answers get worse when it stands in",
                name(row),
                100.0 * worse,
                last.suite,
                name(primary),
                100.0 * better
            ),
            "give the worse one a larger `quality`, or take another model",
        );
    }
}

fn of<'a>(scores: &'a Scores, row: &'a Entry) -> impl Iterator<Item = &'a Score> {
    scores.of(&row.target.connection, &row.target.model)
}

/// The last score of this row's connection with a model that no chain has any more.
fn replaced<'a>(config: &Config, scores: &'a Scores, row: &Entry) -> Option<&'a Score> {
    let is_used = |score: &Score| {
        let same = |entry: &Entry| *entry.target.connection == *score.connection && *entry.target.model == *score.model;
        config.levels.iter().flat_map(|level| &level.chain).any(same)
    };
    scores.latest().find(|score| *score.connection == *row.target.connection && !is_used(score))
}

/// A score that is older says little: vendors change what is behind a name.
const LONGEST: Duration = Duration::from_secs(30 * 86_400);
