//! Watches over connecting: bounds it for each call, and knows whether a call got a connection of its own.
//!
//! A pool lets each call neither bound its connecting nor see whether it was given a used connection. But connecting is
//! driven by the very future that waits for the connection, so a mark that is set around each poll of that future is
//! seen by the connector: what connects under the mark connects for this call. (Where an idle connection comes free
//! first, connecting goes on elsewhere, without the mark, for whoever comes next.)

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tower::{Layer, Service};

tokio::task_local! {
    static MARK: Arc<Mark>;
}

/// One call's interest in connecting.
struct Mark {
    within: Duration,
    dialed: AtomicBool,
}

/// What came of a call, and whether a connection was made for it.
pub(super) struct Dialed<T> {
    pub(super) output: T,
    /// A connection was made for this call. (The pool may have given it another all the same, if one came free while
    /// the new one was set up.) Otherwise it had one that was there before.
    pub(super) fresh: bool,
}

/// Runs `call`, which may connect, and lets connecting take `within` at most.
pub(super) async fn dial<F: Future>(within: Duration, call: F) -> Dialed<F::Output> {
    let mark = Arc::new(Mark { within, dialed: AtomicBool::new(false) });
    let output = MARK.scope(Arc::clone(&mark), call).await;
    Dialed { output, fresh: mark.dialed.load(Ordering::Relaxed) }
}

/// Puts the watch around a connector.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch;

/// A connector under watch.
#[derive(Clone, Debug)]
pub(super) struct Watched<S>(S);

/// Connecting took too long.
#[derive(Clone, Copy, Debug)]
pub(super) struct TooSlow(pub(super) Duration);

/// A name did not resolve.
#[derive(Debug)]
pub(super) struct Unresolved(pub(super) std::io::Error);

type BoxError = Box<dyn Error + Send + Sync>;

// === impl Watch ===

impl<S> Layer<S> for Watch {
    type Service = Watched<S>;

    fn layer(&self, connector: S) -> Watched<S> {
        Watched(connector)
    }
}

// === impl Watched ===

impl<S, R> Service<R> for Watched<S>
where
    S: Service<R, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, destination: R) -> Self::Future {
        let within = MARK.try_with(|mark| mark.within).unwrap_or(UNMARKED);
        let connecting = self.0.call(destination);
        Box::pin(async move {
            let connection = tokio::time::timeout(within, connecting).await.map_err(|_| TooSlow(within))??;
            // Fails where the call was served by another connection meanwhile: then this one is for somebody else.
            let _ = MARK.try_with(|mark| mark.dialed.store(true, Ordering::Relaxed));
            Ok(connection)
        })
    }
}

// === impl TooSlow ===

impl fmt::Display for TooSlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no connection within {:?}", self.0)
    }
}

impl Error for TooSlow {}

// === impl Unresolved ===

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the name does not resolve: {}", self.0)
    }
}

impl Error for Unresolved {}

/// Bound on connecting where no call waits for it.
const UNMARKED: Duration = Duration::from_secs(10);
