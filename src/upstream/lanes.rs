//! Spreads HTTP/2 streams over connections.
//!
//! An HTTP client keeps one HTTP/2 connection to an origin, and a server lets only so many streams into it at once
//! (RFC 9113 recommends to allow no fewer than 100): the next turn would wait in silence until another ends, and look
//! like a slow provider. So there are several clients, each with its own connection, and the next is used when those
//! before it are full. HTTP/1.1 has a connection for each turn anyway and uses the first lane only.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Clients of one origin.
pub(super) struct Lanes<C> {
    first: C,
    lanes: Box<[Lane<C>]>,
    /// The origin has answered in HTTP/2.
    multiplexed: AtomicBool,
}

struct Lane<C> {
    client: OnceLock<C>,
    traffic: Arc<Traffic>,
}

#[derive(Default)]
struct Traffic {
    /// Seats that are taken.
    open: AtomicUsize,
    /// Seats that were given back, ever.
    returned: AtomicUsize,
}

/// A place in a lane, given back on drop. Whoever has it holds it until the body of the response has ended.
pub(super) struct Seat(Arc<Traffic>);

// === impl Lanes ===

impl<C: Clone> Lanes<C> {
    /// Streams that are put into one connection: what every server should allow.
    pub(super) const STREAMS: usize = 100;
    /// The most connections; past `MAX * STREAMS` turns they share.
    pub(super) const MAX: usize = 64;

    pub(super) fn new(first: C, multiplexed: bool) -> Self {
        let lane = || Lane { client: OnceLock::new(), traffic: Arc::default() };
        Self {
            first,
            lanes: std::iter::repeat_with(lane).take(Self::MAX).collect(),
            multiplexed: AtomicBool::new(multiplexed),
        }
    }

    /// Notes that the origin speaks HTTP/2.
    pub(super) fn set_multiplexed(&self) {
        if !self.multiplexed.load(Ordering::Relaxed) {
            self.multiplexed.store(true, Ordering::Relaxed);
        }
    }

    /// The client for the next turn; `make` builds one for a lane that has none yet (`None`: it shares the first).
    pub(super) fn take(&self, make: impl FnOnce() -> Option<C>) -> (C, Seat) {
        let index = if self.multiplexed.load(Ordering::Relaxed) { self.roomy() } else { 0 };
        let lane = &self.lanes[index];
        lane.traffic.open.fetch_add(1, Ordering::Relaxed);
        let seat = Seat(Arc::clone(&lane.traffic));
        if index == 0 {
            return (self.first.clone(), seat);
        }
        (lane.client.get_or_init(|| make().unwrap_or_else(|| self.first.clone())).clone(), seat)
    }

    /// The first lane with room, or the one with the fewest streams.
    fn roomy(&self) -> usize {
        let mut least = (usize::MAX, 0);
        for (index, lane) in self.lanes.iter().enumerate() {
            let open = lane.traffic.open.load(Ordering::Relaxed);
            if open < Self::STREAMS {
                return index;
            }
            least = least.min((open, index));
        }
        least.1
    }
}

// === impl Seat ===

impl Seat {
    /// How many seats of its lane were given back so far: while it stands still, no connection came free.
    pub(super) fn returned(&self) -> usize {
        self.0.returned.load(Ordering::Relaxed)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
        self.0.returned.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http1_stays_in_the_first_lane() {
        let lanes = Lanes::new(0, false);
        let seats: Vec<_> = (0..500).map(|_| lanes.take(|| Some(1))).collect();
        assert!(seats.iter().all(|(client, _)| *client == 0));
    }

    #[test]
    fn a_full_connection_gets_a_sibling_and_an_emptied_one_is_used_again() {
        let lanes = Lanes::new(0, true);
        let mut seats: Vec<_> = (0..100).map(|_| lanes.take(|| Some(1))).collect();
        assert!(seats.iter().all(|(client, _)| *client == 0));
        let over = lanes.take(|| Some(1));
        assert_eq!(over.0, 1, "the hundred and first does not wait");
        seats.pop();
        assert_eq!(lanes.take(|| Some(2)).0, 0, "a place that came back is taken first");
        assert_eq!(lanes.take(|| Some(3)).0, 0, "its guard was dropped at once");
        seats.push(lanes.take(|| Some(4)));
        assert_eq!(lanes.take(|| Some(5)).0, 1, "the second lane keeps its client");
    }

    #[test]
    fn past_the_last_lane_the_emptiest_is_shared() {
        let lanes = Lanes::new(0, true);
        let seats: Vec<_> = (0..Lanes::<i32>::MAX * 100).map(|_| lanes.take(|| Some(1))).collect();
        let (_, _seat) = lanes.take(|| Some(2));
        assert_eq!(lanes.lanes[0].traffic.open.load(Ordering::Relaxed), 101);
        drop(seats);
        assert_eq!(lanes.lanes[0].traffic.open.load(Ordering::Relaxed), 1);
    }
}
