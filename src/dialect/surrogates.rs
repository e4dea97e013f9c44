//! Surrogate halves that stand alone in JSON escapes.
//!
//! Some servers cut their text between UTF-16 units, so that an emoji comes as `\ud83d` at the end of one delta and
//! `\ude00` at the start of the next. JSON parsers refuse either alone. Here the halves at a string's edges are taken
//! out and told, so that the decoder can join them; any other lone half becomes U+FFFD.

/// JSON that parses, and the halves that were taken out of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Repaired {
    /// The text without lone halves.
    pub(super) json: Vec<u8>,
    /// The edges of its strings.
    pub(super) edges: Edges,
}

/// Halves at the edges of a string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Edges {
    /// A low half at the start.
    pub(super) low: Option<u16>,
    /// A high half at the end.
    pub(super) high: Option<u16>,
}

/// Takes the lone halves out of `json`; `None` if there are none.
pub(super) fn repair(json: &[u8]) -> Option<Repaired> {
    let mut out = Vec::with_capacity(json.len());
    let mut edges = Edges::default();
    let (mut inside, mut at_start, mut found) = (false, false, false);
    let mut at = 0;
    while let Some(&byte) = json.get(at) {
        let starts = std::mem::replace(&mut at_start, false);
        if byte == b'"' {
            inside = !inside;
            at_start = inside;
        } else if inside && byte == b'\\' {
            let Some(unit) = unit(json, at) else {
                out.extend_from_slice(&json[at..json.len().min(at + 2)]);
                at += 2;
                continue;
            };
            let pair = is_high(unit) && self::unit(json, at + 6).is_some_and(is_low);
            if pair || !(is_high(unit) || is_low(unit)) {
                let length = if pair { 12 } else { 6 };
                out.extend_from_slice(&json[at..at + length]);
                at += length;
                continue;
            }
            found = true;
            if is_high(unit) && json.get(at + 6) == Some(&b'"') {
                edges.high = Some(unit);
            } else if is_low(unit) && starts {
                edges.low = Some(unit);
            } else {
                out.extend_from_slice(b"\\ufffd");
            }
            at += 6;
            continue;
        }
        out.push(byte);
        at += 1;
    }
    found.then_some(Repaired { json: out, edges })
}

/// The character of two halves; U+FFFD if they are none.
pub(super) fn pair(high: u16, low: u16) -> char {
    char::decode_utf16([high, low]).next().and_then(Result::ok).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The UTF-16 unit of the escape `\uXXXX` at `at`.
fn unit(json: &[u8], at: usize) -> Option<u16> {
    let escape = json.get(at..at + 6)?;
    if &escape[..2] != b"\\u" || !escape[2..].iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(&escape[2..]).ok()?, 16).ok()
}

fn is_high(unit: u16) -> bool {
    (0xD800..0xDC00).contains(&unit)
}

fn is_low(unit: u16) -> bool {
    (0xDC00..0xE000).contains(&unit)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

    use super::{Edges, pair, repair};

    #[test]
    fn whole_pairs_and_other_escapes_are_left_alone() {
        for json in
            [r#"{"a":"\ud83d\ude00"}"#, r#"{"a":"\\ud83d"}"#, r#"{"a":"x\n\u00e9"}"#, r#"{"a":"\"#, "", r#""\ud8"#]
        {
            assert_eq!(repair(json.as_bytes()), None, "{json}");
        }
    }

    #[test]
    fn halves_at_the_edges_are_told_and_others_replaced() {
        let high = repair(br#"{"text":"hi \uD83D"}"#).unwrap();
        assert_eq!(high.json, br#"{"text":"hi "}"#);
        assert_eq!(high.edges, Edges { low: None, high: Some(0xD83D) });
        let low = repair(br#"{"text":"\ude00 yes"}"#).unwrap();
        assert_eq!(low.json, br#"{"text":" yes"}"#);
        assert_eq!(low.edges, Edges { low: Some(0xDE00), high: None });
        let inner = repair(br#"{"text":"a\ud83db\ude00c"}"#).unwrap();
        assert_eq!(inner.json, br#"{"text":"a\ufffdb\ufffdc"}"#);
        assert_eq!(inner.edges, Edges::default());
        assert_eq!(pair(0xD83D, 0xDE00), '😀');
    }
}
