//! What an admitted attempt holds: slot, reservation, and its flight, which go back on every path.

use super::gate::{Gate, Wish};
use crate::event::Signal;
use crate::failure::Verdict;
use crate::health::connection::{Flight, Look};
use crate::health::quota::Reservation;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::OwnedSemaphorePermit;

/// The right to make one attempt. Dropped without a verdict it is abandoned.
pub(super) struct Lease {
    pub(super) gate: Arc<Gate>,
    slot: Option<OwnedSemaphorePermit>,
    reservation: Option<Reservation>,
    /// From when it is admitted until it is judged.
    flight: Option<Flight>,
}

// === impl Lease ===

impl Lease {
    /// A lease that is not admitted yet.
    pub(super) fn new(gate: Arc<Gate>, slot: Option<OwnedSemaphorePermit>, reservation: Reservation) -> Self {
        Self { gate, slot, reservation: Some(reservation), flight: None }
    }

    /// Lets the attempt through; refused, everything goes back.
    pub(super) fn admit(mut self, wish: &Wish, now: Instant) -> Result<Self, Look> {
        self.flight = Some(self.gate.admit(wish, now)?);
        Ok(self)
    }

    /// The attempt has nothing to say at this moment.
    pub(super) fn silent(&mut self, now: Instant) {
        if let Some(flight) = &mut self.flight {
            flight.silent(now);
        }
    }

    /// The attempt said something.
    pub(super) fn note(&mut self, signal: &Signal, now: Instant) {
        let Some(flight) = &mut self.flight else { return };
        if flight.note(signal, now) {
            self.gate.hear(flight, now);
        }
        if matches!(signal, Signal::Ended | Signal::Failed(_) | Signal::Declined(_)) {
            self.slot = None;
        }
    }

    /// It is judged. Only the first word counts.
    pub(super) fn settle(&mut self, verdict: Verdict, now: Instant) {
        self.slot = None;
        let reservation = self.reservation.take();
        match (self.flight.take(), reservation) {
            (Some(flight), reservation) => self.gate.settle(flight, reservation, verdict, now),
            (None, Some(reservation)) => self.gate.release(reservation),
            (None, None) => {}
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.settle(Verdict::Abandon, super::now());
    }
}
