//! What can go wrong with an attempt: facts with a stage and a source. Words for people are made at the edge.
//!
//! The set of kinds is small and closed, each with one disposition ([`Kind::disposition`]) and one meaning for the
//! target's health ([`Kind::verdict`]). Everything vendor-specific is in [`Said`], which is what the provider said.

use crate::words::redact::Redactor;
use std::time::{Duration, SystemTime};

mod declined;
mod remedy;

pub use declined::Declined;
pub use remedy::{CallIds, Instructions, Remedy};

/// One failed attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// What kind of failure.
    pub kind: Kind,
    /// How far the attempt had come.
    pub stage: Stage,
    /// Who caused it.
    pub source: Source,
    /// When the target may be asked again, if the provider said so.
    pub retry_at: Option<RetryAt>,
    /// The provider says that asking it again is of no use (`x-should-retry: false`).
    pub no_retry: bool,
    /// A way in which the same target may be asked again at once.
    pub remedy: Option<Remedy>,
    /// The kind was read from words alone, which may be the request's own, repeated: no status, type or code tells it.
    /// Such a failure says nothing of the target to other turns until it is borne out.
    pub by_words: bool,
    /// The HTTP status of the upstream's answer, if there was one.
    pub status: Option<u16>,
    /// The provider's own words: bounded to [`Said::HEARD`] bytes a field where they are read, and to [`Said::MAX`] once the
    /// secrets are taken out of them.
    pub said: Said,
}

/// The kinds of failure, under the names that the admin interface shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The connection was refused or timed out.
    Connect,
    /// The name did not resolve.
    Dns,
    /// The TLS handshake failed.
    Tls,
    /// The connection broke while the answer was under way.
    Reset,
    /// The body ended without a finish.
    Truncated,
    /// An event could not be parsed.
    Malformed,
    /// The body was no event stream, or an event was over the limit.
    Framing,
    /// No progress within `first_token`.
    FirstTokenTimeout,
    /// Silence in mid-turn.
    Stalled,
    /// 500 and the like.
    ServerError,
    /// 503, 529, an overloaded error event.
    Overloaded,
    /// 429.
    RateLimited,
    /// The account has no credit left.
    QuotaExhausted,
    /// Our key is wrong.
    Auth,
    /// The prompt does not fit the model.
    ContextTooLong,
    /// The provider's policy stopped the request or the answer.
    ContentFiltered,
    /// The form of the request is one that this target does not take (a field, a role, a call id, a part, a limit's
    /// value): the same target once more in the form it takes, if [`Failure::remedy`] names one.
    Repairable,
    /// The target cannot serve this entry of the chain (model, route, key or region), at whatever status it said so.
    NotForUs,
    /// The request itself is wrong.
    BadRequest,
    /// The stream ended without one frame.
    EmptyTurn,
    /// A continuation does not fit what was delivered.
    SeamRejected,
    /// The target could not be asked now: circuit open, resting, queue too long.
    Unavailable,
    /// We closed it.
    Cancelled,
}

/// How far an attempt had come when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Before a connection stood.
    Connecting,
    /// Before response headers.
    Waiting,
    /// The response was an error.
    Refused,
    /// Inside the stream.
    Streaming,
    /// At the seam.
    Joining,
}

/// Who caused a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The provider or the way to it.
    Upstream,
    /// Segue: limits, circuits, deadlines.
    Gateway,
}

/// When a target may be asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAt {
    /// After this time from now.
    In(Duration),
    /// At this time of day.
    At(SystemTime),
}

/// A provider's own words about an error; all empty where it said nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Error type, such as `overloaded_error`.
    pub r#type: String,
    /// Error code, such as `context_length_exceeded`.
    pub code: String,
    /// Message for people.
    pub message: String,
    /// The parameter it is about.
    pub param: String,
}

/// What the relay does about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// The next target, at once.
    Next,
    /// Once more at the same target after a short pause if nothing was delivered; else the next.
    Again,
    /// Wait for this target or switch, as the level says.
    WaitOrSwitch,
    /// The next target whose context window may be larger; without one, the client is told.
    Larger,
    /// The request may be at fault: one more target is asked, and if that refuses it too, the client is told.
    Opinion,
    /// The client is told; nobody else is asked.
    Tell,
    /// Nothing: the attempt was ended by us.
    Nothing,
}

/// What an attempt's end says about the health of its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It served.
    Serve,
    /// It failed.
    Fail,
    /// It cannot be used until someone acts: out until the cooldown ends.
    Out,
    /// It says nothing.
    Abandon,
}

// === impl Kind ===

impl Kind {
    /// All kinds, for tables.
    pub const ALL: [Self; 23] = [
        Self::Connect,
        Self::Dns,
        Self::Tls,
        Self::Reset,
        Self::Truncated,
        Self::Malformed,
        Self::Framing,
        Self::FirstTokenTimeout,
        Self::Stalled,
        Self::ServerError,
        Self::Overloaded,
        Self::RateLimited,
        Self::QuotaExhausted,
        Self::Auth,
        Self::ContextTooLong,
        Self::ContentFiltered,
        Self::Repairable,
        Self::NotForUs,
        Self::BadRequest,
        Self::EmptyTurn,
        Self::SeamRejected,
        Self::Unavailable,
        Self::Cancelled,
    ];

    /// What the relay does about it.
    pub fn disposition(self) -> Disposition {
        match self {
            Self::Connect
            | Self::Dns
            | Self::Tls
            | Self::Reset
            | Self::Truncated
            | Self::Malformed
            | Self::Framing
            | Self::FirstTokenTimeout
            | Self::Stalled
            | Self::Overloaded
            | Self::QuotaExhausted
            | Self::Auth
            | Self::Repairable
            | Self::NotForUs
            | Self::EmptyTurn
            | Self::SeamRejected
            | Self::Unavailable => Disposition::Next,
            Self::ServerError => Disposition::Again,
            Self::RateLimited => Disposition::WaitOrSwitch,
            Self::ContextTooLong => Disposition::Larger,
            Self::BadRequest => Disposition::Opinion,
            Self::ContentFiltered => Disposition::Tell,
            Self::Cancelled => Disposition::Nothing,
        }
    }

    /// What it says about the target's health.
    pub fn verdict(self) -> Verdict {
        match self {
            Self::Connect
            | Self::Dns
            | Self::Tls
            | Self::Reset
            | Self::Truncated
            | Self::Malformed
            | Self::Framing
            | Self::FirstTokenTimeout
            | Self::Stalled
            | Self::ServerError
            | Self::Overloaded
            | Self::EmptyTurn => Verdict::Fail,
            Self::QuotaExhausted | Self::Auth | Self::NotForUs => Verdict::Out,
            Self::RateLimited
            | Self::ContextTooLong
            | Self::ContentFiltered
            | Self::Repairable
            | Self::BadRequest
            | Self::SeamRejected
            | Self::Unavailable
            | Self::Cancelled => Verdict::Abandon,
        }
    }

    /// Whether the way to the provider broke, rather than the provider refusing: what may heal by asking the same
    /// target once more for the rest.
    pub fn is_transport(self) -> bool {
        matches!(
            self,
            Self::Connect
                | Self::Dns
                | Self::Tls
                | Self::Reset
                | Self::Truncated
                | Self::Malformed
                | Self::Framing
                | Self::Stalled
                | Self::FirstTokenTimeout
        )
    }

    /// Its name in the admin interface, the ledger, logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connect => "Connect",
            Self::Dns => "Dns",
            Self::Tls => "Tls",
            Self::Reset => "Reset",
            Self::Truncated => "Truncated",
            Self::Malformed => "Malformed",
            Self::Framing => "Framing",
            Self::FirstTokenTimeout => "FirstTokenTimeout",
            Self::Stalled => "Stalled",
            Self::ServerError => "ServerError",
            Self::Overloaded => "Overloaded",
            Self::RateLimited => "RateLimited",
            Self::QuotaExhausted => "QuotaExhausted",
            Self::Auth => "Auth",
            Self::ContextTooLong => "ContextTooLong",
            Self::ContentFiltered => "ContentFiltered",
            Self::Repairable => "Repairable",
            Self::NotForUs => "NotForUs",
            Self::BadRequest => "BadRequest",
            Self::EmptyTurn => "EmptyTurn",
            Self::SeamRejected => "SeamRejected",
            Self::Unavailable => "Unavailable",
            Self::Cancelled => "Cancelled",
        }
    }
}

// === impl Failure ===

impl Failure {
    /// A failure of the upstream without anything said.
    pub fn new(kind: Kind, stage: Stage) -> Self {
        Self {
            kind,
            stage,
            source: Source::Upstream,
            retry_at: None,
            no_retry: false,
            remedy: None,
            by_words: false,
            status: None,
            said: Said::default(),
        }
    }

    /// What it says about the target's health: nothing, if the gateway itself caused it.
    pub fn verdict(&self) -> Verdict {
        if self.source == Source::Gateway { Verdict::Abandon } else { self.kind.verdict() }
    }

    /// The same with a message for people.
    #[must_use]
    pub fn saying(mut self, message: impl Into<String>) -> Self {
        self.said.message = Said::clip(message.into());
        self
    }

    /// The same, known by words alone; see [`Self::by_words`].
    #[must_use]
    pub fn by_words(mut self) -> Self {
        self.by_words = true;
        self
    }

    /// The same, caused by the gateway itself.
    #[must_use]
    pub fn ours(mut self) -> Self {
        self.source = Source::Gateway;
        self
    }
}

// === impl RetryAt ===

impl RetryAt {
    /// How long from `wall` until then; zero if it has passed.
    pub fn after(self, wall: SystemTime) -> Duration {
        match self {
            Self::In(wait) => wait,
            Self::At(at) => at.duration_since(wall).unwrap_or_default(),
        }
    }
}

// === impl Said ===

impl Said {
    /// The most bytes that are kept of one field.
    pub const MAX: usize = 2048;
    /// The most bytes that are read of one field. It is more than is kept: a secret that the shorter cut divides could no
    /// longer be found.
    pub const HEARD: usize = 16 * 1024;

    /// `text`, cut to [`Self::HEARD`] bytes at a character boundary.
    pub fn clip(text: String) -> String {
        cut(text, Self::HEARD)
    }

    /// The same words without any of `secrets`, cut to what is kept.
    #[must_use]
    pub fn without(self, secrets: &[&Redactor]) -> Self {
        let clean = |text| cut(secrets.iter().fold(text, |text, redactor| redactor.clean(text)), Self::MAX);
        let Self { r#type, code, message, param } = self;
        Self { r#type: clean(r#type), code: clean(code), message: clean(message), param: clean(param) }
    }
}

// === helpers ===

fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
    }
    text
}
