//! Accepting connections, and letting them go.

use super::socket::Socket;
use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use socket2::SockRef;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// How a listener treats its connections.
#[derive(Clone, Copy, Debug)]
pub struct Manners {
    /// A write may be pending for so long.
    pub client_write: Duration,
    /// After `stop`, connections may go on for so long.
    pub drain: Duration,
}

/// Serves `routes` on `listener` until `stop` is cancelled; then accepts nobody, lets open responses finish for at most
/// [`Manners::drain`] and a little more (so that the turns that are ended then can say so), and returns.
pub async fn serve(listener: TcpListener, routes: Router, manners: Manners, stop: CancellationToken) {
    serve_some(listener, routes, manners, Semaphore::MAX_PERMITS, stop).await;
}

/// Serves as [`serve`] does, at most `connections` at once. Further ones wait to be accepted: each would take a descriptor
/// from those that ask providers.
pub async fn serve_some(
    listener: TcpListener,
    routes: Router,
    manners: Manners,
    connections: usize,
    stop: CancellationToken,
) {
    let places = Arc::new(Semaphore::new(connections.min(Semaphore::MAX_PERMITS)));
    let graceful = GracefulShutdown::new();
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADERS).max_buf_size(MAX_HEAD);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(PING).max_concurrent_streams(STREAMS);
    loop {
        let accepted = async {
            let place = Arc::clone(&places).acquire_owned().await.map_err(io::Error::other)?;
            Ok((listener.accept().await?.0, place))
        };
        let (stream, place) = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = accepted => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    pause_after(&error).await;
                    continue;
                }
            },
        };
        // Without it short answers wait 43 ms for the peer's delayed acknowledgement.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY");
        }
        // What a client does not take lies in the system's memory, which would otherwise grow to megabytes for each.
        if let Err(error) = SockRef::from(&stream).set_send_buffer_size(SEND) {
            tracing::debug!(%error, "SO_SNDBUF");
        }
        let io = TokioIo::new(Socket::new(stream, manners.client_write));
        let service = TowerToHyperService::new(routes.clone());
        let connection = builder.serve_connection(io, service).into_owned();
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection closed");
            }
            drop(place);
        });
    }
    drop(listener);
    let goodbye = manners.drain + GOODBYE;
    if tokio::time::timeout(goodbye, graceful.shutdown()).await.is_err() {
        tracing::warn!("connections were still open after the drain time and are closed");
    }
}

/// Running out of file descriptors must not become a busy loop.
async fn pause_after(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset};
    if !matches!(error.kind(), ConnectionAborted | ConnectionReset) {
        tracing::warn!(%error, "accept failed; trying again");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A client must send its request's head within this time, and a connection without a request is kept for so long: longer
/// than load balancers keep theirs (60 s is usual), whose next request would meet a closed door.
const HEADERS: Duration = Duration::from_secs(90);
/// The largest head of a request, and the read buffer of a connection.
const MAX_HEAD: usize = 64 * 1024;
/// What lies with the system for a client: enough for some megabytes a second across an ocean.
const SEND: usize = 256 * 1024;
/// HTTP/2 clients are pinged so often.
const PING: Duration = Duration::from_secs(30);
/// The most streams of one HTTP/2 connection.
const STREAMS: u32 = 256;
/// How long the last words of ended turns may take.
pub const GOODBYE: Duration = Duration::from_secs(2);
