//! Failures that are played on real providers: a decorator around an [`Upstream`].
//!
//! It knows a conversation by its [`Mark`] and does to an attempt what it is told to; what is not marked, or not to be
//! struck, passes untouched. Nothing in a configuration can switch it on.

use super::mark::Mark;
use crate::event::{Event, Signal, Step};
use crate::failure::{Failure, Kind, Stage};
use crate::upstream::{Call, Upstream};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What is done to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hit {
    /// The provider is not asked, and nobody answers.
    Silent,
    /// It is not asked, and the answer is a 502.
    Error,
    /// It is not asked, and the answer is a 429.
    Limited,
    /// After so many pieces of text, or in place of the finish, nothing more comes.
    Stall(usize),
    /// Then the connection is reset.
    Reset(usize),
    /// Then the body ends.
    End(usize),
    /// Then an error event comes.
    ErrorEvent(usize),
}

/// What an attempt was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The connection that was asked.
    pub connection: Arc<str>,
    /// It was struck.
    pub struck: bool,
    /// The fact that the probe asks for was among the messages, as far as the judge of that can tell.
    pub knows: bool,
    /// When it was asked.
    pub from: Instant,
    /// When it was over; `None`: it is not.
    pub to: Option<Instant>,
    /// Bytes of its request.
    pub sent: usize,
    /// Pieces of text that it said.
    pub told: u64,
}

/// Says what is done to an attempt at a connection.
pub type Choose = dyn Fn(&Mark, &str) -> Option<Hit> + Send + Sync;

/// Says whether the messages of a request hold what the conversation is about.
pub type Knows = dyn Fn(&Mark, &Value) -> bool + Send + Sync;

/// The failures, and an account of the attempts.
pub struct Faults {
    choose: Box<Choose>,
    knows: Option<Box<Knows>>,
    seen: Mutex<HashMap<Mark, Vec<Seen>>>,
}

/// One decorated connection.
struct Struck {
    faults: Arc<Faults>,
    connection: Arc<str>,
    inner: Arc<dyn Upstream>,
}

/// Keeps the account of one attempt; it is closed on drop.
struct Note {
    faults: Arc<Faults>,
    mark: Mark,
    index: Option<usize>,
}

// === impl Faults ===

impl Faults {
    /// Failures as `choose` says, without an account.
    pub fn new(choose: Box<Choose>) -> Arc<Self> {
        Arc::new(Self { choose, knows: None, seen: Mutex::default() })
    }

    /// The same with an account, which [`Self::take`] gives; `knows` is asked about every request.
    pub fn noting(choose: Box<Choose>, knows: Box<Knows>) -> Arc<Self> {
        Arc::new(Self { choose, knows: Some(knows), seen: Mutex::default() })
    }

    /// `upstream` under these failures.
    pub fn around(self: &Arc<Self>, connection: &Arc<str>, upstream: Arc<dyn Upstream>) -> Arc<dyn Upstream> {
        Arc::new(Struck { faults: Arc::clone(self), connection: Arc::clone(connection), inner: upstream })
    }

    /// The attempts for one answer, in the order in which they were made; they are forgotten then.
    pub fn take(&self, mark: &Mark) -> Vec<Seen> {
        self.lock().remove(mark).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Mark, Vec<Seen>>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(self: &Arc<Self>, mark: &Mark, connection: &Arc<str>, body: &Value, sent: usize) -> Note {
        let index = self.knows.as_ref().and_then(|knows| {
            let seen = Seen {
                connection: Arc::clone(connection),
                struck: false,
                knows: knows(mark, body),
                from: now(),
                to: None,
                sent,
                told: 0,
            };
            let mut all = self.lock();
            if MOST_ANSWERS <= all.len() && !all.contains_key(mark) {
                return None;
            }
            let list = all.entry(mark.clone()).or_default();
            (list.len() < MOST_ATTEMPTS).then(|| {
                list.push(seen);
                list.len() - 1
            })
        });
        Note { faults: Arc::clone(self), mark: mark.clone(), index }
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults").finish_non_exhaustive()
    }
}

// === impl Struck ===

impl Upstream for Struck {
    fn open(&self, call: Call) -> BoxStream<'static, Signal> {
        let body: Value = serde_json::from_slice(&call.wire.body).unwrap_or_default();
        let Some(mark) = Mark::of(&body) else { return self.inner.open(call) };
        let hit = (self.faults.choose)(&mark, &self.connection);
        let (faults, connection, inner) = (Arc::clone(&self.faults), Arc::clone(&self.connection), self.inner.clone());
        let attempt = async move {
            let note = faults.note(&mark, &connection, &body, call.wire.body.len());
            if let Some(hit) = hit {
                tracing::warn!(%connection, conversation = mark.conversation, turn = mark.turn, ?hit, "a planned failure");
            }
            match hit {
                None => passed(inner.open(call), note, None),
                Some(Hit::Silent) => held(note, vec![Signal::Sent]),
                Some(Hit::Error) => refused(&note, Kind::ServerError, 502),
                Some(Hit::Limited) => refused(&note, Kind::RateLimited, 429),
                Some(hit) => passed(inner.open(call), note, Some(hit)),
            }
        };
        stream::once(attempt).flatten().boxed()
    }
}

// === impl Note ===

impl Note {
    fn change(&self, change: impl FnOnce(&mut Seen)) {
        let Some(index) = self.index else { return };
        if let Some(seen) = self.faults.lock().get_mut(&self.mark).and_then(|list| list.get_mut(index)) {
            change(seen);
        }
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        self.change(|seen| seen.to = Some(now()));
    }
}

// === impl Hit ===

impl Hit {
    /// After how many pieces of text.
    fn after(self) -> usize {
        match self {
            Self::Silent | Self::Error | Self::Limited => 0,
            Self::Stall(after) | Self::Reset(after) | Self::End(after) | Self::ErrorEvent(after) => after,
        }
    }

    /// What comes then; `None`: nothing, for ever.
    fn signal(self) -> Option<Signal> {
        let failed = |kind, words: &str| Signal::Failed(Box::new(Failure::new(kind, Stage::Streaming).saying(words)));
        match self {
            Self::Reset(_) => Some(failed(Kind::Reset, "a planned reset")),
            Self::End(_) => Some(Signal::Ended),
            Self::ErrorEvent(_) => Some(failed(Kind::ServerError, "a planned error event")),
            Self::Silent | Self::Error | Self::Limited | Self::Stall(_) => None,
        }
    }
}

// === helpers ===

/// These signals, and then nothing.
fn held(note: Note, signals: Vec<Signal>) -> BoxStream<'static, Signal> {
    note.change(|seen| seen.struck = true);
    let silence = stream::once(async move {
        let _note = note;
        std::future::pending::<Signal>().await
    });
    stream::iter(signals).chain(silence).boxed()
}

fn refused(note: &Note, kind: Kind, status: u16) -> BoxStream<'static, Signal> {
    note.change(|seen| seen.struck = true);
    let mut failure = Failure::new(kind, Stage::Refused).saying("a planned failure");
    failure.status = Some(status);
    stream::iter([Signal::Sent, Signal::Failed(Box::new(failure))]).boxed()
}

/// What the provider says, up to the failure.
fn passed(mut inner: BoxStream<'static, Signal>, note: Note, hit: Option<Hit>) -> BoxStream<'static, Signal> {
    let signals = async_stream::stream! {
        let mut told = 0;
        while let Some(signal) = inner.next().await {
            if let Signal::Step(step) = &signal {
                let (pieces, finishes) = (pieces(step), finishes(step));
                if let Some(hit) = hit.filter(|hit| hit.after() <= told || finishes) {
                    // To drop the stream is to cancel the attempt.
                    drop(inner);
                    note.change(|seen| seen.struck = true);
                    match hit.signal() {
                        Some(signal) => yield signal,
                        None => std::future::pending().await,
                    }
                    return;
                }
                told += pieces;
                note.change(|seen| seen.told += pieces as u64);
            }
            yield signal;
        }
        drop(note);
    };
    signals.boxed()
}

fn pieces(step: &Step) -> usize {
    step.events.iter().filter(|event| matches!(event, Event::Text { .. })).count()
}

fn finishes(step: &Step) -> bool {
    step.events.iter().any(|event| matches!(event, Event::Finish { .. }))
}

fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

// === consts ===

/// The most answers whose attempts are kept until they are taken.
const MOST_ANSWERS: usize = 100_000;

/// The most attempts that are kept of one.
const MOST_ATTEMPTS: usize = 64;

#[cfg(test)]
#[path = "tests/faults.rs"]
mod tests;
