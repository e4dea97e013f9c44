//! The line before a connection: in flight, requests and tokens a minute.
//!
//! Whoever wants in stands in line, and only its head waits for a slot and for the quota. So there is an order, nobody
//! overtakes, and whoever leaves (a dropped future) leaves nothing behind but a shorter line. Circuit and rest are looked
//! at before the wait, to refuse at once, and again after it, since much can happen in line.

use super::gate::{Gate, Wish};
use super::lease::Lease;
use super::now;
use super::room::Stay;
use crate::failure::Declined;
use crate::health::connection::Look;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::time::{sleep, sleep_until, timeout_at};

/// A place in line; given back when dropped.
struct Place<'a> {
    gate: &'a Gate,
    /// How many stood before it.
    ahead: usize,
}

/// Waits until the attempt may be sent.
pub(super) async fn stand(gate: Arc<Gate>, wish: Wish) -> Result<Lease, Declined> {
    let start = now();
    let deadline = start + wish.patience.min(PATIENCE);
    match timeout_at(deadline.into(), advance(&gate, &wish, deadline)).await {
        Ok(admitted) => admitted,
        Err(_) => Err(too_long(&wish, gate.expect(0, wish.of.estimate, now()))),
    }
}

async fn advance(gate: &Arc<Gate>, wish: &Wish, deadline: Instant) -> Result<Lease, Declined> {
    let mut stay = None;
    loop {
        rested(gate, wish, deadline, &mut stay).await?;
        let place = Place::take(gate, wish)?;
        let expected = gate.expect(place.ahead, wish.of.estimate, now());
        if deadline < expected {
            return Err(too_long(wish, expected));
        }
        let lease = first(gate, wish, deadline).await?;
        drop(place);
        match lease.admit(wish, now()) {
            Ok(lease) => return Ok(lease),
            Err(Look::No(declined)) => return Err(declined),
            // It has begun to rest meanwhile, and the rest is over, or others were let through first.
            Err(Look::Later(_) | Look::Go) => {}
        }
    }
}

/// Waits until as many may come again after a rest as to let this one through. Whoever has waited keeps its `stay` until
/// it is admitted, so that nobody overtakes it.
async fn rested<'a>(
    gate: &'a Gate,
    wish: &Wish,
    deadline: Instant,
    stay: &mut Option<Stay<'a>>,
) -> Result<(), Declined> {
    loop {
        let ahead = if stay.is_some() { 0 } else { gate.room(wish).map_or(0, |room| room.waiting()) };
        match gate.look(wish, ahead, now()) {
            Look::Go if ahead == 0 => return Ok(()),
            Look::No(declined) => return Err(declined),
            Look::Later(at) if deadline < at => return Err(too_long(wish, at)),
            Look::Go => drop(wait(gate, wish, stay).await?),
            Look::Later(at) => {
                let stay = wait(gate, wish, stay).await?;
                // Whatever changes while it advances is seen by the next look.
                let _ = timeout_at(at.into(), stay.changed()).await;
            }
        }
    }
}

/// Waits to be at the head of those who wait for the same key.
async fn wait<'a, 's>(
    gate: &'a Gate,
    wish: &Wish,
    stay: &'s mut Option<Stay<'a>>,
) -> Result<&'s mut Stay<'a>, Declined> {
    if stay.is_none() && LINE <= gate.rooms.waiting() {
        return Err(too_long(wish, now()));
    }
    let stay = stay.get_or_insert_with(|| gate.rooms.enter(&wish.of.model, wish.of.by.credential));
    stay.advance().await;
    Ok(stay)
}

/// Waits to be the head of the line, and as such for a slot and the quota.
async fn first(gate: &Arc<Gate>, wish: &Wish, deadline: Instant) -> Result<Lease, Declined> {
    let closed = |_| Declined::Unfit(format!("the line of {} is closed", gate.name));
    let head = gate.head.acquire().await.map_err(closed)?;
    let slot = match &gate.slots {
        Some(slots) => Some(Arc::clone(slots).acquire_owned().await.map_err(closed)?),
        None => None,
    };
    let mut waited = false;
    let reservation = loop {
        match gate.reserve(wish.of.estimate, now()) {
            Ok(reservation) => break reservation,
            Err(at) if deadline < at => return Err(too_long(wish, at)),
            Err(at) => sleep_until(at.into()).await,
        }
        waited = true;
    };
    drop(head);
    let lease = Lease::new(Arc::clone(gate), slot, reservation);
    if waited {
        sleep(gate.stagger(deadline.saturating_duration_since(now()))).await;
    }
    Ok(lease)
}

fn too_long(wish: &Wish, until: Instant) -> Declined {
    Declined::Queue { patience: wish.patience, until: Some(until).filter(|until| now() < *until) }
}

// === impl Place ===

impl<'a> Place<'a> {
    fn take(gate: &'a Gate, wish: &Wish) -> Result<Self, Declined> {
        let ahead = gate.waiting.fetch_add(1, Ordering::Relaxed);
        let place = Self { gate, ahead };
        if LINE <= ahead { Err(too_long(wish, now())) } else { Ok(place) }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.gate.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Nobody waits longer, whatever was asked.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);
/// The most that stand in line at one connection: more would wait for minutes at any rate.
const LINE: usize = 10_000;
