//! The text that a seam has to keep.

/// What came and is neither new nor known.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) text: String,
    /// How many bytes of the continuation came before it.
    pub(super) base: usize,
    pub(super) chars: usize,
    pub(super) window: usize,
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

    /// The character that ends at byte `at`.
    pub(super) fn before(&self, at: usize) -> Option<char> {
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
