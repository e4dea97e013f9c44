//! What the turn holds, as [`super::super::buffer`] counts it.

use super::{Engine, FULL};
use crate::gateway::buffer::{GiveUp, Held};
use crate::gateway::lock;
use crate::relay::Why;
use std::sync::Mutex;

impl GiveUp for Mutex<Engine> {
    fn give_up(&self) {
        lock(self).hang_up(Why::NoRoom);
    }
}

impl Engine {
    /// Takes over what the request holds.
    pub(super) fn keep(&mut self, held: Held) {
        self.asked = held.bytes();
        self.held = held;
    }

    /// Counts what the turn holds now, if that has changed by much.
    pub(super) fn weigh(&mut self) {
        let told = self.relay.turn().bytes();
        // A whole answer is gathered until its end, and one that is kept is gathered for that.
        let copies = usize::from(!self.stream) + usize::from(self.part.is_some());
        // A whole batch shows that the provider is quicker than the client, so that its connection reads ahead.
        let ahead = if FULL <= self.handed { READ_AHEAD } else { 0 };
        let grown = self.relay.footprint() + copies * told + self.out.len() + self.handed + ahead;
        self.count(self.asked + grown);
    }

    fn count(&mut self, bytes: usize) {
        if SLACK < bytes.abs_diff(self.held.bytes()) {
            self.held.grow(bytes, self.live.setup.config.server.buffer);
        }
    }

    /// Gives back what a turn that is over needs no more, even if its client does not take its last words.
    pub(super) fn let_go(&mut self) {
        self.relay.let_go();
        let request = self.request.take();
        if HEAVY < self.asked {
            // To take it apart may last.
            drop(self.gateway.readers.run(move || drop(request)));
        }
        self.asked = 0;
        self.held.grow(self.out.len() + self.handed, usize::MAX);
    }
}

/// What a connection whose answer is not taken holds besides: hyper reads up to 408 KiB at a time, and has another such
/// piece on the way. Measured with 200 clients that took nothing: 0.5 MiB for each.
const READ_AHEAD: usize = 1 << 19;
/// Changes of fewer bytes are not worth counting.
const SLACK: usize = 16 << 10;
/// A request of more bytes is taken apart by others than the runtime's workers.
const HEAVY: usize = 4 << 20;
