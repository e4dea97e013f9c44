//! Conversations that tell a fact, talk of something else, and ask for the fact.
//!
//! They are generated from a seed, and what the program measures with is written down: a number of today and one of next
//! year are of the same conversations. A fact stands in the first message of its own conversation and nowhere else in the
//! suite, so that to find it in an answer is to know where it came from.

mod facts;
mod reading;

pub(crate) use facts::MONTHS;
pub use reading::read;

use crate::rig::seed::Dice;
use facts::{Form, Kind};
use serde::{Deserialize, Serialize};

/// One conversation, in the form of the public benchmark's data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// Its name, unique in a suite.
    pub id: String,
    /// User and assistant in turn; the first and the last are the user's.
    pub turns: Vec<Message>,
    /// The index in `turns` of the message that tells the fact.
    pub fact_turn_index: usize,
    /// The index in `turns` of the message that asks for it.
    pub probe_turn_index: usize,
    /// What an answer must hold to have kept the fact.
    pub expected_fact: String,
    /// What kind of fact it is: `preference`, `invented_term`, `proper_name`, `number`, `date`, or another's own word.
    pub fact_type: String,
}

/// One message of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub content: String,
}

/// Who says a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The one who asks.
    User,
    /// The one who answers. While a conversation is played, what is there is replaced by what was heard.
    Assistant,
    /// Instructions, before anything else.
    System,
}

/// A suite as it is written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Written<'a> {
    /// The version of the generator.
    pub version: u32,
    /// What it was generated from.
    pub seed: u64,
    /// The conversations.
    pub conversations: &'a [Conversation],
}

/// The suite that the program carries: facts are asked for directly.
pub fn committed() -> Vec<Conversation> {
    read(DIRECT).unwrap_or_default()
}

/// The same conversations with probes that refer back without naming what they refer to.
pub fn oblique() -> Vec<Conversation> {
    read(OBLIQUE).unwrap_or_default()
}

/// The suite of `seed`: 150 conversations, thirty of each kind of fact, 44 of seven, 58 of nine and 48 of eleven messages.
pub fn generate(seed: u64) -> Vec<Conversation> {
    drawn(seed, "direct", |form| form.ask)
}

/// The suite of `seed` with oblique probes; its facts and fillers are those of [`generate`].
pub fn generate_oblique(seed: u64) -> Vec<Conversation> {
    drawn(seed, "oblique", |form| form.hint)
}

// === helpers ===

fn drawn(seed: u64, name: &str, probe: fn(&Form) -> &'static str) -> Vec<Conversation> {
    let mut dice = Dice::labelled(seed, LABEL);
    let fillers: Vec<(&str, &str)> = FILLERS.split("\n\n").filter_map(|pair| pair.trim().split_once('\n')).collect();
    let mut lengths: Vec<usize> = LENGTHS.iter().flat_map(|&(length, count)| vec![length; count]).collect();
    shuffle(&mut lengths, &mut dice);
    let mut told = Vec::new();
    let mut suite = Vec::new();
    for (index, length) in lengths.into_iter().enumerate() {
        let kind = Kind::ALL[index % Kind::ALL.len()];
        let forms = kind.forms();
        let form = &forms[index / Kind::ALL.len() % forms.len()];
        let fact = kind.fact(&mut dice, &told);
        let mut turns = vec![user(&form.tell.replace("{}", &fact))];
        turns.push(assistant(dice.pick(&NODS).copied().unwrap_or_default()));
        let mut left: Vec<usize> = (0..fillers.len()).collect();
        while turns.len() + 1 < length {
            let (question, answer) = fillers[left.swap_remove(dice.below(left.len()))];
            turns.extend([user(question), assistant(answer)]);
        }
        turns.push(user(probe(form)));
        suite.push(Conversation {
            id: format!("{name}-{:03}", index + 1),
            fact_turn_index: 0,
            probe_turn_index: turns.len() - 1,
            turns,
            expected_fact: fact.clone(),
            fact_type: kind.name().to_owned(),
        });
        told.push(fact);
    }
    suite
}

fn shuffle<T>(items: &mut [T], dice: &mut Dice) {
    for end in (1..items.len()).rev() {
        items.swap(end, dice.below(end + 1));
    }
}

fn user(content: &str) -> Message {
    Message { role: Role::User, content: content.to_owned() }
}

fn assistant(content: &str) -> Message {
    Message { role: Role::Assistant, content: content.to_owned() }
}

// === consts ===

/// The version of the generator and of its data: to change a conversation is to change this.
pub const VERSION: u32 = 1;

/// The seed of the suite that the program carries.
pub const SEED: u64 = 42;

/// How many conversations have how many messages.
const LENGTHS: [(usize, usize); 3] = [(7, 44), (9, 58), (11, 48)];

/// The stream of random numbers that is the suite's.
const LABEL: u64 = 0x5017e;

const DIRECT: &str = include_str!("../../../benches/data/continuity-v1.json");
const OBLIQUE: &str = include_str!("../../../benches/data/continuity-oblique-v1.json");
const FILLERS: &str = include_str!("../../../benches/data/continuity-fillers.txt");

/// What is answered to a fact.
const NODS: [&str; 6] = [
    "Thank you, I will keep that in mind.",
    "Good to know. What can I do for you?",
    "Noted. Where shall we begin?",
    "All right, I will remember it.",
    "Thanks for telling me. Ask away.",
    "Understood, I have made a note of that.",
];

#[cfg(test)]
mod tests;
