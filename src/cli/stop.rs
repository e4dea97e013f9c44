//! Being told to stop: Ctrl-C, or SIGTERM from whoever supervises the process.

use super::Failed;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// From its making on, the signals no longer end the process but are waited for.
#[derive(Debug)]
pub(super) struct Signals {
    interrupted: Signal,
    terminated: Signal,
}

// === impl Signals ===

impl Signals {
    /// Begins to listen; before anybody is told that the process is up, who might then tell it to stop.
    pub(super) fn listen() -> Result<Self, Failed> {
        let listen = |kind| signal(kind).map_err(|error| Failed::Setup(format!("signals cannot be had: {error}")));
        Ok(Self { interrupted: listen(SignalKind::interrupt())?, terminated: listen(SignalKind::terminate())? })
    }

    /// Waits for one.
    pub(super) async fn told(&mut self) {
        tokio::select! {
            _ = self.interrupted.recv() => {}
            _ = self.terminated.recv() => {}
        }
    }
}
