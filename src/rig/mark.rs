//! How a conversation of a benchmark is known, whoever asks and by whatever way: by a mark in its messages.
//!
//! A foreign gateway may drop headers, change fields and shorten the history; what a user said it passes on. So the mark
//! stands in every message of the user's: `[conversation/turn/run]`.

use super::reading::{content, role};
use serde_json::Value;
use std::fmt;

/// Which answer of which conversation is asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark {
    /// The conversation.
    pub conversation: String,
    /// The index in it of the message that is to be answered.
    pub turn: usize,
    /// Which playing of it.
    pub run: u32,
}

// === impl Mark ===

impl Mark {
    /// The last mark in the user's messages of a request's body; `None` if they have none.
    pub fn of(body: &Value) -> Option<Self> {
        let messages = body.get("messages")?.as_array()?;
        messages.iter().rev().filter(|m| role(m) == "user").find_map(|m| Self::last_in(&content(m)))
    }

    /// Whether `name` can stand in a mark.
    pub fn can_hold(name: &str) -> bool {
        !name.is_empty() && !name.contains(['[', ']', '\n'])
    }

    fn last_in(text: &str) -> Option<Self> {
        text.rmatch_indices('[').find_map(|(at, _)| {
            let (inside, _) = text[at + 1..].split_once(']')?;
            let mut parts = inside.rsplitn(3, '/');
            let (run, turn, conversation) = (parts.next()?, parts.next()?, parts.next()?);
            Some(Self { conversation: conversation.to_owned(), turn: turn.parse().ok()?, run: run.parse().ok()? })
        })
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}/{}/{}]", self.conversation, self.turn, self.run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_last_mark_of_the_user_counts() {
        let mark = |turn| Mark { conversation: "c/017".to_owned(), turn, run: 3 };
        let body = json!({"messages": [
            {"role": "user", "content": format!("A fact. {}", mark(0))},
            {"role": "assistant", "content": "[other/9/9]"},
            {"role": "user", "content": [{"type": "text", "text": format!("A [question] of mine {} [1]", mark(2))}]},
            {"role": "assistant", "content": "Half an ans"},
            {"role": "user", "content": "Go on after [Half an ans], please."},
        ]});
        assert_eq!(Mark::of(&body), Some(mark(2)));
        assert_eq!(Mark::of(&json!({"messages": [{"role": "user", "content": "[a/b/c] [1/2"}]})), None);
        assert_eq!(Mark::of(&json!({})), None);
        assert!(Mark::can_hold("c/1") && !Mark::can_hold("a]") && !Mark::can_hold(""));
    }
}
