//! A runtime of its own for what must go on when every worker is busy: signals, the operators' side, the watchdog.

use super::Failed;
use std::future::Future;
use std::io;
use tokio::runtime::{Builder, EnterGuard, Runtime};
use tokio::task::JoinHandle;

/// The runtime; its threads are let go on drop, whatever they do.
pub(super) struct Control(Option<Runtime>);

// === impl Control ===

impl Control {
    /// Starts the threads.
    pub(super) fn start() -> Result<Self, Failed> {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(THREADS).thread_name("segue-control").enable_all();
        let runtime = builder.build().map_err(|error| Failed::Setup(format!("no runtime for operators: {error}")))?;
        Ok(Self(Some(runtime)))
    }

    /// Runs `work` on these threads.
    pub(super) fn spawn<F>(&self, work: F) -> Option<JoinHandle<F::Output>>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        self.0.as_ref().map(|runtime| runtime.spawn(work))
    }

    /// Runs `work` on these threads and waits for it.
    pub(super) async fn run<F>(&self, work: F) -> Result<F::Output, Failed>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let over = || Failed::Setup("the runtime for operators has ended".to_owned());
        self.spawn(work).ok_or_else(over)?.await.map_err(|error| Failed::Output(io::Error::other(error)))
    }

    /// What is set up while this is held belongs to these threads.
    pub(super) fn enter(&self) -> Option<EnterGuard<'_>> {
        self.0.as_ref().map(Runtime::enter)
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // A runtime must not be waited for inside another.
            runtime.shutdown_background();
        }
    }
}

/// One may be busy with a long answer for an operator.
const THREADS: usize = 2;
