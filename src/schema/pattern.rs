//! Regular expressions of schemas: written for ECMAScript, matched in linear time, each built once in a check.

use regex::{Regex, RegexBuilder};
use std::collections::HashMap;

/// The expressions that were met in one check; `None`: one that cannot be built.
#[derive(Default)]
pub(super) struct Patterns<'a>(HashMap<&'a str, Option<Pattern>>);

/// One expression.
#[derive(Clone)]
pub(super) struct Pattern {
    regex: Regex,
    weight: usize,
}

// === impl Patterns ===

impl<'a> Patterns<'a> {
    /// Whether `pattern` has been built.
    pub(super) fn knows(&self, pattern: &str) -> bool {
        self.0.contains_key(pattern)
    }

    /// The expression, built if it was not yet; `None` if it needs what cannot be matched in linear time, or is too large.
    pub(super) fn get(&mut self, pattern: &'a str) -> Option<Pattern> {
        self.0.entry(pattern).or_insert_with(|| Pattern::of(pattern)).clone()
    }
}

// === impl Pattern ===

impl Pattern {
    fn of(pattern: &str) -> Option<Self> {
        if pattern.len() > LONGEST {
            return None;
        }
        let mut builder = RegexBuilder::new(&translated(pattern));
        builder.size_limit(SIZE).dfa_size_limit(SIZE).nest_limit(NESTED);
        Some(Self { regex: builder.build().ok()?, weight: weight(pattern) })
    }

    /// What it costs, in steps, to match a text of `bytes`.
    pub(super) fn cost(&self, bytes: usize) -> usize {
        1 + bytes.saturating_mul(self.weight) / STATES
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

// === helpers ===

/// What the two languages write alike and mean differently: in ECMAScript, digits and letters of `\d` and `\w` are
/// those of ASCII.
fn translated(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('d') => out.push_str("[0-9]"),
            Some('D') => out.push_str("[^0-9]"),
            Some('w') => out.push_str("[0-9A-Za-z_]"),
            Some('W') => out.push_str("[^0-9A-Za-z_]"),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    out
}

/// How many states it may be in at once, at most: counted repetitions multiply.
fn weight(pattern: &str) -> usize {
    let mut weight = pattern.len().max(1);
    for counted in pattern.split('{').skip(1) {
        let digits = counted.split('}').next().unwrap_or_default().split(',');
        let most = digits.filter_map(|n| n.trim().parse::<usize>().ok()).max();
        weight = weight.saturating_mul(most.unwrap_or(1).max(1));
    }
    weight.min(SIZE / 16)
}

/// The longest expression that is built, in bytes.
const LONGEST: usize = 4096;
/// The most memory that one takes, in bytes.
const SIZE: usize = 1 << 20;
/// Groups within groups.
const NESTED: u32 = 64;
/// Moves of an expression from state to state that are as dear as one step.
const STATES: usize = 64;
