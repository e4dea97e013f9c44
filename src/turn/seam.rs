//! The join between what the client was told and what a continuation says.

use super::resume::Anchor;
use std::sync::Arc;

/// Decides, piece by piece, what of a continuation is new.
#[derive(Debug)]
pub struct Seam {
    _x: (),
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
}

impl Seam {
    /// Verbatim: everything is new.
    pub fn exact() -> Self {
        Self { _x: () }
    }

    /// The delivered text ends in `owed` white space that the target was not given; what the continuation repeats of it
    /// at its start is dropped.
    pub fn trimmed(_owed: &str) -> Self {
        Self::exact()
    }

    /// The target repeats the prefilled text before it goes on.
    pub fn echo(_delivered: Arc<str>) -> Self {
        Self::exact()
    }

    /// The target was asked to repeat `anchor`. Holds at most `window` characters while an alignment is alive.
    pub fn anchored(_delivered: Arc<str>, _anchor: &Anchor, _window: usize) -> Self {
        Self::exact()
    }

    /// Takes the next piece.
    ///
    /// # Errors
    /// [`Rejected`]; the seam is of no use after it.
    pub fn push(&mut self, piece: &str) -> Result<Join, Rejected> {
        Ok(Join::Text(piece.to_owned()))
    }

    /// A tool call or the finish follows: decides about what is held.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn close(&mut self) -> Result<Join, Rejected> {
        Ok(Join::Held)
    }

    /// Whether text may still be held or dropped.
    pub fn is_undecided(&self) -> bool {
        false
    }

    /// How it was decided, for the journal: `exact`, `anchor`, `overlap`, `restart`, `preamble`, `verbatim`, `guess`, …
    pub fn decided(&self) -> &'static str {
        "exact"
    }
}
