//! How long an end of the delivered text the continuation repeats: the anchor, a tail of it, or more than was asked.

use super::fold::{Cut, Fences, Reader, Symbol, Told, WHITE};
use crate::turn::script;
use std::sync::Arc;
use unicode_normalization::char::is_combining_mark;

/// The end of the delivered text, as it is compared.
#[derive(Debug, Default)]
pub(super) struct Tail {
    symbols: Vec<Told>,
    /// What the symbols from each place on weigh.
    weights: Vec<u32>,
    /// Where the anchor starts; the length if there is none.
    anchor: usize,
    /// It is the delivered text from its start.
    is_all: bool,
    /// From up to here on it holds more than one letter or digit over and over.
    telling: usize,
}

/// Follows every place of the tail from which the continuation may have started to repeat it.
#[derive(Debug, Default)]
pub(super) struct Overlap {
    /// How many symbols came.
    count: usize,
    /// The start of the turn is no such place: it is followed as a restart.
    within: bool,
    alive: Vec<Candidate>,
    whole: Option<Match>,
    longest: Option<Match>,
    /// The last symbol was the last one of the tail, too.
    at_end: bool,
}

/// A place from which the tail is repeated so far.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    start: usize,
    at: usize,
    /// White space was missing or added.
    loose: bool,
}

/// A repetition that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Match {
    /// The byte offset in the continuation where it ends.
    pub(super) end: usize,
    /// The last character carries marks that are new.
    pub(super) inside: bool,
    /// How much was repeated.
    pub(super) weight: u32,
}

/// What one symbol does to a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// It goes on by so many symbols of the delivered text.
    On(usize),
    /// White space was added: the delivered text waits.
    Stay,
    /// They differ.
    Off,
}

// === impl Tail ===

impl Tail {
    /// The end of `text` before byte `until`; the anchor starts at byte `anchor`, if there is one.
    pub(super) fn new(text: &Arc<str>, until: usize, anchor: Option<usize>) -> Self {
        let rough = text[..until].char_indices().rev().nth(REACH - 1).map_or(0, |(at, _)| at);
        let from = anchor.unwrap_or(rough).min(rough);
        let mut reader = Reader::new(text, from, until, Fences::at(text, from));
        let mut symbols = Vec::new();
        while let Some(told) = reader.peek(0) {
            reader.skip(1);
            symbols.push(told);
        }
        let mut weights = vec![0; symbols.len() + 1];
        let mut telling = 0;
        let mut seen = None;
        for (at, told) in symbols.iter().enumerate().rev() {
            weights[at] = weights[at + 1] + script::weight(told.ch);
            if telling == 0 && told.ch.is_alphanumeric() {
                match seen {
                    None => seen = Some(told.ch),
                    Some(other) if other != told.ch => telling = at + 1,
                    Some(_) => {}
                }
            }
        }
        let anchor = anchor.map_or(symbols.len(), |start| symbols.partition_point(|told| told.end <= start));
        Self { anchor, is_all: text[..from].trim_start().is_empty(), symbols, weights, telling }
    }

    /// The text ends in a script without word spaces, and no other letters stand near its end.
    pub(super) fn is_spaceless(&self) -> bool {
        let near = &self.symbols[self.symbols.len().saturating_sub(NEAR)..];
        let mut letters = near.iter().filter(|told| told.ch.is_alphabetic()).peekable();
        // Behind a colon or a quotation mark anything may come.
        let ends = near.last().is_some_and(|last| script::is_spaceless(last.ch) || ENDS.contains(&last.ch));
        ends && letters.peek().is_some() && letters.all(|told| script::is_spaceless(told.ch))
    }

    /// The anchor is all of the delivered text.
    pub(super) fn is_all_anchor(&self) -> bool {
        self.is_all && self.anchor == 0 && !self.symbols.is_empty()
    }

    /// The places from which `symbol` may begin to repeat the text: near its end all, farther back those where a
    /// word starts.
    fn starts(&self, symbol: Symbol) -> impl Iterator<Item = usize> {
        let near = self.symbols.len().saturating_sub(NEAR);
        (0..self.symbols.len()).filter(move |&at| {
            let told = self.symbols[at];
            told.is_repeated_by(symbol)
                && (at == 0 || at >= near || at == self.anchor || !self.symbols[at - 1].ch.is_alphanumeric())
        })
    }
}

// === impl Overlap ===

impl Overlap {
    /// Takes the next symbol of the continuation; gives the number of comparisons.
    pub(super) fn push(&mut self, tail: &Tail, symbol: Symbol) -> u64 {
        let mut steps = 1;
        if self.count == 0 {
            if symbol.ch == WHITE {
                return steps;
            }
            let start_of_turn = self.within && tail.is_all && tail.anchor > 0;
            if !is_combining_mark(symbol.ch) {
                let starts = tail.starts(symbol).filter(|&start| start > 0 || !start_of_turn);
                self.alive.extend(starts.map(|start| Candidate { start, at: start, loose: false }));
            }
            steps += tail.symbols.len() as u64;
        }
        self.count += 1;
        if self.count == CROWD_AFTER && self.alive.len() > CROWD {
            // The text goes in circles: those nearest to its end claim least.
            let spare = self.alive.len() - CROWD;
            let mut at = 0;
            self.alive.retain(|candidate| {
                at += 1;
                at > spare || candidate.start == tail.anchor
            });
        }
        self.at_end = false;
        steps += self.alive.len() as u64;
        let (whole, longest, at_end) = (&mut self.whole, &mut self.longest, &mut self.at_end);
        self.alive.retain_mut(|candidate| {
            let next = tail.symbols.get(candidate.at + 1).copied();
            match compare(tail.symbols[candidate.at], next, symbol) {
                Pace::Off => return false,
                Pace::Stay => candidate.loose = true,
                Pace::On(by) => {
                    candidate.loose |= by > 1;
                    candidate.at += by;
                }
            }
            if candidate.at < tail.symbols.len() {
                return true;
            }
            let weight = tail.weights[candidate.start];
            if symbol.cut == Cut::Never || candidate.loose && weight < SURE {
                return false;
            }
            *at_end = true;
            let found = Match { end: symbol.end, inside: symbol.cut == Cut::Inside, weight };
            if candidate.start == tail.anchor {
                *whole = Some(found);
            }
            if candidate.start < tail.telling && longest.is_none_or(|longest| longest.weight < weight) {
                *longest = Some(found);
            }
            false
        });
        steps
    }

    /// At the start of a continuation.
    pub(super) fn within_turn() -> Self {
        Self { within: true, ..Self::default() }
    }

    /// Forgets what is complete: only what is alive counts from here on.
    pub(super) fn give_way(&mut self) {
        self.whole = None;
        self.longest = None;
    }

    /// The most that was repeated and is not complete.
    pub(super) fn weight(&self, tail: &Tail) -> u32 {
        let weights = self.alive.iter().map(|candidate| tail.weights[candidate.start] - tail.weights[candidate.at]);
        weights.max().unwrap_or(0)
    }

    /// Whether it may still come to something (longer).
    pub(super) fn is_alive(&self) -> bool {
        self.count == 0 || !self.alive.is_empty()
    }

    /// All so far repeats the start of the anchor.
    pub(super) fn is_in_anchor(&self, tail: &Tail) -> bool {
        self.alive.iter().any(|candidate| candidate.start == tail.anchor)
    }

    /// All so far is an end of the delivered text.
    pub(super) fn is_at_end(&self) -> bool {
        self.at_end
    }

    /// The whole anchor.
    pub(super) fn whole(&self) -> Option<Match> {
        self.whole
    }

    /// The longest end of the delivered text that weighs at least `least`.
    pub(super) fn longest(&self, least: u32) -> Option<Match> {
        self.longest.filter(|found| found.weight >= least)
    }
}

/// Compares a symbol of the delivered text, and the one after it, with one of a continuation.
pub(super) fn compare(told: Told, next: Option<Told>, symbol: Symbol) -> Pace {
    if told.is_repeated_by(symbol) {
        Pace::On(1)
    } else if told.is_loose() && next.is_some_and(|next| next.is_repeated_by(symbol)) {
        Pace::On(2)
    } else if symbol.ch == WHITE && !told.code {
        Pace::Stay
    } else {
        Pace::Off
    }
}

/// How far back from its end the delivered text is compared, in characters.
const REACH: usize = 4096;

/// How far back a repetition may begin within a word, in symbols.
const NEAR: usize = 256;

/// How many places are followed, and after how many symbols that is enforced.
const CROWD: usize = 64;
const CROWD_AFTER: usize = 16;

/// What a repetition must weigh where white space was added or left out.
pub(super) const SURE: u32 = 12;

/// What ends sentences, or parts of them, in scripts without word spaces.
const ENDS: &[char] = &['\u{3002}', '\u{3001}', '\u{ff0c}', '\u{ff01}', '\u{ff1f}'];
