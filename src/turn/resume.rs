//! What an attempt is to do: answer from the start, or go on where the turn stopped.

use super::form::Form;
use super::script;
use std::sync::Arc;

/// What one attempt is given besides the pristine request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carry {
    /// From the start, or from where the turn stopped.
    pub origin: Origin,
    /// The form in which the target takes it, as far as that was learnt.
    pub form: Form,
    /// Only the last user message of the history.
    pub last_message_only: bool,
}

/// Where an attempt starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// At the beginning.
    Fresh,
    /// After what the client was told.
    Continue(Continue),
}

/// A turn that is to be continued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continue {
    /// The visible text that the client was told, whole.
    pub delivered: Arc<str>,
    /// The fragment that an `Instruct` continuation is asked to repeat; never empty for it.
    pub anchor: Anchor,
    /// In which way.
    pub how: How,
    /// Visible tokens that were delivered, as an estimate: they come off the limit.
    pub tokens: u64,
}

/// The ways to continue that an encoder can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// A user message that quotes the anchor.
    Instruct,
    /// The partial answer as the last message.
    Prefill,
}

/// The last fragment of the delivered text, as it is quoted to a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Anchor {
    /// About [`Anchor::CHARS`] characters, starting at a word or line, ending at the last character that is not
    /// white space.
    pub text: String,
}

// === impl Carry ===

impl Carry {
    /// From the start.
    pub fn fresh() -> Self {
        Self { origin: Origin::Fresh, form: Form::default(), last_message_only: false }
    }
}

// === impl Anchor ===

impl Anchor {
    /// About how many characters an anchor has.
    pub const CHARS: usize = 40;

    /// The anchor of `delivered`; empty if that is blank. It is the end of `delivered` without the white space there,
    /// starts with a character that is not white space, and does not start inside of what a reader takes for one
    /// character, unless there is no other place within reach.
    pub fn of(delivered: &str) -> Self {
        let text = delivered.trim_end();
        let rough = text.char_indices().rev().nth(Self::CHARS - 1).map_or(0, |(at, _)| at);
        // The text's own start is as good as any.
        let start = if text[..rough].trim_start().is_empty() {
            text.len() - text.trim_start().len()
        } else {
            Self::start_in(text, rough)
        };
        Self { text: text[start..].to_owned() }
    }

    /// The best place to start near byte `rough`: at a word, else behind punctuation, else between characters. At most
    /// half of the characters are given up for it.
    fn start_in(text: &str, rough: usize) -> usize {
        let places = text[rough..].char_indices().take(Self::CHARS / 2 + 1).map(|(at, ch)| (rough + at, ch));
        let mut best = (0, rough);
        for (at, ch) in places {
            let before = text[..at].chars().next_back();
            let rank = if ch.is_whitespace() || !script::is_boundary(text, at) {
                0
            } else if before
                .is_none_or(|before| before.is_whitespace() || script::is_spaceless(before) || script::is_spaceless(ch))
            {
                3
            } else if before.is_some_and(|before| !before.is_alphanumeric()) {
                2
            } else {
                1
            };
            if rank > best.0 {
                best = (rank, at);
            }
        }
        if best.0 > 0 {
            return best.1;
        }
        let back = text[..rough].char_indices().rev().take(Self::CHARS);
        back.map(|(at, _)| at)
            .find(|&at| script::is_boundary(text, at) && !text[at..].starts_with(char::is_whitespace))
            .unwrap_or(rough)
    }

    /// The user message that asks for the continuation. It is worded as a person would ask, for models take anything
    /// that looks like an injected notice for an attack; it allows tool calls; and it is the only place where the
    /// anchor is quoted, in a delimiter that the anchor does not contain.
    pub fn instruction(&self) -> String {
        let (open, close) = self.delimiter();
        format!(
            "My connection dropped while your reply was coming in. The last thing I received of it is the text between \
             {open} and {close}:\n\n{open}{text}{close}\n\nPlease go on with that same reply. Begin by repeating this last \
             fragment word for word, with the same spacing, line breaks and punctuation but without {open} and {close}, \
             and then carry straight on from there, even if that is in the middle of a word, a line or a code block. \
             Do not start again, do not sum up and do not comment on this message. If you meant to call a tool next, \
             just call it.",
            text = self.text
        )
    }

    /// What stands before and after the anchor where it is quoted.
    pub(super) fn delimiter(&self) -> (&'static str, &'static str) {
        const PAIRS: [(&str, &str); 5] = [("«", "»"), ("<<<", ">>>"), ("⟦", "⟧"), ("[[[", "]]]"), ("§§§", "§§§")];
        let fits = |(open, close): &&(&str, &str)| !self.text.contains(open) && !self.text.contains(close);
        PAIRS.iter().find(fits).copied().unwrap_or(("⟪⟪⟪", "⟫⟫⟫"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anchor_is_the_end_of_the_text_from_a_word_on() {
        let rows: &[(&str, &str)] = &[
            ("", ""),
            (" \n\t ", ""),
            ("One", "One"),
            ("  One, two, \n", "One, two,"),
            ("The quick brown fox jumps over the lazy dog near the river", "jumps over the lazy dog near the river"),
            // It does not start with the white space that it happens to hit.
            ("abcdefghij 123456789 123456789 123456789 123456789", "123456789 123456789 123456789 123456789"),
            // A word that is too long to be left out is cut.
            (&"x".repeat(50), &"x".repeat(40)),
            // No words: behind punctuation.
            ("aaaaaaaaaaaaaaaaaaaa/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"),
            // Chinese has no spaces, so any character starts a word.
            (&"世界".repeat(30), &"世界".repeat(20)),
            (&format!("{} {}", "世".repeat(30), "界".repeat(25)), &format!("{} {}", "世".repeat(14), "界".repeat(25))),
            // The start of a line, without its indentation.
            ("fn main() {\n    let first_v = compute();\n    let x = 1;", "let first_v = compute();\n    let x = 1;"),
        ];
        for (delivered, anchor) in rows {
            assert_eq!(Anchor::of(delivered).text, *anchor, "{delivered:?}");
        }
    }

    #[test]
    fn an_anchor_does_not_start_inside_a_character() {
        let family = "👩\u{200d}👩\u{200d}👧\u{200d}👦";
        let accents = "e\u{301}";
        for unit in [family, accents, "🇩🇪", "👍\u{1f3fd}", "❤\u{fe0f}", "क्षि", "a\r\n"] {
            for lead in 0..12 {
                let text = format!("{}{}", "-".repeat(lead), unit.repeat(30));
                let anchor = Anchor::of(&text).text;
                assert!(anchor.starts_with(unit), "{unit:?} after {lead}: {anchor:?}");
            }
        }
        // A letter with more marks than an anchor has characters is cut, for there is no other way.
        let deep = format!("x{}", "\u{301}".repeat(100));
        assert!(!Anchor::of(&deep).text.is_empty());
    }

    #[test]
    fn an_anchor_is_always_an_end_that_shows() {
        let pieces = ["a", " ", "\n", "世", "e\u{301}", "👩\u{200d}👧", "\"", "\u{200e}", "\u{a0}", "```\n", "- "];
        let mut seed = 7u64;
        for _ in 0..3000 {
            let mut text = String::new();
            for _ in 0..seed % 90 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text.push_str(pieces[(seed >> 33) as usize % pieces.len()]);
            }
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let anchor = Anchor::of(&text).text;
            assert!(text.trim_end().ends_with(&anchor), "{text:?}");
            assert_eq!(anchor.trim(), anchor, "{text:?}");
            assert_eq!(anchor.is_empty(), text.trim().is_empty(), "{text:?}");
            let count = anchor.chars().count();
            assert!(count <= 2 * Anchor::CHARS, "{text:?}");
            assert!(count >= Anchor::CHARS / 2 || anchor == text.trim(), "{text:?}: {anchor:?}");
        }
    }

    #[test]
    fn the_instruction_quotes_the_anchor_once_in_a_delimiter_that_it_lacks() {
        for text in ["plain", "«quoted»", "a <<< b « c", "⟦ « <<< [[[ §§§"] {
            let anchor = Anchor { text: text.to_owned() };
            let (open, close) = anchor.delimiter();
            assert!(!text.contains(open) && !text.contains(close), "{text}");
            assert_eq!(anchor.instruction().matches(&format!("{open}{text}{close}")).count(), 1, "{text}");
        }
    }
}
