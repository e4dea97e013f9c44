//! What fails when: fixed before anything runs, and the same for every system that is measured.

use serde::{Deserialize, Serialize};

/// How a provider fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// It takes the request and says nothing.
    Timeout,
    /// It answers 502.
    ApiError,
    /// It answers 429.
    RateLimit,
    /// It falls silent in the middle of its answer, with the connection open.
    Stall,
    /// Its connection is reset in the middle of its answer.
    Reset,
    /// Its body ends in the middle of its answer, cleanly and without a finish.
    Truncation,
    /// It sends an error event in the middle of its answer.
    ErrorEvent,
}

/// One failure of one conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The index in the conversation's messages of the user's message whose answer fails.
    pub turn: usize,
    /// Until which message (inclusive) the struck providers stay in this failure; `turn` itself, or the probe.
    pub until: usize,
    /// How.
    pub mode: Mode,
    /// How many tokens (words of the built-in providers) of the leg are said before it; only where it fails in the middle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<usize>,
    /// The providers that fail, in the order in which they are asked: one, or two or three in a rolling failure.
    pub providers: Vec<String>,
    /// The provider that is left to answer.
    pub fallback: String,
}

/// What fails in one conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The conversation.
    pub conversation: String,
    /// Its failures in the order of their turns; none of them overlap.
    pub failures: Vec<Failure>,
}

/// A kind of manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Failures before the first word, as in the paper: timeout, API error, rate limit.
    Turn,
    /// Failures in the middle of an answer.
    MidTurn,
    /// Two or three providers fail one after the other within one answer.
    Rolling,
    /// Failures at several turns of one conversation.
    Repeated,
}

/// What fails in a whole run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of this format.
    pub version: u32,
    /// What it was drawn from.
    pub seed: u64,
    /// Its kind.
    pub shape: Shape,
    /// One for each conversation, in the order of the suite.
    pub plans: Vec<Plan>,
}

// === impl Mode ===

impl Mode {
    /// Whether it strikes in the middle of an answer.
    pub fn is_mid_turn(self) -> bool {
        matches!(self, Self::Stall | Self::Reset | Self::Truncation | Self::ErrorEvent)
    }
}
