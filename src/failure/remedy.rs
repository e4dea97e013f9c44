//! What a refusal suggests: the form in which the same target would take the request.

use crate::chat::modality::Modality;

/// A way in which the same target may be asked again at once, as its own refusal suggests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// It does not take an assistant message at the end: use the instruct continuation.
    Instruct,
    /// It refused earlier reasoning or its signature: leave reasoning out of the history.
    StripReasoning,
    /// It misses reasoning of an earlier turn, which another model led: ask it not to think.
    NoThinking,
    /// It misses a signature on a call that another model made: sign with the mark that its vendor documents for that.
    MarkCalls,
    /// It lacks optional features: leave these fields of the request out.
    Drop {
        /// Their names, in its dialect; not empty.
        fields: Vec<String>,
        /// It takes them with no value; else only the value was refused.
        lasting: bool,
    },
    /// It does not know these fields of messages, parts, calls or tools: leave them out of those.
    DropInside(Vec<String>),
    /// The limit of tokens is over what it gives.
    Cap {
        /// The most that it gives.
        tokens: u64,
        /// It never gives more; else it does not with this prompt.
        lasting: bool,
    },
    /// It takes one name of the limit of tokens, not both.
    OneLimit,
    /// It wants other ids of calls.
    CallIds(CallIds),
    /// It wants the client's instructions under another role.
    Instructions(Instructions),
    /// It takes no content of this kind.
    Lacks(Modality),
    /// It takes nothing but text in the result of a tool.
    ToolText,
    /// It takes a message's content as one text, not as a list of parts.
    Flat,
    /// It wants user and assistant to take turns.
    Alternate,
}

/// What ids of calls a target takes. Each is unique within a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallIds {
    /// Any.
    #[default]
    Any,
    /// Letters, digits, `_` and `-`, 64 at most.
    Word,
    /// The same, 40 at most.
    Short,
    /// Nine letters or digits.
    Nine,
}

/// Under which role a target takes instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Instructions {
    /// As the client wrote them.
    #[default]
    AsWritten,
    /// `system`, not `developer`.
    System,
    /// One `system` message, before all others.
    First,
    /// Neither: they stand in the first message of the user.
    User,
}
