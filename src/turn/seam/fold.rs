//! Text as it is compared: a run of white space is one symbol, quotes are straight, controls of writing direction do
//! not count, and letters with marks are taken apart as NFD does, so that any spelling of a letter equals any other.
//!
//! NFD and not NFC, because it can be had from a stream: only marks wait (for others that may sort before them). Two
//! texts are equal in the one exactly if they are in the other.

use crate::turn::script::{is_bidi, straight};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;
use unicode_normalization::char::{canonical_combining_class, decompose_canonical};

/// One symbol of a continuation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Symbol {
    /// The character, [`WHITE`] for a run of white space.
    pub(super) ch: char,
    /// Of white space: which indentation it ends in, or [`INLINE`].
    pub(super) indent: u32,
    /// The byte offset where what it stands for ends.
    pub(super) end: usize,
    /// Whether the text may be cut behind it.
    pub(super) cut: Cut,
}

/// Whether a text may be cut behind a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// At `end`.
    Clean,
    /// The character that ends at `end` carries marks that follow this symbol; they are new.
    Inside,
    /// No: it is part of something.
    Never,
}

/// Turns characters into symbols. White space at the start counts for nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Fold {
    started: bool,
    /// Marks of the last letter, in the order they came, with where their text begins and ends.
    marks: SmallVec<[(u8, char); 4]>,
    span: (usize, usize),
    /// White space whose end has not come: its indentation and where it ends so far.
    white: Option<(u32, usize)>,
}

/// One symbol of the delivered text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// The character, [`WHITE`] for a run of white space.
    pub(super) ch: char,
    /// As [`Symbol::indent`].
    pub(super) indent: u32,
    /// It lies in a code block, where indentation matters.
    pub(super) code: bool,
    /// The byte offset where what it stands for ends.
    pub(super) end: usize,
}

/// Reads the symbols of the delivered text from some place on, as they are asked for.
#[derive(Debug)]
pub(super) struct Reader {
    text: Arc<str>,
    at: usize,
    until: usize,
    fold: Fold,
    fences: Fences,
    ready: VecDeque<Told>,
    scratch: Vec<Symbol>,
}

/// Which code block is open, line by line.
#[derive(Clone, Debug, Default)]
pub(super) struct Fences {
    open: Option<Fence>,
}

/// A fence that opened a code block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fence {
    /// Where its line starts.
    pub(super) at: usize,
    /// Where its line ends.
    pub(super) end: usize,
    mark: u8,
    len: usize,
    /// It names a language.
    pub(super) named: bool,
}

// === impl Fold ===

impl Fold {
    /// Takes the character that ends at byte `end`.
    pub(super) fn push(&mut self, ch: char, end: usize, out: &mut Vec<Symbol>) {
        if ch.is_whitespace() {
            self.flush_marks(out);
            if self.started {
                let indent = self.white.map_or(INLINE, |(indent, _)| indent);
                self.white = Some((deepen(indent, ch), end));
            }
            return;
        }
        if is_bidi(ch) {
            // Marks behind it belong to it.
            self.flush_marks(out);
            return;
        }
        self.started = true;
        if ch.is_ascii() {
            self.flush(out);
            out.push(Symbol { ch, indent: INLINE, end, cut: Cut::Clean });
            return;
        }
        let start = end - ch.len_utf8();
        let mut parts: SmallVec<[char; 4]> = SmallVec::new();
        decompose_canonical(ch, |part| parts.push(part));
        let last = parts.iter().rposition(|&part| canonical_combining_class(part) == 0);
        for (index, &part) in parts.iter().enumerate() {
            let class = canonical_combining_class(part);
            if class == 0 {
                self.flush(out);
                let cut = match last {
                    Some(last) if index < last => Cut::Never,
                    _ if index + 1 < parts.len() => Cut::Inside,
                    _ => Cut::Clean,
                };
                out.push(Symbol { ch: straight(part), indent: INLINE, end, cut });
            } else {
                self.flush_white(out);
                if self.marks.is_empty() {
                    self.span.0 = start;
                }
                self.span.1 = end;
                self.marks.push((class, part));
                if self.marks.len() >= MARKS {
                    self.flush_marks(out);
                }
            }
        }
    }

    /// The text is at its end: gives the marks that still wait. White space at the end counts for nothing.
    pub(super) fn finish(&mut self, out: &mut Vec<Symbol>) {
        self.flush_marks(out);
    }

    /// Something other than white space came.
    pub(super) fn is_started(&self) -> bool {
        self.started
    }

    /// Where the text of marks that still wait begins.
    pub(super) fn waits_from(&self) -> Option<usize> {
        if self.marks.is_empty() { None } else { Some(self.span.0) }
    }

    fn flush(&mut self, out: &mut Vec<Symbol>) {
        self.flush_marks(out);
        self.flush_white(out);
    }

    fn flush_white(&mut self, out: &mut Vec<Symbol>) {
        if let Some((indent, end)) = self.white.take() {
            out.push(Symbol { ch: WHITE, indent, end, cut: Cut::Never });
        }
    }

    fn flush_marks(&mut self, out: &mut Vec<Symbol>) {
        if self.marks.is_empty() {
            return;
        }
        self.marks.sort_by_key(|&(class, _)| class);
        let last = self.marks.len() - 1;
        let end = self.span.1;
        for (index, (_, ch)) in self.marks.drain(..).enumerate() {
            let cut = if index == last { Cut::Clean } else { Cut::Never };
            out.push(Symbol { ch, indent: INLINE, end, cut });
        }
    }
}

// === impl Symbol ===

impl Symbol {
    /// It ends a line.
    pub(super) fn has_newline(self) -> bool {
        self.ch == WHITE && self.indent != INLINE
    }
}

// === impl Told ===

impl Told {
    /// Whether a continuation that says `symbol` repeats this.
    pub(super) fn is_repeated_by(self, symbol: Symbol) -> bool {
        self.ch == symbol.ch && !(self.code && self.ch == WHITE && self.indent != symbol.indent)
    }

    /// White space that may be missing or added without a loss.
    pub(super) fn is_loose(self) -> bool {
        self.ch == WHITE && !self.code
    }
}

// === impl Reader ===

impl Reader {
    /// Reads `text` from byte `at` to byte `until`; `fences` is what was open at `at`.
    pub(super) fn new(text: &Arc<str>, at: usize, until: usize, fences: Fences) -> Self {
        Self {
            text: Arc::clone(text),
            at,
            until,
            fold: Fold::default(),
            fences,
            ready: VecDeque::new(),
            scratch: Vec::new(),
        }
    }

    /// The symbol after `skip` others, without taking any.
    pub(super) fn peek(&mut self, skip: usize) -> Option<Told> {
        while self.ready.len() <= skip && self.at < self.until {
            self.read();
        }
        self.ready.get(skip).copied()
    }

    /// Takes `count` symbols.
    pub(super) fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.peek(0);
            self.ready.pop_front();
        }
    }

    fn read(&mut self) {
        let Some(ch) = self.text[self.at..self.until].chars().next() else {
            self.at = self.until;
            return;
        };
        if self.at == 0 || self.text.as_bytes()[self.at - 1] == b'\n' {
            self.fences.step(&self.text, self.at);
        }
        self.at += ch.len_utf8();
        self.fold.push(ch, self.at, &mut self.scratch);
        if self.at >= self.until {
            self.fold.finish(&mut self.scratch);
        }
        let code = self.fences.is_open();
        self.ready.extend(self.scratch.drain(..).map(|Symbol { ch, indent, end, .. }| Told { ch, indent, code, end }));
    }
}

// === impl Fences ===

impl Fences {
    /// What is open at byte `until` of `text`, before the line that starts there.
    pub(super) fn at(text: &str, until: usize) -> Self {
        let mut fences = Self::default();
        let mut line = 0;
        while line < until {
            fences.step(text, line);
            let Some(end) = memchr::memchr(b'\n', &text.as_bytes()[line..]) else { break };
            line += end + 1;
        }
        fences
    }

    /// Reads the line that starts at byte `at`.
    fn step(&mut self, text: &str, at: usize) {
        let bytes = &text.as_bytes()[at..];
        let indent = bytes.iter().take_while(|&&byte| byte == b' ' || byte == b'\t').count();
        let Some(&mark @ (b'`' | b'~')) = bytes.get(indent) else { return };
        let len = bytes[indent..].iter().take_while(|&&byte| byte == mark).count();
        if len < 3 {
            return;
        }
        let end = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
        let info = text[at + indent + len..at + end].trim();
        match self.open {
            Some(open) if open.mark == mark && len >= open.len && info.is_empty() => self.open = None,
            Some(_) => {}
            None if mark == b'`' && info.contains('`') => {}
            None => self.open = Some(Fence { at, end: at + end, mark, len, named: !info.is_empty() }),
        }
    }

    fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The fence of the block that is open.
    pub(super) fn open(&self) -> Option<Fence> {
        self.open
    }
}

/// The indentation after one more character of white space: a fold (FNV-1a) of what stands after the last line end.
fn deepen(indent: u32, ch: char) -> u32 {
    match ch {
        '\n' => MARGIN,
        '\r' => indent,
        _ if indent == INLINE => INLINE,
        _ => ((indent ^ u32::from(ch)).wrapping_mul(0x0100_0193)).max(MARGIN + 1),
    }
}

/// The symbol of a run of white space.
pub(super) const WHITE: char = ' ';

/// White space within a line.
pub(super) const INLINE: u32 = 0;

/// A line end without indentation.
const MARGIN: u32 = 1;

/// The most marks on one letter that are sorted; text with more is compared in the order it comes.
const MARKS: usize = 32;
