//! A turn's part in its conversation: the history that it is given, and the answer that is kept of it.
//!
//! The question is kept before anybody is asked, the answer when the turn ends, however it ends, and the conversation is
//! free for its next turn only then: who barges in finds what was said before. A store that fails or is slow fails no
//! turn: the turn goes on with what the client sent, and nothing is kept of it.

use super::place::{Busy, Hold, Place};
use super::{Inner, LiveTurn};
use crate::chat::{DialectId, Request};
use crate::dialect::history::History;
use crate::dialect::{self, Reason, Refusal};
use crate::event::Step;
use crate::relay::journal::Journal;
use crate::relay::{Ending, Outcome, Relay, Why};
use crate::routing::Level;
use crate::store::replay::{self, Gap};
use crate::store::told::Told;
use crate::store::{Answer, Key, Question, ServedBy, State, Unavailable};
use futures::FutureExt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A turn's part in its conversation. While it lives the conversation is taken.
pub(super) struct Part {
    gateway: Arc<Inner>,
    place: Place,
    turn: Arc<str>,
    /// Not written yet.
    question: Option<Question>,
    /// The question is kept, so the answer will be.
    kept: bool,
    history: &'static dyn History,
    /// Who gave the answer before.
    served_by: Option<ServedBy>,
    told: Told,
}

/// Takes the conversation that the request names, and completes the request from what is kept of it. `None` for a turn
/// without one.
pub(super) async fn join(
    inner: &Arc<Inner>,
    live: &LiveTurn,
    level: &Level,
    request: &mut Request,
    patience: Duration,
) -> Result<Option<Part>, Refusal> {
    let extensions = &request.extensions;
    let history = dialect::client(request.origin).map(dialect::Client::history);
    let (Some(name), Some(history)) = (&extensions.conversation, history) else {
        if !extensions.append_history {
            return Ok(None);
        }
        let message = "x-segue-history: append needs a conversation to append to; name it in `conversation_id` or \
                       x-segue-conversation, or send the whole history in `messages`";
        return Err(Refusal::new(Reason::Request, "no_conversation", message).about("x-segue-history"));
    };
    let key = Key { tenant: live.tenant.as_ref().map(|t| Arc::clone(&t.name)), conversation: name.as_str().into() };
    let taken = inner.places.take(key, level.conversation, patience, &inner.hangup).await;
    let place = taken.map_err(|busy| refusal(busy, name))?;
    let loaded = inner.store_call("load", inner.store.load(place.key())).await;
    if place.token().is_cancelled() {
        return Err(refusal(if inner.hangup.is_cancelled() { Busy::Draining } else { Busy::Superseded }, name));
    }
    let turn: Arc<str> = live.id.as_str().into();
    let usable = loaded.is_some();
    let stored = loaded.flatten().unwrap_or_default();
    let served_by = stored.served_by().cloned();
    let question = if extensions.append_history {
        let index = extensions.turn_index.filter(|_| usable);
        let (question, spoken) =
            replay::append(&stored, request, history, &turn, index).map_err(|gap| missing(gap, name))?;
        history.put(request, spoken)?;
        question
    } else {
        replay::full(&stored, request, history, &turn)
    };
    let gateway = Arc::clone(inner);
    let question = usable.then_some(question);
    Ok(Some(Part { gateway, place, turn, question, kept: false, history, served_by, told: Told::default() }))
}

// === impl Part ===

impl Part {
    /// Who gave the answer before this one.
    pub(super) fn served_by(&self) -> Option<&ServedBy> {
        self.served_by.as_ref()
    }

    /// Cancelled when the turn must end.
    pub(super) fn token(&self) -> &CancellationToken {
        self.place.token()
    }

    /// How the turn is reached by one that takes its place.
    pub(super) fn hold(&self) -> Arc<Hold> {
        self.place.hold()
    }

    /// Keeps the question.
    pub(super) async fn ask(&mut self) {
        let Some(question) = self.question.take() else { return };
        let store = Arc::clone(&self.gateway.store);
        self.kept = self.gateway.store_call("ask", store.ask(self.place.key(), question)).await.is_some();
    }

    /// Notes what is being told. `issuer`: the dialect of whoever says it.
    pub(super) fn note(&mut self, step: &Step, issuer: DialectId, request: &Request) {
        if self.kept {
            let history = self.history;
            self.told.note(step, issuer, |call| history.call_id(request, call));
        }
    }

    /// Keeps the answer; then the conversation is free. A store that does not answer at once is waited for elsewhere.
    pub(super) fn finish(self, relay: &Relay, whole_only: bool) {
        if !self.kept {
            return;
        }
        let journal = relay.journal();
        // Of a whole answer that was not finished its client has nothing.
        let nothing = whole_only && !matches!(journal.outcome, Some(Outcome::Complete(_)));
        let silent = nothing || relay.turn().is_silent();
        let Self { gateway, place, turn, history, told, .. } = self;
        let answer = Answer {
            state: state(journal, silent),
            message: if nothing { None } else { replay::answer(told, history) },
            served_by: journal
                .speaker()
                .map(|a| ServedBy { connection: Arc::clone(&a.target.connection), model: Arc::clone(&a.target.model) }),
        };
        let (store, key) = (Arc::clone(&gateway.store), place.key().clone());
        let mut call = Box::pin(async move { store.answer(&key, &turn, answer).await });
        if let Some(done) = (&mut call).now_or_never() {
            gateway.store_gave("answer", done);
            return;
        }
        match tokio::runtime::Handle::try_current() {
            // A shutdown need not wait for it: the bound on a call to the store is far below the time to drain.
            Ok(runtime) => drop(runtime.spawn(async move {
                gateway.store_call("answer", call).await;
                drop(place);
            })),
            Err(_) => tracing::warn!("a turn ended outside of the runtime; its answer is not kept"),
        }
    }
}

// === impl Inner ===

impl Inner {
    /// What the store gives; `None`, counted and logged, if it fails or takes too long.
    pub(super) async fn store_call<T>(
        &self,
        what: &'static str,
        call: impl Future<Output = Result<T, Unavailable>>,
    ) -> Option<T> {
        let done = Self::store_reply(call).await;
        self.store_gave(what, done)
    }

    /// What the store gives, within bounds.
    pub(super) async fn store_reply<T>(call: impl Future<Output = Result<T, Unavailable>>) -> Result<T, Unavailable> {
        let late = |_| Err(Unavailable(format!("no answer within {} ms", STORE_PATIENCE.as_millis())));
        tokio::time::timeout(STORE_PATIENCE, call).await.unwrap_or_else(late)
    }

    pub(super) fn store_gave<T>(&self, what: &'static str, done: Result<T, Unavailable>) -> Option<T> {
        done.inspect_err(|why| {
            let failures = 1 + self.store_failures.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(what, %why, failures, "the store failed; the turn goes on without it");
        })
        .ok()
    }
}

// === helpers ===

fn state(journal: &Journal, silent: bool) -> State {
    match &journal.outcome {
        Some(Outcome::Complete(_)) => State::Complete,
        Some(Outcome::Failed(fault)) if fault.ending != Ending::HungUp(Why::Superseded) => {
            if silent {
                State::Failed
            } else {
                State::Incomplete
            }
        }
        Some(Outcome::Failed(_) | Outcome::Interrupted(_)) | None => State::Interrupted,
    }
}

fn refusal(busy: Busy, name: &str) -> Refusal {
    let (reason, code, message) = match busy {
        Busy::Held => (
            Reason::Busy,
            "conversation_busy",
            format!(
                "another turn of the conversation `{name}` is open; wait for its end, hang it up, or let the level decide \
                 otherwise (conversation = \"queue\" or \"supersede\")"
            ),
        ),
        Busy::Waited => (
            Reason::Busy,
            "conversation_busy",
            format!("the turn before this one of the conversation `{name}` did not end in time; ask again"),
        ),
        Busy::Full => (
            Reason::Busy,
            "conversation_busy",
            format!("too many turns wait for the conversation `{name}`; ask one at a time"),
        ),
        Busy::Superseded => {
            (Reason::Busy, "superseded", "a newer turn of the same conversation took the place of this one".to_owned())
        }
        Busy::Draining => (Reason::Unavailable, "draining", "the gateway is shutting down; ask again".to_owned()),
    };
    Refusal::new(reason, code, message)
}

fn missing(gap: Gap, name: &str) -> Refusal {
    let message = format!(
        "of the conversation `{name}` {} turns are kept, so this cannot be the turn after the one before `turn_index`; \
         send the whole history in `messages`, without x-segue-history",
        gap.kept
    );
    Refusal::new(Reason::Busy, "history_missing", message).about("turn_index")
}

/// A call to the store may take so long.
const STORE_PATIENCE: Duration = Duration::from_millis(500);
