//! What must hold of any text, tried on texts that are made to be difficult.

use super::*;
use unicode_normalization::char::decompose_canonical;

const PIECES: &[&str] = &[
    "a",
    "b",
    "the ",
    "ha ",
    "ha",
    " ",
    "  ",
    "\n",
    "\n\n",
    "\n    ",
    "\t",
    "\u{a0}",
    "\u{3000}",
    "\"",
    "'",
    "“",
    "’",
    "世",
    "界",
    "カ",
    "ไท",
    "한",
    "e\u{301}",
    "\u{e9}",
    "\u{301}",
    "\u{323}",
    "👩\u{200d}👧",
    "👍\u{1f3fd}",
    "🇩🇪",
    "\u{200e}",
    "\u{200f}",
    "```",
    "```python\n",
    "```\n",
    "- ",
    "1. ",
    "{",
    "}",
    "[",
    "]",
    "{\"a\": ",
    "Sure, ",
    "continuing: ",
    "I'm sorry, but I can't continue",
    ".",
    ", ",
    ":",
    "|",
    "\\",
    "walked along the river",
    "and looked for a boat",
    "\u{fe0f}",
    "\u{200d}",
    "क्षि",
    "\r\n",
    "\u{1ec7}",
    "\u{2028}",
];

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides.max(1)
    }

    /// A text of a few words that return.
    fn text(&mut self, most: usize) -> String {
        let words = 1 + self.roll(8);
        let words: Vec<&str> = (0..words).map(|_| PIECES[self.roll(PIECES.len())]).collect();
        let length = self.roll(most);
        (0..length)
            .map(|_| if self.roll(3) == 0 { PIECES[self.roll(PIECES.len())] } else { words[self.roll(words.len())] })
            .collect()
    }

    /// A text cut in two at any character.
    fn turn(&mut self) -> (String, String) {
        let text = self.text(120);
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let at = places[self.roll(places.len())];
        (text[..at].to_owned(), text[at..].to_owned())
    }
}

/// Letters only, apart from their marks, to compare what two texts say.
fn bare(text: &str) -> String {
    let mut bare = String::new();
    for ch in text.chars().filter(|&ch| !ch.is_whitespace() && !crate::turn::script::is_bidi(ch)) {
        decompose_canonical(crate::turn::script::straight(ch), |part| bare.push(part));
    }
    bare
}

/// How many turns are tried; `SEEDS=200000` tries more.
fn turns() -> u64 {
    std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(3_000)
}

/// Runs `check` on many turns with a visible start.
fn each(mut check: impl FnMut(&str, &str, u64)) {
    for seed in 0..turns() {
        let (delivered, rest) = Dice(seed * 7919 + 1).turn();
        if !delivered.trim().is_empty() {
            check(&delivered, &rest, seed);
        }
    }
}

#[test]
fn an_obedient_continuation_is_exact() {
    let mut checked = 0;
    each(|delivered, rest, seed| {
        let anchor = Anchor::of(delivered).text;
        let owed = &delivered[delivered.trim_end().len()..];
        let text = format!("{anchor}{owed}{rest}");
        // A text that starts with its anchor and is then repeated whole could as well be a restart, and is taken for
        // one; the two cannot be told apart.
        if bare(&text).starts_with(&bare(delivered)) && bare(&anchor) != bare(delivered) {
            return;
        }
        checked += 1;
        let expected = Ok((rest.to_owned(), "anchor"));
        let got = anchored(delivered, cut(&text, seed))
            .map(|(new, how)| (new, if how == "restart" { "anchor" } else { how }));
        assert_eq!(got, expected, "{delivered:?} + {text:?}");
    });
    assert!(checked > turns() * 3 / 4, "{checked}");
}

/// A text that goes in circles may be gone on with from its anchor or told again; until all of it was, nothing tells the
/// two apart.
#[test]
fn a_loop_of_the_text_is_gone_on_with_or_told_again_but_never_told_twice() {
    for unit in ["ha ", "no, no, ", "世界", "- item\n", "e\u{301}", "0", "la la la, "] {
        for count in 1..60 {
            let delivered = unit.repeat(count);
            let owed = &delivered[delivered.trim_end().len()..];
            for more in 0..40 {
                let rest = format!("{}!", unit.repeat(more));
                let text = format!("{}{owed}{rest}", Anchor::of(&delivered).text);
                let got = anchored(&delivered, cut(&text, more as u64)).map(|(new, _)| new);
                let place = || format!("{count} times {unit:?}, {more} more");
                if let Some(after) = text.strip_prefix(&*delivered) {
                    assert_eq!(got.as_deref(), Ok(after), "{}", place());
                } else if text.chars().count() <= WINDOW {
                    assert_eq!(got.as_deref(), Ok(&*rest), "{}", place());
                } else {
                    // Too much was told again to be held: that is not told twice, whatever it was.
                    assert!(got.is_err() || got.is_ok_and(|new| rest.ends_with(&new)), "{}", place());
                }
            }
        }
    }
}

#[test]
fn a_restart_is_exact() {
    let mut checked = 0;
    each(|delivered, rest, seed| {
        let text = format!("{delivered}{rest}");
        checked += 1;
        let (new, _) = anchored(delivered, cut(&text, seed)).unwrap();
        assert_eq!(new, rest, "{delivered:?} + {text:?}");
    });
    assert!(checked > turns() * 3 / 4, "{checked}");
}

#[test]
fn an_echo_is_exact() {
    each(|delivered, rest, seed| {
        let text = format!("{delivered}{rest}");
        let (new, _) = run(Seam::echo(delivered.into()), 64, cut(&text, seed)).unwrap();
        assert_eq!(new, rest, "{delivered:?}");
        // The target was given the text without the white space at its end.
        let owed = &delivered[delivered.trim_end().len()..];
        if !rest.starts_with(char::is_whitespace) {
            let text = format!("{}{rest}", delivered.trim_end());
            let (new, _) = run(Seam::echo(delivered.into()), 64, cut(&text, seed)).unwrap();
            assert_eq!(new, rest, "{delivered:?} without {owed:?}");
        }
    });
}

#[test]
fn a_trimmed_continuation_is_exact() {
    each(|delivered, rest, seed| {
        let owed = &delivered[delivered.trim_end().len()..];
        let text = format!("{owed}{rest}");
        let (new, _) = run(Seam::trimmed(owed), owed.len(), cut(&text, seed)).unwrap();
        assert_eq!(new, rest, "{owed:?}");
        if !rest.starts_with(char::is_whitespace) {
            let (new, _) = run(Seam::trimmed(owed), owed.len(), cut(rest, seed)).unwrap();
            assert_eq!(new, rest, "{owed:?}");
        }
        assert_eq!(run(Seam::exact(), 0, cut(rest, seed)), Ok((rest.to_owned(), "exact")));
    });
}

#[test]
fn how_it_is_cut_changes_nothing_and_the_window_holds() {
    for seed in 0..turns() {
        let mut dice = Dice(seed * 104_729 + 5);
        let (delivered, rest) = dice.turn();
        let other = dice.text(60);
        let text = match dice.roll(5) {
            0 => format!("{}{rest}", Anchor::of(&delivered).text),
            1 => format!("{delivered}{other}"),
            2 => format!("Sure, continuing: {}{other}", Anchor::of(&delivered).text),
            3 => {
                let places: Vec<usize> = delivered.char_indices().map(|(at, _)| at).chain([delivered.len()]).collect();
                format!("{}{other}", &delivered[places[dice.roll(places.len())]..])
            }
            _ => other,
        };
        for window in [64, 100, 240] {
            let anchor = Anchor::of(&delivered);
            let room = window.max(2 * anchor.text.chars().count());
            let seam = || Seam::anchored(delivered.as_str().into(), &anchor, window);
            let whole = run(seam(), room, [&*text]);
            assert_eq!(run(seam(), room, letters(&text)), whole, "{delivered:?} + {text:?}");
            assert_eq!(run(seam(), room, cut(&text, seed)), whole, "{delivered:?} + {text:?}");
            // What is new is an end of what came, save a mark split off its letter and a paragraph break that was none.
            if let Ok((new, how)) = whole {
                assert!(bare(&text).ends_with(&bare(&new)), "{delivered:?} + {text:?}: {new:?} by {how}");
            }
        }
    }
}

#[test]
fn spellings_of_the_same_text_make_no_difference() {
    use unicode_normalization::UnicodeNormalization;
    let text = "L’été à Tiệng Việt, “naïve” und Größe: Ångström, 世界 한국 e\u{323}\u{302}";
    for (cut_at, _) in text.char_indices().skip(1).filter(|&(at, _)| crate::turn::script::is_boundary(text, at)) {
        let (delivered, rest) = text.split_at(cut_at);
        let owed = &delivered[delivered.trim_end().len()..];
        for (told, said) in [
            (delivered.nfd().collect::<String>(), delivered.nfc().collect::<String>()),
            (delivered.nfc().collect(), delivered.nfd().collect()),
        ] {
            let straight: String = said.chars().map(crate::turn::script::straight).collect();
            let text = format!("{}{owed}{rest}", straight.trim_end());
            let (new, how) = anchored(&told, letters(&text)).unwrap();
            assert_eq!(new, rest, "{told:?} + {text:?} by {how}");
        }
    }
}

const PROSE: &str = "When the ferry left the harbour, Mira counted eleven gulls on the pier — \"a good omen,\" her \
    grandmother would have said.\n\nBy noon the fog had swallowed every landmark; only bells told the pilot where he \
    was. He didn't curse. He hummed, checked his watch twice, and steered 14° west.\n\n- ropes: 3\n- lanterns: 12\n\n\
    Größere Schiffe warteten draußen. 渡し船は静かに港へ戻った。That night nobody slept, yet everyone dreamed.";

#[test]
fn any_end_that_is_repeated_is_dropped() {
    for (at, _) in PROSE.char_indices().skip(60) {
        let (delivered, rest) = PROSE.split_at(at);
        let told = delivered.trim_end();
        for (from, ch) in told.char_indices() {
            let weight: u32 = told[from..].chars().map(crate::turn::script::weight).sum();
            // Far from the end only what starts at a word counts, and nobody starts with the middle of one.
            let starts = !told[..from].ends_with(char::is_alphanumeric);
            if ch.is_alphanumeric() && weight >= 12 && (starts || told[from..].chars().count() < 200) {
                let text = format!("{}{rest}", &delivered[from..]);
                let (new, how) = anchored(delivered, cut(&text, at as u64)).unwrap();
                assert_eq!(new, rest, "{delivered:?} + {text:?} by {how}");
            }
        }
    }
}

#[test]
fn any_listed_preamble_before_the_anchor_is_dropped() {
    let acknowledged =
        ["Sure, ", "Of course! ", "Okay:\n\n", "Sorry about that. ", "Apologies for the interruption — "];
    let announced = [
        "continuing from where I left off:\n\n",
        "Continuing: ",
        "I'll continue:\n",
        "I’ll pick up right where I left off. ",
        "Here's the rest of the response:\n\n",
        "Here is the continuation:\n\n\"",
        "Let me continue my reply: ...",
        "(continued)\n\n",
    ];
    for (at, _) in PROSE.char_indices().skip(60).step_by(7) {
        let (delivered, rest) = PROSE.split_at(at);
        let anchor = Anchor::of(delivered).text;
        let owed = &delivered[delivered.trim_end().len()..];
        for (yes, so) in acknowledged.iter().flat_map(|yes| announced.map(|so| (*yes, so))).chain([("", "Resuming:\n")])
        {
            let text = format!("{yes}{so}{anchor}{owed}{rest}");
            assert_eq!(anchored(delivered, cut(&text, at as u64)), Ok((rest.to_owned(), "preamble")), "{text:?}");
            let text = format!("{yes}{so}Quite another thing.");
            assert_eq!(anchored(delivered, cut(&text, at as u64)), Err(Rejected::Preamble), "{text:?}");
        }
    }
}

#[test]
fn what_is_not_repeated_is_delivered_whole() {
    for (at, _) in PROSE.char_indices().skip(20) {
        let (delivered, rest) = PROSE.split_at(at);
        if delivered.ends_with(char::is_whitespace) || rest.starts_with("\n\n") {
            continue;
        }
        let (new, how) = anchored(delivered, cut(rest, at as u64)).unwrap();
        // Where a word may be over, the space that a message of its own cannot begin with is put in.
        let new = if how == "guess" { new.trim_start().to_owned() } else { new };
        assert_eq!(new, rest, "{delivered:?} by {how}");
        assert!(matches!(how, "verbatim" | "guess"), "{how}");
        let inside =
            |ch: Option<char>| ch.is_some_and(|ch| ch.is_alphanumeric() && !crate::turn::script::is_spaceless(ch));
        let cut_word = inside(delivered.chars().next_back()) && inside(rest.chars().next());
        assert_eq!(how == "guess", cut_word, "{delivered:?} + {rest:?}");
    }
}
