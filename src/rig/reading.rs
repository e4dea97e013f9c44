//! How a provider understands a request: what is asked, and whether it is to go on with a turn that was begun.
//!
//! It goes by the shape of the conversation alone. No wording of an instruction is recognised, so that the rig judges
//! any gateway's way of asking, and a change of wording cannot make a test pass.

use crate::turn::resume::{Carry, How, Origin};
use serde_json::Value;
use std::sync::Arc;

/// What a provider reads in a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The model that is asked.
    pub model: String,
    /// From the start, or on from where a turn stopped.
    pub ask: Ask,
    /// How many answers; `None`: as many as the script has.
    pub choices: Option<u32>,
    /// The most tokens.
    pub limit: Option<u64>,
    /// The answer is to be streamed.
    pub stream: bool,
    /// Usage is wanted in the stream (chat API).
    pub include_usage: bool,
    /// A reason for which the API refuses the request whatever the script says.
    pub flaw: Option<&'static str>,
}

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ask {
    /// An answer.
    #[default]
    Fresh,
    /// The rest of the answer that is the last message.
    Prefill {
        /// What was told.
        text: Arc<str>,
    },
    /// The rest of an answer, by a message after it.
    Instruct {
        /// What was told.
        text: Arc<str>,
        /// The end of it that the message quotes; empty if it quotes nothing.
        anchor: String,
    },
}

// === impl Reading ===

impl Reading {
    /// What an attempt with `carry` asks. White space at the end of a prefill never goes upstream, so it is not here.
    pub fn of(carry: &Carry) -> Self {
        let ask = match &carry.origin {
            Origin::Fresh => Ask::Fresh,
            Origin::Continue(turn) => match turn.how {
                How::Prefill => Ask::Prefill { text: turn.delivered.trim_end().into() },
                How::Instruct => Ask::Instruct { text: Arc::clone(&turn.delivered), anchor: turn.anchor.text.clone() },
            },
        };
        Self { ask, stream: true, include_usage: true, ..Self::default() }
    }

    /// Reads the body of a chat completions request for a provider that would tell `text`.
    pub fn of_chat(body: &Value, text: &str) -> Self {
        let flag = |value: Option<&Value>| value.and_then(Value::as_bool).unwrap_or(false);
        let limit = body.get("max_completion_tokens").or_else(|| body.get("max_tokens")).and_then(Value::as_u64);
        Self {
            model: string(body.get("model")),
            ask: ask(body, text),
            choices: Some(body.get("n").and_then(Value::as_u64).map_or(1, choices)),
            limit,
            stream: flag(body.get("stream")),
            include_usage: flag(body.get("stream_options").and_then(|o| o.get("include_usage"))),
            flaw: None,
        }
    }

    /// Reads the body of an Anthropic messages request for a provider that would tell `text`.
    pub fn of_anthropic(body: &Value, text: &str) -> Self {
        let ask = ask(body, text);
        let flaw = match &ask {
            Ask::Prefill { text } if text.ends_with(char::is_whitespace) => {
                Some("messages: final assistant content cannot end with trailing whitespace")
            }
            Ask::Fresh | Ask::Prefill { .. } | Ask::Instruct { .. } => None,
        };
        Self {
            model: string(body.get("model")),
            ask,
            choices: Some(1),
            limit: body.get("max_tokens").and_then(Value::as_u64),
            stream: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
            include_usage: true,
            flaw,
        }
    }

    /// Reads the body of a Responses request for a provider that would tell `text`.
    pub fn of_responses(body: &Value, text: &str) -> Self {
        let messages = body.get("input").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        Self {
            model: string(body.get("model")),
            ask: ask_of(messages, text),
            choices: Some(1),
            limit: body.get("max_output_tokens").and_then(Value::as_u64),
            stream: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
            include_usage: true,
            flaw: None,
        }
    }
}

// === impl Ask ===

impl Ask {
    /// What was told, if a turn is to go on.
    pub fn told(&self) -> Option<&str> {
        match self {
            Self::Fresh => None,
            Self::Prefill { text } | Self::Instruct { text, .. } => Some(text),
        }
    }

    /// The quoted end of it; empty if there is none.
    pub fn anchor(&self) -> &str {
        match self {
            Self::Instruct { anchor, .. } => anchor,
            Self::Fresh | Self::Prefill { .. } => "",
        }
    }
}

// === aligning ===

/// Where in `text` the words of `told` end: exactly, or else up to white space and forms of quotation marks. `None` if
/// `told` is blank or is not how `text` begins.
pub fn align(told: &str, text: &str) -> Option<usize> {
    if told.trim().is_empty() {
        return None;
    }
    if text.starts_with(told) {
        return Some(told.len());
    }
    let mut chars = text.char_indices().filter(|(_, c)| !c.is_whitespace());
    let mut end = 0;
    for c in told.chars().filter(|c| !c.is_whitespace()) {
        let (at, d) = chars.next()?;
        if fold(c) != fold(d) {
            return None;
        }
        end = at + d.len_utf8();
    }
    if told.ends_with(char::is_whitespace) {
        end = text.len() - text[end..].trim_start().len();
    }
    Some(end)
}

fn fold(c: char) -> char {
    match c {
        '“' | '”' | '„' | '«' | '»' => '"',
        '‘' | '’' | '‚' => '\'',
        c => c,
    }
}

// === reading messages ===

/// The question that `messages` ask of a provider that would tell `text`.
fn ask(body: &Value, text: &str) -> Ask {
    body.get("messages").and_then(Value::as_array).map_or(Ask::Fresh, |messages| ask_of(messages, text))
}

fn ask_of(messages: &[Value], text: &str) -> Ask {
    match messages {
        [.., last] if role(last) == "assistant" => match content(last) {
            told if told.is_empty() => Ask::Fresh,
            told => Ask::Prefill { text: told.into() },
        },
        [.., before, last] if role(before) == "assistant" => {
            let told = content(before);
            let Some(end) = align(&told, text) else { return Ask::Fresh };
            let anchor = quoted(&content(last), &told);
            // After a whole answer a message that quotes nothing of its end is the next question.
            if end == text.len() && anchor.is_empty() {
                return Ask::Fresh;
            }
            Ask::Instruct { anchor, text: told.into() }
        }
        _ => Ask::Fresh,
    }
}

/// The longest end of `told`, white space aside, that `message` quotes; empty if that is less than [`QUOTE`] characters
/// and not all of it.
pub fn quoted(message: &str, told: &str) -> String {
    let told = told.trim_end();
    let from = told.char_indices().rev().nth(QUOTE - 1).map_or(0, |(at, _)| at);
    let tail = &told[from..];
    if tail.is_empty() {
        return String::new();
    }
    let mut longest = 0;
    for (at, _) in message.match_indices(tail) {
        let mut same = 0;
        for (a, b) in message[..at].chars().rev().zip(told[..from].chars().rev()) {
            if a != b {
                break;
            }
            same += a.len_utf8();
        }
        longest = longest.max(tail.len() + same);
    }
    told[told.len() - longest..].to_owned()
}

/// Who says a message; empty if it does not say.
pub fn role(message: &Value) -> &str {
    message.get("role").and_then(Value::as_str).unwrap_or_default()
}

/// The text of a message, whether it is a string or a list of parts.
pub fn content(message: &Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        _ => String::new(),
    }
}

fn string(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn choices(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(MAX_CHOICES).clamp(1, MAX_CHOICES)
}

/// An end of a text that is quoted has at least so many characters.
pub const QUOTE: usize = 8;

/// No request gets more choices.
const MAX_CHOICES: u32 = 16;

#[cfg(test)]
mod tests {
    #![expect(clippy::panic, reason = "a test's panic is its report")]

    use super::{Ask, Reading, align};
    use serde_json::json;

    const TEXT: &str = "The river carries \"morning\" light over the bridge.";

    fn chat(messages: &serde_json::Value) -> Ask {
        Reading::of_chat(&json!({ "messages": messages }), TEXT).ask
    }

    #[test]
    fn an_assistant_at_the_end_is_a_prefill() {
        let ask = chat(&json!([{"role": "user", "content": "go"}, {"role": "assistant", "content": "The river"}]));
        assert_eq!(ask, Ask::Prefill { text: "The river".into() });
    }

    #[test]
    fn a_quote_of_the_end_is_found_in_any_wording() {
        for wording in ["My line dropped. I have «X» so far", "It ended with `X`. Continue.", "X"] {
            let wording = wording.replace('X', "carries \"morning\" light");
            let ask = chat(&json!([
                {"role": "user", "content": "go"},
                {"role": "assistant", "content": [{"type": "text", "text": "The river carries \"morning\" "}, {"type": "text", "text": "light "}]},
                {"role": "user", "content": wording},
            ]));
            let Ask::Instruct { text, anchor } = ask else { panic!("{wording}") };
            assert_eq!(
                (&*text, anchor.as_str()),
                ("The river carries \"morning\" light ", "carries \"morning\" light")
            );
        }
    }

    #[test]
    fn a_new_question_is_none() {
        let next = json!([{"role": "assistant", "content": TEXT}, {"role": "user", "content": "And then?"}]);
        assert_eq!(chat(&next), Ask::Fresh);
        let other = json!([{"role": "assistant", "content": "Hello!"}, {"role": "user", "content": "Hello! again"}]);
        assert_eq!(chat(&other), Ask::Fresh);
        assert_eq!(chat(&json!([{"role": "user", "content": "go"}])), Ask::Fresh);
        assert_eq!(chat(&json!([])), Ask::Fresh);
    }

    #[test]
    fn a_whole_answer_whose_end_is_quoted_is_to_go_on() {
        let ask = chat(&json!([
            {"role": "assistant", "content": TEXT},
            {"role": "user", "content": "I have it up to «over the bridge.», go on"},
        ]));
        assert!(matches!(ask, Ask::Instruct { anchor, .. } if anchor == "over the bridge."));
    }

    #[test]
    fn anthropic_refuses_white_space_at_the_end_of_a_prefill() {
        let body = |text| json!({"messages": [{"role": "assistant", "content": text}], "max_tokens": 5});
        assert!(Reading::of_anthropic(&body("The river "), TEXT).flaw.is_some());
        let good = Reading::of_anthropic(&body("The river"), TEXT);
        assert_eq!((good.flaw, good.limit, good.stream), (None, Some(5), false));
    }

    #[test]
    fn alignment_is_exact_where_it_can_be_and_loose_where_it_must() {
        assert_eq!(align("The river ", TEXT), Some(10));
        assert_eq!(align("The rivercarries “morning” ", TEXT), Some("The river carries \"morning\" ".len()));
        assert_eq!(align("The lake", TEXT), None);
        assert_eq!(align("  ", TEXT), None);
        assert_eq!(align(&format!("{TEXT} more"), TEXT), None);
    }
}
