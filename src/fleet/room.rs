//! Where those wait who may not all come at once after a rest: a room for each key, served in order.
//!
//! Whoever waits holds a place. Only the one at the head looks whether it may go; it looks again when it is told to, and
//! whenever an attempt of the connection is answered.

use super::lock;
use crate::health::blame::Mark;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The rooms of a connection: none while nobody waits.
#[derive(Default)]
pub(super) struct Rooms {
    rooms: Mutex<HashMap<Key, Arc<Room>>>,
    waiting: AtomicUsize,
}

type Key = (Arc<str>, Option<Mark>);

/// Those who wait for the same key.
pub(super) struct Room {
    head: Arc<Semaphore>,
    /// Something has changed.
    changed: Notify,
    waiting: AtomicUsize,
}

/// A place in a room; given back when dropped.
pub(super) struct Stay<'a> {
    rooms: &'a Rooms,
    key: Key,
    room: Arc<Room>,
    head: Option<OwnedSemaphorePermit>,
}

// === impl Rooms ===

impl Rooms {
    /// The room of a key, if anybody waits there.
    pub(super) fn get(&self, model: &Arc<str>, credential: Option<Mark>) -> Option<Arc<Room>> {
        if self.waiting() == 0 {
            return None;
        }
        lock(&self.rooms).get(&(Arc::clone(model), credential)).cloned()
    }

    /// Takes a place.
    pub(super) fn enter(&self, model: &Arc<str>, credential: Option<Mark>) -> Stay<'_> {
        let key = (Arc::clone(model), credential);
        let mut rooms = lock(&self.rooms);
        let room = Arc::clone(rooms.entry(key.clone()).or_insert_with(|| {
            let (head, changed, waiting) = (Arc::new(Semaphore::new(1)), Notify::new(), AtomicUsize::new(0));
            Arc::new(Room { head, changed, waiting })
        }));
        room.waiting.fetch_add(1, Ordering::SeqCst);
        self.waiting.fetch_add(1, Ordering::SeqCst);
        drop(rooms);
        Stay { rooms: self, key, room, head: None }
    }

    /// Whoever is at the head looks again.
    pub(super) fn stir(&self) {
        if self.waiting() > 0 {
            lock(&self.rooms).values().for_each(|room| room.changed.notify_one());
        }
    }

    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }
}

// === impl Room ===

impl Room {
    /// How many wait here.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }
}

// === impl Stay ===

impl Stay<'_> {
    /// Waits to be at the head.
    pub(super) async fn advance(&mut self) {
        if self.head.is_none() {
            // A room's semaphore is never closed.
            self.head = Arc::clone(&self.room.head).acquire_owned().await.ok();
        }
    }

    /// Waits until something has changed since the last time.
    pub(super) async fn changed(&self) {
        self.room.changed.notified().await;
    }
}

impl Drop for Stay<'_> {
    fn drop(&mut self) {
        let mut rooms = lock(&self.rooms.rooms);
        self.rooms.waiting.fetch_sub(1, Ordering::SeqCst);
        if self.room.waiting.fetch_sub(1, Ordering::SeqCst) == 1 {
            rooms.remove(&self.key);
        }
    }
}
