//! How a dialect writes a conversation: what a store keeps of it, and what it gives back.
//!
//! A conversation is kept in the words of the client that led it. So whatever it said goes upstream again byte for byte
//! (prompt caches hit, fields that nobody here knows survive), and the common form is read off those words when it is
//! needed, as it is for a request.

use super::Refusal;
use crate::chat::{Message, Part, Request};
use serde_json::Value;
use std::collections::HashMap;

/// A conversation in the words of one dialect.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spoken {
    /// The instructions that stand before it, however the dialect holds them.
    pub system: Option<Value>,
    /// Its messages, in order.
    pub messages: Vec<Value>,
}

/// Reads and writes conversations. All methods are pure functions of their arguments.
pub trait History: Send + Sync {
    /// The conversation of a request, as the client wrote it.
    fn spoken(&self, request: &Request) -> Spoken;

    /// Puts `spoken` in the place of the request's own conversation, in the body and in the common form.
    ///
    /// # Errors
    /// A refusal that names the message which cannot be read; the request is of no use then.
    fn put(&self, request: &mut Request, spoken: Spoken) -> Result<(), Refusal>;

    /// The common form: instructions and messages.
    ///
    /// # Errors
    /// A refusal that names the message which cannot be read.
    fn read(&self, spoken: &Spoken) -> Result<(Vec<Part>, Vec<Message>), Refusal>;

    /// The words for a conversation that another dialect led, or for an answer that was told. What cannot be said here
    /// is left out; nothing is added.
    fn write(&self, system: &[Part], messages: &[Message]) -> Spoken;

    /// Whether a message is the model's.
    fn is_answer(&self, message: &Value) -> bool;

    /// Takes tool calls without a result and results without a call out of the first `past` messages, and messages that
    /// have nothing left to say: a provider refuses a conversation with them. The messages after those are the client's
    /// new ones and are looked at only.
    fn mend(&self, messages: &mut Vec<Value>, past: usize);

    /// The id that the client was told of a call whose provider gave it none; `call` counts from 0 within the turn.
    fn call_id(&self, request: &Request, call: u32) -> String;
}

/// Answers that a client can refer to by their ids. All methods are pure functions of their arguments.
pub trait Answers: Send + Sync {
    /// The id that the answer to `request` has, whoever gives it.
    fn id(&self, request: &Request) -> String;

    /// What `request` itself asks, as its client wrote it.
    fn asked(&self, request: &Request) -> Vec<Value>;

    /// The id of the answer that `answer` followed.
    fn before(&self, answer: &Value) -> Option<String>;

    /// The ids of the answers that parts of `asked` refer to, each once.
    fn references(&self, asked: &[Value]) -> Vec<String>;

    /// Puts `past` before what the request asks, and in the place of each reference what it refers to in `known`, which
    /// has answers by their ids.
    ///
    /// # Errors
    /// A refusal that names what is not known, or cannot be read; the request is of no use then.
    fn recall(&self, request: &mut Request, past: Vec<Value>, known: &HashMap<String, Value>) -> Result<(), Refusal>;

    /// The refusal of a request that follows an answer which is not kept.
    fn missing(&self, id: &str) -> Refusal;

    /// What a client is told when it had an answer forgotten.
    fn forgotten(&self, id: &str) -> Value;
}

// === helpers ===

/// What the user is made to say where a late result was all that was sent: it was moved to its call, far above.
pub(super) fn told_late(content: &Value) -> String {
    let text = match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part.get("text")?.as_str()).collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    };
    format!("The result of an earlier call has come: {text}")
}

/// Runs `mend` over the first `past` messages: it is given the message before, the message itself and those after it, and
/// says whether the message still says something.
pub(super) fn mend_each(
    messages: &mut Vec<Value>,
    past: usize,
    mut mend: impl FnMut(Option<&Value>, &mut Value, &[Value]) -> bool,
) {
    let past = past.min(messages.len());
    // What stays moves to the front as it is found: each message is moved once, however many go.
    let mut kept = 0;
    for at in 0..past {
        let (before, rest) = messages.split_at_mut(at);
        let Some((message, after)) = rest.split_first_mut() else { break };
        if mend(before[..kept].last(), message, after) {
            messages.swap(kept, at);
            kept += 1;
        }
    }
    messages.drain(kept..past);
}
