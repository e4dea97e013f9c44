//! The turns that are open, for people who watch.

use super::lock;
use crate::record::TurnRecord;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

/// How a turn under way is looked at.
pub(super) trait Shown: Send + Sync {
    /// What has come of it so far. `None`: it is over, or it is being worked on in this very moment; nobody waits for it.
    fn show(&self) -> Option<TurnRecord>;
}

/// The turns that are open, by their ids.
#[derive(Default)]
pub(super) struct OpenTurns(Mutex<HashMap<Arc<str>, Weak<dyn Shown>>>);

// === impl OpenTurns ===

impl OpenTurns {
    pub(super) fn enter(&self, id: &Arc<str>, turn: Weak<dyn Shown>) {
        lock(&self.0).insert(Arc::clone(id), turn);
    }

    pub(super) fn leave(&self, id: &str) {
        // The entry is freed when the lock is free again.
        let _left = lock(&self.0).remove(id);
    }

    /// At most `limit` of them, newest first.
    pub(super) fn show(&self, limit: usize) -> Vec<TurnRecord> {
        let open: Vec<Weak<dyn Shown>> = lock(&self.0).values().cloned().collect();
        let mut shown: Vec<TurnRecord> = open.iter().filter_map(|turn| turn.upgrade()?.show()).collect();
        shown.sort_by(|a, b| b.started.total_cmp(&a.started).then_with(|| a.turn.cmp(&b.turn)));
        shown.truncate(limit);
        shown
    }

    pub(super) fn find(&self, id: &str) -> Option<TurnRecord> {
        let turn = lock(&self.0).get(id).cloned()?;
        turn.upgrade()?.show()
    }
}
