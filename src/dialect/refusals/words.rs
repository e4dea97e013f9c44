//! Words that are matched by meaning: near each other, outside of quotation marks.

/// A text, ready to be asked what it means.
pub(super) struct Words<'a> {
    text: &'a str,
}

/// Something that a text can mean. All in lower case, with spaces for `_` and `-`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Word {
    /// These words, as they stand.
    Phrase(&'static str),
    /// One of each group, close to one of the first.
    Near(&'static [&'static [&'static str]]),
    /// One of the first, and closely after it one of the second.
    Then(&'static [&'static str], &'static [&'static str]),
    /// One of these.
    Any(&'static [Self]),
    /// The first, and none of the second.
    Not(&'static Self, &'static [&'static str]),
}

// === impl Words ===

impl<'a> Words<'a> {
    /// A text that [`plain`] made.
    pub(super) fn of(text: &'a str) -> Self {
        Self { text }
    }

    /// Whether it means this. Each word is looked for at its first few places only, so the cost is linear in the text.
    pub(super) fn mean(&self, word: &Word) -> bool {
        match word {
            Word::Phrase(phrase) => self.text.contains(phrase),
            Word::Near(groups) => {
                let Some((first, rest)) = groups.split_first() else { return false };
                self.places(first).any(|(from, to)| {
                    let around = self.slice(from.saturating_sub(NEAR), to + NEAR);
                    rest.iter().all(|group| group.iter().any(|word| around.contains(word)))
                })
            }
            Word::Then(first, second) => self.places(first).any(|(_, to)| {
                let after = self.slice(to, to + NEAR);
                second.iter().any(|word| after.contains(word))
            }),
            Word::Any(words) => words.iter().any(|word| self.mean(word)),
            Word::Not(word, others) => self.mean(word) && !others.iter().any(|other| self.text.contains(other)),
        }
    }

    fn places(&self, words: &'static [&'static str]) -> impl Iterator<Item = (usize, usize)> + '_ {
        words
            .iter()
            .flat_map(|word| self.text.match_indices(word).take(PLACES).map(|(at, found)| (at, at + found.len())))
    }

    fn slice(&self, from: usize, to: usize) -> &str {
        let from = self.text.floor_char_boundary(from);
        let to = self.text.floor_char_boundary(to.min(self.text.len()));
        self.text.get(from..to).unwrap_or_default()
    }
}

// === helpers ===

/// The text as words are looked for in it: the first [`MOST`] bytes, in lower case, with spaces for `_` and `-`, and
/// without what stands in quotation marks, which may be the request's own.
pub(super) fn plain(text: &str) -> String {
    let text = &text[..text.floor_char_boundary(MOST)];
    let mut out = String::with_capacity(text.len());
    let mut rest = text.char_indices().peekable();
    let mut before = ' ';
    while let Some((at, c)) = rest.next() {
        let close = match c {
            '`' | '"' => Some(c),
            // An apostrophe stands inside a word.
            '\'' if !before.is_alphanumeric() => Some('\''),
            '“' => Some('”'),
            '‘' => Some('’'),
            '«' => Some('»'),
            '「' => Some('」'),
            _ => None,
        };
        if let Some(close) = close
            && let Some(end) = closing(&text[at + c.len_utf8()..], close)
        {
            let end = at + c.len_utf8() + end;
            while rest.next_if(|(at, _)| *at <= end).is_some() {}
            space(&mut out);
            before = close;
            continue;
        }
        before = c;
        match c {
            '_' | '-' => space(&mut out),
            c if c.is_whitespace() => space(&mut out),
            '’' => out.push('\''),
            c => out.extend(c.to_lowercase()),
        }
    }
    out
}

/// One space is as good as many: words stand as close as they did before what stood between them was left out.
fn space(out: &mut String) {
    if !out.ends_with(' ') {
        out.push(' ');
    }
}

/// Where a quotation ends; a single quote before a letter is an apostrophe.
fn closing(text: &str, close: char) -> Option<usize> {
    if close != '\'' {
        return text.find(close);
    }
    let ends = |at: usize| !text[at + 1..].starts_with(char::is_alphanumeric);
    text.match_indices(close).map(|(at, _)| at).find(|at| ends(*at))
}

/// How many bytes are close.
const NEAR: usize = 72;
/// At how many places of a word is looked.
const PLACES: usize = 8;
/// How much of a message is read for its meaning, in bytes.
const MOST: usize = 4096;

#[cfg(test)]
mod tests {
    use super::{Word, Words, plain};

    #[test]
    fn quotations_are_not_read() {
        for (text, expected) in [
            ("The model `insufficient_quota` is Out-of_date", "the model is out of date"),
            ("say \"rate limit\" and 'api key'.", "say and ."),
            ("the model's limit isn't 'it's own'", "the model's limit isn't "),
            ("an open \"quote goes on", "an open \"quote goes on"),
            ("“Zu lang” 「余额不足」x", " x"),
        ] {
            assert_eq!(plain(text), expected, "{text}");
        }
    }

    #[test]
    fn words_mean_something_near_each_other() {
        let near = Word::Near(&[&["balance"], &["insufficient", "too low"]]);
        static THEN: Word = Word::Then(&["model"], &["not found"]);
        let then = THEN;
        let means = |text: &str, word: &Word| Words::of(text).mean(word);
        assert!(means("insufficient account balance", &near) && means("the balance of x is too low", &near));
        assert!(!means(&format!("insufficient {} balance", "x".repeat(200)), &near));
        assert!(means("the model x was not found", &then) && !means("not found: the model", &then));
        assert!(means("余额 balance 余额 insufficient", &near));
        assert!(!means("model not found at all", &Word::Not(&THEN, &["at all"])));
    }
}
