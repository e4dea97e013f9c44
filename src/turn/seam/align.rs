//! Which of the readings of a continuation is the right one.
//!
//! Every reading is followed from the first character on, all at once; text is held while one that could still win is
//! alive. They rank by what they claim:
//! 1. the whole **anchor**, which is what was asked for. A text that starts with its own anchor leaves two readings,
//!    this and a restart; both stay alive until they differ, unless the text repeats itself within the anchor: then
//!    nothing will ever tell them apart, and what was asked for holds.
//! 2. a **restart**: the delivered text from its start. Once it has proven itself it swallows, so it needs no room.
//! 3. the longest **overlap**: any end of the delivered text, a tail of the anchor among them, or a block that is open
//!    at its end from that block's start.
//! 4. a **preamble** with the anchor behind it, a **reopened** fence.
//!
//! All of it goes by single characters, so how the text was cut into pieces cannot matter.

use super::fold::{Fences, Fold, Symbol};
use super::opener::Opener;
use super::overlap::{Match, Overlap, Tail};
use super::restart::Restart;
use super::{Join, Rejected, shape};
use crate::turn::script;
use std::sync::Arc;
use unicode_normalization::char::decompose_canonical;

/// A continuation whose start is not understood yet.
#[derive(Debug)]
pub(super) struct Align {
    delivered: Arc<str>,
    /// Where the white space at the end of the delivered text starts.
    until: usize,
    anchor: Exact,
    tail: Tail,
    heads: Option<Heads>,
    echo: bool,
    restart: Restart,
    blocks: Vec<(Restart, u32)>,
    fold: Fold,
    scratch: Vec<Symbol>,
    held: Held,
    /// The delivered text repeats itself within the anchor; found out when it matters.
    loops: Option<bool>,
    steps: u64,
}

/// The readings that end with the window.
#[derive(Debug)]
struct Heads {
    overlap: Overlap,
    opener: Opener,
    fence: Option<Reopened>,
}

/// The anchor to the letter.
#[derive(Debug)]
struct Exact {
    text: Box<str>,
    /// How many of its bytes came; `None` once something else did.
    at: Option<usize>,
}

/// A fence with the same words as the one that is open, said again.
#[derive(Debug)]
struct Reopened {
    line: Box<str>,
    at: usize,
    state: FenceState,
    overlap: Overlap,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FenceState {
    Matching,
    /// The line is complete; the text goes on at this byte.
    Open(usize),
    Off,
}

/// What came and is neither new nor known.
#[derive(Debug)]
struct Held {
    text: String,
    /// How many bytes of the continuation came before it.
    base: usize,
    chars: usize,
    window: usize,
}

/// What was decided.
#[derive(Debug)]
pub(super) enum Verdict {
    /// What follows is new, save white space that is owed.
    New(String, &'static str),
    /// No alignment: this is how the texts meet.
    Met(Join, &'static str),
    /// It does not fit.
    Off(Rejected),
}

/// What to do about what is held.
enum Step {
    Hold,
    Swallow,
    Take(Match, &'static str),
    Meet(usize, &'static str),
    Reject(Rejected),
}

// === impl Align ===

impl Align {
    /// Expects `anchor`, or anything else that `delivered` can be continued with.
    pub(super) fn new(delivered: Arc<str>, anchor: &str, window: usize) -> Self {
        let until = delivered.trim_end().len();
        let start = if anchor.is_empty() { None } else { until.checked_sub(anchor.len()) };
        let start = start.filter(|&start| delivered.as_bytes()[start..until] == *anchor.as_bytes());
        let tail = Tail::new(&delivered, until, start);
        let room = window.max(2 * anchor.chars().count()).max(LEAST_WINDOW);
        let heads = Heads { overlap: Overlap::default(), opener: Opener::new(), fence: None };
        Self::with(delivered, until, Exact { text: anchor.into(), at: start.map(|_| 0) }, tail, Some(heads), room)
    }

    /// Expects all of `delivered` again, or none of it.
    pub(super) fn echo(delivered: Arc<str>) -> Self {
        let until = delivered.trim_end().len();
        let tail = Tail::new(&delivered, 0, None);
        Self::with(delivered, until, Exact { text: "".into(), at: None }, tail, None, LEAST_WINDOW)
    }

    fn with(d: Arc<str>, until: usize, anchor: Exact, tail: Tail, heads: Option<Heads>, window: usize) -> Self {
        Self {
            restart: Restart::new(&d, 0, until, Fences::default(), true),
            delivered: d,
            until,
            anchor,
            tail,
            echo: heads.is_none(),
            heads,
            blocks: Vec::new(),
            fold: Fold::default(),
            scratch: Vec::new(),
            held: Held { text: String::new(), base: 0, chars: 0, window },
            loops: None,
            steps: 0,
        }
    }

    /// The white space at the end of the delivered text.
    pub(super) fn owed(&self) -> &str {
        &self.delivered[self.until..]
    }

    /// All of the delivered text is expected, not an anchor.
    pub(super) fn is_echo(&self) -> bool {
        self.echo
    }

    /// Nothing came yet.
    pub(super) fn is_untouched(&self) -> bool {
        self.held.end() == 0
    }

    /// How many characters are held.
    pub(super) fn held(&self) -> usize {
        self.held.chars
    }

    /// How many comparisons were made.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// Takes the next character.
    pub(super) fn push(&mut self, ch: char) -> Option<Verdict> {
        let begins = self.heads.is_some() && !self.fold.is_started() && !ch.is_whitespace() && !script::is_bidi(ch);
        if begins {
            self.find_blocks(ch);
        }
        self.held.text.push(ch);
        self.held.chars += 1;
        let end = self.held.end();
        self.steps += 1;
        self.anchor.push(ch);
        self.restart.push_char(ch);
        for (block, _) in &mut self.blocks {
            block.push_char(ch);
        }
        if let Some(fence) = self.heads.as_mut().and_then(|heads| heads.fence.as_mut()) {
            fence.push_char(ch, end);
        }
        self.fold.push(ch, end, &mut self.scratch);
        self.compare();
        match self.judge() {
            Step::Hold => None,
            Step::Swallow => {
                self.heads = None;
                self.anchor.at = None;
                self.held.drop_until(self.fold.waits_from());
                None
            }
            step => Some(self.settle(step)),
        }
    }

    /// Nothing more comes.
    pub(super) fn close(&mut self) -> Verdict {
        self.fold.finish(&mut self.scratch);
        self.compare();
        let step = self.judge_at_last();
        self.settle(step)
    }

    /// Follows every reading by the symbols that are ready.
    fn compare(&mut self) {
        let mut symbols = std::mem::take(&mut self.scratch);
        for &symbol in &symbols {
            self.restart.push(symbol);
            for (block, _) in &mut self.blocks {
                block.push(symbol);
            }
            self.steps += 1 + self.blocks.len() as u64;
            if let Some(heads) = &mut self.heads {
                self.steps += heads.overlap.push(&self.tail, symbol);
                self.steps += heads.opener.push(&self.tail, symbol);
                if let Some(fence) = &mut heads.fence {
                    self.steps += fence.push(&self.tail, symbol);
                }
            }
        }
        symbols.clear();
        self.scratch = symbols;
    }

    fn judge(&mut self) -> Step {
        let retells = self.restart.is_alive();
        let told = self.restart.told();
        if let Some(anchor) = self.anchor_found(false) {
            if !retells && told.is_none_or(|told| told.end <= anchor.end) || self.loops() {
                return Step::Take(anchor, "anchor");
            }
            if let Some(told) = told {
                return Step::Take(told, "restart");
            }
            return if self.held.is_full() { self.make_room() } else { Step::Hold };
        }
        let awaits_anchor = self.awaits_anchor();
        if !awaits_anchor && let Some(told) = told {
            return Step::Take(told, "restart");
        }
        let best = self.best(false);
        if !awaits_anchor && !retells {
            if self.is_refused() {
                return Step::Reject(Rejected::Refused);
            }
            if best.is_none()
                && let Some(preamble) = self.heads.as_ref().and_then(|heads| heads.opener.whole())
            {
                return Step::Take(preamble, "preamble");
            }
        }
        let begun = self.fold.is_started();
        let heads_alive = self.heads.as_ref().is_some_and(Heads::is_alive);
        if !begun || awaits_anchor || heads_alive || self.retelling().is_some() {
            if self.held.is_full() {
                return self.make_room();
            }
            let alone = begun && !awaits_anchor && !heads_alive && best.is_none();
            return if alone && self.retelling() >= Some(PROVEN) { Step::Swallow } else { Step::Hold };
        }
        self.conclude(best)
    }

    /// The window is full: the best there is.
    fn make_room(&mut self) -> Step {
        if self.retelling() >= Some(PROVEN) {
            return Step::Swallow;
        }
        match self.anchor_found(true) {
            Some(anchor) => Step::Take(anchor, "anchor"),
            None => self.conclude(self.best(true)),
        }
    }

    /// No reading is alive, or none may wait: what they have come to.
    fn conclude(&self, best: Option<(Match, &'static str)>) -> Step {
        let retold = self.retold();
        if let Some((best, how)) = best
            && retold < best.weight + MARGIN
        {
            return Step::Take(best, how);
        }
        if retold >= PROVEN {
            return Step::Reject(Rejected::Diverged);
        }
        let Some(heads) = &self.heads else { return Step::Meet(0, "verbatim") };
        if let Some(found) = heads.opener.whole().or(heads.opener.longest()) {
            return Step::Take(found, "preamble");
        }
        if heads.opener.is_announced() {
            return Step::Reject(Rejected::Preamble);
        }
        if let Some(fence) = &heads.fence
            && let FenceState::Open(end) = fence.state
        {
            return match fence.overlap.whole().or(fence.overlap.longest(OVERLAP)) {
                Some(found) => Step::Take(found, "fence"),
                None => Step::Meet(end, "fence"),
            };
        }
        Step::Meet(0, "")
    }

    /// Nothing more comes: readings that still waited are what they are now.
    fn judge_at_last(&mut self) -> Step {
        let told = self.restart.told_at_last();
        if let Some(anchor) = self.anchor_found(true) {
            return match told {
                Some(told) if told.end > anchor.end && !self.loops() => Step::Take(told, "restart"),
                _ => Step::Take(anchor, "anchor"),
            };
        }
        if let Some(told) = told {
            return Step::Take(told, "restart");
        }
        if !self.fold.is_started() {
            return Step::Meet(0, "");
        }
        let known = match &self.heads {
            Some(heads) => self.awaits_anchor() || heads.overlap.is_at_end(),
            None => self.restart.is_alive() && self.restart.weight() < PROVEN,
        };
        if known {
            return Step::Take(Match { end: self.held.end(), inside: false, weight: 0 }, "nothing");
        }
        if self.retelling() >= Some(PROVEN) {
            return Step::Reject(Rejected::Diverged);
        }
        if self.is_refused() {
            return Step::Reject(Rejected::Refused);
        }
        self.conclude(self.best(true))
    }

    fn settle(&mut self, step: Step) -> Verdict {
        match step {
            Step::Take(found, how) => {
                let mut text = String::new();
                if found.inside
                    && let Some(ch) = self.held.before(found.end)
                {
                    // The letter is known, its marks are not.
                    let mut parts = 0;
                    decompose_canonical(ch, |part| {
                        if parts > 0 {
                            text.push(part);
                        }
                        parts += 1;
                    });
                }
                text.push_str(self.held.after(found.end));
                Verdict::New(text, how)
            }
            Step::Meet(_, how @ "verbatim") => Verdict::New(std::mem::take(&mut self.held.text), how),
            Step::Meet(at, how) => {
                let (join, met) = shape::join(&self.delivered, self.held.after(at));
                Verdict::Met(join, if how.is_empty() { met } else { how })
            }
            Step::Reject(rejected) => Verdict::Off(rejected),
            // Neither settles anything.
            Step::Hold | Step::Swallow => Verdict::Met(Join::Held, "nothing"),
        }
    }

    /// The whole anchor, if it came. To the letter is better than as it is compared, if it still may come to that.
    fn anchor_found(&self, at_last: bool) -> Option<Match> {
        let folded = self.heads.as_ref().and_then(|heads| heads.overlap.whole());
        match self.anchor.at {
            Some(at) if at == self.anchor.text.len() => Some(Match { end: at, inside: false, weight: SURE_WEIGHT }),
            Some(_) if !at_last => None,
            _ => folded,
        }
    }

    /// All so far is the start of the anchor.
    fn awaits_anchor(&self) -> bool {
        self.anchor.at.is_some_and(|at| at > 0 && at < self.anchor.text.len())
            || self.heads.as_ref().is_some_and(|heads| heads.overlap.is_in_anchor(&self.tail))
    }

    /// The longest end of the delivered text that was repeated, or open block.
    fn best(&self, at_last: bool) -> Option<(Match, &'static str)> {
        let overlap = self.heads.as_ref().and_then(|heads| heads.overlap.longest(OVERLAP));
        let blocks = self.blocks.iter().filter_map(|(block, least)| {
            let told = if at_last { block.told_at_last() } else { block.told() };
            told.filter(|told| told.weight >= *least).map(|told| (told, "block"))
        });
        overlap.map(|overlap| (overlap, "overlap")).into_iter().chain(blocks).max_by_key(|(found, _)| found.weight)
    }

    /// What the longest restart that is alive has repeated.
    fn retelling(&self) -> Option<u32> {
        let restarts = std::iter::once(&self.restart).chain(self.blocks.iter().map(|(block, _)| block));
        restarts.filter(|restart| restart.is_alive()).map(Restart::weight).max()
    }

    /// What the longest restart has repeated.
    fn retold(&self) -> u32 {
        let restarts = std::iter::once(&self.restart).chain(self.blocks.iter().map(|(block, _)| block));
        restarts.map(Restart::weight).max().unwrap_or(0)
    }

    /// It is a listed refusal, and not what the delivered text speaks of or quotes.
    fn is_refused(&mut self) -> bool {
        let Some(heads) = &mut self.heads else { return false };
        let Some(refusal) = heads.opener.take_refusal() else { return false };
        !shape::mentions(&self.delivered, refusal) && !shape::is_quoting(&self.delivered)
    }

    /// Whether the delivered text repeats itself within the anchor.
    fn loops(&mut self) -> bool {
        let (text, reach) = (self.delivered[..self.until].trim_start().as_bytes(), self.anchor.text.len());
        *self.loops.get_or_insert_with(|| {
            let period = shortest_period(&text[..text.len().min(2 * reach)]);
            period <= reach && text[period..] == text[..text.len() - period]
        })
    }

    /// Follows what `ch`, the first character that counts, may open again.
    fn find_blocks(&mut self, ch: char) {
        let text = &self.delivered[..self.until];
        let start = text.len() - text.trim_start().len();
        let exact = self.held.text.is_empty();
        for block in shape::open_blocks(text, ch) {
            if block.at > start {
                let fences = Fences::at(text, block.at);
                self.blocks.push((Restart::new(&self.delivered, block.at, self.until, fences, exact), block.least));
            }
        }
        if matches!(ch, '`' | '~')
            && let Some(heads) = &mut self.heads
            && let Some(fence) = Fences::at(text, text.len()).open().filter(|fence| fence.named)
        {
            heads.fence = Some(Reopened::new(text[fence.at..fence.end].trim()));
        }
    }
}

// === impl Heads ===

impl Heads {
    fn is_alive(&self) -> bool {
        self.overlap.is_alive() || self.opener.is_alive() || self.fence.as_ref().is_some_and(Reopened::is_alive)
    }
}

// === impl Exact ===

impl Exact {
    fn push(&mut self, ch: char) {
        let Some(at) = self.at else { return };
        let rest = &self.text[at..];
        if rest.starts_with(ch) {
            self.at = Some(at + ch.len_utf8());
        } else if !rest.is_empty() {
            self.at = None;
        }
    }
}

// === impl Reopened ===

impl Reopened {
    fn new(line: &str) -> Self {
        Self { line: line.into(), at: 0, state: FenceState::Matching, overlap: Overlap::default() }
    }

    fn push_char(&mut self, ch: char, end: usize) {
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

    fn push(&mut self, tail: &Tail, symbol: Symbol) -> u64 {
        match self.state {
            FenceState::Open(end) if symbol.end > end => self.overlap.push(tail, symbol),
            _ => 0,
        }
    }

    fn is_alive(&self) -> bool {
        match self.state {
            FenceState::Matching => true,
            FenceState::Open(_) => self.overlap.whole().is_none() && self.overlap.is_alive(),
            FenceState::Off => false,
        }
    }
}

// === impl Held ===

impl Held {
    fn end(&self) -> usize {
        self.base + self.text.len()
    }

    fn is_full(&self) -> bool {
        self.chars >= self.window
    }

    /// What came after byte `at` of the continuation.
    fn after(&self, at: usize) -> &str {
        self.text.get(at.saturating_sub(self.base)..).unwrap_or_default()
    }

    /// The character that ends at byte `at`.
    fn before(&self, at: usize) -> Option<char> {
        self.text.get(..at.checked_sub(self.base)?)?.chars().next_back()
    }

    /// Forgets what came before byte `at`, or all.
    fn drop_until(&mut self, at: Option<usize>) {
        let at = at.unwrap_or(usize::MAX).clamp(self.base, self.end());
        self.text.drain(..at - self.base);
        self.base = at;
        self.chars = self.text.chars().count();
    }
}

/// The least number by which `text` can be moved onto itself.
fn shortest_period(text: &[u8]) -> usize {
    let mut borders = vec![0usize; text.len()];
    for at in 1..text.len() {
        let mut border = borders[at - 1];
        while border > 0 && text[border] != text[at] {
            border = borders[border - 1];
        }
        borders[at] = border + usize::from(text[border] == text[at]);
    }
    text.len() - borders.last().copied().unwrap_or(0)
}

/// What an overlap must weigh.
const OVERLAP: u32 = 8;

/// What must have been told again before it is no accident.
const PROVEN: u32 = 16;

/// By how much a restart must explain more than an overlap to be the better reading although it broke off.
const MARGIN: u32 = 8;

/// The anchor needs no weighing.
const SURE_WEIGHT: u32 = u32::MAX;

/// The least room for alignments, in characters.
const LEAST_WINDOW: usize = 64;
