//! The end of a finished answer's body, taken off its connection so that the next turn can have it.

use super::lanes::Seat;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use std::task::{Context, Poll};
use std::time::Duration;

/// Takes the last bytes of a finished answer off its connection, so that the next turn can have it: the end of the
/// body is often in a packet of its own, right behind the terminator. Nobody waits for it, and it is bounded; a server
/// that has more to say, or nothing, loses the connection.
pub(super) fn linger<S, E>(mut body: S, seat: Option<Seat>, cx: &mut Context<'_>)
where
    S: Stream<Item = Result<Bytes, E>> + Unpin + Send + 'static,
    E: Send + 'static,
{
    // This poll also asks the connection to read on.
    if let Poll::Ready(None | Some(Err(_))) = body.poll_next_unpin(cx) {
        return;
    }
    tokio::spawn(tokio::time::timeout(LINGER, async move {
        let _seat = seat;
        let mut left = LINGER_BYTES;
        while let Some(Ok(piece)) = body.next().await {
            left = left.saturating_sub(piece.len());
            if left == 0 {
                break;
            }
        }
    }));
}

/// How long a finished answer's body may take to end.
const LINGER: Duration = Duration::from_millis(100);
/// How many bytes may come behind a terminator.
const LINGER_BYTES: usize = 16 * 1024;
