//! What an attempt is to do: answer from the start, or go on where the turn stopped.

use std::sync::Arc;

/// What one attempt is given besides the pristine request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carry {
    /// From the start, or from where the turn stopped.
    pub origin: Origin,
    /// Leave earlier reasoning out of the history: its signature was refused.
    pub strip_reasoning: bool,
    /// Request fields to leave out besides the target's own `drops`.
    pub drops: Vec<String>,
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
        Self { origin: Origin::Fresh, strip_reasoning: false, drops: Vec::new(), last_message_only: false }
    }
}

// === impl Anchor ===

impl Anchor {
    /// About how many characters an anchor has.
    pub const CHARS: usize = 40;

    /// The anchor of `delivered`; empty if that is blank.
    pub fn of(delivered: &str) -> Self {
        let text = delivered.trim_end();
        let from = text.char_indices().rev().nth(Self::CHARS - 1).map_or(0, |(at, _)| at);
        let mut start = from;
        if from > 0 && !text[..from].ends_with(char::is_whitespace) {
            // Inside a word: begin at the next one, unless that leaves too little to be recognised.
            let tail = &text[from..];
            if let Some(space) = tail.find(char::is_whitespace) {
                let next = from + space;
                let next = next + (text[next..].len() - text[next..].trim_start().len());
                if text[next..].chars().count() >= Self::CHARS / 2 {
                    start = next;
                }
            }
        }
        Self { text: text[start..].to_owned() }
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

    fn delimiter(&self) -> (&'static str, &'static str) {
        const PAIRS: [(&str, &str); 5] = [("«", "»"), ("<<<", ">>>"), ("⟦", "⟧"), ("[[[", "]]]"), ("§§§", "§§§")];
        let fits = |(open, close): &&(&str, &str)| !self.text.contains(open) && !self.text.contains(close);
        PAIRS.iter().find(fits).copied().unwrap_or(("⟪⟪⟪", "⟫⟫⟫"))
    }
}
