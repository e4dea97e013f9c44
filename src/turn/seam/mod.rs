//! The join between what the client was told and what a continuation says.
//!
//! A provider that continues a turn may say exactly what is new, may first repeat what it was given, all or a part of
//! it, may announce that it continues, or may begin again. The client must hear each character once. Where a protocol
//! says what comes (`exact`, `trimmed`, `echo`) the seam trusts it and never searches for repetitions, for a text may
//! truly repeat itself. Where a model was asked in words to repeat an anchor first, the seam finds out what it did
//! (`anchored`): it holds text only while it cannot know, never for a time, and never more than a window of it. What
//! cannot be joined with certainty is said to be a guess or rejected; it is for the caller to ask somebody else.

mod align;
mod fence;
mod fold;
mod held;
mod opener;
mod overlap;
mod phrases;
mod restart;
mod shape;
#[cfg(test)]
mod tests;

use super::resume::Anchor;
use align::{Align, Verdict};
use std::sync::Arc;

/// Decides, piece by piece, what of a continuation is new.
#[derive(Debug)]
pub struct Seam {
    state: State,
    decided: &'static str,
    steps: u64,
}

/// What a piece of a continuation comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Join {
    /// Nothing new is decided yet, or the piece was a repetition.
    Held,
    /// New text.
    Text(String),
    /// Probably new text, but it meets the delivered text inside a word and no anchor says that it fits.
    Guess(String),
}

/// The continuation does not fit what was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// It began again from the start and then told something else.
    Diverged,
    /// It opened with a preamble and went on without the anchor.
    Preamble,
    /// It refuses to continue or asks what is meant.
    Refused,
    /// It repeats nothing and breaks the sentence that was delivered in part.
    Unfit,
}

#[derive(Debug)]
enum State {
    /// It is not known yet what the continuation does.
    Align(Box<Align>),
    /// What comes is new, save white space that the client has.
    Owed(Owed),
    /// What comes is new.
    Open,
}

/// White space that the client has and the continuation may repeat.
#[derive(Debug)]
struct Owed {
    white: String,
    /// How many bytes of it were repeated to the letter.
    known: usize,
    /// White space that came after them: it may still be an end of what is owed.
    held: String,
}

// === impl Seam ===

impl Seam {
    /// Verbatim: everything is new.
    pub fn exact() -> Self {
        Self { state: State::Open, decided: "exact", steps: 0 }
    }

    /// The delivered text ends in `owed` white space that the target was not given; what the continuation repeats of it
    /// at its start is dropped.
    pub fn trimmed(owed: &str) -> Self {
        // Nobody repeats more white space than this, and each piece is compared with all of it.
        let owed = &owed[owed.ceil_char_boundary(owed.len().saturating_sub(OWED))..];
        Self { state: State::owed(owed), decided: "trimmed", steps: 0 }
    }

    /// The target repeats the prefilled text before it goes on.
    pub fn echo(delivered: Arc<str>) -> Self {
        if delivered.trim().is_empty() {
            return Self::trimmed(&delivered);
        }
        Self { state: State::Align(Box::new(Align::echo(delivered))), decided: UNDECIDED, steps: 0 }
    }

    /// The target was asked to repeat `anchor`. Holds at most `window` characters while an alignment is alive (but
    /// never fewer than let the anchor pass twice).
    pub fn anchored(delivered: Arc<str>, anchor: &Anchor, window: usize) -> Self {
        if delivered.trim().is_empty() {
            return Self::trimmed(&delivered);
        }
        let align = Align::new(delivered, anchor, window);
        Self { state: State::Align(Box::new(align)), decided: UNDECIDED, steps: 0 }
    }

    /// Takes the next piece.
    ///
    /// # Errors
    /// [`Rejected`]; the seam is of no use after it.
    pub fn push(&mut self, piece: &str) -> Result<Join, Rejected> {
        let State::Align(align) = &mut self.state else { return Ok(Join::text(self.pass(piece))) };
        for (at, ch) in piece.char_indices() {
            if let Some(verdict) = align.push(ch) {
                return self.settle(verdict, &piece[at + ch.len_utf8()..]);
            }
        }
        Ok(Join::Held)
    }

    /// A tool call or the finish follows: decides about what is held.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn close(&mut self) -> Result<Join, Rejected> {
        let join = match &mut self.state {
            State::Align(align) => {
                if align.is_untouched() {
                    self.decided = "nothing";
                    Join::Held
                } else {
                    let verdict = align.close();
                    self.settle(verdict, "")?
                }
            }
            State::Owed(_) | State::Open => Join::Held,
        };
        let left = match std::mem::replace(&mut self.state, State::Open) {
            State::Owed(owed) => owed.release(),
            State::Align(_) | State::Open => String::new(),
        };
        Ok(join.with(&left))
    }

    /// Whether text may still be held or dropped.
    pub fn is_undecided(&self) -> bool {
        !matches!(self.state, State::Open)
    }

    /// How it was decided, for the journal: `exact`, `trimmed`, `echo`; of an anchored seam `anchor`, `restart`,
    /// `overlap`, `block` (an open object, list or code block was told again), `preamble`, `fence` (one was opened
    /// again), `paragraph` (a break that was none), `sentence` (the space behind a sentence or comma was missing), `verbatim`, `guess`, `nothing` (all was known), `rejected`; until
    /// then `undecided`.
    pub fn decided(&self) -> &'static str {
        self.decided
    }

    /// How many characters are held back.
    pub fn held(&self) -> usize {
        match &self.state {
            State::Align(align) => align.held(),
            State::Owed(owed) => owed.held.chars().count(),
            State::Open => 0,
        }
    }

    /// How many comparisons of characters were made so far: the cost, in a form that does not depend on the machine.
    pub fn steps(&self) -> u64 {
        match &self.state {
            State::Align(align) => align.steps(),
            State::Owed(_) | State::Open => self.steps,
        }
    }

    fn settle(&mut self, verdict: Verdict, rest: &str) -> Result<Join, Rejected> {
        let State::Align(align) = std::mem::replace(&mut self.state, State::Open) else { return Ok(Join::Held) };
        self.steps = align.steps();
        match verdict {
            Verdict::New(text, how) => {
                self.decided = if how == "restart" && align.is_echo() { "echo" } else { how };
                self.state = State::owed(align.owed());
                let mut new = self.pass(&text);
                new.push_str(&self.pass(rest));
                Ok(Join::text(new))
            }
            Verdict::Met(join, how) => {
                self.decided = how;
                Ok(join.with(rest))
            }
            Verdict::Off(rejected) => {
                self.decided = "rejected";
                Err(rejected)
            }
        }
    }

    /// What of `text` is new once the alignment is known.
    fn pass(&mut self, text: &str) -> String {
        if let State::Owed(owed) = &mut self.state {
            for (at, ch) in text.char_indices() {
                if let Some(mut new) = owed.push(ch) {
                    self.state = State::Open;
                    new.push_str(&text[at + ch.len_utf8()..]);
                    return new;
                }
            }
            return String::new();
        }
        text.to_owned()
    }
}

// === impl Join ===

impl Join {
    fn text(text: String) -> Self {
        if text.is_empty() { Self::Held } else { Self::Text(text) }
    }

    fn with(self, more: &str) -> Self {
        match self {
            Self::Held => Self::text(more.to_owned()),
            Self::Text(text) => Self::Text(text + more),
            Self::Guess(text) => Self::Guess(text + more),
        }
    }
}

// === impl State ===

impl State {
    fn owed(white: &str) -> Self {
        if white.is_empty() {
            Self::Open
        } else {
            Self::Owed(Owed { white: white.to_owned(), known: 0, held: String::new() })
        }
    }
}

// === impl Owed ===

impl Owed {
    /// Takes a character; gives what is new once that is known.
    fn push(&mut self, ch: char) -> Option<String> {
        let ahead = &self.white[self.known..];
        if self.held.is_empty() && ahead.starts_with(ch) {
            self.known += ch.len_utf8();
            return if self.known == self.white.len() { Some(String::new()) } else { None };
        }
        self.held.push(ch);
        let room = self.held.len() < ahead.len().min(shape::ENDS);
        if ch.is_whitespace() && room { None } else { Some(self.release()) }
    }

    /// What is new of what is held.
    fn release(&self) -> String {
        let text = format!("{}{}", &self.white[..self.known], self.held);
        let white = &text[..text.len() - text.trim_start().len()];
        text[shape::known_white(&self.white, white)..].to_owned()
    }
}

/// The most bytes of owed white space that are compared.
const OWED: usize = 240;

// === impl Rejected ===

impl std::fmt::Display for Rejected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Diverged => "the continuation began again and then told something else",
            Self::Preamble => "the continuation announced itself and did not go on where the turn stopped",
            Self::Refused => "the continuation refuses to go on",
            Self::Unfit => "the continuation breaks the sentence that was told in part",
        })
    }
}

impl std::error::Error for Rejected {}

const UNDECIDED: &str = "undecided";
