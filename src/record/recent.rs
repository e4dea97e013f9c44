//! The turns that ended last.

use super::{Ended, Sink, TurnRecord};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// The last [`KEPT`] turns.
#[derive(Debug, Default)]
pub struct Recent(Mutex<VecDeque<Arc<TurnRecord>>>);

// === impl Recent ===

impl Recent {
    /// At most `limit` of them, newest first.
    pub fn last(&self, limit: usize) -> Vec<TurnRecord> {
        let kept: Vec<Arc<TurnRecord>> = self.with(|kept| kept.iter().rev().take(limit).cloned().collect());
        kept.iter().map(|record| (**record).clone()).collect()
    }

    /// The turn with this id.
    pub fn find(&self, id: &str) -> Option<Arc<TurnRecord>> {
        self.with(|kept| kept.iter().rev().find(|record| record.turn == id).cloned())
    }

    fn with<T>(&self, ask: impl FnOnce(&mut VecDeque<Arc<TurnRecord>>) -> T) -> T {
        ask(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Sink for Recent {
    fn name(&self) -> &'static str {
        "recent"
    }

    fn turn(&self, ended: &Ended<'_>) {
        // What is pushed out is freed when the lock is free again.
        let _old = self.with(|kept| {
            kept.push_back(Arc::clone(ended.record));
            (kept.len() > KEPT).then(|| kept.pop_front())
        });
    }
}

/// How many ended turns are remembered.
pub const KEPT: usize = 1000;
