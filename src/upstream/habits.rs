//! What a connection's models have been seen to do.
//!
//! Some servers end an answer with the terminator alone, and never say why they stopped; of most the same means that the
//! answer was cut off. Which is which is learnt from their own answers.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// Which models say why they stop, by the names that they give themselves.
#[derive(Debug, Default)]
pub(super) struct Habits(Mutex<HashSet<String>>);

// === impl Habits ===

impl Habits {
    /// `model` has said why it stopped.
    pub(super) fn finishes(&self, model: &str) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MODELS && !known.contains(model) {
            known.insert(model.to_owned());
        }
    }

    /// Whether `model` has ever said why it stopped.
    pub(super) fn does_finish(&self, model: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(model)
    }
}

// === helpers ===

/// How many models of a connection are remembered.
const MODELS: usize = 1024;
