//! Continuations of every kind, cut into every kind of piece.
#![expect(clippy::unwrap_used, reason = "a test's panic is its report")]

use super::*;
mod nasty;
mod rows;

const WINDOW: usize = 240;

/// What came out of a seam: the new text with how it was decided, or why it was refused.
type Outcome = Result<(String, &'static str), Rejected>;

/// Sends `pieces` through `seam`, looking after what must hold at every step.
fn run<'a>(mut seam: Seam, window: usize, pieces: impl IntoIterator<Item = &'a str>) -> Outcome {
    let mut new = String::new();
    let mut guessed = false;
    let mut take = |join: Join, undecided: bool| match join {
        Join::Held => {}
        Join::Text(text) => {
            assert!(!text.is_empty());
            new.push_str(&text);
        }
        Join::Guess(text) => {
            assert!(new.is_empty() && !text.is_empty() && !undecided);
            guessed = true;
            new.push_str(&text);
        }
    };
    let mut said = String::new();
    for piece in pieces {
        said.push_str(piece);
        let join = seam.push(piece)?;
        take(join, seam.is_undecided());
        assert!(seam.held() <= window, "holds {} of {window} of {said:?}", seam.held());
    }
    let join = seam.close()?;
    take(join, seam.is_undecided());
    assert!(!seam.is_undecided() && seam.held() == 0);
    assert_eq!(seam.decided() == "guess", guessed);
    Ok((new, seam.decided()))
}

fn anchored<'a>(delivered: &str, pieces: impl IntoIterator<Item = &'a str>) -> Outcome {
    run(Seam::anchored(delivered.into(), &Anchor::of(delivered), WINDOW), WINDOW, pieces)
}

/// The text in pieces of one character.
fn letters(text: &str) -> impl Iterator<Item = &str> {
    text.char_indices().map(|(at, ch)| &text[at..at + ch.len_utf8()])
}

/// Pieces of varying length, from a seed.
fn cut(text: &str, mut seed: u64) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let count = 1 + (seed >> 33) as usize % 9;
        let at = rest.char_indices().nth(count).map_or(rest.len(), |(at, _)| at);
        let (piece, next) = rest.split_at(at);
        pieces.push(piece);
        rest = next;
    }
    pieces
}

#[test]
fn exact_is_verbatim() {
    for text in ["", " two", "ha ha ha", "The quick", "\n\n", "I'm sorry, but I can't continue"] {
        assert_eq!(run(Seam::exact(), 0, letters(text)), Ok((text.to_owned(), "exact")));
    }
    assert!(!Seam::exact().is_undecided());
}

#[test]
fn trimmed_drops_the_white_space_that_is_owed() {
    for (owed, text, new) in [
        (" ", " three.", "three."),
        (" ", "three.", "three."),
        (" ", "  three.", " three."),
        ("\n\n", "\n\nNext", "Next"),
        ("\n\n", "\nNext", "Next"),
        ("\n\n", "Next", "Next"),
        ("\n", "\n\nNext", "\nNext"),
        ("\n    ", "\n    b()", "b()"),
        ("\n    ", "    b()", "b()"),
        ("\n    ", "\n        b()", "    b()"),
        ("\n\n    ", "\n    b()", "b()"),
        ("\n    ", "        b()", "    b()"),
        (" ", "\n", "\n"),
        (" ", " ", ""),
        (" ", "", ""),
        ("", " x", " x"),
        ("\u{3000}", "\u{3000}世界", "世界"),
        (" ", "\u{a0}x", "\u{a0}x"),
        (" ", "ha ha", "ha ha"),
    ] {
        assert_eq!(run(Seam::trimmed(owed), owed.len(), [text]), Ok((new.to_owned(), "trimmed")), "{owed:?} {text:?}");
        assert_eq!(run(Seam::trimmed(owed), owed.len(), letters(text)), Ok((new.to_owned(), "trimmed")));
    }
}

#[test]
fn echo_drops_what_is_repeated() {
    let long = "The quick brown fox jumps over the lazy dog. ".repeat(40);
    for (delivered, text, new) in [
        ("The quick", "The quick brown", Ok((" brown", "echo"))),
        ("The quick ", "The quick brown", Ok(("brown", "echo"))),
        ("The quick ", "The quick  brown", Ok((" brown", "echo"))),
        ("The quick ", " The quick brown", Ok(("brown", "echo"))),
        ("ha ha", "ha ha ha ha", Ok((" ha ha", "echo"))),
        ("One", "One", Ok(("", "echo"))),
        ("One two", "One", Ok(("", "nothing"))),
        // It does not echo after all.
        ("The quick", " brown fox", Ok((" brown fox", "verbatim"))),
        ("The quick ", " brown fox", Ok(("brown fox", "verbatim"))),
        ("The quick brown fox jumps", "The quick brown cat", Err(Rejected::Diverged)),
        ("", "new", Ok(("new", "trimmed"))),
        (" \n", " \nnew", Ok(("new", "trimmed"))),
        (&long, &format!("{long}The end."), Ok(("The end.", "echo"))),
    ] {
        let expected = new.map(|(new, how)| (new.to_owned(), how));
        assert_eq!(run(Seam::echo(delivered.into()), 64, [text]), expected, "{delivered:?} {text:?}");
        assert_eq!(run(Seam::echo(delivered.into()), 64, letters(text)), expected, "{delivered:?} {text:?}");
    }
}

#[test]
fn a_long_restart_is_not_held() {
    let delivered: String = (0..5000).map(|n| format!("Sentence number {n} of a long answer. ")).collect();
    let mut seam = Seam::anchored(delivered.as_str().into(), &Anchor::of(&delivered), WINDOW);
    let mut most = 0;
    for piece in cut(&delivered, 1) {
        assert_eq!(seam.push(piece), Ok(Join::Held));
        most = most.max(seam.held());
    }
    assert!(most < 64, "held {most}");
    assert_eq!(seam.push("And on"), Ok(Join::Text("And on".to_owned())));
    assert_eq!(seam.decided(), "restart");
}

#[test]
fn a_long_repetition_from_the_middle_is_not_held() {
    let sentences: String = (0..200).map(|n| format!("Sentence number {n} of a long answer. ")).collect();
    let delivered = format!("This is how it begins. {sentences}");
    let from = delivered.find("Sentence number 150").unwrap();
    let again = format!("{}And on", &delivered[from..]);
    assert_eq!(anchored(&delivered, cut(&again, 1)), Ok(("And on".to_owned(), "overlap")));
    let other = format!("{}And on", &delivered[from..delivered.len() - 60]);
    assert_eq!(anchored(&delivered, cut(&other, 1)), Err(Rejected::Diverged));
    assert_eq!(anchored(&delivered, cut(&delivered[from..delivered.len() - 60], 1)), Err(Rejected::Diverged));
    // A sentence that is said again, and then others.
    let once = "Sentence number 150 of a long answer. But this is new.";
    assert_eq!(anchored(&delivered, cut(once, 1)), Ok((once.to_owned(), "verbatim")));
}

#[test]
fn nothing_is_held_that_cannot_be_known() {
    let delivered = "The committee met on Tuesday and discussed the budget for the next year.";
    let mut seam = Seam::anchored(delivered.into(), &Anchor::of(delivered), WINDOW);
    assert_eq!(seam.push(" It found no "), Ok(Join::Text(" It found no ".to_owned())));
    assert!(!seam.is_undecided());
    // As soon as the anchor is through, all that follows is new.
    let mut seam = Seam::anchored(delivered.into(), &Anchor::of(delivered), WINDOW);
    assert_eq!(seam.push(&Anchor::of(delivered).text), Ok(Join::Held));
    assert!(!seam.is_undecided());
    assert_eq!(seam.push(" I"), Ok(Join::Text(" I".to_owned())));
    assert_eq!(seam.decided(), "anchor");
}

#[test]
fn a_window_that_fills_forces_a_decision() {
    let delivered = "Some words that were delivered before";
    let flood = " ".repeat(10_000);
    let mut seam = Seam::anchored(delivered.into(), &Anchor::of(delivered), 100);
    let Join::Text(new) = seam.push(&flood).unwrap() else { unreachable!("the window is full") };
    assert_eq!(new, flood);
    // An anchor and a restart that both fit, longer than the window: the restart.
    let refrain = "and so the story goes on and on for ever";
    let verses: String = (0..40).map(|n| format!("verse {n} tells it; ")).collect();
    let delivered = format!("{refrain}, {verses}{refrain}");
    assert_eq!(Anchor::of(&delivered).text, refrain);
    assert_eq!(anchored(&delivered, [&*format!("{delivered}, again")]), Ok((", again".to_owned(), "restart")));
    // If they differ within the window, the anchor.
    let other = format!("{refrain}, verse 0 tells it; verse 1 does not");
    assert_eq!(anchored(&delivered, [&*other]), Ok((", verse 0 tells it; verse 1 does not".to_owned(), "anchor")));
}

#[test]
fn the_cost_is_linear() {
    let steps = |delivered: &str, text: &str| {
        let mut seam = Seam::anchored(delivered.into(), &Anchor::of(delivered), WINDOW);
        for piece in cut(text, 3) {
            if seam.push(piece).is_err() {
                break;
            }
        }
        seam.steps()
    };
    let sentences = |count: usize| -> String { (0..count).map(|n| format!("Sentence {n} says a thing. ")).collect() };
    for unit in ["ha ", "a", "\n", "- item\n", "世", "e\u{301}", "{", "I'm ", "```\n"] {
        let [small, large] = [2_000, 20_000].map(|count| {
            let delivered = unit.repeat(count);
            // A restart, an obedient one, one that shares nothing.
            let again = format!("{delivered}{}", unit.repeat(count));
            steps(&delivered, &again).max(steps(&delivered, &unit.repeat(count / 2))).max(steps(&delivered, "x y z"))
        });
        assert!(large <= 11 * small + 300_000, "{unit:?}: {small} to {large}");
        assert!(large <= 8 * 40_000 * unit.chars().count() as u64 + 300_000, "{unit:?}: {large}");
    }
    let delivered = sentences(5_000);
    let restart = steps(&delivered, &format!("{delivered}more"));
    assert!(restart <= 5 * delivered.len() as u64, "{restart} for {}", delivered.len());
    assert!(steps(&delivered, "Quite another text, without any relation.") <= 10_000);
}
