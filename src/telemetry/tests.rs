//! Numbers, bounds and names.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use super::catalogue::{ALL, Kind};
use super::registry::{MOST_SERIES, Registry};
use super::*;
use crate::record::turn::Fate;
use crate::relay::journal::Cause;
use std::time::{Duration, UNIX_EPOCH};

fn turn(level: &str, connection: &str, model: &str) -> TurnRecord {
    let attempt = AttemptRecord {
        connection: connection.into(),
        model: model.into(),
        cause: Cause::First,
        outcome: Fate::Ok,
        failure: None,
        quality: 1,
        opened_ms: 0.0,
        sent_ms: Some(2.0),
        first_token_ms: Some(300.0),
        told_from_ms: Some(302.5),
        told_to_ms: Some(900.0),
        ended_ms: Some(1000.0),
        prompt_tokens: 10,
        completion_tokens: 20,
        delivered_tokens: 20,
        estimated: false,
        overtaken_ms: None,
        seam: None,
        unchecked: None,
    };
    TurnRecord {
        turn: "t".to_owned(),
        tenant: None,
        key: None,
        level: level.into(),
        conversation: None,
        outcome: Outcome::Complete,
        finish: Some("stop"),
        delivered_chars: 80,
        splices: 0,
        started: 0.0,
        first_told_ms: Some(302.5),
        longest_silence_ms: 50.0,
        duration_ms: Some(1000.0),
        attempts: vec![attempt],
    }
}

fn metrics() -> Metrics {
    let text = "[connections.a]\ndialect = \"chat\"\nbase_url = \"http://127.0.0.1:1\"\n\
                [levels.l]\nchain = [{ connection = \"a\", model = \"m\" }]";
    let metrics = Metrics::default();
    metrics.know(&crate::config::load(text, "test.toml", &crate::config::Nothing).unwrap().config);
    metrics
}

fn text(metrics: &Metrics) -> String {
    metrics.render(UNIX_EPOCH, |_| ())
}

#[test]
fn a_turn_is_counted_once_where_it_belongs() {
    let metrics = metrics();
    metrics.lock().turn(&turn("l", "a", "m"));
    let text = text(&metrics);
    for line in [
        "segue_turns_total{level=\"l\",tenant=\"\",outcome=\"complete\"} 1",
        "segue_failovers_total{level=\"l\"} 0",
        "segue_attempts_total{connection=\"a\",model=\"m\",cause=\"first\",outcome=\"ok\"} 1",
        "segue_tokens_total{connection=\"a\",model=\"m\",kind=\"completion\",spent_as=\"leader\"} 20",
        "segue_first_token_seconds_bucket{connection=\"a\",model=\"m\",le=\"0.2\"} 0",
        "segue_first_token_seconds_bucket{connection=\"a\",model=\"m\",le=\"0.3\"} 1",
        "segue_first_token_seconds_bucket{connection=\"a\",model=\"m\",le=\"+Inf\"} 1",
        "segue_first_token_seconds_sum{connection=\"a\",model=\"m\"} 0.3",
        "segue_steady_state_overhead_seconds_bucket{level=\"l\",le=\"0.0025\"} 1",
    ] {
        assert!(text.lines().any(|l| l.starts_with(line)), "{line} is not in\n{text}");
    }
}

#[test]
fn clients_cannot_make_series() {
    let metrics = metrics();
    for n in 0..10_000 {
        let model = format!("{n}\"}}\n# HELP evil");
        metrics.lock().turn(&turn(&format!("a/{model}"), "a", &model));
    }
    let text = text(&metrics);
    assert!(text.contains("segue_turns_total{level=\"direct\",tenant=\"\",outcome=\"complete\"} 10000\n"), "{text}");
    assert!(
        text.contains("segue_attempts_total{connection=\"a\",model=\"other\",cause=\"first\",outcome=\"ok\"} 10000\n")
    );
    assert!(!text.contains("evil"));
    assert!(text.len() < 20_000, "{}", text.len());
}

#[test]
fn a_metric_has_so_many_series_and_no_more() {
    let mut registry = Registry::default();
    for n in 0..MOST_SERIES + 50 {
        registry.add(&c::REFUSALS, &[&format!("code {n}")], 1.0);
    }
    let text = registry.render();
    assert_eq!(text.lines().filter(|l| l.starts_with("segue_refusals_total{")).count(), MOST_SERIES + 1);
    assert!(text.contains("segue_refusals_total{code=\"other\"} 50\n"));
}

#[test]
fn values_are_escaped_and_cut() {
    let mut registry = Registry::default();
    registry.add(&c::REFUSALS, &["a\"b\\c\nd"], 1.0);
    registry.add(&c::REFUSALS, &[&"x".repeat(1 << 16)], 1.0);
    let text = registry.render();
    assert!(text.contains("segue_refusals_total{code=\"a\\\"b\\\\c\\nd\"} 1\n"), "{text}");
    assert!(text.len() < 20_000);
}

#[test]
fn time_in_a_state_is_counted_until_now() {
    let metrics = metrics();
    let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
    let change = |number, seconds, from, to| Entry {
        number,
        at: at(seconds),
        connection: "a".into(),
        model: "m".into(),
        from,
        to,
        cause: crate::health::breaker::Cause::Consecutive,
        until: None,
    };
    metrics.circuit(&change(1, 100, State::Closed, State::Open));
    metrics.circuit(&change(2, 130, State::Open, State::HalfOpen));
    metrics.circuit(&change(3, 131, State::HalfOpen, State::Closed));
    let text = metrics.render(at(141), |_| ());
    for (state, seconds) in [("open", 30), ("half_open", 1), ("closed", 10)] {
        let line =
            format!("segue_circuit_state_seconds_total{{connection=\"a\",model=\"m\",state=\"{state}\"}} {seconds}\n");
        assert!(text.contains(&line), "{line} is not in\n{text}");
    }
}

#[test]
fn names_follow_the_rules_of_prometheus() {
    for metric in ALL {
        assert!(metric.name.starts_with("segue_") && metric.help.ends_with('.'), "{metric:?}");
        assert_eq!(metric.name.ends_with("_total"), metric.kind == Kind::Counter, "{metric:?}");
        if let Kind::Histogram(bounds) = metric.kind {
            assert!(metric.name.ends_with("_seconds") && bounds.is_sorted(), "{metric:?}");
        }
    }
    let mut names: Vec<_> = ALL.iter().map(|m| m.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ALL.len());
}
