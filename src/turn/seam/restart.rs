//! Whether the continuation tells again what was delivered, from the start of the turn or of an open block.

use super::fold::{Cut, Fences, Reader, Symbol};
use super::overlap::{Match, Pace, SURE, compare};
use crate::turn::script;
use std::sync::Arc;

/// Follows the delivered text from one place to its end.
#[derive(Debug)]
pub(super) struct Restart {
    text: Arc<str>,
    from: usize,
    until: usize,
    /// Bytes that were repeated to the letter; `None` once they were not.
    letters: Option<usize>,
    /// What they weigh.
    lettered: u32,
    /// The same as symbols.
    reader: Reader,
    state: State,
    weight: u32,
    loose: bool,
}

/// How far the comparison of symbols is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Alive,
    Told(Match),
    Off,
}

// === impl Restart ===

impl Restart {
    /// Follows `text` from byte `from` to byte `until`. `fences` is what is open at `from`. `exact`: the continuation
    /// has said nothing yet.
    pub(super) fn new(text: &Arc<str>, from: usize, until: usize, fences: Fences, exact: bool) -> Self {
        Self {
            text: Arc::clone(text),
            from,
            until,
            letters: exact.then_some(0),
            lettered: 0,
            reader: Reader::new(text, from, until, fences),
            state: State::Alive,
            weight: 0,
            loose: false,
        }
    }

    /// Takes the next character.
    pub(super) fn push_char(&mut self, ch: char) {
        if let Some(at) = self.letters {
            let rest = &self.text[self.from + at..self.until];
            if rest.starts_with(ch) {
                self.letters = Some(at + ch.len_utf8());
                self.lettered = self.lettered.saturating_add(script::weight(ch));
            } else if !rest.is_empty() {
                self.letters = None;
            }
        }
    }

    /// Takes the next symbol.
    pub(super) fn push(&mut self, symbol: Symbol) {
        if self.state != State::Alive {
            return;
        }
        let Some(told) = self.reader.peek(0) else {
            self.state = State::Off;
            return;
        };
        let next = self.reader.peek(1);
        match compare(told, next, symbol) {
            Pace::Off => {
                self.state = State::Off;
                return;
            }
            Pace::Stay => self.loose = true,
            Pace::On(by) => {
                self.loose |= by > 1;
                self.weight = self.weight.saturating_add(script::weight(symbol.ch));
                self.reader.skip(by);
            }
        }
        if self.reader.peek(0).is_none() {
            self.state = if symbol.cut == Cut::Never || self.loose && self.weight < SURE {
                State::Off
            } else {
                State::Told(Match { end: symbol.end, inside: symbol.cut == Cut::Inside, weight: self.weight })
            };
        }
    }

    /// All was told again; where it ends in the continuation.
    pub(super) fn told(&self) -> Option<Match> {
        match (self.letters, self.state) {
            (Some(at), _) if at >= self.length() => {
                Some(Match { end: self.length(), inside: false, weight: self.weight() })
            }
            // To the letter is better, if it comes to that.
            (Some(_), _) => None,
            (None, State::Told(found)) => Some(found),
            (None, _) => None,
        }
    }

    /// As [`Self::told`] where nothing can come any more.
    pub(super) fn told_at_last(&self) -> Option<Match> {
        match self.state {
            State::Told(found) => self.told().or(Some(found)),
            State::Alive | State::Off => self.told(),
        }
    }

    /// It repeats so far, and there is more to repeat.
    pub(super) fn is_alive(&self) -> bool {
        self.told().is_none() && (self.letters.is_some() || self.state == State::Alive)
    }

    /// How much was repeated.
    pub(super) fn weight(&self) -> u32 {
        self.weight.max(self.lettered)
    }

    fn length(&self) -> usize {
        self.until - self.from
    }
}
