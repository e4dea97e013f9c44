//! What is played: four turns, what befalls each of them, and what both providers would tell.

use crate::rig::delay::Delay;
use crate::rig::script::{Content, Pace, Script, ToolCall};
use crate::rig::seed::Dice;
use crate::rig::text;
use std::time::Duration;

/// One turn and what befalls it.
#[derive(Debug)]
pub(super) struct Act {
    /// Its name in the result.
    pub(super) name: &'static str,
    /// What the audience reads over it.
    pub(super) title: &'static str,
    /// What there is to see.
    pub(super) program: &'static str,
    /// The model that is asked of both providers, and the level that stands for them.
    pub(super) model: &'static str,
    /// What the client asks.
    pub(super) question: &'static str,
    /// What both providers tell; `|` marks where the first one breaks, unless that is in its call.
    text: &'static str,
    /// The tool call that both make.
    pub(super) call: Option<Call>,
    /// How the first one breaks, in the vocabulary of model names.
    fault: &'static str,
    /// The level's clocks, as they stand in the configuration.
    pub(super) clocks: &'static str,
}

/// A tool call.
#[derive(Debug)]
pub(super) struct Call {
    /// The function.
    pub(super) name: &'static str,
    /// Its arguments, in the fragments in which the first provider tells them.
    pub(super) args: &'static [&'static str],
    /// How many of them it tells before it breaks.
    told: usize,
}

/// How fast everything goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tempo {
    /// Between tokens.
    token: Duration,
    /// For the audience, between two acts.
    pub(super) pause: Duration,
}

/// Which provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The one that is asked first.
    Primary,
    /// The one that goes on.
    Fallback,
}

// === impl Act ===

impl Act {
    /// What both providers tell.
    pub(super) fn text(&self) -> String {
        self.text.replace('|', "")
    }

    /// The primary's name for the model, which says how it breaks.
    pub(super) fn broken(&self) -> String {
        format!("{}+fault-{}@{}", self.model, self.fault, self.at())
    }

    /// The primary falls silent; it does not break.
    pub(super) fn is_silence(&self) -> bool {
        self.fault == "stall"
    }

    /// At which token the primary breaks: pieces of text, the opening of the call, and fragments of its arguments.
    fn at(&self) -> usize {
        match &self.call {
            None => self.text.split('|').next().map_or(0, |before| text::words(before).len()),
            Some(call) => self.pieces(Side::Primary).len() + 1 + call.told,
        }
    }

    /// How a provider behaves that nothing befalls.
    pub(super) fn script(&self, side: Side, tempo: Tempo) -> Script {
        let mut script = Script::of_pieces(self.pieces(side));
        script.content = Content { tools: self.tools(side), ..script.content };
        script.pace = side.pace(tempo);
        script
    }

    /// The text in tokens. No two providers have the same tokens.
    fn pieces(&self, side: Side) -> Vec<String> {
        match side {
            Side::Primary => self.text.split('|').flat_map(text::words).collect(),
            Side::Fallback => text::cut(&self.text(), LONGEST_PIECE, &mut Dice::new(SEED)),
        }
    }

    fn tools(&self, side: Side) -> Vec<ToolCall> {
        let args = |call: &Call| match side {
            Side::Primary => call.args.iter().map(|piece| (*piece).to_owned()).collect(),
            Side::Fallback => text::cut(&call.args.concat(), 2 * LONGEST_PIECE, &mut Dice::new(SEED)),
        };
        let id = match side {
            Side::Primary => "call_first",
            Side::Fallback => "toolu_second",
        };
        let made = |call: &Call| ToolCall { id: id.to_owned(), name: call.name.to_owned(), args: args(call) };
        self.call.iter().map(made).collect()
    }

    /// What the primary had told of its call's arguments after so many tokens.
    pub(super) fn told_of_call(&self, tokens: usize) -> String {
        let before = self.pieces(Side::Primary).len() + 1;
        self.call.iter().flat_map(|call| call.args.iter().take(tokens.saturating_sub(before)).copied()).collect()
    }
}

// === impl Tempo ===

impl Tempo {
    /// For people.
    pub(super) const READING: Self = Self { token: Duration::from_millis(60), pause: Duration::from_millis(1800) };

    /// For tests.
    pub(super) const FAST: Self = Self { token: Duration::from_millis(2), pause: Duration::ZERO };
}

// === impl Side ===

impl Side {
    /// How fast it is.
    pub(super) fn pace(self, tempo: Tempo) -> Pace {
        let gap = match self {
            Self::Primary => Delay::Fixed(tempo.token),
            // A provider writes faster than anybody reads. The fallback is held to reading speed only after it has
            // repeated the words that it was asked to repeat.
            Self::Fallback => Delay::List([vec![REPEATING.min(tempo.token); REPEATED], vec![tempo.token]].concat()),
        };
        Pace { headers: Delay::Fixed(HEADERS), first: Delay::Fixed(FIRST), gap, keep_alive: None }
    }

    /// The connection's name in the configuration.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Fallback => "fallback",
        }
    }
}

// === the program ===

/// What is played.
pub(super) const ACTS: [Act; 4] = [
    Act {
        name: "killed",
        title: "The provider is killed in the middle of a word",
        program: "TCP reset. The other provider is told what was delivered and goes on from there.",
        model: "music",
        question: "What does a score say where two movements are played without a break?",
        text: "The last note of the slow movement is still in the air when the first note of the fast one meets it. \
               In the score there stands one word between them, segue: go on without a pau|se. The players do not \
               lower their bows, nobody coughs, and whoever listens hears one piece of music and not two.",
        call: None,
        fault: "reset",
        clocks: "{ stall = \"5s\" }",
    },
    Act {
        name: "stalled",
        title: "The provider falls silent, on an open connection",
        program: "It is given up after stall = \"700ms\".",
        model: "telephone",
        question: "Why does silence matter to a voice agent?",
        text: "A voice on the telephone has no face. When it stops, the caller waits for a second and then asks \
               whether| anybody is still there. So it is not enough to try again; the same sentence must go on.",
        call: None,
        fault: "stall",
        clocks: "{ stall = \"700ms\" }",
    },
    Act {
        name: "suspected",
        title: "The same silence, met before it is a failure",
        program: "With suspect = \"200ms\" the other provider starts to go on while the first may still wake up.",
        model: "silence",
        question: "How is a silent provider told from a slow one?",
        text: "Nobody can tell a breath from a fault while it lasts. So after a short silence another provider is \
               asked to| go on as well; who speaks first has the word, and the other one is hung up on at once.",
        call: None,
        fault: "stall",
        clocks: "{ suspect = \"200ms\", stall = \"5s\" }",
    },
    Act {
        name: "call",
        title: "The provider is killed inside the arguments of a tool call",
        program: "Half a call is of no use to anyone: calls are held until they are whole.",
        model: "table",
        question: "Please book a table for four at half past seven.",
        text: "I will ask for a table at the window.",
        call: Some(Call {
            name: "book_table",
            args: &[
                "{\"guests\":",
                "4,\"date\":\"2026-",
                "10-02\",\"time\":\"19",
                ":30\",\"wish\":",
                "\"at the window\"}",
            ],
            told: 3,
        }),
        fault: "reset",
        clocks: "{ stall = \"5s\" }",
    },
];

// === consts ===

/// From a request to the headers of its answer.
const HEADERS: Duration = Duration::from_millis(20);

/// From there to the first token.
const FIRST: Duration = Duration::from_millis(60);

/// Between the tokens of a repetition.
const REPEATING: Duration = Duration::from_millis(4);

/// How many tokens a repetition has, about.
const REPEATED: usize = 12;

/// The longest token of the fallback, in characters.
const LONGEST_PIECE: usize = 9;

/// Tokens of the fallback fall as these dice do.
const SEED: u64 = 3;

#[cfg(test)]
mod tests {
    use super::{ACTS, Side, Tempo};
    use crate::rig::names;

    #[test]
    fn both_providers_tell_the_same_in_other_pieces() {
        for act in &ACTS {
            let scripts = [Side::Primary, Side::Fallback].map(|side| act.script(side, Tempo::READING));
            let calls = scripts.each_ref().map(|s| s.content.tools.iter().map(|t| t.args.concat()).collect::<Vec<_>>());
            assert_eq!(scripts[0].text(), act.text());
            assert_eq!(scripts[1].text(), act.text());
            assert_ne!(scripts[0].content.text, scripts[1].content.text);
            assert_eq!(calls[0], calls[1]);
        }
    }

    #[test]
    fn the_primary_breaks_where_the_program_says() {
        for act in &ACTS {
            let script = names::script(&act.broken(), &act.script(Side::Primary, Tempo::FAST)).unwrap_or_default();
            let at = script.fault.map_or(0, |fault| fault.at);
            let told = script.content.text.iter().take(at).map(String::as_str).collect::<String>();
            match &act.call {
                None => assert!(act.text.starts_with(&format!("{told}|")), "{told}"),
                Some(call) => {
                    assert_eq!(told, act.text());
                    let args = act.told_of_call(at);
                    assert!(call.args.concat().starts_with(&args) && args.ends_with("\"19"), "{args}");
                }
            }
        }
    }

    #[test]
    fn one_turn_breaks_inside_a_word_and_none_behind_a_space() {
        assert!(ACTS[0].text.contains("pau|se"));
        // White space at the end is not handed over: the seam would seem to be before it.
        assert!(!ACTS.iter().any(|act| act.text.contains(" |")));
    }
}
