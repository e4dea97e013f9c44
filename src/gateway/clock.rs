//! The time that the gateway goes by.

use std::time::Instant;

/// Tokio's clock, so that tests without sockets can pause it.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
