//! What is wrong with a configuration, where, and what to do about it.

use std::fmt;

/// Where in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file, as it was named to [`super::load`].
    pub path: String,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

/// One mistake, or one thing worth a warning. It never holds the value of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// The key from the top of the file, such as `levels.voice.timeouts.stall`; empty for what concerns no one key.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What to do; empty if the message says it all.
    pub remedy: String,
}

// === impl Place ===

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.path, self.line, self.column)
    }
}

// === impl Problem ===

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)?;
        if !self.remedy.is_empty() {
            write!(f, "\n  help: {}", self.remedy)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problem {}

// === helpers ===

/// The name nearest to `given`, if one is so near that a slip of the hand explains it.
pub(super) fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = fold(given);
    let limit = (folded.len() / 3).clamp(1, MAX_SLIPS);
    known
        .into_iter()
        .map(|name| (distance(&folded, &fold(name)), name))
        .filter(|(d, _)| *d <= limit)
        .min_by_key(|(d, _)| *d)
        .map(|(_, name)| name)
}

/// "did you mean …?" if a name is near, else `otherwise`.
pub(super) fn did_you_mean<'a>(given: &str, known: impl IntoIterator<Item = &'a str>, otherwise: &str) -> String {
    nearest(given, known).map_or_else(|| otherwise.to_owned(), |name| format!("did you mean `{name}`?"))
}

/// `a`, `b` or `c`.
pub(super) fn one_of<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.into_iter().map(|n| format!("`{n}`")).collect();
    match names.split_last() {
        None => "nothing".to_owned(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

fn fold(name: &str) -> Vec<char> {
    name.chars().take(MAX_COMPARED).map(|c| if c == '-' { '_' } else { c.to_ascii_lowercase() }).collect()
}

/// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let swap = i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y;
            let mut best = (last[j] + usize::from(x != y)).min(last[j + 1] + 1).min(row[j] + 1);
            if swap {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// More edits than this are no slip.
const MAX_SLIPS: usize = 3;

/// Of longer names only so many characters are compared.
const MAX_COMPARED: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_the_one_that_a_slip_explains() {
        let known = ["first_token", "stall", "suspect", "turn", "idle"];
        for (given, expected) in [
            ("frist_token", Some("first_token")),
            ("first-token", Some("first_token")),
            ("FirstToken", Some("first_token")),
            ("stal", Some("stall")),
            ("tunr", Some("turn")),
            ("id", None),
            ("x", None),
            ("deadline", None),
            ("", None),
        ] {
            assert_eq!(nearest(given, known), expected, "{given}");
        }
    }

    #[test]
    fn a_problem_reads_like_a_compilers_error() {
        let problem = Problem {
            place: Place { path: "segue.toml".into(), line: 12, column: 3 },
            key: "timeouts.frist_token".into(),
            message: "unknown key".into(),
            remedy: "did you mean `first_token`?".into(),
        };
        assert_eq!(
            problem.to_string(),
            "segue.toml:12:3: timeouts.frist_token: unknown key\n  help: did you mean `first_token`?"
        );
    }

    #[test]
    fn names_are_listed_as_one_would_say_them() {
        assert_eq!(one_of(["a"]), "`a`");
        assert_eq!(one_of(["a", "b", "c"]), "`a`, `b` or `c`");
    }
}
