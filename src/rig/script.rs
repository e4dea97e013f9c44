//! What a scripted provider does, as plain data that can be written in TOML or JSON.
//!
//! A script says what is told and how fast, at which token it breaks and how, or that there is no stream at all, and
//! what the provider makes of a request to go on with a turn that it did not begin.

pub use super::delay::{Delay, Draw};
use super::{span, text};
use serde::{Deserialize, Deserializer, Serialize, de};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// One provider's behaviour for one request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// What it tells.
    pub content: Content,
    /// How fast.
    pub pace: Pace,
    /// Where and how the stream breaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// It answers so instead of with a stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reject: Option<Reject>,
    /// What it does when it is asked to go on with a turn.
    pub continuation: Continuation,
    /// How a stream that does not break ends.
    pub ending: Ending,
    /// It takes the request's limit of tokens to heart: one piece of text is one token.
    pub limited: bool,
    /// Oddities of its bytes.
    pub quirks: Quirks,
}

/// What a provider tells, in this order: reasoning, text, refusal, tool calls, finish, usage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Content {
    /// It thinks so long, unseen, before its first token.
    #[serde(with = "span::option", skip_serializing_if = "Option::is_none")]
    pub thinks: Option<Duration>,
    /// Pieces of reasoning that is shown. A file may give one string, which is cut into words.
    #[serde(deserialize_with = "pieces", skip_serializing_if = "Vec::is_empty")]
    pub reasoning: Vec<String>,
    /// Pieces of text; as `reasoning`.
    #[serde(deserialize_with = "pieces")]
    pub text: Vec<String>,
    /// Texts of the choices from 1 on. A choice that was asked for and has none tells `text`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Vec<String>>,
    /// Pieces of a refusal; as `reasoning`.
    #[serde(deserialize_with = "pieces", skip_serializing_if = "Vec::is_empty")]
    pub refusal: Vec<String>,
    /// Tool calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolCall>,
    /// Why it ends.
    pub finish: Finish,
    /// It says how many tokens it used.
    pub usage: bool,
    /// How many tokens it takes the prompt for.
    pub prompt_tokens: u64,
}

/// A tool call whose arguments come in fragments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// The call's id.
    pub id: String,
    /// The function.
    pub name: String,
    /// Fragments of its JSON arguments; as [`Content::reasoning`].
    #[serde(deserialize_with = "pieces")]
    pub args: Vec<String>,
}

/// Why an answer ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// As the content says: `tool_calls` if there are any, else `stop`.
    #[default]
    Auto,
    /// It was done.
    Stop,
    /// The limit was met.
    Length,
    /// It called tools.
    ToolCalls,
    /// The provider withheld the rest.
    ContentFilter,
}

/// How fast.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pace {
    /// From the request to the headers; the role or message start comes with them.
    pub headers: Delay,
    /// From the headers to the first token.
    pub first: Delay,
    /// Between tokens.
    pub gap: Delay,
    /// A comment or ping after each silence of this length.
    #[serde(with = "span::option", skip_serializing_if = "Option::is_none")]
    pub keep_alive: Option<Duration>,
}

/// A break takes the place of token `at`, when that would be due.
///
/// Tokens are pieces of reasoning, text and refusals, openings of tool calls and fragments of arguments. Break 0 comes
/// after the role or message start, a break at the number of tokens in place of the finish, a greater one after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// How many tokens are told before.
    pub at: usize,
    /// How it breaks.
    pub how: Break,
}

/// How a stream breaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Break {
    /// TCP RST.
    Reset,
    /// FIN without the last chunk: the body is not whole.
    Fin,
    /// The body ends well, and the turn does not: no finish, no terminator.
    CleanEnd,
    /// The first half of the event that carries the token.
    HalfEvent {
        /// What follows.
        #[serde(default)]
        then: Close,
    },
    /// The event that carries the token, up to the first byte of a character of several bytes.
    HalfChar {
        /// What follows.
        #[serde(default)]
        then: Close,
    },
    /// An error, as an event of the stream.
    ErrorEvent {
        /// What is wrong.
        #[serde(default)]
        wrong: Wrong,
        /// How it is worded, where the API has several ways.
        #[serde(default)]
        form: Form,
        /// `[DONE]` follows, as vLLM does.
        #[serde(default)]
        done: bool,
    },
    /// Nothing more, on an open connection.
    Silence,
    /// Nothing but comments or pings.
    PingsOnly {
        /// How often.
        #[serde(with = "span")]
        every: Duration,
    },
    /// An event that is no JSON; the stream goes on after it.
    Garbage,
    /// From here on a token each `gap`.
    Dribble {
        /// How often.
        #[serde(with = "span")]
        gap: Duration,
    },
}

/// What happens to a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Close {
    /// TCP RST.
    #[default]
    Reset,
    /// FIN without the last chunk.
    Fin,
    /// The body ends well.
    End,
    /// It stays open, silent.
    Hold,
}

/// What a provider says is wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wrong {
    /// Too much to do.
    #[default]
    Overloaded,
    /// Its own fault.
    Server,
    /// Too many requests.
    RateLimited,
    /// No credit left.
    Quota,
    /// The key.
    Auth,
    /// The request.
    Invalid,
    /// The prompt does not fit.
    TooLong,
    /// Its policy.
    Filtered,
}

/// How an error event of the chat API is worded; others have one way only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// `{"error": {…}}`
    #[default]
    Object,
    /// `{"error": "…"}`
    Text,
    /// `finish_reason: "error"` in a choice and an `error` beside `choices`, as aggregators do.
    Finish,
}

/// No stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Reject {
    /// An error status with the API's error body.
    Error {
        /// HTTP status.
        status: u16,
        /// Headers, such as `retry-after`.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
        /// What is wrong, where the status does not say it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wrong: Option<Wrong>,
    },
    /// 200, and a JSON body that reports an error.
    JsonError {
        /// What is wrong.
        #[serde(default)]
        wrong: Wrong,
    },
    /// 200, an event stream, and in it nothing but its terminator.
    DoneOnly,
    /// A page for people.
    Html {
        /// HTTP status.
        status: u16,
    },
    /// The headers of an event stream, then silence.
    HeadersOnly,
    /// The request is taken and never answered.
    NeverAnswers,
    /// The connection is closed without an answer.
    ClosesAtOnce,
}

/// What a provider does when it is asked to go on with a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Continuation {
    /// Repeats the fragment that was quoted to it and goes on; after a prefill it just goes on.
    #[default]
    Obedient,
    /// Goes on without repeating anything.
    Verbatim,
    /// Repeats all that was told so far, then goes on.
    Echo,
    /// A preamble, the fragment, and on.
    Preamble,
    /// A preamble, and on without the fragment.
    PreambleOnly,
    /// The whole text from the start.
    Restart,
    /// Begins like the text, then tells something else.
    RestartDiverges,
    /// Goes on, but without the space that belongs at the join.
    MissingSpace,
    /// Goes on, with a space too many at the join.
    ExtraSpace,
    /// Goes on after a paragraph break.
    ParagraphBreak,
    /// Repeats the fragment with typographic quotes and goes on.
    CurlyQuotes,
    /// 400 if the last message is an assistant's; otherwise obedient.
    RefusesPrefill,
    /// Says that it cannot.
    Refuses,
    /// Says nothing and finishes.
    Empty,
}

/// How a stream that does not break ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Finish, usage, terminator, end of the body; the connection can be used again.
    #[default]
    Whole,
    /// Finish, no terminator, end of the body.
    NoTerminator,
    /// A terminator without a finish.
    NoFinish,
    /// All of it, but the body does not end.
    HeldOpen,
}

/// Oddities of a provider's bytes, all within what clients must take.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quirks {
    /// How lines end.
    pub lines: LineEnd,
    /// A byte order mark before the first event.
    pub bom: bool,
    /// `data:{` without the space.
    pub no_space: bool,
    /// Each event is written in pieces of so many bytes, whatever they cut in two; 0: whole.
    pub cut: usize,
    /// The chat API's field is `reasoning` instead of `reasoning_content`.
    pub short_reasoning: bool,
    /// Further oddities of the chat API.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub odd: Vec<Odd>,
}

/// Something that chat providers do though the documents say otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Odd {
    /// The role in every delta.
    RepeatedRole,
    /// Another id in every chunk.
    ChangingId,
    /// First a chunk without choices, id and model, as Azure's prompt filter sends.
    FilterPreamble,
    /// Tool calls without an index.
    NoToolIndex,
    /// All tool calls under index 0.
    ZeroToolIndex,
    /// An event of a kind that nobody knows before the finish.
    UnknownEvent,
    /// `[DONE]` twice.
    DoneTwice,
}

/// How lines end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LineEnd {
    /// LF.
    #[default]
    Lf,
    /// CR LF.
    CrLf,
    /// CR.
    Cr,
}

// === impl Script ===

impl Script {
    /// Tells `text` word by word without a pause.
    pub fn telling(text: &str) -> Self {
        Self::of_pieces(text::words(text))
    }

    /// Tells these pieces without a pause.
    pub fn of_pieces(pieces: Vec<String>) -> Self {
        Self { content: Content { text: pieces, ..Content::default() }, ..Self::default() }
    }

    /// The same, broken at token `at`.
    #[must_use]
    pub fn breaking(mut self, at: usize, how: Break) -> Self {
        self.fault = Some(Fault { at, how });
        self
    }

    /// The same, without a stream.
    #[must_use]
    pub fn rejecting(mut self, reject: Reject) -> Self {
        self.reject = Some(reject);
        self
    }

    /// The same with this behaviour when asked to go on.
    #[must_use]
    pub fn continuing(mut self, continuation: Continuation) -> Self {
        self.continuation = continuation;
        self
    }

    /// The same at this speed.
    #[must_use]
    pub fn paced(mut self, first: Duration, gap: Duration) -> Self {
        self.pace.first = Delay::Fixed(first);
        self.pace.gap = Delay::Fixed(gap);
        self
    }

    /// The whole visible text of the first choice.
    pub fn text(&self) -> String {
        self.content.text.concat()
    }
}

// === impl Content ===

impl Default for Content {
    fn default() -> Self {
        Self {
            thinks: None,
            reasoning: Vec::new(),
            text: Vec::new(),
            others: Vec::new(),
            refusal: Vec::new(),
            tools: Vec::new(),
            finish: Finish::Auto,
            usage: true,
            prompt_tokens: 25,
        }
    }
}

// === impl Continuation ===

impl Continuation {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Obedient,
        Self::Verbatim,
        Self::Echo,
        Self::Preamble,
        Self::PreambleOnly,
        Self::Restart,
        Self::RestartDiverges,
        Self::MissingSpace,
        Self::ExtraSpace,
        Self::ParagraphBreak,
        Self::CurlyQuotes,
        Self::RefusesPrefill,
        Self::Refuses,
        Self::Empty,
    ];
}

// === impl Wrong ===

impl Wrong {
    /// What an HTTP status says by itself.
    pub fn of_status(status: u16) -> Self {
        match status {
            401 | 403 => Self::Auth,
            402 => Self::Quota,
            429 => Self::RateLimited,
            503 | 529 => Self::Overloaded,
            400..=499 => Self::Invalid,
            _ => Self::Server,
        }
    }
}

// === helpers ===

fn pieces<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    struct Pieces;
    impl<'de> de::Visitor<'de> for Pieces {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text, which is cut into words, or a list of pieces")
        }

        fn visit_str<E: de::Error>(self, whole: &str) -> Result<Self::Value, E> {
            Ok(text::words(whole))
        }

        fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut pieces = Vec::new();
            while let Some(piece) = seq.next_element()? {
                pieces.push(piece);
            }
            Ok(pieces)
        }
    }
    from.deserialize_any(Pieces)
}
