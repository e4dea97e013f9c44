//! From records to numbers.
//!
//! What follows from the seed stands apart from what a clock measured: [`Kept`] is the same each time, [`Timed`] is not.

use super::judge::Verdict;
use super::manifest::Mode;
use super::record::{End, Heard, Record};
use crate::bench::stats::{Sample, Share, Spread, Summary};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All systems under one manifest, in the order in which they first appear.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Score {
    /// One for each system.
    pub systems: Vec<System>,
}

/// One system.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    /// Its name.
    pub name: String,
    /// What it kept.
    pub kept: Kept,
    /// How long it took.
    pub timed: Timed,
}

/// What a system kept: conversations that were asked for their fact, and answers that broke in the middle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// The continuity preservation rate: probes that were answered with the fact.
    pub cpr: Option<Share>,
    /// The same for each run.
    pub by_run: Vec<Slice>,
    /// For each number of messages.
    pub by_length: Vec<Slice>,
    /// For each kind of fact.
    pub by_fact: Vec<Slice>,
    /// For the number of providers that failed one after the other, at the worst turn of the conversation.
    pub by_depth: Vec<Slice>,
    /// For the last planned failure of the conversation.
    pub by_mode: Vec<Slice>,
    /// Conversations in which a planned failure struck.
    pub struck: usize,
    /// The seam integrity rate: of the answers whose provider failed in the middle, those that were heard whole.
    pub sir: Option<Share>,
    /// The same for the number of providers that failed one after the other.
    pub sir_by_depth: Vec<Slice>,
    /// For each kind of failure.
    pub sir_by_mode: Vec<Slice>,
    /// Answers whose provider failed in the middle and of which nobody can know whether they are whole.
    pub seams_unknown: usize,
    /// Answers of any kind whose text was not whole.
    pub garbled: usize,
    /// Answers that ended as finished and were not.
    pub faked: usize,
    /// How answers ended.
    pub ends: Ends,
    /// Why facts were not kept.
    pub not_kept: Causes,
}

/// A part of the conversations, or of the answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// Which.
    pub of: String,
    /// How many of it.
    pub rate: Share,
}

/// How answers ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ends {
    /// With a finish.
    pub finished: usize,
    /// With an error that was told.
    pub error: usize,
    /// Without a word.
    pub cut: usize,
}

/// Why facts were not kept, a conversation each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Causes {
    /// The probe got no whole answer: it failed, was cut, or ended as finished without its last words.
    pub no_answer: usize,
    /// A forwarding failure: the fact did not reach the provider that answered.
    pub forwarding: usize,
    /// A model failure: the fact reached the provider, and it was not in the answer.
    pub model: usize,
    /// Nobody can know what reached the provider.
    pub unknown: usize,
}

/// How long a system took, and what it spent. Times are in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// The continuity latency overhead: of each answer that a failure struck and that was finished, its whole time less
    /// that of the same answer of the same conversation and run without failures.
    pub clo: Option<Spread>,
    /// The same for the time to the first character.
    pub clo_first: Option<Spread>,
    /// Struck answers that have no pair, or that were not finished in both.
    pub unpaired: usize,
    /// From the request to the end, all finished answers.
    pub total: Option<Summary>,
    /// From the request to the first character.
    pub first: Option<Summary>,
    /// The splice gap: the silence at the seam.
    pub gap: Option<Summary>,
    /// The longest silence of each answer between two pieces of text.
    pub silence: Option<Summary>,
    /// The queue wait: end to end less what a provider was at work.
    pub queue: Option<Summary>,
    /// Characters that were lost. It is measured like the two after it: a reset takes with it what nobody has read yet.
    pub lost: usize,
    /// Characters that were told twice.
    pub repeated: usize,
    /// Characters of another conversation, or that no provider said.
    pub foreign: usize,
    /// How often clients asked again.
    pub client_retries: u64,
    /// Requests that reached a provider.
    pub provider_requests: u64,
    /// The same for each answer.
    pub requests_per_answer: f64,
    /// Tokens that providers were sent.
    pub tokens_sent: u64,
    /// Tokens that providers generated.
    pub tokens_generated: u64,
    /// All overheads.
    #[serde(skip)]
    pub overheads: Sample,
    /// All times of finished answers.
    #[serde(skip)]
    pub totals: Sample,
    /// All splice gaps.
    #[serde(skip)]
    pub gaps: Sample,
}

/// The numbers of `records`. `verdicts` has one for each of them, in their order; a record without one kept nothing.
/// `baseline` holds the same systems' records without failures, paired by system, run and conversation.
pub fn score(records: &[Record], baseline: &[Record], verdicts: &[Verdict]) -> Score {
    let baseline: BTreeMap<Key<'_>, &Record> = baseline.iter().map(|record| (key(record), record)).collect();
    let judged: Vec<Judged<'_>> = records
        .iter()
        .enumerate()
        .map(|(index, record)| (record, verdicts.get(index).is_some_and(|verdict| verdict.preserved)))
        .collect();
    let mut names: Vec<&str> = Vec::new();
    for record in records {
        if !names.contains(&record.system.as_str()) {
            names.push(&record.system);
        }
    }
    let system = |name: &str| {
        let own: Vec<Judged<'_>> = judged.iter().filter(|(record, _)| record.system == name).copied().collect();
        System { name: name.to_owned(), kept: Kept::of(&own), timed: Timed::of(&own, &baseline) }
    };
    Score { systems: names.into_iter().map(system).collect() }
}

/// A record, and whether it kept its fact.
type Judged<'a> = (&'a Record, bool);

/// What pairs a record with one without failures.
type Key<'a> = (&'a str, u32, &'a str);

// === impl Kept ===

impl Kept {
    fn of(records: &[Judged<'_>]) -> Self {
        let by = |part: &dyn Fn(&Record) -> Part| slices(records.iter().copied(), part);
        let mut kept = Self {
            cpr: Share::count(records.iter().map(|(_, preserved)| *preserved)),
            by_run: by(&|record| counted(record.run as usize + 1)),
            by_length: by(&|record| counted(record.length)),
            by_fact: by(&|record| (0, record.fact_type.clone())),
            by_depth: by(&|record| counted(record.turns.iter().map(|heard| heard.depth).max().unwrap_or_default())),
            by_mode: by(&|record| of_mode(record.turns.iter().rev().find_map(|heard| heard.planned))),
            struck: records.iter().filter(|(record, _)| record.turns.iter().any(|heard| heard.struck)).count(),
            ..Self::default()
        };
        let answers = || records.iter().flat_map(|(record, _)| &record.turns);
        let seams = || answers().filter(|heard| heard.struck && heard.planned.is_some_and(|mode| mode.is_mid_turn()));
        let known = || seams().filter(|heard| heard.seam.is_some()).map(|heard| (heard, is_intact(heard)));
        kept.sir = Share::count(known().map(|(_, intact)| intact));
        kept.sir_by_depth = slices(known(), |heard: &Heard| counted(heard.depth));
        kept.sir_by_mode = slices(known(), |heard: &Heard| of_mode(heard.planned));
        kept.seams_unknown = seams().filter(|heard| heard.seam.is_none()).count();
        for heard in answers() {
            match heard.end {
                End::Finished => kept.ends.finished += 1,
                End::Error(_) => kept.ends.error += 1,
                End::Cut => kept.ends.cut += 1,
            }
            let Some(seam) = heard.seam else { continue };
            kept.garbled += usize::from(!seam.is_whole());
            kept.faked += usize::from(seam.faked);
        }
        for (record, _) in records.iter().filter(|(_, preserved)| !preserved) {
            let probe = record.turns.last();
            // Where the words with the fact were lost on the way, the model is not to blame, whatever the end says.
            let whole =
                |heard: &&Heard| heard.end == End::Finished && heard.seam.is_none_or(|s| s.lost == 0 && !s.faked);
            match probe.filter(whole).map(|heard| heard.history_arrived) {
                Some(Some(false)) => kept.not_kept.forwarding += 1,
                Some(Some(true)) => kept.not_kept.model += 1,
                Some(None) => kept.not_kept.unknown += 1,
                None => kept.not_kept.no_answer += 1,
            }
        }
        kept
    }
}

// === impl Timed ===

impl Timed {
    fn of(records: &[Judged<'_>], baseline: &BTreeMap<Key<'_>, &Record>) -> Self {
        let mut timed = Self::default();
        let (mut totals, mut firsts) = (Vec::new(), Vec::new());
        let mut answered = 0_u64;
        for (record, _) in records {
            let calm = baseline.get(&key(record));
            for heard in &record.turns {
                answered += 1;
                timed.client_retries += u64::from(heard.client_retries);
                timed.provider_requests += u64::from(heard.provider_requests);
                timed.tokens_sent += heard.tokens[0];
                timed.tokens_generated += heard.tokens[1];
                if !heard.struck {
                    continue;
                }
                let pair = calm.and_then(|calm| calm.turns.iter().find(|other| other.turn == heard.turn));
                match pair {
                    Some(calm) if calm.end == End::Finished && heard.end == End::Finished => {
                        totals.push((calm.total_ms, heard.total_ms));
                        firsts.extend(calm.first_ms.zip(heard.first_ms));
                    }
                    _ => timed.unpaired += 1,
                }
            }
        }
        let answers = || records.iter().flat_map(|(record, _)| &record.turns);
        let finished = || answers().filter(|heard| heard.end == End::Finished);
        for seam in answers().filter_map(|heard| heard.seam) {
            timed.lost += seam.lost;
            timed.repeated += seam.repeated;
            timed.foreign += seam.foreign;
        }
        timed.overheads = Sample::paired(totals);
        timed.totals = Sample::new(finished().map(|heard| heard.total_ms));
        timed.gaps = Sample::new(answers().filter_map(|heard| heard.gap_ms));
        timed.clo = timed.overheads.spread();
        timed.clo_first = Sample::paired(firsts).spread();
        timed.total = timed.totals.summary();
        timed.first = Sample::new(finished().filter_map(|heard| heard.first_ms)).summary();
        timed.gap = timed.gaps.summary();
        timed.silence = Sample::new(answers().map(|heard| heard.silence_ms)).summary();
        timed.queue = Sample::new(finished().map(|heard| (heard.total_ms - heard.provider_ms).max(0.0))).summary();
        timed.requests_per_answer = timed.provider_requests as f64 / answered.max(1) as f64;
        timed
    }
}

// === helpers ===

fn key(record: &Record) -> Key<'_> {
    (&record.system, record.run, &record.conversation)
}

/// Heard whole, and to its end.
fn is_intact(heard: &Heard) -> bool {
    heard.end == End::Finished && heard.seam.is_some_and(|seam| seam.is_whole())
}

/// The share of each part, in the order of its number, then of its name.
fn slices<'a, T: 'a + ?Sized>(all: impl Iterator<Item = (&'a T, bool)>, part: impl Fn(&T) -> Part) -> Vec<Slice> {
    let mut parts: BTreeMap<Part, (usize, usize)> = BTreeMap::new();
    for (item, hit) in all {
        let (hits, of) = parts.entry(part(item)).or_default();
        *hits += usize::from(hit);
        *of += 1;
    }
    let rate = |((_, of), (hits, all))| Some(Slice { of, rate: Share::new(hits, all)? });
    parts.into_iter().filter_map(rate).collect()
}

/// A part's place and name.
type Part = (usize, String);

fn counted(count: usize) -> Part {
    (count, count.to_string())
}

fn of_mode(mode: Option<Mode>) -> Part {
    mode.map_or_else(|| (0, "none".to_owned()), |mode| (1 + mode as usize, mode.name().to_owned()))
}

#[cfg(test)]
mod tests;
