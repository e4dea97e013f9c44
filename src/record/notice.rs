//! The line in the log that a turn leaves behind: loud if it failed, plain if somebody failed in it and it was whole all
//! the same, and else only for those who debug.
//!
//! A turn in which nobody was asked because all circuits are open is no news: that they opened was.

use super::{Ended, Sink, TurnRecord};
use crate::failure::{Disposition, Failure, Kind};
use crate::relay::journal::{Attempt, End, Journal};
use crate::relay::{Ending, Outcome, Why};

/// How much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    Usual,
    Survived,
    Failed,
}

/// Tells the log of turns.
#[derive(Clone, Copy, Debug)]
pub struct Log;

impl Sink for Log {
    fn name(&self) -> &'static str {
        "log"
    }

    fn turn(&self, ended: &Ended<'_>) {
        turn(ended.record, ended.journal);
    }
}

fn turn(record: &TurnRecord, journal: &Journal) {
    let TurnRecord { turn, level, outcome, splices, .. } = record;
    let outcome = outcome.name();
    // As a field and not as text it is escaped: providers' words may hold anything.
    match weight(journal) {
        Weight::Usual => tracing::debug!(turn, %level, outcome, splices, attempts = attempts(journal), "turn ended"),
        Weight::Survived => tracing::info!(turn, %level, splices, attempts = attempts(journal), "turn survived"),
        Weight::Failed => tracing::warn!(turn, %level, outcome, splices, attempts = attempts(journal), "turn failed"),
    }
}

fn weight(journal: &Journal) -> Weight {
    let somebody_failed = journal.attempts.iter().any(failed);
    match &journal.outcome {
        Some(Outcome::Failed(fault)) => match fault.ending {
            Ending::HungUp(Why::Drain | Why::Superseded | Why::ClientGone) => Weight::Usual,
            Ending::Told | Ending::Exhausted if !somebody_failed => Weight::Usual,
            _ => Weight::Failed,
        },
        Some(Outcome::Complete(_)) if somebody_failed || journal.splices > 0 => Weight::Survived,
        _ => Weight::Usual,
    }
}

/// Whether the attempt was made, and its provider failed in it. What is wrong with a request is the client's business; but
/// it does not choose the path, so a provider that knows none of this name was configured wrongly.
fn failed(attempt: &Attempt) -> bool {
    let lost = |f: &Failure| matches!(f.status, Some(404 | 405));
    let clients = |f: &Failure| matches!(f.kind.disposition(), Disposition::Opinion | Disposition::Tell);
    let at_fault = |f: &Failure| f.kind != Kind::Unavailable && (!clients(f) || lost(f));
    !attempt.forgiven && matches!(attempt.end, Some(End::Failed(_))) && attempt.failure.as_ref().is_some_and(at_fault)
}

fn attempts(journal: &Journal) -> String {
    let lines: Vec<String> = journal.attempts.iter().take(LISTED).map(line).collect();
    lines.join("; ")
}

fn line(attempt: &Attempt) -> String {
    let (target, end) = (&attempt.target, attempt.end.map_or("open", End::name));
    if let Some(silence) = attempt.overtaken {
        return format!("{}/{} overtaken after {} ms of silence", target.connection, target.model, silence.as_millis());
    }
    let Some(failure) = attempt.failure.as_ref().filter(|_| end == "failed") else {
        let unsure = attempt.unsure.map(|why| format!(" unchecked: {why}")).unwrap_or_default();
        return format!("{}/{} {end}{unsure}", target.connection, target.model);
    };
    let status = failure.status.filter(|status| *status >= 400).map(|s| format!(" ({s})")).unwrap_or_default();
    // Who refuses a key may repeat it, and the log must not.
    let said = if failure.kind == Kind::Auth { "" } else { &failure.said.message };
    let said: String = said.chars().take(WORDS).collect();
    let colon = if said.is_empty() { "" } else { ": " };
    format!("{}/{} {}{status}{colon}{said}", target.connection, target.model, failure.kind.name())
}

/// The most attempts that are named.
const LISTED: usize = 8;

/// The most characters of a provider's words.
const WORDS: usize = 200;
