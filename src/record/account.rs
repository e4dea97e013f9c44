//! What racing brings and costs, from the records of turns that ended: a pure function, for the admin interface and
//! for benchmarks alike.
//!
//! Two overheads, since they are about two different days. In *steady state* the first choice is healthy, and the
//! question is what the gateway and its policies put between its first token and the client. In an *incident* the
//! first choice fails, and the question is how long it takes from that moment until somebody else speaks.

use super::turn::{AttemptRecord, Fate, TurnRecord};
use crate::relay::journal::Cause;
use serde::Serialize;

/// Shares are of 0 to 1; `None` where there was nothing to measure.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Account {
    /// How many turns it is about.
    pub turns: usize,
    /// Share of turns in which a hedge was sent.
    pub hedge_rate: f64,
    /// Share of hedged turns whose hedge spoke first.
    pub hedge_win_rate: Option<f64>,
    /// Share of turns in which anything was sent on suspicion: hedges, and challengers in mid-turn.
    pub challenge_rate: f64,
    /// Share of turns in which the client was told something by another attempt than the first.
    pub failover_rate: f64,
    /// Share of turns in which a leader was overtaken in mid-turn, for its silence or its pace.
    pub overtaken_rate: f64,
    /// Requests that were sent while another attempt was open, as a share of turns.
    pub duplicate_requests: f64,
    /// Generated tokens that nobody was told, as a share of all generated tokens.
    pub wasted_token_share: f64,
    /// Tokens of prompts that were sent on suspicion, as a share of all tokens of prompts.
    pub duplicate_prompt_share: f64,
    /// Mean time between the first choice's own first token and the client's, in turns that it served alone and
    /// without a failure: waiting in line, and whatever the gateway does.
    pub steady_state_overhead_ms: Option<f64>,
    /// Mean time from the failure of the first choice to the first token of the attempt that the client heard next.
    /// Where it was overtaken in silence, from the moment when it was suspected.
    pub incident_overhead_ms: Option<f64>,
}

/// The account of `turns`.
pub fn of<'a>(turns: impl IntoIterator<Item = &'a TurnRecord>) -> Account {
    let mut sums = Sums::default();
    for turn in turns {
        sums.add(turn);
    }
    sums.account()
}

/// An account under way, for more turns than anybody would keep.
#[derive(Debug, Default)]
pub struct Sums {
    turns: usize,
    hedged: usize,
    hedges_won: usize,
    challenged: usize,
    failed_over: usize,
    overtaken: usize,
    challengers: usize,
    generated: u64,
    delivered: u64,
    prompts: u64,
    duplicate_prompts: u64,
    steady: Mean,
    incident: Mean,
}

#[derive(Debug, Default)]
struct Mean {
    sum: f64,
    count: usize,
}

// === impl Sums ===

impl Sums {
    /// Counts one more turn.
    pub fn add(&mut self, turn: &TurnRecord) {
        self.turns += 1;
        let challengers = || turn.attempts.iter().filter(|a| a.cause.is_challenge() && a.was_sent());
        let count = challengers().count();
        self.challengers += count;
        self.challenged += usize::from(count > 0);
        self.duplicate_prompts += challengers().map(|a| a.prompt_tokens).sum::<u64>();
        for attempt in &turn.attempts {
            self.prompts += attempt.prompt_tokens;
            self.generated += attempt.completion_tokens;
            self.delivered += attempt.delivered_tokens.min(attempt.completion_tokens);
        }
        if let Some(hedge) = challengers().find(|a| a.cause == Cause::Hedge) {
            self.hedged += 1;
            self.hedges_won += usize::from(spoke_first(hedge, turn));
        }
        self.failed_over += usize::from(is_failover(turn));
        self.overtaken += usize::from(turn.attempts.iter().any(|a| a.overtaken_ms.is_some()));
        if let Some(overhead) = steady(turn) {
            self.steady.add(overhead);
        }
        if let Some(overhead) = incident(turn) {
            self.incident.add(overhead);
        }
    }

    /// The account of all turns so far.
    pub fn account(&self) -> Account {
        let of_turns = |count: usize| share(count as f64, self.turns as f64);
        Account {
            turns: self.turns,
            hedge_rate: of_turns(self.hedged),
            hedge_win_rate: (self.hedged > 0).then(|| share(self.hedges_won as f64, self.hedged as f64)),
            challenge_rate: of_turns(self.challenged),
            failover_rate: of_turns(self.failed_over),
            overtaken_rate: of_turns(self.overtaken),
            duplicate_requests: of_turns(self.challengers),
            wasted_token_share: share((self.generated - self.delivered) as f64, self.generated as f64),
            duplicate_prompt_share: share(self.duplicate_prompts as f64, self.prompts as f64),
            steady_state_overhead_ms: self.steady.get(),
            incident_overhead_ms: self.incident.get(),
        }
    }
}

// === impl Mean ===

impl Mean {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
    }

    fn get(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

// === helpers ===

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Absolute: since the beginning of the turn.
fn first_token(attempt: &AttemptRecord) -> Option<f64> {
    Some(attempt.sent_ms? + attempt.first_token_ms?)
}

/// An attempt that lost the race for the first word was closed when it was decided, not after.
fn spoke_first(attempt: &AttemptRecord, turn: &TurnRecord) -> bool {
    let (Some(told), Some(_)) = (turn.first_told_ms, attempt.first_token_ms) else { return false };
    attempt.outcome == Fate::Ok || attempt.ended_ms.is_none_or(|ended| ended > told + RESOLUTION)
}

/// The client was told something by another attempt than the first.
pub fn is_failover(turn: &TurnRecord) -> bool {
    turn.attempts.iter().skip(1).any(AttemptRecord::has_told)
}

/// Between the first choice's own first token and the client's, in milliseconds; `None` unless it served alone.
pub fn steady(turn: &TurnRecord) -> Option<f64> {
    let first = turn.attempts.first().filter(|a| a.outcome == Fate::Ok && turn.splices == 0)?;
    Some((turn.first_told_ms? - first.first_token_ms?).max(0.0))
}

/// From the failure of the first choice to the first token of the attempt that the client heard next, in milliseconds;
/// `None` where there was no such failure, or nobody was heard after it.
pub fn incident(turn: &TurnRecord) -> Option<f64> {
    let first = turn.attempts.first()?;
    let next = turn.attempts.iter().skip(1).filter(|a| a.has_told()).filter_map(first_token);
    let trouble = match first.outcome {
        Fate::Failed => first.ended_ms?,
        Fate::Superseded => turn.attempts.iter().find(|a| a.cause.is_challenge() && a.was_sent())?.opened_ms,
        _ => return None,
    };
    let next = next.min_by(f64::total_cmp)?;
    Some((next - trouble).max(0.0))
}

/// Times of a record are rounded to microseconds.
const RESOLUTION: f64 = 0.002;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Outcome;

    fn attempt(cause: Cause, outcome: Fate, (opened, first, ended): (f64, f64, f64)) -> AttemptRecord {
        AttemptRecord {
            connection: "a".into(),
            model: "m".into(),
            cause,
            outcome,
            failure: None,
            quality: 1,
            opened_ms: opened,
            sent_ms: Some(opened),
            first_token_ms: Some(first).filter(|first| *first > 0.0),
            told_from_ms: None,
            told_to_ms: None,
            ended_ms: Some(ended),
            prompt_tokens: 100,
            completion_tokens: 0,
            delivered_tokens: 0,
            estimated: false,
            overtaken_ms: None,
            seam: None,
            unchecked: None,
        }
    }

    fn tokens(mut attempt: AttemptRecord, completion: u64, delivered: u64) -> AttemptRecord {
        (attempt.completion_tokens, attempt.delivered_tokens) = (completion, delivered);
        attempt
    }

    fn turn(first_told: f64, splices: u32, attempts: Vec<AttemptRecord>) -> TurnRecord {
        TurnRecord {
            turn: "t".to_owned(),
            tenant: None,
            key: None,
            level: "l".into(),
            conversation: None,
            outcome: Outcome::Complete,
            finish: Some("stop"),
            delivered_chars: 10,
            splices,
            started: 0.0,
            first_told_ms: Some(first_told),
            longest_silence_ms: 0.0,
            duration_ms: None,
            attempts,
        }
    }

    #[test]
    fn nothing_is_accounted_as_nothing() {
        let account = of([]);
        assert_eq!(account, Account::default());
    }

    #[test]
    fn a_healthy_turn_costs_what_it_waited_in_line() {
        let mut only = tokens(attempt(Cause::First, Fate::Ok, (0.0, 200.0, 900.0)), 50, 50);
        only.sent_ms = Some(30.0);
        let account = of([&turn(230.0, 0, vec![only])]);
        assert_eq!(account.steady_state_overhead_ms, Some(30.0));
        assert_eq!((account.incident_overhead_ms, account.failover_rate), (None, 0.0));
        assert_eq!((account.wasted_token_share, account.hedge_win_rate), (0.0, None));
    }

    #[test]
    fn a_fallback_is_timed_from_the_failure() {
        let first = attempt(Cause::First, Fate::Failed, (0.0, 0.0, 8000.0));
        let next = tokens(attempt(Cause::Fallback, Fate::Ok, (8000.0, 500.0, 9000.0)), 20, 20);
        let account = of([&turn(8500.0, 0, vec![first, next])]);
        assert_eq!(account.incident_overhead_ms, Some(500.0));
        assert_eq!((account.failover_rate, account.duplicate_requests), (1.0, 0.0));
    }

    #[test]
    fn a_hedge_that_wins_and_one_that_loses() {
        let slow = attempt(Cause::First, Fate::Superseded, (0.0, 0.0, 900.0));
        let won = turn(900.0, 0, vec![slow, tokens(attempt(Cause::Hedge, Fate::Ok, (400.0, 500.0, 2000.0)), 40, 40)]);
        let kept = tokens(attempt(Cause::First, Fate::Ok, (0.0, 450.0, 2000.0)), 40, 40);
        let lost =
            turn(450.0, 0, vec![kept, tokens(attempt(Cause::Hedge, Fate::Superseded, (400.0, 0.0, 450.0)), 0, 0)]);
        let account = of([&won, &lost]);
        assert_eq!((account.hedge_rate, account.hedge_win_rate), (1.0, Some(0.5)));
        assert_eq!((account.duplicate_requests, account.duplicate_prompt_share), (1.0, 0.5));
        assert_eq!(account.incident_overhead_ms, Some(500.0), "from the suspicion to the hedge's first token");
        assert_eq!(account.steady_state_overhead_ms, Some(0.0), "the hedge of the second turn cost no time");
    }

    #[test]
    fn what_a_leader_said_that_nobody_heard_is_wasted() {
        let slow = tokens(attempt(Cause::First, Fate::Superseded, (0.0, 100.0, 4000.0)), 30, 10);
        let next = tokens(attempt(Cause::Pace, Fate::Ok, (3000.0, 500.0, 6000.0)), 70, 60);
        let account = of([&turn(100.0, 1, vec![slow, next])]);
        assert!((account.wasted_token_share - 0.3).abs() < 1e-9);
        assert_eq!((account.challenge_rate, account.hedge_rate), (1.0, 0.0));
        assert_eq!(account.incident_overhead_ms, Some(500.0));
    }

    #[test]
    fn a_challenger_that_was_never_sent_is_none() {
        let mut denied = attempt(Cause::Hedge, Fate::Failed, (400.0, 0.0, 400.0));
        (denied.sent_ms, denied.prompt_tokens) = (None, 0);
        let account =
            of([&turn(600.0, 0, vec![tokens(attempt(Cause::First, Fate::Ok, (0.0, 600.0, 900.0)), 5, 5), denied])]);
        assert_eq!((account.hedge_rate, account.challenge_rate, account.duplicate_requests), (0.0, 0.0, 0.0));
    }
}
