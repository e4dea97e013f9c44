//! Server-sent events, read from bytes: incremental, linear, bounded.
//!
//! The lines are those of the WHATWG standard ("Server-sent events", parsing an event stream): CR, LF and CRLF end a
//! line and nothing else does, one byte order mark may stand at the start, one space after a field's colon belongs to
//! the field's name. Three things differ from a browser, because a gateway needs them: comments are reported (they
//! prove that the peer lives), an event whose data is present but empty is reported (`data:` is how some providers
//! keep a stream alive), and the event that the end of the body cut off can be asked for (some providers leave the
//! last blank line out). `id` and `retry` are for clients that reconnect and are skipped.
//!
//! It works on bytes, not on text: CR and LF cannot be part of a longer UTF-8 sequence, so a character that is cut in
//! two by the network is whole again when its line is, and bytes that are not UTF-8 reach the dialect as they came.
//!
//! Every byte is looked at once, and copied only where an event spans pieces or lines. A line of some megabytes that
//! arrives in packets costs what its bytes cost, however it is cut.

use bytes::{Bytes, BytesMut};
use memchr::memchr2;

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
    /// The most that one event may occupy, in bytes.
    limit: usize,
    /// What is left of the piece that was pushed last.
    piece: Bytes,
    /// The start of a line whose end has not come yet.
    line: BytesMut,
    /// The last byte was a CR: an LF that follows belongs to it.
    after_cr: bool,
    /// No line has been read yet: it may open with a byte order mark.
    at_start: bool,
    /// The type of the event that is being read.
    name: Bytes,
    /// The data of the event that is being read.
    data: Data,
    /// Bytes looked at and bytes copied.
    work: u64,
}

/// The data lines of an event.
#[derive(Debug, Default)]
enum Data {
    /// There was none yet.
    #[default]
    Absent,
    /// One line: a slice of what was pushed.
    Line(Bytes),
    /// Several, joined by LF.
    Lines(BytesMut),
}

// === impl Overflow ===

impl std::fmt::Display for Overflow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "an event of the stream is larger than {} bytes", self.limit)
    }
}

impl std::error::Error for Overflow {}

// === impl Decoder ===

impl Decoder {
    /// A decoder that refuses events over `limit` bytes. What counts is what must be kept to know the event: its type,
    /// its data, and the line that is being read, finished or not.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            piece: Bytes::new(),
            line: BytesMut::new(),
            after_cr: false,
            at_start: true,
            name: Bytes::new(),
            data: Data::Absent,
            work: 0,
        }
    }

    /// Takes the next piece of the body. Call [`Self::next`] until it gives `None` before the next piece.
    pub fn push(&mut self, piece: Bytes) {
        if self.piece.is_empty() {
            self.piece = piece;
        } else {
            let mut both = BytesMut::with_capacity(self.piece.len() + piece.len());
            both.extend_from_slice(&self.piece);
            both.extend_from_slice(&piece);
            self.work += both.len() as u64;
            self.piece = both.freeze();
        }
    }

    /// The next item, if one is complete.
    ///
    /// # Errors
    /// [`Overflow`]; the decoder is of no use after it.
    #[expect(clippy::should_implement_trait, reason = "it is no iterator: more may follow a None")]
    pub fn next(&mut self) -> Result<Option<Item>, Overflow> {
        while let Some(line) = self.read_line()? {
            if let Some(item) = self.take_line(&line) {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }

    /// The event at the end of the body that no blank line terminated, if there is one with data. It may be cut
    /// short anywhere: believe it only if its content is complete in itself.
    pub fn finish(mut self) -> Option<Event> {
        let last = std::mem::take(&mut self.line).freeze();
        if !last.is_empty() {
            let last = self.without_mark(last);
            // A blank line cannot be pending, so this cannot dispatch.
            self.take_line(&last);
        }
        self.dispatch()
    }

    /// How many bytes were looked at plus how many were copied, so far: the cost, in a form that does not depend on
    /// the machine.
    pub fn work(&self) -> u64 {
        self.work
    }

    /// The next complete line without its end.
    fn read_line(&mut self) -> Result<Option<Bytes>, Overflow> {
        if self.after_cr && !self.piece.is_empty() {
            self.after_cr = false;
            if self.piece[0] == b'\n' {
                self.piece = self.piece.slice(1..);
            }
        }
        let Some(end) = memchr2(b'\r', b'\n', &self.piece) else {
            // Only here is a line's part kept: it is looked at now and never again.
            self.check(self.line.len() + self.piece.len())?;
            self.work += 2 * self.piece.len() as u64;
            self.line.extend_from_slice(&self.piece);
            self.piece = Bytes::new();
            return Ok(None);
        };
        self.check(self.line.len() + end)?;
        self.work += end as u64 + 1;
        self.after_cr = self.piece[end] == b'\r';
        let rest = self.piece.slice(end + 1..);
        let mut line = std::mem::replace(&mut self.piece, rest);
        line.truncate(end);
        if !self.line.is_empty() {
            self.work += line.len() as u64;
            let mut whole = std::mem::take(&mut self.line);
            whole.extend_from_slice(&line);
            line = whole.freeze();
        }
        Ok(Some(self.without_mark(line)))
    }

    fn without_mark(&mut self, line: Bytes) -> Bytes {
        if std::mem::take(&mut self.at_start) && line.starts_with(MARK) { line.slice(MARK.len()..) } else { line }
    }

    fn check(&self, line: usize) -> Result<(), Overflow> {
        let data = match &self.data {
            Data::Absent => 0,
            Data::Line(line) => line.len(),
            Data::Lines(lines) => lines.len(),
        };
        if self.name.len() + data + line > self.limit { Err(Overflow { limit: self.limit }) } else { Ok(()) }
    }

    fn take_line(&mut self, line: &Bytes) -> Option<Item> {
        if line.is_empty() {
            return self.dispatch().map(Item::Event);
        }
        if line[0] == b':' {
            return Some(Item::Comment);
        }
        // The names that matter are short: no need to search a long line for its colon.
        if let Some(value) = field(line, b"data") {
            self.add_data(value);
        } else if let Some(value) = field(line, b"event") {
            self.name = value;
        }
        None
    }

    fn add_data(&mut self, value: Bytes) {
        self.data = match std::mem::take(&mut self.data) {
            Data::Absent => Data::Line(value),
            Data::Line(first) => {
                self.work += (first.len() + value.len()) as u64;
                let mut lines = BytesMut::with_capacity(first.len() + 1 + value.len());
                lines.extend_from_slice(&first);
                lines.extend_from_slice(b"\n");
                lines.extend_from_slice(&value);
                Data::Lines(lines)
            }
            Data::Lines(mut lines) => {
                self.work += value.len() as u64;
                lines.extend_from_slice(b"\n");
                lines.extend_from_slice(&value);
                Data::Lines(lines)
            }
        };
    }

    fn dispatch(&mut self) -> Option<Event> {
        let name = std::mem::take(&mut self.name);
        match std::mem::take(&mut self.data) {
            Data::Absent => None,
            Data::Line(data) => Some(Event { name, data, single_line: true }),
            Data::Lines(data) => Some(Event { name, data: data.freeze(), single_line: false }),
        }
    }
}

/// The value of `line` if it is the field `name`: what follows the colon and one space, or nothing without a colon.
fn field(line: &Bytes, name: &[u8]) -> Option<Bytes> {
    match line.strip_prefix(name)? {
        [] => Some(Bytes::new()),
        [b':', b' ', ..] => Some(line.slice(name.len() + 2..)),
        [b':', ..] => Some(line.slice(name.len() + 1..)),
        _ => None,
    }
}

/// The UTF-8 byte order mark.
const MARK: &[u8] = b"\xef\xbb\xbf";

#[cfg(test)]
mod tests;
