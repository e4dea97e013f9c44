//! How much a turn holds.

use super::Relay;
use crate::turn::Turn;

impl Relay {
    /// About how many bytes of heap the turn takes: what was told, and what is held back. It takes no longer than a few
    /// additions.
    pub fn footprint(&self) -> usize {
        let told = self.turn.bytes();
        // A continuation carries what was told, in its request and at its seam.
        let carried = if self.journal.splices > 0 || self.runners.len() > 1 { 2 * told } else { 0 };
        let held: usize = self.runners.iter().map(|r| r.sieve.footprint()).sum();
        told + carried + self.race.stashed() + held
    }

    /// Forgets what was told, once the turn is over and its account is written.
    pub fn let_go(&mut self) {
        self.turn = Turn::new(0, false);
    }
}
