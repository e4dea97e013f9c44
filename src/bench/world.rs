//! Many simulated turns in one world: they share circuits, budgets and what was learned of each target, exactly in the
//! order of their virtual time.
//!
//! The rules are those of the gateway and its fleet, on the same value ([`crate::health::connection`]): a hedge starts at
//! a percentile of the target's recent first tokens, silences among its usual ones raise no suspicion, challengers are
//! paid from the level's budget, an open circuit and a target that rests are passed over. Only the sockets are missing,
//! and nobody waits in a line.

use crate::chat::modality::Modalities;
use crate::event::Signal;
use crate::failure::Declined;
use crate::gateway::NORMAL_GAP;
use crate::health::blame::Plaintiff;
use crate::health::breaker::{self, Force, Transition};
use crate::health::budget::Budget;
use crate::health::connection::{Availability, Connection, Flight, Limits, Look, Wish};
use crate::relay::journal::{Cause, End};
use crate::relay::{AttemptId, Open, Policy};
use crate::rig::script::Script;
use crate::rig::sim::{Host, Play, Report, Sim};
use crate::routing::plan::Candidate;
use crate::routing::{After, Entry, Level};
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
    /// One for each place of the chain.
    connections: Vec<Connection>,
    flights: HashMap<(usize, AttemptId), Flying>,
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

/// An attempt under way.
#[derive(Debug)]
struct Flying {
    flight: Flight,
    /// When it last said something: from then on it was silent.
    heard: Instant,
}

// === impl World ===

impl World {
    /// A world of healthy targets: those of the level's chain, whose continuations are asked for with `how`. Without
    /// `circuits` none ever opens.
    pub fn new(level: Level, how: How, circuits: Option<&breaker::Policy>, seed: u64, start: Instant) -> Self {
        let hedge = level.hedge.map_or(level.budget, |h| h.budget);
        let connection = |index: u64| {
            let policy = circuits.cloned().unwrap_or_default();
            let mut connection = Connection::new(policy, Limits::default(), seed.wrapping_add(index));
            if circuits.is_none() {
                connection.force(None, Force::Close, start);
            }
            connection
        };
        Self {
            hedge: Budget::new(hedge),
            suspicion: Budget::new(level.budget),
            connections: (0..level.chain.len() as u64).map(connection).collect(),
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
        self.flights.len() + self.connections.iter().map(|connection| connection.held().tickets).sum::<usize>()
    }

    /// All changes of the circuit of the target number `index`, oldest first.
    pub fn transitions(&self, index: usize) -> impl Iterator<Item = &Transition> {
        self.changes.iter().filter(move |(of, _)| *of == index).map(|(_, change)| change)
    }

    /// Circuits remember their latest changes only.
    fn note_changes(&mut self) {
        for (index, connection) in self.connections.iter_mut().enumerate() {
            let model = &self.level.chain[index].target.model;
            self.changes.extend(connection.transitions(model).map(|change| (index, change)));
        }
    }

    fn begin(&mut self, number: usize, arrival: Arrival, now: Instant) -> Play<'static> {
        self.turn = number;
        self.hedge.deposit();
        self.suspicion.deposit();
        let ready = |(connection, entry): (&Connection, &Entry)| {
            connection.availability(&entry.target.model, Plaintiff::default(), now) == Availability::Ready
        };
        if !self.connections.iter().zip(&self.level.chain).any(ready) {
            self.last_resort.insert(number);
        }
        let candidates: Vec<Candidate> = (0..self.level.chain.len()).map(|index| self.candidate(index, now)).collect();
        let policy = Policy {
            level: Arc::clone(&self.level),
            choices: 1,
            max_tokens: None,
            prompt_estimate: PROMPT,
            asked_in: Modalities::NONE,
            continuable: true,
            structured: false,
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
        let (entry, connection) = (&self.level.chain[index], &self.connections[index]);
        let model = &entry.target.model;
        let mut candidate = Candidate::new(Arc::clone(&entry.target), entry.timeouts);
        candidate.how = self.how;
        let hedge = self.level.hedge.filter(|_| connection.may_hedge(model));
        candidate.hedge_after = hedge.and_then(|hedge| match hedge.after {
            After::Time(after) => Some(after),
            After::Percentile(p) => Some(connection.first_token(model, p, now)?.clamp(hedge.min, hedge.max)),
        });
        candidate.normal_gap = connection.gap(model, NORMAL_GAP, now).unwrap_or_default();
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
        let wish = Wish {
            model: Arc::clone(&open.target.model),
            by: Plaintiff::default(),
            may_try: last_resort || (!open.delivered && open.others),
            last_resort,
            others: open.others,
            prompt: PROMPT,
            estimate: PROMPT,
        };
        let flight = self.connections[open.seat].admit(&wish, now).map_err(|look| match look {
            Look::No(declined) => declined,
            Look::Later(until) => Declined::Crowded { until },
            Look::Go => Declined::Crowded { until: now },
        })?;
        self.flights.insert((self.turn, open.id), Flying { flight, heard: now });
        Ok(())
    }

    fn heard(&mut self, open: &Open, signal: &Signal, now: Instant) {
        let Some(Flying { flight, heard }) = self.flights.get_mut(&(self.turn, open.id)) else { return };
        listen(flight, heard, now);
        if flight.note(signal, now) {
            self.connections[open.seat].hear(flight, now);
        }
    }

    fn dropped(&mut self, open: &Open, end: End, counts: bool, now: Instant) {
        let Some(Flying { mut flight, mut heard }) = self.flights.remove(&(self.turn, open.id)) else { return };
        listen(&mut flight, &mut heard, now);
        self.connections[open.seat].settle(flight, None, end.verdict(counts), now);
    }
}

// === helpers ===

/// Somebody has listened since `heard`. What came without a wait was not listened for.
fn listen(flight: &mut Flight, heard: &mut Instant, now: Instant) {
    let before = std::mem::replace(heard, now);
    if before < now {
        flight.silent(before);
        flight.silent(now);
    }
}

/// Tokens of every prompt.
pub(super) const PROMPT: u64 = 500;
/// More than any text here.
const MAX_TURN: usize = 1 << 20;
