//! Structured answers are checked by others: the relay knows no JSON, and a check takes time.

use super::{AttemptId, Relay};
use std::time::Instant;

/// What came of the check of a structured answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// It is what was asked for.
    Fits,
    /// It is not.
    Differs,
    /// That could not be said, or only in part; why. It is told as it is.
    Unsure(&'static str),
}

// === impl Relay ===

impl Relay {
    /// The answer to [`super::Action::Check`]; one that comes too late is nobody's.
    pub fn handle_checked(&mut self, id: AttemptId, checked: Checked, now: Instant) {
        let Some(index) = self.runners.iter().position(|r| r.id == id) else { return };
        if let Checked::Unsure(why) = checked {
            self.journal.unsure(id, why);
        }
        match self.runners[index].sieve.answer(checked) {
            Ok(told) => self.hear(index, told, now),
            Err(failure) => self.on_failed(id, &failure, now),
        }
    }
}
