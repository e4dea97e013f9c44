//! The rules of one turn, as its request, its level and the gateway's limits make them.

use crate::chat::modality::Modalities;
use crate::routing::Level;
use std::sync::Arc;
use std::time::Duration;

/// The rules of one turn.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The level that serves it.
    pub level: Arc<Level>,
    /// How many answers were asked for.
    pub choices: u32,
    /// The client's limit of visible tokens.
    pub max_tokens: Option<u64>,
    /// An estimate of the prompt's tokens, for attempts whose provider never said.
    pub prompt_estimate: u64,
    /// What the question holds besides text.
    pub asked_in: Modalities,
    /// An answer of which something was told can be continued (one choice, no audio).
    pub continuable: bool,
    /// Structured output is wanted: a whole answer can be checked.
    pub structured: bool,
    /// Challengers may be started on suspicion.
    pub races: bool,
    /// The most bytes of a turn.
    pub max_turn: usize,
    /// The answer is told at its end, so all of it is kept until then.
    pub whole: bool,
    /// The longest wait for a rate limit.
    pub retry_after_cap: Duration,
    /// How long the whole turn may take.
    pub deadline: Duration,
    /// For jitter.
    pub seed: u64,
}
