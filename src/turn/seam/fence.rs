//! A continuation inside a code block may open the block again: the same fence, then the code.

use super::fold::Symbol;
use super::overlap::{Overlap, Tail};

/// A fence with the same words as the one that is open, said again.
#[derive(Debug)]
pub(super) struct Reopened {
    line: Box<str>,
    at: usize,
    pub(super) state: FenceState,
    pub(super) overlap: Overlap,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FenceState {
    Matching,
    /// The line is complete; the text goes on at this byte.
    Open(usize),
    Off,
}

// === impl Reopened ===

impl Reopened {
    pub(super) fn new(line: &str) -> Self {
        Self { line: line.into(), at: 0, state: FenceState::Matching, overlap: Overlap::default() }
    }

    pub(super) fn push_char(&mut self, ch: char, end: usize) {
        if self.state != FenceState::Matching {
            return;
        }
        match self.line[self.at..].chars().next() {
            Some(next) if next == ch => self.at += ch.len_utf8(),
            None if ch == '\n' => self.state = FenceState::Open(end),
            None if ch.is_whitespace() => {}
            _ => self.state = FenceState::Off,
        }
    }

    pub(super) fn push(&mut self, tail: &Tail, symbol: Symbol) -> u64 {
        match self.state {
            FenceState::Open(end) if symbol.end > end => self.overlap.push(tail, symbol),
            _ => 0,
        }
    }

    pub(super) fn is_alive(&self) -> bool {
        match self.state {
            FenceState::Matching => true,
            FenceState::Open(_) => self.overlap.whole().is_none() && self.overlap.is_alive(),
            FenceState::Off => false,
        }
    }
}
