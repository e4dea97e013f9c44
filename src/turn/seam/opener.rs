//! What a model says before it goes on although it was asked not to, and what it says when it will not go on.
//!
//! A preamble is recognised word for word, from lists: nothing is held back for it unless the text so far is the
//! start of a listed one. A bare "Sure," may be the answer itself, so it counts only if the anchor follows; "continuing
//! from where I left off:" is never part of an answer.

use super::fold::{Symbol, WHITE};
use super::overlap::{Match, Overlap, SURE, Tail};
use smallvec::SmallVec;

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
    /// The refusal that was said.
    refusal: Option<&'static str>,
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
}

/// The entries that the text still matches.
#[derive(Debug, Default)]
struct Phrases {
    alive: SmallVec<[(Kind, &'static str); 4]>,
    at: usize,
    complete: Option<Kind>,
}

// === impl Opener ===

impl Opener {
    /// At the start of a continuation.
    pub(super) fn new() -> Self {
        let phrases = Phrases::of(&[
            (Kind::Acknowledgement, ACKNOWLEDGEMENTS),
            (Kind::Announcement, ANNOUNCEMENTS),
            (Kind::Note, NOTES),
            (Kind::Refusal, REFUSALS),
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
        listed || self.places.iter().any(Overlap::is_alive)
    }

    /// The whole anchor came after the preamble.
    pub(super) fn whole(&self) -> Option<Match> {
        self.places.iter().find_map(Overlap::whole).filter(|found| found.weight >= SURE)
    }

    /// The longest end of the delivered text that came after the preamble.
    pub(super) fn longest(&self) -> Option<Match> {
        self.places.iter().filter_map(|place| place.longest(SURE)).max_by_key(|found| found.weight)
    }

    /// It announced a continuation.
    pub(super) fn is_announced(&self) -> bool {
        self.announced
    }

    /// The refusal that it is; told once.
    pub(super) fn take_refusal(&mut self) -> Option<&'static str> {
        self.refusal.take()
    }

    fn announce(&mut self) {
        self.stage = Stage::Announced;
        self.announced = !self.is_lower;
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
                self.phrases =
                    Phrases::of(&[(Kind::Announcement, ANNOUNCEMENTS), (Kind::Note, NOTES), (Kind::Refusal, REFUSALS)]);
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
                if let Some(refusal) = self.phrases.push(symbol.ch) {
                    self.refusal = Some(refusal);
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
        let alive = lists.iter().flat_map(|&(kind, list)| list.iter().map(move |&phrase| (kind, phrase))).collect();
        Self { alive, at: 0, complete: None }
    }

    /// Takes a character; gives the refusal that it completes.
    fn push(&mut self, ch: char) -> Option<&'static str> {
        // The phrases are ASCII, so a byte is a character.
        let byte = u8::try_from(ch).unwrap_or(u8::MAX).to_ascii_lowercase();
        let at = self.at;
        self.at += 1;
        self.complete = None;
        self.alive.retain(|(_, phrase)| phrase.as_bytes().get(at) == Some(&byte));
        let done = self.alive.iter().find(|(_, phrase)| phrase.len() == at + 1).copied();
        self.complete = done.map(|(kind, _)| kind);
        done.filter(|(kind, _)| *kind == Kind::Refusal).map(|(_, phrase)| phrase)
    }

    fn is_alive(&self) -> bool {
        self.complete.is_some() || self.alive.iter().any(|(_, phrase)| phrase.len() > self.at)
    }
}

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

const ACKNOWLEDGEMENTS: &[&str] = &[
    "sure",
    "sure thing",
    "of course",
    "certainly",
    "absolutely",
    "okay",
    "ok",
    "alright",
    "got it",
    "understood",
    "no problem",
    "no worries",
    "apologies",
    "my apologies",
    "sorry about that",
    "apologies for the interruption",
    "sorry for the interruption",
    "thanks for letting me know",
    "thank you for letting me know",
];

const ANNOUNCEMENTS: &[&str] = &[
    "continuing",
    "continued",
    "continuation",
    "picking up",
    "carrying on",
    "resuming",
    "let me continue",
    "let me pick up",
    "let me carry on",
    "let's continue",
    "i'll continue",
    "i'll pick up",
    "i'll carry on",
    "i will continue",
    "i will pick up",
    "here is the continuation",
    "here's the continuation",
    "here is the rest",
    "here's the rest",
];

const NOTES: &[&str] = &["(continued)", "(continuing)", "[continued]", "[continuing]", "(cont.)", "(cont'd)"];

const WHENCE: &[&str] = &[
    "from where i left off",
    "from where we left off",
    "from where it left off",
    "from where it was cut off",
    "from where it stopped",
    "from there",
    "from that point",
    "from the last fragment",
    "from exactly where i left off",
    "where i left off",
    "where we left off",
    "right where i left off",
    "right where we left off",
    "exactly where i left off",
    "exactly where we left off",
    "right from where i left off",
    "exactly from where i left off",
    "on from where i left off",
    "my reply",
    "my response",
    "my previous reply",
    "my previous response",
    "the reply",
    "the response",
    "with that same reply",
    "with the same reply",
    "of my reply",
    "of my response",
    "of the reply",
    "of the response",
    "of the answer",
    "of it",
];

/// Nobody answers anything with these: each speaks about the reply itself.
const REFUSALS: &[&str] = &[
    "i'm sorry, but i can't continue",
    "i'm sorry, but i cannot continue",
    "i'm sorry, but i'm unable to continue",
    "i'm sorry, but i am unable to continue",
    "i'm sorry, but i'm not able to continue",
    "i'm sorry, i can't continue",
    "i'm sorry, i cannot continue",
    "i am sorry, but i can't continue",
    "i am sorry, but i cannot continue",
    "sorry, but i can't continue",
    "sorry, i can't continue",
    "i apologize, but i can't continue",
    "i apologize, but i cannot continue",
    "i can't continue that reply",
    "i can't continue this reply",
    "i can't continue that response",
    "i can't continue this response",
    "i cannot continue that reply",
    "i cannot continue this reply",
    "i cannot continue that response",
    "i cannot continue this response",
    "i'm not able to continue that",
    "i'm not able to continue this",
    "i'm unable to continue that",
    "i'm unable to continue this",
    "i'm sorry, but i can't assist with",
    "i'm sorry, but i cannot assist with",
    "i'm sorry, but i can't help with",
    "i'm sorry, i can't assist with",
    "i'm sorry, i can't help with",
    "i don't have a previous",
    "i don't have any previous",
    "i don't have access to the previous",
    "i don't have access to my previous",
    "i don't see a previous",
    "i don't see any previous",
    "i'm not sure what you'd like me to continue",
    "could you clarify what you'd like me to continue",
    "what would you like me to continue",
    "it looks like your message was cut off",
    "it looks like your message got cut off",
    "it seems your message was cut off",
    "it seems like your message was cut off",
    "it seems like your message got cut off",
];
