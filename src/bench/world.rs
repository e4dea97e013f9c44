//! Many simulated turns in one world: they share circuits, budgets and what was learned of each target, exactly in the
//! order of their virtual time.
//!
//! The rules are those of the gateway and its fleet, on the same values (`health`): a hedge starts at a percentile of
//! the target's recent first tokens, silences among its usual ones raise no suspicion, challengers are paid from the
//! level's budget, an open circuit is passed over. Only the sockets are missing.

use crate::event::{Event, Signal};
use crate::failure::{Declined, Verdict};
use crate::fleet::{FIRST_TOKENS, GAPS, PERIOD};
use crate::gateway::NORMAL_GAP;
use crate::health::breaker::{self, Breaker, State, Ticket, Transition};
use crate::health::budget::Budget;
use crate::health::latency::Digest;
use crate::relay::journal::{Cause, End};
use crate::relay::{AttemptId, Open, Policy};
use crate::rig::script::Script;
use crate::rig::sim::{Host, Play, Report, Sim};
use crate::routing::plan::Candidate;
use crate::routing::{After, Level};
use crate::turn::resume::How;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A level, its targets as they are to be asked, and what turns share.
#[derive(Debug)]
pub struct World {
    level: Arc<Level>,
    how: How,
    hedge: Budget,
    suspicion: Budget,
    circuits: Vec<Circuit>,
    flights: HashMap<(usize, AttemptId), Flight>,
    /// The turn that is played at this moment.
    turn: usize,
    /// The turns that may try a target whose circuit is open, since there is no other.
    last_resort: BTreeSet<usize>,
    changes: Vec<(usize, Transition)>,
}

/// One turn to come.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// When, since the beginning.
    pub at: Duration,
    /// What each target of the chain does.
    pub scripts: Vec<Script>,
    /// For whatever the scripts draw.
    pub seed: u64,
}

/// What is known of a target.
#[derive(Debug)]
struct Circuit {
    breaker: Option<Breaker>,
    first_token: Digest,
    gaps: Digest,
}

/// An attempt under way.
#[derive(Debug)]
struct Flight {
    ticket: Option<Ticket>,
    sent: Instant,
    progress: Option<Instant>,
    thinking: bool,
}

// === impl World ===

impl World {
    /// A world of healthy targets: those of the level's chain, whose continuations are asked for with `how`. Without
    /// `circuits` none ever opens.
    pub fn new(level: Level, how: How, circuits: Option<&breaker::Policy>, seed: u64, start: Instant) -> Self {
        let hedge = level.hedge.map_or(level.budget, |h| h.budget);
        let circuit = |index: u64| Circuit {
            breaker: circuits.map(|policy| Breaker::new(policy.clone(), seed.wrapping_add(index), start)),
            first_token: Digest::new(PERIOD, FIRST_TOKENS),
            gaps: Digest::new(PERIOD, GAPS),
        };
        Self {
            hedge: Budget::new(hedge),
            suspicion: Budget::new(level.budget),
            circuits: (0..level.chain.len() as u64).map(circuit).collect(),
            level: Arc::new(level),
            how,
            flights: HashMap::new(),
            turn: 0,
            last_resort: BTreeSet::new(),
            changes: Vec::new(),
        }
    }

    /// Plays `arrivals` (in the order of their times); `ended` is told of each turn, its number and its report, in the
    /// order in which they end.
    pub fn play(
        &mut self,
        start: Instant,
        arrivals: impl IntoIterator<Item = Arrival>,
        mut ended: impl FnMut(usize, Report),
    ) {
        let mut turns: HashMap<usize, Play<'static>> = HashMap::new();
        let mut due: BinaryHeap<Reverse<(Instant, usize)>> = BinaryHeap::new();
        let mut arrivals = arrivals.into_iter().enumerate().peekable();
        loop {
            let next = due.peek().map(|Reverse((at, _))| *at);
            let arrives = arrivals.peek().map(|(_, arrival)| start + arrival.at);
            match (arrives, next) {
                (None, None) => return,
                (Some(at), next) if next.is_none_or(|next| at <= next) => {
                    let Some((number, arrival)) = arrivals.next() else { return };
                    let play = self.begin(number, arrival, at);
                    if let Some(at) = play.due() {
                        due.push(Reverse((at, number)));
                        turns.insert(number, play);
                    } else {
                        self.end(number, play, &mut ended);
                    }
                }
                _ => {
                    let Some(Reverse((_, number))) = due.pop() else { return };
                    let Some(mut play) = turns.remove(&number) else { continue };
                    self.turn = number;
                    let goes_on = play.step(self);
                    self.note_changes();
                    match play.due().filter(|_| goes_on) {
                        Some(at) => {
                            due.push(Reverse((at, number)));
                            turns.insert(number, play);
                        }
                        None => self.end(number, play, &mut ended),
                    }
                }
            }
        }
    }

    /// Attempts that were let through and not given back; none once every turn is over.
    pub fn outstanding(&self) -> usize {
        self.flights.len()
            + self.circuits.iter().filter_map(|c| c.breaker.as_ref()).map(|b| b.outstanding() as usize).sum::<usize>()
    }

    /// All changes of the circuit of the target number `index`, oldest first.
    pub fn transitions(&self, index: usize) -> impl Iterator<Item = &Transition> {
        self.changes.iter().filter(move |(of, _)| *of == index).map(|(_, change)| change)
    }

    /// Circuits remember their latest changes only.
    fn note_changes(&mut self) {
        for (index, circuit) in self.circuits.iter_mut().enumerate() {
            if let Some(breaker) = &mut circuit.breaker {
                self.changes.extend(breaker.transitions().map(|change| (index, change)));
            }
        }
    }

    fn begin(&mut self, number: usize, arrival: Arrival, now: Instant) -> Play<'static> {
        self.turn = number;
        self.hedge.deposit();
        self.suspicion.deposit();
        let closed = |c: &Circuit| c.breaker.as_ref().is_none_or(|b| b.state(now) == State::Closed);
        if !self.circuits.iter().any(closed) {
            self.last_resort.insert(number);
        }
        let candidates: Vec<Candidate> = (0..self.level.chain.len()).map(|index| self.candidate(index, now)).collect();
        let policy = Policy {
            level: Arc::clone(&self.level),
            choices: 1,
            max_tokens: None,
            prompt_estimate: PROMPT,
            continuable: true,
            structured: None,
            races: true,
            max_turn: MAX_TURN,
            whole: false,
            retry_after_cap: Duration::from_secs(60),
            deadline: self.level.timeouts.turn,
            seed: arrival.seed,
        };
        let Arrival { scripts, seed, .. } = arrival;
        let sim = Sim { policy, candidates, scripts, leaves: None, blocks: None, seed };
        Play::new(Cow::Owned(sim), now, self)
    }

    fn end(&mut self, number: usize, play: Play<'static>, ended: &mut impl FnMut(usize, Report)) {
        self.last_resort.remove(&number);
        ended(number, play.finish());
    }

    fn candidate(&self, index: usize, now: Instant) -> Candidate {
        let (entry, circuit) = (&self.level.chain[index], &self.circuits[index]);
        let mut candidate = Candidate::new(Arc::clone(&entry.target), entry.timeouts);
        candidate.how = self.how;
        candidate.hedge_after = self.level.hedge.and_then(|hedge| match hedge.after {
            After::Time(after) => Some(after),
            After::Percentile(p) => Some(circuit.first_token.percentile(p, now)?.clamp(hedge.min, hedge.max)),
        });
        candidate.normal_gap = circuit.gaps.percentile(NORMAL_GAP, now).unwrap_or_default();
        candidate
    }
}

// === impl Host for World ===

impl Host for World {
    fn ask(&mut self, open: &Open, now: Instant) -> Result<(), Declined> {
        let paid = match open.cause {
            Cause::Hedge => self.hedge.withdraw(),
            Cause::Suspect | Cause::Pace => self.suspicion.withdraw(),
            Cause::First | Cause::Fallback | Cause::Retry | Cause::Continuation => true,
        };
        if !paid {
            return Err(Declined::Budget);
        }
        let last_resort = self.last_resort.contains(&self.turn);
        let may_try = last_resort || (!open.delivered && open.others);
        let ticket = match &mut self.circuits[open.seat].breaker {
            None => None,
            Some(breaker) => {
                let allowed = match breaker.state(now) {
                    State::Closed => true,
                    State::HalfOpen => may_try && !breaker.is_tried(),
                    State::Open => last_resort && !breaker.is_tried(),
                };
                let ticket = match (allowed, last_resort) {
                    (false, _) => None,
                    (true, false) => breaker.admit(now),
                    (true, true) => breaker.admit_anyway(now),
                };
                Some(ticket.ok_or(Declined::CircuitOpen { until: None })?)
            }
        };
        let flight = Flight { ticket, sent: now, progress: None, thinking: false };
        self.flights.insert((self.turn, open.id), flight);
        Ok(())
    }

    fn heard(&mut self, open: &Open, signal: &Signal, now: Instant) {
        let Some(flight) = self.flights.get_mut(&(self.turn, open.id)) else { return };
        let Signal::Step(step) = signal else { return };
        for event in &step.events {
            if let Event::Thinking(on) = event {
                flight.thinking = *on;
            }
        }
        if !step.is_progress() {
            return;
        }
        let circuit = &mut self.circuits[open.seat];
        match flight.progress.replace(now) {
            None => {
                let first = now.saturating_duration_since(flight.sent);
                circuit.first_token.record(first, now);
                if let (Some(breaker), Some(ticket)) = (&mut circuit.breaker, &flight.ticket) {
                    breaker.progress(ticket, first, now);
                }
            }
            // What came without a wait was not listened for.
            Some(last) if last < now && !flight.thinking => {
                circuit.gaps.record(now.saturating_duration_since(last), now);
            }
            Some(_) => {}
        }
    }

    fn dropped(&mut self, open: &Open, end: End, counts: bool, now: Instant) {
        let Some(flight) = self.flights.remove(&(self.turn, open.id)) else { return };
        let circuit = &mut self.circuits[open.seat];
        let silent = flight.progress.is_none().then(|| now.saturating_duration_since(flight.sent));
        if let Some(silent) = silent {
            circuit.first_token.censor(silent, now);
        }
        let (Some(breaker), Some(ticket)) = (&mut circuit.breaker, flight.ticket) else { return };
        match (silent, flight.progress.filter(|_| !flight.thinking && end != End::Ok)) {
            (Some(silent), _) => breaker.silent(&ticket, silent, now),
            (None, Some(last)) => breaker.stalled(&ticket, now.saturating_duration_since(last), now),
            (None, None) => {}
        }
        let verdict = match end {
            End::Ok => Verdict::Serve,
            End::Failed(kind) if counts => kind.verdict(),
            End::Failed(_) | End::Cancelled | End::Superseded => Verdict::Abandon,
        };
        breaker.settle(ticket, verdict, now);
    }
}

// === helpers ===

/// Tokens of every prompt.
pub(super) const PROMPT: u64 = 500;
/// More than any text here.
const MAX_TURN: usize = 1 << 20;
