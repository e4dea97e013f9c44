//! One attempt at one provider.

use crate::dialect::{Dialect, Expect, WireRequest};
use crate::event::Signal;
use futures::stream::BoxStream;
use std::sync::Arc;
use std::time::Duration;

/// A call to a provider: everything an attempt needs on the wire.
#[derive(Clone)]
pub struct Call {
    /// What the provider speaks.
    pub dialect: &'static dyn Dialect,
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
}

/// Opens attempts at one connection.
pub trait Upstream: Send + Sync {
    /// Starts an attempt; nothing happens before the stream is polled.
    ///
    /// The stream gives `Sent`, then `Opened` if the response is a success, then `Step`s, then exactly one of `Ended`
    /// and `Failed`, then nothing. To drop it is to cancel: the connection is closed (HTTP/1.1) or the stream reset
    /// (HTTP/2) at once. It must be polled inside a tokio runtime.
    fn open(&self, call: Call) -> BoxStream<'static, Signal>;
}
