//! What happened, as values, and whoever wants to know of it.
//!
//! A turn that has ended is one event, and so is a circuit that changed. [`Sinks`] is the list of those who are told:
//! the log, alerts, metrics, the ledger, the turns that ended last. A sink is told on the path of a turn, so it must be
//! quick: it counts, or it leaves a note in a bounded queue that somebody else empties, and what finds no place there is
//! dropped and counted ([`Sink::dropped`]).

pub mod account;
pub mod alerts;
pub mod circuit;
pub mod notice;
pub mod recent;
pub mod turn;

pub use circuit::Entry;
pub use turn::{AttemptRecord, Outcome, TurnRecord};

use crate::chat::Request;
use crate::relay::journal::Journal;
use crate::routing::Level;
use crate::turn::Turn;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

/// A turn that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    /// What is remembered of it.
    pub record: &'a Arc<TurnRecord>,
    /// The whole account, with the words of providers.
    pub journal: &'a Journal,
    /// The level that served it.
    pub level: &'a Level,
    /// What the client was told.
    pub turn: &'a Turn,
    /// What it asked, where that is still there.
    pub request: Option<&'a Request>,
    /// When it ended.
    pub now: Instant,
}

/// Somebody who is told what happens. Every method is called on the path of a turn, some with a lock held: it must not
/// wait, block, or ask the gateway.
pub trait Sink: Send + Sync {
    /// Its name in logs and metrics.
    fn name(&self) -> &'static str;

    /// A turn has ended.
    fn turn(&self, _: &Ended<'_>) {}

    /// A circuit has changed its state.
    fn circuit(&self, _: &Entry) {}

    /// A request was refused before a turn began; `code` is one of the gateway's own.
    fn refused(&self, _code: &str) {}

    /// How many events it had to drop so far, because it could not keep up.
    fn dropped(&self) -> u64 {
        0
    }
}

/// Everybody who is told. Cheap to clone; clones are the same list.
#[derive(Clone, Default)]
pub struct Sinks(Arc<RwLock<Vec<Arc<dyn Sink>>>>);

// === impl Sinks ===

impl Sinks {
    /// Tells `sink` too, from now on.
    pub fn add(&self, sink: Arc<dyn Sink>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).push(sink);
    }

    /// Tells everybody of a turn that has ended.
    pub fn turn(&self, ended: &Ended<'_>) {
        self.each(|sink| sink.turn(ended));
    }

    /// Tells everybody of a circuit that has changed.
    pub fn circuit(&self, entry: &Entry) {
        self.each(|sink| sink.circuit(entry));
    }

    /// Tells everybody of a request that was refused.
    pub fn refused(&self, code: &str) {
        self.each(|sink| sink.refused(code));
    }

    /// How many events each had to drop, by its name.
    pub fn dropped(&self) -> Vec<(&'static str, u64)> {
        let mut all = Vec::new();
        self.each(|sink| all.push((sink.name(), sink.dropped())));
        all
    }

    fn each(&self, mut tell: impl FnMut(&dyn Sink)) {
        for sink in self.0.read().unwrap_or_else(PoisonError::into_inner).iter() {
            tell(&**sink);
        }
    }
}

impl std::fmt::Debug for Sinks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut list = f.debug_list();
        self.each(|sink| {
            list.entry(&sink.name());
        });
        list.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[derive(Default)]
    struct Count(AtomicU64);

    impl Sink for Count {
        fn name(&self) -> &'static str {
            "count"
        }

        fn refused(&self, _: &str) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn dropped(&self) -> u64 {
            7
        }
    }

    #[test]
    fn everybody_is_told_and_says_what_it_dropped() {
        let sinks = Sinks::default();
        let (first, second) = (Arc::<Count>::default(), Arc::<Count>::default());
        sinks.add(Arc::clone(&first) as _);
        sinks.refused("draining");
        sinks.clone().add(Arc::clone(&second) as _);
        sinks.refused("draining");
        let told = |count: &Count| count.0.load(Ordering::Relaxed);
        assert_eq!((told(&first), told(&second)), (2, 1));
        assert_eq!(sinks.dropped(), [("count", 7), ("count", 7)]);
        assert_eq!(format!("{sinks:?}"), "[\"count\", \"count\"]");
    }
}
