//! What a ledger tells of a span of time: the figures, and their sums under way.
//!
//! Counts are exact. Percentiles are read from counts by size, a hundredth apart, so they are within 1 %; nothing is kept
//! of a single turn but the marks of conversations.

use rusqlite::Row;
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};

mod sketch;
mod words;

use sketch::Sketch;

/// What a report is to be about.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// From when, in seconds of Unix time.
    pub from: f64,
    /// Until when; what begins then is not in it.
    pub to: f64,
    /// One tenant; `None`: all.
    pub tenant: Option<String>,
    /// One level; `None`: all.
    pub level: Option<String>,
}

/// The figures. Times are milliseconds unless they say otherwise; shares are of 0 to 1.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// From when, in seconds of Unix time.
    pub from: f64,
    /// Until when.
    pub to: f64,
    /// Whose.
    pub tenant: Option<String>,
    /// Which level.
    pub level: Option<String>,
    /// Turns.
    pub turns: u64,
    /// Turns that the client saw fail, with or without a text before.
    pub failed: u64,
    /// Turns whose client left.
    pub interrupted: u64,
    /// Turns in which the client heard another than the first target of the chain.
    pub secondary: u64,
    /// Turns that were spliced.
    pub spliced: u64,
    /// Splices.
    pub splices: u64,
    /// Turns that were served by a target worse than the best of its level.
    pub below_quality: u64,
    /// Conversations; turns that named none are one each.
    pub conversations: u64,
    /// Conversations in which the client heard another than the first target.
    pub conversations_secondary: u64,
    /// From the request to the first thing told.
    pub first_told: Percentiles,
    /// The longest silence of each turn.
    pub longest_silence: Percentiles,
    /// The silence at splices.
    pub splice_gap: Percentiles,
    /// Slices of the time.
    pub windows: Vec<Window>,
    /// What each target did.
    pub targets: Vec<Target>,
    /// Time in each state of each circuit that ever changed.
    pub circuits: Vec<Circuit>,
    /// Attempts that failed, by target and kind, most first.
    pub failures: Vec<Count>,
    /// Attempts by why they were opened.
    pub causes: Vec<Count>,
    /// Seams by how they were decided.
    pub seams: Vec<Count>,
    /// Who was served by what, most first: turns by tenant, level and target.
    pub served: Vec<Count>,
    /// What was spent, by tenant and by what for.
    pub spent: Vec<Spent>,
}

/// Percentiles of times in milliseconds, within 1 %; `None`: there were none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// How many.
    pub count: u64,
    /// The median.
    pub p50: Option<f64>,
    /// 95 of a hundred.
    pub p95: Option<f64>,
    /// 99 of a hundred.
    pub p99: Option<f64>,
}

/// A slice of the time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Window {
    /// From when, in seconds of Unix time.
    pub from: f64,
    /// Turns that began in it.
    pub turns: u64,
    /// Seen to fail.
    pub failed: u64,
    /// Heard from another than the first target.
    pub secondary: u64,
    /// Spliced.
    pub spliced: u64,
    /// From the request to the first thing told, 95 of a hundred.
    pub first_told_p95: Option<f64>,
}

/// What one target did.
#[derive(Clone, Debug, Serialize)]
pub struct Target {
    /// `connection/model`.
    pub target: String,
    /// Attempts.
    pub attempts: u64,
    /// Those that failed.
    pub failed: u64,
    /// Of those that ended well or failed, the share that failed.
    pub error_rate: Option<f64>,
    /// From the request to the first token.
    pub first_token: Percentiles,
    /// Tokens, all attempts.
    pub tokens: u64,
    /// What they cost in dollars; `None`: there is no price.
    pub cost: Option<f64>,
}

/// Time in the states of a circuit, in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Circuit {
    /// `connection/model`.
    pub target: String,
    /// Closed.
    pub closed: f64,
    /// Open.
    pub open: f64,
    /// Half-open.
    pub half_open: f64,
    /// How often it opened from closed.
    pub trips: u64,
}

/// A count of something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Of what.
    pub what: Vec<String>,
    /// How many.
    pub count: u64,
}

/// What was spent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spent {
    /// By whom; empty without tenants.
    pub tenant: String,
    /// `leader`, `continuation`, `hedge_loser` or `abandoned`.
    pub spent_as: String,
    /// Tokens of prompts and answers.
    pub tokens: u64,
    /// What they cost in dollars, as far as prices are known.
    pub cost: f64,
    /// Tokens without a price.
    pub unpriced: u64,
}

/// Sums under way.
pub(super) struct Sums<'a> {
    ask: &'a Ask,
    width: f64,
    report: Report,
    first_told: Sketch,
    silence: Sketch,
    gap: Sketch,
    slices: Vec<Sketch>,
    targets: BTreeMap<String, Did>,
    tables: [BTreeMap<Vec<String>, u64>; 4],
    spent: BTreeMap<(String, String), (u64, f64, u64)>,
    circuits: BTreeMap<String, (Circuit, String, f64)>,
    talks: [HashSet<u64>; 2],
    hasher: RandomState,
}

#[derive(Default)]
struct Did {
    attempts: u64,
    ok: u64,
    failed: u64,
    first: Sketch,
    tokens: u64,
    cost: f64,
    unpriced: bool,
}

// === impl Sums ===

impl<'a> Sums<'a> {
    pub(super) fn new(ask: &'a Ask) -> Self {
        let span = (ask.to - ask.from).max(1.0);
        let width = WIDTHS.into_iter().find(|width| span / width <= MOST_WINDOWS).unwrap_or(span / MOST_WINDOWS);
        let count = ((span / width).ceil() as usize).max(1);
        let window = |index| Window { from: ask.from + index as f64 * width, ..Window::default() };
        Self {
            ask,
            width,
            report: Report {
                from: ask.from,
                to: ask.to,
                tenant: ask.tenant.clone(),
                level: ask.level.clone(),
                turns: 0,
                failed: 0,
                interrupted: 0,
                secondary: 0,
                spliced: 0,
                splices: 0,
                below_quality: 0,
                conversations: 0,
                conversations_secondary: 0,
                first_told: Percentiles::default(),
                longest_silence: Percentiles::default(),
                splice_gap: Percentiles::default(),
                windows: (0..count).map(window).collect(),
                targets: Vec::new(),
                circuits: Vec::new(),
                failures: Vec::new(),
                causes: Vec::new(),
                seams: Vec::new(),
                served: Vec::new(),
                spent: Vec::new(),
            },
            first_told: Sketch::default(),
            silence: Sketch::default(),
            gap: Sketch::default(),
            slices: std::iter::repeat_with(Sketch::default).take(count).collect(),
            targets: BTreeMap::new(),
            tables: Default::default(),
            spent: BTreeMap::new(),
            circuits: BTreeMap::new(),
            talks: Default::default(),
            hasher: RandomState::new(),
        }
    }

    /// A row of turns, as the reader asks for it.
    pub(super) fn turn(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        let started: f64 = row.get(0)?;
        let tenant: Option<String> = row.get(1)?;
        let (level, outcome): (String, String) = (row.get(2)?, row.get(3)?);
        let target: Option<(String, String)> = row.get::<_, Option<String>>(4)?.zip(row.get(5)?);
        let (quality, best): (Option<u32>, u32) = (row.get(6)?, row.get(7)?);
        let (secondary, splices): (bool, u64) = (row.get(8)?, row.get(9)?);
        let (told, silence): (Option<f64>, f64) = (row.get(10)?, row.get(11)?);
        let talk: Option<String> = row.get(12)?;
        let bad = outcome == "failed" || outcome == "incomplete";
        let index = (((started - self.ask.from) / self.width) as usize).min(self.slices.len() - 1);
        let (report, one) = (&mut self.report, u64::from);
        report.turns += 1;
        report.failed += one(bad);
        report.interrupted += one(outcome == "interrupted");
        report.secondary += one(secondary);
        report.spliced += one(splices > 0);
        report.splices += splices;
        report.below_quality += one(quality.is_some_and(|quality| best < quality));
        let window = &mut report.windows[index];
        window.turns += 1;
        window.failed += one(bad);
        window.secondary += one(secondary);
        window.spliced += one(splices > 0);
        if let Some(told) = told {
            self.first_told.add(told);
            self.slices[index].add(told);
            self.silence.add(silence);
        }
        let mark = match talk {
            Some(talk) => self.hasher.hash_one((&tenant, talk)),
            None => self.hasher.hash_one(row.get::<_, String>(13)?),
        };
        self.talks[0].insert(mark);
        if secondary {
            self.talks[1].insert(mark);
        }
        if let Some((connection, model)) = target.filter(|_| told.is_some()) {
            let who = vec![tenant.unwrap_or_default(), level, format!("{connection}/{model}")];
            bump(&mut self.tables[3], who);
        }
        Ok(())
    }

    /// A row of attempts.
    pub(super) fn attempt(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        let name = format!("{}/{}", row.get::<_, String>(0)?, row.get::<_, String>(1)?);
        let (cause, outcome): (String, String) = (row.get(2)?, row.get(3)?);
        let (failure, first): (Option<String>, Option<f64>) = (row.get(4)?, row.get(5)?);
        let (seam, gap): (Option<String>, Option<f64>) = (row.get(6)?, row.get(7)?);
        let tokens = row.get::<_, u64>(8)? + row.get::<_, u64>(9)?;
        let (spent_as, cost): (String, Option<f64>) = (row.get(10)?, row.get(11)?);
        let tenant: Option<String> = row.get(12)?;
        let did = self.targets.entry(name.clone()).or_default();
        did.attempts += 1;
        did.ok += u64::from(outcome == "ok");
        did.failed += u64::from(outcome == "failed");
        did.tokens += tokens;
        did.cost += cost.unwrap_or_default();
        did.unpriced |= cost.is_none() && tokens > 0;
        if let Some(first) = first {
            did.first.add(first);
        }
        if let Some(gap) = gap {
            self.gap.add(gap);
        }
        let [failures, causes, seams, _] = &mut self.tables;
        bump(causes, vec![cause]);
        if let Some(seam) = seam {
            bump(seams, vec![seam]);
        }
        if let Some(failure) = failure {
            bump(failures, vec![name, failure]);
        }
        let spent = self.spent.entry((tenant.unwrap_or_default(), spent_as)).or_default();
        spent.0 += tokens;
        spent.1 += cost.unwrap_or_default();
        spent.2 += if cost.is_none() { tokens } else { 0 };
        Ok(())
    }

    /// A row of circuits, in order; those before the span say in which state it began.
    pub(super) fn circuit(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        let at: f64 = row.get(0)?;
        let name = format!("{}/{}", row.get::<_, String>(1)?, row.get::<_, String>(2)?);
        let (was, became): (String, String) = (row.get(3)?, row.get(4)?);
        let from = self.ask.from;
        let entry = self
            .circuits
            .entry(name.clone())
            .or_insert_with(|| (Circuit { target: name, ..Circuit::default() }, was.clone(), from));
        let (circuit, state, since) = entry;
        pass(circuit, state, (at - *since).max(0.0));
        circuit.trips += u64::from(at >= from && was == "closed" && became == "open");
        (*state, *since) = (became, at.max(from));
        Ok(())
    }

    pub(super) fn report(self) -> Report {
        let mut report = self.report;
        report.first_told = self.first_told.percentiles();
        report.longest_silence = self.silence.percentiles();
        report.splice_gap = self.gap.percentiles();
        for (window, slice) in report.windows.iter_mut().zip(&self.slices) {
            window.first_told_p95 = slice.percentile(95.0);
        }
        report.conversations = self.talks[0].len() as u64;
        report.conversations_secondary = self.talks[1].len() as u64;
        report.targets = self.targets.into_iter().map(|(target, did)| did.target(target)).collect();
        let to = self.ask.to;
        let circuits = self.circuits.into_values().map(|(mut circuit, state, since)| {
            pass(&mut circuit, &state, (to - since).max(0.0));
            circuit
        });
        report.circuits = circuits.collect();
        let [failures, causes, seams, served] = self.tables;
        report.failures = most_first(failures);
        report.causes = most_first(causes);
        report.seams = most_first(seams);
        report.served = most_first(served);
        let spent = self.spent.into_iter().map(|((tenant, spent_as), (tokens, cost, unpriced))| Spent {
            tenant,
            spent_as,
            tokens,
            cost,
            unpriced,
        });
        report.spent = spent.collect();
        report
    }
}

// === impl Did ===

impl Did {
    fn target(self, target: String) -> Target {
        let decided = self.ok + self.failed;
        Target {
            target,
            attempts: self.attempts,
            failed: self.failed,
            error_rate: (decided > 0).then(|| self.failed as f64 / decided as f64),
            first_token: self.first.percentiles(),
            tokens: self.tokens,
            cost: Some(self.cost).filter(|_| !self.unpriced),
        }
    }
}

// === helpers ===

fn pass(circuit: &mut Circuit, state: &str, seconds: f64) {
    match state {
        "closed" => circuit.closed += seconds,
        "open" => circuit.open += seconds,
        _ => circuit.half_open += seconds,
    }
}

/// Of the kinds of what is counted only so many are told apart: clients name some of it.
fn bump(table: &mut BTreeMap<Vec<String>, u64>, what: Vec<String>) {
    if table.len() < MOST_ROWS || table.contains_key(&what) {
        *table.entry(what).or_default() += 1;
    } else {
        *table.entry(vec!["other".to_owned(); what.len()]).or_default() += 1;
    }
}

fn most_first(table: BTreeMap<Vec<String>, u64>) -> Vec<Count> {
    let mut rows: Vec<Count> = table.into_iter().map(|(what, count)| Count { what, count }).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.count));
    rows
}

/// Widths of windows, in seconds.
const WIDTHS: [f64; 9] = [10.0, 60.0, 300.0, 900.0, 3600.0, 4.0 * 3600.0, 86_400.0, 7.0 * 86_400.0, 30.0 * 86_400.0];
const MOST_WINDOWS: f64 = 48.0;
/// The most rows of a table of counts.
const MOST_ROWS: usize = 10_000;
