//! The most tokens that a target gives, read from its refusal of more.

use crate::failure::Remedy;

/// The ceiling that a message names; `lower` is in lower case.
pub(super) fn cap(lower: &str) -> Option<Remedy> {
    if !NAMES.iter().any(|name| lower.contains(name)) {
        return None;
    }
    // A limit that is no number of tokens (`-1`: none) is left out, for that is what it means.
    if lower.contains("-1") && FLOORS.iter().any(|words| lower.contains(words)) {
        let fields = ["max_tokens", "max_completion_tokens"].map(str::to_owned).to_vec();
        return Some(Remedy::Drop { fields, lasting: false });
    }
    if let Some(tokens) = room(lower) {
        return Some(Remedy::Cap { tokens, lasting: false });
    }
    let tokens = range(lower).or_else(|| over(lower)).or_else(|| phrase(lower))?;
    (LEAST..MOST).contains(&tokens).then_some(Remedy::Cap { tokens, lasting: true })
}

/// What a window leaves for the answer, where a message says how much the prompt takes. A target with little room left
/// is better not asked.
fn room(lower: &str) -> Option<u64> {
    let numbers = numbers(lower);
    let sum = lower.find('+').zip(lower.find('>')).filter(|(plus, over)| plus < over);
    let (left, asked) = if let Some((_, over)) = sum {
        // `input length and max_tokens exceed context limit: 190000 + 21333 > 200000`
        let window = numbers.iter().find(|(at, _)| over < *at)?.1;
        let before: Vec<u64> = numbers.iter().filter(|(at, _)| *at < over).map(|(_, n)| *n).collect();
        let [.., prompt, asked] = before[..] else { return None };
        (window.checked_sub(prompt)?, asked)
    } else if let Some(over) = lower.find(" > ").filter(|_| lower.contains(" - ")) {
        // `(32000 > 16384 - 200)`
        let behind: Vec<u64> = numbers.iter().filter(|(at, _)| over < *at).map(|(_, n)| *n).collect();
        let [window, prompt, ..] = behind[..] else { return None };
        let asked = numbers.iter().rfind(|(at, _)| *at < over)?.1;
        (window.checked_sub(prompt)?, asked)
    } else {
        // `maximum context length is 4096 tokens. However, you requested 5000 tokens (1000 in the messages, 4000 in the
        // completion)`
        let window = after(lower, "maximum context length is")?;
        let prompt = before(lower, " in the messages").or_else(|| before(lower, " in your prompt"))?;
        let asked = before(lower, " in the completion").or_else(|| before(lower, " for the completion"))?;
        (window.checked_sub(prompt)?, asked)
    };
    (left < asked && (ROOM <= left || asked / 4 <= left) && LEAST <= left).then_some(left)
}

/// `[1, 8192]`, `(1, 4095]`, `between 1 and 8192`.
fn range(lower: &str) -> Option<u64> {
    let opened = lower.match_indices(['[', '(']).find_map(|(at, _)| {
        let inner = lower.get(at + 1..)?;
        let inner = inner.get(..inner.find([']', ')'])?)?;
        let (least, most) = inner.split_once(',')?;
        least.trim().parse::<u64>().ok()?;
        most.trim().parse().ok()
    });
    opened.or_else(|| {
        let at = lower.find("between ")?;
        numbers(lower).iter().filter(|(n, _)| at < *n).nth(1).map(|(_, n)| *n)
    })
}

/// `max_tokens: 200000 > 64000`
fn over(lower: &str) -> Option<u64> {
    let (before, after) = lower.split_once(" > ")?;
    before.trim_end().ends_with(|c: char| c.is_ascii_digit()).then(|| numbers(after).first().map(|(_, n)| *n))?
}

fn phrase(lower: &str) -> Option<u64> {
    PHRASES.iter().find_map(|(words, less)| after(lower, words).map(|n| n.saturating_sub(*less)))
}

/// The number that follows `words` closely.
fn after(lower: &str, words: &str) -> Option<u64> {
    lower.match_indices(words).find_map(|(at, _)| {
        let rest = &lower[at + words.len()..];
        numbers(rest).first().filter(|(at, _)| *at <= NEAR).map(|(_, n)| *n)
    })
}

/// The number right before `words`.
fn before(lower: &str, words: &str) -> Option<u64> {
    let (head, _) = lower.split_once(words)?;
    head.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The whole numbers of a text and where each begins; commas between groups of three are no separators. Versions, names
/// and fractions are none.
fn numbers(text: &str) -> Vec<(usize, u64)> {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let start = at;
        let mut digits = String::new();
        while at < bytes.len() {
            let grouped = bytes[at] == b','
                && bytes.get(at + 1..at + 4).is_some_and(|next| next.iter().all(u8::is_ascii_digit))
                && !bytes.get(at + 4).is_some_and(u8::is_ascii_digit);
            match bytes[at] {
                digit @ b'0'..=b'9' => digits.push(char::from(digit)),
                b',' if grouped => {}
                _ => break,
            }
            at += 1;
        }
        let joined = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
        let glued = start.checked_sub(1).and_then(|i| bytes.get(i)).is_some_and(joined);
        let tail = bytes.get(at).is_some_and(u8::is_ascii_alphabetic);
        if !glued
            && !tail
            && let Ok(number) = digits.parse()
        {
            out.push((start, number));
        }
    }
    out
}

/// What the limit is called.
const NAMES: [&str; 12] = [
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "maxoutputtokens",
    "max_new_tokens",
    "maxtokens",
    "max tokens",
    "maximum tokens",
    "output tokens",
    "completion tokens",
    "maximum context length",
    "num_predict",
];

/// What is said of a limit that is too low.
const FLOORS: [&str; 6] =
    ["at least 1", "greater than 0", "greater than or equal to", "positive", "minimum", "must be > 0"];

/// What comes before the ceiling, and how far over it that number is.
const PHRASES: [(&str, u64); 21] = [
    ("lower than", 1),
    ("less than or equal to", 0),
    ("at most", 0),
    ("no more than", 0),
    ("not exceed", 0),
    ("cannot exceed", 0),
    ("up to", 0),
    ("<=", 0),
    ("≤", 0),
    ("maximum value is", 0),
    ("maximum allowed", 0),
    ("maximum of", 0),
    ("maximum is", 0),
    ("limit of", 0),
    ("limit is", 0),
    ("limited to", 0),
    ("smaller than", 1),
    ("less than", 1),
    ("below", 1),
    ("max is", 0),
    ("exceeds the limit", 0),
];

/// Bytes between such words and the number.
const NEAR: usize = 24;
/// So much room is worth asking for.
const ROOM: u64 = 1024;
/// A lower ceiling is none.
const LEAST: u64 = 16;
/// Neither is a higher one.
const MOST: u64 = 10_000_000;
