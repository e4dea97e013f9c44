//! What becomes of a structured answer on its way to the client.

use crate::event::Event;
use std::sync::Arc;

/// What becomes of structured output.
#[derive(Debug)]
pub(super) enum Object {
    /// It is text like any other.
    Plain,
    /// Held and checked, if somebody could do better; not decided before the first piece.
    Ask,
    Held(String),
    /// Told as it comes, and checked at its end: nobody else could make it again.
    Watched(String),
    /// Whole; whether it is right is being asked. What follows waits: its finish, above all.
    Asked {
        choice: u32,
        text: Arc<String>,
        /// The client has it already.
        shown: bool,
        told: bool,
        hold: bool,
        rest: Vec<Event>,
    },
    /// It was told in part and is told again from the start, word for word.
    Forward {
        told: String,
        at: usize,
    },
}
