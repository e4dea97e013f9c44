//! Being told to stop: Ctrl-C, or SIGTERM from whoever supervises the process.

use super::{Failed, outlet};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

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

    /// Cancels `stop` at the first, and ends the process at the second, or where it has not ended `patience` after the
    /// first: workers that are busy for ever hear nothing.
    pub(super) async fn obey(mut self, stop: CancellationToken, patience: Duration) {
        self.told().await;
        stop.cancel();
        let code = tokio::select! {
            () = self.told() => {
                tracing::warn!("told to stop once more: open turns are cut");
                AT_ONCE
            }
            () = tokio::time::sleep(patience) => {
                tracing::error!("the workers did not end their turns; stopped without them");
                UNENDED
            }
        };
        outlet::last_words();
        std::process::exit(code);
    }

    /// Waits for one.
    pub(super) async fn told(&mut self) {
        tokio::select! {
            _ = self.interrupted.recv() => {}
            _ = self.terminated.recv() => {}
        }
    }
}

/// The exit code of a process that was told twice, as of one that Ctrl-C ended.
const AT_ONCE: i32 = 130;
/// The exit code of a process whose turns did not end.
const UNENDED: i32 = 1;
