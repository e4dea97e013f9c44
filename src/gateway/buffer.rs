//! What all turns hold in memory, and what they may hold together: requests as they are parsed, answers as they grow, what
//! is held back, what waits for a client.
//!
//! Each limit of one turn (`server.max_body`, `server.max_values`, `limits.max_turn`, `limits.max_event`) is harmless; a
//! thousand turns at their limits are not. So there is one bound over all. What would exceed it is not let in; and where turns
//! that are under way grow past it, the largest is ended, and says so.

use super::lock;
use crate::dialect::{Reason, Refusal};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

/// What is held, over all turns.
#[derive(Default)]
pub struct Buffer {
    all: AtomicUsize,
    /// The most that the machine allows, whatever is configured.
    ceiling: OnceLock<usize>,
    turns: Mutex<Turns>,
    /// A turn is being ended: nobody else is, before it has given up what it held.
    ending: AtomicBool,
}

#[derive(Default)]
struct Turns {
    next: u64,
    open: HashMap<u64, Open>,
}

/// A turn that can be ended.
struct Open {
    bytes: Arc<AtomicUsize>,
    turn: Weak<dyn GiveUp>,
}

/// A turn that gives up what it holds.
pub(super) trait GiveUp: Send + Sync {
    /// Ends the turn now, because there is no room left for it.
    fn give_up(&self);
}

/// What one turn holds; given back on drop.
pub struct Held {
    buffer: Arc<Buffer>,
    bytes: Arc<AtomicUsize>,
    /// Its place among the turns that can be ended; `None` before it is one.
    place: Option<u64>,
}

// === impl Buffer ===

impl Buffer {
    /// Allows no more than `bytes`, whatever is configured; the first word holds.
    pub(super) fn confine(&self, bytes: usize) {
        let _ = self.ceiling.set(bytes);
    }

    /// What may be held where `configured` is.
    pub(super) fn limit(&self, configured: usize) -> usize {
        self.ceiling.get().map_or(configured, |ceiling| configured.min(*ceiling))
    }

    /// How many bytes are held.
    pub(super) fn held(&self) -> usize {
        self.all.load(Ordering::Relaxed)
    }

    /// Has the largest turn end.
    fn relieve(self: &Arc<Self>) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.ending.swap(true, Ordering::Relaxed) {
            return;
        }
        let largest = self.largest();
        let buffer = Arc::clone(self);
        // Not here: whoever asks is in the middle of a round, and the largest may be in the middle of its own.
        runtime.spawn(async move {
            if let Some(largest) = largest {
                largest.give_up();
            }
            buffer.ending.store(false, Ordering::Relaxed);
        });
    }

    /// Takes the largest turn off the list, to be ended.
    fn largest(&self) -> Option<Arc<dyn GiveUp>> {
        let mut turns = lock(&self.turns);
        let size = |open: &Open| open.bytes.load(Ordering::Relaxed);
        let largest = turns.open.iter().max_by_key(|(_, open)| size(open)).map(|(place, _)| *place)?;
        turns.open.remove(&largest)?.turn.upgrade()
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Buffer").field("held", &self.held()).finish_non_exhaustive()
    }
}

// === impl Held ===

impl Held {
    /// What a turn holds of `buffer`: nothing yet.
    pub fn of(buffer: &Arc<Buffer>) -> Self {
        Self { buffer: Arc::clone(buffer), bytes: Arc::default(), place: None }
    }

    /// How many bytes it holds.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Counts `bytes` more, if with them no more is held than `configured` and the machine allow.
    ///
    /// # Errors
    /// A 503, or a 413 if they alone are too much; the bytes are not counted.
    pub fn add(&mut self, bytes: usize, configured: usize) -> Result<(), Refusal> {
        let limit = self.buffer.limit(configured);
        let mine = self.bytes().saturating_add(bytes);
        if limit < mine {
            let message = format!(
                "this request takes about {mine} bytes of memory, and this gateway has {limit} for all together \
                 (server.buffer); shorten it"
            );
            return Err(Refusal::new(Reason::TooLarge, "request_too_large", message));
        }
        let take = |held: usize| held.checked_add(bytes).filter(|sum| *sum <= limit);
        if self.buffer.all.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
            return Err(full(limit));
        }
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Counts `bytes` for the turn from now on, however many they are; whoever they push over the limit gives up.
    pub(super) fn grow(&mut self, bytes: usize, configured: usize) {
        let before = self.bytes.swap(bytes, Ordering::Relaxed);
        let all = &self.buffer.all;
        if bytes <= before {
            all.fetch_sub(before - bytes, Ordering::Relaxed);
            return;
        }
        let grown = bytes - before;
        let held = all.fetch_add(grown, Ordering::Relaxed).saturating_add(grown);
        if self.buffer.limit(configured) < held {
            self.buffer.relieve();
        }
    }

    /// The turn that holds this can be ended from now on.
    pub(super) fn reach(&mut self, turn: Weak<dyn GiveUp>) {
        let mut turns = lock(&self.buffer.turns);
        let place = turns.next;
        turns.next += 1;
        turns.open.insert(place, Open { bytes: Arc::clone(&self.bytes), turn });
        self.place = Some(place);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.buffer.all.fetch_sub(self.bytes(), Ordering::Relaxed);
        if let Some(place) = self.place {
            lock(&self.buffer.turns).open.remove(&place);
        }
    }
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Held").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

// === helpers ===

fn full(limit: usize) -> Refusal {
    let message =
        format!("the turns that are open hold as much as this gateway keeps, {limit} bytes (server.buffer); ask again");
    let mut refusal = Refusal::new(Reason::Unavailable, "buffer_full", message);
    refusal.retry_after = Some(AGAIN);
    refusal
}

/// When to ask again.
const AGAIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;

    #[test]
    fn what_is_held_is_bounded_over_all_and_comes_back() {
        let buffer = Arc::new(Buffer::default());
        let (mut one, mut two) = (Held::of(&buffer), Held::of(&buffer));
        one.add(60, 100).unwrap();
        two.add(40, 100).unwrap();
        let refusal = two.add(1, 100).unwrap_err();
        assert_eq!((refusal.reason.status(), &*refusal.code), (503, "buffer_full"));
        assert!(refusal.message.contains("server.buffer") && refusal.retry_after.is_some());
        assert!(two.add(usize::MAX, usize::MAX).is_err(), "no sum overflows");
        drop(one);
        two.add(60, 100).unwrap();
        let alone = two.add(1, 100).unwrap_err();
        assert_eq!((alone.reason.status(), alone.retry_after), (413, None), "to ask again would not help");
        drop(two);
        assert_eq!(buffer.held(), 0);
    }

    #[test]
    fn the_machine_may_allow_less_than_is_configured() {
        let buffer = Arc::new(Buffer::default());
        buffer.confine(50);
        assert_eq!((buffer.limit(100), buffer.limit(10)), (50, 10));
        assert!(Held::of(&buffer).add(51, 100).is_err());
    }

    /// A turn that notes that it was ended.
    #[derive(Default)]
    struct Ended(AtomicBool);

    impl GiveUp for Ended {
        fn give_up(&self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn turns_that_grow_past_the_bound_cost_the_largest_its_end() {
        let buffer = Arc::new(Buffer::default());
        let turns: Vec<Arc<Ended>> = (0..3).map(|_| Arc::default()).collect();
        let mut held: Vec<Held> = turns
            .iter()
            .map(|turn| {
                let mut held = Held::of(&buffer);
                let weak: Weak<Ended> = Arc::downgrade(turn);
                held.reach(weak);
                held
            })
            .collect();
        let ended = || turns.iter().map(|t| t.0.load(Ordering::Relaxed)).collect::<Vec<_>>();
        held[0].grow(30, 100);
        held[1].grow(60, 100);
        held[2].grow(10, 100);
        tokio::task::yield_now().await;
        assert_eq!(ended(), [false, false, false]);
        held[2].grow(11, 100);
        tokio::task::yield_now().await;
        assert_eq!(ended(), [false, true, false]);
        held[1].grow(0, 100);
        held[2].grow(90, 100);
        tokio::task::yield_now().await;
        assert_eq!(ended(), [false, true, true], "its own growth may end it");
        drop(held);
        assert_eq!(buffer.held(), 0);
    }
}
