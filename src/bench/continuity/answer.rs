//! What the built-in providers say in one turn: the same slots, each provider in words of its own.
//!
//! Every slot has one word of each provider, and in it a code that no other slot of any answer shares. So whoever holds
//! the delivered text knows of each word which slot it fills, whose it is, and whether it belongs there at all.

use super::suite::Conversation;
use crate::rig::seed::Dice;

/// The built-in providers, first choice first.
pub const PROVIDERS: [&str; 4] = ["amber", "birch", "cedar", "dune"];

/// An answer in the words of all providers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The pieces, in order, each with the white space before it.
    pub slots: Vec<Slot>,
}

/// One piece of it, in each way in which it may be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// What each provider says.
    pub says: [String; 4],
    /// What each says instead where it was not told the fact; only of the piece that tells it.
    pub otherwise: Option<[String; 4]>,
}

/// How far a text follows an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    /// The bytes that do.
    pub bytes: usize,
    /// The slots that are told whole.
    pub slots: usize,
    /// What is left of the slot that the text breaks off in; empty between two slots.
    pub rest: String,
    /// Where each slot begins in the text, and who says it.
    pub voices: Vec<(usize, usize)>,
}

// === impl Answer ===

impl Answer {
    /// The answer to message `turn` of `conversation`.
    pub fn of(conversation: &Conversation, turn: usize) -> Self {
        let mut dice = Dice::new(hash(&conversation.id, turn));
        let mut order: Vec<usize> = (0..CONCEPTS.len()).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, dice.below(at + 1));
        }
        let count = dice.between(SLOTS.0, SLOTS.1).min(order.len());
        let mut sentence = 0;
        let mut slots: Vec<Slot> = order[..count]
            .iter()
            .enumerate()
            .map(|(at, concept)| {
                let code = code(dice.below(36 * 36 * 36));
                sentence += 1;
                let ends = at + 1 == count || (6 < sentence && dice.once_in(4));
                let stop = if ends { "." } else { "" };
                sentence = if ends { 0 } else { sentence };
                let space = if at == 0 { "" } else { " " };
                Slot {
                    says: std::array::from_fn(|p| format!("{space}{}-{code}{stop}", CONCEPTS[*concept][p])),
                    otherwise: None,
                }
            })
            .collect();
        if turn == conversation.probe_turn_index {
            let fact = &conversation.expected_fact;
            slots.push(Slot {
                says: KNOWN.map(|(before, after)| format!(" {before}{fact}{after}")),
                otherwise: Some(UNKNOWN.map(|words| format!(" {words}"))),
            });
        }
        Self { slots }
    }

    /// What `provider` says from slot `from` on, word by word; `knows`: it was told the fact.
    pub fn told_by(&self, provider: usize, from: usize, knows: bool) -> Vec<String> {
        let slots = self.slots.iter().skip(from);
        slots.flat_map(|slot| crate::rig::text::words(slot.said_by(provider, knows))).collect()
    }

    /// How far `text` follows the answer, each slot in anyone's words.
    pub fn walk(&self, text: &str) -> Walk {
        let mut walk = Walk::default();
        for slot in &self.slots {
            let left = &text[walk.bytes..];
            let whole = slot.ways().filter(|(_, way)| left.starts_with(way)).max_by_key(|(_, way)| way.len());
            if let Some((voice, way)) = whole {
                walk.voices.push((walk.bytes, voice));
                walk.bytes += way.len();
                walk.slots += 1;
                continue;
            }
            if let Some((voice, way)) = slot.ways().find(|(_, way)| !left.is_empty() && way.starts_with(left)) {
                walk.voices.push((walk.bytes, voice));
                walk.rest = way[left.len()..].to_owned();
                walk.bytes = text.len();
            }
            break;
        }
        walk
    }
}

// === impl Slot ===

impl Slot {
    /// What `provider` says here.
    pub fn said_by(&self, provider: usize, knows: bool) -> &str {
        match &self.otherwise {
            Some(otherwise) if !knows => &otherwise[provider],
            _ => &self.says[provider],
        }
    }

    /// Everything that may be said here, and by whom.
    pub fn ways(&self) -> impl Iterator<Item = (usize, &str)> {
        let otherwise = self.otherwise.iter().flatten();
        (0..).zip(&self.says).chain((0..).zip(otherwise)).map(|(voice, way)| (voice, way.as_str()))
    }
}

// === helpers ===

/// FNV-1a, which is the same on every machine.
fn hash(id: &str, turn: usize) -> u64 {
    let bytes = id.bytes().chain(turn.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Three digits or letters.
fn code(number: usize) -> String {
    const SIGNS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    [number / 1296 % 36, number / 36 % 36, number % 36].map(|at| char::from(SIGNS[at])).iter().collect()
}

// === vocabulary ===

/// An answer has so many slots, from and to.
const SLOTS: (usize, usize) = (40, 56);

/// What stands around the fact.
const KNOWN: [(&str, &str); 4] =
    [("You told me: ", "."), ("As you said, it is ", "."), ("I remember ", "."), ("At the start it was ", ".")];

/// What is said where it is not known.
const UNKNOWN: [&str; 4] = [
    "I do not know what you told me.",
    "Nobody has told me that.",
    "You have not mentioned it to me.",
    "I cannot say, for I never heard it.",
];

/// What can be talked about, in the words of each provider; no word stands twice.
const CONCEPTS: [[&str; 4]; 56] = [
    ["river", "stream", "brook", "creek"],
    ["road", "street", "lane", "avenue"],
    ["house", "home", "dwelling", "lodge"],
    ["forest", "wood", "grove", "thicket"],
    ["hill", "mound", "rise", "knoll"],
    ["sea", "ocean", "main", "deep"],
    ["boat", "ship", "vessel", "craft"],
    ["stone", "rock", "boulder", "pebble"],
    ["path", "trail", "track", "walk"],
    ["wind", "breeze", "gust", "draught"],
    ["rain", "shower", "drizzle", "downpour"],
    ["night", "dusk", "dark", "evening"],
    ["dawn", "sunrise", "daybreak", "morning"],
    ["fire", "flame", "blaze", "glow"],
    ["lamp", "lantern", "torch", "candle"],
    ["bread", "loaf", "roll", "bun"],
    ["cup", "mug", "beaker", "goblet"],
    ["coat", "cloak", "jacket", "mantle"],
    ["song", "tune", "melody", "air"],
    ["story", "tale", "account", "legend"],
    ["letter", "note", "message", "missive"],
    ["friend", "mate", "companion", "ally"],
    ["child", "kid", "youngster", "infant"],
    ["teacher", "tutor", "mentor", "coach"],
    ["doctor", "physician", "medic", "healer"],
    ["market", "bazaar", "fair", "mart"],
    ["garden", "yard", "orchard", "plot"],
    ["bridge", "span", "viaduct", "crossing"],
    ["tower", "spire", "turret", "steeple"],
    ["gate", "door", "portal", "entrance"],
    ["wall", "fence", "barrier", "hedge"],
    ["window", "pane", "casement", "skylight"],
    ["table", "desk", "bench", "counter"],
    ["chair", "stool", "seat", "settle"],
    ["clock", "watch", "timer", "dial"],
    ["map", "chart", "plan", "atlas"],
    ["book", "volume", "tome", "edition"],
    ["picture", "painting", "drawing", "sketch"],
    ["horse", "mare", "pony", "steed"],
    ["dog", "hound", "pup", "terrier"],
    ["bird", "sparrow", "finch", "wren"],
    ["flower", "blossom", "bloom", "petal"],
    ["leaf", "frond", "blade", "needle"],
    ["snow", "sleet", "frost", "ice"],
    ["cloud", "mist", "fog", "haze"],
    ["field", "meadow", "pasture", "lea"],
    ["village", "hamlet", "town", "settlement"],
    ["king", "ruler", "monarch", "sovereign"],
    ["soldier", "guard", "trooper", "sentry"],
    ["sailor", "seaman", "mariner", "deckhand"],
    ["coin", "penny", "token", "medal"],
    ["rope", "cord", "line", "cable"],
    ["wheel", "disc", "hoop", "ring"],
    ["basket", "hamper", "crate", "pannier"],
    ["blanket", "quilt", "cover", "rug"],
    ["mirror", "glass", "reflector", "lens"],
];

#[cfg(test)]
pub(super) mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;
    use crate::bench::continuity::suite::{Message, Role};
    use std::collections::HashSet;

    pub(in crate::bench::continuity) fn conversation(id: &str) -> Conversation {
        let turn = |role, content: &str| Message { role, content: content.to_owned() };
        Conversation {
            id: id.to_owned(),
            turns: vec![
                turn(Role::User, "My boat is called Zephyrine. Please keep it in mind."),
                turn(Role::Assistant, "I will."),
                turn(Role::User, "How do tides work?"),
                turn(Role::Assistant, "The moon pulls."),
                turn(Role::User, "What is my boat called?"),
            ],
            fact_turn_index: 0,
            probe_turn_index: 4,
            expected_fact: "Zephyrine".to_owned(),
            fact_type: "proper_name".to_owned(),
        }
    }

    #[test]
    fn no_word_stands_twice_in_the_vocabulary() {
        let all: HashSet<&str> = CONCEPTS.iter().flatten().copied().collect();
        assert_eq!(all.len(), CONCEPTS.len() * 4);
    }

    #[test]
    fn an_answer_is_the_same_each_time_and_another_in_each_turn_and_conversation() {
        let one = conversation("c1");
        assert_eq!(Answer::of(&one, 0), Answer::of(&one, 0));
        let words = |answer: &Answer| -> HashSet<String> {
            answer.slots.iter().flat_map(|s| s.says.clone()).map(|w| w.trim().to_owned()).collect()
        };
        let (first, second) = (words(&Answer::of(&one, 0)), words(&Answer::of(&one, 2)));
        let other = words(&Answer::of(&conversation("c2"), 0));
        assert!(first.is_disjoint(&second) && first.is_disjoint(&other));
        assert!((40..=57).contains(&(first.len() / 4)), "{}", first.len());
    }

    #[test]
    fn a_walk_knows_every_voice_and_where_a_word_is_broken() {
        let answer = Answer::of(&conversation("c1"), 4);
        let count = answer.slots.len();
        let mut text = answer.told_by(0, 0, true)[..10].concat();
        text.push_str(&answer.told_by(2, 10, true).concat());
        let walk = answer.walk(&text);
        assert_eq!((walk.bytes, walk.slots, walk.rest.as_str()), (text.len(), count, ""));
        assert!(walk.voices.iter().enumerate().all(|(at, (_, voice))| *voice == if at < 10 { 0 } else { 2 }));
        assert!(text.ends_with(" I remember Zephyrine."));
        for end in 1..text.len() {
            let walk = answer.walk(&text[..end]);
            let more = answer.told_by(1, walk.slots + usize::from(!walk.rest.is_empty()), true).concat();
            let whole = format!("{}{}{more}", &text[..end], walk.rest);
            assert_eq!(answer.walk(&whole).slots, count, "{whole}");
        }
        let foreign = Answer::of(&conversation("c2"), 4).told_by(0, 0, true).concat();
        assert_eq!(answer.walk(&foreign).slots, 0);
        assert_eq!(answer.told_by(3, count - 1, false).concat(), " I cannot say, for I never heard it.");
        assert!(answer.told_by(3, count - 1, true).last().unwrap().ends_with("Zephyrine."));
    }
}
