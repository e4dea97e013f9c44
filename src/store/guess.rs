//! Questions that were given up before anybody had said a word, and are asked anew in other words.
//!
//! Voice frameworks ask with every interim transcript of what a caller says, and hang the guess before up. What the model
//! is to be asked is the last of them; what a caller said in its own right is not to be lost.

use super::{Exchange, State};
use serde_json::Value;

/// Whether `new` asks anew what `last` asked in other words before anybody had said anything. It is the same question if
/// at least half of its words come again in their order; the last one may have grown.
pub(super) fn of(last: &Exchange, new: &[Value]) -> bool {
    let answer = last.answer.as_ref();
    if answer.is_some_and(|answer| answer.state != State::Interrupted || answer.message.is_some()) {
        return false;
    }
    let ([guess], [now]) = (last.asked.as_slice(), new) else { return false };
    let (Some(guess), Some(now)) = (plain(guess), plain(now)) else { return false };
    let (guess, now) = (words(guess), words(now));
    // The longest common subsequence of the two, of which few words are looked at.
    let mut common = vec![0_usize; now.len() + 1];
    for (at, word) in guess.iter().enumerate() {
        let cut = at + 1 == guess.len();
        let mut diagonal = 0;
        for (index, other) in now.iter().enumerate() {
            let above = common[index + 1];
            let same = word == other || (cut && other.starts_with(word.as_str()));
            common[index + 1] = if same { diagonal + 1 } else { above.max(common[index]) };
            diagonal = above;
        }
    }
    !guess.is_empty() && 2 * common[now.len()] >= guess.len()
}

// === helpers ===

/// The text of a user's message that is nothing else.
fn plain(message: &Value) -> Option<&str> {
    let user = message.get("role").and_then(Value::as_str) == Some("user");
    match message.get("content").filter(|_| user)? {
        Value::String(text) => Some(text),
        Value::Array(parts) => match parts.as_slice() {
            [part] => part.get("text").and_then(Value::as_str),
            _ => None,
        },
        _ => None,
    }
}

/// The first words of a text, without case and punctuation. In a script without spaces each character is one.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut within = false;
    for c in text.chars().take(CHARS) {
        let alone = c.is_alphabetic() && !c.is_lowercase() && !c.is_uppercase();
        if !c.is_alphanumeric() {
            within = false;
        } else if let Some(word) = words.last_mut().filter(|_| within && !alone) {
            word.extend(c.to_lowercase());
        } else {
            words.push(c.to_lowercase().collect());
            within = !alone;
        }
    }
    words.truncate(WORDS);
    words
}

/// So many characters of a question tell whether it is a guess of another.
const CHARS: usize = 1024;
/// And so many words.
const WORDS: usize = 128;
