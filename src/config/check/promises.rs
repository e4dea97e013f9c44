//! What a chain promises and cannot keep: fallbacks that take less than what they stand in for, answers that leave no room
//! for a prompt, retries that no clock leaves time for.

use super::super::units::show;
use super::super::{Config, Quota};
use super::{About, list, name};
use crate::routing::{Entry, Level, Target};

/// One of a connection's limits.
type Limit = fn(&Quota) -> Option<u64>;

/// Limits and budgets of a level that cannot be met.
pub(super) fn judge(config: &Config, level: &Level, out: &mut About<'_>) {
    windows(level, out);
    outputs(level, out);
    rates(config, level, out);
    retries(level, out);
}

/// A target is left out of a turn whose prompt does not fit its window.
fn windows(level: &Level, out: &mut About<'_>) {
    let Some((primary, fallbacks)) = level.chain.split_first() else { return };
    let Some(first) = primary.target.context_window else { return };
    // Of an unknown window the best is hoped.
    let window = |row: &&Entry| row.target.context_window.unwrap_or(u64::MAX);
    let Some(widest) = fallbacks.iter().map(|row| window(&row)).max() else { return };
    for row in fallbacks.iter().filter(|row| window(row) < first.min(widest)) {
        let own = window(&row);
        out.warn(
            format!(
                "{} takes {own} tokens, {} {first}: requests with prompts over {} tokens skip it",
                name(row),
                name(primary),
                prompt(own)
            ),
            "replace it by a model with a larger window, if such requests come",
        );
    }
    if widest < first {
        out.warn(
            format!(
                "{} takes {first} tokens, no fallback more than {widest}: requests with prompts over {} tokens have no \
                 fallback",
                name(primary),
                prompt(widest)
            ),
            &format!("add a target with a `context_window` of {first} or more"),
        );
    }
}

/// The longest prompt for which a target with this window is asked.
fn prompt(window: u64) -> u64 {
    window.saturating_sub(Target::LEAST_ANSWER)
}

fn outputs(level: &Level, out: &mut About<'_>) {
    for row in &level.chain {
        if let (Some(answer), Some(window)) = (row.target.max_output, row.target.context_window)
            && window <= answer
        {
            out.warn(
                format!("{}: `max_output` ({answer}) leaves no room for a prompt in {window} tokens", name(row)),
                "correct one of them",
            );
        }
    }
    let Some((primary, fallbacks)) = level.chain.split_first() else { return };
    let Some(first) = primary.target.max_output else { return };
    for row in fallbacks {
        if let Some(own) = row.target.max_output.filter(|own| *own < first) {
            out.note(
                format!(
                    "{} answers with {own} tokens at most, {} with {first}: a long answer ends there",
                    name(row),
                    name(primary)
                ),
                "",
            );
        }
    }
}

/// When the first choice is down its whole load comes to the others.
fn rates(config: &Config, level: &Level, out: &mut About<'_>) {
    let Some(primary) = level.chain.first() else { return };
    let limits = |row: &Entry| {
        let of = config.connections.iter().find(|c| c.name == row.target.connection);
        of.map(|c| c.limits).unwrap_or_default()
    };
    // Two models of one connection share its limits.
    let mut others: Vec<&Entry> = Vec::new();
    for row in &level.chain {
        if [primary].iter().chain(&others).all(|known| known.target.connection != row.target.connection) {
            others.push(row);
        }
    }
    let rows: [(&str, Limit); 3] =
        [("requests a minute", |q| q.rpm), ("tokens a minute", |q| q.tpm), ("turns at once", |q| q.in_flight)];
    for (what, of) in rows.into_iter().filter(|_| !others.is_empty()) {
        // One without a limit takes all; an unlimited first choice says nothing of its load.
        let own: Option<Vec<u64>> = others.iter().map(|row| of(&limits(row))).collect();
        let (Some(first), Some(own)) = (of(&limits(primary)), own) else { continue };
        let all = own.iter().fold(0_u64, |all, own| all.saturating_add(*own));
        // Limits are seldom used up, so somewhat less will do.
        if all < first / 2 {
            let names: Vec<String> = others.iter().map(|row| name(row)).collect();
            out.warn(
                format!(
                    "{} takes {first} {what}, {} only {all}: when it is down, turns wait or are refused",
                    name(primary),
                    list(&names)
                ),
                "raise the limits of the fallbacks, or add another",
            );
        }
    }
}

fn retries(level: &Level, out: &mut About<'_>) {
    let tight: Vec<&Entry> =
        level.chain.iter().filter(|r| !r.target.reasons && r.timeouts.first_token <= level.backoff.base).collect();
    if let (1.., Some(row)) = (level.retries, tight.first()) {
        out.warn(
            format!(
                "{}: the first pause before a retry ({}) is not shorter than `first_token` ({}): no retry fits",
                name(row),
                show(level.backoff.base),
                show(row.timeouts.first_token)
            ),
            "lower `backoff.base`, raise `first_token`, or set `retries = 0`",
        );
    }
}
