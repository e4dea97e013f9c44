//! Server-sent events, read from bytes: incremental, linear, bounded.

use bytes::Bytes;

/// One event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The event's type; empty where none was given.
    pub name: Bytes,
    /// The data, its lines joined by LF.
    pub data: Bytes,
    /// The data came on one line.
    pub single_line: bool,
}

/// What the decoder found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// An event with data (which may be empty: `data:`).
    Event(Event),
    /// A comment line.
    Comment,
}

/// An event is larger than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow {
    /// The limit, in bytes.
    pub limit: usize,
}

/// Reads events from pieces of a body, however they are cut.
#[derive(Debug)]
pub struct Decoder {
    _limit: usize,
}

impl Decoder {
    /// A decoder that refuses events over `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { _limit: limit }
    }

    /// Takes the next piece of the body. Call [`Self::next`] until it gives `None` before the next piece.
    pub fn push(&mut self, _piece: Bytes) {}

    /// The next item, if one is complete.
    ///
    /// # Errors
    /// [`Overflow`]; the decoder is of no use after it.
    #[expect(clippy::should_implement_trait, reason = "it is no iterator: more may follow a None")]
    pub fn next(&mut self) -> Result<Option<Item>, Overflow> {
        Ok(None)
    }

    /// The event at the end of the body that no blank line terminated, if there is one with data.
    pub fn finish(self) -> Option<Event> {
        None
    }
}
