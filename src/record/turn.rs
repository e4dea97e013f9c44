//! One turn and its attempts as they are remembered and shown, under way or ended.

use crate::failure::Kind;
use crate::relay::journal::{self, Cause, End, Journal};
use crate::relay::{self, Relay};
use serde::{Serialize, Serializer};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is under way.
    Open,
    /// With the model's own reason.
    Complete,
    /// Nothing was told.
    Failed,
    /// The client left.
    Interrupted,
    /// With an error after text.
    Incomplete,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It is under way.
    Open,
    /// It finished the turn.
    Ok,
    /// It failed.
    Failed,
    /// It was closed because the turn ended without it.
    Cancelled,
    /// Another attempt won.
    Superseded,
}

/// Whose turn it is.
#[derive(Clone, Debug)]
pub struct Whose {
    /// The turn's id.
    pub turn: String,
    /// Whose; `None` without tenants.
    pub tenant: Option<Arc<str>>,
    /// The first digits of its key's digest, which tell keys of a tenant apart.
    pub key: Option<Arc<str>>,
    /// The level that serves it.
    pub level: Arc<str>,
    /// The conversation, if it belongs to one.
    pub conversation: Option<Arc<str>>,
    /// When it began.
    pub started: SystemTime,
    /// An estimate of the prompt's tokens, for providers that never say.
    pub estimate: u64,
}

/// One turn, under way or ended.
#[derive(Clone, Debug, Serialize)]
pub struct TurnRecord {
    /// Its id.
    pub turn: String,
    /// Whose; `None` without tenants.
    pub tenant: Option<Arc<str>>,
    /// The first digits of its key's digest; `None` without tenants.
    pub key: Option<Arc<str>>,
    /// The level that served it.
    pub level: Arc<str>,
    /// The conversation, if it belongs to one.
    pub conversation: Option<Arc<str>>,
    /// How it ended.
    pub outcome: Outcome,
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

/// One attempt of a turn.
#[derive(Clone, Debug, Serialize)]
pub struct AttemptRecord {
    /// Whom.
    pub connection: Arc<str>,
    /// What.
    pub model: Arc<str>,
    /// Why it was opened.
    pub cause: Cause,
    /// How it ended.
    pub outcome: Fate,
    /// The kind of failure.
    pub failure: Option<Kind>,
    /// The quality that the level gives to its target; 1 is best.
    pub quality: u32,
    /// From the beginning of the turn, in milliseconds.
    pub opened_ms: f64,
    /// When it was sent, from the beginning of the turn, in milliseconds; it may have queued until then.
    pub sent_ms: Option<f64>,
    /// From its send to its first progress, in milliseconds.
    pub first_token_ms: Option<f64>,
    /// When the client was first told something of it, from the beginning of the turn, in milliseconds.
    pub told_from_ms: Option<f64>,
    /// When the client was last told something of it, from the beginning of the turn, in milliseconds.
    pub told_to_ms: Option<f64>,
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
    /// The turn `whose`, as far as `relay` has come with it.
    pub fn of(whose: Whose, relay: &Relay) -> Self {
        let (journal, turn) = (relay.journal(), relay.turn());
        let since = |at: Instant| millis(at.saturating_duration_since(journal.started));
        Self {
            turn: whose.turn,
            tenant: whose.tenant,
            key: whose.key,
            level: whose.level,
            conversation: whose.conversation,
            outcome: Outcome::of(journal.outcome.as_ref(), turn.is_silent()),
            finish: turn.choices()[0].finish.as_ref().map(finish),
            delivered_chars: turn.chars(),
            splices: journal.splices,
            started: whose.started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64(),
            first_told_ms: journal.first_told.map(since),
            longest_silence_ms: millis(journal.longest_silence),
            duration_ms: journal.ended.map(since),
            attempts: AttemptRecord::all(journal, whose.estimate),
        }
    }

    /// The attempt that the client was told something of last; where it was told nothing, the one that ended well.
    pub fn speaker(&self) -> Option<&AttemptRecord> {
        let told = self.attempts.iter().rev().find(|a| a.told_to_ms.is_some());
        told.or_else(|| self.attempts.iter().rev().find(|a| a.outcome == Fate::Ok))
    }

    /// Each time that another attempt went on in mid-turn: how long the client heard nothing, in milliseconds, and the
    /// attempt that went on.
    pub fn splice_gaps(&self) -> impl Iterator<Item = (f64, &AttemptRecord)> {
        let mut told: Vec<&AttemptRecord> = self.attempts.iter().filter(|a| a.told_from_ms.is_some()).collect();
        told.sort_by(|a, b| a.told_from_ms.unwrap_or_default().total_cmp(&b.told_from_ms.unwrap_or_default()));
        let pairs: Vec<_> = told.windows(2).map(|pair| (pair[0].told_to_ms, pair[1].told_from_ms, pair[1])).collect();
        pairs.into_iter().filter_map(|(to, from, next)| Some(((from? - to?).max(0.0), next)))
    }

    /// The longest prompt of any attempt and the tokens that the client was given: the turn as one.
    pub fn tokens(&self) -> (u64, u64) {
        let prompt = self.attempts.iter().map(|a| a.prompt_tokens).max().unwrap_or_default();
        (prompt, self.attempts.iter().map(|a| a.delivered_tokens).sum())
    }
}

// === impl AttemptRecord ===

impl AttemptRecord {
    /// The attempts of a turn; `estimate` is that of the prompt's tokens, for providers that never said.
    pub fn all(journal: &Journal, estimate: u64) -> Vec<Self> {
        let since = |at: Instant| millis(at.saturating_duration_since(journal.started));
        let record = |a: &journal::Attempt| {
            let (prompt_tokens, completion_tokens, estimated) = a.cost(estimate);
            let failed = matches!(a.end, Some(End::Failed(_)));
            let first = a.sent.zip(a.first_progress);
            Self {
                connection: Arc::clone(&a.target.connection),
                model: Arc::clone(&a.target.model),
                cause: a.cause,
                outcome: a.end.map_or(Fate::Open, Fate::from),
                failure: a.failure.as_ref().filter(|_| failed).map(|f| f.kind),
                quality: a.target.quality,
                opened_ms: since(a.opened),
                sent_ms: a.sent.map(since),
                first_token_ms: first.map(|(sent, at)| millis(at.saturating_duration_since(sent))),
                told_from_ms: a.told_from.map(since),
                told_to_ms: a.told_to.map(since),
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

    /// Its request went to a provider.
    pub fn was_sent(&self) -> bool {
        self.sent_ms.is_some()
    }

    /// The client was told something of it.
    pub fn has_told(&self) -> bool {
        self.delivered_tokens > 0
    }

    /// What its tokens were for: `leader`, the attempt that the client heard; `continuation`, one that went on with what
    /// another had begun; `hedge_loser`, one that was started on suspicion and not heard; `abandoned`, any other that was
    /// not heard.
    pub fn spent_as(&self) -> &'static str {
        match (self.has_told(), self.cause) {
            (true, Cause::Continuation | Cause::Suspect | Cause::Pace) => "continuation",
            (true, _) => "leader",
            (false, cause) if cause.is_challenge() => "hedge_loser",
            (false, _) => "abandoned",
        }
    }
}

// === impl Outcome ===

impl Outcome {
    /// Of a turn that came to `outcome`; `silent`: nothing was told.
    pub fn of(outcome: Option<&relay::Outcome>, silent: bool) -> Self {
        match outcome {
            Some(relay::Outcome::Complete(_)) => Self::Complete,
            Some(relay::Outcome::Interrupted(_)) => Self::Interrupted,
            Some(relay::Outcome::Failed(_)) if silent => Self::Failed,
            Some(relay::Outcome::Failed(_)) => Self::Incomplete,
            None => Self::Open,
        }
    }

    /// Its name everywhere.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Incomplete => "incomplete",
        }
    }

    /// The client was let down.
    pub fn is_bad(self) -> bool {
        matches!(self, Self::Failed | Self::Incomplete)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

// === impl Fate ===

impl Fate {
    /// Its name everywhere.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Superseded => "superseded",
        }
    }
}

impl From<End> for Fate {
    fn from(end: End) -> Self {
        match end {
            End::Ok => Self::Ok,
            End::Failed(_) => Self::Failed,
            End::Cancelled => Self::Cancelled,
            End::Superseded => Self::Superseded,
        }
    }
}

// === names of what other rooms count ===

impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

// === helpers ===

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
pub(crate) fn millis(span: Duration) -> f64 {
    (span.as_secs_f64() * 1e6).round() / 1e3
}
