//! Colours and widths: what a terminal can show, and nothing of it where there is none.

use clap::Command;
use std::io::IsTerminal;

/// What can be shown at an output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint {
    lively: bool,
    width: usize,
}

/// What a piece of text is, from which follows how it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    /// A heading.
    Bold,
    /// Beside the matter.
    Dim,
    /// The first provider's.
    First,
    /// The second provider's.
    Second,
    /// As it should be.
    Good,
    /// Wrong.
    Bad,
    /// Doubtful.
    Doubt,
}

// === impl Paint ===

impl Paint {
    /// Of standard output.
    pub(super) fn of_stdout() -> Self {
        Self::of(std::io::stdout().is_terminal())
    }

    /// Of standard error.
    pub(super) fn of_stderr() -> Self {
        Self::of(std::io::stderr().is_terminal())
    }

    /// Without colours, `width` columns wide.
    #[cfg(test)]
    pub(super) fn plain(width: usize) -> Self {
        Self { lively: false, width }
    }

    fn of(terminal: bool) -> Self {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let dumb = variable("TERM").is_some_and(|term| term == "dumb");
        let lively = terminal && !dumb && variable("NO_COLOR").is_none();
        let width = if terminal || variable("COLUMNS").is_some() { terminal_width() } else { WIDTH };
        Self { lively, width: width.clamp(NARROWEST, WIDEST) }
    }

    /// Whether colours are shown and the cursor may be moved.
    pub(super) fn is_lively(self) -> bool {
        self.lively
    }

    /// Columns to write in.
    pub(super) fn width(self) -> usize {
        self.width
    }

    /// `text`, in `ink` where that can be shown.
    pub(super) fn ink(self, ink: Ink, text: &str) -> String {
        if self.lively { format!("\x1b[{}m{text}\x1b[0m", ink.code()) } else { text.to_owned() }
    }

    /// `text` broken between words into lines of the width. The first one begins where the cursor is, at column `from`;
    /// the others are indented by `indent` spaces.
    pub(super) fn wrapped(self, text: &str, from: usize, indent: usize) -> String {
        let end = self.width.max(indent + LEAST);
        let (mut out, mut column, mut fresh) = (String::with_capacity(text.len() + 16), from, true);
        for word in text.split(' ') {
            let length = word.chars().count();
            if !fresh && column + 1 + length > end {
                out.push('\n');
                out.extend(std::iter::repeat_n(' ', indent));
                column = indent;
            } else if !fresh {
                out.push(' ');
                column += 1;
            }
            out.push_str(word);
            column += length;
            fresh = false;
        }
        out
    }
}

// === impl Ink ===

impl Ink {
    fn code(self) -> &'static str {
        match self {
            Self::Bold => "1",
            Self::Dim => "2",
            Self::First => "36",
            Self::Second => "33",
            Self::Good => "32",
            Self::Bad => "1;31",
            Self::Doubt => "1;33",
        }
    }
}

// === helpers ===

/// The terminal's width. The argument parser knows it, and tells it only by the lines of a help text: one is made that
/// fills every line to the last column.
fn terminal_width() -> usize {
    let long = "x ".repeat(WIDEST);
    let help = Command::new("width").max_term_width(WIDEST).about(long).render_help().to_string();
    help.lines().map(|line| line.trim_end().chars().count()).max().map_or(WIDTH, |longest| longest + 1)
}

/// The width where there is no terminal.
const WIDTH: usize = 80;

/// Lines that are longer are hard to read.
const WIDEST: usize = 100;

/// Nothing is laid out for less.
const NARROWEST: usize = 24;

/// However deep an indent is, so much room stays beside it.
const LEAST: usize = 12;

#[cfg(test)]
mod tests {
    use super::{Ink, Paint};

    #[test]
    fn text_is_wrapped_between_words() {
        let paint = Paint::plain(24);
        assert_eq!(paint.wrapped("one two three four five six", 4, 4), "one two three four\n    five six");
        assert_eq!(paint.wrapped("short", 0, 4), "short");
        let long = "x".repeat(60);
        assert_eq!(paint.wrapped(&format!("a {long} b"), 0, 2), format!("a\n  {long}\n  b"));
    }

    #[test]
    fn ink_is_for_terminals() {
        assert_eq!(Paint::plain(80).ink(Ink::Bad, "x"), "x");
        assert_eq!(Paint { lively: true, width: 80 }.ink(Ink::Bad, "x"), "\x1b[1;31mx\x1b[0m");
    }
}
