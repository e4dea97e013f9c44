//! The relay in virtual time: scripts play its providers, and a clock that jumps from one thing to the next plays the
//! world.
//!
//! A simulated turn takes microseconds, so rules can be tried on hundreds of thousands of schedules. While it runs, the
//! simulation checks what must hold whatever the schedule; [`Report::broken`] names the first rule that did not.

use super::script::Script;
use super::signals;
use crate::event::{Event, Signal};
use crate::relay::journal::{End, Journal};
use crate::relay::{Action, AttemptId, Open, Outcome, Policy, Relay, Why};
use crate::routing::plan::Candidate;
use std::time::{Duration, Instant};

/// One turn to simulate.
#[derive(Clone, Debug)]
pub struct Sim {
    /// The rules.
    pub policy: Policy,
    /// Whom the turn may ask, first choice first.
    pub candidates: Vec<Candidate>,
    /// What each candidate does; as many as there are candidates.
    pub scripts: Vec<Script>,
    /// The client leaves then.
    pub leaves: Option<Duration>,
    /// The client takes no bytes from then on, for so long.
    pub blocks: Option<(Duration, Duration)>,
    /// For whatever the scripts draw.
    pub seed: u64,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Report {
    /// What the client was told, and when since the beginning.
    pub told: Vec<(Duration, Event)>,
    /// The attempts, as they were asked for.
    pub opens: Vec<Open>,
    /// How it ended; `None` if it never did.
    pub outcome: Option<Outcome>,
    /// When it ended.
    pub ended: Duration,
    /// The account of the turn.
    pub journal: Journal,
    /// The first rule that did not hold.
    pub broken: Option<String>,
}

/// An attempt that is under way.
struct Running {
    id: AttemptId,
    since: Instant,
    signals: std::vec::IntoIter<(Duration, Signal)>,
    next: Option<(Instant, Signal)>,
}

/// The turn and its world.
struct World<'a> {
    sim: &'a Sim,
    relay: Relay,
    start: Instant,
    now: Instant,
    running: Vec<Running>,
    dropped: Vec<AttemptId>,
    blocked: bool,
    report: Report,
}

// === impl Sim ===

impl Sim {
    /// Plays the turn to its end.
    #[expect(clippy::disallowed_methods, reason = "a start for a clock that is moved by hand")]
    pub fn run(&self) -> Report {
        let start = Instant::now();
        let relay = Relay::new(self.policy.clone(), self.candidates.clone(), start);
        let report = Report {
            told: Vec::new(),
            opens: Vec::new(),
            outcome: None,
            ended: Duration::ZERO,
            journal: relay.journal().clone(),
            broken: None,
        };
        let mut world = World {
            sim: self,
            relay,
            start,
            now: start,
            running: Vec::new(),
            dropped: Vec::new(),
            blocked: false,
            report,
        };
        world.act();
        for _ in 0..ROUNDS {
            if world.report.outcome.is_some() || !world.step() {
                break;
            }
        }
        world.finish()
    }

    fn most_opens(&self) -> usize {
        2 * self.candidates.len() + self.policy.level.retries as usize
    }
}

// === impl World ===

impl World<'_> {
    /// Moves to the next thing that happens; `false` if nothing ever will. What was heard comes before the clock.
    fn step(&mut self) -> bool {
        let timer = self.relay.poll_timeout();
        let (leaves, blocks, frees) = self.client();
        let heard = if self.blocked { None } else { self.next_signal() };
        let at = [timer, leaves, blocks, frees, heard.map(|(at, _)| at)].into_iter().flatten().min();
        let Some(at) = at else {
            self.breaks("the turn neither ended nor asked to be woken");
            return false;
        };
        self.now = at.max(self.now);
        if leaves == Some(at) {
            self.relay.handle_hangup(Why::ClientGone, self.now);
        } else if blocks == Some(at) {
            self.blocked = true;
            self.relay.handle_blocked(self.now);
        } else if frees == Some(at) {
            self.blocked = false;
            self.relay.handle_unblocked(self.now);
        } else if let Some((_, index)) = heard.filter(|(due, _)| *due == at) {
            let running = &mut self.running[index];
            if let Some((_, signal)) = running.advance() {
                let id = running.id;
                self.relay.handle_signal(id, signal, self.now);
            }
        } else {
            self.relay.handle_timeout(self.now);
        }
        self.act();
        true
    }

    fn client(&self) -> (Option<Instant>, Option<Instant>, Option<Instant>) {
        let after = |span: Duration| self.start + span;
        let ahead = |at: &Instant| *at > self.now;
        let leaves = self.sim.leaves.map(after).filter(ahead);
        let blocks = self.sim.blocks.map(|(from, _)| after(from)).filter(ahead);
        let frees = self.sim.blocks.map(|(from, span)| after(from + span)).filter(ahead).filter(|_| self.blocked);
        (leaves, blocks, frees)
    }

    /// When the next signal is due, and of which attempt. What came while nobody read is due at once.
    fn next_signal(&self) -> Option<(Instant, usize)> {
        let due =
            |(index, running): (usize, &Running)| running.next.as_ref().map(|(at, _)| ((*at).max(self.now), index));
        self.running.iter().enumerate().filter_map(due).min()
    }

    fn act(&mut self) {
        while let Some(action) = self.relay.poll_action() {
            if self.report.outcome.is_some() {
                self.breaks("something was done after the turn was closed");
            }
            match action {
                Action::Open(open) => self.open(*open),
                Action::Drop { id, end, .. } => self.drop_attempt(id, end),
                Action::Spliced { .. } => {}
                Action::Emit(step) => {
                    if step.is_progress() && self.running.len() > 1 {
                        self.breaks("something was told while two attempts were open");
                    }
                    let at = self.now - self.start;
                    self.report.told.extend(step.events.into_iter().map(|event| (at, event)));
                }
                Action::Close(outcome) => {
                    self.report.outcome = Some(outcome);
                    self.report.ended = self.now - self.start;
                }
            }
        }
    }

    fn open(&mut self, open: Open) {
        let Some(script) = self.sim.scripts.get(open.seat) else { return };
        let seed = self.sim.seed.wrapping_add(u64::from(open.id.0) << 32).wrapping_add(open.seat as u64);
        let signals = signals::timeline(script, &open.carry, seed);
        let mut running = Running { id: open.id, since: self.now, signals: signals.into_iter(), next: None };
        running.advance();
        self.running.push(running);
        self.report.opens.push(open);
        if self.running.len() > 2 {
            self.breaks("more than two attempts were open");
        }
        if self.report.opens.len() > self.sim.most_opens() {
            self.breaks("more attempts were opened than a turn may");
        }
    }

    fn drop_attempt(&mut self, id: AttemptId, end: End) {
        let before = self.running.len();
        self.running.retain(|r| r.id != id);
        if self.running.len() == before || self.dropped.contains(&id) {
            self.breaks("an attempt was dropped that was not open");
        }
        if end == End::Ok && self.dropped.contains(&id) {
            self.breaks("an attempt ended twice");
        }
        self.dropped.push(id);
    }

    fn breaks(&mut self, rule: &str) {
        if self.report.broken.is_none() {
            self.report.broken = Some(format!("{rule} (at {:?})", self.now - self.start));
        }
    }

    fn finish(mut self) -> Report {
        if self.report.outcome.is_none() {
            self.breaks("the turn did not end");
        }
        if !self.running.is_empty() {
            self.breaks("an attempt outlived the turn");
        }
        if self.report.ended > self.sim.policy.deadline {
            self.breaks("the turn outlived its deadline");
        }
        self.ends_honestly();
        self.report.journal = self.relay.journal().clone();
        self.report
    }

    /// A whole turn has one finish for every choice, at its end; an unfinished one has none.
    fn ends_honestly(&mut self) {
        let complete = matches!(self.report.outcome, Some(Outcome::Complete(_)));
        for choice in 0..self.sim.policy.choices {
            let of_choice = |e: &&Event| matches!(e, Event::Finish { choice: c, .. } if *c == choice);
            let finishes = self.report.told.iter().map(|(_, e)| e).filter(of_choice).count();
            match (complete, finishes) {
                (true, 1) | (false, 0) => {}
                (false, 1) if matches!(self.report.outcome, Some(Outcome::Interrupted(_))) => {}
                (false, 1) if self.sim.policy.choices > 1 => {}
                (true, n) => return self.breaks(&format!("a whole turn told {n} finishes")),
                (false, n) => return self.breaks(&format!("a failed turn told {n} finishes")),
            }
        }
        let last = self.report.told.iter().rposition(|(_, e)| e.is_progress());
        let finish = self.report.told.iter().position(|(_, e)| matches!(e, Event::Finish { .. }));
        if self.sim.policy.choices == 1 && finish.is_some_and(|finish| last > Some(finish)) {
            self.breaks("something was told after the finish");
        }
    }
}

// === impl Running ===

impl Running {
    /// Gives the signal that is due and draws the next one.
    fn advance(&mut self) -> Option<(Instant, Signal)> {
        let following = self.signals.next().map(|(after, signal)| (self.since + after, signal));
        std::mem::replace(&mut self.next, following)
    }
}

// === impl Report ===

impl Report {
    /// The visible text that the client was told, of the first choice.
    pub fn text(&self) -> String {
        let text = |(_, event): &(Duration, Event)| match event {
            Event::Text { choice: 0, text } => Some(text.clone()),
            _ => None,
        };
        self.told.iter().filter_map(text).collect()
    }

    /// Whether the turn was finished.
    pub fn is_complete(&self) -> bool {
        matches!(self.outcome, Some(Outcome::Complete(_)))
    }
}

// === consts ===

/// The most things that happen in one turn; a relay that needs more is caught in a loop.
const ROUNDS: usize = 200_000;
