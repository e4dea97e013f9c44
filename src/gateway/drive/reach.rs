//! How a turn is reached by others than its client.

use super::super::open::Shown;
use super::super::place::Supersede;
use super::{Engine, TurnRecord, Why, lock};
use std::sync::Mutex;

impl Supersede for Mutex<Engine> {
    fn supersede(&self) {
        lock(self).hang_up(Why::Superseded);
    }
}

impl Shown for Mutex<Engine> {
    fn show(&self) -> Option<TurnRecord> {
        let engine = self.try_lock().ok().filter(|engine| !engine.over)?;
        Some(TurnRecord::of(engine.live.whose(), &engine.relay))
    }
}
