//! One call to a target, from the line to the verdict.

use super::forms::Forms;
use super::gate::{Gate, Wish};
use super::lease::Lease;
use super::{line, now};
use crate::event::Signal;
use crate::failure::{Declined, Failure, Kind, RetryAt, Stage, Verdict};
use crate::routing::Target;
use crate::turn::form::Form;
use crate::upstream::Call;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, Stream, StreamExt};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

/// A stream of what happens to one attempt: `Queued`, and once the connection's quota grants it, what the upstream says.
/// Or `Declined`, if it is not made.
///
/// To drop it is to cancel it: its connection is closed, and its place, slot, reservation and ticket go back. Its end is
/// not yet its verdict: whoever reads it says with [`Attempt::settle`] what it was worth. Unsaid, it says nothing on the
/// health of its target but how long that was silent.
#[must_use = "an attempt does nothing unless it is polled, and a drop cancels it"]
pub struct Attempt {
    phase: Phase,
    /// From when it is admitted until it is judged.
    lease: Option<Lease>,
    /// What its first word teaches.
    lesson: Option<Box<Lesson>>,
}

/// That a target takes requests in a form.
pub(super) struct Lesson {
    pub(super) forms: Arc<Mutex<Forms>>,
    pub(super) target: Arc<Target>,
    pub(super) form: Form,
}

enum Phase {
    /// It is not made.
    Refused(Box<Declined>),
    /// Nobody has listened yet.
    Asked(Box<(Arc<Gate>, Wish, Call)>),
    /// In line.
    Queued(BoxFuture<'static, Result<Lease, Declined>>, Box<Call>),
    /// On the wire.
    Open(BoxStream<'static, Signal>),
    Over,
}

// === impl Attempt ===

impl Attempt {
    pub(super) fn refused(declined: Declined) -> Self {
        Self { phase: Phase::Refused(Box::new(declined)), lease: None, lesson: None }
    }

    pub(super) fn queued(gate: Arc<Gate>, wish: Wish, call: Call, lesson: Option<Lesson>) -> Self {
        Self { phase: Phase::Asked(Box::new((gate, wish, call))), lease: None, lesson: lesson.map(Box::new) }
    }

    /// Ends it, if it has not ended, and tells what it was worth. Of several attempts of a turn at one target only one
    /// should say more than `Abandon`.
    pub fn settle(mut self, verdict: Verdict) {
        self.phase = Phase::Over;
        if let Some(mut lease) = self.lease.take() {
            lease.settle(verdict, now());
        }
    }

    fn over(&mut self, declined: Declined) -> Signal {
        self.phase = Phase::Over;
        Signal::Declined(Box::new(declined))
    }
}

impl Stream for Attempt {
    type Item = Signal;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Signal>> {
        let this = self.get_mut();
        loop {
            match std::mem::replace(&mut this.phase, Phase::Over) {
                Phase::Over => return Poll::Ready(None),
                Phase::Refused(declined) => return Poll::Ready(Some(this.over(*declined))),
                Phase::Asked(asked) => {
                    let (gate, wish, call) = *asked;
                    this.phase = Phase::Queued(Box::pin(line::stand(gate, wish)), Box::new(call));
                    return Poll::Ready(Some(Signal::Queued));
                }
                Phase::Queued(mut line, call) => match line.as_mut().poll(cx) {
                    Poll::Pending => {
                        this.phase = Phase::Queued(line, call);
                        return Poll::Pending;
                    }
                    Poll::Ready(Err(declined)) => return Poll::Ready(Some(this.over(declined))),
                    Poll::Ready(Ok(lease)) => {
                        this.phase = Phase::Open(lease.gate.upstream.open(*call));
                        this.lease = Some(lease);
                    }
                },
                Phase::Open(stream) => {
                    this.phase = Phase::Open(stream);
                    let signal = ready!(this.poll_open(cx));
                    // What is left of a quota is for the fleet.
                    if !matches!(signal, Signal::Left(_)) {
                        return Poll::Ready(Some(signal));
                    }
                }
            }
        }
    }
}

impl Attempt {
    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<Signal> {
        let Phase::Open(stream) = &mut self.phase else { return Poll::Pending };
        let heard = stream.poll_next_unpin(cx);
        let Some(lease) = &mut self.lease else { return Poll::Pending };
        let Poll::Ready(heard) = heard else {
            lease.silent(now());
            return Poll::Pending;
        };
        let broken =
            || Box::new(Failure::new(Kind::Truncated, Stage::Streaming).saying("the attempt ended without a word"));
        let signal = heard.map_or_else(|| Signal::Failed(broken()), relative);
        if let Signal::Ended | Signal::Failed(_) | Signal::Declined(_) = signal {
            // First the connection, then the slot: whoever gets it must find the provider free.
            self.phase = Phase::Over;
        }
        let now = now();
        lease.note(&signal, now);
        if let Some(lesson) = self.lesson.take_if(|_| matches!(&signal, Signal::Step(step) if step.is_progress())) {
            super::lock(&lesson.forms).answered(&lesson.target, &lesson.form, now);
        }
        Poll::Ready(signal)
    }
}

// === helpers ===

/// Nobody above has a wall clock: a time of day becomes a wait from now. One that is over tells nothing, and one that is
/// hardly any is made [`LEAST_WAIT`].
fn relative(signal: Signal) -> Signal {
    let Signal::Failed(mut failure) = signal else { return signal };
    let wait = failure.retry_at.map(|at| at.after(SystemTime::now())).filter(|wait| !wait.is_zero());
    failure.retry_at = wait.map(|wait| RetryAt::In(wait.max(LEAST_WAIT)));
    Signal::Failed(failure)
}

/// Nobody is asked again sooner, whatever was told.
const LEAST_WAIT: Duration = Duration::from_millis(50);

impl Drop for Attempt {
    fn drop(&mut self) {
        // As above.
        self.phase = Phase::Over;
    }
}
