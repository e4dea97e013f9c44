//! Reads what came back, and tells it as signals.
//!
//! What is read is decided by what came: the status, then the content type, then the first byte of the body, never by
//! what was asked for. An error has its body read within bounds of size and time; a JSON body where a stream was asked
//! for is read whole and told as the steps of a stream; an event stream is decoded as it comes.
//!
//! It is a hand-made stream, not because that is faster (the `stream!` macro was measured to cost the same), but
//! because its state is there to be acted on: what fails lets go of its connection at once, even if nobody drops the
//! stream.

use super::cause;
use super::habits::Habits;
use super::lanes::Seat;
use super::linger::linger;
use crate::dialect::{Decode, Expect, Flow, Framing, Provider};
use crate::event::{Event, Signal, Step};
use crate::failure::{Failure, Kind, Stage};
use crate::retry_after;
use crate::sse::{self, Item};
use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt};
use http::{HeaderMap, header};
use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Sleep;

/// By what an answer is read.
pub(super) struct Terms {
    pub(super) provider: &'static dyn Provider,
    pub(super) expect: Expect,
    pub(super) error_body: Duration,
    pub(super) max_event: usize,
    /// What this connection's models have been seen to do.
    pub(super) habits: Arc<Habits>,
}

/// A response whose body is yet to come.
pub(super) struct Head<S> {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: S,
    /// Its place among the streams of its connection.
    pub(super) seat: Seat,
}

/// One attempt: `F` gets the response, `S` is its body.
pub(super) struct Attempt<F, S> {
    terms: Terms,
    /// The status, once there is one: every failure after it carries it.
    status: Option<u16>,
    seat: Option<Seat>,
    /// It is told next.
    due: Option<Signal>,
    state: State<F, S>,
}

enum State<F, S> {
    /// Before the response. `told`: `Sent` was given.
    Opening { call: Pin<Box<F>>, told: bool },
    /// The response is no success.
    Refused(Refused<S>),
    /// A success whose body has not begun.
    Unread { body: S, content: Content },
    /// A whole answer.
    Whole { body: S, bytes: BytesMut },
    /// A whole answer, read.
    Steps(std::vec::IntoIter<Step>),
    /// An event stream.
    Events(Events<S>),
    /// `Ended` or `Failed` was given.
    Over,
}

struct Refused<S> {
    headers: HeaderMap,
    body: S,
    bytes: BytesMut,
    sleep: Pin<Box<Sleep>>,
}

struct Events<S> {
    body: S,
    sse: sse::Decoder,
    decode: Box<dyn Decode>,
    /// The decoder may hold whole items of the last read.
    pending: bool,
    /// The last read gave a step.
    fruitful: bool,
    said: Said,
}

/// What an answer has said of itself.
#[derive(Default)]
struct Said {
    /// The model's own name.
    model: String,
    /// Why it stopped, before its terminator.
    finish: bool,
}

/// What the headers say that the body is.
#[derive(Debug, PartialEq, Eq)]
enum Content {
    Events,
    Json,
    /// They say nothing that counts.
    Any,
    /// Something that is no answer of an API.
    Alien(String),
    /// Compressed in a way that is not understood.
    Coded(String),
}

/// What the body turned out to be.
#[derive(Debug, PartialEq, Eq)]
enum Form {
    Events,
    Whole,
}

// === impl Attempt ===

impl<F, S, E> Attempt<F, S>
where
    F: Future<Output = Result<Head<S>, Failure>>,
    S: Stream<Item = Result<Bytes, E>> + Unpin + Send + 'static,
    E: Error + Send + 'static,
{
    pub(super) fn new(terms: Terms, call: F) -> Self {
        Self { terms, status: None, seat: None, due: None, state: State::Opening { call: Box::pin(call), told: false } }
    }

    fn fail(&mut self, mut failure: Failure) -> Signal {
        // The body is dropped here, and with it the connection, even if the caller keeps the stream.
        self.state = State::Over;
        self.seat = None;
        failure.status = failure.status.or(self.status);
        Signal::Failed(Box::new(failure))
    }

    fn end(&mut self) -> Signal {
        self.state = State::Over;
        self.seat = None;
        Signal::Ended
    }

    /// Ends after `step`, or at once if it says nothing.
    fn end_after(&mut self, step: Step) -> Signal {
        if is_blank(&step) {
            return self.end();
        }
        self.state = State::Steps(Vec::new().into_iter());
        Signal::Step(step)
    }

    fn opened(&mut self, head: Head<S>) -> Option<Signal> {
        let Head { status, headers, body, seat } = head;
        self.status = Some(status);
        self.seat = Some(seat);
        if (200..300).contains(&status) {
            self.state = State::Unread { body, content: Content::of(&headers) };
            let Some(left) = retry_after::left(&headers) else { return Some(Signal::Opened) };
            self.due = Some(Signal::Opened);
            return Some(Signal::Left(left));
        }
        let sleep = Box::pin(tokio::time::sleep(self.terms.error_body));
        self.state = State::Refused(Refused { headers, body, bytes: BytesMut::new(), sleep });
        None
    }

    /// Starts to read a body by its first piece; `None`: it ended without one.
    fn begin(&mut self, first: Option<Bytes>) -> Option<Signal> {
        let State::Unread { body, content } = std::mem::replace(&mut self.state, State::Over) else { return None };
        let head = first.as_deref().unwrap_or_default().trim_ascii_start();
        let start = head.first().copied();
        if first.is_some() && start.is_none() {
            // White space before a body means nothing in either form, save that somebody is there (DeepSeek sends
            // empty lines while a request waits).
            self.state = State::Unread { body, content };
            return Some(Signal::Step(Step::of(Event::Alive)));
        }
        match content.form(self.terms.provider.framing(), head) {
            Err(message) => Some(self.fail(Failure::new(Kind::Framing, Stage::Streaming).saying(message))),
            Ok(Form::Whole) => {
                let bytes = first.map_or_else(BytesMut::new, BytesMut::from);
                let over = bytes.len() > self.terms.max_event;
                let ended = start.is_none();
                self.state = State::Whole { body, bytes };
                if over {
                    return Some(self.oversize("the answer"));
                }
                if ended { self.close_whole() } else { Some(Signal::Step(Step::of(Event::Alive))) }
            }
            Ok(Form::Events) => {
                let mut sse = sse::Decoder::new(self.terms.max_event);
                let ended = start.is_none();
                first.into_iter().for_each(|piece| sse.push(piece));
                let decode = self.terms.provider.decoder(self.terms.expect);
                self.state =
                    State::Events(Events { body, sse, decode, pending: true, fruitful: ended, said: Said::default() });
                ended.then(|| self.close_events(None))
            }
        }
    }

    fn oversize(&mut self, what: &str) -> Signal {
        let message = format!("{what} is over the limit of {} bytes (limits.max_event)", self.terms.max_event);
        self.fail(Failure::new(Kind::Framing, Stage::Streaming).saying(message))
    }

    /// The body of a whole answer is complete.
    fn close_whole(&mut self) -> Option<Signal> {
        let State::Whole { bytes, .. } = std::mem::replace(&mut self.state, State::Over) else { return None };
        match self.terms.provider.whole(&bytes, self.terms.expect) {
            Ok(steps) => {
                self.state = State::Steps(steps.into_iter());
                None
            }
            Err(failure) => Some(self.fail(failure)),
        }
    }

    /// The body of an event stream has ended, or broke. An answer that was whole by then is whole all the same.
    fn close_events(&mut self, broken: Option<Failure>) -> Signal {
        let State::Events(Events { sse, mut decode, .. }) = std::mem::replace(&mut self.state, State::Over) else {
            return self.end();
        };
        let rest = sse.finish();
        let mut step = Step::default();
        match decode.end(rest.as_ref(), &mut step) {
            Ok(()) => self.end_after(step),
            Err(failure) => self.fail(broken.unwrap_or(failure)),
        }
    }

    /// The terminator was read.
    fn complete(&mut self, step: Step, cx: &mut Context<'_>) -> Signal {
        if let State::Events(events) = std::mem::replace(&mut self.state, State::Over) {
            linger(events.body, self.seat.take(), cx);
        }
        self.end_after(step)
    }
}

impl<F, S, E> Stream for Attempt<F, S>
where
    F: Future<Output = Result<Head<S>, Failure>>,
    S: Stream<Item = Result<Bytes, E>> + Unpin + Send + 'static,
    E: Error + Send + 'static,
{
    type Item = Signal;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Signal>> {
        let this = self.get_mut();
        if let Some(due) = this.due.take() {
            return Poll::Ready(Some(due));
        }
        loop {
            let signal = match &mut this.state {
                State::Events(events) => match ready!(events.poll(&this.terms.habits, cx)) {
                    Told::Step(step) => Some(Signal::Step(step)),
                    Told::Done(step) if events.is_cut(&step, &this.terms.habits) => Some(this.fail(cut())),
                    Told::Done(step) => Some(this.complete(step, cx)),
                    Told::Failed(failure) => Some(this.fail(failure)),
                    Told::Overflow => Some(this.oversize("an event")),
                    Told::Closed(broken) => Some(this.close_events(broken)),
                },
                State::Opening { told, .. } if !*told => {
                    *told = true;
                    Some(Signal::Sent)
                }
                State::Opening { call, .. } => match ready!(call.as_mut().poll(cx)) {
                    Ok(head) => this.opened(head),
                    Err(failure) => Some(this.fail(failure)),
                },
                State::Refused(refused) => {
                    ready!(refused.poll(cx));
                    let status = this.status.unwrap_or_default();
                    let mut failure = this.terms.provider.classify(status, &refused.headers, &refused.bytes);
                    failure.no_retry |= refused.headers.get("x-should-retry").is_some_and(|v| v == "false");
                    Some(this.fail(failure))
                }
                State::Unread { body, .. } => match ready!(body.poll_next_unpin(cx)) {
                    Some(Ok(piece)) if piece.is_empty() => None,
                    Some(Ok(piece)) => this.begin(Some(piece)),
                    Some(Err(error)) => Some(this.fail(cause::broken(&error))),
                    None => this.begin(None),
                },
                State::Whole { body, bytes } => match ready!(body.poll_next_unpin(cx)) {
                    Some(Ok(piece)) if bytes.len() + piece.len() > this.terms.max_event => {
                        Some(this.oversize("the answer"))
                    }
                    Some(Ok(piece)) => {
                        bytes.extend_from_slice(&piece);
                        Some(Signal::Step(Step::of(Event::Alive)))
                    }
                    Some(Err(error)) => Some(this.fail(cause::broken(&error))),
                    None => this.close_whole(),
                },
                State::Steps(steps) => Some(steps.next().map_or_else(|| this.end(), Signal::Step)),
                State::Over => return Poll::Ready(None),
            };
            if signal.is_some() {
                return Poll::Ready(signal);
            }
        }
    }
}

// === impl Events ===

/// What the next poll of an event stream found.
enum Told {
    Step(Step),
    Done(Step),
    Failed(Failure),
    Overflow,
    Closed(Option<Failure>),
}

impl<S, E> Events<S>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
    E: Error + 'static,
{
    /// The next step. A read that completes no event is told as [`Event::Alive`], once.
    fn poll(&mut self, habits: &Habits, cx: &mut Context<'_>) -> Poll<Told> {
        loop {
            while self.pending {
                match self.sse.next() {
                    Ok(Some(Item::Event(event))) => {
                        let mut step = Step::default();
                        match self.decode.event(&event, &mut step) {
                            Ok(Flow::More) if is_blank(&step) => {}
                            Ok(Flow::More) => {
                                self.fruitful = true;
                                self.said.hear(&step, habits);
                                return Poll::Ready(Told::Step(step));
                            }
                            Ok(Flow::Done) => return Poll::Ready(Told::Done(step)),
                            Err(failure) => return Poll::Ready(Told::Failed(failure)),
                        }
                    }
                    Ok(Some(Item::Comment)) => {}
                    Ok(None) => {
                        self.pending = false;
                        if !self.fruitful {
                            return Poll::Ready(Told::Step(Step::of(Event::Alive)));
                        }
                    }
                    Err(sse::Overflow { .. }) => return Poll::Ready(Told::Overflow),
                }
            }
            match ready!(self.body.poll_next_unpin(cx)) {
                Some(Ok(piece)) if piece.is_empty() => {}
                Some(Ok(piece)) => {
                    self.sse.push(piece);
                    self.pending = true;
                    self.fruitful = false;
                }
                Some(Err(error)) => return Poll::Ready(Told::Closed(Some(cause::broken(&error)))),
                None => return Poll::Ready(Told::Closed(None)),
            }
        }
    }
}

impl<S> Events<S> {
    /// Whether an answer that ends with `step` was cut off: its terminator came without a finish, and its model is known
    /// to give one.
    fn is_cut(&self, step: &Step, habits: &Habits) -> bool {
        let finish = step.events.iter().any(|event| matches!(event, Event::Finish { .. }));
        finish && !self.said.finish && habits.does_finish(&self.said.model)
    }
}

// === impl Said ===

impl Said {
    fn hear(&mut self, step: &Step, habits: &Habits) {
        for event in &step.events {
            match event {
                Event::Identity(identity) => identity.model.clone_into(&mut self.model),
                Event::Finish { .. } => {
                    self.finish = true;
                    habits.finishes(&self.model);
                }
                _ => {}
            }
        }
    }
}

// === impl Refused ===

impl<S, E> Refused<S>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
{
    /// Reads the body until it ends or breaks, [`ERROR_BODY`] bytes are read, or the time is up.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.bytes.len() < ERROR_BODY {
            match self.body.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(piece))) => {
                    let room = ERROR_BODY - self.bytes.len();
                    self.bytes.extend_from_slice(&piece[..piece.len().min(room)]);
                }
                Poll::Ready(_) => break,
                Poll::Pending => return self.sleep.as_mut().poll(cx),
            }
        }
        Poll::Ready(())
    }
}

// === impl Content ===

impl Content {
    fn of(headers: &HeaderMap) -> Self {
        // Gzip was undone and its header taken off; what is left was not.
        let word = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let coding = word(header::CONTENT_ENCODING).trim();
        if !coding.is_empty() && !coding.eq_ignore_ascii_case("identity") {
            return Self::Coded(coding.to_ascii_lowercase());
        }
        let media = word(header::CONTENT_TYPE).split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match media.as_str() {
            "text/event-stream" => Self::Events,
            "" | "text/plain" | "application/octet-stream" => Self::Any,
            json if json == "application/json" || json.ends_with("+json") => Self::Json,
            _ => Self::Alien(media),
        }
    }

    /// What a body of this content is that starts with `head`; empty: there is none.
    fn form(&self, framing: Framing, head: &[u8]) -> Result<Form, String> {
        match (self, head.first()) {
            (Self::Coded(coding), _) => {
                Err(format!("the body is encoded as {coding}, though accept-encoding allowed none"))
            }
            (_, Some(b'{' | b'[')) => Ok(Form::Whole),
            _ if framing == Framing::Json => Ok(Form::Whole),
            _ if framing == Framing::EventStream => Err("binary event streams are not read yet".to_owned()),
            // What came decides, not what it is called.
            (Self::Alien(_), _) if begins_events(head) => Ok(Form::Events),
            (Self::Alien(media), _) => Err(format!("expected an event stream, got {media}")),
            (_, Some(b'<')) => Err("expected an event stream, got markup".to_owned()),
            // A first line of an event stream: `data`, `event`, `id`, `retry` or a comment. No JSON begins so.
            (Self::Json, Some(b'd' | b'e' | b'i' | b'r' | b':')) => Ok(Form::Events),
            (Self::Json, _) => Ok(Form::Whole),
            (Self::Events | Self::Any, _) => Ok(Form::Events),
        }
    }
}

// === helpers ===

/// Whether a body begins as event streams do; of one that came piece by piece, as far as it is there.
fn begins_events(head: &[u8]) -> bool {
    let begins = |field: &[u8]| head.starts_with(field) || (!head.is_empty() && field.starts_with(head));
    [&b"data:"[..], b"event:", b"id:", b"retry:", b":"].into_iter().any(begins)
}

fn cut() -> Failure {
    let words = "the terminator came without a finish reason, which this model gives otherwise";
    Failure::new(Kind::Truncated, Stage::Streaming).saying(words)
}

fn is_blank(step: &Step) -> bool {
    step.events.is_empty() && step.raw.is_none()
}

/// The most bytes that are read of an error's body.
pub(super) const ERROR_BODY: usize = 64 * 1024;
