//! Tables for a terminal, and the same as Markdown.

use super::{Report, Setup, Trial};
use crate::bench::continuity::manifest::Shape;
use crate::bench::continuity::score::{Causes, Kept, Slice, Timed};
use crate::bench::stats::{Share, Spread, Summary};
use crate::bench::table::{NONE, Table, millis, or_none};
use std::fmt::Write as _;

/// The report for a terminal.
pub fn text(report: &Report) -> String {
    let mut text = format!("{}\n{}\n", setup(&report.setup), report.machine);
    for trial in &report.trials {
        let _ = write!(text, "\n{}\n\n{}\n{}", title(trial.shape), kept(trial), timed(trial));
        for line in remarks(trial) {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

/// The report as a Markdown document.
pub fn markdown(report: &Report) -> String {
    let mut text = format!("# Continuity\n\n{}\n\nOn {}.\n", setup(&report.setup), report.machine);
    for trial in &report.trials {
        let _ = write!(text, "\n## {}\n\n{}\n{}", title(trial.shape), kept(trial).markdown(), timed(trial).markdown());
        let _ = write!(text, "\nBy part:\n\n{}", parts(trial).markdown());
        for line in remarks(trial) {
            let _ = write!(text, "\n{line}\n");
        }
    }
    let _ = write!(text, "\n{LEGEND}");
    text
}

// === helpers ===

pub(super) fn setup(setup: &Setup) -> String {
    let Setup { suite, conversations, seed, runs, concurrency, client_retries, cooldown_ms, providers } = setup;
    let providers = providers.join(", ");
    let times = if *runs == 1 { "run" } else { "runs" };
    let cooldown = millis(*cooldown_ms as f64);
    format!(
        "{suite}: {conversations} conversations, {runs} {times}, seed {seed}, {concurrency} at once, at most \
         {client_retries} retries of the client, cooldown {cooldown} ms; providers: {providers}"
    )
}

pub(super) fn title(shape: Shape) -> &'static str {
    match shape {
        Shape::Turn => "Failures before the first word",
        Shape::MidTurn => "Failures in the middle of an answer",
        Shape::Rolling => "Rolling failures of two and three providers",
        Shape::Repeated => "Failures at several turns of a conversation",
    }
}

/// What was kept.
fn kept(trial: &Trial) -> Table {
    let mut table = Table::new([
        "system",
        "CPR",
        "kept",
        "95 % interval",
        "SIR",
        "95 % interval",
        "lost",
        "doubled",
        "foreign",
        "faked",
        "errors",
        "cut",
    ]);
    for system in &trial.score.systems {
        let Kept { cpr, sir, faked, ends, .. } = &system.kept;
        let Timed { lost, repeated, foreign, .. } = &system.timed;
        table.row([
            system.name.clone(),
            share(*cpr),
            cpr.map_or_else(|| NONE.to_owned(), |cpr| format!("{} of {}", cpr.hits, cpr.of)),
            interval(*cpr),
            share(*sir),
            interval(*sir),
            lost.to_string(),
            repeated.to_string(),
            foreign.to_string(),
            faked.to_string(),
            ends.error.to_string(),
            ends.cut.to_string(),
        ]);
    }
    table
}

/// How long it took, in milliseconds.
fn timed(trial: &Trial) -> Table {
    let mut table = Table::new([
        "system",
        "CLO mean",
        "median",
        "P25",
        "P75",
        "P95",
        "gap p50",
        "p95",
        "p99",
        "silence max",
        "queue p95",
        "requests/answer",
        "tokens sent",
        "generated",
    ]);
    for system in &trial.score.systems {
        let timed = &system.timed;
        let clo = |pick: fn(&Spread) -> f64| or_none(timed.clo.as_ref().map(pick), millis);
        let gap = |pick: fn(&Summary) -> f64| or_none(timed.gap.as_ref().map(pick), millis);
        table.row([
            system.name.clone(),
            clo(|clo| clo.mean),
            clo(|clo| clo.median),
            clo(|clo| clo.p25),
            clo(|clo| clo.p75),
            clo(|clo| clo.p95),
            gap(|gap| gap.p50),
            gap(|gap| gap.p95),
            gap(|gap| gap.p99),
            or_none(timed.silence.map(|silence| silence.max), millis),
            or_none(timed.queue.map(|queue| queue.p95), millis),
            format!("{:.2}", timed.requests_per_answer),
            timed.tokens_sent.to_string(),
            timed.tokens_generated.to_string(),
        ]);
    }
    table
}

/// The rates of each part: a row for a part, a column for a system.
fn parts(trial: &Trial) -> Table {
    let systems = &trial.score.systems;
    let heads = ["part"].into_iter().chain(systems.iter().map(|system| system.name.as_str()));
    let mut table = Table::new(heads);
    type Pick = fn(&Kept) -> &[Slice];
    let kinds: [(&str, Pick); 7] = [
        ("CPR, run", |kept| &kept.by_run),
        ("CPR, messages", |kept| &kept.by_length),
        ("CPR, fact", |kept| &kept.by_fact),
        ("CPR, providers failed", |kept| &kept.by_depth),
        ("CPR, failure", |kept| &kept.by_mode),
        ("SIR, providers failed", |kept| &kept.sir_by_depth),
        ("SIR, failure", |kept| &kept.sir_by_mode),
    ];
    for (kind, pick) in kinds {
        let mut names: Vec<&str> = Vec::new();
        for slice in systems.iter().flat_map(|system| pick(&system.kept)) {
            if !names.contains(&slice.of.as_str()) {
                names.push(&slice.of);
            }
        }
        for name in names {
            let cell = |kept: &Kept| {
                let cpr = pick(kept).iter().find(|slice| slice.of == name).map(|slice| slice.rate);
                cpr.map_or_else(|| NONE.to_owned(), |cpr| format!("{} {}", share(Some(cpr)), interval(Some(cpr))))
            };
            let cells = systems.iter().map(|system| cell(&system.kept));
            table.row([format!("{kind}: {name}")].into_iter().chain(cells));
        }
    }
    table
}

/// What a table has no column for.
fn remarks(trial: &Trial) -> Vec<String> {
    let mut lines = Vec::new();
    for system in &trial.score.systems {
        let causes = system.kept.not_kept;
        if causes != Causes::default() {
            lines.push(format!(
                "{}: facts not kept: {} forwarding failures (the history did not arrive), {} model failures (it did), \
                 {} without a whole answer, {} unknown.",
                system.name, causes.forwarding, causes.model, causes.no_answer, causes.unknown
            ));
        }
        if system.kept.seams_unknown > 0 {
            lines.push(format!(
                "{}: of {} broken answers nobody can know whether they are whole.",
                system.name, system.kept.seams_unknown
            ));
        }
        if system.timed.unpaired > 0 {
            let (name, unpaired) = (&system.name, system.timed.unpaired);
            lines.push(format!("{name}: {unpaired} struck answers have no finished pair and are not in CLO."));
        }
    }
    if let Some(judged) = &trial.judged {
        lines.push(judged.to_string());
    }
    lines.extend(trial.notes.iter().cloned());
    lines
}

pub(super) fn share(share: Option<Share>) -> String {
    or_none(share.map(|share| share.share), |share| format!("{:.2} %", share * 100.0))
}

pub(super) fn interval(share: Option<Share>) -> String {
    share.map_or_else(|| NONE.to_owned(), |share| format!("[{:.2}, {:.2}]", share.low * 100.0, share.high * 100.0))
}

// === consts ===

const LEGEND: &str = "\
CPR, the continuity preservation rate: probes that were answered with the fact. SIR, the seam integrity rate: of the
answers whose provider failed in the middle, those that were heard with nothing lost, doubled or garbled. Intervals are
Wilson's, in per cent. CLO, the continuity latency overhead: the time of a struck answer less that of the same answer of
the same conversation and run without failures. Gap: the silence at a seam. Queue: end to end less what a provider was
at work. All times in milliseconds; lost, doubled and foreign in characters.
";
