//! What is wrong with a configuration, shown as a good compiler shows it: the line, the place in it, and the remedy.
//!
//! A line of a configuration may hold a secret that somebody wrote there by mistake, so strings of lines that could
//! are not shown.

use super::paint::{Ink, Paint};
use crate::config::{Problem, Resolver};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{self, Write};

/// How bad it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Severity {
    word: &'static str,
    ink: Ink,
}

/// It keeps the configuration from being used.
pub(super) const ERROR: Severity = Severity { word: "error", ink: Ink::Bad };

/// It does not.
pub(super) const WARNING: Severity = Severity { word: "warning", ink: Ink::Doubt };

/// Only worth knowing.
pub(super) const NOTE: Severity = Severity { word: "note", ink: Ink::Bold };

/// Writes `problems`, each with its line, if the file can be read again.
pub(super) fn write(
    out: &mut dyn Write,
    paint: Paint,
    severity: Severity,
    problems: &[Problem],
    files: &dyn Resolver,
) -> io::Result<()> {
    let mut texts: HashMap<&str, Option<String>> = HashMap::new();
    for (index, problem) in problems.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        let path = problem.place.path.as_str();
        let text = texts.entry(path).or_insert_with(|| files.file(path).ok());
        one(out, paint, severity, problem, text.as_deref())?;
    }
    Ok(())
}

/// Writes one finding that has no place in a file: what it is about, what it is, and the remedy.
pub(super) fn say(
    out: &mut dyn Write,
    paint: Paint,
    severity: Severity,
    subject: &str,
    message: &str,
    remedy: &str,
) -> io::Result<()> {
    let label = paint.ink(severity.ink, severity.word);
    let subject = if subject.is_empty() { String::new() } else { format!("{subject}: ") };
    let text = paint.wrapped(&format!("{subject}{message}"), severity.word.len() + 2, 2);
    writeln!(out, "{label}: {text}")?;
    help(out, paint, "  ", remedy)
}

/// A problem for machines.
pub(super) fn json(problem: &Problem) -> Value {
    json!({
        "path": problem.place.path,
        "line": problem.place.line,
        "column": problem.place.column,
        "key": problem.key,
        "message": problem.message,
        "remedy": problem.remedy,
    })
}

// === helpers ===

fn one(out: &mut dyn Write, paint: Paint, severity: Severity, problem: &Problem, text: Option<&str>) -> io::Result<()> {
    let Problem { place, key, message, remedy } = problem;
    let Some(text) = text else {
        // There is no such file, or it is not one: the path alone says more than a line in it.
        let known = message.starts_with("cannot be read");
        let subject = if known { place.path.as_str() } else { key };
        return say(out, paint, severity, subject, message, remedy);
    };
    say(out, paint, severity, key, message, "")?;
    let number = place.line.to_string();
    let gutter = " ".repeat(number.len());
    let bar = paint.ink(Ink::Dim, "|");
    writeln!(out, "{gutter} {} {place}", paint.ink(Ink::Dim, "-->"))?;
    if let Some(line) = text.lines().nth(place.line.saturating_sub(1)).and_then(|line| shown(line, key)) {
        let tabs = |c: char| if c == '\t' { ' ' } else { c };
        let line: String = line.trim_start_matches('\u{feff}').chars().map(tabs).collect();
        let from = place.column.saturating_sub(1).min(line.chars().count());
        let length = marked(&line, from, key);
        writeln!(out, "{gutter} {bar}")?;
        writeln!(out, "{} {bar} {line}", paint.ink(Ink::Dim, &number))?;
        writeln!(out, "{gutter} {bar} {}{}", " ".repeat(from), paint.ink(severity.ink, &"^".repeat(length)))?;
    }
    help(out, paint, &format!("{gutter} = "), remedy)
}

fn help(out: &mut dyn Write, paint: Paint, lead: &str, remedy: &str) -> io::Result<()> {
    if remedy.is_empty() {
        return Ok(());
    }
    let label = format!("{lead}help: ");
    writeln!(out, "{label}{}", paint.wrapped(remedy, label.len(), label.len()))
}

/// How many characters the mark under a line covers: the key or the value that begins at `from`.
fn marked(line: &str, from: usize, key: &str) -> usize {
    let rest: Vec<char> = line.chars().skip(from).collect();
    let length = match rest.first() {
        Some(quote @ ('"' | '\'')) => rest.iter().skip(1).position(|c| c == quote).map_or(rest.len(), |end| end + 2),
        Some('{' | '[') if !key.is_empty() => 1,
        _ => rest.iter().position(|c| !(c.is_alphanumeric() || "_-+.:".contains(*c))).unwrap_or(rest.len()),
    };
    length.max(1)
}

/// `line` as it may be shown; `None`: not at all.
fn shown(line: &str, key: &str) -> Option<String> {
    // A line of a text that is no TOML may be the inside of a string.
    let lost = key.is_empty() && !line.trim_start().starts_with('[') && !line.contains('=');
    if lost || line.chars().count() > LONGEST {
        return None;
    }
    let words =
        |text: &str| text.to_ascii_lowercase().split(|c: char| !(c.is_alphanumeric() || c == '_')).any(is_secret);
    Some(veiled(line, key.is_empty() || words(line) || words(key)))
}

/// Whether what stands under this key may be secret.
fn is_secret(word: &str) -> bool {
    word == "token" || SECRETS.iter().any(|secret| word.contains(secret))
}

/// `line` with the inside of its strings hidden, of `all` or of those that are as long as a key, so that every other
/// character keeps its place.
fn veiled(line: &str, all: bool) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest.find(['"', '\'']) {
        let (before, string) = rest.split_at(start + 1);
        out.push_str(before);
        let end = string.find(if before.ends_with('"') { '"' } else { '\'' }).unwrap_or(string.len());
        let (inside, after) = string.split_at(end);
        let length = inside.chars().count();
        if (all || length > SHORT) && !names_a_source(before) {
            out.extend(std::iter::repeat_n('*', length));
        } else {
            out.push_str(inside);
        }
        // The closing quote, if there is one.
        let close = after.chars().next().map_or(0, char::len_utf8);
        out.push_str(&after[..close]);
        rest = &after[close..];
    }
    out.push_str(rest);
    out
}

/// Whether what is before a string says that it is the name of a variable or a file.
fn names_a_source(before: &str) -> bool {
    let key = before.trim_end_matches(['"', '\'']).trim_end().strip_suffix('=').map(str::trim_end).unwrap_or_default();
    let key = key.rsplit([' ', '{', ',']).next().unwrap_or_default();
    key == "env" || key == "file"
}

/// In the names of keys whose values may be secret, or are tables of such.
const SECRETS: [&str; 11] =
    ["key", "auth", "credential", "header", "query", "url", "webhook", "sha256", "secret", "password", "cert"];

/// No string up to this length is taken for a secret for its length alone.
const SHORT: usize = 20;

/// A longer line is not shown.
const LONGEST: usize = 160;

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

    use super::{ERROR, Paint, Problem, Resolver, WARNING, write};
    use crate::config::Place;

    struct File(&'static str);

    impl Resolver for File {
        fn env(&self, _: &str) -> Option<String> {
            None
        }
        fn file(&self, path: &str) -> Result<String, String> {
            if path == "segue.toml" { Ok(self.0.to_owned()) } else { Err("there is no such file".to_owned()) }
        }
    }

    fn problem(line: usize, column: usize, key: &str, message: &str, remedy: &str) -> Problem {
        Problem {
            place: Place { path: "segue.toml".to_owned(), line, column },
            key: key.to_owned(),
            message: message.to_owned(),
            remedy: remedy.to_owned(),
        }
    }

    fn text(problems: &[Problem], file: &'static str) -> String {
        let mut out = Vec::new();
        write(&mut out, Paint::plain(80), ERROR, problems, &File(file)).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_problem_is_shown_with_its_line() {
        let told = text(
            &[problem(2, 1, "timeouts.frist_token", "unknown key", "did you mean `first_token`?")],
            "[timeouts]\nfrist_token = \"8s\"\n",
        );
        assert_eq!(
            told,
            "error: timeouts.frist_token: unknown key\n  \
             --> segue.toml:2:1\n  \
             |\n2 | frist_token = \"8s\"\n  \
             | ^^^^^^^^^^^\n  \
             = help: did you mean `first_token`?\n"
        );
    }

    #[test]
    fn a_value_is_marked_whole() {
        let told = text(&[problem(1, 9, "timeouts.stall", "is empty", "")], "stall = \"\"");
        assert!(told.contains("1 | stall = \"\"\n  |         ^^\n"), "{told}");
    }

    #[test]
    fn secrets_are_not_shown_wherever_they_stand() {
        for (key, line) in [
            ("connections.a.api_key", "api_key = \"sk-hush\""),
            ("connections.a.bse_url", "a = { bse_url = \"x\", api_key = 'sk-hush' }"),
            ("connections.a.headers.x-key", "x-key = \"sk-hush\""),
            ("", "api_key = \"sk-hush"),
            ("", "sk-hush"),
            ("connections.a.apikye", "apikye = \"sk-hush-hush-hush-hush\""),
            ("alerts.webhook", "webhook = \"https://hooks/sk-hush\""),
        ] {
            let told = text(&[problem(1, 1, key, "is wrong", "")], line);
            assert!(!told.contains("hush") && told.contains("segue.toml:1:1"), "{told}");
        }
    }

    #[test]
    fn the_names_of_variables_and_files_are_no_secrets() {
        let line = "api_key = { env = \"OPENAI_API_KEY\" } # or {file=\"/run/a\"}, not \"sk-hush\"";
        let told = text(&[problem(1, 1, "connections.a.api_key", "is not set", "")], line);
        assert!(told.contains("{ env = \"OPENAI_API_KEY\" } # or {file=\"/run/a\"}, not \"*******\""), "{told}");
    }

    #[test]
    fn without_a_file_there_is_no_line() {
        let mut lone = problem(1, 1, "", "there is no configuration", "write one");
        lone.place.path = "nowhere.toml".to_owned();
        assert_eq!(text(&[lone.clone()], ""), "error: there is no configuration\n  help: write one\n");
        lone.message = "cannot be read: there is no such file".to_owned();
        assert!(text(&[lone], "").starts_with("error: nowhere.toml: cannot be read"));
    }

    #[test]
    fn a_place_behind_the_end_does_not_matter() {
        let mut out = Vec::new();
        let beyond = [problem(9, 99, "x", "is missing", ""), problem(1, 99, "x", "is missing", "")];
        write(&mut out, Paint::plain(80), WARNING, &beyond, &File("a = 1")).unwrap();
        assert!(String::from_utf8(out).unwrap().starts_with("warning: x: is missing"));
    }
}
