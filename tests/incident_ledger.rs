//! A bad day of fifteen and a half hours, played in virtual time into a ledger: the report tells the same figures.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use segue::bench::failover::{Experiment, Policy};
use segue::bench::incident::Day;
use segue::config;
use segue::config::prices::Prices;
use segue::health::breaker::{Cause, State};
use segue::ledger;
use segue::ledger::reader::Reader;
use segue::ledger::report::Ask;
use segue::record::{Entry, TurnRecord};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The day begins at 05:40, so its incident at 06:40.
const BEGINS: f64 = 1_767_332_400.0;

#[test]
fn the_report_of_a_bad_day_is_exact() {
    let day = Day { rate: 0.15, worst: 0.4, ..Day::flat() };
    let mut turns: Vec<Arc<TurnRecord>> = Vec::new();
    let played = day.play_and_tell(
        |_| (),
        |at, record| {
            let turn = format!("turn_{}", turns.len());
            turns.push(Arc::new(TurnRecord { turn, started: BEGINS + at, ..record.clone() }));
        },
    );
    let at = |seconds: f64| SystemTime::UNIX_EPOCH + Duration::from_secs_f64(BEGINS + seconds);
    let mut state = State::Closed;
    let circuits: Vec<Entry> = (1..)
        .zip(&played.circuit)
        .map(|(number, (seconds, name))| {
            let to = match *name {
                "closed" => State::Closed,
                "open" => State::Open,
                _ => State::HalfOpen,
            };
            let from = std::mem::replace(&mut state, to);
            let (connection, model) = ("primary".into(), "m".into());
            Entry { number, at: at(*seconds), connection, model, from, to, cause: Cause::ErrorRate, until: None }
        })
        .collect();
    let folder = std::env::temp_dir().join(format!("segue-incident-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("day.db");
    let level = Experiment { seed: day.seed, ..Experiment::default() }.level(Policy::Speculative);
    ledger::fill(&file, &Prices::of(&config::Ledger::default()), &level, turns, circuits).unwrap();

    let reader = Reader::open(&file).unwrap();
    let whole = (day.lasts + 2 * day.calm).as_secs_f64();
    let ask = |from: f64, to: f64| Ask { from: BEGINS + from, to: BEGINS + to, tenant: None, level: None };
    let report = reader.report(&ask(0.0, whole)).unwrap();
    assert_eq!((report.turns, report.failed), (played.turns as u64, played.failed as u64));
    assert_eq!(report.windows.len(), played.hours.len());
    for (window, hour) in report.windows.iter().zip(&played.hours) {
        let told = (window.turns, window.secondary, window.failed);
        assert_eq!(told, (hour.turns as u64, hour.by_fallback as u64, hour.failed as u64), "{window:?}");
    }
    let incident = reader.report(&ask(day.calm.as_secs_f64(), (day.calm + day.lasts).as_secs_f64())).unwrap();
    assert_eq!((incident.turns, incident.secondary), (played.during as u64, played.by_fallback as u64));
    assert!(incident.secondary > incident.turns / 5 && report.spliced > 0, "{}", incident.paragraph());
    let circuit = report.circuits.iter().find(|c| c.target == "primary/m").unwrap();
    assert_eq!(circuit.trips, played.trips as u64);
    let (mut open, mut before) = (0.0, (0.0, "closed"));
    for now in played.circuit.iter().copied().chain([(whole, "closed")]) {
        open += if before.1 == "open" { now.0 - before.0 } else { 0.0 };
        before = now;
    }
    assert!((circuit.open - open).abs() < 0.1, "{} s and not {open} s", circuit.open);
    assert!((circuit.open + circuit.closed + circuit.half_open - whole).abs() < 0.1);
    std::fs::remove_dir_all(folder).unwrap();
}
