//! The text that a seam has to keep, and the text that it waits for.

use super::overlap::Match;
use unicode_normalization::char::decompose_canonical;

/// What came and is neither new nor known.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) text: String,
    /// How many bytes of the continuation came before it.
    pub(super) base: usize,
    pub(super) chars: usize,
    pub(super) window: usize,
}

/// The anchor to the letter.
#[derive(Debug, Default)]
pub(super) struct Exact {
    pub(super) text: Box<str>,
    /// How many of its bytes came; `None` once something else did.
    pub(super) at: Option<usize>,
}

// === impl Held ===

impl Held {
    pub(super) fn end(&self) -> usize {
        self.base + self.text.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.chars >= self.window
    }

    /// What came after byte `at` of the continuation.
    pub(super) fn after(&self, at: usize) -> &str {
        self.text.get(at.saturating_sub(self.base)..).unwrap_or_default()
    }

    /// What is new after a repetition: what came after it, and before that the marks of a letter whose bare form was
    /// what was repeated.
    pub(super) fn new_after(&self, found: Match) -> String {
        let mut text = String::new();
        if found.inside
            && let Some(ch) = self.before(found.end)
        {
            let mut parts = 0;
            decompose_canonical(ch, |part| {
                if parts > 0 {
                    text.push(part);
                }
                parts += 1;
            });
        }
        text.push_str(self.after(found.end));
        text
    }

    /// The character that ends at byte `at`.
    fn before(&self, at: usize) -> Option<char> {
        self.text.get(..at.checked_sub(self.base)?)?.chars().next_back()
    }

    /// Forgets what came before byte `at`, or all.
    pub(super) fn drop_until(&mut self, at: Option<usize>) {
        let at = at.unwrap_or(usize::MAX).clamp(self.base, self.end());
        self.text.drain(..at - self.base);
        self.base = at;
        self.chars = self.text.chars().count();
    }
}

// === impl Exact ===

impl Exact {
    pub(super) fn new(text: String) -> Self {
        Self { text: text.into(), at: Some(0) }
    }

    /// Where it ends, if all of it came.
    pub(super) fn end(&self) -> Option<usize> {
        self.at.filter(|&at| at == self.text.len())
    }

    /// Some of it came, and nothing else.
    pub(super) fn is_alive(&self) -> bool {
        self.at.is_some_and(|at| at > 0 && at < self.text.len())
    }

    pub(super) fn push(&mut self, ch: char) {
        let Some(at) = self.at else { return };
        let rest = &self.text[at..];
        if rest.starts_with(ch) {
            self.at = Some(at + ch.len_utf8());
        } else if !rest.is_empty() {
            self.at = None;
        }
    }
}
