//! Any delivered text and any continuation: the seam does not panic, how the continuation is cut changes nothing, the
//! window holds, the cost is bounded, and a continuation that obeys is joined exactly.
//!
//! `cargo +nightly fuzz run seam`
#![no_main]

use libfuzzer_sys::fuzz_target;
use segue::turn::resume::Anchor;
use segue::turn::seam::{Join, Rejected, Seam};

const WINDOW: usize = 240;

fn run<'a>(mut seam: Seam, pieces: impl Iterator<Item = &'a str>) -> Result<(String, &'static str), Rejected> {
    let mut new = String::new();
    let mut take = |join: Join| match join {
        Join::Held => {}
        Join::Text(text) | Join::Guess(text) => new.push_str(&text),
    };
    for piece in pieces {
        take(seam.push(piece)?);
        assert!(seam.held() <= WINDOW);
    }
    take(seam.close()?);
    assert!(!seam.is_undecided());
    Ok((new, seam.decided()))
}

fn letters(text: &str) -> impl Iterator<Item = &str> {
    text.char_indices().map(|(at, ch)| &text[at..at + ch.len_utf8()])
}

fuzz_target!(|input: (String, String, String)| {
    let (delivered, rest, other) = input;
    let anchor = Anchor::of(&delivered);
    let anchored = || Seam::anchored(delivered.as_str().into(), &anchor, WINDOW);
    let whole = run(anchored(), std::iter::once(&*other));
    assert_eq!(run(anchored(), letters(&other)), whole);
    if let Ok((new, _)) = whole {
        // A letter may have been taken apart, and a paragraph break become a space.
        assert!(new.len() <= other.len() + 16);
    }

    let owed = &delivered[delivered.trim_end().len()..];
    let obedient = format!("{}{owed}{rest}", anchor.text);
    // Where the continuation could as well be the whole turn again, it is taken for that.
    let bare = |text: &str| -> String { text.chars().filter(|ch| ch.is_alphanumeric()).collect() };
    if !delivered.trim().is_empty() && !bare(&obedient).starts_with(&bare(&delivered)) {
        let (new, _) = run(anchored(), letters(&obedient)).expect("it obeys");
        assert_eq!(new, rest);
    }
    let echoed = format!("{delivered}{rest}");
    let (new, _) = run(Seam::echo(delivered.as_str().into()), letters(&echoed)).expect("it echoes");
    assert_eq!(new, rest);
    let (new, _) = run(Seam::trimmed(owed), letters(&format!("{owed}{rest}"))).expect("it is owed");
    assert_eq!(new, rest);
});
