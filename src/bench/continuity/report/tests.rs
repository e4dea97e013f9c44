//! Reports of runs that were made by hand.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's panic is its report")]

use super::{Report, Setup, Trial, compare, json, markdown, plots, text};
use crate::bench::continuity::judge::model::Agreement;
use crate::bench::continuity::judge::verdicts;
use crate::bench::continuity::manifest::{Mode, Shape};
use crate::bench::continuity::record::{End, Heard, Record, Seam};
use crate::bench::continuity::score::score;
use crate::bench::continuity::suite;
use crate::bench::machine::Machine;
use crate::bench::stats::Share;
use serde_json::{Value, json};

/// Two systems; `lost` is how many of 150 conversations the first of them forgot, `slow` stretches all times.
fn report(lost: usize, slow: f64) -> Report {
    let suite = suite::committed();
    let mut records = Vec::new();
    let mut baseline = Vec::new();
    for (system, lost) in [("history", lost), ("splice", 0)] {
        for (index, conversation) in suite.iter().enumerate() {
            let calm = Heard {
                turn: conversation.probe_turn_index,
                text: if index < lost { "I do not know.".into() } else { conversation.expected_fact.clone() },
                end: End::Finished,
                first_ms: Some(20.0 * slow),
                total_ms: (100.0 + index as f64) * slow,
                seam: Some(Seam::default()),
                provider_requests: 1,
                provider_ms: 90.0 * slow,
                tokens: [50, 10],
                history_arrived: Some(index % 2 == 0),
                ..Heard::default()
            };
            let seam = Seam { repeated: usize::from(index < lost), ..Seam::default() };
            let struck = Heard {
                planned: Some(Mode::Reset),
                struck: true,
                depth: 1,
                gap_ms: Some(30.0 * slow),
                total_ms: calm.total_ms + 30.0 * slow,
                seam: Some(seam),
                ..calm.clone()
            };
            let record = |heard| Record {
                system: system.to_owned(),
                run: 0,
                conversation: conversation.id.clone(),
                length: conversation.turns.len(),
                fact_type: conversation.fact_type.clone(),
                turns: vec![heard],
            };
            records.push(record(struck));
            baseline.push(record(calm));
        }
    }
    let score = score(&records, &baseline, &verdicts(&suite, &records));
    let judged = Agreement {
        model: "judge-1".into(),
        calibration: Share::new(19, 20).unwrap(),
        asked: lost,
        unruled: 1,
        agreement: Share::new(50, 50),
        trouble: Some("status 500: busy".into()),
    };
    let trials = vec![
        Trial { shape: Shape::MidTurn, score: score.clone(), judged: Some(judged), notes: vec!["A note.".into()] },
        Trial { shape: Shape::Rolling, score, judged: None, notes: Vec::new() },
    ];
    let setup = Setup {
        suite: "continuity-v1".into(),
        conversations: 150,
        seed: 42,
        runs: 1,
        concurrency: 100,
        client_retries: 5,
        cooldown_ms: 5000,
        providers: ["amber", "birch"].map(str::to_owned).to_vec(),
    };
    Report { setup, trials, machine: Machine::this() }
}

#[test]
fn the_deterministic_half_does_not_depend_on_time() {
    let (one, other) = (json(&report(6, 1.0)), json(&report(6, 7.0)));
    let (one, other): (Value, Value) = (serde_json::from_str(&one).unwrap(), serde_json::from_str(&other).unwrap());
    assert_eq!(one["deterministic"].to_string(), other["deterministic"].to_string());
    assert_ne!(one["measured"], other["measured"]);
    assert_eq!(json(&report(6, 1.0)), json(&report(6, 1.0)));
    let splice = &one["measured"]["trials"][0]["systems"][1];
    assert_eq!((&splice["name"], &splice["clo"]["median"]), (&json!("splice"), &json!(30.0)));
}

#[test]
fn the_json_is_what_its_schema_says() {
    let schema = include_str!("../../../../docs/continuity.schema.json");
    let schema = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
    let mut good: Value = serde_json::from_str(&json(&report(6, 1.0))).unwrap();
    let wrong: Vec<String> =
        schema.iter_errors(&good).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert_eq!(wrong, [""; 0]);
    let empty = Report {
        trials: vec![Trial { score: score(&[], &[], &[]), ..report(0, 1.0).trials.remove(1) }],
        ..report(0, 1.0)
    };
    assert!(schema.is_valid(&serde_json::from_str(&json(&empty)).unwrap()));
    // It is no schema that takes anything.
    good["deterministic"]["trials"][0]["systems"][0]["cpr"]["share"] = json!(1.5);
    assert!(!schema.is_valid(&good));
}

#[test]
fn tables_name_systems_rates_and_causes() {
    let report = report(6, 1.0);
    let (text, markdown) = (text(&report), markdown(&report));
    for words in [&text, &markdown] {
        for word in [
            "continuity-v1",
            "seed 42",
            "splice",
            "144 of 150",
            "96.00 %",
            "[91.55, 98.15]",
            "100.00 %",
            "30",
            "3 forwarding failures",
            "3 model failures",
            "19 of 20 examples",
            "A note.",
            "Failures in the middle of an answer",
            "Rolling failures",
        ] {
            assert!(words.contains(word), "{word} in\n{words}");
        }
    }
    for word in [
        "| CPR, messages: 7 |",
        "| CPR, fact: date |",
        "| CPR, failure: reset |",
        "| SIR, providers failed: 1 |",
        "Wilson",
    ] {
        assert!(markdown.contains(word), "{word} in\n{markdown}");
    }
}

#[test]
fn there_is_a_plot_of_each_kind() {
    let plots = plots(&report(6, 1.0)).unwrap();
    let names: Vec<&str> = plots.iter().map(|(name, _)| name.as_str()).collect();
    for name in
        ["cpr.svg", "cpr-by-length-mid_turn.svg", "latency-mid_turn.svg", "overhead-rolling.svg", "gap-rolling.svg"]
    {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    for (name, svg) in &plots {
        assert!(svg.starts_with("<svg") && svg.contains("splice") && svg.contains("history"), "{name}");
    }
}

#[test]
fn two_reports_are_compared() {
    let (good, bad) = (json(&report(0, 1.0)), json(&report(40, 2.0)));
    let text = compare(&good, &bad).unwrap();
    let line = |start: &[&str]| {
        let found = text.lines().find(|line| line.split_whitespace().collect::<Vec<_>>().starts_with(start));
        found.unwrap_or_else(|| panic!("{start:?} in\n{text}")).to_owned()
    };
    let history = line(&["history", "CPR"]);
    assert!(history.contains("-26.67 points") && history.ends_with("apart"), "{history}");
    let splice = line(&["splice", "CPR"]);
    assert!(splice.contains("+0.00 points") && splice.ends_with("overlap"), "{splice}");
    assert!(line(&["splice", "CLO"]).contains("+30"), "{text}");
    assert!(!text.contains("different setups"));
    let mut other = report(0, 1.0);
    other.setup.seed = 43;
    other.trials[0].score.systems.remove(0);
    let text = compare(&good, &json(&other)).unwrap();
    assert!(text.contains("different setups") && text.contains("–"), "{text}");
    assert!(compare("{}", &good).unwrap_err().starts_with("the first report: no report"));
    let old = good.replace("\"version\": 1,\n  \"deterministic\"", "\"version\": 9,\n  \"deterministic\"");
    assert!(compare(&good, &old).unwrap_err().contains("segue-continuity 9"), "{old}");
}
