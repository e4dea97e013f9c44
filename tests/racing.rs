//! Two attempts that race, under any schedule: what they say, in whatever order, with whatever pauses. The relay is
//! driven by hand and judged by what it does, action by action.

#![expect(clippy::disallowed_methods, reason = "a start for a clock that is moved by hand")]

use proptest::prelude::*;
use segue::chat::DialectId;
use segue::chat::modality::Modalities;
use segue::event::{Event, Finish, Signal, Step};
use segue::failure::{Declined, Failure, Kind, Stage};
use segue::relay::{Action, AttemptId, Open, Outcome, Policy, Relay};
use segue::routing::plan::Candidate;
use segue::routing::{Level, Pace, Target, Timeouts};
use segue::turn::resume::{How, Origin};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One thing that may happen next. Attempts are named by which of the open ones they are.
#[derive(Clone, Debug)]
enum Move {
    /// Time passes, and the relay is woken if it asked to be.
    Pass(u64),
    /// An attempt says the next characters of the text.
    Text(usize, usize),
    /// It says something that is not progress.
    Alive(usize),
    /// It reasons.
    Reason(usize),
    /// It finishes and ends, wherever it is in the text only at its end.
    Finish(usize),
    /// It finishes without a word, if it has said none.
    Empty(usize),
    /// It fails.
    Fail(usize, Kind),
    /// It is not made.
    Decline(usize, bool),
    /// The client stops reading, or reads again.
    Block(bool),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let kind = prop_oneof![
        Just(Kind::Reset),
        Just(Kind::ServerError),
        Just(Kind::Overloaded),
        Just(Kind::Truncated),
        Just(Kind::RateLimited),
        Just(Kind::BadRequest)
    ];
    let one = prop_oneof![
        4 => prop_oneof![0..50_u64, 50..600_u64, 600..4000_u64].prop_map(Move::Pass),
        8 => (0..2_usize, 1..12_usize).prop_map(|(who, count)| Move::Text(who, count)),
        1 => (0..2_usize).prop_map(Move::Alive),
        1 => (0..2_usize).prop_map(Move::Reason),
        2 => (0..2_usize).prop_map(Move::Finish),
        1 => (0..2_usize).prop_map(Move::Empty),
        1 => (0..2_usize, kind).prop_map(|(who, kind)| Move::Fail(who, kind)),
        1 => (0..2_usize, any::<bool>()).prop_map(|(who, unpaid)| Move::Decline(who, unpaid)),
        1 => any::<bool>().prop_map(Move::Block),
    ];
    proptest::collection::vec(one, 1..120)
}

/// An open attempt and how far it is in the text.
struct Running {
    id: AttemptId,
    at: usize,
    said: bool,
}

struct Race {
    relay: Relay,
    now: Instant,
    running: Vec<Running>,
    opened: BTreeMap<AttemptId, bool>,
    told: String,
    /// Progress that was told since the lead last changed hands, and whose it is.
    finishes: usize,
    outcome: Option<Outcome>,
}

const TRUTH: &str = "One two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen.";

impl Race {
    fn new(hedge: u64, pace: bool, retries: u32) -> Self {
        let timeouts = Timeouts {
            first_token: Duration::from_secs(2),
            stall: Duration::from_secs(3),
            suspect: Some(Duration::from_millis(200)),
            pace: pace.then_some(Pace { chars: 15.0, window: Duration::from_secs(1) }),
            ..Timeouts::default()
        };
        let candidates = ["a", "b"].map(|name| {
            let mut candidate = Candidate::new(Arc::new(Target::new(name, "m", DialectId::Chat)), timeouts);
            (candidate.how, candidate.hedge_after) = (How::Prefill, Some(Duration::from_millis(hedge)));
            candidate
        });
        let mut level = Level::new("race", Vec::new());
        level.retries = retries;
        let policy = Policy {
            level: Arc::new(level),
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
            deadline: Duration::from_secs(120),
            seed: hedge,
        };
        let now = Instant::now();
        let relay = Relay::new(policy, candidates.to_vec(), now);
        let (running, opened) = (Vec::new(), BTreeMap::new());
        Self { relay, now, running, opened, told: String::new(), finishes: 0, outcome: None }
    }

    fn play(&mut self, step: &Move, most: usize) -> Result<(), TestCaseError> {
        let said = |running: &mut Running, events: Vec<Event>| {
            running.said = true;
            Signal::Step(Step { events: events.into(), raw: None })
        };
        let signal = match step {
            Move::Pass(ms) => {
                self.now += Duration::from_millis(*ms);
                if self.relay.poll_timeout().is_some_and(|due| due <= self.now) {
                    self.relay.handle_timeout(self.now);
                }
                None
            }
            Move::Block(true) => {
                self.relay.handle_blocked(self.now);
                None
            }
            Move::Block(false) => {
                self.relay.handle_unblocked(self.now);
                None
            }
            Move::Text(who, count) => self.running.get_mut(*who).filter(|r| r.at < TRUTH.len()).map(|running| {
                let end = (running.at + count).min(TRUTH.len());
                let text = TRUTH[running.at..end].to_owned();
                running.at = end;
                (running.id, said(running, vec![Event::Text { choice: 0, text }]))
            }),
            Move::Alive(who) => self.running.get(*who).map(|r| (r.id, Signal::Step(Step::of(Event::Alive)))),
            Move::Reason(who) => self
                .running
                .get_mut(*who)
                .map(|running| (running.id, said(running, vec![Event::Reasoning { choice: 0, text: "Hm. ".into() }]))),
            Move::Finish(who) => self.running.get_mut(*who).filter(|r| r.at == TRUTH.len()).map(|running| {
                let finish = Event::Finish { choice: 0, reason: Finish::Stop, stop_sequence: None };
                (running.id, said(running, vec![finish]))
            }),
            Move::Empty(who) => self.running.get_mut(*who).filter(|r| !r.said && r.at == 0).map(|running| {
                // It says no more: whoever has finished is at the end of the text.
                running.at = TRUTH.len();
                let finish = Event::Finish { choice: 0, reason: Finish::Stop, stop_sequence: None };
                (running.id, said(running, vec![finish]))
            }),
            Move::Fail(who, kind) => {
                self.running.get(*who).map(|r| (r.id, Signal::Failed(Box::new(Failure::new(*kind, Stage::Streaming)))))
            }
            Move::Decline(who, unpaid) => self.running.get(*who).filter(|r| !r.said).map(|running| {
                let why = if *unpaid { Declined::Budget } else { Declined::CircuitOpen { until: None } };
                (running.id, Signal::Declined(Box::new(why)))
            }),
        };
        if let Some((id, signal)) = signal {
            self.relay.handle_signal(id, signal, self.now);
        }
        self.judge(most)
    }

    /// Does what the relay says, and checks each action against what must always hold.
    fn judge(&mut self, most: usize) -> Result<(), TestCaseError> {
        while let Some(action) = self.relay.poll_action() {
            prop_assert!(self.outcome.is_none(), "{action:?} after the end");
            match action {
                Action::Open(open) => self.open(&open, most)?,
                Action::Pay { id } => prop_assert!(!self.opened.contains_key(&id), "{:?} is paid for late", id),
                Action::Drop { id, .. } => {
                    prop_assert_eq!(self.opened.insert(id, true), Some(false), "{:?} is dropped once", id);
                    self.running.retain(|r| r.id != id);
                }
                Action::Emit(step) => {
                    if step.is_progress() {
                        prop_assert!(self.running.len() <= 1, "the loser is gone before the winner's first word");
                    }
                    self.tell(&step)?;
                }
                Action::Spliced { id } | Action::Check { id, .. } => {
                    prop_assert_eq!(self.opened.get(&id), Some(&false))
                }
                Action::Close(outcome) => {
                    prop_assert!(self.running.is_empty(), "{} attempts outlive the turn", self.running.len());
                    prop_assert!(self.opened.values().all(|dropped| *dropped), "every attempt was given back");
                    let complete = matches!(outcome, Outcome::Complete(_));
                    prop_assert_eq!(self.finishes, usize::from(complete), "{:?}", outcome);
                    self.outcome = Some(outcome);
                }
            }
        }
        Ok(())
    }

    fn open(&mut self, open: &Open, most: usize) -> Result<(), TestCaseError> {
        let at = match &open.carry.origin {
            Origin::Fresh => 0,
            Origin::Continue(on) => {
                prop_assert_eq!(&*on.delivered, &*self.told, "it is given what the client has, to the character");
                self.told.len()
            }
        };
        self.opened.insert(open.id, false);
        self.running.push(Running { id: open.id, at, said: false });
        prop_assert!(self.running.len() <= 2, "three attempts are open");
        prop_assert!(self.opened.len() <= most, "{} attempts were opened", self.opened.len());
        self.relay.handle_signal(open.id, Signal::Sent, self.now);
        Ok(())
    }

    fn tell(&mut self, step: &Step) -> Result<(), TestCaseError> {
        for event in &step.events {
            match event {
                Event::Text { text, .. } => {
                    prop_assert_eq!(self.finishes, 0, "text after the finish");
                    self.told.push_str(text);
                }
                Event::Finish { .. } => self.finishes += 1,
                _ => {}
            }
        }
        prop_assert!(TRUTH.starts_with(&self.told), "{:?} is no beginning of the text", self.told);
        Ok(())
    }

    /// Lets time pass until the turn is over.
    fn wait(&mut self, most: usize) -> Result<(), TestCaseError> {
        self.relay.handle_unblocked(self.now);
        for _ in 0..200 {
            let Some(due) = self.relay.poll_timeout().filter(|_| self.outcome.is_none()) else { break };
            self.now = due.max(self.now);
            self.relay.handle_timeout(self.now);
            self.judge(most)?;
        }
        prop_assert!(self.outcome.is_some(), "the turn does not end");
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_two_attempts_do_the_turn_is_exact_bounded_and_honest(
        steps in moves(), hedge in 1..1500_u64, pace in any::<bool>(), retries in 0..2_u32,
    ) {
        let most = 2 * 2 + retries as usize + unavailable(&steps);
        let mut race = Race::new(hedge, pace, retries);
        race.judge(most)?;
        for step in &steps {
            race.play(step, most)?;
        }
        race.wait(most)?;
    }
}

/// An attempt that could not be made is no try.
fn unavailable(steps: &[Move]) -> usize {
    steps.iter().filter(|step| matches!(step, Move::Decline(..))).count()
}
