//! What is open at the end of the delivered text, and how two texts meet that share nothing.

use super::Join;
use super::fold::Fences;
use crate::turn::script;

/// A block at the end of the delivered text that a continuation may open again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// Where it starts, in bytes.
    pub(super) at: usize,
    /// What a repetition of all of it must weigh to be believed.
    pub(super) least: u32,
    /// What of it must have been told again before it is no accident.
    pub(super) proven: u32,
}

/// The blocks that are open at the end of `text` and begin with `ch`.
pub(super) fn open_blocks(text: &str, ch: char) -> Vec<Block> {
    let mut blocks = Vec::new();
    match ch {
        '`' | '~' => {
            if let Some(fence) = Fences::at(text, text.len()).open() {
                let line = u32::try_from(fence.end - fence.at).unwrap_or(u32::MAX);
                blocks.push(Block { at: fence.at, least: OBJECT, proven: line.saturating_add(ALIKE) });
            }
        }
        '{' | '[' => {
            let open = open_brackets(text);
            blocks.extend(open.first().map(|&at| Block { at, least: OBJECT, proven: ALIKE }));
            blocks.extend(open.last().map(|&at| Block { at, least: OBJECT, proven: ALIKE }));
        }
        _ => {
            let line = line_start(text);
            if is_item(&text[line..]) {
                blocks.push(Block { at: line, least: 1, proven: ITEMS });
                blocks.push(Block { at: list_start(text, line), least: OBJECT, proven: ITEMS });
            }
        }
    }
    for block in &mut blocks {
        block.at += text[block.at..].len() - text[block.at..].trim_start().len();
    }
    blocks.dedup();
    blocks.retain(|block| text[block.at..].starts_with(ch));
    blocks
}

/// How `new` is joined to `delivered` where no alignment was found, with the name of the way.
pub(super) fn join(delivered: &str, new: &str) -> (Join, &'static str) {
    let told = delivered.trim_end();
    let owed = &delivered[told.len()..];
    let text = new.trim_start();
    let white = &new[..new.len() - text.len()];
    let in_code = Fences::at(delivered, delivered.len()).open().is_some();
    let line = &told[line_start(told)..];
    let in_prose = !in_code && !is_item(line) && !line.trim_start().starts_with('|');
    let lower = |ch: Option<char>| ch.is_some_and(char::is_lowercase);
    if in_prose
        && white.matches('\n').count() >= 2
        && !owed.contains('\n')
        && lower(told.chars().next_back())
        && lower(text.chars().next())
    {
        let space = if owed.is_empty() { " " } else { "" };
        return (Join::Text(format!("{space}{text}")), "paragraph");
    }
    let known = if in_prose && owed == "\n" && white == "\n" {
        // Two halves of a paragraph break.
        0
    } else {
        known_white(owed, white)
    };
    let new = &new[known..];
    let (before, after) = (delivered.chars().next_back(), new.chars().next());
    let is_word = |ch: Option<char>| ch.is_some_and(|ch| ch.is_alphanumeric() && !script::is_spaceless(ch));
    let after_is_word = is_word(after) && !after.is_some_and(script::extends);
    // A letter's marks belong to the word that they end.
    let before_is_word = is_word(before) || before.is_some_and(|ch| script::extends(ch) && !script::is_spaceless(ch));
    let in_words = !in_code && !line.trim_start().starts_with('|') && !is_address(told);
    if before_is_word && after_is_word {
        let space = if in_words && after.is_some_and(|after| parts_words(told, after)) { " " } else { "" };
        (Join::Guess(format!("{space}{new}")), "guess")
    } else if in_words && owed.is_empty() && after_is_word && after.is_some_and(|after| ends_clause(told, after)) {
        (Join::Text(format!(" {new}")), "sentence")
    } else if new.is_empty() {
        (Join::Held, "verbatim")
    } else {
        (Join::Text(new.to_owned()), "verbatim")
    }
}

/// Whether `new`, which repeats nothing, begins a sentence where one is not at its end: no continuation does. Where
/// capitals are common within sentences (German, names) nothing can be told from one.
pub(super) fn breaks_sentence(delivered: &str, new: &str) -> bool {
    let told = delivered.trim_end();
    // A message of its own begins with no space; what does goes on.
    if !new.starts_with(char::is_uppercase) || delivered[told.len()..].contains('\n') {
        return false;
    }
    let line = &told[line_start(told)..];
    let in_prose = Fences::at(delivered, delivered.len()).open().is_none()
        && !is_address(told)
        && !is_quoting(delivered)
        && !line.trim_start().starts_with(['|', '#', '*', '-']);
    let is_open = told.ends_with(|ch: char| ch.is_lowercase() || ch == ',');
    in_prose && is_open && !is_capitalising(told)
}

/// A good part of the words within sentences begins with a capital, at the end of `text`.
fn is_capitalising(text: &str) -> bool {
    let from = text.char_indices().rev().nth(ENOUGH).map_or(0, |(at, _)| at);
    let words: Vec<&str> = text[from..].split_whitespace().collect();
    let inner = words.windows(2).filter(|pair| pair[0].ends_with(|ch: char| ch.is_alphanumeric() || ch == ','));
    let capitals = inner.clone().filter(|pair| pair[1].starts_with(char::is_uppercase) && pair[1] != "I").count();
    capitals * SHARE >= inner.count().max(1)
}

/// `text` ends within an address or a path, where spaces have no place.
fn is_address(text: &str) -> bool {
    let chunk = text.rsplit(char::is_whitespace).next().unwrap_or_default();
    chunk.contains("://") || chunk.starts_with("www.") || chunk.contains(['@', '/', '\\'])
}

/// Whether a space belongs between the word that `told` ends in and one that begins with `after`. A message of its own never
/// begins with a space, so it is missing more often than not; save where the end is no word.
fn parts_words(told: &str, after: char) -> bool {
    let start = told
        .rfind(|ch: char| !ch.is_alphanumeric() && !script::extends(ch))
        .map_or(0, |at| at + told[at..].chars().next().map_or(0, char::len_utf8));
    let word = &told[start..];
    let Some(before) = word.chars().next_back() else { return true };
    let is_hangul = |ch: char| matches!(ch, '\u{ac00}'..='\u{d7a3}');
    if (before.is_numeric() && after.is_numeric()) || is_hangul(before) || is_hangul(after) {
        return false;
    }
    let is_vowel = |ch: char| !ch.is_ascii() || "aeiouyAEIOUY".contains(ch);
    word.contains(|ch: char| ch.is_numeric() || is_vowel(ch))
        || told[..start].split(|ch: char| !ch.is_alphanumeric()).any(|other| other == word)
}

/// Whether a space is missing between the end of `told`, which closes a sentence or a part of one, and a word that begins
/// with `after`. Numbers and names with dots in them are not taken for sentences.
fn ends_clause(told: &str, after: char) -> bool {
    if !after.is_alphabetic() {
        return false;
    }
    match told.chars().next_back() {
        Some('.') => !after.is_lowercase(),
        Some('!' | '?' | '\u{2026}' | ',' | ';' | ':' | ')') => true,
        Some('\u{60c}' | '\u{61b}' | '\u{61f}' | '\u{6d4}' | '\u{964}') => true,
        Some('"' | '\u{201d}') => !is_quoting(told),
        _ => false,
    }
}

/// How many bytes of the white space `white`, with which new text starts, are part of the white space `owed`, with
/// which the delivered text ends: the longest start of it that is a start or an end of that.
pub(super) fn known_white(owed: &str, white: &str) -> usize {
    let start: usize =
        owed.chars().zip(white.chars()).take_while(|(owed, new)| owed == new).map(|(ch, _)| ch.len_utf8()).sum();
    let reach = owed.char_indices().rev().nth(ENDS - 1).map_or(0, |(at, _)| at);
    let end = owed[reach..]
        .char_indices()
        .map(|(at, _)| &owed[reach + at..])
        .find(|end| white.starts_with(end))
        .map_or(0, str::len);
    start.max(end)
}

/// `text` holds the words of `phrase` (lower case, straight quotes) somewhere.
pub(super) fn mentions(text: &str, phrase: &str) -> bool {
    let plain: String = text.chars().map(|ch| script::straight(ch).to_ascii_lowercase()).collect();
    plain.contains(phrase)
}

/// A quotation is open at the end of `text`, as far as its last line tells.
pub(super) fn is_quoting(text: &str) -> bool {
    let line = &text[line_start(text.trim_end())..];
    let (mut straight, mut depth) = (0, 0);
    for ch in line.chars() {
        match ch {
            '"' => straight += 1,
            '\u{201c}' | '\u{ab}' => depth += 1,
            '\u{201d}' | '\u{bb}' => depth -= 1,
            _ => {}
        }
    }
    straight % 2 == 1 || depth > 0
}

fn line_start(text: &str) -> usize {
    text.rfind('\n').map_or(0, |at| at + 1)
}

/// The line is an item of a list.
fn is_item(line: &str) -> bool {
    let line = line.trim_start();
    let mark = line.trim_start_matches(|ch: char| ch.is_ascii_digit());
    let digits = line.len() - mark.len();
    let rest = match digits {
        0 => mark.strip_prefix(['-', '*', '+']),
        1..=9 => mark.strip_prefix(['.', ')']),
        _ => None,
    };
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
}

/// Where the list starts that the item at byte `line` belongs to.
fn list_start(text: &str, mut line: usize) -> usize {
    while line > 0 {
        let before = line_start(&text[..line - 1]);
        let content = &text[before..line - 1];
        if !is_item(content) && !content.starts_with([' ', '\t']) {
            break;
        }
        line = before;
    }
    line
}

/// The brackets that are open at the end, outermost first.
fn open_brackets(text: &str) -> Vec<usize> {
    let mut open: Vec<usize> = Vec::new();
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        if quoted {
            quoted = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            continue;
        }
        match byte {
            b'"' => quoted = !open.is_empty(),
            b'{' | b'[' => open.push(at),
            b'}' | b']' => {
                open.pop();
            }
            _ => {}
        }
    }
    open
}

/// What a repeated object must weigh: a bracket alone may open another one.
const OBJECT: u32 = 4;

/// How much two blocks may have in common by chance: the first words of a program, the first keys of an object.
const ALIKE: u32 = 24;

/// The same for lists, whose items are often worded alike.
const ITEMS: u32 = 40;

/// How many characters of white space are compared with the end of what is owed.
pub(super) const ENDS: usize = 64;

/// How much of a text tells how it is written, in characters.
const ENOUGH: usize = 300;

/// One in so many words is a good part.
const SHARE: usize = 6;
