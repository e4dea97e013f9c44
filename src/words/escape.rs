//! Text that is safe in a line of a log and on a terminal.

use std::fmt::{self, Write};

/// Shows text with every character escaped that has no visible form of its own (line ends, terminal controls, marks that
/// turn the direction of text, invisible ones), as `\n` or `\u{1b}`, and cut to a number of characters.
#[derive(Clone, Copy, Debug)]
pub struct Plain<'a> {
    text: &'a str,
    most: usize,
}

/// `text`, at most `most` characters of it; what is cut is told by `…`.
pub fn plain(text: &str, most: usize) -> Plain<'_> {
    Plain { text, most }
}

/// Whether a character has no visible form of its own.
pub fn is_hidden(c: char) -> bool {
    match c {
        ' '..='~' => false,
        _ => c.escape_debug().len() > 1,
    }
}

/// A line of JSON with its hidden characters as JSON escapes: they can only stand inside strings. Line ends that close
/// lines stay.
pub fn json_line(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        if c == '\n' || !is_hidden(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, c) in self.text.chars().enumerate() {
            if at == self.most {
                return f.write_char('…');
            }
            if is_hidden(c) { write!(f, "{}", c.escape_debug())? } else { f.write_char(c)? }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_spelt_out() {
        for (text, shown) in [
            ("a plain \"word\" \\ it's é 漢字 😀", "a plain \"word\" \\ it's é 漢字 😀"),
            ("a\nINFO forged\r\n", "a\\nINFO forged\\r\\n"),
            ("\u{1b}[2J\u{1b}]0;owned\u{7}", "\\u{1b}[2J\\u{1b}]0;owned\\u{7}"),
            ("\u{9b}31m\u{7f}\0", "\\u{9b}31m\\u{7f}\\0"),
            ("a\u{202e}b\u{2066}c\u{200b}d\u{feff}", "a\\u{202e}b\\u{2066}c\\u{200b}d\\u{feff}"),
            ("a\u{2028}b\u{2029}c\u{85}", "a\\u{2028}b\\u{2029}c\\u{85}"),
        ] {
            assert_eq!(plain(text, 100).to_string(), shown, "{text:?}");
        }
    }

    #[test]
    fn long_text_is_cut_and_says_so() {
        assert_eq!(plain("äöüß", 3).to_string(), "äöü…");
        assert_eq!(plain("äöü", 3).to_string(), "äöü");
        assert_eq!(plain("", 0).to_string(), "");
    }

    #[test]
    fn a_line_of_json_stays_what_it_says() {
        let said = serde_json::json!({"a": "x\u{202e}\u{1b}[2J\n\u{9b}\u{e0001}é"});
        let line = json_line(&format!("{said}\n"));
        assert!(!line.trim_end_matches('\n').chars().any(is_hidden), "{line}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&line).ok(), Some(said));
    }
}
