//! An HTTP/2 server with prior knowledge: a test says frame by frame what its peer is sent.

use bytes::Bytes;
use h2::server::{Connection, SendResponse};
use h2::{Reason, SendStream};
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// A server on a loopback port of its own. Dropping it stops it.
pub(crate) struct H2Server {
    pub(crate) addr: SocketAddr,
    counts: Arc<Counts>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Counts {
    accepted: AtomicUsize,
    requests: AtomicUsize,
}

/// One request.
pub(crate) struct Exchange {
    respond: SendResponse<Bytes>,
    order: mpsc::Sender<Order>,
    /// How many requests came before it, over all connections.
    pub(crate) index: usize,
}

/// A body under way.
pub(crate) struct Body {
    stream: SendStream<Bytes>,
    order: mpsc::Sender<Order>,
}

enum Order {
    GoAway,
    Hangup,
}

impl H2Server {
    /// Runs `script` for every request; a connection takes up to `streams` at once.
    pub(crate) async fn start<F, Fut>(streams: u32, script: F) -> Self
    where
        F: Fn(Exchange) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let counts = Arc::new(Counts::default());
        let noted = Arc::clone(&counts);
        let task = tokio::spawn(async move {
            while let Ok((io, _)) = listener.accept().await {
                io.set_nodelay(true).unwrap();
                noted.accepted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(io, streams, Arc::clone(&noted), script.clone()));
            }
        });
        Self { addr, counts, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Connections so far.
    pub(crate) fn accepted(&self) -> usize {
        self.counts.accepted.load(Ordering::SeqCst)
    }

    /// Requests so far.
    pub(crate) fn requests(&self) -> usize {
        self.counts.requests.load(Ordering::SeqCst)
    }
}

impl Drop for H2Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Exchange {
    /// Starts an event stream.
    pub(crate) fn events(mut self) -> Body {
        let response = http::Response::builder().header("content-type", "text/event-stream").body(()).unwrap();
        Body { stream: self.respond.send_response(response, false).unwrap(), order: self.order }
    }

    /// Resets the stream instead of answering.
    pub(crate) fn reset(mut self, reason: Reason) {
        self.respond.send_reset(reason);
    }

    /// Closes the whole connection instead of answering.
    pub(crate) async fn hangup(self) {
        self.order.send(Order::Hangup).await.unwrap();
        // To drop the exchange would reset its stream first.
        std::future::pending::<()>().await;
    }

    /// A whole turn.
    pub(crate) fn answer(self) {
        self.events().end("data: text a\n\ndata: finish\n\ndata: [DONE]\n\n");
    }
}

impl Body {
    pub(crate) fn send(&mut self, data: &str) {
        self.stream.send_data(Bytes::copy_from_slice(data.as_bytes()), false).unwrap();
    }

    pub(crate) fn end(mut self, data: &str) {
        self.stream.send_data(Bytes::copy_from_slice(data.as_bytes()), true).unwrap();
    }

    pub(crate) fn reset(mut self, reason: Reason) {
        self.stream.send_reset(reason);
    }

    /// Lets the connection go, gracefully: what is open may end, nothing new is taken.
    pub(crate) async fn go_away(&self) {
        self.order.send(Order::GoAway).await.unwrap();
    }

    /// Sends as much of `data` as the peer's windows let through now; how much that was.
    pub(crate) async fn push(&mut self, data: &str) -> usize {
        self.stream.reserve_capacity(data.len());
        let room = poll_fn(|cx| self.stream.poll_capacity(cx)).await.unwrap().unwrap();
        let room = room.min(data.len());
        self.send(&data[..room]);
        room
    }

    /// Waits until the peer resets the stream.
    pub(crate) async fn cancelled(mut self) -> Reason {
        poll_fn(|cx| self.stream.poll_reset(cx)).await.unwrap()
    }
}

async fn serve<F, Fut>(io: TcpStream, streams: u32, counts: Arc<Counts>, script: F)
where
    F: Fn(Exchange) -> Fut,
    Fut: Future<Output = ()> + Send + 'static,
{
    let mut builder = h2::server::Builder::new();
    let Ok(mut connection): Result<Connection<TcpStream, Bytes>, _> =
        builder.max_concurrent_streams(streams).handshake(io).await
    else {
        return;
    };
    let (order, mut orders) = mpsc::channel(16);
    loop {
        tokio::select! {
            accepted = connection.accept() => {
                let Some(Ok((_, respond))) = accepted else { return };
                let index = counts.requests.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(script(Exchange { respond, order: order.clone(), index }));
            }
            Some(order) = orders.recv() => match order {
                Order::GoAway => connection.graceful_shutdown(),
                Order::Hangup => return,
            }
        }
    }
}
