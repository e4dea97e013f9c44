//! What is asked of a connection, and what it answers.

use crate::failure::Declined;
use crate::health::blame::Plaintiff;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What may be sent to a connection, as it is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests a minute.
    pub rpm: Option<u64>,
    /// Tokens a minute.
    pub tpm: Option<u64>,
    /// The longest time for which a target rests on its provider's word.
    pub retry_after_cap: Duration,
}

/// What an attempt wants of its connection.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The model.
    pub model: Arc<str>,
    /// Whose request it is.
    pub by: Plaintiff,
    /// It may be the one that tries a half-open circuit …
    pub may_try: bool,
    /// … or an open one.
    pub last_resort: bool,
    /// Another candidate is there, so it need not wait behind others for the end of a rest.
    pub others: bool,
    /// Tokens of the prompt.
    pub prompt: u64,
    /// Tokens to reserve, those of the prompt included.
    pub estimate: u64,
}

/// Whether a wish can be granted, the quota aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// Now.
    Go,
    /// Perhaps then, or sooner if an attempt of the same key is answered: not everybody may come at once after a rest.
    Later(Instant),
    /// Not now.
    No(Declined),
}

/// Whether a target may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// Yes.
    Ready,
    /// Its provider asked to be left alone.
    Resting {
        /// Until then, as the provider said it.
        until: Instant,
    },
    /// Its circuit is open, or another turn tries it, or its key is refused.
    Open {
        /// Until then, as far as it is known.
        until: Instant,
    },
    /// Its circuit is half-open: one turn with nothing delivered and another candidate behind may try.
    Trial,
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self { rpm: None, tpm: None, retry_after_cap: Duration::from_secs(60) }
    }
}
