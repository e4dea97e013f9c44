//! The accepted socket: a client that takes nothing for too long is gone.
//!
//! While a client does not read, its body is not polled, so no clock of the turn could notice. The socket can: a write
//! that stays pending for `client_write` fails, which closes the connection and drops the turn with it.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// A socket whose writes have a deadline, and its first bytes.
pub(super) struct Socket<S> {
    stream: S,
    opening: Option<Opening>,
    patience: Duration,
    sleep: Pin<Box<Sleep>>,
    pending: bool,
}

/// What a client must say before it is known which HTTP it speaks: until then nobody else keeps the time.
struct Opening {
    owed: usize,
    sleep: Pin<Box<Sleep>>,
}

// === impl Socket ===

impl<S> Socket<S> {
    /// Takes over `stream`; each write may be pending for `patience` at most.
    pub(super) fn new(stream: S, patience: Duration) -> Self {
        let sleep = Box::pin(tokio::time::sleep(patience));
        let opening = Some(Opening { owed: OPENING_BYTES, sleep: Box::pin(tokio::time::sleep(OPENING)) });
        Self { stream, opening, patience, sleep, pending: false }
    }

    fn watch<T>(&mut self, poll: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            self.pending = false;
            return poll;
        }
        if !self.pending {
            self.pending = true;
            self.sleep.as_mut().reset(Instant::now() + self.patience);
        }
        match self.sleep.as_mut().poll(cx) {
            Poll::Ready(()) => {
                let message = "the client took no bytes for timeouts.client_write";
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, message)))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Socket<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let poll = Pin::new(&mut self.stream).poll_read(cx, buf);
        let Some(opening) = &mut self.opening else { return poll };
        if poll.is_ready() {
            opening.owed = opening.owed.saturating_sub(buf.filled().len() - before);
            if opening.owed == 0 {
                self.opening = None;
            }
            return poll;
        }
        match opening.sleep.as_mut().poll(cx) {
            Poll::Ready(()) => {
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client asked for nothing")))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Socket<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.watch(poll, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.watch(poll, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// A client must begin within this time.
const OPENING: Duration = Duration::from_secs(30);
/// The preface of HTTP/2, which a connection may begin with; hardly a request of HTTP/1.1 is shorter.
const OPENING_BYTES: usize = 24;

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// How long a socket whose client says `opening` and no more can be read.
    async fn open_for(opening: &[u8]) -> Option<Duration> {
        let (mut client, stream) = tokio::io::duplex(64);
        client.write_all(opening).await.unwrap();
        let mut socket = Socket::new(stream, Duration::from_secs(5));
        let begun = Instant::now();
        let mut heard = vec![0; opening.len() + 1];
        let read = tokio::time::timeout(Duration::from_secs(300), socket.read_exact(&mut heard)).await;
        read.is_ok_and(|read| read.unwrap_err().kind() == io::ErrorKind::TimedOut).then(|| begun.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_begin_is_gone_and_one_that_has_begun_is_not() {
        for opening in [&b""[..], b"PRI * HTTP/2.0\r\n\r\nSM\r\n"] {
            assert_eq!(open_for(opening).await.map(|open| open.as_secs()), Some(OPENING.as_secs()), "{opening:?}");
        }
        assert_eq!(open_for(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await, None, "its HTTP keeps the time now");
    }
}
