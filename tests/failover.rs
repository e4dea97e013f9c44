//! What racing must achieve, in virtual time: hedges take the wait out of an incident for few duplicates, speculative
//! continuation bounds how long a voice is silent, and a slow leader is overtaken, but not chased for ever.

#![expect(clippy::panic, clippy::expect_used, clippy::disallowed_methods, reason = "a test's panic is its report")]

use segue::bench::failover::{Cell, Experiment, Latency, Mode, Policy};
use segue::chat::modality::Modalities;
use segue::event::{Event, Signal};
use segue::relay::journal::{Cause, End};
use segue::relay::{self, Open};
use segue::rig::script::{Break, Script};
use segue::rig::sim::{Report, Sim};
use segue::rig::{signals, text};
use segue::routing::plan::Candidate;
use segue::routing::{Level, Pace, Target, Timeouts};
use segue::turn::resume::{How, Origin};
use std::sync::Arc;
use std::time::{Duration, Instant};

const MS: Duration = Duration::from_millis(1);

#[test]
fn hedging_removes_nine_tenths_of_the_p99_penalty_for_less_than_a_tenth_of_duplicates() {
    for (seed, latency) in [(1, Latency::LogNormal), (2, Latency::LogNormal), (3, Latency::HeavyTailed)] {
        let experiment = Experiment { seed, turns: 2500, ..Experiment::default() };
        let p99 = |cell: &Cell| cell.first_tokens.percentile(99.0).expect("first tokens");
        let healthy = p99(&experiment.cell(latency, Mode::Healthy, Policy::Sequential));
        let sequential = experiment.cell(latency, Mode::Slow, Policy::Sequential);
        let hedged = experiment.cell(latency, Mode::Slow, Policy::Hedged);
        let removed = 1.0 - (p99(&hedged) - healthy) / (p99(&sequential) - healthy);
        assert!(p99(&sequential) > healthy + 7000.0, "seed {seed}: the incident must hurt: {}", p99(&sequential));
        assert!(removed >= 0.9, "seed {seed}, {latency:?}: {removed}");
        assert!(hedged.account.duplicate_requests < 0.10, "seed {seed}: {}", hedged.account.duplicate_requests);
        assert_eq!((hedged.completed, hedged.exact), (1.0, Some(1.0)), "seed {seed}");
    }
}

#[test]
fn steady_state_costs_nothing_and_an_incident_costs_the_fallbacks_first_token() {
    let experiment = Experiment { turns: 1500, ..Experiment::default() };
    let healthy = experiment.cell(Latency::LogNormal, Mode::Healthy, Policy::Hedged);
    let steady = healthy.account.steady_state_overhead_ms.expect("healthy turns");
    assert!(steady < 0.01, "{steady}");
    // The mean of the second target's first token: 300 ms more than the mean of the log-normal distribution.
    let mean = 300.0 + 180.0 * (0.641_f64.powi(2) / 2.0).exp();
    let reset = experiment.cell(Latency::LogNormal, Mode::Reset, Policy::Sequential);
    let incident = reset.account.incident_overhead_ms.expect("failovers");
    assert!((incident - mean).abs() < 60.0, "{incident} for {mean}");
}

#[test]
fn nothing_leaks_out_of_a_world_whose_circuits_open_and_close() {
    for mode in [Mode::Slow, Mode::Stall, Mode::Reset, Mode::Error] {
        let experiment = Experiment { turns: 800, warm: 200, share: 0.4, circuits: true, ..Experiment::default() };
        let start = Instant::now();
        let mut world = experiment.world(Policy::Speculative, start);
        let mut ended = 0;
        world.play(start, experiment.arrivals(Latency::LogNormal, mode), |_, report| {
            ended += 1;
            assert_eq!(report.broken, None, "{mode:?}");
            assert!(report.is_complete(), "{mode:?}: {:?}", report.outcome);
        });
        assert_eq!((ended, world.outstanding()), (1000, 0), "{mode:?}");
        assert!(world.transitions(0).next().is_some() || mode == Mode::Slow || mode == Mode::Stall, "{mode:?}");
    }
}

#[test]
fn a_voice_is_silent_for_no_longer_than_suspicion_and_the_challengers_first_joined_character() {
    for (policy, seed) in [(Policy::Speculative, 5), (Policy::SpeculativePrefill, 6)] {
        let experiment = Experiment { seed, turns: 1500, share: 0.1, budget: 1.0, ..Experiment::default() };
        let start = Instant::now();
        let (mut joined, mut told) = (0, Vec::new());
        let mut world = experiment.world(policy, start);
        world.play(start, experiment.arrivals(Latency::LogNormal, Mode::Stall), |number, report| {
            assert_eq!(report.broken, None, "turn {number}");
            let suspects = |open: &&Open| open.cause == Cause::Suspect;
            let Some(open) = report.opens.iter().find(suspects).filter(|_| report.journal.splices == 1) else { return };
            let seed = experiment.seed_of(number);
            let script = &experiment.scripts(Latency::LogNormal, Mode::Stall, seed)[open.seat];
            let bound = experiment.suspect + first_joined(script, open, seed) + 5 * MS;
            let silence = report.journal.longest_silence;
            assert!(silence <= bound, "turn {number}: {silence:?} is over {bound:?}");
            joined += 1;
            told.push(silence);
        });
        assert!(joined > 100, "{policy:?}: only {joined} turns were continued");
    }
}

/// When a provider, left alone with this request, first says something that the client does not know.
fn first_joined(script: &Script, open: &Open, seed: u64) -> Duration {
    let Origin::Continue(on) = &open.carry.origin else { panic!("a challenger in mid-turn continues") };
    let owed = if on.how == How::Instruct { on.anchor.text.chars().filter(|c| !c.is_whitespace()).count() } else { 0 };
    let seed = seed.wrapping_add(u64::from(open.id.0) << 32).wrapping_add(open.seat as u64);
    let mut said = 0;
    for (at, signal) in signals::timeline(script, &open.carry, seed) {
        let Signal::Step(step) = signal else { continue };
        for event in &step.events {
            match event {
                Event::Text { text, .. } => said += text.chars().filter(|c| !c.is_whitespace()).count(),
                Event::Finish { .. } => return at,
                _ => {}
            }
        }
        if said > owed {
            return at;
        }
    }
    panic!("it never goes on")
}

/// A turn of two targets: the first as it is given, the second quick.
fn duel(leader: Script, suspect: Option<Duration>, pace: Option<Pace>) -> Report {
    let timeouts = Timeouts { suspect, pace, ..Timeouts::default() };
    let candidate =
        |name: &str| Candidate::new(Arc::new(Target::new(name, "m", segue::chat::DialectId::Chat)), timeouts);
    let mut second = Script::of_pieces(leader.content.text.clone()).paced(300 * MS, 30 * MS);
    second.content.usage = false;
    let policy = relay::Policy {
        level: Arc::new(Level::new("duel", Vec::new())),
        choices: 1,
        max_tokens: None,
        prompt_estimate: 10,
        asked_in: Modalities::NONE,
        continuable: true,
        structured: false,
        races: true,
        max_turn: 1 << 20,
        whole: false,
        retry_after_cap: Duration::from_secs(60),
        deadline: Duration::from_secs(600),
        seed: 3,
    };
    let candidates = vec![candidate("a"), candidate("b")];
    Sim { policy, candidates, scripts: vec![leader, second], leaves: None, blocks: None, seed: 3 }.run()
}

fn words(count: usize) -> Vec<String> {
    text::words(&text::text(text::Kind::Prose, 6 * count, 9)).into_iter().take(count).collect()
}

#[test]
fn a_leader_that_dribbles_a_token_a_second_is_overtaken() {
    let how = Break::Dribble { gap: Duration::from_secs(1) };
    let leader = Script::of_pieces(words(100)).paced(200 * MS, 30 * MS).breaking(20, how);
    let pace = Pace { chars: 15.0, window: Duration::from_secs(3) };
    for suspect in [None, Some(400 * MS)] {
        let report = duel(leader.clone(), suspect, Some(pace));
        assert_eq!(report.broken, None);
        assert!(report.is_complete() && report.text() == leader.text(), "{:?}", report.outcome);
        assert_eq!(report.journal.attempts[0].end, Some(End::Superseded));
        // Alone it would have taken 80 s.
        assert!(report.ended < Duration::from_secs(10), "{suspect:?}: {:?}", report.ended);
        assert!(report.opens.len() <= 4, "{suspect:?}: {}", report.opens.len());
    }
}

#[test]
fn a_leader_whose_gaps_are_just_over_suspicion_does_not_make_challengers_for_ever() {
    // The challenger takes longer to join than the leader to speak again, so that each suspicion is a false alarm.
    let alarms = |gap: Duration| {
        let leader = Script::of_pieces(words(120)).paced(200 * MS, gap);
        let report = duel(leader.clone(), Some(400 * MS), None);
        assert_eq!(report.broken, None);
        assert!(report.is_complete() && report.text() == leader.text());
        assert_eq!(report.journal.splices, 0, "{gap:?}: the leader keeps the turn");
        report.opens.len() - 1
    };
    assert_eq!(alarms(390 * MS), 0);
    assert_eq!(alarms(450 * MS), 1, "the second suspicion would wait for 800 ms");
    assert_eq!(alarms(690 * MS), 1);
}

#[test]
fn suspicion_doubles_with_each_false_alarm_and_what_a_turn_opens_is_bounded() {
    // Each gap is just over what suspicion has become by then.
    let gaps: Vec<Duration> = (0..40).map(|i| (400 * MS).saturating_mul(1 << (i / 2).min(3)) + 60 * MS).collect();
    let mut leader = Script::of_pieces(words(60)).paced(200 * MS, 30 * MS);
    leader.pace.gap = segue::rig::delay::Delay::List(gaps);
    let report = duel(leader.clone(), Some(400 * MS), None);
    assert_eq!(report.broken, None);
    assert!(report.is_complete() && report.text() == leader.text());
    assert_eq!(report.opens.len(), 4, "of the five that the turn has, one is kept for a leader that really fails");
}
