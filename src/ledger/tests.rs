//! Rows come back as they were left; trouble costs rows and is counted.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use super::export::{Format, What};
use super::reader::Reader;
use super::report::Ask;
use super::*;
use crate::config::{self, Nothing};
use crate::failure::Kind;
use crate::health::breaker::{Cause as Why, State};
use crate::record::turn::Fate;
use crate::record::{AttemptRecord, Outcome};
use crate::relay::journal::Cause;
use std::time::SystemTime;

/// A folder that is gone with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("segue-ledger-{:032x}", rand::random::<u128>()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("segue.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn level() -> Arc<Level> {
    let text = "[connections.a]\ndialect = \"chat\"\nbase_url = \"http://127.0.0.1:1\"\n\
                [connections.b]\ndialect = \"chat\"\nbase_url = \"http://127.0.0.1:2\"\n\
                [levels.l]\nchain = [{ connection = \"a\", model = \"m\" }, { connection = \"b\", model = \"m\", quality = 2 }]";
    Arc::clone(&config::load(text, "test.toml", &Nothing).unwrap().config.levels[0])
}

fn attempt(connection: &str, cause: Cause, outcome: Fate, (opened, from, to): (f64, f64, f64)) -> AttemptRecord {
    AttemptRecord {
        connection: connection.into(),
        model: "m".into(),
        cause,
        outcome,
        failure: (outcome == Fate::Failed).then_some(Kind::Reset),
        quality: if connection == "a" { 1 } else { 2 },
        opened_ms: opened,
        sent_ms: Some(opened),
        first_token_ms: Some(from - opened),
        told_from_ms: Some(from),
        told_to_ms: Some(to),
        ended_ms: Some(to),
        prompt_tokens: 100,
        completion_tokens: 50,
        delivered_tokens: 50,
        estimated: false,
        overtaken_ms: None,
        seam: (cause == Cause::Continuation).then_some("anchor"),
        unchecked: None,
    }
}

/// Turn `n` began `n` seconds after the epoch; each third is spliced.
fn turn(n: u32) -> Arc<TurnRecord> {
    let spliced = n.is_multiple_of(3);
    let attempts = if spliced {
        let first = attempt("a", Cause::First, Fate::Failed, (0.0, 300.0, 1000.0));
        vec![first, attempt("b", Cause::Continuation, Fate::Ok, (1010.0, 1500.0, 3000.0))]
    } else {
        vec![attempt("a", Cause::First, Fate::Ok, (0.0, 300.0, 2000.0))]
    };
    Arc::new(TurnRecord {
        turn: format!("turn_{n}"),
        tenant: Some(if n.is_multiple_of(2) { "acme" } else { "other" }.into()),
        key: Some("5e884898".into()),
        level: "l".into(),
        conversation: Some(format!("=call {}", n / 10).into()),
        outcome: Outcome::Complete,
        finish: Some("stop"),
        delivered_chars: 200,
        splices: u32::from(spliced),
        started: f64::from(n),
        first_told_ms: Some(300.0),
        longest_silence_ms: 500.0,
        duration_ms: Some(3000.0),
        attempts,
    })
}

fn change(at: u64, from: State, to: State) -> Entry {
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(at);
    Entry { number: 1, at, connection: "a".into(), model: "m".into(), from, to, cause: Why::Consecutive, until: None }
}

fn prices() -> Prices {
    let price = |connection: &str| config::Price {
        connection: connection.to_owned(),
        model: "m".to_owned(),
        input: 10.0,
        output: 20.0,
    };
    Prices::of(&config::Ledger { prices: vec![price("a"), price("b")], ..config::Ledger::default() })
}

fn settings(path: PathBuf) -> Settings {
    Settings { path, keep: Duration::from_secs(u64::from(u32::MAX)), bodies: false, prices: prices() }
}

fn all(tenant: Option<&str>) -> Ask {
    Ask { from: 0.0, to: 120.0, tenant: tenant.map(str::to_owned), level: None }
}

fn exported(reader: &Reader, what: What, format: Format) -> String {
    let mut out = Vec::new();
    reader.export(what, format, (0.0, 1e9), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn what_is_left_is_written_and_told() {
    let folder = Folder::new();
    let ledger = Ledger::start(settings(folder.file())).unwrap();
    let level = level();
    for n in 0..90 {
        ledger.leave(Row::Turn(Box::new(row::turn(turn(n), &level, &prices()))));
    }
    ledger.circuit(&change(20, State::Closed, State::Open));
    ledger.circuit(&change(50, State::Open, State::HalfOpen));
    ledger.circuit(&change(51, State::HalfOpen, State::Closed));
    ledger.close(Duration::from_secs(60));
    assert_eq!((ledger.written(), ledger.dropped()), (93, 0));

    let reader = Reader::open(&folder.file()).unwrap();
    let report = reader.report(&all(None)).unwrap();
    assert_eq!((report.turns, report.failed, report.spliced, report.splices), (90, 0, 30, 30));
    assert_eq!((report.secondary, report.below_quality), (30, 30));
    assert_eq!((report.conversations, report.conversations_secondary), (18, 18), "nine calls of each tenant");
    let about = |value: Option<f64>, exact: f64| (value.unwrap() / exact - 1.0).abs() < 0.01;
    assert!(about(report.splice_gap.p50, 500.0) && about(report.first_told.p95, 300.0), "{report:?}");
    let circuit = &report.circuits[0];
    assert_eq!((circuit.closed, circuit.open, circuit.half_open, circuit.trips), (89.0, 30.0, 1.0, 1));
    assert_eq!(report.failures[0].what, ["a/m", "Reset"]);
    assert_eq!(report.failures[0].count, 30);
    let extra: Vec<_> = report.spent.iter().filter(|s| s.spent_as == "continuation").collect();
    assert_eq!(extra.iter().map(|s| s.tokens).sum::<u64>(), 30 * 150);
    assert!((extra.iter().map(|s| s.cost).sum::<f64>() - 30.0 * 0.002).abs() < 1e-9);

    let acme = reader.report(&all(Some("acme"))).unwrap();
    assert_eq!((acme.turns, acme.spliced, acme.conversations), (45, 15, 9));
    let text = acme.paragraph();
    let begins = "On 1970-01-01 between 00:00 and 00:02 UTC Segue served 100.0 % of acme's conversations (9 of 9) from a \
                  target that was not the first choice, spliced 15 in mid-turn, and 0 of 45 turns failed (0.0 %).";
    assert!(text.starts_with(begins), "{text}");
    let spent = reader.spent(0.0, 120.0).unwrap();
    assert_eq!(spent.iter().map(|s| s.tokens).sum::<u64>(), 60 * 150 + 30 * 300);
    assert_eq!(reader.span().unwrap(), Some((0.0, 89.0)));
}

#[test]
fn reports_are_written_for_people_and_hold_no_markup_of_strangers() {
    let folder = Folder::new();
    let mut hostile = (*turn(3)).clone();
    hostile.level = "<script>|x".into();
    hostile.tenant = Some("a|b\n<b>".into());
    fill(&folder.file(), &prices(), &level(), [Arc::new(hostile)], []).unwrap();
    let report = Reader::open(&folder.file()).unwrap().report(&all(None)).unwrap();
    let (text, markdown, html) = (report.text(), report.markdown(), report.html());
    assert!(text.contains("Who was served by what\n"), "{text}");
    assert!(markdown.contains("| a\\|b <b> | <script>\\|x | b/m | 1 |\n"), "{markdown}");
    assert!(html.contains("&lt;script&gt;") && !html.contains("<script") && html.contains("<svg"), "{html}");
    assert!(serde_json::to_value(&report).unwrap()["windows"].is_array());
    let none = Ask { from: 1e6, to: 1e6 + 60.0, tenant: None, level: Some("l".to_owned()) };
    let none = Reader::open(&folder.file()).unwrap().report(&none).unwrap();
    assert!(none.paragraph().ends_with("there were no turns of the level l."), "{}", none.paragraph());
}

#[test]
fn rows_are_exported_whole() {
    let folder = Folder::new();
    let changes = [change(5, State::Closed, State::Open)];
    fill(&folder.file(), &prices(), &level(), (0..4).map(turn), changes).unwrap();
    let reader = Reader::open(&folder.file()).unwrap();
    let csv = exported(&reader, What::Turns, Format::Csv);
    assert_eq!(csv.lines().count(), 5);
    assert!(csv.starts_with("id,started,tenant,"));
    assert!(csv.contains("\"'=call 0\""), "a name that a spreadsheet would run: {csv}");
    let lines = exported(&reader, What::Attempts, Format::JsonLines);
    let rows: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 6);
    assert_eq!((&rows[1]["gap_ms"], &rows[1]["seam"]), (&500.0.into(), &"anchor".into()));
    assert_eq!(exported(&reader, What::Circuits, Format::JsonLines).lines().count(), 1);
}

#[test]
fn a_file_that_cannot_be_had_costs_rows_and_nothing_else() {
    let folder = Folder::new();
    let ledger = Ledger::start(settings(folder.0.join("nowhere").join("segue.db"))).unwrap();
    ledger.circuit(&change(1, State::Closed, State::Open));
    ledger.close(Duration::from_secs(60));
    ledger.circuit(&change(2, State::Closed, State::Open));
    assert_eq!((ledger.written(), ledger.dropped()), (0, 2));
}

#[test]
fn a_file_that_somebody_holds_costs_rows_until_it_is_let_go() {
    let folder = Folder::new();
    fill(&folder.file(), &prices(), &level(), [], []).unwrap();
    let holder = rusqlite::Connection::open(folder.file()).unwrap();
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let mut db = writer::open(&folder.file()).unwrap();
    db.busy_timeout(Duration::ZERO).unwrap();
    let rows = [Row::Circuit(Box::new(change(1, State::Closed, State::Open)))];
    assert!(writer::insert(&mut db, &rows).is_err());
    holder.execute_batch("ROLLBACK").unwrap();
    writer::insert(&mut db, &rows).unwrap();
}

#[test]
fn a_full_disk_costs_the_batch_and_leaves_the_file_whole() {
    let folder = Folder::new();
    let mut db = writer::open(&folder.file()).unwrap();
    let pages: u64 = db.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    db.pragma_update(None, "max_page_count", pages + 4).unwrap();
    let level = level();
    let rows: Vec<Row> = (0..2000).map(|n| Row::Turn(Box::new(row::turn(turn(n), &level, &prices())))).collect();
    assert!(writer::insert(&mut db, &rows[..4]).is_ok());
    assert!(writer::insert(&mut db, &rows).is_err());
    assert_eq!(Reader::open(&folder.file()).unwrap().report(&all(None)).unwrap().turns, 4);
}

#[test]
fn old_rows_are_removed_whole() {
    let folder = Folder::new();
    fill(&folder.file(), &prices(), &level(), (0..30).map(turn), [change(3, State::Closed, State::Open)]).unwrap();
    let mut db = writer::open(&folder.file()).unwrap();
    writer::remove(&mut db, 20.0).unwrap();
    let reader = Reader::open(&folder.file()).unwrap();
    assert_eq!(exported(&reader, What::Turns, Format::JsonLines).lines().count(), 10);
    assert_eq!(exported(&reader, What::Attempts, Format::JsonLines).lines().count(), 13);
    assert_eq!(exported(&reader, What::Circuits, Format::JsonLines), "");
    let orphans: u64 = db
        .query_row("SELECT count(*) FROM attempts WHERE turn NOT IN (SELECT id FROM turns)", [], |r| r.get(0))
        .unwrap();
    assert_eq!(orphans, 0);
}

#[test]
fn a_ledger_of_a_newer_segue_is_left_alone() {
    let folder = Folder::new();
    fill(&folder.file(), &prices(), &level(), [turn(1)], []).unwrap();
    let db = rusqlite::Connection::open(folder.file()).unwrap();
    db.pragma_update(None, "user_version", 99).unwrap();
    assert!(writer::open(&folder.file()).unwrap_err().contains("newer Segue"));
    assert!(Reader::open(&folder.file()).unwrap_err().contains("version 99"));
    assert!(Reader::open(&folder.0.join("none.db")).unwrap_err().contains("cannot be read"));
}

#[test]
fn what_a_provider_claims_breaks_no_sum() {
    let folder = Folder::new();
    let mut claims = (*turn(1)).clone();
    (claims.attempts[0].prompt_tokens, claims.attempts[0].completion_tokens) = (u64::MAX / 4, u64::MAX / 4);
    let turns = (0..100).map(|n| Arc::new(TurnRecord { turn: format!("t{n}"), ..claims.clone() }));
    fill(&folder.file(), &prices(), &level(), turns, []).unwrap();
    let reader = Reader::open(&folder.file()).unwrap();
    assert!(reader.spent(0.0, 120.0).unwrap()[0].tokens >= 1 << 40);
    assert_eq!(reader.report(&all(None)).unwrap().turns, 100);
}
