//! Random turns over the relay and the seam in virtual time: one to four providers, every break at every position, every
//! behaviour at a join, races, clients that leave or stop reading. What must hold, holds in every one.
//!
//! `SEGUE_TURNS=200000 cargo test --release --test turns` runs as many as a release is held to; `SEGUE_SEED=n` plays a
//! seed that failed, alone.
#![expect(
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test's panic is its report; it reads its own settings"
)]

use segue::chat::DialectId;
use segue::chat::modality::Modalities;
use segue::event::{Event, Finish, Signal};
use segue::failure::Declined;
use segue::relay::journal::End;
use segue::relay::{Checked, Open, Outcome, Policy};
use segue::rig::random;
use segue::rig::script::{Break, Continuation, Script};
use segue::rig::seed::Dice;
use segue::rig::sim::{Host, Report, Sim};
use segue::routing::plan::Candidate;
use segue::routing::{Backoff, Delivery, Level, Pace, RateLimited, Target, Timeouts};
use segue::turn::resume::{Continue, How, Origin};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[test]
fn every_turn_is_exact_bounded_and_honest() {
    let setting = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(seed) = setting("SEGUE_SEED") {
        return judge(seed, true);
    }
    let turns = setting("SEGUE_TURNS").unwrap_or(20_000);
    let start = Instant::now();
    let mut tally = Tally::default();
    for seed in 0..turns {
        judge_into(seed, false, &mut tally);
    }
    println!(
        "{turns} turns in {:.1} s: {} complete, {} failed, {} interrupted; {} spliced, {} raced",
        start.elapsed().as_secs_f64(),
        tally.complete,
        tally.failed,
        tally.interrupted,
        tally.spliced,
        tally.raced,
    );
    // The schedules must be worth trying: all kinds of ends occur, and often.
    for (what, count) in
        [("complete", tally.complete), ("failed", tally.failed), ("spliced", tally.spliced), ("raced", tally.raced)]
    {
        assert!(count * 50 > turns, "only {count} of {turns} turns were {what}");
    }
}

#[test]
fn whatever_can_be_rescued_is_rescued_to_the_last_character() {
    let mut unsure = 0;
    for seed in 0..20_000 {
        let scripts = random::rescuable_chain(seed);
        let truth = scripts[0].text();
        let mut dice = Dice::labelled(seed, 77);
        let mut sim = sim(seed, scripts, &mut dice);
        patient(&mut sim);
        let report = sim.run();
        if let Some(rule) = &report.broken {
            panic!("seed {seed}: {rule}");
        }
        if too_little_to_recognise(&sim, &report) || Joins::of(&sim, &report) != Joins::Exact {
            unsure += 1;
            continue;
        }
        assert!(report.is_complete(), "seed {seed}: {:?}", report.outcome);
        assert_eq!(report.text(), truth, "seed {seed}");
    }
    assert!(unsure < 1000, "{unsure} of 20000 turns could not be judged");
}

/// A preamble is only taken away before an anchor that is long enough to be no coincidence.
fn too_little_to_recognise(sim: &Sim, report: &Report) -> bool {
    report.opens.iter().any(|open| match &open.carry.origin {
        Origin::Continue(on) => {
            sim.scripts[open.seat].continuation == Continuation::Preamble
                && on.anchor.text.chars().count() < LEAST_ANCHOR
        }
        Origin::Fresh => false,
    })
}

#[derive(Default)]
struct Tally {
    complete: u64,
    failed: u64,
    interrupted: u64,
    spliced: u64,
    raced: u64,
}

/// A world in which some structured answers are wrong, and some cannot be checked.
struct Odd;

impl Host for Odd {
    fn ask(&mut self, _: &Open, _: Instant) -> Result<(), Declined> {
        Ok(())
    }

    fn heard(&mut self, _: &Open, _: &Signal, _: Instant) {}

    fn dropped(&mut self, _: &Open, _: End, _: bool, _: Instant) {}

    fn check(&mut self, answer: &str) -> (Duration, Checked) {
        let checked = match answer.len() % 5 {
            0 => Checked::Differs,
            1 => Checked::Unsure("odd"),
            _ => Checked::Fits,
        };
        (Duration::from_millis(answer.len() as u64 % 7 * 100), checked)
    }
}

fn judge(seed: u64, tell: bool) {
    judge_into(seed, tell, &mut Tally::default());
}

fn judge_into(seed: u64, tell: bool, tally: &mut Tally) {
    let mut dice = Dice::labelled(seed, 99);
    let scripts = random::chain(seed);
    let sim = sim(seed, scripts, &mut dice);
    let report = sim.run_in(&mut Odd);
    if tell {
        println!("{sim:#?}\n{report:#?}");
    }
    if let Some(rule) = &report.broken {
        panic!("seed {seed}: {rule}; play it alone with SEGUE_SEED={seed}");
    }
    if let Err(why) = exact(&sim, &report) {
        panic!("seed {seed}: {why}; play it alone with SEGUE_SEED={seed}");
    }
    match report.outcome {
        Some(Outcome::Complete(_)) => tally.complete += 1,
        Some(Outcome::Failed(_)) => tally.failed += 1,
        _ => tally.interrupted += 1,
    }
    tally.spliced += u64::from(report.journal.splices > 0);
    tally.raced += u64::from(report.opens.iter().any(|open| open.cause.is_challenge()));
}

/// What the client was told is the text that every provider tells, from its start, each character once.
fn exact(sim: &Sim, report: &Report) -> Result<(), String> {
    let truth = sim.scripts[0].text();
    let told = report.text();
    let joins = Joins::of(sim, report);
    let fits = match joins {
        Joins::Exact => truth.starts_with(&told),
        Joins::ButForSpace => squeezed(&truth).starts_with(&squeezed(&told)),
        // A provider that tells another text on purpose cannot be told from one that has a new thought.
        Joins::Unknowable => true,
    };
    if !fits {
        return Err(format!("told {told:?}\nof   {truth:?} ({joins:?})"));
    }
    let ends_early = report
        .opens
        .iter()
        .any(|open| asked_to_go_on(open) && sim.scripts[open.seat].continuation == Continuation::Empty);
    let whole = report.is_complete() && joins == Joins::Exact && !ends_early && sim.policy.max_tokens.is_none();
    if whole && told != truth {
        return Err(format!("a whole turn told only {told:?}\nof {truth:?}"));
    }
    calls(sim, report)
}

/// Every tool call that was told whole is one that a provider made.
fn calls(sim: &Sim, report: &Report) -> Result<(), String> {
    let mut args: Vec<(String, String)> = Vec::new();
    for (_, event) in &report.told {
        match event {
            Event::ToolOpen { call, name, .. } => {
                if *call as usize != args.len() {
                    return Err(format!("call {call} was opened out of order"));
                }
                args.push((name.clone(), String::new()));
            }
            Event::ToolArgs { call, args: piece, .. } => match args.get_mut(*call as usize) {
                Some((_, all)) => all.push_str(piece),
                None => return Err("arguments of a call that was not opened".to_owned()),
            },
            _ => {}
        }
    }
    let cut_short = report.told.iter().any(|(_, e)| matches!(e, Event::Finish { reason: Finish::Length, .. }));
    if !report.is_complete() || cut_short {
        return Ok(());
    }
    let made = |script: &Script| -> Vec<(String, String)> {
        let whole = |pieces: &[String]| if pieces.is_empty() { "{}".to_owned() } else { pieces.concat() };
        script.content.tools.iter().map(|tool| (tool.name.clone(), whole(&tool.args))).collect()
    };
    let told: Vec<(String, String)> =
        args.into_iter().map(|(name, args)| (name, if args.is_empty() { "{}".to_owned() } else { args })).collect();
    let known = told.is_empty() || sim.scripts.iter().any(|script| made(script) == told);
    if known { Ok(()) } else { Err(format!("the calls {told:?} were made by nobody")) }
}

/// How far the continuations of a turn can be held to the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Joins {
    Exact,
    ButForSpace,
    Unknowable,
}

impl Joins {
    fn of(sim: &Sim, report: &Report) -> Self {
        let truth = sim.scripts[0].text();
        let of_open = |open: &Open| {
            if !asked_to_go_on(open) {
                return Self::Exact;
            }
            let Origin::Continue(on) = &open.carry.origin else { return Self::Exact };
            let prefilled = on.how == How::Prefill;
            let by_chance = goes_on_as_it_ended(&on.delivered, &truth);
            if !prefilled && starts_with_its_own_tail(on) {
                return Self::Unknowable;
            }
            match sim.scripts[open.seat].continuation {
                Continuation::RestartDiverges | Continuation::PreambleOnly | Continuation::Refuses => Self::Unknowable,
                // After a prefill nothing is expected to be repeated, so nothing is taken away.
                Continuation::Echo | Continuation::Restart | Continuation::Preamble if prefilled => Self::Unknowable,
                Continuation::Preamble if on.anchor.text.chars().count() < LEAST_ANCHOR => Self::Unknowable,
                Continuation::Verbatim if !prefilled && by_chance => Self::Unknowable,
                // Without the anchor nothing says whose the space at the join is.
                Continuation::Verbatim if !prefilled => Self::ButForSpace,
                Continuation::MissingSpace | Continuation::ExtraSpace | Continuation::ParagraphBreak => {
                    if by_chance {
                        Self::Unknowable
                    } else {
                        Self::ButForSpace
                    }
                }
                _ => Self::Exact,
            }
        };
        let mut all = Self::Exact;
        for open in &report.opens {
            // Nobody can be held to a text that another has already changed.
            let changed = all == Self::ButForSpace && asked_to_go_on(open);
            all = if changed { Self::Unknowable } else { all.max(of_open(open)) };
        }
        all
    }
}

fn asked_to_go_on(open: &Open) -> bool {
    matches!(open.carry.origin, Origin::Continue(_))
}

/// Whether the rest of `truth` begins as `delivered` ends: a text that repeats itself does. A provider that was asked
/// to repeat the end and does not cannot be told from one that does.
fn goes_on_as_it_ended(delivered: &str, truth: &str) -> bool {
    let Some(rest) = truth.strip_prefix(delivered) else { return true };
    let (ended, rest): (Vec<char>, Vec<char>) =
        (squeezed(delivered).chars().collect(), squeezed(rest).chars().collect());
    (LEAST_OVERLAP.min(ended.len())..=ended.len().min(rest.len())).any(|k| ended.ends_with(&rest[..k]))
}

/// A text of which the end is the beginning again: who repeats its end may as well be telling it from the start.
fn starts_with_its_own_tail(on: &Continue) -> bool {
    let (delivered, anchor) = (squeezed(&on.delivered), squeezed(&on.anchor.text));
    delivered.len() > anchor.len() && delivered.starts_with(&anchor)
}

/// A preamble is only taken away before an anchor of so many characters.
const LEAST_ANCHOR: usize = 12;

/// Shorter repetitions than this are never taken for the anchor, in whatever script.
const LEAST_OVERLAP: usize = 2;

fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

fn sim(seed: u64, scripts: Vec<Script>, dice: &mut Dice) -> Sim {
    let ms = |dice: &mut Dice, low, high| Duration::from_millis(dice.between(low, high) as u64);
    let candidates = (0..scripts.len())
        .map(|index| {
            let mut target = Target::new(["a", "b", "c", "d"][index], "m", DialectId::Chat);
            target.quality = dice.between(1, 3) as u32;
            target.deterministic = dice.once_in(2);
            let timeouts = Timeouts {
                first_token: ms(dice, 300, 8000),
                stall: ms(dice, 300, 5000),
                idle: ms(dice, 1000, 30_000),
                thinking: ms(dice, 5000, 60_000),
                suspect: dice.once_in(2).then(|| ms(dice, 50, 1000)),
                pace: dice.once_in(4).then(|| Pace { chars: 15.0, window: Duration::from_secs(3) }),
                ..Timeouts::default()
            };
            let mut candidate = Candidate::new(Arc::new(target), timeouts);
            candidate.how = if dice.once_in(3) { How::Prefill } else { How::Instruct };
            candidate.echoes = candidate.how == How::Prefill && scripts[index].continuation == Continuation::Echo;
            candidate.hedge_after = dice.once_in(3).then(|| ms(dice, 50, 1500));
            candidate.reasons = dice.once_in(8);
            candidate
        })
        .collect();
    let mut level = Level::new("random", Vec::new());
    level.retries = dice.below(3) as u32;
    level.same_first = dice.once_in(6);
    level.backoff = Backoff { base: ms(dice, 10, 1000), cap: Duration::from_secs(30) };
    level.rate_limited = [RateLimited::Auto, RateLimited::Wait, RateLimited::Switch][dice.below(3)];
    level.tool_calls = if dice.once_in(3) { Delivery::Stream } else { Delivery::Hold };
    level.structured = if dice.once_in(2) { Delivery::Stream } else { Delivery::Hold };
    let policy = Policy {
        level: Arc::new(level),
        choices: 1,
        max_tokens: dice.once_in(12).then(|| dice.between(1, 60) as u64),
        prompt_estimate: 10,
        asked_in: Modalities::NONE,
        continuable: true,
        structured: dice.once_in(12),
        races: !dice.once_in(8),
        max_turn: 1 << 20,
        whole: false,
        retry_after_cap: Duration::from_secs(60),
        deadline: ms(dice, 5000, 120_000),
        seed,
    };
    let leaves = dice.once_in(20).then(|| ms(dice, 0, 10_000));
    let blocks = dice.once_in(10).then(|| (ms(dice, 0, 5000), ms(dice, 1, 60_000)));
    Sim { policy, candidates, scripts, leaves, blocks, seed }
}

/// Nobody leaves, nobody is impatient enough to give up on the last provider, and every continuation is asked for in
/// words, which is what the scripts of a rescuable chain obey.
fn patient(sim: &mut Sim) {
    (sim.leaves, sim.blocks) = (None, None);
    sim.policy.max_tokens = None;
    sim.policy.structured = false;
    sim.policy.deadline = Duration::from_secs(24 * 3600);
    for candidate in &mut sim.candidates {
        candidate.how = How::Instruct;
        candidate.echoes = false;
    }
    if let Some(last) = sim.candidates.last_mut() {
        let hour = Duration::from_secs(3600);
        (last.timeouts.first_token, last.timeouts.stall, last.timeouts.idle) = (hour, hour, hour);
        last.timeouts.thinking = hour;
    }
    for script in &mut sim.scripts {
        if let Some(fault) = &mut script.fault
            && let Break::Dribble { .. } = fault.how
        {
            fault.how = Break::Silence;
        }
    }
}
