//! What an anchored seam makes of continuations, case by case.

use super::*;

/// The text that was delivered, the pieces of the continuation, what of them is new and how it was decided.
type Row = (&'static str, &'static [&'static str], Result<(&'static str, &'static str), Rejected>);

fn check(rows: &[Row]) {
    for (delivered, pieces, expected) in rows {
        let expected = expected.map(|(new, how)| (new.to_owned(), how));
        assert_eq!(anchored(delivered, pieces.iter().copied()), expected, "{delivered:?} + {pieces:?}");
        let text = pieces.concat();
        assert_eq!(anchored(delivered, [&*text]), expected, "{delivered:?} + {text:?} whole");
        assert_eq!(anchored(delivered, letters(&text)), expected, "{delivered:?} + {text:?} by letters");
    }
}

/// A delivered text whose anchor is "walked along the river and looked for a".
const RIVER: &str = "Early in the morning she walked along the river and looked for a";
const ANCHOR: &str = "walked along the river and looked for a";

#[test]
fn the_anchor() {
    assert_eq!(Anchor::of(RIVER).text, ANCHOR);
    check(&[
        ("The quick", &["The quick brown"], Ok((" brown", "anchor"))),
        ("The quick", &["The", " qui", "ck", " brown"], Ok((" brown", "anchor"))),
        ("The quick", &[" The quick brown"], Ok((" brown", "anchor"))),
        ("The quick", &["\n\nThe quick brown"], Ok((" brown", "anchor"))),
        ("One, two, ", &["One, two, three"], Ok(("three", "anchor"))),
        ("One, two, ", &["One, two,three"], Ok(("three", "anchor"))),
        ("One, two, ", &["One, two,", " ", " three"], Ok((" three", "anchor"))),
        ("One, two,\n\n", &["One, two,\n\nthree"], Ok(("three", "anchor"))),
        ("One, two,\n\n", &["One, two,\nthree"], Ok(("three", "anchor"))),
        ("One, two,\n", &["One, two,\n\nthree"], Ok(("\nthree", "anchor"))),
        ("One", &["One two."], Ok((" two.", "anchor"))),
        ("One", &["Onerous"], Ok(("rous", "anchor"))),
        ("I", &["It is"], Ok(("t is", "anchor"))),
        (RIVER, &["walked along the river and looked for a boat."], Ok((" boat.", "anchor"))),
        (RIVER, &["walked along the river and looked for another"], Ok(("nother", "anchor"))),
        // White space doubled, missing, or a new line instead.
        (RIVER, &["walked  along the river\nand looked   for a boat."], Ok((" boat.", "anchor"))),
        (RIVER, &["walked along theriver and looked for a boat."], Ok((" boat.", "anchor"))),
        (RIVER, &["walked along the river and look ed for a boat."], Ok((" boat.", "anchor"))),
        // Nothing new.
        (RIVER, &["walked along the river and looked for a"], Ok(("", "anchor"))),
        (RIVER, &["walked along the river"], Ok(("", "nothing"))),
        (RIVER, &["looked for a"], Ok(("", "overlap"))),
        (RIVER, &["a"], Ok(("", "nothing"))),
        (RIVER, &[], Ok(("", "nothing"))),
        (RIVER, &[""], Ok(("", "nothing"))),
    ]);
}

#[test]
fn quotes_and_spellings() {
    check(&[
        ("He said \"don't\" and", &["He said “don’t” and left"], Ok((" left", "anchor"))),
        ("He said “don’t” and", &["He said \"don't\" and left"], Ok((" left", "anchor"))),
        ("He said \"yes", &["He said “yes” and"], Ok(("” and", "anchor"))),
        ("the cafe\u{301} on the", &["the caf\u{e9} on the corner"], Ok((" corner", "anchor"))),
        ("the caf\u{e9} on the", &["the cafe\u{301} on the corner"], Ok((" corner", "anchor"))),
        // The mark is what is new.
        ("the cafe", &["the cafe\u{301} on"], Ok(("\u{301} on", "anchor"))),
        ("\"the\" cafe", &["“the” caf\u{e9} on"], Ok(("\u{301} on", "anchor"))),
        // Marks in another order are the same letter.
        ("“Ti\u{ea}\u{323}ng", &["\"Ti\u{1ec7}ng Vi"], Ok((" Vi", "anchor"))),
        ("\u{200f}שלום עולם", &["שלום\u{200e} עולם ועוד"], Ok((" ועוד", "anchor"))),
        ("שלום עולם\u{200f}", &["שלום עולם\u{200f} ועוד"], Ok((" ועוד", "anchor"))),
    ]);
}

#[test]
fn scripts_and_emoji() {
    check(&[
        ("今天天气很好，我们", &["今天天气很好，我们去公园"], Ok(("去公园", "anchor"))),
        ("今天天气很好，我们", &["天气很好，我们去公园"], Ok(("去公园", "overlap"))),
        ("今天天气很好，我们", &["我们去公园"], Ok(("我们去公园", "verbatim"))),
        ("今天天气很好，我们", &["好，我们去公园"], Ok(("去公园", "overlap"))),
        ("今天天气很好，我们", &["去公园"], Ok(("去公园", "verbatim"))),
        ("カタカナを使", &["う"], Ok(("う", "verbatim"))),
        ("ภาษาไทย", &["ไม่มี"], Ok(("ไม่มี", "verbatim"))),
        ("使用 Python 编程", &["使用Python编程语言"], Ok(("语言", "anchor"))),
        ("한국어 문", &["장"], Ok(("장", "guess"))),
        ("Look: 👩\u{200d}👩\u{200d}👧", &["Look: 👩\u{200d}👩\u{200d}👧 and"], Ok((" and", "anchor"))),
        ("Look: 👩", &["Look: 👩\u{200d}👧 and"], Ok(("\u{200d}👧 and", "anchor"))),
        ("Flags 🇩🇪", &["Flags 🇩🇪🇫🇷"], Ok(("🇫🇷", "anchor"))),
        ("Go 👍", &["\u{1f3fd}!"], Ok(("\u{1f3fd}!", "verbatim"))),
    ]);
}

#[test]
fn tails_and_overlaps() {
    check(&[
        (RIVER, &["river and looked for a boat."], Ok((" boat.", "overlap"))),
        (RIVER, &["and looked for a boat."], Ok((" boat.", "overlap"))),
        (RIVER, &["looked for a boat."], Ok((" boat.", "overlap"))),
        (RIVER, &["for a boat."], Ok((" for a boat.", "guess"))),
        // More than was asked for.
        (RIVER, &["in the morning she walked along the river and looked for a boat."], Ok((" boat.", "overlap"))),
        (RIVER, &["looked for", " a", " boat."], Ok((" boat.", "overlap"))),
        (RIVER, &["looked  for\na boat."], Ok((" boat.", "overlap"))),
        // Seven are too few.
        ("A word, then 1234567", &["1234567 and"], Ok(("1234567 and", "guess"))),
        ("A word, then 12345678", &["12345678 and"], Ok((" and", "overlap"))),
        // A line of dashes repeats nothing.
        ("| a | b |\n|-----------", &["---|----|"], Ok(("---|----|", "verbatim"))),
        ("A rule:\n----------", &["----------\nText"], Ok(("----------\nText", "verbatim"))),
        // A letter that was cut off its marks gets them.
        ("We looked at the 👩", &["looked at the 👩\u{200d}👧 there"], Ok(("\u{200d}👧 there", "overlap"))),
        ("We looked at the cafe", &["at the cafe\u{301} there"], Ok(("\u{301} there", "overlap"))),
    ]);
}

#[test]
fn texts_that_repeat_themselves() {
    check(&[
        ("ha ha ha ha", &["ha ha ha ha ha ha"], Ok((" ha ha", "anchor"))),
        ("ha ha ha ha", &[" ha ha"], Ok(("", "nothing"))),
        ("ha ha ha ha", &["ha ha!"], Ok((" ha ha!", "guess"))),
        (
            "ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha",
            &["ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha"],
            // All of it was told again, and then more.
            Ok((" ha ha ha ha ha ha ha ha ha ha", "restart")),
        ),
        (
            "ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha",
            &["ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha and on"],
            Ok((" ha ha ha and on", "anchor")),
        ),
        (
            "No, no, no, no, no, no, no, no, no, no, no, no, no, no, no, ",
            &["no, no, no, no, no, no, no, no, no, no, no, no, yes"],
            Ok(("no, no, yes", "anchor")),
        ),
        ("Row, row, row your", &["Row, row, row your boat"], Ok((" boat", "anchor"))),
    ]);
}

#[test]
fn preambles() {
    check(&[
        (RIVER, &["Sure, continuing:\n\nwalked along the river and looked for a boat."], Ok((" boat.", "preamble"))),
        (RIVER, &["Sure! ", "walked along the river and looked for a boat."], Ok((" boat.", "preamble"))),
        (
            RIVER,
            &["Continuing from where I left off: walked along the river and looked for a boat."],
            Ok((" boat.", "preamble")),
        ),
        (RIVER, &["Of course. Here is the rest of my reply:\n\nlooked for a boat."], Ok((" boat.", "preamble"))),
        (
            RIVER,
            &["Here’s the continuation: “walked along the river and looked for a boat."],
            Ok((" boat.", "preamble")),
        ),
        (RIVER, &["(continued) ...walked along the river and looked for a boat."], Ok((" boat.", "preamble"))),
        (RIVER, &["(continued) The boat was gone."], Err(Rejected::Preamble)),
        (RIVER, &["...walked along the river and looked for a boat."], Ok((" boat.", "preamble"))),
        (RIVER, &["... looked for a boat."], Ok((" boat.", "preamble"))),
        (RIVER, &["… and looked for a boat."], Ok((" boat.", "preamble"))),
        (RIVER, &["...and then she slept."], Ok(("...and then she slept.", "verbatim"))),
        (RIVER, &["**Continuing:** the boat was gone."], Ok(("**Continuing:** the boat was gone.", "verbatim"))),
        // With the marks that it was quoted in.
        (RIVER, &["«walked along the river and looked for a» boat."], Ok((" boat.", "anchor"))),
        (RIVER, &["«walked along the river and looked for a boat."], Ok((" boat.", "preamble"))),
        // A refrain is no preamble.
        (
            "the fish and chips; the fish and chips",
            &[", the fish and chips; the fish and chips"],
            Ok((", the fish and chips; the fish and chips", "verbatim")),
        ),
        (
            "It rains! And rains. And it rains",
            &[". And rains. And it rains"],
            Ok((". And rains. And it rains", "verbatim")),
        ),
        (
            RIVER,
            &["Okay, picking up where we left off... walked along the river and looked for a boat."],
            Ok((" boat.", "preamble")),
        ),
        // Without the anchor it fits nowhere.
        (RIVER, &["Sure, continuing: the boat was gone."], Err(Rejected::Preamble)),
        (RIVER, &["Continuing from where I left off:", "\n\n", "The boat was gone."], Err(Rejected::Preamble)),
        (RIVER, &["Sure, continuing:"], Err(Rejected::Preamble)),
        // All that was told is proof enough, however short it is.
        ("One", &["Sure, continuing: One two"], Ok((" two", "preamble"))),
        ("One", &["Sure, continuing: two"], Err(Rejected::Preamble)),
        // Words in another script than the text's are no part of it, whatever they say.
        ("今天天气很好，我们去公园", &["Happy to go on with it: 今天天气很好，我们去公园玩"], Ok(("玩", "preamble"))),
        ("今天天气很好，我们去公园", &["Happy to go on with it: 玩"], Err(Rejected::Preamble)),
        ("今天天气很好，我们去公园", &["Happy to go on with it!"], Err(Rejected::Preamble)),
        ("我们使用", &["Python 编程"], Ok(("Python 编程", "verbatim"))),
        ("我们使用", &["Visual Studio 编程"], Ok(("Visual Studio 编程", "verbatim"))),
        // What only looks like one is the text itself.
        ("The river flows,", &[" continuing to the sea."], Ok((" continuing to the sea.", "verbatim"))),
        ("The work is ", &["continuing."], Ok(("continuing.", "verbatim"))),
        ("The work is ", &["continuing: nobody stops."], Ok(("continuing: nobody stops.", "verbatim"))),
        ("The work stops. ", &["Continuing, she said, is vain."], Ok(("Continuing, she said, is vain.", "verbatim"))),
        (RIVER, &["Continuing... ", "walked along the river and looked for a boat."], Ok((" boat.", "preamble"))),
        (RIVER, &["Continuing - walked along the river and looked for a boat."], Ok((" boat.", "preamble"))),
        ("The river flows. ", &["Continuing south, it"], Ok(("Continuing south, it", "verbatim"))),
        ("Can you? ", &["Sure, I can."], Ok(("Sure, I can.", "verbatim"))),
        ("Can you? ", &["Sure"], Ok(("Sure", "verbatim"))),
        ("Can you? ", &["Surely not."], Ok(("Surely not.", "verbatim"))),
    ]);
}

#[test]
fn restarts() {
    const LONG: &str =
        "Early in the morning she walked along the river and looked for a boat that would take her to the other side, ";
    check(&[
        (RIVER, &["Early in the morning she walked along the river and looked for a boat."], Ok((" boat.", "restart"))),
        (
            RIVER,
            &["Early in the morning she walked\nalong the river and  looked for a boat."],
            Ok((" boat.", "restart")),
        ),
        (LONG, &[LONG, "where"], Ok(("where", "restart"))),
        (LONG, &["\n", LONG, "\nwhere"], Ok(("\nwhere", "restart"))),
        (
            "\n\nEarly in the morning she walked along the river and saw",
            &["Early in the morning she walked along the river and saw it"],
            Ok((" it", "restart")),
        ),
        (LONG, &["Early in the morning she walked along the road"], Err(Rejected::Diverged)),
        (LONG, &["Early in the morning she"], Err(Rejected::Diverged)),
        (LONG, &["Early in the morning he"], Err(Rejected::Diverged)),
        // Some words in common are no restart.
        (RIVER, &[" Early in the evening"], Ok((" Early in the evening", "verbatim"))),
        (LONG, &["Early in the evening"], Err(Rejected::Unfit)),
        // It starts with its own anchor: the two readings differ at "boat".
        (
            "walked along the river and looked for a sail, and walked along the river and looked for a",
            &["walked along the river and looked for a boat"],
            Ok((" boat", "anchor")),
        ),
        (
            "walked along the river and looked for a sail, and walked along the river and looked for a",
            &["walked along the river and looked for a sail, and walked along the river and looked for a boat"],
            Ok((" boat", "restart")),
        ),
        (
            "walked along the river and looked for a sail, and walked along the river and looked for a",
            &["walked along the river and looked for a sail"],
            Ok((" sail", "anchor")),
        ),
    ]);
}

#[test]
fn what_is_opened_again() {
    check(&[
        // A fence with the words of the open one.
        (
            "Here it is:\n```python\ndef total(values):\n    return sum(",
            &["```python\ndef total(values):\n    return sum(values)\n"],
            Ok(("values)\n", "block")),
        ),
        (
            "Here it is, as you wanted it to be:\n```python\nimport os\n\n\ndef total(values):\n    result = compute_all(",
            &["```python\n    result = compute_all(values)\n"],
            Ok(("values)\n", "fence")),
        ),
        ("Here it is:\n```python\nimport os\n", &["```python\n", "import sys\n"], Ok(("import sys\n", "fence"))),
        // Another fence, or the one that closes the block.
        ("Here it is:\n```python\nimport os\n", &["```\nThat is all."], Ok(("```\nThat is all.", "verbatim"))),
        ("Here it is:\n```\nimport os\n", &["```\nThat is all."], Ok(("```\nThat is all.", "verbatim"))),
        ("That is all.\n\n", &["```python\nimport os\n"], Ok(("```python\nimport os\n", "verbatim"))),
        // Objects.
        (r#"{"name": "Ann", "age": 4"#, &[r#"{"name": "Ann", "age": 42}"#], Ok(("2}", "anchor"))),
        (
            r#"The result: {"name": "Ann", "city": "Aachen", "street": "Main Street", "age": 4"#,
            &[r#"{"name": "Ann", "city": "Aachen", "street": "Main Street", "age": 42}"#],
            Ok(("2}", "block")),
        ),
        (
            r#"[{"a": 1, "b": "some text"}, {"a": 2, "b": "more text"}, {"a": 3"#,
            &[r#"{"a": 3, "b": "x"}]"#],
            Ok((r#", "b": "x"}]"#, "block")),
        ),
        (r#"The matrix, row by row and column by column: ["#, &["[1, 2], [3"], Ok(("[1, 2], [3", "verbatim"))),
        (r#"The objects, one after the other: {"list": "#, &[r#"{"a": 1}"#], Ok((r#"{"a": 1}"#, "verbatim"))),
        (
            r#"The result is this: {"name": "Ann", "city": "Aachen", "street": "Main Street", "age": 4"#,
            &[r#"{"name": "Ann", "city": "Berlin"}"#],
            Err(Rejected::Diverged),
        ),
        // Lists.
        (
            "The fruit that we have in the shop today:\n- apples\n- ban",
            &["- bananas\n- figs"],
            Ok(("anas\n- figs", "block")),
        ),
        ("The fruit that we have in the shop today:\n- apples\n- ", &["- bananas"], Ok(("bananas", "block"))),
        ("The fruit that we have in the shop today:\n1. apples\n2. ", &["2. bananas"], Ok(("bananas", "block"))),
        ("The fruit that we have in the shop today:\n- apples\n", &["- bananas"], Ok(("- bananas", "verbatim"))),
        (
            "The fruit that we have in the shop:\n- apples from the orchard\n- bananas\n- ch",
            &["- apples from the orchard\n- bananas\n- cherries"],
            Ok(("erries", "anchor")),
        ),
    ]);
}

#[test]
fn code_is_compared_with_its_indentation() {
    const CODE: &str = "```python\nfor row in table:\n    if row:\n        total += row.value";
    check(&[
        (CODE, &["if row:\n        total += row.value\n        count += 1"], Ok(("\n        count += 1", "anchor"))),
        (CODE, &["table:\n    if row:\n        total += row.value\n    else:"], Ok(("\n    else:", "overlap"))),
        // Other indentation: not the same code, and what follows would not fit.
        (
            CODE,
            &["if row:\n    total += row.value\n    count += 1"],
            Ok(("if row:\n    total += row.value\n    count += 1", "guess")),
        ),
        // Within a line white space is no indentation.
        (CODE, &["if row:\n        total  +=  row.value\n"], Ok(("\n", "anchor"))),
        ("```python\nfoo()\n    ", &["    bar()"], Ok(("bar()", "verbatim"))),
        ("```python\nfoo()\n    ", &["\n    bar()"], Ok(("bar()", "verbatim"))),
    ]);
}

#[test]
fn paragraph_breaks() {
    check(&[
        ("she looked for the quick brown", &["\n\nfox that jumps"], Ok((" fox that jumps", "paragraph"))),
        ("she looked for the quick brown ", &["\n\nfox that jumps"], Ok(("fox that jumps", "paragraph"))),
        ("she looked for the quick brown fox.", &["\n\nThen it"], Ok(("\n\nThen it", "verbatim"))),
        ("she looked for the quick brown", &["\n\nFox"], Ok(("\n\nFox", "verbatim"))),
        ("she looked for the quick brown", &["\nfox"], Ok(("\nfox", "verbatim"))),
        ("she looked\n\n- for the quick brown", &["\n\nfox"], Ok(("\n\nfox", "verbatim"))),
        ("| quick | brown", &["\n\nfox"], Ok(("\n\nfox", "verbatim"))),
        ("```\nquick brown", &["\n\nfox"], Ok(("\n\nfox", "verbatim"))),
        // An anchor shows that it is meant.
        ("the quick brown", &["the quick brown\n\nfox"], Ok(("\n\nfox", "anchor"))),
        ("the end.\n", &["\nthe next"], Ok(("\nthe next", "verbatim"))),
        ("the end.\n\n", &["\n\nthe next"], Ok(("the next", "verbatim"))),
    ]);
}

#[test]
fn no_alignment() {
    check(&[
        ("One", &[" two."], Ok((" two.", "verbatim"))),
        ("One ", &["two."], Ok(("two.", "verbatim"))),
        ("One ", &[" two."], Ok(("two.", "verbatim"))),
        ("One", &[", two."], Ok((", two.", "verbatim"))),
        ("One (", &["two)"], Ok(("two)", "verbatim"))),
        ("One", &["two."], Ok((" two.", "guess"))),
        ("word_48 word_49", &["word_50"], Ok((" word_50", "guess"))),
        ("It is called str", &["ong"], Ok(("ong", "guess"))),
        ("The year is 20", &["26"], Ok(("26", "guess"))),
        ("See https://example.org/pa", &["th"], Ok(("th", "guess"))),
        ("conti", &["nua", "tion"], Ok((" nuation", "guess"))),
        ("cafe\u{301}", &["s"], Ok((" s", "guess"))),
        ("cafe", &["\u{301}s"], Ok(("\u{301}s", "verbatim"))),
        ("One", &["\n"], Ok(("\n", "verbatim"))),
        ("One", &[" "], Ok((" ", "verbatim"))),
        (" \n", &["Any text"], Ok(("Any text", "trimmed"))),
    ]);
}

#[test]
fn sentences_and_commas_get_their_space() {
    check(&[
        ("Hello there. I am your assistant.", &["How can I help?"], Ok((" How can I help?", "sentence"))),
        ("Is it?", &["yes, it is"], Ok((" yes, it is", "sentence"))),
        ("One, two,", &["three"], Ok((" three", "sentence"))),
        ("(see below)", &["and on"], Ok((" and on", "sentence"))),
        ("She said \"no.\"", &["Then she left"], Ok((" Then she left", "sentence"))),
        ("Привет.", &["Как дела?"], Ok((" Как дела?", "sentence"))),
        // Not where none belongs.
        ("The number pi is about 3.", &["14159"], Ok(("14159", "verbatim"))),
        ("It costs 1,", &["000 euros"], Ok(("000 euros", "verbatim"))),
        ("Open main.", &["rs"], Ok(("rs", "verbatim"))),
        ("See https://example.", &["Org"], Ok(("Org", "verbatim"))),
        ("我们去公园。", &["然后"], Ok(("然后", "verbatim"))),
        ("```js\nconsole.", &["Log(1)"], Ok(("Log(1)", "verbatim"))),
        ("She said \"", &["Then"], Ok(("Then", "verbatim"))),
    ]);
}

#[test]
fn what_is_no_continuation() {
    const SALT: &str = "It needs flour, salt, and water - which";
    for opener in [
        "I'm sorry for the confusion. I'll try to go on.",
        "I’m sorry about that.",
        "I apologize for the interruption.",
        "It seems your connection dropped.",
        "The last fragment word is \"which\".",
        "I'll try to continue from there.",
        "You asked me to repeat it.",
        "I understand your request.",
        "Es tut mir leid für die Verwirrung.",
        "Entschuldigung, ich fahre fort.",
        "Hier ist die Fortsetzung:",
        "Je suis désolé pour la confusion.",
        "Voici la suite :",
        "Désolé pour cela.",
        "Lo siento por la confusión.",
        "Aquí está la continuación:",
        "Pido disculpas.",
        "Desculpe pela confusão.",
        "抱歉，我会继续。",
        "对不起，让我重新开始。",
        "申し訳ありませんが、",
        "すみません、続けます。",
        "Извините за путаницу.",
    ] {
        for delivered in [SALT, "It needs flour. ", "We bake bread.\n\n"] {
            let outcome = anchored(delivered, [opener]);
            assert!(outcome.is_err(), "{delivered:?} + {opener:?}: {outcome:?}");
            assert_eq!(anchored(delivered, letters(opener)), outcome, "{delivered:?} + {opener:?} by letters");
        }
    }
    check(&[
        (SALT, &["Bread is old."], Err(Rejected::Unfit)),
        ("It needs flour and ", &["Bread is old."], Err(Rejected::Unfit)),
        // What begins with a space is no message of its own.
        (SALT, &[" Bread is old."], Ok((" Bread is old.", "verbatim"))),
        // Where capitals are common within sentences they break nothing.
        ("Der Hund und die Katze sahen das ", &["Haus am Meer"], Ok(("Haus am Meer", "verbatim"))),
        ("It needs flour.", &[" Bread is old."], Ok((" Bread is old.", "verbatim"))),
        ("## Bread and what it needs", &["\n\nFlour"], Ok(("\n\nFlour", "verbatim"))),
        // In the lower case it may be the rest of a sentence.
        ("Many thanks and ", &["the fragment is yours"], Ok(("the fragment is yours", "verbatim"))),
    ]);
}

#[test]
fn refusals() {
    check(&[
        (RIVER, &["I'm sorry, but I can't continue with this."], Err(Rejected::Refused)),
        (RIVER, &["I’m sorry, but I can’t continue", " with"], Err(Rejected::Refused)),
        (RIVER, &["Sorry, I can't continue that."], Err(Rejected::Refused)),
        (RIVER, &["It looks like your message was cut off."], Err(Rejected::Refused)),
        (RIVER, &["I don't have access to the previous conversation"], Err(Rejected::Refused)),
        // It may be part of the text.
        ("She wrote: \"", &["I'm sorry, but I can't continue"], Ok(("I'm sorry, but I can't continue", "verbatim"))),
        (
            "It only says 'I'm sorry, but I can't continue', over and over. ",
            &["I'm sorry, but I can't continue"],
            Ok(("I'm sorry, but I can't continue", "verbatim")),
        ),
        ("He said. ", &["I'm sorry, but I can't see it."], Ok(("I'm sorry, but I can't see it.", "verbatim"))),
        ("I'm sorry, but I can't continue", &["I'm sorry, but I can't continue."], Ok((".", "anchor"))),
    ]);
}
