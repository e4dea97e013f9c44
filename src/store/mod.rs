//! Conversations: what was said, how far each answer got, and who gave it.
//!
//! The messages of a client are authoritative: one that sends them all replaces what is kept. One that sends only what is
//! new (`x-segue-history: append`) relies on it. Everything is kept in the words of the dialect in which it was said, so
//! that it goes upstream again byte for byte.
//!
//! A conversation is a list of exchanges: what was asked, and the answer. The question is written before anybody is
//! asked, the answer when its turn ends, however it ends. An answer holds only what may be sent to a model again: a call
//! that was cut off and reasoning without a signature are not in it.
//!
//! [`Store`] is where it is kept; [`memory`] keeps it in this process. A store that fails never fails a turn: whoever
//! uses it goes on without. [`told`] collects the answer, [`replay`] is how history and new messages become one
//! conversation again, and [`view`] is what operators see.

mod guess;
pub mod memory;
pub mod replay;
pub mod told;
pub mod view;

use crate::chat::{DialectId, Message, Role};
use crate::dialect;
use crate::dialect::history::Spoken;
use futures::future::BoxFuture;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// Which conversation: two tenants' conversations of one name are two.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Whose; `None` without tenants.
    pub tenant: Option<Arc<str>>,
    /// Its name.
    pub conversation: Arc<str>,
}

/// What is kept of a conversation. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    /// The instructions that stand before it.
    pub system: Option<System>,
    /// What was asked and answered, in order.
    pub exchanges: Vec<Arc<Exchange>>,
}

/// Instructions in the words of a dialect.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    /// Whose words.
    pub origin: DialectId,
    /// The words, as [`Spoken::system`](crate::dialect::history::Spoken::system) holds them.
    pub words: Arc<Value>,
}

/// What was asked, and the answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// The dialect of its messages.
    pub origin: DialectId,
    /// What was asked, as the client wrote it: of the user, or results of tools.
    pub asked: Vec<Value>,
    /// The turn that answers it; `None` where the client told of the exchange.
    pub turn: Option<Arc<str>>,
    /// The answer; `None` while its turn is under way.
    pub answer: Option<Answer>,
}

/// The answer of an exchange.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// How it ended.
    pub state: State,
    /// What the client was told of it, as far as a model may be told it again; `None`: nothing.
    pub message: Option<Value>,
    /// Who gave it; of several the last. `None` where the client told of it, or nobody said anything.
    pub served_by: Option<ServedBy>,
}

/// A target by its names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServedBy {
    /// The connection.
    pub connection: Arc<str>,
    /// The model.
    pub model: Arc<str>,
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The model finished it.
    Complete,
    /// It was ended by an error after something was told.
    Incomplete,
    /// The client left, or a newer turn took its place.
    Interrupted,
    /// It was ended by an error and nothing was told: for the client the request never happened.
    Failed,
}

/// A question to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The instructions from here on.
    pub system: Option<System>,
    /// So many exchanges stay; later ones are forgotten.
    pub keep: usize,
    /// These follow. The last is the one that is now to be answered.
    pub more: Vec<Exchange>,
}

/// How many bytes a write freed and added, by estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Freed.
    pub freed: usize,
    /// Added.
    pub added: usize,
}

/// The store cannot be used now; words for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable(pub String);

/// Where conversations are kept.
///
/// One conversation is written by one turn at a time; whoever uses a store sees to that. Different conversations are
/// written in parallel.
pub trait Store: Send + Sync {
    /// What is kept of a conversation; `None`: nothing.
    fn load<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Conversation>, Unavailable>>;

    /// Writes a question, before anybody is asked it.
    fn ask<'a>(&'a self, key: &'a Key, question: Question) -> BoxFuture<'a, Result<(), Unavailable>>;

    /// Writes how far the answer of `turn` got; the last word counts. Nothing happens if the exchange is not kept any more:
    /// a conversation that was deleted during a turn stays deleted.
    fn answer<'a>(&'a self, key: &'a Key, turn: &'a str, answer: Answer) -> BoxFuture<'a, Result<(), Unavailable>>;

    /// Forgets a conversation; gives whether there was one.
    fn forget<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<bool, Unavailable>>;
}

// === impl Key ===

impl Key {
    /// The key of a tenant's conversation.
    pub fn new(tenant: Option<&str>, conversation: &str) -> Self {
        Self { tenant: tenant.map(Into::into), conversation: conversation.into() }
    }
}

// === impl Conversation ===

impl Conversation {
    /// Writes a question.
    pub fn ask(&mut self, question: Question) -> Change {
        let Question { system, keep, more } = question;
        let freed =
            instructions(self.system.as_ref()) + self.exchanges.iter().skip(keep).map(|e| e.bytes()).sum::<usize>();
        let added = instructions(system.as_ref()) + more.iter().map(Exchange::bytes).sum::<usize>();
        self.system = system;
        self.exchanges.truncate(keep);
        self.exchanges.extend(more.into_iter().map(Arc::new));
        Change { freed, added }
    }

    /// Writes how far the answer of `turn` got; `None` if there is no such exchange any more.
    pub fn answer(&mut self, turn: &str, answer: Answer) -> Option<Change> {
        let exchange = self.exchanges.iter_mut().rfind(|e| e.turn.as_deref() == Some(turn))?;
        let exchange = Arc::make_mut(exchange);
        let freed = exchange.bytes();
        exchange.answer = Some(answer);
        Some(Change { freed, added: exchange.bytes() })
    }

    /// Who gave the last answer in which somebody said something.
    pub fn served_by(&self) -> Option<&ServedBy> {
        self.exchanges.iter().rev().find_map(|e| e.answer.as_ref()?.served_by.as_ref())
    }
}

// === impl Exchange ===

impl Exchange {
    /// About how many bytes it occupies.
    pub fn bytes(&self) -> usize {
        let answer = self.answer.as_ref().and_then(|a| a.message.as_ref()).map_or(0, weight);
        EXCHANGE + self.asked.iter().map(weight).sum::<usize>() + answer
    }

    /// The common form of messages of it. Instructions among them are messages too.
    pub fn common(&self, messages: Vec<Value>) -> Vec<Message> {
        common(self.origin, messages)
    }
}

// === impl State ===

impl State {
    /// The name in the admin interface.
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Incomplete => "incomplete",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// === helpers ===

/// The common form of messages in the words of `origin`; empty if they cannot be read.
fn common(origin: DialectId, messages: Vec<Value>) -> Vec<Message> {
    let history = dialect::client(origin).map(dialect::Client::history);
    let read = history.and_then(|h| h.read(&Spoken { system: None, messages }).ok());
    let Some((system, mut messages)) = read else { return Vec::new() };
    if !system.is_empty() {
        messages.insert(0, Message { role: Role::System, parts: system });
    }
    messages
}

fn instructions(system: Option<&System>) -> usize {
    system.map_or(0, |s| weight(&s.words))
}

/// About how many bytes a value occupies: its texts, and what holds them together.
fn weight(value: &Value) -> usize {
    NODE + match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(weight).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| NODE + name.len() + weight(value)).sum(),
    }
}

/// What a value occupies besides its text.
const NODE: usize = 72;

/// What an exchange occupies besides its messages.
const EXCHANGE: usize = 256;
