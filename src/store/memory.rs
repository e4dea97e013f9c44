//! Conversations in the memory of this process.
//!
//! Bounded twice: a conversation is kept for a time after its last turn, and all together occupy so many bytes at most,
//! for which those go first that were idle longest. One that alone is over the bound is not kept. There is no task that
//! tidies up: whoever writes pays for what has become too old.

use super::{Answer, Change, Conversation, Key, Question, Store, Unavailable};
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A store in memory.
pub struct Memory {
    bounds: Bounds,
    clock: Clock,
    shelf: Mutex<Shelf>,
}

/// What a store in memory keeps at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// All conversations together, in bytes, by estimate.
    pub max_bytes: usize,
    /// How long a conversation is kept after its last turn.
    pub ttl: Duration,
}

/// Gives the time.
pub type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// What a store in memory holds at this moment, and what it had to let go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Conversations.
    pub conversations: usize,
    /// Bytes, by estimate.
    pub bytes: usize,
    /// Conversations that had to make room.
    pub evicted: u64,
    /// Conversations that became too old.
    pub expired: u64,
}

#[derive(Default)]
struct Shelf {
    kept: HashMap<Key, Kept>,
    /// The keys by when their conversation was last written; the number tells equal times apart.
    idle: BTreeMap<(Instant, u64), Key>,
    number: u64,
    holdings: Holdings,
}

struct Kept {
    conversation: Conversation,
    bytes: usize,
    /// Its place in `Shelf::idle`.
    written: (Instant, u64),
}

// === impl Memory ===

impl Memory {
    /// An empty store.
    pub fn new(bounds: Bounds, clock: Clock) -> Self {
        Self { bounds, clock, shelf: Mutex::default() }
    }

    /// What it holds.
    pub fn holdings(&self) -> Holdings {
        self.shelf().holdings
    }

    fn change<T>(&self, change: impl FnOnce(&mut Shelf, Instant) -> T) -> T {
        let now = (self.clock)();
        let mut shelf = self.shelf();
        shelf.expire(self.bounds.ttl, now);
        change(&mut shelf, now)
    }

    /// A conversation is whole at every moment at which a lock could be poisoned.
    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Memory {
    fn load<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Conversation>, Unavailable>> {
        let found = self.change(|shelf, _| shelf.kept.get(key).map(|kept| kept.conversation.clone()));
        ready(Ok(found)).boxed()
    }

    fn ask<'a>(&'a self, key: &'a Key, question: Question) -> BoxFuture<'a, Result<(), Unavailable>> {
        self.change(|shelf, now| {
            let mut kept = shelf.take(key).unwrap_or_else(|| Kept::new(key, now));
            let change = kept.conversation.ask(question);
            kept.weigh(change);
            shelf.put(key, kept, self.bounds.max_bytes, now);
        });
        ready(Ok(())).boxed()
    }

    fn answer<'a>(&'a self, key: &'a Key, turn: &'a str, answer: Answer) -> BoxFuture<'a, Result<(), Unavailable>> {
        self.change(|shelf, now| {
            let Some(mut kept) = shelf.take(key) else { return };
            let change = kept.conversation.answer(turn, answer);
            kept.weigh(change.unwrap_or_default());
            shelf.put(key, kept, self.bounds.max_bytes, now);
        });
        ready(Ok(())).boxed()
    }

    fn forget<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<bool, Unavailable>> {
        let found = self.change(|shelf, _| shelf.take(key).is_some());
        ready(Ok(found)).boxed()
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("bounds", &self.bounds)
            .field("holdings", &self.holdings())
            .finish_non_exhaustive()
    }
}

// === impl Shelf ===

impl Shelf {
    fn take(&mut self, key: &Key) -> Option<Kept> {
        let kept = self.kept.remove(key)?;
        self.idle.remove(&kept.written);
        self.holdings.bytes -= kept.bytes;
        self.holdings.conversations -= 1;
        Some(kept)
    }

    fn put(&mut self, key: &Key, mut kept: Kept, max_bytes: usize, now: Instant) {
        if max_bytes < kept.bytes {
            // Nobody else has to go for what does not fit anyway.
            tracing::warn!(conversation = &*key.conversation, bytes = kept.bytes, "too large for store.max_bytes");
            self.holdings.evicted += 1;
            return;
        }
        self.make_room(max_bytes - kept.bytes);
        self.number += 1;
        kept.written = (now, self.number);
        self.holdings.bytes += kept.bytes;
        self.holdings.conversations += 1;
        self.idle.insert(kept.written, key.clone());
        self.kept.insert(key.clone(), kept);
    }

    fn expire(&mut self, ttl: Duration, now: Instant) {
        while let Some((&(written, _), key)) = self.idle.first_key_value()
            && now.saturating_duration_since(written) >= ttl
        {
            let key = key.clone();
            self.take(&key);
            self.holdings.expired += 1;
        }
    }

    fn make_room(&mut self, room: usize) {
        while room < self.holdings.bytes
            && let Some(key) = self.idle.first_key_value().map(|(_, key)| key.clone())
        {
            self.take(&key);
            self.holdings.evicted += 1;
        }
    }
}

// === impl Kept ===

impl Kept {
    fn new(key: &Key, now: Instant) -> Self {
        // The key stands in two places.
        let names = key.conversation.len() + key.tenant.as_ref().map_or(0, |t| t.len());
        Self { conversation: Conversation::default(), bytes: CONVERSATION + 2 * names, written: (now, 0) }
    }

    fn weigh(&mut self, change: Change) {
        self.bytes = (self.bytes + change.added).saturating_sub(change.freed);
    }
}

// === helpers ===

/// What a conversation occupies besides its exchanges.
const CONVERSATION: usize = 512;

#[cfg(test)]
#[path = "tests/memory.rs"]
mod tests;
