//! Whether an answer kept the fact.
//!
//! Most answers are settled by looking: an answer that holds the fact kept it, one that is empty or an error did not.
//! What is left can be put to a model, which sees the fact, the probe and the answer and nothing else, and which is
//! believed only after it has judged [`model::EXAMPLES`] as people do.

pub mod model;

use super::record::{End, Heard, Record};
use super::suite::{Conversation, MONTHS};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::rig::seed::Dice;

/// What was found about one record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The fact was kept.
    pub preserved: bool,
    /// Who said so.
    pub by: By,
    /// Why, in the model's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
}

/// Who decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The search for the fact, or an end that is no answer.
    Search,
    /// The model.
    Model,
    /// Nobody: the fact was not found and no model was asked. It counts as not kept.
    Nobody,
}

/// What is settled by looking; `None` where the fact is not found in an answer that is one. An answer that ended in an
/// error, or without a finish, is none, whatever it says.
///
/// The search ignores case and runs of white space. A fact that begins or ends with a digit must not go on with one, so
/// that `42` is not found in `1420`; separators between digits (`4,217`) are ignored. Of a day (`17 October`) the forms
/// `October 17`, `17th of October` and `October 17th` are the same.
pub fn quick(conversation: &Conversation, heard: &Heard) -> Option<bool> {
    settled(&conversation.expected_fact, &heard.text, &heard.end)
}

/// The same of a fact and an answer alone.
pub fn settled(fact: &str, text: &str, end: &End) -> Option<bool> {
    let answer = plain(text);
    if *end != End::Finished || answer.is_empty() || is_error(&answer) {
        return Some(false);
    }
    let fact = plain(fact);
    let found = holds(&answer, &fact) || turned(&fact).is_some_and(|fact| holds(&answer, &fact));
    found.then_some(true)
}

/// What is settled by looking, for each of `records`, in their order; the rest is left to [`model`]. A record without a
/// conversation in `suite`, or without an answer to its probe, kept nothing.
pub fn verdicts(suite: &[Conversation], records: &[Record]) -> Vec<Verdict> {
    let by_name = named(suite);
    let verdict = |record: &Record| {
        let probe = by_name.get(record.conversation.as_str()).zip(record.turns.last());
        let settled = probe.map_or(Some(false), |(conversation, heard)| {
            if heard.turn == conversation.probe_turn_index { quick(conversation, heard) } else { Some(false) }
        });
        let by = if settled.is_some() { By::Search } else { By::Nobody };
        Verdict { preserved: settled == Some(true), by, reasoning: String::new() }
    };
    records.iter().map(verdict).collect()
}

/// `count` records, drawn by `seed`, as JSON lines for people to judge: what was asked and answered, the verdict, and an
/// empty `audit` to fill in.
pub fn audit(suite: &[Conversation], records: &[Record], verdicts: &[Verdict], count: usize, seed: u64) -> String {
    let by_name = named(suite);
    let mut dice = Dice::labelled(seed, LABEL);
    let mut left: Vec<usize> = (0..records.len().min(verdicts.len())).collect();
    let mut drawn = Vec::new();
    while drawn.len() < count && !left.is_empty() {
        drawn.push(left.swap_remove(dice.below(left.len())));
    }
    drawn.sort_unstable();
    let mut lines = String::new();
    for index in drawn {
        let (record, verdict) = (&records[index], &verdicts[index]);
        let Some(conversation) = by_name.get(record.conversation.as_str()) else { continue };
        let line = serde_json::json!({
            "system": record.system,
            "run": record.run,
            "conversation": record.conversation,
            "expected_fact": conversation.expected_fact,
            "probe": conversation.turns.get(conversation.probe_turn_index).map(|turn| &turn.content),
            "answer": record.turns.last().map(|heard| &heard.text),
            "end": record.turns.last().map(|heard| &heard.end),
            "preserved": verdict.preserved,
            "by": verdict.by,
            "reasoning": verdict.reasoning,
            "audit": null,
        });
        let _ = writeln!(lines, "{line}");
    }
    lines
}

// === helpers ===

fn named(suite: &[Conversation]) -> BTreeMap<&str, &Conversation> {
    suite.iter().map(|conversation| (conversation.id.as_str(), conversation)).collect()
}

/// Lower case, single blanks, no separators between digits, no ordinal endings, no "of" after a day.
fn plain(text: &str) -> String {
    let chars: Vec<char> = text.to_lowercase().chars().collect();
    let digit = |at: Option<usize>| at.and_then(|at| chars.get(at)).is_some_and(char::is_ascii_digit);
    let thousands = |at: usize| (1..=3).all(|next| digit(Some(at + next))) && !digit(Some(at + 4));
    let joined = chars.iter().enumerate().filter(|&(at, c)| {
        let separator = matches!(c, ',' | '.' | '\'' | '’' | '\u{a0}' | '\u{202f}');
        !(separator && digit(at.checked_sub(1)) && thousands(at))
    });
    let joined: String = joined.map(|(_, c)| *c).collect();
    let mut words: Vec<&str> = Vec::new();
    for word in joined.split_whitespace() {
        let day = ORDINALS.iter().find_map(|end| strip_ordinal(word, end));
        match day {
            Some(day) => words.push(day),
            None if word == "of" && words.last().is_some_and(|last| is_day(last)) => {}
            None => words.push(word),
        }
    }
    words.join(" ")
}

/// `17th` and `17th,` without what follows the number.
fn strip_ordinal<'a>(word: &'a str, end: &str) -> Option<&'a str> {
    let bare = word.trim_end_matches(|c: char| c.is_ascii_punctuation());
    bare.strip_suffix(end).filter(|day| is_day(day))
}

fn is_day(word: &str) -> bool {
    !word.is_empty() && word.len() <= 2 && word.bytes().all(|b| b.is_ascii_digit())
}

/// A day with its month first; `None` if it is none.
fn turned(fact: &str) -> Option<String> {
    let (first, second) = fact.split_once(' ')?;
    let month = |word: &str| MONTHS.iter().any(|month| month.eq_ignore_ascii_case(word));
    ((is_day(first) && month(second)) || (month(first) && is_day(second))).then(|| format!("{second} {first}"))
}

/// Whether `fact` stands in `answer`, and not in the middle of a number.
fn holds(answer: &str, fact: &str) -> bool {
    let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    !fact.is_empty()
        && answer.match_indices(fact).any(|(at, found)| {
            let before = digit(answer[..at].chars().next_back()) && digit(fact.chars().next());
            let after = digit(answer[at + found.len()..].chars().next()) && digit(fact.chars().next_back());
            !before && !after
        })
}

/// Whether an answer is an error that somebody put into words.
fn is_error(answer: &str) -> bool {
    ERRORS.iter().any(|marker| answer.starts_with(marker))
}

// === consts ===

/// How an answer begins that is none. Already in lower case.
const ERRORS: [&str; 10] = [
    "error:",
    "[error",
    "<error",
    "{\"error\"",
    "{ \"error\"",
    "internal server error",
    "service unavailable",
    "bad gateway",
    "rate limit exceeded",
    "upstream error",
];

const ORDINALS: [&str; 4] = ["st", "nd", "rd", "th"];

/// The stream of random numbers that the audit is drawn from.
const LABEL: u64 = 0xa0d17;

#[cfg(test)]
mod tests;
