//! What was heard: the one account that every number of a report is computed from.

use super::manifest::Mode;
use serde::{Deserialize, Serialize};

/// One conversation, played once with one system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The system.
    pub system: String,
    /// Which run, from 0.
    pub run: u32,
    /// The conversation.
    pub conversation: String,
    /// How many messages it has.
    pub length: usize,
    /// The kind of its fact.
    pub fact_type: String,
    /// Every answer, in order; the last is the probe's.
    pub turns: Vec<Heard>,
}

/// One answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Heard {
    /// The index in the conversation of the message that was answered.
    pub turn: usize,
    /// The failure that was planned for this turn.
    pub planned: Option<Mode>,
    /// Whether that failure struck: a provider that was to fail was asked.
    pub struck: bool,
    /// How many providers failed one after the other, as planned; 0 without a failure.
    pub depth: usize,
    /// The text as it was heard.
    pub text: String,
    /// How it ended.
    pub end: End,
    /// From the request to the first character, over all tries of the client.
    pub first_ms: Option<f64>,
    /// From the request to the end, over all tries of the client.
    pub total_ms: f64,
    /// The longest silence between two pieces of text.
    pub silence_ms: f64,
    /// The silence at the seam: between the last piece of a leg that failed in the middle and the next.
    pub gap_ms: Option<f64>,
    /// What became of the text; `None` where nobody can know: a real provider's words.
    pub seam: Option<Seam>,
    /// How often the client asked again.
    pub client_retries: u32,
    /// Requests that reached a provider.
    pub provider_requests: u32,
    /// Milliseconds in which a provider was at work on it; where providers raced, of the longest.
    pub provider_ms: f64,
    /// Tokens that providers were sent, and that they generated.
    pub tokens: [u64; 2],
    /// Whether the message with the fact reached the provider that answered; `None` where nobody can know.
    pub history_arrived: Option<bool>,
    /// The provider that said the last word.
    pub served_by: Option<String>,
}

/// How an answer ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "how", content = "detail")]
pub enum End {
    /// With a finish reason of the model's and the stream's terminator.
    Finished,
    /// With an error that was told as one: what it said.
    Error(String),
    /// The stream or the connection ended without a word.
    #[default]
    Cut,
}

/// The text against what the providers said: whole, if all of it is nought and the finish was a model's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seam {
    /// Characters that were lost.
    pub lost: usize,
    /// Characters that were told twice.
    pub repeated: usize,
    /// Characters of another conversation, or that no provider said.
    pub foreign: usize,
    /// It ended as finished although its text was not.
    pub faked: bool,
}

// === impl Seam ===

impl Seam {
    /// Whether nothing was lost, doubled or garbled.
    pub fn is_whole(&self) -> bool {
        *self == Self::default()
    }
}
