//! An HTTP/1.1 server written by hand: a test says byte by byte what its peer is sent, and learns when it closes.

use socket2::SockRef;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A server on a loopback port of its own. Dropping it stops it.
pub(crate) struct RawServer {
    pub(crate) addr: SocketAddr,
    log: Arc<Log>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Log {
    accepted: AtomicUsize,
    closed: AtomicUsize,
    requests: Mutex<Vec<Request>>,
}

/// One request, as it stood on the wire.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// One accepted connection.
pub(crate) struct Conn {
    io: TcpStream,
    unread: Vec<u8>,
    log: Arc<Log>,
    /// How many were accepted before it.
    pub(crate) index: usize,
}

impl RawServer {
    /// Runs `script` for every connection.
    pub(crate) async fn start<F, Fut>(script: F) -> Self
    where
        F: Fn(Conn) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let log = Arc::new(Log::default());
        let noted = Arc::clone(&log);
        let task = tokio::spawn(async move {
            while let Ok((io, _)) = listener.accept().await {
                io.set_nodelay(true).unwrap();
                let index = noted.accepted.fetch_add(1, Ordering::SeqCst);
                let conn = Conn { io, unread: Vec::new(), log: Arc::clone(&noted), index };
                tokio::spawn(script(conn));
            }
        });
        Self { addr, log, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Connections so far.
    pub(crate) fn accepted(&self) -> usize {
        self.log.accepted.load(Ordering::SeqCst)
    }

    /// Requests so far, over all connections.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.log.requests.lock().unwrap().clone()
    }

    /// Waits until scripts have seen `count` peers close ([`Conn::closed`]); false if that takes over a second.
    pub(crate) async fn saw_closed(&self, count: usize) -> bool {
        for _ in 0..200 {
            if self.log.closed.load(Ordering::SeqCst) >= count {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        false
    }
}

impl Drop for RawServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Conn {
    /// Reads the next request, body included; `None` if the peer closed.
    pub(crate) async fn request(&mut self) -> Option<Request> {
        let end = loop {
            if let Some(at) = self.unread.windows(4).position(|window| window == b"\r\n\r\n") {
                break at;
            }
            self.read().await?;
        };
        let head = String::from_utf8(self.unread.drain(..end + 4).collect()).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let line = lines.next().unwrap().to_owned();
        let headers: Vec<(String, String)> = lines
            .map(|line| line.split_once(':').unwrap())
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        let length = length.map_or(0, |(_, value)| value.parse().unwrap());
        while self.unread.len() < length {
            self.read().await?;
        }
        let body = self.unread.drain(..length).collect();
        let request = Request { line, headers, body };
        self.log.requests.lock().unwrap().push(request.clone());
        Some(request)
    }

    /// Waits for anything to come, and leaves it unread.
    pub(crate) async fn byte(&mut self) {
        let _ = self.io.readable().await;
    }

    async fn read(&mut self) -> Option<()> {
        match self.io.read_buf(&mut self.unread).await {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(()),
        }
    }

    /// Writes `bytes` as they are; false if the peer is gone.
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.io.write_all(bytes.as_ref()).await.is_ok()
    }

    /// Starts a chunked response.
    pub(crate) async fn head(&mut self, status: &str, headers: &[(&str, &str)]) {
        let mut head = format!("HTTP/1.1 {status}\r\ntransfer-encoding: chunked\r\n");
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        self.send(head + "\r\n").await;
    }

    /// Starts a chunked event stream.
    pub(crate) async fn events(&mut self) {
        self.head("200 OK", &[("content-type", "text/event-stream")]).await;
    }

    /// One chunk in one write; false if the peer is gone.
    pub(crate) async fn chunk(&mut self, data: impl AsRef<[u8]>) -> bool {
        let data = data.as_ref();
        let mut bytes = format!("{:x}\r\n", data.len()).into_bytes();
        bytes.extend_from_slice(data);
        bytes.extend_from_slice(b"\r\n");
        self.send(bytes).await
    }

    /// The end of a chunked body.
    pub(crate) async fn end(&mut self) {
        self.send("0\r\n\r\n").await;
    }

    /// A whole response with a length.
    pub(crate) async fn whole(&mut self, status: &str, content_type: &str, body: &str) {
        let length = body.len();
        self.send(format!(
            "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\r\n{body}"
        ))
        .await;
    }

    /// Waits until the peer closes, and notes it.
    pub(crate) async fn closed(mut self) {
        while self.read().await.is_some() {
            self.unread.clear();
        }
        self.log.closed.fetch_add(1, Ordering::SeqCst);
    }

    /// Closes with a reset instead of an end.
    pub(crate) fn reset(self) {
        SockRef::from(&self.io).set_linger(Some(Duration::ZERO)).unwrap();
    }

    /// Closes with an end.
    pub(crate) fn close(self) {}
}
