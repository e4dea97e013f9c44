//! Which of the readings of a continuation is the right one.
//!
//! Every reading is followed from the first character on, all at once; text is held while one that could still win is
//! alive. They rank by what they claim:
//! 1. the whole **anchor**, which is what was asked for. A text that starts with its own anchor, as one does that goes in
//!    circles, leaves two readings, this and a restart; both stay alive until they differ. Once all of the text was told
//!    again, or more of it than the window holds, it is a restart: to take it for new would tell all of it twice.
//! 2. a **restart**: the delivered text from its start. Once it has proven itself it swallows, so it needs no room.
//! 3. the longest **overlap**: any end of the delivered text, a tail of the anchor among them, or a block that is open
//!    at its end from that block's start.
//! 4. a **preamble** with the anchor behind it, a **reopened** fence.
//!
//! All of it goes by single characters, so how the text was cut into pieces cannot matter.

use super::fence::{FenceState, Reopened};
use super::fold::{Fences, Fold, Symbol};
use super::held::{Exact, Held};
use super::opener::Opener;
use super::overlap::{Match, Overlap, Tail};
use super::restart::Restart;
use super::shape::Block;
use super::{Anchor, Join, Rejected, shape};
use crate::turn::script;
use std::sync::Arc;

/// A continuation whose start is not understood yet.
#[derive(Debug)]
pub(super) struct Align {
    delivered: Arc<str>,
    /// Where the white space at the end of the delivered text starts.
    until: usize,
    anchor: Exact,
    /// The anchor between the marks that it was quoted in.
    quoted: Exact,
    tail: Tail,
    heads: Option<Heads>,
    echo: bool,
    restart: Restart,
    blocks: Vec<Open>,
    fold: Fold,
    scratch: Vec<Symbol>,
    held: Held,
    /// So much was told again that it is dropped as it comes.
    swallows: bool,
    steps: u64,
}

/// The readings that end with the window.
#[derive(Debug)]
struct Heads {
    overlap: Overlap,
    opener: Opener,
    fence: Option<Reopened>,
}

/// A block that is open at the end of the delivered text, told again from its start.
#[derive(Debug)]
struct Open {
    restart: Restart,
    block: Block,
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
#[derive(Clone, Copy, Debug)]
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
    pub(super) fn new(delivered: Arc<str>, anchor: &Anchor, window: usize) -> Self {
        let text = anchor.text.as_str();
        let until = delivered.trim_end().len();
        let fits = delivered[..until].ends_with(text) && !text.is_empty();
        let start = fits.then(|| until - text.len());
        let tail = Tail::new(&delivered, until, start);
        let heads = Heads { overlap: Overlap::within_turn(), opener: Opener::new(&tail), fence: None };
        let mut align = Self::with(delivered, tail, Some(heads));
        if start.is_some() {
            let (open, close) = anchor.delimiter();
            align.quoted = Exact::new(format!("{open}{text}{close}"));
            align.anchor = Exact::new(text.to_owned());
            align.held.window = window.max(2 * text.chars().count()).max(LEAST_WINDOW);
        } else {
            align.held.window = window.max(LEAST_WINDOW);
        }
        align
    }

    /// Expects all of `delivered` again, or none of it.
    pub(super) fn echo(delivered: Arc<str>) -> Self {
        Self::with(delivered, Tail::default(), None)
    }

    fn with(delivered: Arc<str>, tail: Tail, heads: Option<Heads>) -> Self {
        let until = delivered.trim_end().len();
        Self {
            restart: Restart::new(&delivered, 0, until, Fences::default(), true),
            delivered,
            until,
            anchor: Exact::default(),
            quoted: Exact::default(),
            tail,
            echo: heads.is_none(),
            heads,
            blocks: Vec::new(),
            fold: Fold::default(),
            scratch: Vec::new(),
            held: Held { text: String::new(), base: 0, chars: 0, window: LEAST_WINDOW },
            swallows: false,
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
        self.quoted.push(ch);
        self.restart.push_char(ch);
        for open in &mut self.blocks {
            open.restart.push_char(ch);
        }
        if let Some(fence) = self.heads.as_mut().and_then(|heads| heads.fence.as_mut()) {
            fence.push_char(ch, end);
        }
        self.fold.push(ch, end, &mut self.scratch);
        self.compare();
        match self.judge() {
            Step::Hold => None,
            Step::Swallow => {
                self.swallow();
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
            for open in &mut self.blocks {
                open.restart.push(symbol);
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

    /// Drops what is held: it is told again. Only readings that say so count from here on.
    fn swallow(&mut self) {
        self.swallows = true;
        self.anchor.at = None;
        self.quoted.at = None;
        self.blocks.retain(|open| open.restart.is_alive());
        if let Some(heads) = &mut self.heads {
            heads.overlap.give_way();
            heads.opener.give_way();
            heads.fence = None;
        }
        self.held.drop_until(self.fold.waits_from());
    }

    fn judge_swallowed(&self, at_last: bool) -> Step {
        let told = if at_last { self.restart.told_at_last() } else { self.restart.told() };
        if let Some(told) = told {
            return Step::Take(told, "restart");
        }
        if let Some((found, how)) = self.best(at_last) {
            // The whole turn may still have been told, to the letter.
            let waits = !at_last && self.restart.is_alive() && !self.held.is_full();
            return if waits { Step::Hold } else { Step::Take(found, how) };
        }
        let heads_alive = self.heads.as_ref().is_some_and(Heads::is_alive);
        if !at_last && (heads_alive || self.retells(false)) { Step::Swallow } else { Step::Reject(Rejected::Diverged) }
    }

    fn judge(&mut self) -> Step {
        if self.swallows {
            return self.judge_swallowed(false);
        }
        let retells = self.restart.is_alive();
        let told = self.restart.told();
        if let Some(anchor) = self.anchor_found(false) {
            if !retells && told.is_none_or(|told| told.end <= anchor.end) {
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
            if let Some(why) = self.refusal() {
                return Step::Reject(why);
            }
            if best.is_none()
                && let Some(preamble) = self.heads.as_ref().and_then(|heads| heads.opener.whole())
            {
                return Step::Take(preamble, "preamble");
            }
        }
        let begun = self.fold.is_started();
        let heads_alive = self.heads.as_ref().is_some_and(Heads::is_alive);
        if !begun || awaits_anchor || heads_alive || self.retells(false) {
            if self.held.is_full() {
                return self.make_room();
            }
            let alone = begun && !awaits_anchor && !heads_alive && best.is_none();
            return if alone && self.retells(true) { Step::Swallow } else { Step::Hold };
        }
        self.conclude(best)
    }

    /// The window is full: the best there is.
    fn make_room(&mut self) -> Step {
        if self.retells(true) {
            return Step::Swallow;
        }
        if let Some(anchor) = self.anchor_found(true) {
            return Step::Take(anchor, "anchor");
        }
        match &self.heads {
            Some(heads) if heads.overlap.weight(&self.tail) >= LONG => Step::Swallow,
            _ => self.conclude(self.best(true)),
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
        if retold > 0 {
            return Step::Reject(Rejected::Diverged);
        }
        let Some(heads) = &self.heads else { return Step::Meet(0, "verbatim") };
        if let Some(found) = heads.opener.whole().or_else(|| heads.opener.longest()) {
            return Step::Take(found, "preamble");
        }
        if heads.opener.is_announced() {
            return Step::Reject(Rejected::Preamble);
        }
        if let Some(fence) = &heads.fence
            && let FenceState::Open(end) = fence.state
        {
            return match fence.overlap.whole().or_else(|| fence.overlap.longest(OVERLAP)) {
                Some(found) => Step::Take(found, "fence"),
                None => Step::Meet(end, "fence"),
            };
        }
        Step::Meet(0, "")
    }

    /// Nothing more comes: readings that still waited are what they are now.
    fn judge_at_last(&mut self) -> Step {
        if self.swallows {
            return self.judge_swallowed(true);
        }
        let told = self.restart.told_at_last();
        if let Some(anchor) = self.anchor_found(true) {
            return match told {
                Some(told) if told.end > anchor.end => Step::Take(told, "restart"),
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
        if self.retells(true) {
            return Step::Reject(Rejected::Diverged);
        }
        self.refusal().map_or_else(|| self.conclude(self.best(true)), Step::Reject)
    }

    fn settle(&mut self, step: Step) -> Verdict {
        match step {
            Step::Take(found, how) => {
                let text = self.held.new_after(found);
                Verdict::New(text, how)
            }
            Step::Meet(_, how @ "verbatim") => Verdict::New(std::mem::take(&mut self.held.text), how),
            Step::Meet(at, how) => {
                let new = self.held.after(at);
                if how.is_empty() && shape::breaks_sentence(&self.delivered, new) {
                    return Verdict::Off(Rejected::Unfit);
                }
                let (join, met) = shape::join(&self.delivered, new);
                // A guess is the more important news.
                Verdict::Met(join, if how.is_empty() || met == "guess" { met } else { how })
            }
            Step::Reject(rejected) => Verdict::Off(rejected),
            // Neither settles anything.
            Step::Hold | Step::Swallow => Verdict::Met(Join::Held, "nothing"),
        }
    }

    /// The whole anchor, if it came. To the letter is better than as it is compared, if it still may come to that.
    fn anchor_found(&self, at_last: bool) -> Option<Match> {
        if let Some(end) = self.anchor.end().or_else(|| self.quoted.end()) {
            return Some(Match { end, inside: false, weight: u32::MAX });
        }
        if self.anchor.at.is_some() && !at_last {
            return None;
        }
        self.heads.as_ref().and_then(|heads| heads.overlap.whole())
    }

    /// All so far is the start of the anchor.
    fn awaits_anchor(&self) -> bool {
        self.anchor.is_alive()
            || self.quoted.is_alive()
            || self.heads.as_ref().is_some_and(|heads| heads.overlap.is_in_anchor(&self.tail))
    }

    /// The longest end of the delivered text that was repeated, or open block.
    fn best(&self, at_last: bool) -> Option<(Match, &'static str)> {
        let overlap = self.heads.as_ref().and_then(|heads| heads.overlap.longest(OVERLAP));
        let blocks = self.blocks.iter().filter_map(|Open { restart, block }| {
            let told = if at_last { restart.told_at_last() } else { restart.told() };
            told.filter(|told| told.weight >= block.least).map(|told| (told, "block"))
        });
        overlap.map(|overlap| (overlap, "overlap")).into_iter().chain(blocks).max_by_key(|(found, _)| found.weight)
    }

    /// A restart is alive, and `proven` if that is asked.
    fn retells(&self, proven: bool) -> bool {
        self.restarts().any(|(restart, least)| restart.is_alive() && (!proven || restart.weight() >= least))
    }

    /// What the longest restart has repeated that is proven; 0 if none is.
    fn retold(&self) -> u32 {
        let proven = self.restarts().filter(|(restart, least)| restart.weight() >= *least);
        proven.map(|(restart, _)| restart.weight()).max().unwrap_or(0)
    }

    /// The restarts, with what proves each.
    fn restarts(&self) -> impl Iterator<Item = (&Restart, u32)> {
        let blocks = self.blocks.iter().map(|open| (&open.restart, open.block.proven));
        std::iter::once((&self.restart, PROVEN)).chain(blocks)
    }

    /// It is a listed refusal or aside, and not what the delivered text speaks of or quotes.
    fn refusal(&mut self) -> Option<Rejected> {
        let (phrase, why) = self.heads.as_mut()?.opener.take_refusal()?;
        let fits = shape::mentions(&self.delivered, phrase) || shape::is_quoting(&self.delivered);
        (!fits).then_some(why)
    }

    /// Follows what `ch`, the first character that counts, may open again.
    fn find_blocks(&mut self, ch: char) {
        let text = &self.delivered[..self.until];
        let start = text.len() - text.trim_start().len();
        let exact = self.held.text.is_empty();
        for block in shape::open_blocks(text, ch) {
            if block.at > start {
                let fences = Fences::at(text, block.at);
                let restart = Restart::new(&self.delivered, block.at, self.until, fences, exact);
                self.blocks.push(Open { restart, block });
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

/// What an overlap must weigh.
const OVERLAP: u32 = 8;

/// What must have been told again of the turn before it is no accident.
const PROVEN: u32 = 16;

/// By how much a restart must explain more than an overlap to be the better reading although it broke off.
const MARGIN: u32 = 8;

/// What a repetition must weigh that fills the window and is not at its end: more of it is then dropped as it comes.
const LONG: u32 = 32;

/// The least room for alignments, in characters.
const LEAST_WINDOW: usize = 64;
