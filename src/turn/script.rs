//! What a seam has to know about characters: which belong together, which weigh more, which do not count.
//!
//! The rules for what belongs together are the parts of Unicode's grapheme cluster rules (UAX #29) that decide where
//! one may cut, written out here because nothing else in the tree needs a segmenter.

use unicode_normalization::char::{canonical_combining_class, is_combining_mark};

/// How much a match of this character proves, in Latin letters: a Chinese, Japanese, Korean or Thai character stands
/// for about three.
pub(super) fn weight(ch: char) -> u32 {
    if is_spaceless(ch) || matches!(ch, '\u{ac00}'..='\u{d7a3}') { 3 } else { 1 }
}

/// The character belongs to a script that puts no spaces between words.
pub(super) fn is_spaceless(ch: char) -> bool {
    matches!(ch,
        '\u{0e00}'..='\u{0eff}'       // Thai, Lao
        | '\u{1000}'..='\u{109f}'     // Myanmar
        | '\u{1780}'..='\u{17ff}'     // Khmer
        | '\u{3005}'..='\u{3007}' | '\u{3021}'..='\u{3029}' | '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9f}'
        | '\u{20000}'..='\u{3ffff}')
}

/// A control of writing direction: it is not seen, and models drop or add it at will.
pub(super) fn is_bidi(ch: char) -> bool {
    matches!(ch, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The straight form of a quotation mark; any other character as it is.
pub(super) fn straight(ch: char) -> char {
    match ch {
        '\u{2018}'..='\u{201b}' | '\u{2032}' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' => '"',
        _ => ch,
    }
}

/// The character cannot begin anything: it changes or joins what stands before it.
pub(super) fn extends(ch: char) -> bool {
    !ch.is_ascii()
        && (is_combining_mark(ch)
            || matches!(ch,
                '\u{200c}' | '\u{200d}' | '\u{0e33}' | '\u{0eb3}' | '\u{1160}'..='\u{11ff}'
                | '\u{ff9e}' | '\u{ff9f}' | '\u{1f3fb}'..='\u{1f3ff}' | '\u{e0020}'..='\u{e007f}'))
}

/// Whether a reader would see nothing broken if `text` were cut at byte `at`.
pub(super) fn is_boundary(text: &str, at: usize) -> bool {
    let (Some(left), Some(right)) = (text.get(..at), text.get(at..)) else { return false };
    let (Some(before), Some(after)) = (left.chars().next_back(), right.chars().next()) else { return true };
    if before.is_ascii() && after.is_ascii() {
        return (before, after) != ('\r', '\n');
    }
    let flags = left.chars().rev().take_while(|&ch| is_flag_half(ch)).count();
    !(extends(after)
        || before == '\u{200d}'
        || canonical_combining_class(before) == VIRAMA
        || is_flag_half(after) && flags % 2 == 1)
}

/// Two of these make a flag.
fn is_flag_half(ch: char) -> bool {
    matches!(ch, '\u{1f1e6}'..='\u{1f1ff}')
}

/// The combining class of the marks that bind Indic consonants into one.
const VIRAMA: u8 = 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_where_to_cut() {
        let rows: &[(&str, &[usize])] = &[
            ("abc", &[0, 1, 2, 3]),
            ("a\r\nb", &[0, 1, 3, 4]),
            ("e\u{301}x", &[0, 3, 4]),
            ("👩\u{200d}👧!", &[0, 11, 12]),
            ("👍\u{1f3fd}👍", &[0, 8, 12]),
            ("❤\u{fe0f}a", &[0, 6, 7]),
            ("🇩🇪🇫🇷", &[0, 8, 16]),
            ("世界", &[0, 3, 6]),
            ("क्षि", &[0, 12]),
        ];
        for (text, cuts) in rows {
            let found: Vec<usize> = (0..=text.len()).filter(|&at| is_boundary(text, at)).collect();
            assert_eq!(found, *cuts, "{text:?}");
        }
    }

    #[test]
    fn weighs_by_script() {
        for (text, weight_of_all) in [("abc", 3), ("世界", 6), ("カナ", 6), ("ไทย", 9), ("한국", 6), ("äö!", 3)]
        {
            assert_eq!(text.chars().map(weight).sum::<u32>(), weight_of_all, "{text}");
        }
    }
}
