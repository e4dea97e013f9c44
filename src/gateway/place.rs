//! One conversation, one turn at a time: who holds a conversation, and who waits for it.
//!
//! A turn that belongs to a conversation holds a [`Place`] while it is open and until its answer is kept. A second turn is
//! refused, waits, or takes the place of the first, as its level says. Whoever waits is served in order; a turn that
//! supersedes sends away everyone who waits, for it is newer than they are.
//!
//! To supersede does not depend on anybody being awake: the turn that is hung up is ended by whoever hangs it up, in the
//! same call, even if its client has stopped reading and nothing polls it.

use crate::routing::Concurrency;
use crate::store::Key;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// All conversations that have an open turn.
#[derive(Default)]
pub(super) struct Places {
    lines: Mutex<HashMap<Key, Line>>,
}

/// A turn's hold on its conversation; given back on drop.
pub(super) struct Place {
    places: Arc<Places>,
    key: Key,
    hold: Arc<Hold>,
}

/// How the holder of a place is reached.
pub(super) struct Hold {
    /// Cancelled when the turn must end.
    token: CancellationToken,
    turn: Mutex<Option<Weak<dyn Supersede>>>,
}

/// A turn that can be ended from outside.
pub(super) trait Supersede: Send + Sync {
    /// Ends the turn now, because a newer one took its place.
    fn supersede(&self);
}

/// Why a turn gets no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Busy {
    /// Another turn holds it.
    Held,
    /// It waited as long as it may.
    Waited,
    /// A newer turn came.
    Superseded,
    /// Too many wait already.
    Full,
    /// The gateway shuts down.
    Draining,
}

struct Line {
    holder: Arc<Hold>,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    hold: Arc<Hold>,
    place: oneshot::Sender<Place>,
}

// === impl Places ===

impl Places {
    /// Waits for the conversation: at most `patience`, or [`GRACE`] where a second turn is to be rejected. `parent` ends
    /// the turn when it is cancelled.
    pub(super) async fn take(
        self: &Arc<Self>,
        key: Key,
        policy: Concurrency,
        patience: Duration,
        parent: &CancellationToken,
    ) -> Result<Place, Busy> {
        let hold = Arc::new(Hold { token: parent.child_token(), turn: Mutex::default() });
        let (wait, before) = match self.enter(key, policy, &hold) {
            Entered::Place(place) => return Ok(place),
            Entered::Full => return Err(Busy::Full),
            Entered::Line(wait, before) => (wait, before),
        };
        if policy == Concurrency::Supersede {
            before.supersede();
        }
        let (patience, tired) = match policy {
            Concurrency::Reject => (GRACE.min(patience), Busy::Held),
            Concurrency::Queue | Concurrency::Supersede => (patience, Busy::Waited),
        };
        tokio::select! {
            biased;
            place = wait => place.map_err(|_| Busy::Superseded),
            () = hold.token.cancelled() => Err(Busy::Draining),
            () = tokio::time::sleep(patience) => Err(tired),
        }
    }

    fn enter(self: &Arc<Self>, key: Key, policy: Concurrency, hold: &Arc<Hold>) -> Entered {
        let mut lines = self.lines();
        let Some(line) = lines.get_mut(&key) else {
            lines.insert(key.clone(), Line { holder: Arc::clone(hold), waiting: VecDeque::new() });
            return Entered::Place(Place { places: Arc::clone(self), key, hold: Arc::clone(hold) });
        };
        line.waiting.retain(|w| !w.place.is_closed());
        if policy == Concurrency::Supersede {
            line.waiting.clear();
        }
        if line.waiting.len() >= WAITING {
            return Entered::Full;
        }
        let (place, wait) = oneshot::channel();
        line.waiting.push_back(Waiting { hold: Arc::clone(hold), place });
        Entered::Line(wait, Arc::clone(&line.holder))
    }

    /// Hands the place of `key` on. One that was handed to somebody who had just given up comes back through its drop.
    fn leave(self: &Arc<Self>, key: &Key) {
        let next = {
            let mut lines = self.lines();
            let Some(line) = lines.get_mut(key) else { return };
            match line.waiting.pop_front() {
                Some(next) => {
                    line.holder = Arc::clone(&next.hold);
                    next
                }
                None => {
                    lines.remove(key);
                    return;
                }
            }
        };
        let place = Place { places: Arc::clone(self), key: key.clone(), hold: next.hold };
        drop(next.place.send(place));
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<Key, Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.lines().is_empty()
    }
}

/// What became of a turn that asked for a place.
enum Entered {
    Place(Place),
    /// It waits behind that holder.
    Line(oneshot::Receiver<Place>, Arc<Hold>),
    Full,
}

// === impl Place ===

impl Place {
    /// Which conversation.
    pub(super) fn key(&self) -> &Key {
        &self.key
    }

    /// Cancelled when the turn must end.
    pub(super) fn token(&self) -> &CancellationToken {
        &self.hold.token
    }

    /// How it is reached, for [`Hold::reach`].
    pub(super) fn hold(&self) -> Arc<Hold> {
        Arc::clone(&self.hold)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.leave(&self.key);
    }
}

// === impl Hold ===

impl Hold {
    /// From now on `turn` is who is ended. A turn that was superseded before it could be reached is ended at once.
    pub(super) fn reach(&self, turn: Weak<dyn Supersede>) {
        *self.turn.lock().unwrap_or_else(PoisonError::into_inner) = Some(turn);
    }

    fn supersede(&self) {
        // Whoever is not reached yet sees this when it begins, and whoever sleeps is woken by it.
        self.token.cancel();
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(Weak::upgrade);
        if let Some(turn) = turn {
            turn.supersede();
        }
    }
}

/// A second turn waits so long for the first one's hang-up before it is rejected: who interrupts hangs up and asks again,
/// and the two arrive in any order.
pub(super) const GRACE: Duration = Duration::from_millis(250);

/// The most turns that wait for one conversation.
pub(super) const WAITING: usize = 64;

#[cfg(test)]
#[path = "tests/place.rs"]
mod tests;
