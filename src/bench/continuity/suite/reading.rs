//! Conversations out of a file.

use super::{Conversation, Role};
use serde_json::Value;
use std::collections::BTreeSet;

/// Reads conversations: an array of them, or an object with such an array as `conversations`.
///
/// # Errors
/// Words that name the entry, what is wrong with it and what would be right.
pub fn read(text: &str) -> Result<Vec<Conversation>, String> {
    if text.len() > MAX_BYTES {
        return Err(format!("the file has {} bytes; at most {MAX_BYTES} are read: split it", text.len()));
    }
    let whole: Value = serde_json::from_str(text).map_err(|error| format!("no JSON: {error}"))?;
    let list = match whole {
        Value::Array(list) => list,
        Value::Object(mut fields) => match fields.remove("conversations") {
            Some(Value::Array(list)) => list,
            Some(_) => return Err("`conversations` is no array".to_owned()),
            None => return Err(format!("there is no `conversations` in the object; {EXPECTED}")),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return Err(EXPECTED.to_owned()),
    };
    if list.is_empty() {
        return Err("there are no conversations in it".to_owned());
    }
    if list.len() > MAX_CONVERSATIONS {
        return Err(format!("{} conversations; at most {MAX_CONVERSATIONS} are read: split the file", list.len()));
    }
    let mut names = BTreeSet::new();
    let mut suite = Vec::new();
    for (index, entry) in list.into_iter().enumerate() {
        let name = entry.get("id").and_then(Value::as_str).unwrap_or("without an `id`").to_owned();
        let place = format!("conversation {index} ({name})");
        let conversation: Conversation = serde_json::from_value(entry).map_err(|error| format!("{place}: {error}"))?;
        sound(&conversation).map_err(|why| format!("{place}: {why}"))?;
        if !names.insert(conversation.id.clone()) {
            return Err(format!("{place}: another one has this id; each needs its own"));
        }
        suite.push(conversation);
    }
    Ok(suite)
}

// === helpers ===

/// Whether a conversation can be played and judged.
fn sound(conversation: &Conversation) -> Result<(), String> {
    let Conversation { id, turns, fact_turn_index: fact, probe_turn_index: probe, expected_fact, .. } = conversation;
    let (fact, probe) = (*fact, *probe);
    if id.is_empty() {
        return Err("`id` is empty; each conversation needs a name".to_owned());
    }
    if turns.len() > MAX_TURNS {
        return Err(format!("{} turns; at most {MAX_TURNS} are played", turns.len()));
    }
    let last = turns.len().saturating_sub(1);
    for (name, index) in [("fact_turn_index", fact), ("probe_turn_index", probe)] {
        let Some(turn) = turns.get(index) else {
            return Err(format!("`{name}` is {index}, but `turns` has {}; the first is 0", turns.len()));
        };
        if turn.role == Role::Assistant {
            return Err(format!("`{name}` is {index}, which is the assistant's turn; it must be one of the user's"));
        }
    }
    if turns[probe].role != Role::User {
        return Err(format!("`probe_turn_index` is {probe}, which is no turn of the user's"));
    }
    if probe <= fact {
        return Err(format!("the probe (turn {probe}) must come after the fact (turn {fact})"));
    }
    if probe != last {
        return Err(format!("the probe (turn {probe}) must be the last turn ({last}); remove what follows it"));
    }
    if expected_fact.trim().is_empty() {
        return Err("`expected_fact` is empty; it is what the answer is searched for".to_owned());
    }
    let spoken = turns.iter().position(|turn| turn.role != Role::System).unwrap_or_default();
    for (index, pair) in turns.windows(2).enumerate() {
        if pair[1].role == Role::System && index + 1 >= spoken {
            return Err(format!("turn {} is the system's; instructions come before anything else", index + 1));
        }
        if pair[0].role == pair[1].role && pair[0].role != Role::System {
            return Err(format!("turns {index} and {} have the same role; user and assistant alternate", index + 1));
        }
    }
    if turns.iter().any(|turn| turn.content.len() > MAX_MESSAGE) {
        return Err(format!("a message is longer than {MAX_MESSAGE} bytes"));
    }
    Ok(())
}

// === consts ===

/// Bytes of a file.
const MAX_BYTES: usize = 32 << 20;

/// Conversations of a file.
const MAX_CONVERSATIONS: usize = 10_000;

/// Messages of a conversation.
const MAX_TURNS: usize = 200;

/// Bytes of a message.
const MAX_MESSAGE: usize = 1 << 20;

/// What a file should hold.
const EXPECTED: &str = "expected an array of conversations, or an object with one as `conversations`";
