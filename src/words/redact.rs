//! Takes secrets out of words, in whatever encoding they stand there.

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Knows secrets and takes them out of text. Cheap to clone; the default knows none. It can be compared, but neither
/// printed nor asked for what it knows.
#[derive(Clone, Default)]
pub struct Redactor(Option<Arc<Inner>>);

struct Inner {
    /// As they were given, sorted: what makes two redactors equal.
    secrets: Vec<String>,
    /// What is looked for: secrets, their parts, and their base64 forms.
    patterns: Vec<String>,
    found: AhoCorasick,
    /// How they begin, and which do so; the longest of them.
    beginnings: HashMap<[u8; LEAST_CUT], Vec<usize>>,
    longest: usize,
}

/// Text with escapes undone, and where each of its bytes stands in the text that it came from.
struct View {
    bytes: Vec<u8>,
    places: Vec<Range<u32>>,
    /// Something was undone.
    changed: bool,
}

// === impl Redactor ===

impl Redactor {
    /// Stands for a secret.
    pub const MARK: &'static str = "[secret]";
    /// A shorter secret could be any word, and is not looked for.
    pub const LEAST: usize = 8;

    /// A redactor that knows `secrets`: of each also what follows a scheme (`Bearer …`), and the password, the query and the
    /// path of one that is a URL.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut known: Vec<String> = secrets.into_iter().map(str::to_owned).collect();
        known.sort_unstable();
        known.dedup();
        let mut patterns: Vec<String> = known.iter().flat_map(|secret| parts(secret)).flat_map(forms).collect();
        patterns.retain(|pattern| pattern.len() >= Self::LEAST);
        patterns.sort_unstable();
        patterns.dedup();
        if patterns.is_empty() {
            return Self(None);
        }
        let mut beginnings: HashMap<_, Vec<usize>> = HashMap::new();
        for (index, pattern) in patterns.iter().enumerate() {
            if let Some(beginning) = pattern.as_bytes().first_chunk::<LEAST_CUT>() {
                beginnings.entry(beginning.map(|byte| byte.to_ascii_lowercase())).or_default().push(index);
            }
        }
        let longest = patterns.iter().map(String::len).max().unwrap_or_default();
        // Providers write keys as they like; no two secrets differ in case only.
        let found = AhoCorasickBuilder::new()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::LeftmostLongest)
            .build(&patterns);
        match found {
            Ok(found) => Self(Some(Arc::new(Inner { secrets: known, patterns, found, beginnings, longest }))),
            // Only more patterns than a configuration can hold are refused.
            Err(_) => Self(None),
        }
    }

    /// Whether a secret stands in `text` as it is, or in base64: what costs little.
    pub fn finds(&self, text: &str) -> bool {
        self.0.as_ref().is_some_and(|inner| inner.found.is_match(text))
    }

    /// `text` with [`Self::MARK`] in the place of each secret: as it is, percent-encoded, escaped as JSON or HTML does it,
    /// in base64, or one inside the other. A secret of which `text` holds only the beginning, at its end, is taken out
    /// too: somebody may have cut it.
    pub fn clean(&self, text: String) -> String {
        let Some(inner) = &self.0 else { return text };
        let mut found = Vec::new();
        let mut view = View::of(&text);
        for _ in 0..=NESTED {
            inner.search(&view, &mut found);
            view = view.undone();
            if !view.changed {
                break;
            }
        }
        if found.is_empty() { text } else { replace(&text, found) }
    }
}

impl PartialEq for Redactor {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_ref().map(|inner| &inner.secrets) == other.0.as_ref().map(|inner| &inner.secrets)
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} secrets)", self.0.as_ref().map_or(0, |inner| inner.secrets.len()))
    }
}

// === impl Inner ===

impl Inner {
    fn search(&self, view: &View, found: &mut Vec<Range<u32>>) {
        for at in self.found.find_iter(&view.bytes) {
            found.extend(view.place(at.range()));
        }
        let end = view.bytes.len();
        // The first that fits is the longest.
        let cut = (end.saturating_sub(self.longest)..end).find(|&at| self.begins(&view.bytes[at..]));
        found.extend(cut.and_then(|at| view.place(at..end)));
    }

    /// Whether `bytes` are the beginning of a pattern, and long enough to tell something.
    fn begins(&self, bytes: &[u8]) -> bool {
        let Some(beginning) = bytes.first_chunk::<LEAST_CUT>() else { return false };
        let candidates = self.beginnings.get(&beginning.map(|byte| byte.to_ascii_lowercase()));
        candidates.into_iter().flatten().any(|&index| {
            let pattern = self.patterns[index].as_bytes();
            pattern.get(..bytes.len()).is_some_and(|begun| begun.eq_ignore_ascii_case(bytes))
        })
    }
}

// === impl View ===

impl View {
    fn of(text: &str) -> Self {
        let places = (0..u32::try_from(text.len()).unwrap_or(u32::MAX)).map(|at| at..at + 1).collect();
        Self { bytes: text.as_bytes().to_vec(), places, changed: true }
    }

    /// Where `range` of the view stands in the text.
    fn place(&self, range: Range<usize>) -> Option<Range<u32>> {
        Some(self.places.get(range.start)?.start..self.places.get(range.end.checked_sub(1)?)?.end)
    }

    /// The view with one layer of escapes undone.
    fn undone(&self) -> Self {
        let mut out = Self { bytes: Vec::new(), places: Vec::new(), changed: false };
        let mut at = 0;
        while at < self.bytes.len() {
            let escaped = escape(&self.bytes[at..]);
            let (length, c) = escaped.unwrap_or((1, Decoded::Byte(self.bytes[at])));
            out.changed |= escaped.is_some();
            let place = self.places[at].start..self.places[at + length - 1].end;
            let mut utf8 = [0; 4];
            let bytes = match c {
                Decoded::Byte(byte) => {
                    utf8[0] = byte;
                    &utf8[..1]
                }
                Decoded::Char(c) => c.encode_utf8(&mut utf8).as_bytes(),
            };
            out.places.extend(std::iter::repeat_n(place, bytes.len()));
            out.bytes.extend_from_slice(bytes);
            at += length;
        }
        out
    }
}

// === helpers ===

#[derive(Clone, Copy)]
enum Decoded {
    Byte(u8),
    Char(char),
}

/// The escape that `bytes` begin with, how long it is, and what it stands for.
fn escape(bytes: &[u8]) -> Option<(usize, Decoded)> {
    let hex = |range: Range<usize>| {
        let digits = std::str::from_utf8(bytes.get(range)?).ok()?;
        digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok()).flatten()
    };
    let byte = |value: u32| u8::try_from(value).ok().map(Decoded::Byte);
    let char = |value: u32| char::from_u32(value).map(Decoded::Char);
    match bytes {
        [b'%', ..] => Some((3, byte(hex(1..3)?)?)),
        [b'\\', b'x', ..] => Some((4, byte(hex(2..4)?)?)),
        [b'\\', b'u', b'{', rest @ ..] => {
            let end = rest.iter().take(7).position(|&b| b == b'}')?;
            Some((end + 4, char(hex(3..3 + end)?)?))
        }
        [b'\\', b'u', ..] => Some((6, char(hex(2..6)?)?)),
        [b'\\', c @ (b'"' | b'\\' | b'/' | b'\''), ..] => Some((2, Decoded::Byte(*c))),
        [b'&', rest @ ..] => {
            let end = rest.iter().take(8).position(|&b| b == b';')?;
            let c = match &rest[..end] {
                b"amp" => Decoded::Byte(b'&'),
                b"lt" => Decoded::Byte(b'<'),
                b"gt" => Decoded::Byte(b'>'),
                b"quot" => Decoded::Byte(b'"'),
                b"apos" => Decoded::Byte(b'\''),
                [b'#', b'x' | b'X', ..] => char(hex(3..1 + end)?)?,
                [b'#', digits @ ..] => char(std::str::from_utf8(digits).ok()?.parse().ok()?)?,
                _ => return None,
            };
            Some((end + 2, c))
        }
        _ => None,
    }
}

/// A secret, and what of it is one by itself.
fn parts(secret: &str) -> Vec<String> {
    let mut parts = vec![secret.to_owned()];
    parts.extend(secret.split_once(' ').map(|(_, credential)| credential.trim().to_owned()));
    if let Some((_, rest)) = secret.split_once("://") {
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let user = authority.rsplit_once('@').map(|(user, _)| user);
        parts.extend(user.and_then(|user| user.split_once(':')).map(|(_, password)| password.to_owned()));
        parts.extend(path.split(['/', '?', '&', '=']).filter(|part| part.len() >= LEAST_OF_URL).map(str::to_owned));
        parts.push(path.to_owned());
    }
    parts
}

/// The forms of a secret that undoing escapes does not find: `+` for spaces, and base64 wherever in a longer text the
/// secret began.
fn forms(secret: String) -> Vec<String> {
    let mut forms = Vec::new();
    if secret.len() >= Redactor::LEAST {
        for offset in 0..3 {
            let middle = base64(secret.as_bytes(), offset);
            forms.push(middle.replace('+', "-").replace('/', "_"));
            forms.push(middle);
        }
    }
    if secret.contains(' ') {
        forms.push(secret.replace(' ', "+"));
    }
    forms.push(secret);
    forms
}

/// The digits of base64 that `bytes` alone decide where they begin `offset` bytes after a whole group.
fn base64(bytes: &[u8], offset: usize) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bit = |at: usize| bytes[at / 8] >> (7 - at % 8) & 1;
    // The first digit that begins inside `bytes`.
    let first = (offset * 8).div_ceil(6) * 6 - offset * 8;
    let digits = (bytes.len() * 8 - first) / 6;
    let digit = |n: usize| {
        let value = (0..6).fold(0, |value, i| value << 1 | bit(first + 6 * n + i));
        char::from(DIGITS[usize::from(value)])
    };
    (0..digits).map(digit).collect()
}

/// `text` with the mark in the place of `found`; those that touch or overlap are one.
fn replace(text: &str, mut found: Vec<Range<u32>>) -> String {
    found.sort_unstable_by_key(|range| range.start);
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    let mut ranges = found.into_iter().map(|r| r.start as usize..r.end as usize).peekable();
    while let Some(mut range) = ranges.next() {
        while let Some(next) = ranges.next_if(|next| next.start <= range.end) {
            range.end = range.end.max(next.end);
        }
        out.push_str(&text[at..text.floor_char_boundary(range.start).max(at)]);
        out.push_str(Redactor::MARK);
        at = text.ceil_char_boundary(range.end);
    }
    out.push_str(&text[at..]);
    out
}

/// So many layers of escapes are undone.
const NESTED: usize = 3;
/// Fewer characters of a secret that was cut tell nothing: keys of a vendor begin alike.
const LEAST_CUT: usize = 12;
/// A shorter part of a URL is a word.
const LEAST_OF_URL: usize = 16;

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
