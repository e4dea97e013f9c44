//! What is tried: which providers stand behind a level, how they fail, and what a client must come to.

use segue::rig::script::{Break, Close, Content, Continuation, Form, Reject, Script, ToolCall, Wrong};
use segue::rig::text::words;
use std::collections::BTreeMap;
use std::time::Duration;

/// Which vendor's SDK asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// Chat Completions.
    OpenAi,
    /// Responses.
    Responses,
    /// Messages.
    Anthropic,
}

/// One level, named like the case.
pub(crate) struct Case {
    pub(crate) name: String,
    /// The tools that the client offers.
    pub(crate) tools: Vec<&'static str>,
    /// The dialects of the chain's two places.
    pub(crate) dialects: [&'static str; 2],
    /// What they do.
    pub(crate) scripts: [Script; 2],
    /// Keys of the level.
    pub(crate) level: &'static str,
    /// Keys of the chain's first place.
    pub(crate) first: &'static str,
    pub(crate) expect: Expect,
}

/// What a client must come to.
pub(crate) enum Expect {
    /// A whole turn.
    Answer {
        text: String,
        calls: Vec<ToolCall>,
        /// How many attempts it takes.
        attempts: usize,
        /// Something was told before the first provider died.
        spliced: bool,
    },
    /// No turn: an error with a status.
    Refused {
        status: u16,
        /// A `retry-after` comes with it.
        retry_after: bool,
        attempts: usize,
    },
    /// A part of the turn, then an error.
    Broken { begins: String },
    /// No turn was begun: the model is none.
    Unknown,
}

/// Every case.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for first in DIALECTS {
        for second in DIALECTS {
            let dialects = [first, second];
            for (death, at, how) in deaths() {
                cases.push(text(death, dialects).dying(at, how.clone()));
                // In the second call, inside its arguments; nothing of the calls was told.
                cases.push(tools(death, dialects, true).dying(TOOL_TOKEN + words(TEXT).len(), how.clone()));
                cases.push(tools(death, dialects, false).dying(TOOL_TOKEN, how));
            }
            cases.push(streamed_tools(dialects));
            for (name, way) in [
                ("preamble", Continuation::Preamble),
                ("restart", Continuation::Restart),
                ("echo", Continuation::Echo),
                ("curly", Continuation::CurlyQuotes),
            ] {
                let mut case = text(name, dialects).dying(12, Break::CleanEnd);
                case.scripts[1].continuation = way;
                cases.push(case);
            }
            cases.extend(refusals(dialects));
        }
        cases.push(text("whole", [first, first]));
        cases.push(tools("whole", [first, first], true));
        cases.push(tools("whole", [first, first], false));
    }
    let unknown = Case { expect: Expect::Unknown, ..text("unknown", ["chat", "chat"]) };
    cases.push(unknown);
    cases
}

// === impl Case ===

impl Case {
    fn new(name: &str, dialects: [&'static str; 2], content: [Content; 2], expect: Expect) -> Self {
        let scripts = content.map(|content| {
            let script = Script { content, ..Script::default() };
            script.paced(Duration::from_millis(10), Duration::from_millis(3))
        });
        let name = format!("{name}-{}-{}", dialects[0], dialects[1]);
        Self { name, tools: Vec::new(), dialects, scripts, level: "", first: "", expect }
    }

    /// The first provider dies so at this token, and the turn takes another.
    fn dying(mut self, at: usize, how: Break) -> Self {
        if how == Break::Silence {
            // Inside a call it is the limit for thinking that holds.
            self.first = "timeouts = { stall = \"400ms\", thinking = \"400ms\" }";
        }
        self.scripts[0] = self.scripts[0].clone().breaking(at, how);
        if let Expect::Answer { attempts, spliced, text, .. } = &mut self.expect {
            *attempts = 2;
            *spliced = !text.is_empty();
        }
        self
    }
}

// === helpers ===

/// Ways of a provider to die in the middle of an answer, with where a text is hit.
fn deaths() -> Vec<(&'static str, usize, Break)> {
    let error = |wrong| Break::ErrorEvent { wrong, form: Form::Object, done: false };
    vec![
        ("reset", 15, Break::Reset),
        ("end", 7, Break::CleanEnd),
        ("stall", 11, Break::Silence),
        ("error", 20, error(Wrong::Overloaded)),
        ("half", 9, Break::HalfEvent { then: Close::Fin }),
        ("halfchar", 13, Break::HalfChar { then: Close::Fin }),
    ]
}

fn text(name: &str, dialects: [&'static str; 2]) -> Case {
    let content = || Content { text: words(TEXT), prompt_tokens: 300, ..Content::default() };
    let expect = Expect::Answer { text: TEXT.to_owned(), calls: Vec::new(), attempts: 1, spliced: false };
    Case::new(&format!("text-{name}"), dialects, [content(), content()], expect)
}

fn tools(name: &str, dialects: [&'static str; 2], with_text: bool) -> Case {
    let said = if with_text { TEXT } else { "" };
    let content = |who| Content { text: words(said), tools: calls(who), prompt_tokens: 300, ..Content::default() };
    let whole = name == "whole";
    let expect = Expect::Answer {
        text: said.to_owned(),
        // Held until they are whole: a client sees those of the provider that finished them.
        calls: calls(if whole { "a" } else { "b" }),
        attempts: 1,
        spliced: false,
    };
    let kind = if with_text { "both" } else { "tools" };
    let case = Case::new(&format!("{kind}-{name}"), dialects, [content("a"), content("b")], expect);
    Case { tools: TOOLS.to_vec(), ..case }
}

/// Fragments of the first call are told at once; the second provider must make the same call.
fn streamed_tools(dialects: [&'static str; 2]) -> Case {
    let mut case = tools("streamed", dialects, false).dying(3, Break::CleanEnd);
    case.level = "tool_calls = \"stream\"";
    if let Expect::Answer { calls: expected, spliced, .. } = &mut case.expect {
        *expected = calls("b");
        "call_a0".clone_into(&mut expected[0].id);
        *spliced = true;
    }
    case
}

/// Turns that nobody can serve.
fn refusals(dialects: [&'static str; 2]) -> Vec<Case> {
    let status = |status| Reject::Error { status, headers: BTreeMap::new(), wrong: None };
    let limited = Reject::Error {
        status: 429,
        headers: BTreeMap::from([("retry-after".to_owned(), "30".to_owned())]),
        wrong: None,
    };
    let refused = |name: &str, reject: &Reject, status, attempts| {
        let mut case = text(name, dialects);
        case.scripts = case.scripts.map(|script| script.rejecting(reject.clone()));
        case.first = "timeouts = { first_token = \"400ms\" }";
        // A limit that ends in time would be waited for: what is tried here is how each client takes the refusal.
        case.level = "timeouts = { first_token = \"400ms\", turn = \"5s\" }";
        case.expect = Expect::Refused { status, retry_after: status == 429, attempts };
        case
    };
    let mut broken = text("nobody", dialects).dying(10, Break::CleanEnd);
    broken.scripts[1].reject = Some(status(503));
    broken.expect = Expect::Broken { begins: words(TEXT)[..10].concat() };
    vec![
        refused("overloaded", &status(503), 503, 2),
        refused("limited", &limited, 429, 2),
        refused("erring", &status(500), 502, 2),
        refused("closing", &Reject::ClosesAtOnce, 502, 2),
        refused("hanging", &Reject::NeverAnswers, 504, 2),
        refused("asked-amiss", &status(400), 400, 2),
        broken,
    ]
}

fn calls(who: &str) -> Vec<ToolCall> {
    let call = |number, name: &str, args: &[&str]| ToolCall {
        id: format!("call_{who}{number}"),
        name: name.to_owned(),
        args: args.iter().map(|&a| a.to_owned()).collect(),
    };
    vec![
        call(0, TOOLS[0], &["{\"city\"", ": \"Zürich\", ", "\"note\": \"with \\\"quo", "tes\\\"\", \"days\"", ": 3}"]),
        call(1, TOOLS[1], &["{\"at\": \"07", ":30\", \"days\": [\"mo", "\", \"tu\"]}"]),
    ]
}

// === consts ===

const DIALECTS: [&str; 3] = ["chat", "anthropic", "responses"];

const TOOLS: [&str; 2] = ["look_up_weather", "set_alarm"];

/// Of the calls: the last fragment but one.
const TOOL_TOKEN: usize = 8;

const TEXT: &str = "In a score, the word *segue* stands where one movement ends and the next must begin without a \
                    pause — the players don't put down their bows; nobody coughs. “Né à Zürich”, he said, 北京 and \
                    😀 included: the last note of the slow movement is still in the air when the first of the fast \
                    one meets it.\n\n1. Know where the music stopped.\n2. Begin there, not a bar too late.\n";
