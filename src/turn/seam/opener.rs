//! What a model says before it goes on although it was asked not to, and what it says when it will not go on.
//!
//! A preamble is recognised word for word, from lists: nothing is held back for it unless the text so far is the
//! start of a listed one. A bare "Sure," may be the answer itself, so it counts only if the anchor follows; "continuing
//! from where I left off:" is never part of an answer. Behind a text in a script without word spaces some words in Latin
//! letters are a preamble, whatever they say.

use super::Rejected;
use super::fold::{Symbol, WHITE};
use super::overlap::{Match, Overlap, SURE, Tail};
use super::phrases::{ACKNOWLEDGEMENTS, ANNOUNCEMENTS, ASIDES, NOTES, REFUSALS, WHENCE};
use crate::turn::script;
use smallvec::SmallVec;
use unicode_normalization::char::is_combining_mark;

/// Follows the start of a continuation through the lists.
#[derive(Debug)]
pub(super) struct Opener {
    stage: Stage,
    phrases: Phrases,
    /// How many symbols of those that may lead up to the anchor came, while nothing else did.
    lead: Option<usize>,
    /// They are one dot.
    dotted: bool,
    /// What was complete before a space or a dot, and which.
    pause: Option<(Kind, char)>,
    /// It began in the lower case, as nobody announces anything: it may be the rest of a sentence.
    is_lower: bool,
    /// The words that announce a continuation were all there.
    announced: bool,
    /// What was said that is no part of an answer.
    refusal: Option<(&'static str, Rejected)>,
    /// The delivered text ends in a script without word spaces, and so many words in Latin letters came, while nothing
    /// else did.
    foreign: Option<usize>,
    /// The anchor is all of the delivered text, so that a short one is as good as a long one.
    is_all: bool,
    /// Where the anchor may have begun, after the words.
    places: SmallVec<[Overlap; 4]>,
}

/// Where in a preamble the text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// "Sure", "Continuing", or a refusal.
    First,
    /// After "Sure,".
    Acknowledged,
    /// After "Continuing ": "from where I left off".
    Whence,
    /// After the words: punctuation, then the anchor.
    Announced,
    /// The anchor has begun, or there is none.
    After,
}

/// What an entry of the lists is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Acknowledgement,
    Announcement,
    /// An announcement in brackets of its own.
    Note,
    Whence,
    Refusal,
    /// Talk about the request or the confusion, which is no answer either.
    Aside,
}

/// The entries that the text still matches.
#[derive(Debug, Default)]
struct Phrases {
    /// What of it is still to come, and the whole of it.
    alive: SmallVec<[(Kind, &'static str, &'static str); 4]>,
    at: usize,
    complete: Option<Kind>,
}

// === impl Opener ===

impl Opener {
    /// At the start of a continuation of a text that ends like `tail`.
    pub(super) fn new(tail: &Tail) -> Self {
        let phrases = Phrases::of(&[
            (Kind::Acknowledgement, ACKNOWLEDGEMENTS),
            (Kind::Announcement, ANNOUNCEMENTS),
            (Kind::Note, NOTES),
            (Kind::Refusal, REFUSALS),
            (Kind::Aside, ASIDES),
        ]);
        Self {
            stage: Stage::First,
            phrases,
            lead: Some(0),
            dotted: false,
            pause: None,
            is_lower: false,
            announced: false,
            refusal: None,
            foreign: tail.is_spaceless().then_some(0),
            is_all: tail.is_all_anchor(),
            places: SmallVec::new(),
        }
    }

    /// Takes the next symbol; gives the number of comparisons.
    pub(super) fn push(&mut self, tail: &Tail, symbol: Symbol) -> u64 {
        let mut steps = 1 + self.phrases.alive.len() as u64;
        for place in &mut self.places {
            steps += place.push(tail, symbol);
        }
        let is_word = symbol.ch.is_alphanumeric();
        steps += self.follow_foreign(tail, symbol);
        match self.stage {
            Stage::First => {
                if self.phrases.at == 0 {
                    self.is_lower = symbol.ch.is_lowercase();
                }
                // Dots, a quote or a bracket may come before the anchor as well.
                if let Some(lead) = self.lead {
                    let sentence_ends = lead == 1 && self.dotted && symbol.ch != '.';
                    self.dotted = lead == 0 && symbol.ch == '.';
                    if lead > 0 && !sentence_ends {
                        steps += self.try_place(tail, symbol);
                    }
                    let goes_on = LEADS.contains(&symbol.ch) && lead < PLACES && !sentence_ends;
                    self.lead = goes_on.then_some(lead + 1);
                }
                steps += self.follow(tail, symbol);
            }
            Stage::Acknowledged => {
                if self.phrases.at == 0 {
                    steps += self.try_place(tail, symbol);
                }
                if is_word || matches!(symbol.ch, '(' | '[') || self.phrases.at > 0 {
                    steps += self.follow(tail, symbol);
                }
            }
            Stage::Whence => steps += self.follow(tail, symbol),
            Stage::Announced => {
                steps += self.try_place(tail, symbol);
                if is_word || self.places.len() >= PLACES {
                    self.stage = Stage::After;
                }
            }
            Stage::After => {}
        }
        self.places.retain(|place| place.is_alive() || place.longest(SURE).is_some() || place.whole().is_some());
        steps
    }

    /// Follows nothing any more.
    pub(super) fn give_way(&mut self) {
        self.foreign = None;
        self.stage = Stage::After;
        self.announced = false;
        self.refusal = None;
        self.places.clear();
    }

    /// The text may still turn out to be a preamble or a refusal.
    pub(super) fn is_alive(&self) -> bool {
        let listed = match self.stage {
            Stage::First => self.lead.is_some() || self.pause.is_some() || self.phrases.is_alive(),
            Stage::Acknowledged | Stage::Whence => self.pause.is_some() || self.phrases.is_alive(),
            Stage::Announced => true,
            Stage::After => false,
        };
        listed || self.foreign.is_some_and(|words| words > 0) || self.places.iter().any(Overlap::is_alive)
    }

    /// The whole anchor came after the preamble.
    pub(super) fn whole(&self) -> Option<Match> {
        let proves = |found: &Match| found.weight >= SURE || (self.announced && self.is_all);
        self.places.iter().find_map(Overlap::whole).filter(proves)
    }

    /// The longest end of the delivered text that came after the preamble.
    pub(super) fn longest(&self) -> Option<Match> {
        self.places.iter().filter_map(|place| place.longest(SURE)).max_by_key(|found| found.weight)
    }

    /// It announced a continuation, or is in another script than the text.
    pub(super) fn is_announced(&self) -> bool {
        self.announced || self.foreign.is_some_and(|words| words >= FOREIGN)
    }

    /// What it said that is no part of an answer, and what that is; told once.
    pub(super) fn take_refusal(&mut self) -> Option<(&'static str, Rejected)> {
        self.refusal.take()
    }

    fn announce(&mut self) {
        self.stage = Stage::Announced;
        self.announced = !self.is_lower;
    }

    /// Counts words in Latin letters where the text is in another script; behind enough of them the anchor may come.
    fn follow_foreign(&mut self, tail: &Tail, symbol: Symbol) -> u64 {
        let Some(words) = self.foreign else { return 0 };
        if !script::is_spaceless(symbol.ch) {
            let ends = symbol.ch == WHITE || BREAKS.contains(&symbol.ch) || STOPS.contains(&symbol.ch);
            // The first letter counts, so that the words are waited for.
            let begins = words == 0 && symbol.ch.is_alphabetic();
            self.foreign = Some(words + usize::from(begins || ends && words > 0));
            return 0;
        }
        self.foreign = None;
        if words < FOREIGN {
            return 0;
        }
        self.announced = true;
        self.stage = Stage::After;
        self.try_place(tail, symbol)
    }

    fn try_place(&mut self, tail: &Tail, symbol: Symbol) -> u64 {
        if self.places.len() >= PLACES || symbol.ch == WHITE {
            return 0;
        }
        let mut place = Overlap::default();
        let steps = place.push(tail, symbol);
        self.places.push(place);
        steps
    }

    fn follow(&mut self, tail: &Tail, symbol: Symbol) -> u64 {
        let breaks = symbol.has_newline() || BREAKS.contains(&symbol.ch);
        let stops = breaks || STOPS.contains(&symbol.ch);
        // A dash may stand off, and one dot is less than three.
        let pause = self.pause.take().filter(|&(_, before)| match before {
            '.' => symbol.ch == '.',
            _ => DASHES.contains(&symbol.ch),
        });
        self.pause = self.phrases.complete.filter(|_| matches!(symbol.ch, WHITE | '.')).map(|kind| (kind, symbol.ch));
        let paused = pause.is_some();
        match pause.map(|(kind, _)| kind).or(self.phrases.complete) {
            Some(Kind::Acknowledgement) if stops || paused => {
                self.stage = Stage::Acknowledged;
                self.phrases = Phrases::of(&[
                    (Kind::Announcement, ANNOUNCEMENTS),
                    (Kind::Note, NOTES),
                    (Kind::Refusal, REFUSALS),
                    (Kind::Aside, ASIDES),
                ]);
            }
            Some(Kind::Announcement) if breaks || paused => self.announce(),
            Some(Kind::Whence) if stops || paused => self.announce(),
            Some(Kind::Note) => {
                self.announce();
                if !stops && symbol.ch != WHITE {
                    return self.try_place(tail, symbol);
                }
            }
            Some(Kind::Announcement) if symbol.ch == WHITE => {
                self.stage = Stage::Whence;
                self.phrases = Phrases::of(&[(Kind::Whence, WHENCE)]);
            }
            _ => {
                // Nobody begins to talk in the lower case: it may be the rest of a sentence.
                let said = self.phrases.push(symbol.ch).filter(|(kind, _)| *kind == Kind::Refusal || !self.is_lower);
                if let Some((kind, phrase)) = said {
                    let why = if kind == Kind::Refusal { Rejected::Refused } else { Rejected::Preamble };
                    self.refusal = Some((phrase, why));
                    self.stage = Stage::After;
                }
            }
        }
        0
    }
}

// === impl Phrases ===

impl Phrases {
    fn of(lists: &[(Kind, &'static [&'static str])]) -> Self {
        let alive =
            lists.iter().flat_map(|&(kind, list)| list.iter().map(move |&phrase| (kind, phrase, phrase))).collect();
        Self { alive, at: 0, complete: None }
    }

    /// Takes a character; gives the refusal or the aside that it completes. The phrases are written without marks, for
    /// those come as characters of their own.
    fn push(&mut self, ch: char) -> Option<(Kind, &'static str)> {
        if is_combining_mark(ch) {
            return None;
        }
        let lower = ch.to_lowercase().next().unwrap_or(ch);
        self.at += 1;
        self.alive.retain(|(_, rest, _)| rest.strip_prefix(lower).map(|after| *rest = after).is_some());
        let done = self.alive.iter().find(|(_, rest, _)| rest.is_empty()).copied();
        self.complete = done.map(|(kind, ..)| kind);
        let ends = |kind: &Kind| matches!(kind, Kind::Refusal | Kind::Aside);
        done.filter(|(kind, ..)| ends(kind)).map(|(kind, _, phrase)| (kind, phrase))
    }

    fn is_alive(&self) -> bool {
        self.complete.is_some() || self.alive.iter().any(|(_, rest, _)| !rest.is_empty())
    }
}

/// So many words in another script than the text's are no quotation of a name.
const FOREIGN: usize = 4;

/// At how many places after a preamble the anchor is looked for.
const PLACES: usize = 12;

/// What ends an announcement even after a space.
const DASHES: &[char] = &['-', '\u{2013}', '\u{2014}'];

/// What ends an announcement where a sentence could not go on like this.
const BREAKS: &[char] = &[':', '\u{2013}', '\u{2014}', '\u{2026}'];

/// What else ends an acknowledgement, or an announcement that says from where.
const STOPS: &[char] = &[',', '.', '!', ';', '-'];

/// What may stand before the anchor where text that is new would hardly start.
const LEADS: &[char] =
    &['.', '\u{2026}', '"', '\'', '`', '*', '<', '[', '>', '\u{ab}', '\u{27e6}', '\u{27ea}', '\u{a7}', WHITE];
