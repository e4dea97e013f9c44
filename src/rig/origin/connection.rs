//! One accepted connection: bytes in and out, and every way of closing.

use bytes::BytesMut;
use socket2::SockRef;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::ReadHalf;

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    /// Never split into owned halves: they send FIN when they go, which would come before a reset.
    stream: TcpStream,
    /// What came and was not taken yet.
    pub(super) inbox: BytesMut,
    /// Bytes written.
    pub(super) sent: u64,
}

/// The peer left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gone;

// === impl Connection ===

impl Connection {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, inbox: BytesMut::new(), sent: 0 }
    }

    /// Reads more; `false` if the peer left.
    pub(super) async fn more(&mut self) -> bool {
        // Only what is used takes memory: an idle connection gives its buffer back.
        self.inbox.reserve(READ);
        matches!(self.stream.read_buf(&mut self.inbox).await, Ok(read) if read > 0)
    }

    /// Writes all of it, unless the peer leaves first.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        let Self { stream, inbox, sent } = self;
        let (mut read, mut write) = stream.split();
        tokio::select! {
            biased;
            written = write.write_all(bytes) => written.map_err(|_: io::Error| Gone)?,
            () = gone(&mut read, inbox) => return Err(Gone),
        }
        *sent += bytes.len() as u64;
        Ok(())
    }

    /// Resolves when the peer has left.
    pub(super) async fn gone(&mut self) {
        let (mut read, _) = self.stream.split();
        gone(&mut read, &mut self.inbox).await;
    }

    /// Writes a whole answer.
    pub(super) async fn whole(
        &mut self,
        status: u16,
        headers: &[(&str, &str)],
        kind: &str,
        body: &[u8],
        keep_alive: bool,
    ) -> Result<(), Gone> {
        let mut head = format!(
            "HTTP/1.1 {status} {}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n",
            reason(status),
            body.len()
        );
        for (name, value) in headers {
            head.push_str(name);
            head.push_str(": ");
            head.push_str(value);
            head.push_str("\r\n");
        }
        head.push_str(if keep_alive { "\r\n" } else { "connection: close\r\n\r\n" });
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body);
        self.write(&bytes).await
    }

    /// Makes the coming close a reset, and waits a moment, so that the peer has what was written before.
    pub(super) async fn reset(&mut self) {
        tokio::select! {
            () = self.gone() => {}
            () = tokio::time::sleep(RESET_GRACE) => {}
        }
        let _ = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
    }

    /// Sends FIN and waits for the peer to leave too, or else for a moment: a close with unread bytes would be a reset.
    pub(super) async fn finish(&mut self) {
        let _ = self.stream.shutdown().await;
        tokio::select! {
            () = self.gone() => {}
            () = tokio::time::sleep(FIN_GRACE) => {}
        }
    }
}

// === helpers ===

/// Reads into `inbox` until the peer leaves. What it sends meanwhile is kept for the next request, up to a bound; past
/// that nothing more is read, and its leaving is not seen.
async fn gone(read: &mut ReadHalf<'_>, inbox: &mut BytesMut) {
    while inbox.len() < MAX_PIPELINED {
        inbox.reserve(64);
        match read.read_buf(inbox).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
    std::future::pending().await
}

fn reason(status: u16) -> &'static str {
    http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Unknown")
}

// === consts ===

/// How much is read at once.
const READ: usize = 8 << 10;

/// The most bytes of later requests that are kept while one is answered.
const MAX_PIPELINED: usize = 1 << 20;

/// Between the last bytes and a reset.
pub(super) const RESET_GRACE: Duration = Duration::from_millis(5);

/// Between FIN and the end of a connection that the peer keeps open.
const FIN_GRACE: Duration = Duration::from_secs(2);
