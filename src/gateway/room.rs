//! How many turns are open, and who waits until there are fewer.
//!
//! A full gateway refuses. Before it is full, levels that are dear can be refused first, or be made to wait: each has its
//! own bar, a number of open turns past which it does not begin. Who waits is let in in order, as far as its bar allows:
//! a level with a low bar does not keep back one with a high bar.

use super::lock;
use crate::config::Server;
use crate::dialect::{Reason, Refusal};
use crate::routing::Level;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// The places for turns.
#[derive(Default)]
pub(super) struct Room(Mutex<Inside>);

/// A turn's place among the open ones; given back on drop.
pub(super) struct Seat(Arc<Room>);

/// Why there is no place now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoSeat {
    /// As many as the bar allows are open.
    Taken,
    /// Too many wait already.
    Line,
}

#[derive(Default)]
struct Inside {
    open: usize,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    bar: usize,
    seat: oneshot::Sender<Seat>,
}

// === impl Room ===

impl Room {
    /// How many turns are open.
    pub(super) fn open(&self) -> usize {
        lock(&self.0).open
    }

    /// A place, if fewer than `bar` are taken.
    pub(super) fn take(self: &Arc<Self>, bar: usize) -> Result<Seat, NoSeat> {
        let mut inside = lock(&self.0);
        if bar <= inside.open {
            return Err(NoSeat::Taken);
        }
        inside.open += 1;
        drop(inside);
        Ok(Seat(Arc::clone(self)))
    }

    /// A place as soon as fewer than `bar` are taken, after everybody who waits for the same. To drop the future is to
    /// leave the line.
    pub(super) async fn wait(self: &Arc<Self>, bar: usize) -> Result<Seat, NoSeat> {
        let wait = {
            let mut inside = lock(&self.0);
            inside.waiting.retain(|w| !w.seat.is_closed());
            if inside.open < bar && inside.waiting.iter().all(|w| w.bar < bar) {
                inside.open += 1;
                return Ok(Seat(Arc::clone(self)));
            }
            if LINE <= inside.waiting.len() {
                return Err(NoSeat::Line);
            }
            let (seat, wait) = oneshot::channel();
            inside.waiting.push_back(Waiting { bar, seat });
            wait
        };
        wait.await.map_err(|_| NoSeat::Taken)
    }
}

// === impl Seat ===

impl Drop for Seat {
    fn drop(&mut self) {
        let mut inside = lock(&self.0.0);
        inside.open = inside.open.saturating_sub(1);
        // Whoever left must not keep others waiting.
        inside.waiting.retain(|w| !w.seat.is_closed());
        let open = inside.open;
        let next = inside.waiting.iter().position(|w| open < w.bar).and_then(|at| inside.waiting.remove(at));
        if next.is_some() {
            inside.open += 1;
        }
        drop(inside);
        if let Some(next) = next {
            // One who left in this very moment gives the place back like anybody else.
            drop(next.seat.send(Self(Arc::clone(&self.0))));
        }
    }
}

// === helpers ===

/// A place for a turn of `level`, which may wait for it for `patience` and what the level allows.
pub(super) async fn enter(
    room: &Arc<Room>,
    server: &Server,
    level: &Level,
    patience: Duration,
    hangup: &CancellationToken,
) -> Result<Seat, Refusal> {
    let max = server.max_turns;
    let bar = level.shed_at.map_or(max, |share| ((max as f64 * share) as usize).clamp(1, max));
    let name = &level.name;
    let full = || {
        let message = format!("this gateway serves at most {max} turns at once (server.max_turns); ask again");
        busy("full", message)
    };
    match room.take(bar) {
        Ok(seat) => return Ok(seat),
        Err(_) if level.shed_at.is_none() => return Err(full()),
        Err(_) => {}
    }
    let Some(queue) = level.queue.filter(|queue| !queue.is_zero()) else {
        if max <= room.open() {
            return Err(full());
        }
        let message = format!(
            "the gateway is busy, and turns of the level `{name}` do not begin past {bar} open ones (shed_at); ask again, \
             or ask for another level"
        );
        return Err(busy("shed", message));
    };
    let waited = tokio::select! {
        biased;
        seat = room.wait(bar) => seat,
        () = hangup.cancelled() => {
            return Err(Refusal::new(Reason::Unavailable, "draining", "the gateway is shutting down; ask again"));
        }
        () = tokio::time::sleep(queue.min(patience)) => Err(NoSeat::Taken),
    };
    waited.map_err(|why| match why {
        NoSeat::Taken => {
            let message = format!(
                "the gateway was busy, and there was no place for a turn of the level `{name}` within {} ms (queue); ask \
                 again, or ask for another level",
                queue.min(patience).as_millis()
            );
            busy("queue_timeout", message)
        }
        NoSeat::Line => busy("shed", format!("too many turns of the level `{name}` wait already; ask again")),
    })
}

pub(super) fn busy(code: &str, message: String) -> Refusal {
    let mut refusal = Refusal::new(Reason::Unavailable, code, message);
    refusal.retry_after = Some(AGAIN);
    refusal
}

/// When to ask again for a place, of which nobody knows when it will be free.
const AGAIN: Duration = Duration::from_secs(1);
/// The most that wait at once: each holds its request meanwhile.
const LINE: usize = 10_000;

#[cfg(test)]
#[path = "tests/room.rs"]
mod tests;
