//! What targets are asked: the suites of the continuity benchmark, or one of the user's own.

use crate::bench::continuity::suite::{self, Conversation, Message, Role};
use crate::rig::seed::Dice;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Questions whose right answers are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suite {
    /// Its name.
    pub name: String,
    /// The questions.
    pub cases: Vec<Case>,
}

/// One question, with all that was said before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Case {
    /// Its name, unique in a suite.
    pub id: String,
    /// The conversation; the last message is the user's.
    pub messages: Vec<Message>,
    /// An answer that holds one of these is right.
    pub expect: Vec<String>,
    /// What kind of question it is.
    pub kind: String,
}

/// A case as it stands in a file of the simple form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    id: String,
    messages: Vec<Message>,
    expect: Expect,
    #[serde(default)]
    kind: String,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "`expect` must be a string or an array of strings")]
enum Expect {
    One(String),
    Any(Vec<String>),
}

// === impl Suite ===

impl Suite {
    /// The suite of the continuity benchmark: facts are asked for directly.
    pub fn continuity() -> Self {
        Self::of(format!("continuity-v{}", suite::VERSION), suite::committed())
    }

    /// The same with probes that refer back without naming what they refer to.
    pub fn oblique() -> Self {
        Self::of(format!("continuity-oblique-v{}", suite::VERSION), suite::oblique())
    }

    /// Reads a file: conversations in the form of the continuity benchmark, or an array of `id`, `messages` and `expect`.
    ///
    /// # Errors
    /// Words that name the entry, what is wrong with it and what would be right.
    pub fn read(name: &str, text: &str) -> Result<Self, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("the file has {} bytes; at most {MAX_BYTES} are read: split it", text.len()));
        }
        let list = match serde_json::from_str(text).map_err(|error| format!("no JSON: {error}"))? {
            Value::Array(list) if list.iter().any(|entry| entry.get("turns").is_none()) => list,
            _ => return Ok(Self::of(name.to_owned(), suite::read(text)?)),
        };
        if list.len() > MAX_CASES {
            return Err(format!("{} entries; at most {MAX_CASES} are read: split the file", list.len()));
        }
        let (mut names, mut cases) = (BTreeSet::new(), Vec::new());
        for (index, entry) in list.into_iter().enumerate() {
            let id = entry.get("id").and_then(Value::as_str).unwrap_or("without an `id`").to_owned();
            let place = format!("entry {index} ({id})");
            let written: Written =
                serde_json::from_value(entry).map_err(|error| format!("{place}: {error}; {FORM}"))?;
            let case = Case::of(written).map_err(|why| format!("{place}: {why}"))?;
            if !names.insert(id) {
                return Err(format!("{place}: another one has this id; each needs its own"));
            }
            cases.push(case);
        }
        Ok(Self { name: name.to_owned(), cases })
    }

    /// `count` of its cases, drawn by `seed`, as many of each kind as there can be; in their order.
    pub fn sample(mut self, count: usize, seed: u64) -> Self {
        let mut kinds: Vec<(&str, Vec<usize>)> = Vec::new();
        for (index, case) in self.cases.iter().enumerate() {
            match kinds.iter_mut().find(|(kind, _)| *kind == case.kind) {
                Some((_, cases)) => cases.push(index),
                None => kinds.push((&case.kind, vec![index])),
            }
        }
        let mut dice = Dice::labelled(seed, LABEL);
        let mut chosen = BTreeSet::new();
        while chosen.len() < count.min(self.cases.len()) {
            for (_, left) in kinds.iter_mut().filter(|(_, left)| !left.is_empty()) {
                let case = left.swap_remove(dice.below(left.len()));
                if chosen.len() < count {
                    chosen.insert(case);
                }
            }
        }
        let mut index = 0..;
        self.cases.retain(|_| index.next().is_some_and(|index| chosen.contains(&index)));
        self
    }

    /// A digest of everything that is asked and expected.
    pub fn hash(&self) -> String {
        let text = serde_json::to_vec(&self.cases).unwrap_or_default();
        let digest: [u8; 32] = Sha256::digest(text).into();
        digest[..8].iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }

    /// About the tokens of all its prompts together.
    pub fn tokens(&self) -> u64 {
        let bytes = |case: &Case| case.messages.iter().map(|m| m.content.len() as u64 / 4 + 4).sum::<u64>();
        self.cases.iter().map(bytes).sum()
    }

    fn of(name: String, conversations: Vec<Conversation>) -> Self {
        let case =
            |c: Conversation| Case { id: c.id, messages: c.turns, expect: vec![c.expected_fact], kind: c.fact_type };
        Self { name, cases: conversations.into_iter().map(case).collect() }
    }
}

// === impl Case ===

impl Case {
    fn of(written: Written) -> Result<Self, String> {
        let Written { id, messages, expect, kind } = written;
        let expect = match expect {
            Expect::One(one) => vec![one],
            Expect::Any(any) => any,
        };
        if id.is_empty() {
            return Err("`id` is empty; each entry needs a name".to_owned());
        }
        if expect.is_empty() || expect.iter().any(|fact| fact.trim().is_empty()) {
            return Err("`expect` is empty; it is what the answer is searched for".to_owned());
        }
        if messages.len() > MAX_MESSAGES {
            return Err(format!("{} messages; at most {MAX_MESSAGES} are sent", messages.len()));
        }
        if messages.last().is_none_or(|last| last.role != Role::User) {
            return Err("the last of `messages` must be the user's: it is what is answered".to_owned());
        }
        if let Some(empty) = messages.iter().position(|message| message.content.trim().is_empty()) {
            return Err(format!("`messages[{empty}]` is empty; providers refuse such"));
        }
        Ok(Self { id, messages, expect, kind })
    }

    /// The question itself.
    pub fn probe(&self) -> &str {
        self.messages.last().map(|message| message.content.as_str()).unwrap_or_default()
    }
}

// === consts ===

/// Bytes of a file.
const MAX_BYTES: usize = 32 << 20;

/// Entries of a file.
const MAX_CASES: usize = 10_000;

/// Messages of an entry.
const MAX_MESSAGES: usize = 200;

/// What an entry should be.
const FORM: &str = "expected {\"id\": …, \"messages\": [{\"role\": …, \"content\": …}], \"expect\": …}";

/// The stream of random numbers that samples are drawn from.
const LABEL: u64 = 0xe7a1;

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_sample_has_as_many_of_each_kind_and_is_the_same_each_time() {
        let whole = Suite::continuity();
        assert_eq!(whole.cases.len(), 150);
        for (count, least, most) in [(30, 6, 6), (7, 1, 2), (150, 30, 30), (1000, 30, 30)] {
            let sample = whole.clone().sample(count, 42);
            let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
            for case in &sample.cases {
                *kinds.entry(&case.kind).or_default() += 1;
            }
            assert_eq!((sample.cases.len(), kinds.len()), (count.min(150), 5));
            assert!(kinds.values().all(|n| (least..=most).contains(n)), "{kinds:?}");
            assert_eq!(sample, whole.clone().sample(count, 42));
        }
        let (one, other) = (whole.clone().sample(30, 42), whole.clone().sample(30, 43));
        assert!(one.hash() != other.hash() && one.hash() != whole.hash() && one.hash().len() == 16);
        assert_eq!(Suite::oblique().cases[0].expect, whole.cases[0].expect);
    }

    #[test]
    fn the_simple_form_is_read() {
        let text = r#"[
            {"id": "one", "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "6 times 7?"}],
             "expect": ["42", "forty-two"], "kind": "sums"},
            {"id": "two", "messages": [{"role": "user", "content": "Capital of Peru?"}], "expect": "Lima"}
        ]"#;
        let suite = Suite::read("own.json", text).unwrap();
        let [one, two] = suite.cases.as_slice() else { unreachable!() };
        assert_eq!(
            (one.expect.as_slice(), one.probe(), one.kind.as_str()),
            (&["42".to_owned(), "forty-two".to_owned()][..], "6 times 7?", "sums")
        );
        assert_eq!((two.expect.as_slice(), two.messages.len()), (&["Lima".to_owned()][..], 1));
        let conversations = serde_json::to_string(&suite::committed()).unwrap();
        assert_eq!(Suite::read("c.json", &conversations).unwrap().cases, Suite::continuity().cases);
    }

    #[test]
    fn what_is_wrong_with_a_file_is_named_with_its_entry() {
        let entry = |messages: &str, expect: &str| {
            format!("[{{\"id\": \"x\", \"messages\": {messages}, \"expect\": {expect}}}]")
        };
        let good = r#"[{"role": "user", "content": "q"}]"#;
        let twice = format!("[{0}, {0}]", entry(good, "\"a\"").trim_matches(['[', ']']));
        for (text, words) in [
            (entry("[]", "\"a\""), "entry 0 (x): the last of `messages` must be the user's"),
            (entry(r#"[{"role": "assistant", "content": "q"}]"#, "\"a\""), "the last of `messages` must be the user's"),
            (entry(r#"[{"role": "robot", "content": "q"}]"#, "\"a\""), "entry 0 (x): unknown variant `robot`"),
            (entry(r#"[{"role": "user", "content": " "}]"#, "\"a\""), "`messages[0]` is empty"),
            (entry(good, "[]"), "`expect` is empty"),
            (entry(good, "\" \""), "`expect` is empty"),
            (entry(good, "7"), "a string or an array of strings"),
            (entry(good, "\"a\"").replace("expect", "expects"), "unknown field `expects`"),
            (entry(good, "\"a\"").replace("\"id\": \"x\", ", ""), "entry 0 (without an `id`): missing field `id`"),
            (twice, "entry 1 (x): another one has this id"),
            ("[]".to_owned(), "there are no conversations"),
            ("{}".to_owned(), "`conversations`"),
            ("[1]".to_owned(), "entry 0"),
            ("[".to_owned(), "no JSON"),
        ] {
            let why = Suite::read("own.json", &text).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
