//! How many bytes of request bodies are held, over all turns: each body counts from its first byte to the end of its
//! turn. A single body is bounded by `server.max_body`, but a thousand of them are not.

use crate::dialect::{Reason, Refusal};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The bytes of one body; given back on drop.
#[derive(Debug)]
pub struct Held {
    all: Arc<AtomicUsize>,
    bytes: usize,
}

// === impl Held ===

impl Held {
    /// A body of which nothing was read yet; `all`: how many bytes are held.
    pub fn of(all: &Arc<AtomicUsize>) -> Self {
        Self { all: Arc::clone(all), bytes: 0 }
    }

    /// Counts `bytes` more of the body, if no more than `limit` are held with them.
    ///
    /// # Errors
    /// A 503; the bytes are not counted.
    pub fn add(&mut self, bytes: usize, limit: usize) -> Result<(), Refusal> {
        let take = |held: usize| held.checked_add(bytes).filter(|sum| *sum <= limit);
        if self.all.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
            let message = format!(
                "the requests that are open hold as much as this gateway keeps, {limit} bytes (server.buffer); ask again"
            );
            let mut refusal = Refusal::new(Reason::Unavailable, "buffer_full", message);
            refusal.retry_after = Some(AGAIN);
            return Err(refusal);
        }
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// When to ask again.
const AGAIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;

    #[test]
    fn what_is_held_is_bounded_over_all_and_comes_back() {
        let all = Arc::new(AtomicUsize::new(0));
        let (mut one, mut two) = (Held::of(&all), Held::of(&all));
        one.add(60, 100).unwrap();
        two.add(40, 100).unwrap();
        let refusal = two.add(1, 100).unwrap_err();
        assert_eq!((refusal.reason.status(), &*refusal.code), (503, "buffer_full"));
        assert!(refusal.message.contains("server.buffer") && refusal.retry_after.is_some());
        assert!(two.add(usize::MAX, usize::MAX).is_err(), "no sum overflows");
        drop(one);
        two.add(60, 100).unwrap();
        drop(two);
        assert_eq!(all.load(Ordering::Relaxed), 0);
    }
}
