//! The words for a client whose turn could not be finished.
//!
//! The status says what kind of trouble it was over all attempts; type and message are those of the first real cause;
//! a bounded list of the attempts follows. Keys and addresses never appear: attempts are named by connection.

use crate::dialect::{Reason, Refusal};
use crate::failure::{Declined, Failure, Kind, RetryAt};
use crate::relay::journal::{Attempt, Journal};
use crate::relay::{Ending, Fault, Why};
use std::time::Duration;

/// The refusal for `fault`, the end of the turn that `journal` tells of.
pub(super) fn of(fault: &Fault, journal: &Journal) -> Refusal {
    let cause = fault.cause.as_ref();
    let mut refusal = match fault.ending {
        Ending::Told => request(cause),
        Ending::Exhausted if cause.is_some_and(|cause| cause.kind == Kind::Repairable) => request(cause),
        Ending::HungUp(Why::Drain) => Refusal::new(
            Reason::Unavailable,
            "draining",
            "the gateway is shutting down and could not wait for this turn to end; ask again",
        ),
        Ending::HungUp(Why::NoRoom) => Refusal::new(
            Reason::Unavailable,
            "buffer_full",
            "the turns that are open held more than this gateway keeps (server.buffer), and this one held the most; ask \
             again, or ask for less",
        ),
        Ending::HungUp(_) => {
            Refusal::new(Reason::Busy, "superseded", "a newer turn of the same conversation took the place of this one")
        }
        Ending::TooLong => Refusal::new(
            Reason::Upstream,
            "turn_too_long",
            "the answer is larger than this gateway passes on; raise limits.max_turn or ask for less",
        ),
        Ending::Deadline => Refusal::new(
            Reason::Timeout,
            "deadline",
            format!("the turn's time was over before it was finished{}", because(cause, journal)),
        ),
        Ending::NotContinuable => Refusal::new(
            Reason::Upstream,
            "not_continuable",
            format!(
                "the provider failed in the middle of an answer that no other can continue{}",
                because(cause, journal)
            ),
        ),
        Ending::Exhausted => exhausted(cause, journal),
    };
    if refusal.r#type.is_none() {
        refusal.r#type =
            cause.map(|c| c.said.r#type.clone()).filter(|t| !t.is_empty() && refusal.reason != Reason::Timeout);
    }
    refusal.attempts = attempts(journal);
    refusal
}

/// The provider says that the request is at fault: its own status and words.
fn request(cause: Option<&Failure>) -> Refusal {
    let Some(cause) = cause else {
        return Refusal::new(Reason::Request, "invalid_request", "the request was refused");
    };
    let reason = match cause.status {
        Some(401) => Reason::Key,
        Some(403) => Reason::Forbidden,
        Some(404) => Reason::NotFound,
        Some(409) => Reason::Busy,
        Some(413) => Reason::TooLarge,
        _ => Reason::Request,
    };
    let code = match cause.kind {
        _ if !cause.said.code.is_empty() && cause.said.code.parse::<u16>().is_err() => &*cause.said.code,
        Kind::ContextTooLong => "context_length_exceeded",
        Kind::ContentFiltered => "content_filter",
        _ => "invalid_request",
    };
    let message = if cause.said.message.is_empty() { "the provider refused the request" } else { &cause.said.message };
    let mut refusal = Refusal::new(reason, code, message);
    refusal.r#type = Some(cause.said.r#type.clone()).filter(|t| !t.is_empty());
    refusal.param = Some(cause.said.param.clone()).filter(|p| !p.is_empty());
    refusal
}

/// Nobody is left: which kind of trouble it was over all attempts.
fn exhausted(cause: Option<&Failure>, journal: &Journal) -> Refusal {
    // A later target's refusal says that it was no help; what has happened is what the first one said.
    let first = cause.and_then(|cause| journal.attempts.iter().position(|a| a.failure.as_ref() == Some(cause)));
    let hides = |(index, a): &(usize, &Attempt)| first.is_some_and(|first| first < *index) && a.is_of(&REFUSALS);
    let failed = || {
        let troubles = journal.attempts.iter().enumerate().filter(|(_, a)| a.is_trouble());
        troubles.filter(move |trouble| !hides(trouble)).map(|(_, a)| a)
    };
    let some = failed().next().is_some();
    let all = |is: fn(&Attempt) -> bool| some && failed().all(is);
    let wait = failed().filter_map(|a| a.failure.as_ref()?.retry_at).map(wait).min();
    let mut refusal = if !some {
        Refusal::new(Reason::Unavailable, "no_target", "no target of this level can serve the request")
    } else if all(is_limited) {
        let message = format!("every provider of this level is rate-limited{}", because(cause, journal));
        Refusal::new(Reason::Limited, "rate_limit_provider", message)
    } else if all(is_overloaded) {
        let message =
            format!("every provider of this level is overloaded or out of service{}", because(cause, journal));
        Refusal::new(Reason::Unavailable, "overloaded", message)
    } else if all(is_slow) {
        let message = "no provider of this level answered in time";
        Refusal::new(Reason::Timeout, "upstream_timeout", message)
    } else {
        let message = format!("no provider of this level could answer{}", because(cause, journal));
        Refusal::new(Reason::Upstream, "upstream_error", message)
    };
    if matches!(refusal.reason, Reason::Limited | Reason::Unavailable) {
        refusal.retry_after = wait;
    }
    refusal
}

fn is_limited(attempt: &Attempt) -> bool {
    attempt.is_of(&[Kind::RateLimited])
        || matches!(attempt.declined, Some(Declined::Resting { .. } | Declined::Crowded { .. }))
}

fn is_overloaded(attempt: &Attempt) -> bool {
    attempt.is_of(&[Kind::Overloaded, Kind::Unavailable, Kind::RateLimited])
}

fn is_slow(attempt: &Attempt) -> bool {
    attempt.is_of(&[Kind::FirstTokenTimeout, Kind::Stalled])
}

fn wait(at: RetryAt) -> Duration {
    at.after(std::time::SystemTime::now())
}

/// The first real cause, with the target whose it was.
fn because(cause: Option<&Failure>, journal: &Journal) -> String {
    let Some(cause) = cause else { return String::new() };
    let whose = journal.attempts.iter().find(|a| a.failure.as_ref() == Some(cause));
    let whose = whose.map(|a| format!("{}/{}: ", a.target.connection, a.target.model)).unwrap_or_default();
    match &*cause.said.message {
        "" => format!(": {whose}{}", cause.kind.name()),
        message => format!(": {whose}{message}"),
    }
}

fn attempts(journal: &Journal) -> Vec<String> {
    let line = |a: &Attempt| {
        let how = a.failure.as_ref().map_or_else(|| a.end.map_or("open", |e| e.name()), |f| f.kind.name());
        let status = a.failure.as_ref().and_then(|f| f.status).map(|s| format!(" ({s})")).unwrap_or_default();
        format!("{}/{}: {how}{status}", a.target.connection, a.target.model)
    };
    journal.attempts.iter().take(LISTED).map(line).collect()
}

/// What a target says when it does not take the request, or us.
const REFUSALS: [Kind; 8] = [
    Kind::BadRequest,
    Kind::Repairable,
    Kind::ContextTooLong,
    Kind::ContentFiltered,
    Kind::NotForUs,
    Kind::Auth,
    Kind::QuotaExhausted,
    Kind::SeamRejected,
];

/// The most attempts that an error lists.
const LISTED: usize = 8;
