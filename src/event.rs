//! What a provider says while it answers, in one vocabulary for every dialect.
//!
//! A decoder turns one upstream event into a [`Step`]; the relay decides what of it the client hears; an encoder
//! writes it in the client's dialect. Events carry what a chat turn consists of and nothing about any wire format;
//! what has no common form travels as [`Event::Extra`] and survives only within its own dialect.

use crate::chat::DialectId;
use crate::failure::{Declined, Failure};
use bytes::Bytes;
use serde_json::{Map, Value};
use smallvec::SmallVec;

/// One thing that an upstream said.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The upstream lives, but the model said nothing: a preamble, a ping, a comment, an empty delta.
    Alive,
    /// Who speaks: sent before the first progress and again whenever the upstream changes it in mid-stream.
    Identity(Box<Identity>),
    /// A thinking phase whose text is not shown began (`true`) or ended (`false`). While it is open the model
    /// works in silence and the `thinking` clock replaces the others.
    Thinking(bool),
    /// Visible text. Never empty.
    Text {
        /// Which of the `n` answers.
        choice: u32,
        /// The piece.
        text: String,
    },
    /// Reasoning text that is shown. Never empty.
    Reasoning {
        /// Which of the `n` answers.
        choice: u32,
        /// The piece.
        text: String,
    },
    /// The signature that closes a reasoning block, or a whole opaque one; only its issuer can read it.
    Signature {
        /// Which of the `n` answers.
        choice: u32,
        /// Opaque text.
        data: String,
        /// The block holds no readable reasoning, only `data` (Anthropic `redacted_thinking`).
        redacted: bool,
    },
    /// A piece of the model's refusal. Never empty.
    Refusal {
        /// Which of the `n` answers.
        choice: u32,
        /// The piece.
        text: String,
    },
    /// A tool call begins. `call` counts from 0 within the attempt and choice, without gaps. Where a provider tells the name
    /// in pieces it is told again, with the whole name so far, before anything else of the call.
    ToolOpen {
        /// Which of the `n` answers.
        choice: u32,
        /// Ordinal of the call.
        call: u32,
        /// The provider's id of the call; empty where it gave none.
        id: String,
        /// The function's name.
        name: String,
    },
    /// A fragment of a call's JSON arguments. Never empty.
    ToolArgs {
        /// Which of the `n` answers.
        choice: u32,
        /// Ordinal of the call.
        call: u32,
        /// The fragment.
        args: String,
    },
    /// A call's arguments are complete.
    ToolClose {
        /// Which of the `n` answers.
        choice: u32,
        /// Ordinal of the call.
        call: u32,
    },
    /// Tokens so far. Within an attempt the last one holds.
    Usage(Box<Usage>),
    /// A choice is finished.
    Finish {
        /// Which of the `n` answers.
        choice: u32,
        /// Why.
        reason: Finish,
        /// The stop sequence that was met, where the provider names it.
        stop_sequence: Option<String>,
    },
    /// Fields without a common form (log-probabilities, annotations, vendor extensions). An encoder of the same
    /// dialect writes them back; any other drops them.
    Extra(Box<Extra>),
}

/// The ids that an upstream gave to its answer. Empty or zero where it gave none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Response id.
    pub id: String,
    /// The model's own name for itself.
    pub model: String,
    /// Unix seconds; 0 where the upstream gave none.
    pub created: u64,
}

/// Tokens, as one provider counted them. `None`: it did not say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// All tokens of the prompt, cached ones included.
    pub prompt: Option<u64>,
    /// All generated tokens, reasoning included.
    pub completion: Option<u64>,
    /// The part of `completion` that was reasoning.
    pub reasoning: Option<u64>,
    /// The part of `prompt` that was read from a cache.
    pub cache_read: Option<u64>,
    /// The part of `prompt` that was written to a cache.
    pub cache_write: Option<u64>,
    /// The object as the provider wrote it, for clients of the same dialect.
    pub native: Option<(DialectId, Map<String, Value>)>,
}

/// Why a choice ended. `Other` keeps an unknown word; to a client it reads as `stop`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The model was done, or met a stop sequence.
    Stop,
    /// The limit of tokens was met.
    Length,
    /// The model called tools.
    ToolCalls,
    /// The provider withheld the rest.
    ContentFilter,
    /// The provider paused a long turn that the client may resume (Anthropic `pause_turn`).
    Pause,
    /// A word that this version does not know.
    Other(String),
}

/// Where the fields of an [`Extra`] stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the delta of a choice.
    Delta(u32),
    /// Beside the delta of a choice.
    Choice(u32),
    /// At the top of the event.
    Top,
    /// A whole event or content block of its own.
    Whole,
    /// In a tool call. Fields that came with its opening are told before it.
    Call {
        /// Of which choice.
        choice: u32,
        /// Ordinal of the call.
        call: u32,
    },
    /// Not on the wire: the provider's own names for what has a common form (`{"reasoning": "reasoning_text"}`), which its
    /// clients will send back.
    Names,
}

/// Fields of one dialect that no other knows.
#[derive(Clone, Debug, PartialEq)]
pub struct Extra {
    /// Whose fields they are.
    pub dialect: DialectId,
    /// Where they stood.
    pub place: Place,
    /// The fields, as they came.
    pub fields: Map<String, Value>,
    /// Content that only its issuer can go on from (server tools, citations, generated images).
    pub bound: bool,
}

/// What one upstream event amounts to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// In the order in which they are to be told.
    pub events: SmallVec<[Event; 2]>,
    /// The event's data as it came, on one line, where it says nothing but `events` and could be passed on as it
    /// is. The relay clears it when it changes an event; the encoder writes it only when it is legal there.
    pub raw: Option<(DialectId, Bytes)>,
}

/// What happened to an attempt.
#[derive(Clone, Debug, PartialEq)]
pub enum Signal {
    /// It waits for the connection's quota; nothing was sent yet.
    Queued,
    /// The request is on its way.
    Sent,
    /// The provider tells how many further requests it takes now; before [`Self::Opened`]. It is for the rules of health
    /// alone: the fleet keeps it to itself.
    Left(u64),
    /// A response was accepted.
    Opened,
    /// An event came, or bytes that are part of one ([`Event::Alive`]).
    Step(Step),
    /// The answer is whole; nothing follows.
    Ended,
    /// The attempt is over, and the answer is not whole; nothing follows.
    Failed(Box<Failure>),
    /// It is not made; nothing was sent and nothing follows.
    Declined(Box<Declined>),
}

// === impl Event ===

impl Event {
    /// Which choice it is about; `None` where it is about the answer, or has no place of its own.
    pub fn choice(&self) -> Option<u32> {
        match self {
            Self::Text { choice, .. }
            | Self::Reasoning { choice, .. }
            | Self::Refusal { choice, .. }
            | Self::ToolOpen { choice, .. }
            | Self::ToolArgs { choice, .. }
            | Self::ToolClose { choice, .. }
            | Self::Signature { choice, .. }
            | Self::Finish { choice, .. } => Some(*choice),
            Self::Extra(extra) => match extra.place {
                Place::Delta(choice) | Place::Choice(choice) | Place::Call { choice, .. } => Some(choice),
                Place::Top | Place::Whole | Place::Names => None,
            },
            Self::Alive | Self::Identity(_) | Self::Thinking(_) | Self::Usage(_) => None,
        }
    }

    /// Whether the model has said something: text, reasoning, a refusal, a tool call or a finish. Role chunks,
    /// headers, comments, pings and usage are no progress; the clocks for silence and every race go by this.
    pub fn is_progress(&self) -> bool {
        match self {
            Self::Text { .. }
            | Self::Reasoning { .. }
            | Self::Refusal { .. }
            | Self::ToolOpen { .. }
            | Self::ToolArgs { .. }
            | Self::Finish { .. } => true,
            Self::Extra(extra) => extra.bound,
            Self::Alive
            | Self::Identity(_)
            | Self::Thinking(_)
            | Self::Signature { .. }
            | Self::ToolClose { .. }
            | Self::Usage(_) => false,
        }
    }
}

impl Event {
    /// About how many bytes it occupies, those on the heap included.
    pub fn weight(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Text { text, .. } | Self::Reasoning { text, .. } | Self::Refusal { text, .. } => text.len(),
                Self::Signature { data, .. } => data.len(),
                Self::ToolOpen { id, name, .. } => id.len() + name.len(),
                Self::ToolArgs { args, .. } => args.len(),
                Self::Identity(identity) => size_of::<Identity>() + identity.id.len() + identity.model.len(),
                Self::Usage(usage) => {
                    size_of::<Usage>() + usage.native.as_ref().map_or(0, |(_, fields)| weight_of_fields(fields))
                }
                Self::Finish { stop_sequence, .. } => stop_sequence.as_ref().map_or(0, String::len),
                Self::Extra(extra) => size_of::<Extra>() + weight_of_fields(&extra.fields),
                Self::Alive | Self::Thinking(_) | Self::ToolClose { .. } => 0,
            }
    }

    /// Takes over what `later` says if it is more of the same; otherwise gives it back.
    fn join(&mut self, later: Self) -> Option<Self> {
        match (self, later) {
            (Self::Text { choice, text }, Self::Text { choice: c, text: more })
            | (Self::Reasoning { choice, text }, Self::Reasoning { choice: c, text: more })
            | (Self::Refusal { choice, text }, Self::Refusal { choice: c, text: more })
                if *choice == c =>
            {
                text.push_str(&more);
                None
            }
            (Self::ToolArgs { choice, call, args }, Self::ToolArgs { choice: c, call: n, args: more })
                if *choice == c && *call == n =>
            {
                args.push_str(&more);
                None
            }
            (_, later) => Some(later),
        }
    }
}

// === impl Identity ===

impl Identity {
    /// What of a provider's id is told. Clients are told it in every chunk, so one that is too long is none, and the
    /// encoder mints one.
    pub fn bounded_id(id: &str) -> &str {
        if id.len() <= Self::BYTES { id } else { "" }
    }

    /// What of a model's name is told, for the same reason.
    pub fn bounded_model(model: &str) -> &str {
        &model[..model.floor_char_boundary(Self::BYTES)]
    }

    /// The most bytes of a response id, and of a model's name.
    pub const BYTES: usize = 512;
}

// === impl Step ===

impl Step {
    /// Adds an event; what only goes on with the last one is joined to it.
    pub fn push(&mut self, event: Event) {
        push(&mut self.events, event);
    }

    /// A step of one event.
    pub fn of(event: Event) -> Self {
        Self { events: smallvec::smallvec![event], raw: None }
    }

    /// Whether any event of it is progress.
    pub fn is_progress(&self) -> bool {
        self.events.iter().any(Event::is_progress)
    }
}

// === impl Usage ===

impl Usage {
    /// What a provider gives as a count. A number that no model could reach is a fault of the provider's, and counts as
    /// not said: taken at its word, it would use up the limits of a tenant, or of all, for hours.
    pub fn count(said: &Value) -> Option<u64> {
        said.as_u64().filter(|count| *count <= MOST_TOKENS)
    }

    /// Adds what a provider wrote to what is kept of it, as far as that is passed on.
    pub fn keep(kept: &mut Map<String, Value>, said: Map<String, Value>) {
        keep(kept, said, USAGE);
    }

    /// Takes what `later` says and keeps the rest: providers report usage piecemeal, and within an attempt the last
    /// word on each count holds.
    pub fn update(&mut self, later: Self) {
        let Self { prompt, completion, reasoning, cache_read, cache_write, native } = later;
        self.prompt = prompt.or(self.prompt);
        self.completion = completion.or(self.completion);
        self.reasoning = reasoning.or(self.reasoning);
        self.cache_read = cache_read.or(self.cache_read);
        self.cache_write = cache_write.or(self.cache_write);
        match (&mut self.native, native) {
            (Some((dialect, old)), Some((new_dialect, new))) if *dialect == new_dialect => Self::keep(old, new),
            (slot, Some(new)) => *slot = Some(new),
            (_, None) => {}
        }
    }
}

// === helpers ===

/// Adds an event to `events`; what only goes on with the last one is joined to it, so that the number of events that
/// come out of one upstream event does not grow with the number of its pieces.
pub fn push(events: &mut SmallVec<[Event; 2]>, event: Event) {
    let rest = match events.last_mut() {
        Some(last) => last.join(event),
        None => Some(event),
    };
    events.extend(rest);
}

/// Adds fields to those that are kept until the answer ends: as many as any API has, none of them longer than `most` bytes
/// by [`weight_of`]. What a provider says besides is not kept, so that its small events cannot add up.
pub fn keep(kept: &mut Map<String, Value>, fields: Map<String, Value>, most: usize) {
    for (name, value) in fields {
        let room = kept.len() < FIELDS || kept.contains_key(&name);
        if room && name.len() <= NAME && weight_of(&value) <= most {
            kept.insert(name, value);
        }
    }
}

/// About how many bytes `value` occupies on the heap.
pub fn weight_of(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| size_of::<Value>() + weight_of(item)).sum(),
        Value::Object(fields) => weight_of_fields(fields),
    }
}

fn weight_of_fields(fields: &Map<String, Value>) -> usize {
    fields.iter().map(|(name, value)| FIELD + name.len() + weight_of(value)).sum()
}

/// What a field of an object occupies besides its name's and its value's own bytes: both as they stand in the table of
/// entries, and their place in its index.
const FIELD: usize = size_of::<(String, Value)>() + 24;

/// How many fields are kept, and how long their names may be.
const FIELDS: usize = 64;
const NAME: usize = 256;

/// The most bytes of one field of a provider's usage.
const USAGE: usize = 4 << 10;

/// More tokens than any model takes or makes in one answer.
const MOST_TOKENS: u64 = 100_000_000;
