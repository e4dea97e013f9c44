//! What is told: all of it, or what a provider makes of a request to go on.

use super::{Say, Tokens};
use crate::rig::reading::{Ask, Reading, align};
use crate::rig::script::{Continuation, Finish, Script};
use crate::rig::seed::Dice;
use crate::rig::text;
use std::borrow::Cow;

/// Everything that is told between preamble and finish.
pub(super) struct Told<'a> {
    pub(super) says: Vec<Say<'a>>,
    pub(super) choices: u32,
    pub(super) finish: Finish,
    pub(super) tokens: Tokens,
}

/// The text pieces of an answer, and whether anything else of the script follows them.
struct Pieces<'a> {
    text: Vec<Cow<'a, str>>,
    more: bool,
}

// === impl Told ===

impl<'a> Told<'a> {
    pub(super) fn of(script: &'a Script, reading: &'a Reading, dice: &mut Dice) -> Self {
        let content = &script.content;
        let choices = reading.choices.unwrap_or_else(|| u32::try_from(content.others.len() + 1).unwrap_or(1)).max(1);
        let mut pieces = Pieces::of(script, reading, dice);
        let mut cut = false;
        if let Some(limit) = reading.limit.filter(|_| script.limited).and_then(|l| usize::try_from(l).ok())
            && pieces.text.len() > limit
        {
            pieces.text.truncate(limit);
            cut = true;
        }
        let more = pieces.more && !cut;
        let mut says = Vec::with_capacity(content.reasoning.len() + pieces.text.len() + 4);
        let mut tokens = Tokens { prompt: content.prompt_tokens, ..Tokens::default() };
        if pieces.more {
            says.extend(content.reasoning.iter().map(|piece| Say::Reasoning(Cow::Borrowed(piece))));
            tokens.reasoning = says.len() as u64;
        }
        if choices == 1 {
            says.extend(pieces.text.into_iter().map(|text| Say::Text { choice: 0, text }));
        } else {
            interleave(&mut says, script, &pieces.text, choices);
        }
        if more {
            says.extend(content.refusal.iter().map(|piece| Say::Refusal(Cow::Borrowed(piece))));
            for (call, tool) in (0..).zip(&content.tools) {
                says.push(Say::ToolOpen { call, id: &tool.id, name: &tool.name });
                says.extend(tool.args.iter().map(|args| Say::ToolArgs { call, args: Cow::Borrowed(args) }));
                says.push(Say::ToolClose { call });
            }
        }
        tokens.completion = says.iter().filter(|say| say.is_token()).count() as u64;
        let finish = match content.finish {
            _ if cut => Finish::Length,
            Finish::Auto if more && !content.tools.is_empty() => Finish::ToolCalls,
            Finish::Auto => Finish::Stop,
            _ if !pieces.more => Finish::Stop,
            given => given,
        };
        Self { says, choices, finish, tokens }
    }
}

/// One piece of each choice in turn, as APIs stream several.
fn interleave<'a>(says: &mut Vec<Say<'a>>, script: &'a Script, first: &[Cow<'a, str>], choices: u32) {
    let others = &script.content.others;
    let longest = others.iter().map(Vec::len).chain([first.len()]).max().unwrap_or(0);
    for at in 0..longest {
        for (index, choice) in (0..choices).enumerate() {
            let text = match index.checked_sub(1).and_then(|index| others.get(index)) {
                Some(other) => other.get(at).map(|piece| Cow::Borrowed(piece.as_str())),
                None => first.get(at).cloned(),
            };
            says.extend(text.map(|text| Say::Text { choice, text }));
        }
    }
}

// === impl Pieces ===

impl<'a> Pieces<'a> {
    fn of(script: &'a Script, reading: &'a Reading, dice: &mut Dice) -> Self {
        let whole = || script.content.text.iter().map(|piece| Cow::Borrowed(piece.as_str())).collect();
        let Some(told) = reading.ask.told() else { return Self { text: whole(), more: true } };
        let text = script.text();
        // A turn that this provider does not recognise, not even by its quoted end, is told from the start.
        let find = |told: &str| align(told, &text).or_else(|| find_anchor(reading.ask.anchor(), &text));
        let (Some(at), Some(trimmed)) = (find(told), find(told.trim_end())) else {
            return Self { text: whole(), more: true };
        };
        let spaced = told.ends_with(char::is_whitespace);
        let mut join = Join { script, text: &text, dice };
        let anchor = reading.ask.anchor();
        let pieces = match as_asked(script.continuation, reading) {
            Continuation::Obedient | Continuation::RefusesPrefill => join.after(anchor, trimmed),
            Continuation::Verbatim => join.after("", at),
            Continuation::Echo => join.after(told, at),
            Continuation::Preamble => join.after(&format!("{PREAMBLE}{anchor}"), trimmed),
            Continuation::PreambleOnly => join.after(PREAMBLE, join.unspaced(trimmed)),
            Continuation::Restart => whole(),
            Continuation::RestartDiverges => {
                let alike = text.floor_char_boundary(at / 2);
                join.told(&format!("{}{DIVERGENCE}", &text[..alike]))
            }
            Continuation::MissingSpace if spaced => join.after("", at),
            Continuation::MissingSpace => join.after("", join.unspaced(at)),
            Continuation::ExtraSpace if spaced || text[at..].starts_with(char::is_whitespace) => join.after(" ", at),
            Continuation::ExtraSpace => join.after("", at),
            Continuation::ParagraphBreak => join.after("\n\n", join.unspaced(at)),
            Continuation::CurlyQuotes => join.after(&curly(anchor), trimmed),
            Continuation::Refuses => return Self { text: join.told(REFUSAL), more: false },
            Continuation::Empty => return Self { text: Vec::new(), more: false },
        };
        Self { text: pieces, more: true }
    }
}

/// Makes continuations of a text.
struct Join<'a, 'b> {
    script: &'a Script,
    text: &'b str,
    dice: &'b mut Dice,
}

// === impl Join ===

impl<'a> Join<'a, '_> {
    /// `lead`, then the text from `at`: in the script's own pieces, the first of them perhaps in one with the end of
    /// `lead`.
    fn after(&mut self, lead: &str, at: usize) -> Vec<Cow<'a, str>> {
        let mut pieces = self.told(lead);
        let mut fuse = !pieces.is_empty() && self.dice.once_in(2);
        let mut skip = at;
        for piece in &self.script.content.text {
            if skip >= piece.len() {
                skip -= piece.len();
                continue;
            }
            let rest = &piece[skip..];
            skip = 0;
            match pieces.last_mut().filter(|_| fuse) {
                Some(last) => last.to_mut().push_str(rest),
                None => pieces.push(Cow::Borrowed(rest)),
            }
            fuse = false;
        }
        pieces
    }

    /// `text` in seeded pieces.
    fn told(&mut self, text: &str) -> Vec<Cow<'a, str>> {
        text::cut(text, LEAD_PIECE, self.dice).into_iter().map(Cow::Owned).collect()
    }

    /// The first place from `at` on that is no white space.
    fn unspaced(&self, at: usize) -> usize {
        self.text.len() - self.text[at..].trim_start().len()
    }
}

// === helpers ===

/// Whether the request ends in an assistant's message.
pub(super) fn is_prefill(reading: &Reading) -> bool {
    matches!(reading.ask, Ask::Prefill { .. })
}

/// A provider that was not asked to repeat anything does not talk about it either.
fn as_asked(continuation: Continuation, reading: &Reading) -> Continuation {
    match continuation {
        Continuation::Obedient
        | Continuation::Preamble
        | Continuation::PreambleOnly
        | Continuation::CurlyQuotes
        | Continuation::RefusesPrefill
            if is_prefill(reading) || reading.ask.anchor().is_empty() =>
        {
            Continuation::Verbatim
        }
        other => other,
    }
}

fn find_anchor(anchor: &str, text: &str) -> Option<usize> {
    if anchor.is_empty() { None } else { text.rfind(anchor).map(|at| at + anchor.len()) }
}

/// The same with typographic quotation marks and apostrophes.
fn curly(text: &str) -> String {
    let mut open = false;
    let fold = |c| match c {
        '"' => {
            open = !open;
            if open { '“' } else { '”' }
        }
        '\'' => '’',
        c => c,
    };
    text.chars().map(fold).collect()
}

// === consts ===

/// What a talkative model says first.
pub(in crate::rig) const PREAMBLE: &str = "Sure, continuing where I left off: ";

/// What a model says that will not.
const REFUSAL: &str = "I'm sorry, but I can't continue that reply.";

/// Where a new start leads that takes another way.
const DIVERGENCE: &str =
    " but let me begin differently this time, with a summary of what matters most before any details follow.";

/// The most characters of a piece of what comes before the rest.
const LEAD_PIECE: usize = 9;
