//! A turn as a response body.

use crate::gateway::drive::Drive;
use bytes::Bytes;
use http_body::{Body, Frame};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The body whose frames are a turn's. While it is not polled, nothing is read of any provider.
pub(super) struct TurnBody {
    pub(super) drive: Drive,
}

impl Body for TurnBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.get_mut().drive.poll_frame(cx).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}
