//! Characters that were cut in two on their way.
//!
//! JSON writes a character beyond U+FFFF as two escapes, and a provider that cuts its text by UTF-16 units puts them
//! into two deltas: `\ud83d` here, `\ude00` there. Rust's strings can hold neither half and a JSON reader refuses the
//! event. So, in the rare event that holds a lone half, its escape is rewritten before reading to a mark that a string
//! can hold ([`repair`]), and each field joins what it gets ([`Halves`]).

/// Stands before the four hex digits of a half. A noncharacter: no text that is meant to be exchanged contains it.
const MARK: char = '\u{FFFF}';

/// The half of a character that one field of a stream still owes.
#[derive(Debug, Default)]
pub(super) struct Halves {
    high: Option<u16>,
}

// === impl Halves ===

impl Halves {
    /// Whether nothing is held.
    pub(super) fn is_empty(&self) -> bool {
        self.high.is_none()
    }

    /// Takes the next text of the field, which may hold marks, and gives what is complete. A half whose other half
    /// does not come is U+FFFD.
    pub(super) fn join(&mut self, text: &str) -> String {
        let mut joined = String::with_capacity(text.len() + 3);
        let mut rest = text;
        while !rest.is_empty() {
            let (before, half, after) = next_half(rest);
            if !before.is_empty() {
                joined.extend(self.take());
                joined.push_str(before);
            }
            match half {
                Some(low @ 0xDC00..=0xDFFF) => match self.high.take() {
                    Some(high) => {
                        let code = 0x10000 + ((u32::from(high) - 0xD800) << 10) + (u32::from(low) - 0xDC00);
                        joined.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                    }
                    None => joined.push(char::REPLACEMENT_CHARACTER),
                },
                Some(high) => {
                    joined.extend(self.take());
                    self.high = Some(high);
                }
                None => {}
            }
            rest = after;
        }
        joined
    }

    /// What is held, as the character that stands for what cannot be read.
    pub(super) fn take(&mut self) -> Option<char> {
        self.high.take().map(|_| char::REPLACEMENT_CHARACTER)
    }
}

// === helpers ===

/// The JSON text with the escapes of lone halves rewritten to marks; `None` where there are none.
pub(super) fn repair(json: &str) -> Option<String> {
    let bytes = json.as_bytes();
    let mut fixed: Option<String> = None;
    let (mut from, mut at) = (0, 0);
    while let Some(next) = memchr::memchr(b'\\', &bytes[at..]) {
        let escape = at + next;
        match unit(bytes, escape) {
            Some(0xD800..=0xDBFF) if matches!(unit(bytes, escape + 6), Some(0xDC00..=0xDFFF)) => at = escape + 12,
            Some(0xD800..=0xDFFF) => {
                let out = fixed.get_or_insert_with(|| String::with_capacity(json.len() + 16));
                out.push_str(&json[from..escape]);
                out.push_str("\\uffff");
                out.push_str(&json[escape + 2..escape + 6]);
                at = escape + 6;
                from = at;
            }
            Some(_) => at = escape + 6,
            // Another escape of two characters, of which the second may be a backslash, or one that is broken.
            None => at = (escape + 2).min(bytes.len()),
        }
    }
    fixed.map(|mut out| {
        out.push_str(&json[from..]);
        out
    })
}

/// The text without marks: U+FFFD for each half. For fields that are not joined.
pub(super) fn clean(text: &str) -> String {
    let mut halves = Halves::default();
    let mut out = halves.join(text);
    out.extend(halves.take());
    out
}

/// The code unit of the escape `\uXXXX` at `at`.
fn unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0_u16, |code, digit| {
        let value = char::from(*digit).to_digit(16)?;
        Some((code << 4) | u16::try_from(value).ok()?)
    })
}

/// The text before the first mark, its half, and the text after it.
fn next_half(text: &str) -> (&str, Option<u16>, &str) {
    for (at, _) in text.match_indices(MARK) {
        let digits = at + MARK.len_utf8();
        let half = text.get(digits..digits + 4).and_then(|hex| u16::from_str_radix(hex, 16).ok());
        if let Some(half @ 0xD800..=0xDFFF) = half {
            return (&text[..at], Some(half), &text[digits + 4..]);
        }
    }
    (text, None, "")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;

    fn field(halves: &mut Halves, json: &str) -> String {
        let fixed = repair(json);
        let text: String = serde_json::from_str(fixed.as_deref().unwrap_or(json)).unwrap();
        halves.join(&text)
    }

    #[test]
    fn a_character_cut_in_two_is_joined() {
        let mut halves = Halves::default();
        assert_eq!(field(&mut halves, r#""a\ud83d""#), "a");
        assert!(!halves.is_empty());
        assert_eq!(field(&mut halves, r#""\uDE00b\ud83d""#), "😀b");
        assert_eq!(field(&mut halves, r#""\ude01""#), "😁");
        assert!(halves.is_empty());
    }

    #[test]
    fn a_half_alone_is_replaced_in_its_place() {
        let mut halves = Halves::default();
        assert_eq!(field(&mut halves, r#""\ude00x\ud83dy\ud83d\ud83d""#), "\u{FFFD}x\u{FFFD}y\u{FFFD}");
        assert_eq!(field(&mut halves, r#""z""#), "\u{FFFD}z");
        assert_eq!(field(&mut halves, r#""\ud83d""#), "");
        assert_eq!(halves.take(), Some('\u{FFFD}'));
        assert_eq!(halves.take(), None);
    }

    #[test]
    fn whole_pairs_and_escaped_backslashes_are_left_alone() {
        for json in
            [r#""\ud83d\ude00""#, r#""\\ud83d""#, r#""\\\\ud83d \n""#, r#""plain""#, r#""\u00e9\"""#, "\"\\", "\"\\ud8"]
        {
            assert_eq!(repair(json), None, "{json}");
        }
        assert_eq!(repair(r#""\\\ud83d""#).as_deref(), Some(r#""\\\uffffd83d""#));
        assert_eq!(clean("a\u{FFFF}d83db"), "a\u{FFFD}b");
        assert_eq!(clean("a\u{FFFF}b"), "a\u{FFFF}b");
    }
}
