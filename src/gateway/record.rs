//! What is remembered of a turn after it ended, in the form of the admin interface.

use super::LiveTurn;
use crate::relay::journal::{End, Journal};
use crate::relay::{Outcome, Relay};
use serde::Serialize;
use std::sync::Arc;
use std::time::SystemTime;

/// One turn that has ended.
#[derive(Clone, Debug, Serialize)]
pub struct TurnRecord {
    /// Its id.
    pub turn: String,
    /// Whose; `None` without tenants.
    pub tenant: Option<Arc<str>>,
    /// The level that served it.
    pub level: Arc<str>,
    /// `complete`, `failed` (nothing was told), `interrupted` (the client left) or `incomplete` (an error after text).
    pub outcome: &'static str,
    /// The finish reason of the first choice, in the words of Chat Completions.
    pub finish: Option<&'static str>,
    /// Characters of visible text that the client was given.
    pub delivered_chars: usize,
    /// How often the lead changed after something was told.
    pub splices: u32,
    /// When it began, in seconds of Unix time.
    pub started: f64,
    /// From the beginning to the first thing told, in milliseconds.
    pub first_told_ms: Option<f64>,
    /// The longest time between two things told, in milliseconds.
    pub longest_silence_ms: f64,
    /// From beginning to end, in milliseconds.
    pub duration_ms: Option<f64>,
    /// Its attempts, in the order in which they were opened.
    pub attempts: Vec<AttemptRecord>,
}

/// One attempt of a turn that has ended.
#[derive(Clone, Debug, Serialize)]
pub struct AttemptRecord {
    /// Whom.
    pub connection: Arc<str>,
    /// What.
    pub model: Arc<str>,
    /// Why it was opened.
    pub cause: &'static str,
    /// `ok`, `failed`, `cancelled` or `superseded`.
    pub outcome: &'static str,
    /// The kind of failure.
    pub failure: Option<&'static str>,
    /// From the beginning of the turn, in milliseconds.
    pub opened_ms: f64,
    /// When it was sent, from the beginning of the turn, in milliseconds; it may have queued until then.
    pub sent_ms: Option<f64>,
    /// From its send to its first progress, in milliseconds.
    pub first_token_ms: Option<f64>,
    /// From the beginning of the turn, in milliseconds.
    pub ended_ms: Option<f64>,
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Tokens that it generated.
    pub completion_tokens: u64,
    /// Those of them that the client was given.
    pub delivered_tokens: u64,
    /// The provider never said; the counts are estimates.
    pub estimated: bool,
    /// The silence after which another attempt took the lead from it in mid-turn, in milliseconds.
    pub overtaken_ms: Option<f64>,
    /// How its seam was decided.
    pub seam: Option<&'static str>,
    /// Why its structured answer was told without proof that it is what was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unchecked: Option<&'static str>,
}

// === impl TurnRecord ===

impl TurnRecord {
    pub(super) fn of(live: &LiveTurn, relay: &Relay) -> Self {
        let (journal, turn) = (relay.journal(), relay.turn());
        let since = |at: std::time::Instant| millis(at.saturating_duration_since(journal.started));
        Self {
            turn: live.id.clone(),
            tenant: live.tenant.as_ref().map(|t| Arc::clone(&t.name)),
            level: Arc::clone(&live.level),
            outcome: outcome(journal, turn.is_silent()),
            finish: turn.choices()[0].finish.as_ref().map(finish),
            delivered_chars: turn.chars(),
            splices: journal.splices,
            started: live.started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64(),
            first_told_ms: journal.first_told.map(since),
            longest_silence_ms: millis(journal.longest_silence),
            duration_ms: journal.ended.map(since),
            attempts: AttemptRecord::all(journal, live.estimate),
        }
    }
}

// === impl AttemptRecord ===

impl AttemptRecord {
    /// The attempts of a turn; `estimate` is that of the prompt's tokens, for providers that never said.
    pub fn all(journal: &Journal, estimate: u64) -> Vec<Self> {
        let since = |at: std::time::Instant| millis(at.saturating_duration_since(journal.started));
        let record = |a: &crate::relay::journal::Attempt| {
            let (prompt_tokens, completion_tokens, estimated) = a.cost(estimate);
            let failed = matches!(a.end, Some(End::Failed(_)));
            let first = a.sent.zip(a.first_progress);
            Self {
                connection: Arc::clone(&a.target.connection),
                model: Arc::clone(&a.target.model),
                cause: a.cause.name(),
                outcome: a.end.map_or("open", End::name),
                failure: a.failure.as_ref().filter(|_| failed).map(|f| f.kind.name()),
                opened_ms: since(a.opened),
                sent_ms: a.sent.map(since),
                first_token_ms: first.map(|(sent, at)| millis(at.saturating_duration_since(sent))),
                ended_ms: a.ended.map(since),
                prompt_tokens,
                completion_tokens,
                delivered_tokens: a.delivered_tokens(),
                estimated,
                overtaken_ms: a.overtaken.map(millis),
                seam: a.seam,
                unchecked: a.unsure,
            }
        };
        journal.attempts.iter().map(record).collect()
    }
}

// === helpers ===

fn outcome(journal: &Journal, silent: bool) -> &'static str {
    match &journal.outcome {
        Some(Outcome::Complete(_)) => "complete",
        Some(Outcome::Interrupted(_)) => "interrupted",
        Some(Outcome::Failed(_)) if silent => "failed",
        Some(Outcome::Failed(_)) => "incomplete",
        None => "open",
    }
}

fn finish(reason: &crate::event::Finish) -> &'static str {
    use crate::event::Finish;
    match reason {
        Finish::Stop | Finish::Other(_) => "stop",
        Finish::Length | Finish::Pause => "length",
        Finish::ToolCalls => "tool_calls",
        Finish::ContentFilter => "content_filter",
    }
}

/// Milliseconds, to the microsecond.
pub(crate) fn millis(span: std::time::Duration) -> f64 {
    (span.as_secs_f64() * 1e6).round() / 1e3
}
