//! Hostile JSON of any size: what a reader meets from somebody who means it to be dear.

/// A shape of JSON value, and how to make one of about so many bytes.
pub(crate) type Shape = (&'static str, fn(usize) -> String);

/// Shapes that fit wherever a value may stand.
pub(crate) const SHAPES: [Shape; 22] = [
    ("deep lists", |n| nested("[", "]", n.min(200))),
    ("deep objects", |n| format!("{}1{}", "{\"a\":".repeat(n.min(500) / 6), "}".repeat(n.min(500) / 6))),
    ("lists that never end", |n| "[".repeat(n)),
    ("empty lists", |n| list(n, |_| "[]".to_owned())),
    ("empty objects", |n| list(n, |_| "{}".to_owned())),
    ("lists of lists", |n| list(n, |_| "[[],[[]],[1]]".to_owned())),
    ("objects of one field", |n| list(n, |_| "{\"type\":\"text\",\"text\":\"a\"}".to_owned())),
    ("nulls", |n| list(n, |_| "null".to_owned())),
    ("many names", |n| object(n, |at| format!("\"k{at}\":0"))),
    ("one name many times", |n| object(n, |_| "\"type\":\"x\"".to_owned())),
    ("names of lists", |n| object(n, |at| format!("\"{at}\":[{{}}]"))),
    ("a long text", |n| text(&"a".repeat(n))),
    ("a text of wide letters", |n| text(&"世".repeat(n / 3))),
    ("a text of escapes", |n| text(&"\\u0041".repeat(n / 6))),
    ("a text of high halves", |n| text(&"\\ud83d".repeat(n / 6))),
    ("a text of low halves and letters", |n| text(&"\\ude00a".repeat(n / 7))),
    ("a text of backslashes", |n| text(&"\\\\".repeat(n / 2))),
    ("a text of blanks", |n| text(&" ".repeat(n))),
    ("a text of line breaks", |n| text(&"\\n".repeat(n / 2))),
    ("a number of many digits", |n| "7".repeat(n)),
    ("many large numbers", |n| list(n, |_| "1e308".to_owned())),
    ("texts that grow", growing),
];

/// A list of about `n` bytes.
pub(crate) fn list(n: usize, item: impl Fn(usize) -> String) -> String {
    format!("[{}]", joined(n, item))
}

/// An object of about `n` bytes.
pub(crate) fn object(n: usize, field: impl Fn(usize) -> String) -> String {
    format!("{{{}}}", joined(n, field))
}

fn text(letters: &str) -> String {
    format!("\"{letters}\"")
}

fn nested(open: &str, close: &str, n: usize) -> String {
    format!("{}{}", open.repeat(n / 2), close.repeat(n / 2))
}

/// Items as long as their place says, up to a hundred letters.
fn growing(n: usize) -> String {
    let items: Vec<String> = (0..n / 53).map(|at| text(&"a".repeat(at % 100))).collect();
    format!("[{}]", items.join(","))
}

/// Items until there are `n` bytes of them. How many there are is the same share of `n` for any `n`, so that what grows
/// by doubling is not blamed for it.
fn joined(n: usize, item: impl Fn(usize) -> String) -> String {
    let typical = item(n / 200).len() + 1;
    let count = (n / typical).max(1);
    let mut all = String::with_capacity(n + typical);
    for at in 0..count {
        if at > 0 {
            all.push(',');
        }
        all.push_str(&item(at));
    }
    all
}
