//! The one loop that waits: it feeds the relay what happens, does what the relay says, and hands the client's bytes
//! out.
//!
//! A [`Drive`] runs inside the response body: no task, no channel, one timer that is moved lazily. The order of a
//! round is fixed: do what is to be done, drain every signal that is ready, only then ask what time it is. So an
//! answer that is already here is never taken for silence. (A provider that is never silent ends a round by using up its
//! share, so that it holds up neither the turn's clocks nor other turns.) While nobody asks for the next frame the client is not
//! taking bytes, and the relay's silence clocks stand still. To drop a `Drive` is to hang up: its attempts are
//! dropped and settled.
//!
//! The loop itself is an `Engine` behind a lock that nobody contends for, save a newer turn of the same conversation,
//! which must be able to end this one at once even if nobody polls it.

mod ask;
mod reach;
mod weight;

use super::answers::Kept;
use super::buffer::Held;
pub(crate) use super::clock::now;
use super::conversation::Part;
use super::{Ended, Inner, LiveTurn, TurnRecord, habits, lock, refusal, repair, watch::Watchdog};
use crate::chat::Request;
use crate::dialect::{Encode, End, Refusal};
use crate::event::{Signal, Step};
use crate::failure::{Declined, Failure, Kind, Remedy, Stage};
use crate::fleet;
use crate::health::connection::{HIDDEN, UNSEEN};
use crate::health::quota::believed;
use crate::relay::journal::{Attempt, End as AttemptEnd, Journal};
use crate::relay::{Action, AttemptId, Open, Outcome, Relay, Why};
use crate::routing::plan::Candidate;
use ask::Checks;
use bytes::{Bytes, BytesMut};
use futures::Stream;
use smallvec::SmallVec;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::task::coop;
use tokio::time::Sleep;
use tokio_util::sync::WaitForCancellationFutureOwned;

/// One turn under way. It yields the bytes of the client's stream, or the one body of a whole answer.
pub struct Drive {
    engine: Arc<Mutex<Engine>>,
    id: Arc<str>,
    level: Arc<str>,
    stream: bool,
    watchdog: Arc<Watchdog>,
}

/// The loop of one turn.
struct Engine {
    gateway: Arc<Inner>,
    live: LiveTurn,
    /// Until the turn is over.
    request: Option<Arc<Request>>,
    stream: bool,
    candidates: Vec<Candidate>,
    relay: Relay,
    /// Each with whether all was heard of it.
    attempts: SmallVec<[(AttemptId, fleet::Attempt, bool); 2]>,
    encoder: Box<dyn Encode>,
    out: BytesMut,
    sleep: Pin<Box<Sleep>>,
    hangup: Pin<Box<WaitForCancellationFutureOwned>>,
    keep_alive: Duration,
    /// When the client last got bytes; `None` before the headers.
    written: Option<Instant>,
    waiting_for_client: bool,
    dropped: Vec<String>,
    refusal: Option<Refusal>,
    over: bool,
    announce: bool,
    last_resort: bool,
    part: Option<Part>,
    kept: Option<Kept>,
    checks: Checks,
    held: Held,
    /// What of `held` the request takes.
    asked: usize,
    /// Bytes that the client was given last, and may not have taken.
    handed: usize,
}

/// What a turn has come to when its headers must be decided.
#[derive(Debug)]
pub enum Start {
    /// It goes on: the status is 200.
    Going,
    /// It has failed before anything was told.
    Refused(Box<Refusal>),
}

/// What a drive is made of.
pub(super) struct Parts {
    pub(super) gateway: Arc<Inner>,
    pub(super) live: LiveTurn,
    pub(super) request: Arc<Request>,
    pub(super) candidates: Vec<Candidate>,
    pub(super) relay: Relay,
    pub(super) encoder: Box<dyn Encode>,
    pub(super) keep_alive: Duration,
    pub(super) announce: bool,
    pub(super) last_resort: bool,
    pub(super) part: Option<Part>,
    pub(super) kept: Option<Kept>,
}

// === impl Drive ===

impl Drive {
    pub(super) fn new(parts: Parts) -> Self {
        let (id, level) = (parts.live.id.as_str().into(), Arc::clone(&parts.live.level));
        let (stream, watchdog) = (parts.request.stream, Arc::clone(&parts.gateway.watchdog));
        let hold = parts.part.as_ref().map(Part::hold);
        let engine = Arc::new(Mutex::new(Engine::new(parts)));
        let reached: Weak<Mutex<Engine>> = Arc::downgrade(&engine);
        if let Some(hold) = hold {
            hold.reach(reached);
        }
        let shown: Weak<Mutex<Engine>> = Arc::downgrade(&engine);
        lock(&engine).gateway.open.enter(&id, shown);
        Self { engine, id, level, stream, watchdog }
    }

    /// Counts what the turn holds where the request was counted; until then it is counted as if nobody had asked.
    pub fn keep(&mut self, mut held: Held) {
        let engine: Weak<Mutex<Engine>> = Arc::downgrade(&self.engine);
        held.reach(engine);
        lock(&self.engine).keep(held);
    }

    /// Waits until the status can be decided: the first delta of a stream, the end of a whole answer, a failure, or
    /// `headers_after` (for a stream; `None`: never early).
    pub async fn start(&mut self, headers_after: Option<Duration>) -> Start {
        let early = headers_after.filter(|_| self.stream).map(|after| now() + after);
        self.watchdog.over(&self.id, std::future::poll_fn(|cx| lock(&self.engine).poll_start(cx, early))).await
    }

    /// The next bytes of the body; `None` at its end.
    pub fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let _poll = self.watchdog.poll(&self.id);
        lock(&self.engine).poll_frame(cx)
    }

    /// Hangs up if the client takes nothing for `timeouts.client_write`, where no socket would notice: a stream of HTTP/2
    /// whose client gives it no window is not polled, and so knows no time. Ends with the turn.
    pub fn watch(&self) -> impl Future<Output = ()> + Send + use<> {
        let engine = Arc::downgrade(&self.engine);
        async move {
            while let Some(due) = engine.upgrade().and_then(|engine| lock(&engine).give_up()) {
                tokio::time::sleep_until(due.into()).await;
            }
        }
    }

    /// `connection/model` of the attempt that leads, or led last.
    pub fn served_by(&self) -> Option<String> {
        let engine = lock(&self.engine);
        let attempts = &engine.relay.journal().attempts;
        let leader = attempts.iter().rev().find(|a| a.first_progress.is_some() && a.failure.is_none());
        leader.map(|a| format!("{}/{}", a.target.connection, a.target.model))
    }

    /// The fields that were asked for and left out so far, each once.
    pub fn dropped(&self) -> Vec<String> {
        lock(&self.engine).dropped.clone()
    }

    /// The turn's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The level that serves it.
    pub fn level(&self) -> &str {
        &self.level
    }

    /// How many attempts were opened, and how often the lead changed after something was told.
    pub fn counts(&self) -> (usize, u32) {
        let engine = lock(&self.engine);
        let journal = engine.relay.journal();
        (journal.attempts.len(), journal.splices)
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        let mut engine = lock(&self.engine);
        engine.hang_up(Why::ClientGone);
        engine.gateway.open.leave(&self.id);
    }
}

impl std::fmt::Debug for Drive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Drive")
            .field("turn", &self.id)
            .field("relay", &lock(&self.engine).relay)
            .finish_non_exhaustive()
    }
}

// === impl Engine ===

impl Engine {
    fn new(parts: Parts) -> Self {
        let Parts { gateway, live, request, candidates, relay, encoder, keep_alive, announce, last_resort, part, kept } =
            parts;
        Self {
            hangup: Box::pin(live.hangup.clone().cancelled_owned()),
            sleep: Box::pin(tokio::time::sleep(Duration::from_secs(3600))),
            held: Held::of(&gateway.buffer),
            asked: 0,
            handed: 0,
            gateway,
            live,
            stream: request.stream,
            request: Some(request),
            candidates,
            relay,
            attempts: SmallVec::new(),
            encoder,
            out: BytesMut::new(),
            keep_alive,
            written: None,
            waiting_for_client: false,
            dropped: Vec::new(),
            refusal: None,
            over: false,
            announce,
            last_resort,
            part,
            kept,
            checks: Checks::default(),
        }
    }

    fn poll_start(&mut self, cx: &mut Context<'_>, early: Option<Instant>) -> Poll<Start> {
        if self.poll_bytes(cx, early).is_pending() {
            return Poll::Pending;
        }
        if let Some(refusal) = self.refusal.take() {
            return Poll::Ready(Start::Refused(Box::new(refusal)));
        }
        if self.out.is_empty() && !self.over {
            self.encoder.keep_alive(&mut self.out);
        }
        self.written = Some(now());
        Poll::Ready(Start::Going)
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if std::mem::take(&mut self.waiting_for_client) {
            self.relay.handle_unblocked(now());
            self.handed = 0;
        }
        if self.poll_bytes(cx, None).is_pending() {
            return Poll::Pending;
        }
        if self.out.is_empty() {
            return Poll::Ready(None);
        }
        let now = now();
        self.written = Some(now);
        self.waiting_for_client = true;
        self.relay.handle_blocked(now);
        self.handed = self.out.len();
        self.weigh();
        Poll::Ready(Some(self.out.split().freeze()))
    }

    /// Runs the turn until there are bytes for the client, it is over, or `early` has come.
    fn poll_bytes(&mut self, cx: &mut Context<'_>, early: Option<Instant>) -> Poll<()> {
        loop {
            let at = now();
            self.act(at);
            self.weigh();
            if self.over || self.out.len() >= FULL {
                return Poll::Ready(());
            }
            if self.poll_checks(cx, at) || self.drain(cx, at) {
                continue;
            }
            if self.hangup.as_mut().poll(cx).is_ready() && !self.over {
                self.relay.handle_hangup(self.live.why(), at);
                continue;
            }
            if !self.out.is_empty() || early.is_some_and(|early| at >= early) {
                return Poll::Ready(());
            }
            let Some(due) = self.relay.poll_timeout() else { continue };
            if at >= due {
                self.relay.handle_timeout(at);
                continue;
            }
            let beat = self.written.filter(|_| self.stream).map(|written| written + self.keep_alive);
            if beat.is_some_and(|beat| at >= beat) {
                self.encoder.keep_alive(&mut self.out);
                self.written = Some(at);
                continue;
            }
            let wake = [beat, early].into_iter().flatten().fold(due, Instant::min);
            if self.poll_sleep(cx, wake).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Moves the timer only when it would be too late; one that is early just asks again.
    fn poll_sleep(&mut self, cx: &mut Context<'_>, wake: Instant) -> Poll<()> {
        let wake = tokio::time::Instant::from_std(wake);
        let deadline = self.sleep.deadline();
        if self.sleep.is_elapsed() || wake < deadline {
            self.sleep.as_mut().reset(wake);
        }
        self.sleep.as_mut().poll(cx)
    }

    /// Hands every signal that is ready to the relay, while the task's share of time lasts; gives whether there was one.
    /// A signal need not be read off a socket, which takes of the share: what few compressed bytes hold is ready at once.
    fn drain(&mut self, cx: &mut Context<'_>, at: Instant) -> bool {
        let mut heard = false;
        let mut index = 0;
        while index < self.attempts.len() && self.out.len() < FULL {
            let Poll::Ready(share) = coop::poll_proceed(cx) else { break };
            let (id, attempt, ended) = &mut self.attempts[index];
            let id = *id;
            if *ended {
                // It is kept until what it said has been judged.
                index += 1;
                continue;
            }
            let mut signal = match Pin::new(attempt).poll_next(cx) {
                Poll::Pending => {
                    index += 1;
                    continue;
                }
                Poll::Ready(Some(signal)) => signal,
                // A stream says how it ended before it ends; one that does not was cut by a fault of ours.
                Poll::Ready(None) => Signal::Failed(Box::new(Failure::new(Kind::Truncated, Stage::Streaming).ours())),
            };
            *ended = matches!(signal, Signal::Ended | Signal::Failed(_) | Signal::Declined(_));
            share.made_progress();
            heard = true;
            self.vet(id, &mut signal);
            self.relay.handle_signal(id, signal, at);
            self.act(at);
            index = 0;
        }
        heard
    }

    fn act(&mut self, at: Instant) {
        while let Some(action) = self.relay.poll_action() {
            match action {
                Action::Open(open) => self.open(&open, at),
                Action::Pay { id } => {
                    if !self.live.setup.pay_retry(&self.live.level) {
                        self.relay.handle_signal(id, Signal::Declined(Box::new(Declined::Budget)), at);
                    }
                }
                Action::Drop { id, end, counts } => self.drop_attempt(id, end, counts),
                Action::Spliced { id } => self.announce_splice(id),
                Action::Emit(step) => self.emit(&step),
                Action::Check { id, text } => self.check(id, &text),
                Action::Close(outcome) => self.close(outcome),
            }
        }
    }

    fn emit(&mut self, step: &Step) {
        let speaker = self.relay.journal().speaker().map(|speaker| speaker.target.dialect);
        if let Some(dialect) = speaker {
            self.encoder.speaker(dialect);
        }
        self.encoder.step(step, &mut self.out);
        if let (Some(part), Some(request), Some(dialect)) = (&mut self.part, &self.request, speaker) {
            part.note(step, dialect, request);
        }
    }

    fn hang_up(&mut self, why: Why) {
        if !self.over {
            let at = now();
            self.relay.handle_hangup(why, at);
            self.act(at);
        }
    }

    /// Hangs up if bytes wait for the client for too long. When to look again; `None`: never.
    fn give_up(&mut self) -> Option<Instant> {
        let waits = self.waiting_for_client || !self.out.is_empty();
        let since = self.written.filter(|_| waits).unwrap_or_else(now);
        let due = since + self.candidates.first()?.timeouts.client_write;
        if due <= now() {
            self.hang_up(Why::ClientGone);
        }
        (!self.over).then_some(due)
    }

    fn open(&mut self, open: &Open, at: Instant) {
        match self.ask(open) {
            Ok(ask) => self.attempts.push((open.id, self.live.setup.fleet.open(ask), false)),
            Err(why) => self.relay.handle_signal(open.id, why, at),
        }
    }

    fn drop_attempt(&mut self, id: AttemptId, end: AttemptEnd, counts: bool) {
        let Some(index) = self.attempts.iter().position(|(a, ..)| *a == id) else { return };
        let (_, attempt, _) = self.attempts.remove(index);
        attempt.settle(end.verdict(counts));
        let account = self.relay.journal().attempts.get(id.0 as usize);
        if let (Some(account), Some(request)) = (account, self.request.as_deref()) {
            habits::learn(&self.live.setup.fleet, request, account, end);
        }
    }

    /// Looks at what a refusal suggests: a field that the request does not hold is not worth another try, and what needs
    /// no proof is remembered. A target that refuses a prefill is not asked so again for a while.
    fn vet(&self, id: AttemptId, signal: &mut Signal) {
        let Signal::Failed(failure) = signal else { return };
        let (Some(remedy), Some(request)) = (&failure.remedy, self.request.as_deref()) else { return };
        let Some(attempt) = self.relay.journal().attempts.get(id.0 as usize) else { return };
        if !repair::is_apt(remedy, request, &attempt.target) {
            failure.remedy = None;
            return;
        }
        let what = match remedy {
            Remedy::Instruct => fleet::PREFILL,
            Remedy::Lacks(modality) => modality.name(),
            _ => return,
        };
        let credential = self.live.credential(&attempt.target.connection);
        let tenant = self.live.tenant.as_ref().map(|tenant| &*tenant.name);
        let who = fleet::Who { tenant, credential: credential.as_deref() };
        let body = serde_json::to_vec(&request.raw).unwrap_or_default();
        self.live.setup.fleet.learn_lack(&attempt.target, what, who, &body, failure.by_words);
    }

    fn announce_splice(&mut self, id: AttemptId) {
        if let Some(attempt) = self.relay.journal().attempts.get(id.0 as usize).filter(|_| self.announce) {
            let text = format!("segue: {} goes on with this turn", attempt.target.connection);
            self.encoder.comment(&text, &mut self.out);
        }
    }

    fn close(&mut self, outcome: Outcome) {
        self.over = true;
        self.live.seat = None;
        match outcome {
            Outcome::Complete(usage) => self.encoder.close(End::Complete(&usage), &mut self.out),
            Outcome::Failed(fault) => {
                let refusal = refusal::of(&fault, self.relay.journal());
                let told = self.written.is_some() || (self.stream && !self.out.is_empty());
                if told {
                    self.encoder.close(End::Failed(&refusal), &mut self.out);
                } else {
                    self.refusal = Some(refusal);
                }
            }
            Outcome::Interrupted(_) => {}
        }
        let (journal, now) = (self.relay.journal(), now());
        self.gateway.troubles.learn(journal, |c| self.live.credential(c).is_some(), now);
        self.live.permits.settle(journal_tokens(journal, self.live.estimate), now);
        if let Some(part) = self.part.take() {
            part.finish(&self.relay, !self.stream);
        }
        if let Some(kept) = self.kept.take() {
            kept.finish(self.encoder.record(), journal, !self.stream);
        }
        let record = Arc::new(TurnRecord::of(self.live.whose(), &self.relay));
        let level = &self.relay.policy().level;
        let (turn, request) = (self.relay.turn(), self.request.as_deref());
        self.gateway.sinks.turn(&Ended { record: &record, journal, level, turn, request, now });
        self.let_go();
    }
}

// === helpers ===

/// The tokens of a turn as one, as far as its providers' counts are believed: its longest prompt, and what was told of
/// every attempt.
fn journal_tokens(journal: &Journal, estimate: u64) -> u64 {
    let prompt = |a: &Attempt| believed(a.cost(estimate).0, estimate + a.carried, UNSEEN);
    let told = |a: &Attempt| believed(a.delivered_tokens(), a.told.estimate(), HIDDEN);
    let attempts = &journal.attempts;
    attempts.iter().map(prompt).max().unwrap_or_default() + attempts.iter().map(told).sum::<u64>()
}

/// So many bytes are enough for one write; upstreams are not read until they are gone.
const FULL: usize = 64 * 1024;
