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
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

/// A socket whose writes have a deadline.
pub(super) struct Socket {
    stream: TcpStream,
    patience: Duration,
    sleep: Pin<Box<Sleep>>,
    pending: bool,
}

// === impl Socket ===

impl Socket {
    /// Takes over `stream`; each write may be pending for `patience` at most.
    pub(super) fn new(stream: TcpStream, patience: Duration) -> Self {
        let sleep = Box::pin(tokio::time::sleep(patience));
        Self { stream, patience, sleep, pending: false }
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

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
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
