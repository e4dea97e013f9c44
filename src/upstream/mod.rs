//! One attempt at one provider: the call, the reading of what comes back, and the end.
//!
//! [`Upstream::open`] gives a stream of [`Signal`]s, and that stream is all there is of the attempt: no task works for
//! it and no channel feeds it. So a drop is the only cancel, and it is a complete one: whether the attempt connects,
//! waits for headers, reads events or an error body, dropping its stream closes the connection (HTTP/1.1) or resets
//! the stream (HTTP/2) at once. Fault injection and quotas are built around this trait, not into it.
//!
//! `http` sends; `answer` reads what came back, by what it is and not by what was asked for; `dial` watches over
//! connecting; `names` resolves names; `lanes` spreads HTTP/2 streams over connections; `cause` reads errors; `hush` takes
//! secrets out of them. `client` is the other direction:
//! Segue as somebody's client.

use crate::dialect::{Expect, Provider, WireRequest};
use crate::event::Signal;
use crate::failure::{Failure, Kind, Stage};
use crate::words::redact::Redactor;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use std::sync::Arc;
use std::time::Duration;

mod answer;
mod cause;
pub mod client;
mod dial;
mod habits;
mod headers;
pub mod http;
mod hush;
mod lanes;
mod linger;
mod names;

/// A call to a provider: everything an attempt needs on the wire.
#[derive(Clone)]
pub struct Call {
    /// What the provider speaks.
    pub provider: &'static dyn Provider,
    /// The request.
    pub wire: WireRequest,
    /// What its decoder must know.
    pub expect: Expect,
    /// Bound on connecting: name, TCP and TLS.
    pub connect: Duration,
    /// Bound on reading the body of an error.
    pub error_body: Duration,
    /// The most bytes of one event, and of a whole answer where a stream was asked for.
    pub max_event: usize,
    /// A tenant's own key; `None`: the connection's.
    pub credential: Option<Arc<str>>,
    /// Takes secrets out of the provider's words.
    pub secrets: Redactor,
}

/// Opens attempts at one connection.
pub trait Upstream: Send + Sync {
    /// Starts an attempt; nothing happens before the stream is polled.
    ///
    /// The stream gives `Sent`, then `Opened` if the response is a success, then `Step`s, then exactly one of `Ended`
    /// and `Failed`, then nothing. To drop it is to cancel: the connection is closed (HTTP/1.1) or the stream reset
    /// (HTTP/2) at once. It must be polled inside a tokio runtime.
    fn open(&self, call: Call) -> BoxStream<'static, Signal>;

    /// Asks for something beside turns and gives the body of the answer, at most `max_event` bytes of it. The caller bounds
    /// the time.
    ///
    /// # Errors
    /// Where it cannot be asked so, does not answer, or answers with another status than a success.
    fn ask(&self, call: Call) -> BoxFuture<'static, Result<Bytes, Failure>> {
        drop(call);
        let failure = Failure::new(Kind::Unavailable, Stage::Connecting).ours();
        Box::pin(std::future::ready(Err(failure.saying("this provider is asked for turns only"))))
    }
}
