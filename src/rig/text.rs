//! Seeded texts to tell, and ways to cut them into pieces as tokenisers do.
//!
//! The kinds are those that break seams: code whose indentation matters, lists that renumber, scripts without word
//! spaces, characters of several scalars, and text that repeats itself so that a repetition is no proof of an echo.

use super::seed::Dice;
use serde::{Deserialize, Serialize};

/// What a text looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Sentences and paragraphs.
    Prose,
    /// Fenced code with indentation between two sentences.
    Code,
    /// One JSON object.
    Json,
    /// A Markdown list with nested items.
    List,
    /// Chinese and Japanese sentences, no spaces between words.
    Cjk,
    /// Prose with emoji made of several scalars.
    Emoji,
    /// Prose that tells the same lines again and again.
    Repeat,
}

// === impl Kind ===

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 7] = [Self::Prose, Self::Code, Self::Json, Self::List, Self::Cjk, Self::Emoji, Self::Repeat];

    /// Its name in model names and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prose => "prose",
            Self::Code => "code",
            Self::Json => "json",
            Self::List => "list",
            Self::Cjk => "cjk",
            Self::Emoji => "emoji",
            Self::Repeat => "repeat",
        }
    }
}

// === making texts ===

/// A text of about `length` characters; the same for the same arguments.
pub fn text(kind: Kind, length: usize, seed: u64) -> String {
    let mut dice = Dice::labelled(seed, kind as u64);
    let mut out = String::with_capacity(length + 80);
    match kind {
        Kind::Prose => prose(&mut out, length, &mut dice, &[]),
        Kind::Emoji => prose(&mut out, length, &mut dice, EMOJI),
        Kind::Code => code(&mut out, length, &mut dice),
        Kind::Json => json(&mut out, length, &mut dice),
        Kind::List => list(&mut out, length, &mut dice),
        Kind::Cjk => cjk(&mut out, length, &mut dice),
        Kind::Repeat => repeat(&mut out, length, &mut dice),
    }
    out
}

fn prose(out: &mut String, length: usize, dice: &mut Dice, between: &[&str]) {
    let mut sentences = 0;
    while out.len() < length {
        if sentences > 0 {
            out.push_str(if dice.once_in(4) { "\n\n" } else { " " });
        }
        sentence(out, dice);
        if let Some(sign) = dice.pick(between) {
            out.push(' ');
            out.push_str(sign);
        }
        sentences += 1;
    }
}

fn sentence(out: &mut String, dice: &mut Dice) {
    let start = out.len();
    let count = dice.between(4, 12);
    for word in 0..count {
        if word > 0 {
            out.push_str(if dice.once_in(9) { ", " } else { " " });
        }
        match dice.below(24) {
            0 => quoted(out, dice, "\"", "\""),
            1 => quoted(out, dice, "“", "”"),
            2 => out.push_str("it's"),
            _ => out.push_str(dice.pick(WORDS).copied().unwrap_or("word")),
        }
    }
    capitalise(out, start);
    out.push_str(dice.pick(&[".", ".", ".", "?", "!"]).copied().unwrap_or("."));
}

fn quoted(out: &mut String, dice: &mut Dice, open: &str, close: &str) {
    out.push_str(open);
    out.push_str(dice.pick(WORDS).copied().unwrap_or("word"));
    out.push_str(close);
}

fn capitalise(out: &mut str, start: usize) {
    if let Some(first) = out.get_mut(start..start + 1) {
        first.make_ascii_uppercase();
    }
}

fn code(out: &mut String, length: usize, dice: &mut Dice) {
    sentence(out, dice);
    out.push_str("\n\n```python\n");
    let mut indent: usize = 0;
    while out.len() < length {
        let name = dice.pick(NAMES).copied().unwrap_or("x");
        let other = dice.pick(NAMES).copied().unwrap_or("y");
        for _ in 0..indent {
            out.push_str("    ");
        }
        let line = match dice.below(6) {
            0 => format!("def {name}({other}):"),
            1 => format!("for {name} in {other}:"),
            2 => format!("if {name} == \"{other}\":"),
            3 => format!("{name} = {other}[{}]", dice.below(10)),
            4 => format!("return {name}"),
            _ => format!("{name}({other}, {})", dice.below(100)),
        };
        let opens = line.ends_with(':');
        out.push_str(&line);
        out.push('\n');
        indent = if opens { (indent + 1).min(4) } else { indent.saturating_sub(dice.below(2)) };
    }
    out.push_str("```\n\n");
    sentence(out, dice);
}

fn json(out: &mut String, length: usize, dice: &mut Dice) {
    out.push('{');
    let mut fields = 0;
    while out.len() < length {
        if fields > 0 {
            out.push(',');
        }
        let name = dice.pick(NAMES).copied().unwrap_or("x");
        out.push_str(&format!("\"{name}_{fields}\":"));
        match dice.below(4) {
            0 => out.push_str(&format!("{}", dice.below(100_000))),
            1 => out.push_str(&format!("[{},{},{{\"{name}\":null}}]", dice.below(10), dice.below(10))),
            2 => out.push_str("true"),
            _ => out.push_str(&format!("\"{} \\\"{name}\\\" é\"", dice.pick(WORDS).copied().unwrap_or("word"))),
        }
        fields += 1;
    }
    out.push('}');
}

fn list(out: &mut String, length: usize, dice: &mut Dice) {
    sentence(out, dice);
    out.push_str("\n\n");
    let mut item = 1;
    while out.len() < length {
        if dice.once_in(3) && item > 1 {
            out.push_str("   - ");
        } else {
            out.push_str(&format!("{item}. "));
            item += 1;
        }
        let bold = dice.once_in(3);
        if bold {
            out.push_str("**");
            out.push_str(dice.pick(WORDS).copied().unwrap_or("word"));
            out.push_str("** ");
        }
        sentence(out, dice);
        out.push('\n');
    }
}

fn cjk(out: &mut String, length: usize, dice: &mut Dice) {
    // A character has three bytes: a third as many of them look as long to a reader.
    while out.len() < length.saturating_mul(2) {
        for _ in 0..dice.between(2, 5) {
            out.push_str(dice.pick(CJK).copied().unwrap_or("字"));
        }
        out.push_str(dice.pick(&["。", "。", "、", "！", "。\n"]).copied().unwrap_or("。"));
    }
}

fn repeat(out: &mut String, length: usize, dice: &mut Dice) {
    let mut lines: Vec<String> = Vec::new();
    for _ in 0..dice.between(1, 2) {
        let mut line = String::new();
        sentence(&mut line, dice);
        line.push_str(if dice.once_in(2) { "\n" } else { " " });
        lines.push(line);
    }
    while out.len() < length {
        match dice.below(6) {
            0 => out.push_str("ha ha ha "),
            _ => out.push_str(dice.pick(&lines).map_or("again ", String::as_str)),
        }
    }
    out.push_str("The end.");
}

// === cutting texts ===

/// Cuts `text` before the white space of each word, as most tokenisers do: `"One"`, `" two"`, `" three"`.
pub fn words(text: &str) -> Vec<String> {
    let mut pieces = Vec::with_capacity(text.len() / 5 + 1);
    let mut start = 0;
    let mut in_word = false;
    for (at, c) in text.char_indices() {
        if c.is_whitespace() {
            if in_word {
                pieces.push(text[start..at].to_owned());
                start = at;
            }
            in_word = false;
        } else {
            in_word = true;
        }
    }
    if start < text.len() {
        pieces.push(text[start..].to_owned());
    }
    pieces
}

/// Cuts `text` into pieces of 1 to `most` characters wherever the dice fall, inside words too. The characters stay
/// whole; clusters of them need not.
pub fn cut(text: &str, most: usize, dice: &mut Dice) -> Vec<String> {
    let mut pieces = Vec::with_capacity(text.len() / most.max(1) + 4);
    let mut rest = text;
    while !rest.is_empty() {
        let size = dice.between(1, most.max(1));
        let end = rest.char_indices().nth(size).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        pieces.push(piece.to_owned());
        rest = after;
    }
    pieces
}

// === vocabulary ===

const WORDS: &[&str] = &[
    "the", "a", "river", "signal", "keeps", "quiet", "letters", "between", "two", "stations", "and", "carries",
    "morning", "light", "over", "bridge", "slowly", "turns", "glass", "towards", "harbour", "where", "engines",
    "sleep", "under", "snow", "for", "every", "question", "there", "is", "an", "answer", "that", "waits", "résumé",
    "naïve", "window", "of", "old", "maps", "because", "nobody", "asked", "before", "longer", "than", "expected",
];

const NAMES: &[&str] = &["total", "items", "node", "value", "index", "queue", "walk", "parse", "limit", "result"];

const EMOJI: &[&str] = &["👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "e\u{301}", "🇩🇪", "❤️‍🔥", "🙂"];

const CJK: &[&str] = &[
    "今天",
    "天气",
    "很好",
    "我们",
    "去",
    "公园",
    "散步",
    "データ",
    "を",
    "送信",
    "する",
    "東京",
    "の",
    "空",
    "静か",
    "𠮷野",
];

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

    use super::{Dice, Kind, cut, text, words};

    #[test]
    fn the_same_seed_gives_the_same_text_and_another_seed_another() {
        for kind in Kind::ALL {
            assert_eq!(text(kind, 300, 5), text(kind, 300, 5));
            assert_ne!(text(kind, 300, 5), text(kind, 300, 6), "{}", kind.name());
            assert!(text(kind, 300, 5).len() >= 300, "{}", kind.name());
        }
    }

    #[test]
    fn texts_are_what_their_kind_says() {
        for seed in 0..50 {
            serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&text(Kind::Json, 200, seed)).unwrap();
            let code = text(Kind::Code, 300, seed);
            assert_eq!(code.matches("```").count(), 2);
            assert!(code.contains("\n    ") || !code.contains(":\n"));
            assert!(text(Kind::List, 300, seed).contains("\n1. "));
            assert!(!text(Kind::Cjk, 300, seed).contains(' '));
            assert!(
                text(Kind::Emoji, 600, seed)
                    .chars()
                    .any(|c| matches!(c, '\u{200d}' | '\u{301}' | '\u{fe0f}' | '🙂' | '👍' | '🇩'))
            );
            let again = text(Kind::Repeat, 600, seed);
            let mut lines: Vec<&str> = again.split_inclusive(['.', '?', '!']).map(str::trim).collect();
            let all = lines.len();
            lines.sort_unstable();
            lines.dedup();
            assert!(lines.len() + 2 <= all, "{again}");
        }
    }

    #[test]
    fn pieces_make_up_the_text_in_any_cut() {
        for kind in Kind::ALL {
            for seed in 0..20 {
                let whole = text(kind, 250, seed);
                let pieces = cut(&whole, 6, &mut Dice::new(seed));
                assert_eq!(pieces.concat(), whole);
                assert!(pieces.iter().all(|p| (1..=6).contains(&p.chars().count())));
                assert_eq!(words(&whole).concat(), whole);
            }
        }
        assert_eq!(words("One two,  three\n"), ["One", " two,", "  three", "\n"]);
        assert!(words("").is_empty());
    }

    #[test]
    fn cuts_fall_inside_words() {
        let pieces = cut("understandable", 4, &mut Dice::new(1));
        assert!(pieces.len() > 3);
    }
}
