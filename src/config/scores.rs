//! How well targets did in a suite of conversations, with the day: what `segue eval` writes and [`super::check`] judges.
//!
//! It stands in a file of its own, beside the configuration, for a program writes it.

use super::{Place, Problem};
use crate::retry_after;
use serde::{Deserialize, Serialize};
use std::time::SystemTime;

/// Every score that is kept, the earliest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scores(Vec<Score>);

/// One target, once asked a suite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Score {
    /// The connection.
    pub connection: String,
    /// The model that was asked for.
    pub model: String,
    /// The name that the model gave itself; `None` where it gave none.
    pub said_model: Option<String>,
    /// When it was done, as RFC 3339 writes it.
    pub at: String,
    /// The suite.
    pub suite: String,
    /// A digest of what was asked, all of it: scores with the same one can be compared.
    pub hash: String,
    /// The model that judged what a search for the fact left open.
    pub judge: Option<String>,
    /// Answers that were judged.
    pub answers: usize,
    /// Of these, how many were right.
    pub kept: usize,
    /// `kept` of `answers`; `None` of none.
    pub score: Option<f64>,
    /// Between what the true share lies with 95 % confidence.
    pub interval: Option<[f64; 2]>,
    /// Requests that failed. They are not among the answers.
    pub errors: usize,
    /// Answers on which the judge did not rule. They are not among the answers.
    pub unjudged: usize,
}

/// A file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    scores: Vec<Score>,
}

// === impl Scores ===

impl Scores {
    /// Reads a file; `path` is its name in messages.
    ///
    /// # Errors
    /// The first thing that is wrong with it, and where.
    pub fn read(text: &str, path: &str) -> Result<Self, Problem> {
        let problem = |place: (usize, usize), key: String, message: String, remedy: &str| Problem {
            place: Place { path: path.to_owned(), line: place.0.max(1), column: place.1.max(1) },
            key,
            message,
            remedy: remedy.to_owned(),
        };
        let file: File = serde_json::from_str(text).map_err(|error| {
            let words = error.to_string();
            let words = words.rsplit_once(" at line ").map_or(words.as_str(), |(words, _)| words);
            let message = format!("this is no file of scores: {words}");
            problem((error.line(), error.column()), String::new(), message, MEND)
        })?;
        if file.version != VERSION {
            let message = format!("the file has version {}; this program reads version {VERSION}", file.version);
            let remedy = "use the program that wrote it, or another file with --scores";
            return Err(problem((1, 1), "version".to_owned(), message, remedy));
        }
        for (index, score) in file.scores.iter().enumerate() {
            if let Some(wrong) = score.wrong() {
                let message = format!("{}/{}: {wrong}", score.connection, score.model);
                return Err(problem((1, 1), format!("scores[{index}]"), message, MEND));
            }
        }
        let mut scores = file.scores;
        scores.sort_by_key(Score::time);
        Ok(Self(scores))
    }

    /// As a file: one score a line.
    ///
    /// # Errors
    /// Only where a number cannot be written.
    pub fn write(&self) -> Result<String, serde_json::Error> {
        let lines: Result<Vec<String>, _> = self.0.iter().map(serde_json::to_string).collect();
        Ok(format!("{{\"version\": {VERSION}, \"scores\": [\n{}\n]}}\n", lines?.join(",\n")))
    }

    /// Adds one. Of a target and suite only the last twenty are kept, of all the last five thousand.
    pub fn add(&mut self, score: Score) {
        let same = |old: &Score| old.is_of(&score.connection, &score.model) && old.suite == score.suite;
        let mut over = (self.0.iter().filter(|old| same(old)).count() + 1).saturating_sub(MOST_OF_ONE);
        self.0.retain(|old| {
            let goes = over > 0 && same(old);
            over -= usize::from(goes);
            !goes
        });
        let over = (self.0.len() + 1).saturating_sub(MOST);
        self.0.drain(..over);
        self.0.push(score);
    }

    /// Those of a target, the latest first.
    pub fn of<'a>(&'a self, connection: &'a str, model: &'a str) -> impl Iterator<Item = &'a Score> {
        self.0.iter().rev().filter(move |score| score.is_of(connection, model))
    }

    /// All, the latest first.
    pub fn latest(&self) -> impl Iterator<Item = &Score> {
        self.0.iter().rev()
    }
}

// === impl Score ===

impl Score {
    /// When it was done.
    pub fn time(&self) -> SystemTime {
        retry_after::rfc3339(&self.at).unwrap_or(SystemTime::UNIX_EPOCH)
    }

    /// The day on which it was done.
    pub fn day(&self) -> &str {
        self.at.get(..10).unwrap_or(&self.at)
    }

    fn wrong(&self) -> Option<String> {
        let shares = self.score.iter().chain(self.interval.iter().flatten());
        if retry_after::rfc3339(&self.at).is_none() {
            Some(format!("`at` is {:?}, and should be a time such as 2026-11-30T12:00:00Z", self.at))
        } else if self.kept > self.answers {
            Some(format!("{} of {} answers are `kept`", self.kept, self.answers))
        } else if !shares.into_iter().all(|share| (0.0..=1.0).contains(share)) {
            Some("`score` and `interval` lie between 0 and 1".to_owned())
        } else {
            None
        }
    }

    fn is_of(&self, connection: &str, model: &str) -> bool {
        self.connection == connection && self.model == model
    }
}

// === consts ===

/// The name of the file beside a configuration.
pub const FILE: &str = "segue-scores.json";

/// The version of the file's form.
const VERSION: u32 = 1;

const MEND: &str = "mend it, or move it away and evaluate anew";

/// Scores of a target and suite that are kept.
const MOST_OF_ONE: usize = 20;

/// Scores that are kept.
const MOST: usize = 5000;
