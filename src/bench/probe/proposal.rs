//! What follows from the numbers: clocks, hedges, breakers, and the order of a chain.
//!
//! | proposed | from what was measured |
//! | --- | --- |
//! | `first_token` | three times the p99 of first tokens, at least 2 s |
//! | `connect` | half of that, where it would not be shorter |
//! | `suspect` | three times the p99 of gaps, at least 200 ms; only where somebody else could go on |
//! | `stall` | four times that and twice the longest gap, at least 1.5 s |
//! | `idle` | `stall`, where it would be shorter |
//! | `hedge` | `after = "p90"`, no sooner than the p50 and no later than the p95 of the first target, at least 80 ms |
//! | `breaker.latency.p95` | `over_baseline` times the p95 of the connection's slowest model (twice, without it), at least 1 s |
//! | order | quality, then p95 of first tokens, then error rate |
//!
//! All times are rounded up to two digits. A clock that gives a healthy target up costs a turn more than one that waits
//! a little: hence the factors. Of a target with too few answers, or of whose answers most failed, nothing is proposed.
//! How long a model thinks depends on the question: one that reasons keeps its `first_token` and `thinking`, and its
//! level its `hedge`.

use super::Measured;
use crate::bench::stats::Sample;
use crate::config::check::{Severity, findings};
use crate::config::{Breaker, Config, Latency, write};
use crate::routing::{After, Entry, Hedge, Level, Timeouts};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// A configuration with what is proposed in it.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// The whole of it.
    pub config: Config,
    /// Levels that something is proposed for, in the order of the file.
    pub levels: Vec<Arc<str>>,
    /// Connections whose breaker something is proposed for.
    pub connections: Vec<Arc<str>>,
    /// What could not be proposed, and what `segue check` would say that it did not say before.
    pub remarks: Vec<String>,
}

/// What follows for `config` from what was `measured`.
pub fn propose(config: &Config, measured: &[Measured]) -> Proposal {
    let mut proposal = Proposal { config: config.clone(), levels: vec![], connections: vec![], remarks: vec![] };
    for one in measured.iter().filter(|one| !suffices(one)) {
        let count = one.succeeded();
        proposal.remarks.push(if one.is_unreachable() {
            format!("{}: it cannot be relied on; nothing is proposed for it", one.name())
        } else {
            format!("{}: {count} answers, and {LEAST} are needed; nothing is proposed for it", one.name())
        });
    }
    for level in &mut proposal.config.levels {
        let changed = self::level(level, &config.timeouts, measured, &mut proposal.remarks);
        if let Some(changed) = changed {
            *level = Arc::new(changed);
            proposal.levels.push(Arc::clone(&level.name));
        }
    }
    for connection in &mut proposal.config.connections {
        if let Some(latency) = latency(config, &connection.name, &connection.breaker, measured) {
            connection.breaker.latency = Some(latency);
            proposal.connections.push(Arc::clone(&connection.name));
        }
    }
    let before = findings(config);
    let new = findings(&proposal.config).into_iter().filter(|f| f.severity == Severity::Warning && !before.contains(f));
    proposal.remarks.extend(new.map(|finding| format!("{}: {}", finding.subject, finding.message)));
    proposal
}

// === impl Proposal ===

impl Proposal {
    /// The levels and breakers as tables, to stand in the place of the old ones; empty if nothing is proposed.
    pub fn toml(&self, measured: &[Measured]) -> String {
        let mut text = String::new();
        for level in self.config.levels.iter().filter(|level| self.levels.contains(&level.name)) {
            for row in &level.chain {
                for one in measured.iter().filter(|one| is_of(one, row)) {
                    text += &format!("# {}\n", in_short(one));
                }
            }
            text += &write::level(level, &self.config);
            text.push('\n');
        }
        for connection in self.config.connections.iter().filter(|c| self.connections.contains(&c.name)) {
            text += &write::breaker(&connection.name, &connection.breaker);
            text.push('\n');
        }
        text
    }
}

// === levels ===

/// The level with what is proposed for it; `None`: nothing is.
fn level(level: &Level, global: &Timeouts, measured: &[Measured], remarks: &mut Vec<String>) -> Option<Level> {
    let of = |row: &Entry| measured.iter().find(|one| is_of(one, row));
    let good = |row: &Entry| of(row).filter(|one| suffices(one));
    let raced = level.chain.len() > 1;
    let mut next = level.clone();
    for row in &mut next.chain {
        if let Some(one) = good(row) {
            row.timeouts = clocks(one, row.timeouts, raced);
        }
    }
    let proposed = next.chain.iter().filter(|row| good(row).is_some()).count();
    if proposed == 0 {
        return None;
    }
    if proposed == next.chain.len() {
        // Every row says these for itself now.
        let Timeouts { first_token, suspect, stall, .. } = *global;
        next.timeouts = Timeouts { first_token, suspect, stall, ..next.timeouts };
    }
    let unknown = next.chain.iter().find(|row| good(row).is_none() && of(row).is_none_or(|one| !one.is_unreachable()));
    if let Some(row) = unknown {
        let name = format!("{}/{}", row.target.connection, row.target.model);
        remarks.push(format!("levels.{}: the order stays as it is, for too little is known of {name}", level.name));
    } else {
        let rank = |row: &Entry| {
            let p95 = good(row).and_then(|one| one.first_token.percentile(95.0));
            let errors = of(row).and_then(Measured::error_rate);
            (row.target.quality, p95.unwrap_or(f64::INFINITY), errors.unwrap_or(1.0))
        };
        next.chain.sort_by(|a, b| rank(a).partial_cmp(&rank(b)).unwrap_or(std::cmp::Ordering::Equal));
    }
    next.hedge = hedge(&next, next.chain.first().and_then(good)).or(level.hedge);
    Some(next)
}

fn clocks(one: &Measured, present: Timeouts, raced: bool) -> Timeouts {
    let mut clocks = present;
    if let Some(p99) = one.first_token.percentile(99.0).filter(|_| !one.subject.target.reasons) {
        clocks.first_token = up(3.0 * p99).max(FIRST_TOKEN);
        if clocks.connect >= clocks.first_token {
            clocks.connect = up(clocks.first_token.as_secs_f64() * 500.0);
        }
    }
    if let Some((p99, longest)) = gaps(&one.gap) {
        let suspect = up(3.0 * p99).max(SUSPECT);
        clocks.suspect = if raced { Some(suspect) } else { present.suspect };
        clocks.stall = up((4.0 * millis(suspect)).max(2.0 * longest)).max(STALL);
        clocks.idle = clocks.idle.max(clocks.stall);
    }
    clocks
}

/// `first`: what was measured of the first target of the chain.
fn hedge(level: &Level, first: Option<&Measured>) -> Option<Hedge> {
    let budget = level.hedge.map_or(level.budget, |hedge| hedge.budget);
    let first = first.filter(|one| level.chain.len() > 1 && budget > 0.0 && !one.subject.target.reasons)?;
    let [p50, p95] = [50.0, 95.0].map(|p| first.first_token.percentile(p).map(up));
    // A hedge must come well before the target is given up, whichever target it is.
    let least = level.chain.iter().map(|row| row.timeouts.first_token).min()?;
    let max = p95?.max(HEDGE).min(least / 2);
    Some(Hedge { after: After::Percentile(90.0), min: p50?.max(HEDGE).min(max), max, budget })
}

// === connections ===

/// The bound on slowness for a connection all of whose targets were measured; `None`: none, or it has it already.
fn latency(config: &Config, connection: &str, breaker: &Breaker, measured: &[Measured]) -> Option<Latency> {
    let mut slowest: Option<f64> = None;
    for row in config.levels.iter().flat_map(|level| &level.chain).filter(|row| *row.target.connection == *connection) {
        let one = measured.iter().find(|one| is_of(one, row)).filter(|one| suffices(one) && !row.target.reasons)?;
        slowest = Some(one.first_token.percentile(95.0)?.max(slowest.unwrap_or_default()));
    }
    let over_baseline = breaker.latency.and_then(|latency| latency.over_baseline);
    let p95 = up(over_baseline.unwrap_or(OVER_BASELINE) * slowest?).max(LATENCY);
    let latency = Latency { p95: Some(p95), over_baseline };
    (breaker.latency != Some(latency)).then_some(latency)
}

// === helpers ===

fn is_of(one: &Measured, row: &Entry) -> bool {
    let target = &one.subject.target;
    target.connection == row.target.connection && target.model == row.target.model
}

fn suffices(one: &Measured) -> bool {
    one.succeeded() >= LEAST && !one.is_unreachable()
}

/// The p99 and the longest of gaps that are enough to speak of.
fn gaps(gaps: &Sample) -> Option<(f64, f64)> {
    let enough = gaps.values().len() >= LEAST;
    gaps.percentile(99.0).zip(gaps.percentile(100.0)).filter(|_| enough)
}

/// A target's numbers on one line.
fn in_short(one: &Measured) -> String {
    let mut text = format!("{}: {} answers", one.name(), one.succeeded());
    for (what, sample) in [("first token", &one.first_token), ("gaps", &one.gap)] {
        if let Some(s) = sample.summary() {
            let _ = write!(text, "; {what} p50 {:.0} ms, p95 {:.0}, p99 {:.0}", s.p50, s.p95, s.p99);
        }
    }
    if let Some(rate) = one.error_rate().filter(|rate| *rate > 0.0) {
        let _ = write!(text, "; {:.1} % errors", rate * 100.0);
    }
    text
}

/// Milliseconds, rounded up to two digits and whole milliseconds.
fn up(ms: f64) -> Duration {
    let mut step = 1.0;
    while ms / step > 99.0 {
        step *= 10.0;
    }
    // A measured 2000.0000001 ms is 2 s.
    Duration::from_millis(((ms / step - 1e-6).ceil().max(1.0) * step) as u64)
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Fewer answers say nothing of the slowest hundredth.
pub const LEAST: usize = 20;

const FIRST_TOKEN: Duration = Duration::from_secs(2);
const SUSPECT: Duration = Duration::from_millis(200);
const STALL: Duration = Duration::from_millis(1500);
const LATENCY: Duration = Duration::from_secs(1);
/// Who is quicker is raced against noise.
const HEDGE: Duration = Duration::from_millis(80);
/// How much slower than usual is down, where the configuration does not say it.
const OVER_BASELINE: f64 = 2.0;

#[cfg(test)]
mod tests {
    #![expect(clippy::panic, reason = "a test's panic is its report")]

    use super::super::{Measured, subjects};
    use super::*;
    use crate::config::{Resolver, load};
    use crate::failure::Kind;

    struct Keys;

    impl Resolver for Keys {
        fn env(&self, _: &str) -> Option<String> {
            Some("sk-hush".to_owned())
        }

        fn file(&self, _: &str) -> Result<String, String> {
            Err("there are no files".to_owned())
        }
    }

    const CONNECTIONS: &str = "
        [connections.a]
        dialect = \"chat\"
        base_url = \"http://127.0.0.1:1/v1\"
        domains = [\"vendor:a\"]
        [connections.b]
        dialect = \"anthropic\"
        base_url = \"http://127.0.0.1:2\"
        domains = [\"vendor:b\"]
    ";

    const LEVEL: &str = "
        [levels.n]
        chain = [{ connection = \"a\", model = \"1\" }, { connection = \"b\", model = \"2\" }]
    ";

    fn config(text: &str) -> Config {
        let loaded = load(text, "segue.toml", &Keys);
        let lines =
            |all: Vec<crate::config::Problem>| all.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        loaded.unwrap_or_else(|all| panic!("{}\n{text}", lines(all))).config
    }

    /// `first` and `gap`: the fastest of a hundred; the slowest takes twice as long.
    fn measured(config: &Config, numbers: &[(f64, f64, usize, usize)]) -> Vec<Measured> {
        let spread =
            |least: f64, count: usize| Sample::new((1..=count).map(|n| least * (1.0 + n as f64 / count as f64)));
        let of = |(subject, &(first, gap, answers, failures)): (_, &(f64, f64, usize, usize))| {
            let mut one = Measured::none(&subject);
            one.first_token = spread(first, answers);
            one.total = spread(first * 3.0, answers);
            one.gap = spread(gap, answers * 3);
            if failures > 0 {
                one.failures.insert(Kind::ServerError, failures);
            }
            one
        };
        subjects(config, &[]).into_iter().zip(numbers).map(of).collect()
    }

    #[test]
    fn every_rule_gives_what_its_table_says() {
        let config = config(&format!("{CONNECTIONS}{LEVEL}"));
        let measured = measured(&config, &[(500.0, 100.0, 100, 0), (100.0, 10.0, 100, 0)]);
        let proposal = propose(&config, &measured);
        assert_eq!(proposal.remarks, Vec::<String>::new());
        let level = &proposal.config.levels[0];
        let names: Vec<&str> = level.chain.iter().map(|row| &*row.target.connection).collect();
        assert_eq!(names, ["b", "a"], "the quicker one goes first");
        let ms = Duration::from_millis;
        let of = |index: usize| level.chain[index].timeouts;
        // a: first tokens from 505 to 1000 ms, gaps from 100 to 200.
        let a = of(1);
        assert_eq!((a.first_token, a.suspect, a.stall), (ms(3000), Some(ms(600)), ms(2400)));
        assert_eq!((a.connect, a.idle), (ms(2000), ms(30_000)), "nothing is wrong with these");
        // b: from 101 to 200 ms, gaps from 10 to 20: the least that is proposed.
        let b = of(0);
        assert_eq!((b.first_token, b.suspect, b.stall, b.connect), (ms(2000), Some(ms(200)), ms(1500), ms(1000)));
        let expected = Hedge { after: After::Percentile(90.0), min: ms(150), max: ms(200), budget: 0.1 };
        assert_eq!(level.hedge, Some(expected), "p50 is 150 ms, p95 195 ms");
        let latency = |index: usize| proposal.config.connections[index].breaker.latency.and_then(|l| l.p95);
        assert_eq!((latency(0), latency(1)), (Some(ms(2000)), Some(ms(1000))));
    }

    #[test]
    fn what_is_proposed_reads_back_and_stands_up_to_the_check() {
        let more = "min_quality = 2\nretries = 2\nhedge = { after = \"150ms\", budget = 0.05 }\n\
                    timeouts = { first_token = \"900ms\", connect = \"500ms\", turn = \"40s\" }\nbackoff = { base = \"100ms\" }";
        let before = config(&format!("{CONNECTIONS}{LEVEL}{more}"));
        let measured = measured(&before, &[(500.0, 100.0, 100, 1), (100.0, 10.0, 100, 0)]);
        let proposal = propose(&before, &measured);
        let toml = proposal.toml(&measured);
        let after = config(&format!("{CONNECTIONS}{toml}"));
        assert_eq!(after.levels, proposal.config.levels, "{toml}");
        assert_eq!(after.connections, proposal.config.connections, "{toml}");
        let level = &after.levels[0];
        assert_eq!((level.min_quality, level.retries, level.timeouts.turn), (Some(2), 2, Duration::from_secs(40)));
        assert_eq!(level.hedge.map(|h| h.budget), Some(0.05));
        assert!(findings(&after).iter().all(|f| f.severity != Severity::Warning), "{:?}", findings(&after));
        assert!(toml.contains("# a/1: 100 answers; first token p50 750 ms") && toml.contains("1.0 % errors"), "{toml}");
        assert!(!toml.contains("hush"));
    }

    #[test]
    fn nothing_is_proposed_on_too_few_answers() {
        let config = config(&format!("{CONNECTIONS}{LEVEL}"));
        let few = measured(&config, &[(500.0, 100.0, 19, 0), (100.0, 10.0, 100, 0)]);
        let proposal = propose(&config, &few);
        let (old, new) = (&config.levels[0], &proposal.config.levels[0]);
        assert_eq!(new.chain[0], old.chain[0]);
        assert_ne!(new.chain[1].timeouts, old.chain[1].timeouts);
        assert_eq!(new.hedge, None, "of the first target too little is known");
        let remarks = proposal.remarks.join("\n");
        assert!(remarks.contains("a/1: 19 answers, and 20 are needed"), "{remarks}");
        assert!(remarks.contains("levels.n: the order stays as it is, for too little is known of a/1"), "{remarks}");
        assert_eq!(proposal.connections, ["b".into()]);

        let proposal = propose(&config, &measured(&config, &[(1.0, 1.0, 3, 0), (1.0, 1.0, 3, 0)]));
        assert_eq!((proposal.levels.len(), proposal.toml(&few).as_str()), (0, ""));
    }

    #[test]
    fn what_cannot_be_relied_on_goes_last_but_quality_goes_first() {
        let text = "[levels.n]\nchain = [{ connection = \"a\", model = \"1\" }, { connection = \"b\", model = \"2\" }, \
                    { connection = \"b\", model = \"3\", quality = 2 }]";
        let config = config(&format!("{CONNECTIONS}{text}"));
        let measured = measured(&config, &[(1.0, 1.0, 30, 70), (500.0, 1.0, 100, 0), (9.0, 1.0, 100, 0)]);
        let proposal = propose(&config, &measured);
        let order: Vec<&str> = proposal.config.levels[0].chain.iter().map(|row| &*row.target.model).collect();
        assert_eq!(order, ["2", "1", "3"]);
        assert!(proposal.remarks[0].contains("a/1: it cannot be relied on"), "{:?}", proposal.remarks);
        assert_eq!(proposal.connections, ["b".into()]);
        let slowest = proposal.config.connections[1].breaker.latency.and_then(|l| l.p95);
        assert_eq!(slowest, Some(Duration::from_secs(2)), "twice the p95 of the slower model");
    }

    #[test]
    fn who_thinks_and_who_is_alone_keep_what_does_not_apply() {
        let text = "[levels.n]\nchain = [{ connection = \"a\", model = \"1\", reasons = true }]";
        let config = config(&format!("{CONNECTIONS}{text}"));
        let measured = measured(&config, &[(9000.0, 50.0, 100, 0)]);
        let proposal = propose(&config, &measured);
        let (old, new) = (&config.levels[0], &proposal.config.levels[0]);
        assert_eq!((new.hedge, new.chain[0].timeouts.first_token), (None, old.chain[0].timeouts.first_token));
        assert_eq!(new.chain[0].timeouts.suspect, None);
        assert_ne!(new.chain[0].timeouts.stall, old.chain[0].timeouts.stall);
        assert!(proposal.connections.is_empty());
    }

    #[test]
    fn times_are_rounded_up_to_two_digits() {
        for (ms, expected) in
            [(0.2, 1), (7.01, 8), (99.0, 99), (99.1, 100), (412.0, 420), (2000.0, 2000), (12_345.0, 13_000)]
        {
            assert_eq!(up(ms), Duration::from_millis(expected), "{ms}");
        }
    }
}
