//! The relay in virtual time: scripts play its providers, and a clock that jumps from one thing to the next plays the
//! world.
//!
//! A simulated turn takes microseconds, so rules can be tried on hundreds of thousands of schedules. While it runs, the
//! simulation checks what must hold whatever the schedule; [`Report::broken`] names the first rule that did not.

use super::script::Script;
use super::signals;
use crate::event::{Event, Signal};
use crate::failure::Declined;
use crate::relay::journal::{End, Journal};
use crate::relay::{Action, AttemptId, Checked, Open, Outcome, Policy, Relay, Why};
use crate::routing::plan::Candidate;
use std::borrow::Cow;
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

/// What turns share with each other, and what a single one knows nothing of: budgets, circuits, health.
pub trait Host {
    /// Whether the attempt may be made now.
    ///
    /// # Errors
    /// Why not.
    fn ask(&mut self, open: &Open, now: Instant) -> Result<(), Declined>;

    /// Whether another try at the same target is paid for.
    fn pay(&mut self) -> bool {
        true
    }

    /// An attempt said something, or its clock ran out: before the relay hears of it.
    fn heard(&mut self, open: &Open, signal: &Signal, now: Instant);

    /// An attempt is over. `counts`: it counts for the health of its target.
    fn dropped(&mut self, open: &Open, end: End, counts: bool, now: Instant);

    /// What comes of the check of a structured answer, and how long that takes. Every answer is right unless somebody says
    /// otherwise.
    fn check(&mut self, _answer: &str) -> (Duration, Checked) {
        (Duration::ZERO, Checked::Fits)
    }
}

/// Nothing is shared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

/// One turn under way in virtual time. Several can be played in the order of their [`Play::due`] times, so that they
/// meet in what they share.
pub struct Play<'a> {
    sim: Cow<'a, Sim>,
    relay: Relay,
    start: Instant,
    now: Instant,
    running: Vec<Running>,
    dropped: Vec<AttemptId>,
    checks: Vec<(Instant, AttemptId, Checked)>,
    blocked: bool,
    rounds: usize,
    report: Report,
}

// === impl Sim ===

impl Sim {
    /// Plays the turn to its end.
    pub fn run(&self) -> Report {
        self.run_in(&mut Alone)
    }

    /// Plays the turn to its end, with what `host` shares.
    #[expect(clippy::disallowed_methods, reason = "a start for a clock that is moved by hand")]
    pub fn run_in(&self, host: &mut dyn Host) -> Report {
        let mut play = Play::new(Cow::Borrowed(self), Instant::now(), host);
        while play.step(host) {}
        play.finish()
    }

    fn most_opens(&self) -> usize {
        2 * self.candidates.len() + self.policy.level.retries as usize
    }
}

// === impl Host for Alone ===

impl Host for Alone {
    fn ask(&mut self, _: &Open, _: Instant) -> Result<(), Declined> {
        Ok(())
    }

    fn heard(&mut self, _: &Open, _: &Signal, _: Instant) {}

    fn dropped(&mut self, _: &Open, _: End, _: bool, _: Instant) {}
}

// === impl Play ===

impl<'a> Play<'a> {
    /// A turn that begins at `start`.
    pub fn new(sim: Cow<'a, Sim>, start: Instant, host: &mut dyn Host) -> Self {
        let relay = Relay::new(sim.policy.clone(), sim.candidates.clone(), start);
        let report = Report {
            told: Vec::new(),
            opens: Vec::new(),
            outcome: None,
            ended: Duration::ZERO,
            journal: relay.journal().clone(),
            broken: None,
        };
        let mut play = Self {
            sim,
            relay,
            start,
            now: start,
            running: Vec::new(),
            dropped: Vec::new(),
            checks: Vec::new(),
            blocked: false,
            rounds: 0,
            report,
        };
        play.act(host);
        play
    }

    /// When the next thing happens; `None` if the turn is over, or nothing ever will.
    pub fn due(&self) -> Option<Instant> {
        if self.report.outcome.is_some() {
            return None;
        }
        let (leaves, blocks, frees) = self.client();
        let heard = if self.blocked { None } else { self.next_signal().map(|(at, _)| at) };
        let checked = self.next_check().map(|(at, _)| at);
        let at = [self.relay.poll_timeout(), leaves, blocks, frees, heard, checked].into_iter().flatten().min()?;
        Some(at.max(self.now))
    }

    /// Moves to the next thing that happens; `false` if nothing follows. What was heard comes before the clock.
    pub fn step(&mut self, host: &mut dyn Host) -> bool {
        self.rounds += 1;
        if self.report.outcome.is_some() || self.rounds > ROUNDS {
            return false;
        }
        let Some(at) = self.due() else {
            self.breaks("the turn neither ended nor asked to be woken");
            return false;
        };
        let (leaves, blocks, frees) = self.client();
        let heard = if self.blocked { None } else { self.next_signal() };
        self.now = at;
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
                host.heard(&self.report.opens[id.0 as usize], &signal, self.now);
                self.relay.handle_signal(id, signal, self.now);
            }
        } else if let Some((_, index)) = self.next_check().filter(|(due, _)| *due == at) {
            let (_, id, checked) = self.checks.remove(index);
            self.relay.handle_checked(id, checked, self.now);
        } else {
            self.relay.handle_timeout(self.now);
        }
        self.act(host);
        true
    }

    fn next_check(&self) -> Option<(Instant, usize)> {
        self.checks.iter().enumerate().map(|(index, (at, ..))| ((*at).max(self.now), index)).min()
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

    fn act(&mut self, host: &mut dyn Host) {
        while let Some(action) = self.relay.poll_action() {
            if self.report.outcome.is_some() {
                self.breaks("something was done after the turn was closed");
            }
            match action {
                Action::Open(open) => self.open(*open, host),
                Action::Pay { id } => {
                    if !host.pay() {
                        self.relay.handle_signal(id, Signal::Declined(Box::new(Declined::Budget)), self.now);
                    }
                }
                Action::Drop { id, end, counts } => {
                    self.drop_attempt(id, end);
                    host.dropped(&self.report.opens[id.0 as usize], end, counts, self.now);
                }
                Action::Spliced { .. } => {}
                Action::Check { id, text } => {
                    let (span, checked) = host.check(&text);
                    self.checks.push((self.now + span, id, checked));
                }
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

    fn open(&mut self, open: Open, host: &mut dyn Host) {
        let signals = match host.ask(&open, self.now) {
            Ok(()) => {
                let seed = self.sim.seed.wrapping_add(u64::from(open.id.0) << 32).wrapping_add(open.seat as u64);
                let script = self.sim.scripts.get(open.seat);
                script.map(|script| signals::timeline(script, &open.carry, seed)).unwrap_or_default()
            }
            Err(declined) => vec![(Duration::ZERO, Signal::Declined(Box::new(declined)))],
        };
        let mut running = Running { id: open.id, since: self.now, signals: signals.into_iter(), next: None };
        running.advance();
        self.running.push(running);
        self.report.opens.push(open);
        if self.running.len() > 2 {
            self.breaks("more than two attempts were open");
        }
        // An attempt that was refused for its form only, and made again in another, is none of a turn's share.
        let repaired = self.relay.journal().attempts.iter().filter(|attempt| attempt.forgiven).count();
        if self.report.opens.len() - repaired > self.sim.most_opens() {
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

    /// What came of it, once [`Self::step`] gives `false`.
    pub fn finish(mut self) -> Report {
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
