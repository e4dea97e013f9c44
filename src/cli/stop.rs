//! Being told to stop: Ctrl-C, or SIGTERM from whoever supervises the process.

use tokio::signal::ctrl_c;
use tokio::signal::unix::{SignalKind, signal};

/// Waits until the process is told to stop.
pub(super) async fn told() {
    match signal(SignalKind::terminate()) {
        Ok(mut terminated) => {
            tokio::select! {
                _ = terminated.recv() => {}
                _ = ctrl_c() => {}
            }
        }
        Err(_) => drop(ctrl_c().await),
    }
}
