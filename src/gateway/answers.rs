//! Answers that clients refer to by their ids: what a request refers to is put into it, and its own answer is kept for
//! those that will.
//!
//! An answer is kept with what was asked, under an id of its own, and names the answer that it followed; so two that
//! follow the same one do not disturb each other, and nothing is kept twice. Whoever is followed is kept on. As with
//! conversations, a store that fails fails no turn, save one that cannot be understood without it.

use super::{Caller, Gateway, Inner, LiveTurn};
use crate::chat::{DialectId, Request};
use crate::dialect::history::Answers;
use crate::dialect::{self, Reason, Refusal};
use crate::relay::journal::Journal;
use crate::relay::{Ending, Outcome, Why};
use crate::store::{Answer, Conversation, Exchange, Key, Question, ServedBy, State};
use futures::FutureExt;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// An answer that is to be kept.
pub(super) struct Kept {
    gateway: Arc<Inner>,
    key: Key,
    turn: Arc<str>,
    origin: DialectId,
    asked: Vec<Value>,
}

/// Puts into the request what it refers to. `None` where its answer is not to be kept.
///
/// # Errors
/// What it refers to is not kept, or the store cannot be asked.
pub(super) async fn recall(
    inner: &Arc<Inner>,
    live: &LiveTurn,
    request: &mut Request,
) -> Result<Option<Kept>, Refusal> {
    let Some(answers) = dialect::client(request.origin).and_then(dialect::Client::answers) else { return Ok(None) };
    let tenant = live.tenant.as_ref().map(|tenant| &*tenant.name);
    let kept = request.extensions.keep.then(|| Kept {
        gateway: Arc::clone(inner),
        key: key(tenant, &answers.id(request)),
        turn: live.id.as_str().into(),
        origin: request.origin,
        asked: answers.asked(request),
    });
    let mut past = Vec::new();
    if let Some(previous) = request.extensions.previous.clone() {
        past = before(inner, answers, tenant, previous).await?;
    }
    let mut references = request.extensions.references.clone();
    references.extend(answers.references(&past));
    if past.is_empty() && references.is_empty() {
        return Ok(kept);
    }
    let mut known = HashMap::new();
    for id in references {
        if known.len() < MOST
            && !known.contains_key(&id)
            && let Some(conversation) = load(inner, &key(tenant, &id)).await?
            && let Some(answer) = answer_of(&conversation)
        {
            known.insert(id, answer.clone());
        }
    }
    answers.recall(request, past, &known)?;
    Ok(kept)
}

// === impl Kept ===

impl Kept {
    /// Keeps the answer. `record`: what its client was told; `whole_only`: nothing before it was complete.
    pub(super) fn finish(self, record: Option<Value>, journal: &Journal, whole_only: bool) {
        let state = match &journal.outcome {
            Some(Outcome::Complete(_)) => State::Complete,
            _ if whole_only => return,
            Some(Outcome::Failed(fault)) if fault.ending != Ending::HungUp(Why::Superseded) => State::Incomplete,
            Some(Outcome::Failed(_) | Outcome::Interrupted(_)) | None => State::Interrupted,
        };
        let Some(record) = record else { return };
        let Self { gateway, key, turn, origin, asked } = self;
        let served_by = journal
            .speaker()
            .map(|a| ServedBy { connection: Arc::clone(&a.target.connection), model: Arc::clone(&a.target.model) });
        let answer = Some(Answer { state, message: Some(record), served_by });
        let question =
            Question { system: None, keep: 0, more: vec![Exchange { origin, asked, turn: Some(turn), answer }] };
        let store = Arc::clone(&gateway.store);
        let mut call = Box::pin(async move { store.ask(&key, question).await });
        if let Some(done) = (&mut call).now_or_never() {
            gateway.store_gave("keep", done);
            return;
        }
        match tokio::runtime::Handle::try_current() {
            // A shutdown need not wait for it: the bound on a call to the store is far below the time to drain.
            Ok(runtime) => drop(runtime.spawn(async move {
                gateway.store_call("keep", call).await;
            })),
            Err(_) => tracing::warn!("a turn ended outside of the runtime; its answer is not kept"),
        }
    }
}

// === impl Gateway ===

impl Gateway {
    /// The answer of that id, as its client was told it.
    ///
    /// # Errors
    /// 404 if none is kept under that id for this caller; 503 where the store cannot be asked.
    pub async fn answer(&self, caller: &Caller, id: &str) -> Result<Value, Refusal> {
        let kept = load(&self.0, &self.key_of(caller, id)).await?;
        kept.as_ref().and_then(answer_of).cloned().ok_or_else(|| unknown(id))
    }

    /// Forgets the answer of that id.
    ///
    /// # Errors
    /// As [`Self::answer`].
    pub async fn forget_answer(&self, caller: &Caller, id: &str) -> Result<(), Refusal> {
        let forgotten = self.forget(&self.key_of(caller, id)).await.map_err(|_| unavailable())?;
        if forgotten { Ok(()) } else { Err(unknown(id)) }
    }

    fn key_of(&self, caller: &Caller, id: &str) -> Key {
        key(caller.tenant.as_ref().map(|tenant| &*tenant.name), id)
    }
}

// === helpers ===

/// Answers stand beside conversations, under names that no conversation can have: those hold no control characters.
fn key(tenant: Option<&str>, id: &str) -> Key {
    Key::new(tenant, &format!("\u{1}{id}"))
}

async fn load(inner: &Inner, key: &Key) -> Result<Option<Conversation>, Refusal> {
    match inner.store_call("load", inner.store.load(key)).await {
        Some(kept) => Ok(kept),
        None => Err(unavailable()),
    }
}

fn answer_of(conversation: &Conversation) -> Option<&Value> {
    conversation.exchanges.first()?.answer.as_ref()?.message.as_ref()
}

/// What was said up to and with the answer `id`, in order.
async fn before(
    inner: &Arc<Inner>,
    answers: &dyn Answers,
    tenant: Option<&str>,
    id: String,
) -> Result<Vec<Value>, Refusal> {
    let mut exchanges: Vec<Arc<Exchange>> = Vec::new();
    let mut next = Some(id);
    while let Some(id) = next {
        let key = key(tenant, &id);
        let kept = load(inner, &key).await?;
        let Some(exchange) = kept.and_then(|conversation| conversation.exchanges.into_iter().next()) else {
            return Err(answers.missing(&id));
        };
        if exchanges.len() == MOST {
            let message = format!("more than {MOST} answers stand before this one; send the conversation in `input`");
            return Err(Refusal::new(Reason::Request, "too_much", message).about("previous_response_id"));
        }
        next = exchange.answer.as_ref().and_then(|answer| answers.before(answer.message.as_ref()?));
        // Written again, it is kept for as long as the newest that builds on it.
        if let (Some(turn), Some(answer)) = (&exchange.turn, &exchange.answer) {
            inner.store_call("keep on", inner.store.answer(&key, turn, answer.clone())).await;
        }
        exchanges.push(exchange);
    }
    let all = exchanges.iter().rev();
    let told = |exchange: &Arc<Exchange>| exchange.answer.as_ref().and_then(|answer| answer.message.clone());
    Ok(all.flat_map(|exchange| exchange.asked.iter().cloned().chain(told(exchange))).collect())
}

fn unknown(id: &str) -> Refusal {
    let shown: String = id.chars().take(SHOWN).collect();
    let message = format!("Response with id '{shown}' not found: it is not kept here (any more).");
    Refusal::new(Reason::NotFound, "response_not_found", message)
}

fn unavailable() -> Refusal {
    let message = "answers that were kept cannot be read now; ask again, or send the whole conversation in `input`";
    Refusal::new(Reason::Unavailable, "store_unavailable", message)
}

/// The most answers that one request may build on.
const MOST: usize = 1000;
/// The most characters of an id that an error repeats.
const SHOWN: usize = 100;
