//! What `check` says of scores, and the file of them.

use super::super::check::{Severity, evaluations};
use super::super::scores::{Score, Scores};
use super::config;
use crate::retry_after::rfc3339;

const CHAINS: &str = "
[levels.n]
chain = [{ connection = \"a\", model = \"m\" }, { connection = \"b\", model = \"m\" }, { connection = \"a\", model = \"s\" }]
[levels.alone]
chain = [{ connection = \"a\", model = \"m\" }]
";

fn score(connection: &str, model: &str, at: &str, kept: usize) -> Score {
    let share = kept as f64 / 30.0;
    Score {
        connection: connection.to_owned(),
        model: model.to_owned(),
        said_model: None,
        at: at.to_owned(),
        suite: "suite".to_owned(),
        hash: "h".to_owned(),
        judge: None,
        answers: 30,
        kept,
        score: Some(share),
        interval: Some([(share - 0.1).max(0.0), (share + 0.1).min(1.0)]),
        errors: 0,
        unjudged: 0,
    }
}

fn called(name: &str, score: Score) -> Score {
    Score { said_model: Some(name.to_owned()), ..score }
}

fn scores(all: Vec<Score>) -> Scores {
    let mut scores = Scores::default();
    all.into_iter().for_each(|score| scores.add(score));
    scores
}

/// What is said on the last day of November.
fn told(all: Vec<Score>) -> Vec<String> {
    let now = rfc3339("2026-11-30T12:00:00Z").expect("a time");
    let findings = evaluations(&config(CHAINS), &scores(all), "segue eval", now);
    assert!(findings.iter().all(|f| f.subject == "levels.n"), "{findings:?}");
    findings.iter().map(|f| format!("{:?}: {}", f.severity, f.message)).collect()
}

#[test]
fn fallbacks_that_were_never_evaluated_are_listed_once_a_level() {
    assert_eq!(told(Vec::new()), ["Warning: never evaluated as fallbacks of a/m: b/m and a/s"]);
    let some = vec![score("b", "m", "2026-11-29T00:00:00Z", 30)];
    assert_eq!(told(some), ["Warning: never evaluated as fallbacks of a/m: a/s"]);
}

#[test]
fn who_is_evaluated_in_time_and_well_is_not_mentioned() {
    let on = |at: &str| vec![score("a", "m", at, 30), score("b", "m", at, 29), score("a", "s", at, 30)];
    assert_eq!(told(on("2026-10-31T12:00:00Z")), Vec::<String>::new());
    assert_eq!(told(on("2027-01-01T00:00:00Z")), Vec::<String>::new(), "a clock that went wrong is no reason");
    let old = "Warning: last evaluated more than 30 days ago: b/m (2026-10-31) and a/s (2026-10-31)";
    assert_eq!(told(on("2026-10-31T11:59:59Z")), [old]);
}

#[test]
fn a_model_that_changed_is_named() {
    let at = "2026-11-20T00:00:00Z";
    let replaced = vec![score("b", "old", at, 30), score("a", "s", at, 30)];
    assert_eq!(
        told(replaced),
        ["Warning: b/m was never evaluated: on 2026-11-20 the model of this connection was `old`"]
    );
    // The other model of its connection is in use: nothing was replaced.
    let other = vec![score("a", "m", at, 30), score("b", "m", at, 30)];
    assert_eq!(told(other), ["Warning: never evaluated as fallbacks of a/m: a/s"]);

    let renamed = vec![
        score("a", "s", at, 30),
        called("m-1", score("b", "m", "2026-11-01T00:00:00Z", 30)),
        score("b", "m", "2026-11-02T00:00:00Z", 30),
        called("m-2", score("b", "m", at, 30)),
    ];
    let changed =
        "Warning: the model behind b/m changed: it called itself `m-1` on 2026-11-01, and `m-2` on 2026-11-20";
    assert_eq!(told(renamed.clone()), [changed]);
    let settled = [renamed, vec![called("m-2", score("b", "m", "2026-11-21T00:00:00Z", 30))]].concat();
    assert_eq!(told(settled), Vec::<String>::new());
}

#[test]
fn who_gave_no_answer_is_as_good_as_unknown_and_who_is_worse_is_noted() {
    let at = "2026-11-20T00:00:00Z";
    let mute = Score { answers: 0, kept: 0, score: None, interval: None, errors: 3, ..score("b", "m", at, 0) };
    let first = vec![score("a", "m", at, 29), score("a", "s", at, 20)];
    let noted = "Note: a/s kept 67 % in the suite suite, a/m 97 %: answers get worse when it stands in";
    let silent = "Warning: no answer came when last evaluated: b/m (2026-11-20)";
    assert_eq!(told([first, vec![mute]].concat()), [noted, silent]);
    // Of another suite nothing follows, nor from a difference that may be chance.
    let other = Score { hash: "x".to_owned(), ..score("a", "s", at, 20) };
    assert_eq!(told(vec![score("a", "m", at, 29), score("b", "m", at, 25), other]), Vec::<String>::new());
}

#[test]
fn findings_have_a_remedy() {
    let now = rfc3339("2026-11-30T12:00:00Z").expect("a time");
    let all = evaluations(&config(CHAINS), &Scores::default(), "segue eval --config x.toml", now);
    assert!(all.iter().all(|f| f.severity == Severity::Warning && f.remedy.contains("segue eval --config x.toml")));
}

#[test]
fn scores_are_read_as_they_were_written_and_only_the_last_are_kept() {
    let day = |n: usize| format!("2026-10-{n:02}T00:00:00Z");
    let mut all = scores((1..=25).map(|n| score("a", "m", &day(n), n)).collect());
    all.add(Score { suite: "other".to_owned(), ..score("a", "m", &day(1), 1) });
    all.add(score("b", "m", &day(26), 26));
    let text = all.write().expect("JSON");
    let read = Scores::read(&text, "s.json").expect("its own file");
    assert_eq!(read.latest().count(), 22);
    assert_eq!(read.of("a", "m").next().map(|s| s.kept), Some(25), "the latest comes first");
    assert_eq!(read.of("a", "m").filter(|s| s.suite == "suite").last().map(|s| s.kept), Some(6));
    assert_eq!(text.lines().count(), 24, "one a line: {text}");
}

#[test]
fn a_broken_file_is_an_error_with_its_place() {
    let good = scores(vec![score("a", "m", "2026-11-20T00:00:00Z", 3)]).write().expect("JSON");
    for (from, to, line, words) in [
        ("]}", "", 4, "no file of scores: EOF"),
        ("\"kept\":3,", "", 2, "missing field `kept`"),
        ("\"kept\":3,", "\"kept\":3,\"x\":1,", 2, "unknown field `x`"),
        ("\"kept\":3,", "\"kept\":31,", 1, "a/m: 31 of 30 answers are `kept`"),
        ("\"score\":0.1,", "\"score\":1.5,", 1, "lie between 0 and 1"),
        ("2026-11-20T", "yesterday ", 1, "`at` is \"yesterday 00:00:00Z\""),
        ("\"version\": 1", "\"version\": 2", 1, "reads version 1"),
        (good.as_str(), "", 1, "EOF"),
    ] {
        assert!(good.contains(from), "{from} is not in {good}");
        let problem = Scores::read(&good.replace(from, to), "s.json").expect_err("a mistake");
        assert!(problem.message.contains(words), "{problem}");
        assert_eq!((problem.place.line, problem.place.path.as_str()), (line, "s.json"), "{problem}");
        assert!(!problem.remedy.is_empty());
    }
}
